"""What a server does besides its calls: it watches for changes, adds notes to results, logs by itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.in_memory import connected, with_client
from support.stdio import STATELESS_META, encode

from fastrpc import Context, Server, ToolError, ToolResult
from fastrpc._core.call_info import CallInfo
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client


def various() -> Server:
    """Tools of each way of running and answering."""
    app = Server("t")

    @app.tool(run="inline")
    def text() -> str:
        return "سلام"

    @app.tool(run="thread")
    def table() -> dict[str, int]:
        return {"big": 2**80}

    @app.tool
    async def full() -> ToolResult:
        return ToolResult("full", meta={"a/b": 1}, structured={"x": 1.5})

    @app.tool
    def fails() -> str:
        raise ToolError("no")

    @app.tool
    def nothing() -> None:
        return None

    return app


def texts(result: Any) -> list[str]:
    return [block["text"] for block in result["content"]]


# --- watching -----------------------------------------------------------------------------------------


def counting(app: Server) -> list[int]:
    """Have a server watch once an hour, with a function that writes into a description; return its calls."""
    looks: list[int] = []

    def look() -> None:
        looks.append(1)
        app.tools.get("text").description = f"seen {len(looks)} times"
        app.tools.changed()

    app.watch(look, every_seconds=3600)
    return looks


def test_a_list_does_not_call_what_watches_when_a_loop_does() -> None:
    app = various()
    looks = counting(app)

    async def conversation(client: Client) -> None:
        for _ in range(3):
            assert (await client.tools())[0]["description"] == "seen 1 times"
        assert len(looks) == 1  # when the loop began

    with_client(app, conversation)


def lists_without_a_loop(app: Server) -> Iterator[str]:
    """Yield the description of the first tool from one list after the other, on a wire of 2026-07-28."""
    lines: list[bytes] = []
    wire = connected(app.connect().connection, lines.append)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": STATELESS_META}}
    while True:
        wire.send(encode(message)[:-1])
        yield json.loads(lines.pop())["result"]["tools"][0].get("description", "")


def test_without_a_loop_each_list_calls_what_watches() -> None:
    app = various()
    counting(app)
    lists = lists_without_a_loop(app)
    assert [next(lists) for _ in range(3)] == ["seen 1 times", "seen 2 times", "seen 3 times"]


def test_a_list_that_is_ready_is_made_anew_when_something_begins_to_watch_and_no_loop_runs() -> None:
    app = various()
    lists = lists_without_a_loop(app)
    before = [next(lists) for _ in range(3)]
    assert "seen" not in "".join(before)
    counting(app)
    assert next(lists) == "seen 1 times"


def test_a_list_calls_what_watches_once_the_client_whose_loop_did_has_left() -> None:
    app = various()
    looks = counting(app)
    lists = lists_without_a_loop(app)
    assert next(lists) == "seen 1 times"

    async def conversation(client: Client) -> None:
        assert (await client.tools())[0]["description"] == "seen 2 times"
        assert [next(lists) for _ in range(3)] == ["seen 2 times"] * 3

    with_client(app, conversation)
    assert [next(lists), next(lists)] == ["seen 3 times", "seen 4 times"]
    assert len(looks) == 4


def test_what_watches_is_called_while_a_client_is_there_and_not_afterwards() -> None:
    app = various()
    looks: list[float] = []
    app.watch(lambda: looks.append(1), every_seconds=0.01)

    async def run() -> None:
        assert not looks
        async with Client(app):
            while len(looks) < 5:
                await asyncio.sleep(0.01)
        seen = len(looks)
        await asyncio.sleep(0.1)
        assert len(looks) == seen

    asyncio.run(asyncio.wait_for(run(), 30))


def test_watching_goes_on_with_another_client_when_the_first_one_leaves() -> None:
    app = various()
    looks: list[float] = []
    app.watch(lambda: looks.append(1), every_seconds=0.01)

    async def run() -> None:
        async with Client(app):
            async with Client(app):
                pass
            seen = len(looks)
            while len(looks) < seen + 3:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_watching_function_that_is_added_late_begins_at_once_and_can_take_itself_out() -> None:
    app = various()
    looks: list[float] = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            app.unwatch(look)

    async def conversation(client: Client) -> None:
        app.watch(look, every_seconds=0.01)
        while len(looks) < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await client.tools()
        assert len(looks) == 3

    with_client(app, conversation)


def test_a_watching_function_that_fails_is_logged_once_and_called_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = various()
    looks: list[float] = []

    def look() -> None:
        looks.append(1)
        raise ValueError("cannot see")

    app.watch(look, every_seconds=0.01)

    async def conversation(client: Client) -> None:
        while len(looks) < 3:
            await asyncio.sleep(0.01)
        assert len(await client.tools()) == 5

    with_client(app, conversation)
    assert caplog.text.count("\nValueError: cannot see") == 1


def test_a_mounted_server_watches_too() -> None:
    inner, outer = various(), Server("outer")
    outer.mount(inner, "in")
    looks: list[float] = []
    inner.watch(lambda: looks.append(1), every_seconds=0.01)

    async def conversation(client: Client) -> None:
        while len(looks) < 3:
            await asyncio.sleep(0.01)

    with_client(outer, conversation)


def test_without_a_loop_a_list_calls_what_watches_on_a_mounted_server_too() -> None:
    inner, outer = various(), Server("outer")
    outer.mount(inner, "in")
    looks = counting(inner)
    lists = lists_without_a_loop(outer)
    for count in (1, 2, 3):
        next(lists)
        assert len(looks) == count


HANDSHAKE_AND_LIST = """
import subprocess
import sys
from fastrpc import Server
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

