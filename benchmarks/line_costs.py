"""What a line costs beside an ordinary one of its size: no line may cost more than five times as much.

    python benchmarks/line_costs.py                  # every shape in every place, of 16 MiB; half an hour
    python benchmarks/line_costs.py --above 4        # only what costs more than four times as much; faster
    python benchmarks/line_costs.py --only integers  # what has this in its name
    python benchmarks/line_costs.py --check          # exit code 1 where something is over the bar

The bar is for large lines. In one of a megabyte, arrays in arrays cost Python up to 15 times what ordinary
records do, and nothing but a bound on their number helps: a million are 0.1 s, more are refused.

The ordinary line is a call of a tool with an array of mixed records (texts, numbers, a nested list), which
the tool takes as Python objects: work that a server is there to do. The others put shapes that parsers find
hard into the places of a message, whole, broken at their last byte and with a byte at the end that is no
UTF-8. Each line goes through a server in this process, as it comes over stdio and as it comes over HTTP,
and its cost is processor time, so that other work on the machine counts little. Nothing is written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from fastrpc import Server
from fastrpc._core.stream import Stream

BAR = 5.0
MIB = 1024 * 1024
ROUNDS = 3  # of which the best counts

RECORD = {
    "id": 90210,
    "name": "A record like any",
    "price": 12.75,
    "active": True,
    "tags": ["one", "two"],
    "size": {"width": 640, "height": 480},
    "note": 'Line one\nline two, with an é and a "quotation"',
    "parent": None,
}

# --- values -----------------------------------------------------------------------------------------------


def repeated(element: bytes) -> Callable[[int], bytes]:
    """An array of the same element, again and again."""

    def fill(size: int) -> bytes:
        return b"[" + b",".join([element] * (size // (len(element) + 1))) + b"]"

    return fill


def filled(begin: bytes, unit: bytes, end: bytes) -> Callable[[int], bytes]:
    return lambda size: begin + unit * ((size - len(begin) - len(end)) // len(unit)) + end


def members(key: Callable[[int], bytes], value: bytes = b"1") -> Callable[[int], bytes]:
    """An object whose keys are made from their numbers."""

    def fill(size: int) -> bytes:
        count = size // (len(key(10_000_000)) + len(value) + 4)
        return b"{" + b",".join([b'"%b":%b' % (key(at), value) for at in range(count)]) + b"}"

    return fill


def colliding(at: int) -> bytes:
    """Keys that differ in their middle alone: one slot of a cache of names."""
    return b"aaaaaaaa%08dz" % at


ordinary = repeated(json.dumps(RECORD, ensure_ascii=False, separators=(",", ":")).encode())

SHAPES: dict[str, Callable[[int], bytes]] = {
    "one plain text": filled(b'"', b"abcdefgh", b'"'),
    "one text beyond ASCII": filled(b'"', "é中😀x".encode(), b'"'),
    "one text of escapes": filled(b'"', rb"\u00e9\n\ud83d\ude00", b'"'),
    "short texts": repeated(b'"a"'),
    "numbers of one digit": repeated(b"1"),
    "empty objects": repeated(b"{}"),
    "empty arrays": repeated(b"[]"),
    "arrays of one": repeated(b"[1]"),
    "objects of one": repeated(b'{"a":1}'),
    "deep nests": repeated(b"[" * 110 + b"]" * 110),
    "deep objects": repeated(b'{"a":' * 110 + b"1" + b"}" * 110),
    "nulls": repeated(b"null"),
    "reals": repeated(b"0.1"),
    "reals that are integers": repeated(b"1.0"),
    "integers, and a real at the end": lambda size: b"[" + b"1," * (size // 2 - 4) + b"1.0]",
    "texts of integers": repeated(b'"1"'),
    "texts of reals": repeated(b'"1e0"'),
    "long reals": repeated(b"0." + b"1234567890" * 40 + b"e-5"),
    "reals of 1e5 digits": repeated(b"1" * 100_000 + b".5e-99999"),
    "exponents": repeated(b"1e300"),
    "reals beyond a double": repeated(b"1e400"),
    "integers of 20 digits": repeated(b"9" * 20),
    "integers of 40 digits": repeated(b"9" * 40),
    "integers of 400 digits": repeated(b"9" * 400),
    "integers of 4,000 digits": repeated(b"9" * 4000),
    "integers of 4,301 digits": repeated(b"9" * 4301),
    "one integer of 1e5 digits": lambda size: b"[" + b"9" * 100_000 + b"," + ordinary(size - 100_010) + b"]",
    "one long integer": filled(b"", b"9", b""),
    "empty objects and one long integer": lambda size: b"[" + b"9" * 30 + b"," + repeated(b"{}")(size) + b"]",
    "keys of one letter": members(lambda at: b"k%d" % at),
    "one key again and again": members(lambda at: b"key"),
    "a guarded key again and again": members(lambda at: b"name"),
    "keys that collide": members(colliding),
    "long keys": members(lambda at: b"%d" % at + b"k" * 1000),
    "JSON in a text": lambda size: b'"[%b]"' % b",".join([rb"[\"a\"]"] * (size // 8)),
    "white space": filled(b"[", b" ", b"]"),
    "newlines between": filled(b"[1", b",\r1", b"]"),
    "ordinary": ordinary,
}

# --- messages ---------------------------------------------------------------------------------------------


def request(method: str, params: bytes, id: bytes = b"7") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (id, method.encode(), params)


def call(arguments: bytes, name: bytes = b'"take"') -> bytes:
    return request("tools/call", b'{"name":%b,"arguments":%b}' % (name, arguments))


PLACES: dict[str, Callable[[bytes], bytes]] = {
    "an argument": lambda value: call(b'{"value":%b}' % value),
    "an argument that no parameter takes": lambda value: call(b'{"other":%b}' % value),
    "an argument for a text": lambda value: call(b'{"text":%b}' % value, b'"write"'),
    "an argument for an array of integers": lambda value: call(b'{"values":%b}' % value, b'"sum"'),
    "an argument for an array of reals": lambda value: call(b'{"values":%b}' % value, b'"mean"'),
    "the arguments": call,
    "an argument of an unknown tool": lambda value: call(b'{"value":%b}' % value, b'"nothing"'),
    "the name of a tool": lambda value: call(b"{}", value),
    "params of an unknown method": lambda value: request("no/such", b'{"value":%b}' % value),
    "params": lambda value: request("tools/list", value),
    "_meta": lambda value: request("tools/list", b'{"_meta":{"value":%b}}' % value),
    "clientInfo": lambda value: request(
        "initialize", b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":%b}' % value
    ),
    "params of an unknown notification": lambda value: (
        b'{"jsonrpc":"2.0","method":"notifications/none","params":{"value":%b}}' % value
    ),
    "params of a cancellation": lambda value: (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % value
    ),
    "a result that nobody asked for": lambda value: b'{"jsonrpc":"2.0","id":99,"result":%b}' % value,
    "an unknown member": lambda value: b'{"jsonrpc":"2.0","id":7,"method":"ping","other":%b}' % value,
    "an envelope without a version": lambda value: b'{"id":7,"method":"ping","params":{"value":%b}}' % value,
    "the id": lambda value: request("ping", b"{}", value),
    "the method": lambda value: b'{"jsonrpc":"2.0","id":7,"method":%b}' % value,
    "no message": lambda value: value,
}

FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "whole": lambda line: line,
    "cut short": lambda line: line[:-1],
    "followed by rubbish": lambda line: line + b"]",
    "no UTF-8 at the end": lambda line: line[:-1] + b'"\xff"}',
    "too deep at the end": lambda line: line[:-1] + b',"deep":' + b"[" * 200 + b"]" * 200 + b"}",
    "no number at the end": lambda line: line[:-1] + b',"more":1e}',
    "half a pair at the end": lambda line: line[:-1] + rb',"more":"\ud800"}',
    "an integer too long at the end": lambda line: line[:-1] + b',"more":%b}' % (b"9" * 5000),
}


def lines(size: int, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, bytes]]:
    """Every line there is with a name that is wanted."""
    for shape, fill in SHAPES.items():
        names = {f"{shape}; {place}": (place, "whole") for place in PLACES}
        names |= {f"{shape}; an argument; {fault}": ("an argument", fault) for fault in FAULTS}
        chosen = [name for name in names if wanted(name) and not name.endswith("whole")]
        value = fill(size - 200) if chosen else b""
        for name in chosen:
            place, fault = names[name]
            yield name, FAULTS[fault](PLACES[place](value))


# --- the server -------------------------------------------------------------------------------------------


def make_server() -> Server:
    app = Server("line-costs")

    @app.tool(run="inline")
    def take(value: Any = None) -> str:
        return "taken"

    @app.tool(run="inline")
    def write(text: str = "") -> str:
        return "written"

    @app.tool(run="inline")
    def sum(values: list[int]) -> str:
        return "summed"

    @app.tool(run="inline")
    def mean(values: list[float]) -> str:
        return "a mean"

    return app


HANDSHAKE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26",'
    b'"capabilities":{},"clientInfo":{"name":"line-costs","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


class OverStdio:
    """A server's stream between two files, one conversation a line."""

    def __init__(self) -> None:
        self.app = make_server()

    def cost(self, line: bytes) -> float:
        """The seconds of processor time that a line takes, beside what the handshake takes."""
        return self._run(HANDSHAKE + line + b"\n") - self._run(HANDSHAKE)

    def _run(self, conversation: bytes) -> float:
        with tempfile.TemporaryFile() as requests, tempfile.TemporaryFile() as answers:
            requests.write(conversation)
            requests.flush()
            requests.seek(0)
            connection = self.app.connect().connection
            stream = Stream(connection, requests.fileno(), answers.fileno(), 64 * MIB)
            began = time.process_time()
            stream.run()
            ended = time.process_time()
            connection.dispatcher.close()
            return ended - began


