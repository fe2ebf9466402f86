"""What commands print fits the terminal, however narrow it is; for a program it is not wrapped."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.command_line import run
from support.terminal import on_terminal

COMMANDS = (["list"], ["tools"], ["config"], ["inspect"], ["serve", "--help"], ["--help"])


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_printed_fits_the_terminal(place: Any, command: list[str], columns: int) -> None:
    with on_terminal(place, *command, shows_output=True, columns=columns) as there:
        shown = re.sub(r"\x1b\[\d*[mK]", "", there.rest()).replace("\r", "\n")
    words = [line for line in shown.split("\n") if " " in line.strip()]  # a word that is longer stays whole
    assert words
    assert [line for line in words if len(line) > columns] == []


def test_nothing_is_lost_where_there_is_no_room_for_a_table(place: Any) -> None:
    wide = run(place, "tools").stdout
    with on_terminal(place, "tools", shows_output=True, columns=40) as there:
        narrow = re.sub(r"\x1b\[\d*[mK]", "", there.rest())
    head, *rows = wide.splitlines()
    assert head.split() == ["tool", "effect", "arguments", "description"]
    for row in rows:
        for word in row.split():
            assert word in narrow
    assert "Bash\r\n    effect: exec\r\n" in narrow


def test_programs_get_long_lines(place: Any, words: str) -> None:
    shown = run(place, "tools", words, COLUMNS="40").stdout
    assert len(shown.splitlines()) == 4
    assert "word_count" in shown
