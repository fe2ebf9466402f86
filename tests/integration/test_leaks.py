"""Nothing is left behind by a message: memory, objects, references and calls in flight stay level.

One real server process is sent mixed messages, 30 % of them wrong in every way known here; each answer
is checked. Between stretches the server counts itself (`CENSUS`). After a warm-up no count may grow with
the number of messages. The short run, in every `make test-all`, has 100,000 messages and takes seconds;
``FASTRPC_LEAK_MESSAGES=1000000`` makes it the long one. `FASTRPC_SEED` chooses the texts.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.stdio import SECONDS, STATELESS_META, Process, decode, encode, serve

pytestmark = pytest.mark.long

MESSAGES = int(os.environ.get("FASTRPC_LEAK_MESSAGES", "100000"))
SEED = int(os.environ.get("FASTRPC_SEED", "1"))
STRETCHES = 10  # the server is counted behind each
WARM_UP = 2  # of them, before the counting begins
BURST = 500  # messages sent at once

# What may come and go between two counts without anybody having leaked.
OBJECTS_OF_A_KIND = 30
BLOCKS = 200  # of Python's own allocator: any object, tracked by the collector or not
REFERENCES = 30
RESIDENT_KB = 1024

SERVER = """
import asyncio
import gc
import logging
import os
import sys
from collections import Counter

from fastrpc import Context, Server, ToolError

logging.basicConfig(stream=open(os.devnull, "w"))  # tracebacks are made as ever, and there are many

app = Server("leaks", threads=4)  # all of them are there before the counting begins


@app.tool(run="inline")
def echo(text: str) -> str:
    leak(text)
    return text


def leak(text: str) -> None:
    pass


@app.tool
def add(a: int, b: int = 1) -> int:
    return a + b


@app.tool(run="inline")
def payload(record: dict, note: str | None = None) -> dict:
    return record


@app.tool(run="thread")
def threaded(text: str, fail: bool = False) -> str:
    if fail:
        raise KeyError(text)
    return text


@app.tool
async def soon(context: Context, text: str, fail: bool = False) -> str:
    context.progress(1, 2, text)
    await asyncio.sleep(0)
    if fail:
        raise ToolError(text)
    return text


@app.tool
async def never() -> str:
    await asyncio.Event().wait()


@app.tool(timeout_seconds=0.001)
async def late() -> str:
    await asyncio.Event().wait()


@app.tool(run="inline")
def refuse(text: str) -> str:
    raise ToolError(text)


@app.tool(run="inline")
def fail(text: str) -> str:
    raise ValueError(text)


@app.tool(run="inline")
def odd(kind: int):
    return [object(), float("nan"), "\\ud800", len][kind % 4]


@app.tool(run="inline")
def census() -> dict:
    gc.collect()
    try:
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * 4
    except OSError:
        resident = 0
    runtime = app.runtime
    plans = runtime.plans.tools.values()
    shared = [None, True, False, -1, "", b"", (), echo, payload, odd, app, runtime, *plans]
    for dispatcher in runtime.dispatchers:
        shared += [dispatcher, dispatcher.connection, dispatcher.session, dispatcher.requests.in_flight]
    return {
        "objects": Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in map(type, gc.get_objects())),
        "blocks": sys.getallocatedblocks(),
        "references": [sys.getrefcount(found) for found in shared],
        "all_references": getattr(sys, "gettotalrefcount", int)(),
        "resident_kb": resident,
        "in_flight": [
            runtime.calls.count, *(len(dispatcher.requests.in_flight) for dispatcher in runtime.dispatchers)
        ],
    }
"""

PLANTED = """
import ctypes

ctypes.CDLL(None).malloc.restype = ctypes.c_void_p
kept = []


def leak(text: str) -> None:
    LEAK
"""

FINE, FAILED, SILENT = "fine", "failed", "silent"  # a result, one with isError, no answer at all
Verdict = str | int
Sample = tuple[bytes, Verdict]
"""One line or more without a newline at the end, and what is to happen to it; an int is an error's code."""


