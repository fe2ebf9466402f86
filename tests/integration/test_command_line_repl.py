"""`fastrpc repl`: a session by hand, over a pipe and on a terminal; and what Tab completes."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any, Literal

import pytest
from support.command_line import SECONDS, run
from support.terminal import on_terminal

from fastrpc import Server
from fastrpc.cli._catalogue import catalogue_of
from fastrpc.cli._repl_completion import ReplCompleter
from fastrpc.client.client import Client

SHOP = '''
import asyncio
import dataclasses
from typing import Literal
from fastrpc import Context, Server

app = Server("shop")

@dataclasses.dataclass
class Address:
    street: str

@app.resource("orders://{id}")
def order(id: str) -> str:
    """The state of an order."""
    return f"order {id}"

@app.prompt
def complain(id: str, tone: Literal["kind", "firm"] = "kind") -> str:
    """A letter."""
    return f"a {tone} letter about {id}"

@app.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

@app.tool
def grow(context: Context) -> str:
    """Offer one more tool."""
    app.add_tool(shrink)
    return "grown"

def shrink() -> str:
    return "shrunk"

@app.tool
async def ship(context: Context) -> str:
    answer = await context.elicit("Where to?", Address)
    return answer.data.street if answer.accepted else answer.action

@app.tool
async def wait() -> str:
    open("began", "w").close()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        open("cancelled", "w").close()
        raise
    return "late"

@app.tool
def die() -> str:
    import os
    os._exit(3)
'''


@pytest.fixture
def shop(place: Any) -> str:
    (place / "shop.py").write_text(SHOP)
    return "shop.py"


def test_lines_from_a_pipe_are_done_one_after_the_other(place: Any, shop: str) -> None:
    lines = [
        "call add a=1 b=2",
        "",
        "read orders://7",
        "prompt complain id=5 tone=firm",
        "help",
        "quit",
        "call add",
    ]
    done = run(place, "repl", shop, text="\n".join(lines))
    assert (done.returncode, done.stderr) == (0, "")
    shown, _, helped = done.stdout.partition("tools   ")
    assert shown == "3\norder 7\nuser: a firm letter about 5\n"
    assert helped.rstrip().endswith("so does Ctrl-D")


def test_each_list_shows_its_part(place: Any, shop: str) -> None:
    for command, has, lacks in (
        ("tools", "add: Add.", "complain"),
        ("resources", "orders://{id}", "complain"),
        ("prompts", "complain: A letter.", "orders"),
        ("list", "orders://{id}", "nothing of the kind"),
    ):
        shown = run(place, "repl", shop, text=f"{command}\n").stdout
        assert has in shown
        assert lacks not in shown


def test_a_mistake_is_a_line_and_the_session_goes_on(place: Any, shop: str) -> None:
    lines = [
        "cal x",
        "call ad",
        "call add c=1",
        "call add a=x b=1",
        "call 'x",
        "read",
        "read x://y",
        "call add a=1 b=1",
    ]
    done = run(place, "repl", shop, text="\n".join(lines))
    assert (done.returncode, done.stdout) == (0, "2\n")
    said = done.stderr.splitlines()
    for line, part in zip(
        said,
        [
            "did you mean 'call'?",
            "did you mean 'add'?",
            "add has no argument 'c'",
            "a: expected integer",
            "No closing quotation",
            "see 'help'",
            "Resource not found",
        ],
        strict=True,
    ):
        assert line.startswith("fastrpc: ")
        assert part in line


def test_a_server_that_dies_ends_the_session_with_exit_code_1(place: Any, shop: str) -> None:
    done = run(place, "repl", shop, text="call die\ncall add a=1 b=1\n")
    assert (done.returncode, done.stdout) == (1, "")
    lost = "fastrpc: the connection to the server shop.py is lost: it ended with exit code 3\n"
    assert done.stderr.endswith(lost)


def test_a_tool_that_is_new_is_listed(place: Any, shop: str) -> None:
    done = run(place, "repl", shop, "--protocol", "2025-11-25", text="tools\ncall grow\ntools\n")
    before, _, after = done.stdout.partition("grown\n")
    assert "shrink" not in before
    assert "shrink" in after


def test_on_a_terminal_tab_completes_and_questions_are_asked(place: Any, shop: str) -> None:
    pytest.importorskip("readline")
    with on_terminal(place, "repl", shop, shows_output=True) as there:
        there.until("shop> ")
        there.type("ca\tad\ta\t1 b\t2\n")
        there.until("call add a=1 b=2\r\n")
        there.until("3\r\n")
        there.until("shop> ")
        there.type("prompt comp\ti\t9 t\tf\t\n")
        there.until("a firm letter about 9\r\n")
        there.type("call ship\n")
        there.until("street (text): ")
        there.type("Main Road\n")
        there.until("Main Road\r\nMain Road\r\n")
        there.until("shop> ")
        there.type("\x04")
        assert there.end() == (0, "")


def test_ctrl_c_cancels_the_call_and_not_the_session(place: Any, shop: str) -> None:
    with on_terminal(place, "repl", shop, shows_output=True) as there:
        there.until("shop> ")
        there.type("call wait\n")
        deadline = time.monotonic() + SECONDS
        while not (place / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        there.type("\x03")
        there.until("shop> ")
        while not (place / "cancelled").exists():  # while the session goes on: not by its end
            assert time.monotonic() < deadline
            time.sleep(0.01)
        there.type("call add a=2 b=2\n")
        there.until("4\r\n")
        there.type("quit\n")
        assert there.end() == (0, "")


def test_ctrl_c_ends_a_session_whose_lines_come_from_a_pipe(place: Any, shop: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "fastrpc", "repl", shop],
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"call wait\n")
    process.stdin.flush()
    deadline = time.monotonic() + SECONDS
    while not (place / "began").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(2)
    assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == 130


# --- completion ---------------------------------------------------------------------------------------


def shop_server() -> Server:
    app = Server("shop")

    @app.tool
    def paint(colour: Literal["red", "green"], is_loud: bool = False, text: str = "") -> str:
        return colour

    @app.resource("orders://all")
    def all_orders() -> str:
        return ""

    @app.resource("orders://{id}/{part}")
    def order(id: str, part: str) -> str:
        return id

    @app.prompt
    def complain(id: str, tone: Literal["kind", "firm"] = "kind") -> str:
        return id

    @app.complete("complain", "id")
    def ids(value: str) -> list[str]:
        return [id for id in ("one", "other") if id.startswith(value)]

    @app.complete("orders://{id}/{part}", "id")
    def numbers(value: str) -> list[str]:
        return [number for number in ("17", "18") if number.startswith(value)]

    @app.complete("orders://{id}/{part}", "part")
    def parts(value: str) -> list[str]:
        return [part for part in ("head", "foot") if part.startswith(value)]

    return app


@pytest.mark.parametrize(
    ("before", "word", "found"),
    [
        ("", "pro", ["prompts", "prompt "]),
        ("", "q", ["quit"]),
        ("call ", "", ["paint "]),
        ("call paint ", "", ["colour=", "is_loud=", "text="]),
        ("call paint colour=red ", "", ["is_loud=", "text="]),
        ("call paint ", "colour=", ["colour=red ", "colour=green "]),
        ("call paint ", "colour=g", ["colour=green "]),
        ("call paint ", "is_loud=t", ["is_loud=true "]),
        ("call paint ", "text=", []),
        ("call nothing ", "x", []),
        ("prompt ", "c", ["complain "]),
        ("prompt complain ", "", ["id=", "tone="]),
        ("prompt complain ", "id=o", ["id=one ", "id=other "]),
        ("prompt complain id=one ", "tone=f", ["tone=firm "]),
        ("read ", "", ["orders://all", "orders://"]),
        ("read ", "orders://1", ["orders://17/", "orders://18/"]),
        ("read ", "orders://17/h", ["orders://17/head"]),
        ("read orders://all ", "", []),
        ("help ", "", []),
    ],
)
def test_what_tab_completes(before: str, word: str, found: list[str]) -> None:
    with Client.sync(shop_server()) as client:
        assert ReplCompleter(client, lambda: catalogue_of(client)).candidates(before, word) == found


def test_a_server_that_is_gone_completes_nothing(place: Any, shop: str) -> None:
    from fastrpc.errors import ConnectionLost

    command = [sys.executable, "-m", "fastrpc", "serve", str(place / shop)]
    with Client.sync(command, stderr=False) as client:
        completion = ReplCompleter(client, lambda: catalogue_of(client))
        assert completion.candidates("call ", "ad") == ["add "]
        with pytest.raises(ConnectionLost):
            client.call_tool("die")
        assert completion.candidates("call ", "ad") == []
