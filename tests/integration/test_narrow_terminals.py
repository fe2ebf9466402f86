"""What commands print fits the terminal, however narrow it is; for a program it is not wrapped."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from support.command_line import run
from support.http_server import HttpProcess
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


def fits(place: Any, columns: int, *command: str) -> str:
    """Run a command at a narrow terminal, see that its lines fit, and return them."""
    with on_terminal(place, *command, shows_output=True, columns=columns) as there:
        shown = re.sub(r"\x1b\[\d*[mK]", "", there.rest()).replace("\r", "\n")
    assert [line for line in shown.split("\n") if " " in line.strip() and len(line) > columns] == []
    return shown


@pytest.mark.parametrize("columns", [40, 60])
def test_servers_of_clients_a_gateway_and_the_audit_log_fit_it(place: Any, words: str, columns: int) -> None:
    command = [sys.executable, "-m", "fastrpc", "serve", words]
    servers = {
        "words": {"command": command[0], "args": command[1:], "env": {"A_LONG_NAME": "b", "ANOTHER": "c"}}
    }
    (place / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert "A_LONG_NAME" in fits(place, columns, "discover")
    (place / "guard.toml").write_text('[expose]\ntools = ["*"]\n')
    assert run(place, "call", words, "word_count", "text=x", "--guard", "guard.toml").returncode == 0
    shown = fits(place, columns, "audit", "tail")
    assert "total_us" in shown
    assert "word_count" in shown
    with HttpProcess("gateway", ".mcp.json", "--http", "127.0.0.1:0", "--no-auth", folder=place) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        shown = fits(place, columns, "gateway", "status", "--http", url)
        assert re.search(r"\n +tools: 0\n", shown)
        assert re.search(
            r"\nserver +state +pid +tools", run(place, "gateway", "status", "--http", url).stdout
        )


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
