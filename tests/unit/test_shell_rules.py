"""Rules about shell command lines: what their functions return, and what a policy with them needs at load."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded

from fastrpc import Server
from fastrpc.errors import RemoteError
from fastrpc.guard.cel import DYN, STRING, EvaluationError, RuleTypeError, compile
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.shell import parser
from fastrpc.testing import Client

VARIABLES = {"line": STRING, "lines": DYN}


def value(source: str, line: Any = "", **more: Any) -> Any:
    return compile(source, VARIABLES).evaluate({"line": line, **more})


@pytest.mark.parametrize(
    ("line", "reads", "parses"),
    [
        ("ls -la | head", True, True),
        ("rm x", False, True),
        ("ls $(rm x)", False, False),
        ("", False, False),
        ("ls " + "a" * 100_000, False, False),
    ],
)
def test_a_rule_asks_whether_a_line_only_reads_and_whether_it_is_understood(
    line: str, reads: bool, parses: bool
) -> None:
    assert value("shellReads(line)", line) is reads
    assert value("shellParses(line)", line) is parses


def test_the_programs_of_a_line_are_a_list_of_strings_in_their_order() -> None:
    assert value("shellPrograms(line)", "make -j2 && pytest -q | tail; 'make' x") == [
        "make",
        "pytest",
        "tail",
        "make",
    ]
    assert value('shellPrograms(line).all(p, p in ["make", "pytest"])', "make && pytest") is True
    assert value('shellPrograms(line).exists(p, p == "rm")', "ls; rm x") is True


@pytest.mark.parametrize("line", ["", "# x", "make $x", "make $(rm x)", "make &"])
@pytest.mark.parametrize("source", ["all(p, p == 'make')", "exists(p, p == 'rm')", "size() == 0"])
def test_the_programs_of_a_line_that_is_not_understood_are_an_error_and_never_none(
    line: str, source: str
) -> None:
    with pytest.raises(EvaluationError, match="the command line is not understood"):
        value(f"shellPrograms(line).{source}", line)
    assert value(f"shellParses(line) && shellPrograms(line).{source}", line) is False


def test_what_is_no_string_is_an_error_at_load_where_that_is_known_else_in_the_evaluation() -> None:
    with pytest.raises(RuleTypeError, match=r"shellReads\(\): expected a string, not an int"):
        compile("shellReads(1)", VARIABLES)
    with pytest.raises(EvaluationError, match="shellReads: expected a string, not a list"):
        value("shellReads(lines)", lines=["ls"])


def test_reading_lines_takes_steps_of_the_evaluation() -> None:
    lines = ["ls " + "a" * 1900] * 100
    with pytest.raises(EvaluationError, match="more than 100,000 steps"):
        value("lines.all(each, shellReads(each))", lines=lines)
    assert value("lines.all(each, shellReads(each))", lines=lines[:40]) is True


def test_tree_sitter_is_imported_when_a_rule_is_loaded_that_needs_it_and_by_no_other() -> None:
    code = (
        "import sys; from fastrpc.guard.cel import STRING, compile; "
        "compile('t == \"a\"', {'t': STRING}); "
        "assert not {'tree_sitter', 'fastrpc.guard.shell'} & sys.modules.keys(); "
        "compile('shellReads(t)', {'t': STRING}); assert 'tree_sitter' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("module", ["tree_sitter", "tree_sitter_bash"])
def test_without_tree_sitter_a_policy_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    parser.load.cache_clear()
    with pytest.raises(GuardConfigError) as caught:
        guarded(tmp_path, POLICY, terminal())
    assert "line 7: rules[0].when: column 1: shellReads() needs tree-sitter and tree-sitter-bash: " in str(
        caught.value
    )
    assert "pip install -U 'fastrpc-mcp[guard]'" in str(caught.value)


POLICY = """[expose]
tools = ["*"]

[[rules]]
id = "looking"
tools = ["run"]
when = "shellReads(args.command)"
risk = "low"
"""


def terminal() -> Server:
    app = Server("terminal")

    @app.tool(effect="exec", run="inline")
    def run(command: str) -> str:
        return f"ran {command}"

    return app


def test_a_command_that_only_reads_runs_and_any_other_is_asked_for(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, POLICY, terminal())

    async def converse() -> None:
        async with Client(app) as client:
            assert (await client.call("run", command="ls -la")).text == "ran ls -la"
            for command in ("rm x", "ls $(rm x)", "ls > x"):
                with pytest.raises(RemoteError) as caught:
                    await client.call("run", command=command)
                assert caught.value.data["reason"] == "approval_rejected"

    asyncio.run(asyncio.wait_for(converse(), 60))
