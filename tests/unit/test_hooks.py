"""Hooks: what they see, change, refuse and mend; and that a tool without them pays nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from support.in_memory import with_client

from fastrpc import Context, DefinitionError, Server, ToolError, ToolResult
from fastrpc._core.call_info import CallInfo
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client, RemoteError

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def call_once(app: Server, tool: str, **arguments: Any) -> Any:
    """Call a tool with a fresh client and return its result."""
    return with_client(app, lambda client: client.call(tool, **arguments))


def greeter(**options: Any) -> Server:
    app = Server("t")

    @app.tool(**options)
    def greet(name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    return app


# --- before -------------------------------------------------------------------------------------------


def test_before_sees_the_tool_its_arguments_and_the_context() -> None:
    app = greeter()
    seen = []

    @app.before
    def look(call: CallInfo) -> None:
        seen.append((call.tool, dict(call.arguments), call.context.client_info["name"]))

    call_once(app, "greet", name="you")
    assert seen == [("greet", {"name": "you", "times": 1}, "fastrpc.testing")]


@pytest.mark.parametrize("run", ["auto", "inline", "thread"])
def test_before_changes_arguments_which_are_checked_afterwards(run: str) -> None:
    app = greeter(run=run)

    @app.before
    def more(call: CallInfo) -> None:
        call.arguments["times"] = "2"

    assert call_once(app, "greet", name="a").text == "hello ahello a"

    @app.before
    def wrong(call: CallInfo) -> None:
        call.arguments = {"name": 1.5, "times": []}

    result = call_once(app, "greet", name="a")
    assert result.is_error
    assert "times" in result.text


def test_before_refuses_by_raising_and_the_tool_does_not_run() -> None:
    app = Server("t")
    ran = []

    @app.tool
    def drop(table: str) -> str:
        ran.append(table)
        return "gone"

    @app.before
    def refuse(call: CallInfo) -> None:
        raise ToolError(f"{call.tool}: not today")

    result = call_once(app, "drop", table="users")
    assert result.is_error
    assert result.text == "drop: not today"
    assert ran == []


def test_hooks_run_in_the_order_in_which_they_were_registered() -> None:
    app = greeter()
    order: list[str] = []
    for name in ("first", "second"):
        app.before(lambda call, name=name: order.append(f"before {name}"))
        app.after(lambda call, result, name=name: order.append(f"after {name}"))
    call_once(app, "greet", name="a")
    assert order == ["before first", "before second", "after first", "after second"]


# --- after and on_error -------------------------------------------------------------------------------


def test_after_replaces_a_result_and_none_leaves_it() -> None:
    app = greeter()
    seen = []
    app.after(lambda call, result: seen.append(result))
    app.after(lambda call, result: result.upper())
    app.after(lambda call, result: ToolResult([result, "and more"], meta={"by": "hook"}))
    result = call_once(app, "greet", name="a")
    assert [block["text"] for block in result.content] == ["HELLO A", "and more"]
    assert seen == ["hello a"]


def test_an_error_becomes_a_result_another_error_or_stays() -> None:
    app = Server("t")

    @app.tool
    def fail(how: str) -> str:
        raise KeyError(how)

    @app.on_error
    def mend(call: CallInfo, error: Exception) -> Any:
        if call.arguments["how"] == "result":
            return "mended"
        if call.arguments["how"] == "returned":
            return ToolError("returned instead")
        if call.arguments["how"] == "raised":
            raise ToolError("raised instead")
        return None

    assert (call_once(app, "fail", how="result").text, call_once(app, "fail", how="result").is_error) == (
        "mended",
        False,
    )
    assert call_once(app, "fail", how="returned").text == "returned instead"
    assert call_once(app, "fail", how="raised").text == "raised instead"
    kept = call_once(app, "fail", how="kept")
    assert kept.is_error
    assert kept.text == "KeyError: 'kept'"


def test_on_error_is_called_for_bad_arguments_refusals_and_failing_hooks() -> None:
    app = greeter()
    heard: list[str] = []
    app.on_error(lambda call, error: heard.append(type(error).__name__))
    assert call_once(app, "greet").is_error

    @app.before(tools="greet")
    def refuse(call: CallInfo) -> None:
        raise ToolError("no")

    call_once(app, "greet", name="a")
    app._hooks.pop()
    app.after(lambda call, result: 1 / 0)
    result = call_once(app, "greet", name="a")
    assert result.is_error
    assert result.text.startswith("ZeroDivisionError")
    assert heard == ["ArgumentError", "ToolError", "ZeroDivisionError"]


# --- coroutines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_tool", ["sync", "async"])
def test_async_hooks_serve_sync_and_async_tools(of_tool: str) -> None:
    app = Server("t")
    threads = []

    def where(text: str) -> str:
        threads.append(threading.current_thread().name)
        if text == "bad":
            raise ValueError("bad")
        return text

    async def where_async(text: str) -> str:
        await asyncio.sleep(0)
        return where(text)

    app.tool(where if of_tool == "sync" else where_async, name="where")

    @app.before
    async def shout(call: CallInfo) -> None:
        await asyncio.sleep(0)
        call.arguments["text"] += "!" if call.arguments["text"] != "bad" else ""

    @app.after
    async def quote(call: CallInfo, result: str) -> str:
        await asyncio.sleep(0)
        return f"'{result}'"

    @app.on_error
    async def mend(call: CallInfo, error: Exception) -> str:
        await asyncio.sleep(0)
        return f"mended {error}"

    assert call_once(app, "where", text="a").text == "'a!'"
    assert call_once(app, "where", text="bad").text == "mended bad"
    on_loop = [name == "MainThread" for name in threads]
    assert on_loop == [of_tool == "async"] * 2


def test_a_cancelled_call_is_not_mended() -> None:
    app = Server("t")
    mended = []
    app.on_error(lambda call, error: mended.append(error))

    @app.tool
    async def sleep() -> str:
        await asyncio.sleep(30)
        return "done"

    async def run() -> None:
        async with Client(app) as client:
            id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {}})
            await asyncio.sleep(0.02)
            client.cancel(id)
            await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(run(), 30))
    assert mended == []


# --- patterns, plans ----------------------------------------------------------------------------------


def test_a_pattern_chooses_tools_and_the_others_keep_their_compiled_plan() -> None:
    app = Server("t")

    def tell(text: str = "") -> str:
        return text

    for name in ("db_read", "db_write", "ping"):
        app.add_tool(tell, name=name)
    app.before(lambda call: call.arguments.update(text="seen"), tools="db_*")
    assert [call_once(app, name).text for name in ("db_read", "db_write", "ping")] == ["seen", "seen", ""]
    plans = app.runtime.plans.tools
    assert plans["ping"].around is None
    assert plans["db_read"].around is not None


def test_a_server_without_hooks_imports_nothing_of_them() -> None:
    source = """
