"""`sys.exit()` and KeyboardInterrupt in what users write are errors of the call, never the end of the server.

Over standard input and output and over HTTP, in real processes; a signal still ends the server.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest
from support.http_client import TOKEN, Serving
from support.stdio import STATELESS_META, Process, serve

SERVER = """
import argparse, asyncio, os, sys, threading
from contextlib import asynccontextmanager
from fastrpc import Context, Server

@asynccontextmanager
async def life(server):
    if os.environ.get("LIFE_EXITS") == "enter":
        sys.exit("no database")
    yield {}
    if os.environ.get("LIFE_EXITS") == "leave":
        sys.exit(3)

app = Server("exits", lifespan=life if os.environ.get("LIFE_EXITS") else None)

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool
def in_thread() -> str:
    sys.exit(2)

@app.tool(run="inline")
def inline() -> str:
    sys.exit(2)

@app.tool(run="inline")
def inline_with_context(context: Context) -> str:
    sys.exit(2)

@app.tool
async def exits() -> str:
    sys.exit(2)

@app.tool
async def parses(words: list[str]) -> str:
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--count", type=int)
    return str(parser.parse_args(words).count)

@app.tool
async def exits_late() -> str:
    await asyncio.sleep(0.01)
    sys.exit(2)

@app.tool
async def interrupts() -> str:
    raise KeyboardInterrupt

async def leave():
    await asyncio.sleep(0)
    sys.exit(2)

kept = []

@app.tool
async def awaits_a_task() -> str:
    await asyncio.create_task(leave())

@app.tool
async def gathers() -> str:
    await asyncio.gather(leave(), asyncio.sleep(0.01))

@app.tool
async def groups() -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())
        group.create_task(asyncio.sleep(30))

@app.tool
async def raises_a_group() -> str:
    raise BaseExceptionGroup("two", [SystemExit(2), KeyboardInterrupt()])

@app.tool
async def from_a_generator() -> str:
    async def lines():
        yield "one"
        sys.exit(2)
    return "".join([line async for line in lines()])

@app.tool
async def closes_a_generator() -> str:
    async def lines():
        try:
            yield "one"
        finally:
            sys.exit(2)
    found = lines()
    await found.__anext__()
    await found.aclose()

@app.tool
async def in_executor() -> str:
    await asyncio.get_running_loop().run_in_executor(None, sys.exit, 2)

@app.tool
async def behind(how: str) -> str:
    loop = asyncio.get_running_loop()
    if how == "task":
        kept.append(asyncio.create_task(leave()))
    elif how == "interrupted task":
        async def interrupt():
            raise KeyboardInterrupt
        kept.append(asyncio.create_task(interrupt()))
    elif how == "callback":
        loop.call_soon(sys.exit, 2)
    elif how == "timer":
        loop.call_later(0.001, sys.exit, 2)
    elif how == "thread":
        threading.Thread(target=lambda: loop.call_soon_threadsafe(sys.exit, 2)).start()
    elif how == "done":
        asyncio.ensure_future(asyncio.sleep(0)).add_done_callback(lambda _: sys.exit(2))
    elif how == "reader":
        ours, theirs = os.pipe()
        os.write(theirs, b".")
        def read():
            loop.remove_reader(ours)
            sys.exit(2)
        loop.add_reader(ours, read)
    elif how == "stop":
        loop.stop()
    await asyncio.sleep(0.02)
    return "still here"

@app.tool
async def reads(context: Context) -> str:
    found = await context.read_resource("exits://inside")
    return found[0].text

@app.tool
async def asks(context: Context) -> str:
    await context.elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    sys.exit(2)

@app.resource("exits://async")
async def resource() -> str:
    sys.exit(2)

@app.resource("exits://inside")
async def inside() -> str:
    sys.exit(2)

@app.resource("exits://template/{name}")
async def template(name: str) -> str:
    raise KeyboardInterrupt

@app.prompt
async def prompt(name: str = "") -> str:
    sys.exit(2)

@app.complete(prompt, "name")
async def names(value: str):
    sys.exit(2)

