"""What the tests of the wire share: the server they talk to, and a conversation in a given version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from support import twin
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import STATELESS_META, Process, decode, encode, serve

VERSIONS = (*SESSION_VERSIONS, STATELESS)
USUAL = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[\d.eE+-]+|null),"(?:result|error)":')
"""How an answer of fastrpc's begins."""

SERVER = '''
"""Echoes what it is handed, and waits: for some time, or to be let go."""
import asyncio
from typing import Any

from fastrpc import Server

app = Server("wire", version="1.0")


@app.tool(effect="read", run="inline")
def echo(value: Any) -> Any:
    """Return the value in an object."""
    return {"value": value}


@app.tool(effect="read")
async def wait(seconds: float) -> str:
    """Wait, then say so."""
    await asyncio.sleep(seconds)
    return "waited"


gate = asyncio.Event()


@app.tool(effect="read")
async def hold() -> str:
    """Wait until `let_go` is called."""
    await gate.wait()
    return "held"


@app.tool(effect="read")
async def let_go() -> str:
    """Let all calls of `hold` go."""
    gate.set()
    gate.clear()  # those that wait are awake
    return "gone"
'''


class Conversation:
    """A session in one version. In 2026-07-28 there is no handshake: requests carry their envelope."""

    def __init__(self, server: Process, version: str) -> None:
        self.server = server
        self.version = version
        self.count = 0

    def request(self, request_id: Any, method: str, params: dict[str, Any] | None = None) -> bytes:
        """Return a request as a line that is right in this version."""
        params = dict(params or {})
        if self.version == STATELESS:
            params["_meta"] = STATELESS_META
        return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def exchange(self, line: bytes, answered: bool = True) -> bytes | None:
        """Send a line and behind it a request; return the answer to the line once both are answered."""
        others = self.settle(line.rstrip(b"\n") + b"\n", at_least=int(answered))
        assert len(others) == answered, f"{line[:200]!r} got {[answer[:500] for answer in others]}"
        return others[0] if others else None

    def settle(self, data: bytes = b"", at_least: int = 0) -> list[bytes]:
        """Send `data` and a request, wait for its answer, and return everything else that came."""
        self.count += 1
        probe = b'"probe %d"' % self.count
        self.server.send(data + self.request(f"probe {self.count}", "tools/list"))
        others: list[bytes] = []
        pending = True
        while pending or len(others) < at_least:
            answer = self.server.line()
            if answer.startswith(b"[") or id_text(answer) != probe:
                others.append(answer)
            else:
                pending = False
        return others

    def error(self, line: bytes) -> tuple[int, bytes]:
        """Send a line that is answered with an error; return its code and the exact text of its id."""
        answer = self.exchange(line)
        assert answer is not None
        return error_of(answer)


def error_of(answer: bytes) -> tuple[int, bytes]:
    """Return the code of an error and its id as text, ``null`` included."""
    message = decode(answer)
    assert message["jsonrpc"] == "2.0", message
    assert set(message) == {"jsonrpc", "id", "error"}, message
    assert isinstance(message["error"]["message"], str), message
    assert message["error"]["message"], message
    return message["error"]["code"], id_text(answer)


def id_text(answer: bytes) -> bytes:
    """Return the exact text of an answer's id."""
    if beginning := USUAL.match(answer):  # the twin takes seconds for some megabytes
        return beginning[1]
    members: tuple[twin.Member, ...] = twin.Parser(answer).document().members
    return next(member.text for member in members if member.key == "id")


def echo_line(value: bytes, request_id: bytes = b'"echo"') -> bytes:
    """Return a call of `echo` with a value that is already JSON, or not."""
    params = b'{"name":"echo","arguments":{"value":' + value + b"}}"
    return b'{"jsonrpc":"2.0","id":' + request_id + b',"method":"tools/call","params":' + params + b"}"


def echoed(answer: bytes) -> Any:
    """Return what `echo` was handed, as it says."""
    result = decode(answer)["result"]
    assert not result.get("isError"), result
    return decode(result["content"][0]["text"].encode())["value"]


@contextlib.contextmanager
def talk(version: str = SESSION_VERSIONS[-1]) -> Iterator[Conversation]:
    """Start the server and, in the versions that have one, do the handshake."""
    with serve(SERVER) as server:
        if version != STATELESS:
            server.initialize(version)
        yield Conversation(server, version)
