"""``fastrpc WORD COMMAND``: the commands of a toolset that is shipped, though another one is configured.

A separate toolset replaces it: it is laid into the path of the package `fastrpc.tools`.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastrpc.tools
import pytest

from fastrpc.__main__ import main

COMMANDS = """
    COMMANDS = {
        "open": ("open the chest", "_opening:main"),
        "close": ("close the chest", "_opening:close"),
    }
"""
OPENING = """
    def main(arguments):
        print("opened", *arguments)
        return 3

    def close(arguments):
        raise SystemExit(0)
"""


@pytest.fixture(autouse=True)
def toolsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two toolsets beside those of the package: `chest` has commands, `drawer` has none."""
    for name in ("chest", "drawer"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("__all__ = []\n")
    (tmp_path / "chest" / "_commands.py").write_text(textwrap.dedent(COMMANDS))
    (tmp_path / "chest" / "_opening.py").write_text(textwrap.dedent(OPENING))
    monkeypatch.setattr(fastrpc.tools, "__path__", [*fastrpc.tools.__path__, str(tmp_path)])
    yield
    for name in [
        each for each in sys.modules if each.startswith(("fastrpc.tools.chest", "fastrpc.tools.drawer"))
    ]:
        del sys.modules[name]


def test_a_command_runs_with_its_arguments_and_its_exit_code(capsys: Any) -> None:
    assert main(["chest", "open", "--wide", "now"]) == 3
    assert capsys.readouterr().out == "opened --wide now\n"
    assert main(["chest", "close"]) == 0


@pytest.mark.parametrize("words", [["chest"], ["chest", "--help"], ["chest", "-h"], ["help", "chest"]])
def test_its_name_alone_lists_its_commands(words: list[str], capsys: Any) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: fastrpc chest COMMAND")
    assert "open the chest" in shown
    assert "close the chest" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chest", "opne"], "chest: unknown command 'opne'; did you mean 'open'?"),
        (["chest", "zzzz"], "chest: unknown command 'zzzz'; the commands are open, close"),
        (["drawer", "open"], "unknown command 'drawer'"),
        (["chets", "open"], "unknown command 'chets'"),
        (["_chest", "open"], "unknown command '_chest'"),
        (["chest.more", "open"], "unknown command 'chest.more'"),
        (["open"], "unknown command 'open'"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str, capsys: Any) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"fastrpc: {said}")
    assert captured.err.count("\n") == 1


def test_the_name_of_the_configured_toolset_works_too(capsys: Any) -> None:
    assert main(["agent"]) == 0
    assert "state" in capsys.readouterr().out


def test_a_command_of_the_framework_goes_first(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "chest").rename(tmp_path / "tools")
    assert main(["tools", "open"]) != 3
    assert "opened" not in capsys.readouterr().out