class Provider:
    scheme = "given"
    async def list(self):
        sys.exit(2)
    async def read(self, uri: str) -> str:
        sys.exit(2)

app.resources("given")(Provider())

class Unspeakable(Exception):
    def __str__(self):
        sys.exit(2)

@app.tool
async def unspeakable() -> str:
    raise Unspeakable

@app.tool(run="inline")
def unspeakable_inline() -> str:
    raise Unspeakable

"""

HOOKED = """
import sys
from fastrpc import Server

app = Server("hooked")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool
def threaded() -> str:
    sys.exit(2)

@app.tool
async def waits() -> str:
    sys.exit(2)

@app.tool
def before_exits() -> str:
    return "not reached"

@app.before(tools="before_exits")
async def before(call):
    sys.exit(2)

@app.tool
def mended() -> str:
    sys.exit(2)

@app.on_error(tools="mended")
async def mend(call, error):
    return f"mended {type(error).__name__}"

@app.before(tools="threaded")
async def look(call):
    pass

@app.tool
def error_exits() -> str:
    raise ValueError("first")

@app.on_error(tools="error_exits")
def exit_too(call, error):
    sys.exit(2)

@app.watch
def watch():
    sys.exit(2)
"""


def calls(process: Process, tool: str, **arguments: Any) -> str:
    """Call a tool, then another one that must be answered as ever; return the text of the first."""
    answers = {}
    for id, (name, given) in enumerate([("echo", {"text": "before"}), (tool, arguments)]):
        process.ask("tools/call", {"name": name, "arguments": given}, f"{tool}-{id}")
    for answer in process.answers(2):
        answers[answer["id"]] = answer["result"]
    assert process.call("echo", text="after")["content"][0]["text"] == "after"
    text: str = answers[f"{tool}-1"]["content"][0]["text"]
    return text


RAISING = [
    "in_thread",
    "inline",
    "inline_with_context",
    "exits",
    "exits_late",
    "awaits_a_task",
    "gathers",
    "from_a_generator",
    "closes_a_generator",
    "in_executor",
]
BEHIND = ["task", "interrupted task", "callback", "timer", "thread", "done", "reader", "stop"]
LOOPS = [{}, {"WITHOUT": "uvloop"}]
WITHOUT_UVLOOP = """
import os, sys
if os.environ.get("WITHOUT"):
    sys.modules["uvloop"] = None
