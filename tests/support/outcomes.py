"""A server whose handlers end in every way that a call can end, and writes down what it records of them.

`SOURCE` is the program: ``python -c SOURCE '{"http": "127.0.0.1:0", …}'`` serves over HTTP, without ``http``
over standard input and output. Each of `WAYS` is a tool, and runs in another way; ``docs://{how}`` is a
resource and ``prompt`` a prompt that do the same. `EXPECTED` says what each argument comes to. Records of
calls are appended to the file ``records``, a JSON object a line. They, and the lines of the access log, are
written ``pause_seconds`` after the call.
"""

from __future__ import annotations

import json
import sys
from typing import Any

WAYS = ("inline", "context", "hooked", "coroutine", "waiting", "thread")

EXPECTED = {
    "ok": "ok",
    "refuses": "tool_error",
    "fails": "tool_error",
    "says-so": "tool_error",
    "unencodable": "encoding_error",
    "protocol": "protocol_error",
    "forbidden": "refused",
}
"""The outcomes of a tool, by what it is asked to do."""

BESIDE_TOOLS = {key: value for key, value in EXPECTED.items() if key != "says-so"}
"""Those of a resource or a prompt, which have no result that says so."""

SOURCE = r"""
import asyncio, json, sys, threading
from fastrpc import Context, Server, ToolError, ToolResult
from fastrpc.errors import InternalError
from fastrpc.telemetry import drain_thread

given = json.loads(sys.argv[1])
drain_thread.PAUSE_SECONDS = given.pop("pause_seconds", drain_thread.PAUSE_SECONDS)
app = Server("outcomes", max_in_flight=given.pop("max_in_flight", 64))
released = threading.Event()
waits = []


def behave(how):
    if how == "refuses": raise ToolError("no")
    if how == "fails": raise ValueError("broken")
    if how == "says-so": return ToolResult("no", is_error=True)
    if how == "unencodable": return object()
    if how == "protocol": raise InternalError("not today")
    return how


async def held():
    print("begun", file=sys.stderr, flush=True)
    waits.append(asyncio.Event())
    await waits[-1].wait()


@app.tool(run="inline")
def inline(how: str, times: int = 1): return behave(how)

@app.tool(run="inline")
def context(how: str, ctx: Context, times: int = 1): return behave(how)

@app.tool(run="inline")
def hooked(how: str, times: int = 1): return behave(how)

app.before(lambda call: None, tools="hooked")

@app.tool
async def coroutine(how: str, times: int = 1): return behave(how)

@app.tool(timeout_seconds=60)
async def waiting(how: str, times: int = 1):
    await asyncio.sleep(0)
    return behave(how)

@app.tool(timeout_seconds=0.2)
async def waiting_too_long(how: str):
    await asyncio.sleep(30)
    return how

@app.tool
async def told(how: str, ctx: Context):
    "Says something before its answer: a stream of events over HTTP."
    ctx.info("begun")
    await asyncio.sleep(0)
    return behave(how)

@app.tool(run="thread", timeout_seconds=60)
def thread(how: str, times: int = 1):
    return behave(how)

@app.tool(run="thread", timeout_seconds=0.2)
def thread_too_long(how: str):
    released.wait(30)
    return how

@app.tool
async def hold(how: str):
    await held()
    return how

@app.tool
async def hold_context(how: str, ctx: Context):
    await held()
    ctx.progress
    return how

@app.tool(run="thread")
def hold_thread(how: str):
    waited_for = released  # the next `release` sets this one, however late the wait for it begins
    print("begun", file=sys.stderr, flush=True)
    waited_for.wait(30)
    return how

@app.tool(run="inline")
def release():
    global released
    released.set()
    released = threading.Event()
    while waits: waits.pop().set()
    return "released"

@app.resource("docs://{how}")
def document(how: str): return behave(how)

@app.prompt
def prompt(how: str): return behave(how)


@app.guard
def decide(call):
    if call.arguments.get("how") == "forbidden":
        raise ToolError("you may not")
    if call.arguments.get("how") == "who":
        raise ToolError(f"you are {call.principal}")


if given.get("records"):
    records = open(given.pop("records"), "a")

    @app.observe
    def write(found):
        for record in found:
            print(json.dumps({"kind": record.kind, "name": record.name, "id": record.id.decode(),
                              "caller": record.principal, "outcome": record.outcome, "size": record.size}),
                  file=records, flush=True)

if given.get("token_of"):
    names = given.pop("token_of")
    given["token"] = names.get
app.run(**given)
"""


def command(**options: Any) -> tuple[str, ...]:
    """Return the command of the server; `options` are those of `Server.run`, with ``records``,
    ``max_in_flight``, ``pause_seconds`` and ``token_of``: callers by their tokens."""
    return (sys.executable, "-c", SOURCE, json.dumps(options))


def lines_of(path: Any) -> list[Any]:
    """Return the JSON objects of a file that has one in each line; what is being written is left out."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Lines:
    """The JSON objects of a file to which lines are appended. Each is read once: thousands are waited for."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self._read_bytes = 0
        self._lines: list[Any] = []

    def now(self) -> list[Any]:
        """Return what is there so far."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read_bytes)
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            return []
        if whole:
            self._read_bytes += len(whole) + 1
            self._lines += map(json.loads, whole.splitlines())
        return self._lines
