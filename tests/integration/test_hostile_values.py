"""Exceptions and results whose own methods raise: each call is answered, so is what comes behind it, and
the log stays readable.

One table of values, for each way in which a function is run.
"""

from __future__ import annotations

import pytest
from support.protocol import SESSION_VERSIONS
from support.stdio import encode, serve

SERVER = """
import asyncio
from typing import Any
from fastrpc import ProtocolError, Server, ToolError

def raising(error):
    def method(self, *values):
        raise error
    return method

class Foreign(BaseException):
    pass

class NoMessage(ProtocolError):
    def __init__(self):
        pass

def recursion():
    return recursion()

def made(name, base, **methods):
    return type(name, (base,), methods)

class Awaited:  # is awaited, and is no future
    def __init__(self, **members):
        self.__dict__.update(members)
    def __await__(self):
        yield type("Yielded", (), self.__dict__)()

EXCEPTIONS = {
    "a plain one": ValueError("v"),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "SystemExit": SystemExit(3),
    "CancelledError": asyncio.CancelledError(),
    "GeneratorExit": GeneratorExit(),
    "StopIteration": StopIteration(),
    "MemoryError": MemoryError(),
    "a BaseException": Foreign(),
    "str raises": made("E", Exception, __str__=raising(ValueError()))(),
    "str exits": made("E", Exception, __str__=raising(SystemExit(3)))(),
    "str interrupts": made("E", ToolError, __str__=raising(KeyboardInterrupt()))(),
    "str is none": made("E", Exception, __str__=lambda self: 5)(),
    "str is half a pair": made("E", Exception, __str__=lambda self: "\\ud800")(),
    "class raises": made("E", Exception, __class__=property(raising(ValueError())))(),
    "traceback raises": made("E", Exception, __traceback__=property(raising(ValueError())))(),
    "traceback exits": made("E", Exception, __traceback__=property(raising(SystemExit(3))))(),
    "notes raise": made("E", Exception, __notes__=property(raising(ValueError())))(),
    "notes interrupt": made("E", Exception, __notes__=property(raising(KeyboardInterrupt())))(),
    "no message": NoMessage(),
    "message raises": made("E", NoMessage, message=property(raising(ValueError())))(),
    "code is none": made("E", ProtocolError, code="x")("m"),
    "message is none": ProtocolError(5),
    "data is not JSON": ProtocolError("m", {"x": object()}),
}
RESULTS = {
    "a list whose iterator raises": made("L", list, __iter__=raising(ValueError()))([1]),
    "a list whose length exits": made("L", list, __len__=raising(SystemExit(3)))([1]),
    "a dict whose items raise": made("D", dict, items=raising(Foreign()))(a=1),
    "a str that raises": made("S", str, __str__=raising(Foreign()))("x"),
    "an int that raises": made("I", int, __pos__=raising(Foreign()), __repr__=raising(Foreign()))(4),
    "a model that exits": made("M", object, model_dump=raising(SystemExit(3)))(),
    "any attribute exits": made("A", object, __getattribute__=raising(SystemExit(3)))(),
    "half a pair": "\\ud800",
    "no number": float("nan"),
    "an exception": ValueError("v"),
}
AWAITED = {
    "no future": Awaited(__repr__=raising(ValueError())),
    "a broken future": Awaited(_asyncio_future_blocking=True, get_loop=raising(ValueError())),
    "a future that cannot call back": Awaited(
        _asyncio_future_blocking=True, get_loop=lambda self: asyncio.get_running_loop(),
        add_done_callback=lambda self, function, context: [][0],
    ),
}

def outcome(kind: str) -> Any:
    if kind == "RecursionError":
        return recursion()
    if kind in EXCEPTIONS:
        raise EXCEPTIONS[kind]
    return RESULTS[kind]

app = Server("hostile")

@app.tool(run="inline")
def inline(kind: str) -> Any:
    return outcome(kind)

@app.tool(run="thread")
def thread(kind: str) -> Any:
    return outcome(kind)

@app.tool
async def at_once(kind: str) -> Any:
    return outcome(kind)

@app.tool
async def suspended(kind: str) -> Any:
    await asyncio.sleep(0)
    if kind in AWAITED:
        await AWAITED[kind]
    return outcome(kind)

@app.resource("plain://{kind}")
def resource(kind: str) -> Any:
    return outcome(kind)

@app.resource("suspended://{kind}")
async def suspended_resource(kind: str) -> Any:
    await asyncio.sleep(0)
    return outcome(kind)

@app.prompt
async def prompt(kind: str) -> Any:
    await asyncio.sleep(0)
    return outcome(kind)

@app.tool(run="inline")
def kinds() -> list[list[str]]:
    return [["RecursionError", *EXCEPTIONS], list(RESULTS), list(AWAITED)]
"""

MOST_LINES = 60
"""In the log, for one exception: its traceback, and that of what it raises itself."""


@pytest.mark.parametrize(
    "way", ["inline", "thread", "at_once", "suspended", "plain://", "suspended://", "prompt"]
)
def test_a_value_whose_methods_raise_costs_its_own_call_alone(way: str) -> None:
    with serve(SERVER) as server:
        server.initialize(SESSION_VERSIONS[-1])
        exceptions, results, awaited = server.call("kinds")["structuredContent"]["result"]
        kinds = exceptions + results + (awaited if way == "suspended" else [])
        for kind in kinds:
            if way.endswith("://"):
                method, params = "resources/read", {"uri": way + kind.replace(" ", "%20")}
            elif way == "prompt":
                method, params = "prompts/get", {"name": way, "arguments": {"kind": kind}}
            else:
                method, params = "tools/call", {"name": way, "arguments": {"kind": kind}}
            asked = {"jsonrpc": "2.0", "id": kind, "method": method, "params": params}
            server.send(encode(asked) + encode({"jsonrpc": "2.0", "id": "behind", "method": "ping"}))
            answers = {answer["id"]: answer for answer in server.answers(2)}
            assert answers.keys() == {kind, "behind"}
            assert answers["behind"]["result"] == {}
            if kind in exceptions:
                assert "error" in answers[kind] or answers[kind]["result"]["isError"] is True, answers[kind]
        server.close_stdin()
        assert server.wait() == 0  # nothing is in flight any more
        log = server.stderr
        assert "--- Logging error ---" not in log
        assert len(log.splitlines()) <= MOST_LINES * len(kinds)