def request(method: str, id: object, **params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})[:-1]


def call(tool: str, id: object, meta: Any = None, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return request("tools/call", id, **params, **({} if meta is None else {"_meta": meta}))


def abandoned(id: object) -> bytes:
    """A call that would never end, its id used once more, and its cancellation: one answer, -32600."""
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
    return b"\n".join([call("never", id), call("echo", id, text="again"), encode(cancel)[:-1]])


Maker = Callable[[int, str], Sample]

GOOD: list[Maker] = [
    lambda id, text: (call("echo", id, text=text), FINE),
    lambda id, text: (call("echo", id, text=text), FINE),
    lambda id, text: (call("echo", id, text=text + '"\n\\é', unknown=[text]), FINE),
    lambda id, text: (call("echo", id, STATELESS_META, text=text), FINE),
    lambda id, text: (call("echo", id, {"progressToken": text}, text=text), FINE),
    lambda id, text: (call("echo", id, text=text * 400), FINE),
    lambda id, text: (call("add", id, a=id, b=len(text)), FINE),
    lambda id, text: (call("add", id, a=f"{id}"), FINE),
    lambda id, text: (call("add", id, a=10**30 + id), FINE),
    lambda id, text: (call("payload", id, record={text: [id, {"deep": [text, 1.5, None]}]}), FINE),
    lambda id, text: (call("threaded", id, text=text), FINE),
    lambda id, text: (call("soon", id, text=text), FINE),
    lambda id, text: (call("soon", id, {"progressToken": id}, text=text), FINE),
    lambda id, text: (request("tools/list", id), FINE),
    lambda id, text: (request("tools/list", id, _meta=STATELESS_META), FINE),
    lambda id, text: (request("server/discover", id, _meta=STATELESS_META), FINE),
    lambda id, text: (request("ping", id), FINE),
    lambda id, text: (encode({"jsonrpc": "2.0", "method": f"notifications/{text}"})[:-1], SILENT),
    lambda id, text: (encode({"jsonrpc": "2.0", "id": id, "result": {text: text}})[:-1], SILENT),
]

WRONG: list[Maker] = [
    lambda id, text: (call("echo", id, text=text)[:-3], -32700),
    lambda id, text: (call("echo", id, text=text).replace(b'"text":', b'"te\xff":'), -32700),
    lambda id, text: (call("echo", id, text=text)[:-1] + b',"n":1e999}', -32700),
    lambda id, text: (b"[" * 200 + text.encode() + b"]" * 200, -32700),
    lambda id, text: (b"[%d]" % id, -32600),
    lambda id, text: (b"%d" % id, -32600),
    lambda id, text: (call("echo", [id], text=text), -32600),
    lambda id, text: (call("echo", id, text=text)[:-1] + b',"id":1}', -32600),
    lambda id, text: (call("echo", id, text=text).replace(b'"2.0"', b'"1.0"'), -32600),
    lambda id, text: (abandoned(id), -32600),
    lambda id, text: (request(text, id), -32601),
    lambda id, text: (request("tools/list", id, cursor=text), -32602),
    lambda id, text: (call(f"ech{text}", id, text=text), -32602),
    lambda id, text: (request("tools/call", id, name="echo", arguments=[text]), -32602),
    lambda id, text: (request("tools/call", id, arguments={}), -32602),
    lambda id, text: (call("echo", id, text=id), FAILED),
    lambda id, text: (call("echo", id, texte=text), FAILED),
    lambda id, text: (call("add", id, a=text), FAILED),
    lambda id, text: (call("refuse", id, text=text), FAILED),
    lambda id, text: (call("fail", id, text=text), FAILED),
    lambda id, text: (call("threaded", id, text=text, fail=True), FAILED),
    lambda id, text: (call("soon", id, text=text, fail=True), FAILED),
    lambda id, text: (call("late", id), FAILED),
    lambda id, text: (call("odd", id, kind=id), FAILED),
]


def samples(chance: random.Random, first_id: int, count: int) -> dict[int, Sample]:
    """Messages by their ids, with separate texts; 30 % of them are wrong."""
    made = {}
    for id in range(first_id, first_id + count):
        makers = WRONG if chance.random() < 0.3 else GOOD
        text = f"t{chance.getrandbits(chance.randint(8, 160)):x}"
        made[id] = chance.choice(makers)(id, text)
    return made


def exchange(server: Process, messages: dict[int, Sample]) -> None:
    """Send messages and see that each has what it must have."""
    expected = Counter(verdict for _, verdict in messages.values() if verdict != SILENT)
    server.send(b"\n".join(line for line, _ in messages.values()) + b"\n")
    got: Counter[Verdict] = Counter()
    while got.total() < expected.total():
        answer = decode(server.line())
        if "method" in answer:
            continue  # progress
        if "error" in answer:
            verdict = answer["error"]["code"]
        else:
            verdict = FAILED if answer["result"].get("isError") else FINE
        got[verdict] += 1
        if answer["id"] is not None:
            line, due = messages[answer["id"]]
            assert verdict == due, f"{line!r} was answered {answer}"
    assert got == expected


def census(server: Process) -> dict[str, Any]:
    """Have the server count itself. What was cancelled takes a turn of its loop, and a pause, to be gone."""
    deadline = time.monotonic() + SECONDS
    while True:
        counts: dict[str, Any] = server.call("census")["structuredContent"]
        if not any(counts["in_flight"]) or time.monotonic() > deadline:
            return counts
        time.sleep(0.01)


def growth(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    """What has grown by more than may be, from one census to a later one."""
    grown = {}
    for kind, count in after["objects"].items():
        more = count - before["objects"].get(kind, 0)
        if more > OBJECTS_OF_A_KIND:
            grown[f"objects of {kind}"] = more
    pairs = list(zip(before["references"], after["references"], strict=True))
    bounds = [
        ("blocks", after["blocks"] - before["blocks"], BLOCKS),
        ("references to a shared object", max(b - a for a, b in pairs), REFERENCES),
        ("references", after["all_references"] - before["all_references"], BLOCKS * 4),
        ("resident_kb", after["resident_kb"] - before["resident_kb"], RESIDENT_KB),
    ]
    return grown | {name: more for name, more, bound in bounds if more > bound}


def counted(server: Process, messages: int) -> list[dict[str, Any]]:
    """Let a server serve so many messages; return its censuses, those of the warm-up left out."""
    chance = random.Random(SEED)
    server.initialize()
    found = []
    sent = 0
    for stretch in range(STRETCHES):
        while sent < messages * (stretch + 1) // STRETCHES:
            exchange(server, samples(chance, sent + 1000, BURST))
            sent += BURST
        found.append(census(server))
    return found[WARM_UP:]


@pytest.mark.timeout(120 + MESSAGES // 2000)
def test_nothing_grows_with_the_number_of_messages() -> None:
    with serve(SERVER) as server:
        found = counted(server, MESSAGES)
        server.close_stdin()
        assert server.wait() == 0
    for counts in found:
        print({name: value for name, value in counts.items() if name != "objects"})
    assert [counts["in_flight"] for counts in found] == [[0, 0]] * len(found)  # of one connection
    assert growth(found[0], found[-1]) == {}


@pytest.mark.parametrize(
    ("leak", "seen_as"),
    [
        ("kept.append([text])", "objects of builtins.list"),
        ("kept.append(text)", "blocks"),
        ("ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))", "blocks"),
        ("ctypes.pythonapi.Py_IncRef(ctypes.py_object(app))", "references to a shared object"),
        pytest.param(
            "ctypes.CDLL(None).malloc(2000)",
            "resident_kb",
            marks=pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc"),
        ),
    ],
)
def test_a_planted_leak_is_seen(leak: str, seen_as: str) -> None:
    with serve(SERVER + PLANTED.replace("LEAK", leak)) as server:
        found = counted(server, 10_000)
    assert seen_as in growth(found[0], found[-1])