class OverHttp:
    """A server's ASGI application, one request a line."""

    def __init__(self) -> None:
        self.app = make_server().asgi(auth=None, max_body=64 * MIB)

    def cost(self, line: bytes) -> float:
        return asyncio.run(self._post(line))

    async def _post(self, line: bytes) -> float:
        headers = [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", b"2025-03-26"),
            (b"content-length", b"%d" % len(line)),
        ]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        coming = [{"type": "http.request", "body": line, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if coming:
                return coming.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            pass

        began = time.process_time()
        await self.app(scope, receive, send)
        return time.process_time() - began


WAYS = {"stdio": OverStdio, "http": OverHttp}


def best_cost(way: Any, line: bytes, rounds: int = ROUNDS, enough: float = 0.0) -> float:
    """The least that a line has cost in some rounds; one that costs no more than `enough` needs no second."""
    best = float("inf")
    for _ in range(rounds):
        best = min(best, way.cost(line))
        if best <= enough:
            break
    return best


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare what lines cost with an ordinary one's cost.")
    parser.add_argument("--mib", type=float, default=16.0, help="the size of each line (default: 16)")
    parser.add_argument("--only", default="", help="lines with this in their name")
    parser.add_argument("--above", type=float, default=0.0, help="show what is above this ratio")
    parser.add_argument("--check", action="store_true", help=f"fail where a ratio is over {BAR:g}")
    options = parser.parse_args(arguments)
    size = int(options.mib * MIB)
    over = 0
    plain = PLACES["an argument"](ordinary(size - 200))
    for name, make in WAYS.items():
        way = make()
        right = best_cost(way, plain)
        print(f"{name}: an ordinary line of {options.mib:g} MiB takes {1000 * right:.0f} ms")
        for line_name, line in lines(size, lambda name: options.only in name):
            ratio = best_cost(way, line, enough=right * max(1.0, options.above)) / right
            ratio *= len(plain) / len(line)
            over += ratio > BAR
            if ratio >= options.above:
                print(f"{ratio:8.2f}  {name}: {line_name}", flush=True)
    print(f"{over} over {BAR:g}")
    return 1 if over and options.check else 0


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
