"""A tool that says its own risk: the guard asks about it as of any other of this level, unless its file says
otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.guarded import caller_of, guarded

from fastrpc import DefinitionError, Server, tool
from fastrpc.guard.policy.decisions import CallTarget

EXPOSED = '[expose]\ntools = ["*"]\n'


@tool(effect="write", risk="critical")
def forget_everything() -> str:
    """Forget everything"""
    return "done"


class Store:
    @tool(effect="read", risk="high")
    def dump(self) -> str:
        """Read all there is"""
        return ""


def store() -> Server:
    app = Server("store")
    app.add_tool(forget_everything)
    app.add_tool(Store().dump)
    return app


@pytest.mark.parametrize(("name", "level"), [("forget_everything", "critical"), ("dump", "high")])
def test_the_guard_takes_the_tools_word_before_its_effect(tmp_path: Path, name: str, level: str) -> None:
    app, guard = guarded(tmp_path, EXPOSED, store())
    found = app.tools.get(name)
    target = CallTarget("tool", name, found.effect, found.risk)
    assert guard.policy.base_risk(target) == level
    caller = caller_of("ada")
    assert guard.policy.decision(caller, guard.policy.class_key(caller), target).asks


def test_the_guards_file_outweighs_it(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, EXPOSED + '[risk]\n"forget_*" = "low"\n', store())
    found = app.tools.get("forget_everything")
    assert guard.policy.base_risk(CallTarget("tool", found.name, found.effect, found.risk)) == "low"


def test_another_level_is_refused_by_name() -> None:
    with pytest.raises(DefinitionError, match="risk='huge' is not one of none, low, medium, high, critical"):

        @Server("x").tool(risk="huge")
        def f() -> None: ...