import sys, fastrpc
app = fastrpc.Server("t")
@app.tool
def echo(text: str) -> str:
    return text
app.runtime.plans.tools
late = ("engine.interceptors", "engine.lifespan", "mounting", "proxy")
print([name for name in late if "fastrpc." + name in sys.modules])
"""
    run = [sys.executable, "-c", source]
    found = subprocess.run(run, cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout.strip() == "[]"


def test_a_hook_that_is_added_late_holds_from_the_next_call_on() -> None:
    app = greeter(run="inline")

    async def run() -> list[str]:
        async with Client(app) as client:
            texts = [(await client.call("greet", name="a")).text]
            app.after(lambda call, result: "changed")
            texts.append((await client.call("greet", name="a")).text)
            return texts

    assert asyncio.run(asyncio.wait_for(run(), 30)) == ["hello a", "changed"]


def test_structured_results_and_schemas_are_those_of_the_tool() -> None:
    app = Server("t")

    @app.tool
    def count(text: str) -> dict[str, int]:
        return {"words": len(text.split())}

    app.before(lambda call: None)

    async def run() -> Any:
        async with Client(app) as client:
            entry = (await client.tools())[0]
            return entry, await client.call("count", text="two words")

    entry, result = asyncio.run(asyncio.wait_for(run(), 30))
    assert list(entry["inputSchema"]["properties"]) == ["text"]
    assert "outputSchema" in entry
    assert result.structured == {"words": 2}


def test_a_tool_that_takes_the_context_gets_the_same_as_its_hooks() -> None:
    app = Server("t")
    contexts = []

    @app.tool
    def look(context: Context) -> str:
        contexts.append(context)
        return "seen"

    app.before(lambda call: contexts.append(call.context))
    call_once(app, "look")
    assert contexts[0] is contexts[1] is not None


def test_protocol_errors_of_a_tool_pass_and_stateless_clients_are_served() -> None:
    app = greeter()
    app.after(lambda call, result: result + "!")

    async def run() -> Any:
        async with Client(app, version=STATELESS) as client:
            with pytest.raises(RemoteError):
                await client.call("nothing")
            return (await client.call("greet", name="a")).text

    assert asyncio.run(asyncio.wait_for(run(), 30)) == "hello a!"


@pytest.mark.parametrize(
    ("when", "function"),
    [
        ("before", lambda: None),
        ("after", lambda call: None),
        ("on_error", lambda a, b, c: None),
        ("before", 3),
    ],
)
def test_what_cannot_be_a_hook_is_refused_at_once(when: str, function: Any) -> None:
    with pytest.raises(DefinitionError, match=when):
        getattr(Server("t"), when)(function)