"""


@pytest.fixture(params=LOOPS, ids=["uvloop", "asyncio"])
def process(request: pytest.FixtureRequest) -> Any:
    if not request.param:
        pytest.importorskip("uvloop")
    with serve(WITHOUT_UVLOOP + SERVER, environment=request.param) as process:
        process.initialize()
        yield process
        process.close_stdin()
        assert process.wait() == 0


def test_a_tool_that_exits_has_failed_and_the_server_goes_on(process: Process) -> None:
    for tool in RAISING:
        assert calls(process, tool) == "SystemExit: 2", tool
    assert calls(process, "interrupts") == "KeyboardInterrupt"
    assert "SystemExit: 2" in calls(process, "parses", words=["--count", "many"])
    assert calls(process, "parses", words=["--count", "3"]) == "3"
    for tool in ("unspeakable", "unspeakable_inline"):
        answer = process.request("tools/call", {"name": tool, "arguments": {}})
        assert answer["error"]["code"] == -32603, answer
    if sys.version_info >= (3, 11):
        assert calls(process, "groups") == "SystemExit: 2"
        assert calls(process, "raises_a_group").startswith("BaseExceptionGroup")


def test_what_a_tool_leaves_in_the_loop_cannot_end_it(process: Process) -> None:
    for how in BEHIND:
        assert calls(process, "behind", how=how) == "still here", how


def test_resources_prompts_completions_and_providers_that_exit_have_failed(process: Process) -> None:
    asked = [
        ("resources/read", {"uri": "exits://async"}),
        ("resources/read", {"uri": "exits://template/a"}),
        ("resources/read", {"uri": "given://a"}),
        ("prompts/get", {"name": "prompt"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "name", "value": "a"}},
        ),
    ]
    for method, params in asked:
        answer = process.request(method, params)
        assert answer["error"]["code"] == -32603, answer
    listed = process.request("resources/list")
    listed = process.request("resources/list", {"cursor": listed["result"]["nextCursor"]})
    assert listed["result"]["resources"] == [], listed
    assert calls(process, "reads") == "SystemExit: 2"


def test_a_tool_that_exits_after_an_answer_of_its_client_has_failed() -> None:
    with serve(SERVER) as process:
        process.initialize(elicitation={})
        process.ask("tools/call", {"name": "asks", "arguments": {}}, "asks")
        question = process.answer()
        assert question["method"] == "elicitation/create", question
        accepted = {"action": "accept", "content": {"name": "Ada"}}
        process.send_message({"jsonrpc": "2.0", "id": question["id"], "result": accepted})
        assert process.answer()["result"]["content"][0]["text"] == "SystemExit: 2"
        params = {"name": "asks", "arguments": {}, "_meta": {**STATELESS_META}}
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {"form": {}}}
        result = process.request("tools/call", params)["result"]
        (key,) = result["inputRequests"]
        answers = {"inputResponses": {key: accepted}, "requestState": result["requestState"]}
        result = process.request("tools/call", {**params, **answers})["result"]
        assert result["content"][0]["text"] == "SystemExit: 2"


def test_hooks_and_watching_functions_that_exit_have_failed() -> None:
    with serve(HOOKED) as process:
        process.initialize()
        assert len(process.request("tools/list")["result"]["tools"]) == 6
        for tool in ("threaded", "waits", "before_exits", "error_exits"):
            assert calls(process, tool) == "SystemExit: 2", tool
        assert calls(process, "mended") == "mended SystemExit"


def test_a_lifespan_that_exits_has_failed() -> None:
    with serve(SERVER, environment={"LIFE_EXITS": "enter"}) as process:
        process.initialize()
        for _ in range(2):
            result = process.call("exits")
            assert "its lifespan failed: SystemExit: no database" in result["content"][0]["text"]
        process.close_stdin()
        assert process.wait() == 0
    with serve(SERVER, environment={"LIFE_EXITS": "leave"}) as process:
        process.initialize()
        assert process.call("exits")["content"][0]["text"] == "SystemExit: 2"
        process.close_stdin()
        assert process.wait() == 0
        assert "the lifespan failed at its end" in process.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_still_ends_a_server_whose_tools_have_exited(process: Process, number: int) -> None:
    assert calls(process, "interrupts") == "KeyboardInterrupt"
    assert calls(process, "behind", how="interrupted task") == "still here"
    process.ask("tools/call", {"name": "groups", "arguments": {}})
    process.signal(number)
    assert process.wait() == 0


# --- over HTTP ----------------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2], ids=["one", "workers"])
def served(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    (tmp_path / "server.py").write_text(SERVER)
    options = ["--workers", str(request.param)] if request.param > 1 else []
    with Serving(
        "serve", "server.py", "--http", "127.0.0.1:0", *options, folder=tmp_path, FASTRPC_TOKEN=TOKEN
    ) as server:
        yield server
        assert server.stop() == 0
        assert "takes its place" not in server.stderr


def test_over_http_no_call_is_lost_because_another_one_exits(served: Serving) -> None:
    waiting = served.begin_call("behind", how="timer")
    for tool in RAISING:
        assert served.call(tool) == "SystemExit: 2", tool
    assert served.call("interrupts") == "KeyboardInterrupt"
    for how in BEHIND:
        assert served.call("behind", how=how) == "still here", how
    session = served.session()
    assert session.call("exits").text == "SystemExit: 2"
    answer = served.stateless_request("resources/read", {"uri": "exits://async"})
    assert answer.json["error"]["code"] == -32603
    assert b"still here" in waiting.getresponse().read()
    assert served.call("echo", text="after") == "after"
