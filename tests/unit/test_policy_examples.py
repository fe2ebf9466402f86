"""Every policy that the documents and the examples show is attacked: what it lets through unasked runs no
other program than those that it names, writes nothing and ends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.program_options import ATTACKS

from fastrpc.callers import Caller
from fastrpc.guard.cel import DYN, EvaluationError, compile
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import CallTarget, Policy

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*")])
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONDITION = re.compile(r"""^\s*when\s*=\s*(?:'([^'\n]*)'|"((?:[^"\\\n]|\\.)*)")""", re.MULTILINE)
QUOTED = re.compile(r"`([^`\n]*\bshell[A-Z]\w*\(args\.[^`\n]*)`")
SHELLS = ("Bash", "BackgroundBash")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


def texts_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def conditions() -> list[Any]:
    """The conditions about shell commands, wherever they are."""
    found = []
    for path in PAGES:
        text = texts_of(path)
        for single, double in CONDITION.findall(text):
            found.append((path, single or double.replace('\\"', '"')))
        found += [(path, each) for each in QUOTED.findall(text)]
    return [
        pytest.param(when, id=f"{path.name}: {when}")
        for path, when in dict.fromkeys(found)
        if "shell" in when and "args.command" in when
    ]


def policies() -> list[Any]:
    """The policies that are whole, and say what anybody may call."""
    found = []
    for path in PAGES:
        text = texts_of(path)
        blocks = [text] if path.suffix == ".toml" else BLOCK.findall(text)
        found += [(path, number, block) for number, block in enumerate(blocks) if "[expose]" in block]
    return [pytest.param(block, id=f"{path.name}-{number}") for path, number, block in found]


def holds(when: str, command: str) -> bool:
    try:
        return bool(compile(when, {"args": DYN}).evaluate({"args": {"command": command}}))
    except EvaluationError:
        return False


def test_there_are_conditions_and_policies_to_attack() -> None:
    assert len(conditions()) >= 3
    assert len(policies()) >= 3


@pytest.mark.parametrize("when", conditions())
def test_no_condition_about_a_command_holds_for_one_that_does_more(when: str) -> None:
    assert [command for command in ATTACKS if holds(when, command)] == []


@pytest.mark.parametrize("text", policies())
def test_no_policy_lets_a_command_run_unasked_that_does_more(tmp_path: Path, text: str) -> None:
    (tmp_path / "guard.toml").write_text(text)
    config = policy_file.read(str(tmp_path / "guard.toml"))
    policy = Policy(config, dict.fromkeys(SHELLS, SCHEMA))
    passed = []
    for name in SHELLS:
        target = CallTarget("tool", name, "exec")
        for caller in (
            Caller("os:ada", config.user_class),
            *(Caller("ada", name) for name in config.classes),
        ):
            decision = policy.decision(caller, policy.class_key(caller), target)
            for command in ATTACKS:
                verdict = policy.judge(decision, caller, target, {"command": command})
                if verdict.action != "deny" and not policy.asks(verdict):
                    passed.append((name, caller.caller_class, command))
    assert passed == []


def test_the_attacks_are_of_programs_that_a_careless_rule_lets_through() -> None:
    careless = (
        'shellParses(args.command) && shellPrograms(args.command).all(p, p in ["make", "pytest", "git"])'
    )
    assert sum(holds(careless, command) for command in ATTACKS) > 40