app = Server("t")

@app.tool
def say() -> str:
    return "x"

def loaded(*modules):
    return [module for module in modules if f"fastrpc.{module}" in sys.modules]

lines = []
wire = MemoryTransport(lines.append)
wire.connect(Connections(lambda: app.connect().connection))
client = b'"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}'
wire.send(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{%b}}' % client)
parts = loaded("engine.admission", "engine.list_pages", "engine.server_monitors", "definitions.option_types")
wire.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
wire.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}')
assert len(lines) == 2 and all(b'"result"' in line for line in lines), lines
print(parts, loaded("engine.monitor", "engine.list_pages"))
"""


def test_a_handshake_imports_no_part_that_only_lists_need_and_a_list_no_monitor() -> None:
    """A server that watches nothing does not import what watches."""
    command = [sys.executable, "-c", HANDSHAKE_AND_LIST]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert shown.stdout == "[] ['engine.list_pages']\n", shown.stderr


# --- notes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_a_note_follows_the_content_of_each_result_and_nothing_else_changes(version: str) -> None:
    app = various()

    async def conversation(client: Client) -> None:
        names = ["text", "table", "full", "fails", "nothing"]
        for arguments in ({}, {"odd": 1}):
            plain = [await call(client, name, arguments) for name in names]
            app.set_note(lambda: ["first", "ثانيا"])
            noted = [await call(client, name, arguments) for name in names]
            app.set_note(None)
            for before, after in zip(plain, noted, strict=True):
                assert texts(after) == [*texts(before), "first", "ثانيا"]
                assert {**after, "content": 0} == {**before, "content": 0}
            assert [await call(client, name, arguments) for name in names] == plain

    async def call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
        return await client.request("tools/call", {"name": name, "arguments": arguments})

    with_client(app, conversation, version=version)


def test_a_note_without_texts_leaves_a_result_as_it_is() -> None:
    app = various()
    app.set_note(list)
    asked = {"name": "text", "arguments": {}}
    assert texts(with_client(app, lambda client: client.request("tools/call", asked))) == ["سلام"]


def test_a_mounted_servers_note_follows_the_results_of_the_one_that_is_served() -> None:
    inner, outer = various(), Server("outer")
    outer.mount(inner, "in")

    async def conversation(client: Client) -> None:
        asked = {"name": "in_text", "arguments": {}}
        inner.set_note(lambda: ["note"])
        assert texts(await client.request("tools/call", asked)) == ["سلام", "note"]
        inner.set_note(None)
        assert texts(await client.request("tools/call", asked)) == ["سلام"]

    with_client(outer, conversation)


# --- logging, hooks, and what a call may know of its server ---------------------------------------------


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_message_of_no_call_goes_to_clients_that_have_asked_for_its_level(version: str) -> None:
    app = various()

    async def run() -> None:
        options: dict[str, Any] = {"version": version}
        async with (
            Client(app, **options, log_level="info") as low,
            Client(app, **options, log_level="error") as high,
            Client(app, **options) as silent,
        ):
            assert app.log("hello", logger="clock") == 1
            assert app.log("worse", "error") == 2
            for client in (low, high, silent):
                await client.ping()
            assert low.logs == [
                {"level": "info", "data": "hello", "logger": "clock"},
                {"level": "error", "data": "worse"},
            ]
            assert [log["data"] for log in high.logs] == ["worse"]
            assert silent.logs == []
            with pytest.raises(ValueError, match="loud"):
                app.log("x", "loud")

    asyncio.run(asyncio.wait_for(run(), 30))


def test_clients_of_2026_07_28_hear_only_of_their_calls() -> None:
    app = various()

    async def conversation(client: Client) -> None:
        await client.ping() if client.version != STATELESS else await client.tools()
        assert app.log("hello") == 0

    with_client(app, conversation, version=STATELESS)


def test_a_hook_that_is_removed_is_not_called_and_no_client_is_notified_of_a_new_list() -> None:
    app = various()
    seen: list[str] = []

    def look(call: CallInfo) -> None:
        seen.append(call.tool)

    async def conversation(client: Client) -> None:
        await client.call("text")
        app.before(look)
        await client.call("text")
        app.remove_hook(look)
        app.remove_hook(look)
        await client.call("text")
        await client.call("full")
        assert seen == ["text"]
        assert not [m for m in client.notifications if "list_changed" in m["method"]]

    with_client(app, conversation, version="2025-11-25")


def test_a_server_is_busy_while_a_call_waits() -> None:
    app = Server("t")
    told = []

    @app.tool
    async def wait(ctx: Context) -> str:
        await asyncio.sleep(0)
        told.append((ctx.server is app, app.busy))
        return "waited"

    async def conversation(client: Client) -> None:
        assert not app.busy
        await client.call("wait")
        assert not app.busy

    with_client(app, conversation)
    assert told == [(True, True)]
    assert Context().server is None


def test_a_mounted_tools_server_is_its_own() -> None:
    inner, outer = Server("inner"), Server("outer")

    @inner.tool
    def whose(ctx: Context) -> str:
        return str(ctx.server.name)

    outer.mount(inner)
    assert with_client(outer, lambda client: client.call("whose")).text == "inner"


def test_a_module_that_is_included_may_attach_itself() -> None:
    module = type(sys)("looking_after")
    exec(
        "from fastrpc import tool\n"
        "@tool\ndef one() -> int:\n    return 1\n"
        "def attach(server):\n    server.attached = [tool.name for tool in server.tools]\n",
        vars(module),
    )
    app = Server("t")
    app.include(module)
    assert app.attached == ["one"]
