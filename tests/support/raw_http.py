"""A server over HTTP with the tools of `TOOLS`, and raw sockets to speak to it byte by byte.

`Server` starts it (`http_server`); `Socket` sends whatever bytes it is given and reads answers as any client
would. Bounded in time.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from typing import Any

from support.http_server import HttpProcess, tool_server
from support.protocol import envelope
from support.waiting import SECONDS

TOKEN = "a-token-for-tests"

TOOLS = r'''
import asyncio, contextlib, contextvars, os, threading, time
from typing import Annotated
from msgspec import Meta
from fastrpc import Context, Server
from fastrpc.errors import InvalidParams, MethodNotFound, ToolError

calls = held = cancelled = 0
left_behind = contextvars.ContextVar("left_behind", default="nothing")

@contextlib.asynccontextmanager
async def life(server):
    print("entered", flush=True)
    yield
    print("left", flush=True)

app = Server("raw", lifespan=life if given["lifespan"] else None)

@app.tool(run="inline")
def echo(text: str, times: int = 1) -> str:
    return text * times

@app.tool(run="inline")
def add(a: int, b: int) -> int:
    return a + b

@app.tool(run="inline")
def count() -> str:
    """Count the calls of this tool."""
    global calls
    calls += 1
    return str(calls)

@app.tool
async def count_later() -> str:
    await asyncio.sleep(0.001)
    return count()

@app.tool
def count_wherever() -> str:
    """Count, first on a worker thread, and inline when it has proven to be quick."""
    return count()

@app.tool(run="inline")
def leave_behind(value: str) -> str:
    """Set a context variable, and say what it was."""
    found = left_behind.get()
    left_behind.set(value)
    return found

@app.tool(run="inline")
def marked(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})] = "none") -> str:
    return region

def refuse(call):
    raise ToolError("refused before the call")

@app.tool(run="inline")
def hook(on: bool) -> str:
    """Have calls of echo be refused, or not."""
    if on: app.before(refuse, tools="echo")
    else: app.remove_hook(refuse)
    return "on" if on else "off"

@app.tool(run="inline")
def fail(how: str) -> str:
    if how == "params": raise InvalidParams("not these")
    if how == "method": raise MethodNotFound("no such thing")
    if how == "exit": raise SystemExit(3)
    if how == "cancelled": raise asyncio.CancelledError
    if how == "words": raise type("Wordless", (Exception,), {"__str__": lambda self: 1 / 0})()
    raise ToolError(how)

@app.tool(run="inline")
def give(what: str) -> object:
    return {"none": None, "dict": {"a": [1, 2.5]}, "nan": float("nan"), "surrogate": "\ud800",
            "object": object(), "big": 2**70, "bytes": b"x", "unicode": "h\u00e4\u6f22",
            "many": "x" * 200_000}[what]

@app.tool(run="inline")
def hold(ms: int) -> str:
    """Hold the loop up."""
    global held
    time.sleep(ms / 1000)
    held += 1
    return "held"

@app.tool(run="inline")
def count_held() -> str:
    return str(held)

staying = []

@app.tool(run="thread")
def stay_on_thread() -> str:
    """Stay until `release` is called."""
    staying.append(threading.Event())
    staying[-1].wait()
    return "stayed"

@app.tool
async def stay() -> str:
    staying.append(asyncio.Event())
    await staying[-1].wait()
    return "stayed"

@app.tool(run="inline")
def count_staying() -> str:
    return str(len(staying))

@app.tool(run="inline")
def release() -> str:
    staying.pop().set()
    return "released"

@app.tool(run="thread")
def slow(ms: int) -> str:
    time.sleep(ms / 1000)
    return "slept"

@app.tool
async def wait(ms: int) -> str:
    global cancelled
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "waited"

@app.tool
async def wait_for_file(path: str) -> str:
    while not os.path.exists(path):
        await asyncio.sleep(0.002)
    return "waited"

@app.tool(run="inline")
def count_cancelled() -> str:
    return str(cancelled)

@app.tool
async def report(context: Context) -> str:
    context.progress(1, 2)
    return "reported"

@app.tool(run="inline")
def learn(name: str) -> str:
    """Add a tool of this name."""
    def learned() -> str:
        return name
    app.tool(learned, name=name)
    return "learned"

@app.tool(run="inline")
def forget(name: str) -> str:
    app.remove_tool(name)
    return "forgotten"

@app.tool(run="inline", name="odd-name")
def odd() -> str:
    return "odd"
'''


class Server(HttpProcess):
    """A server process, from `with` to its end. Without `hot` every request takes the regular path.

    `files` is how many it may open, `patch` sets names of modules (`tool_server`). At the end it must not
    have said that anything failed but a tool.
    """

    def __init__(
        self,
        *,
        hot: bool = True,
        max_body: int = 16 * 1024 * 1024,
        max_bodies: int = 256 * 1024 * 1024,
        token_file: str | None = None,
        lifespan: bool = False,
        files: int | None = None,
        drain_seconds: float = 1.0,
        patch: dict[str, Any] | None = None,
        **limits: float,
    ) -> None:
        options = {
            "max_body": max_body,
            "max_bodies": max_bodies,
            **({"token": TOKEN} if token_file is None else {"token_file": token_file}),
        }
        command = tool_server(
            TOOLS,
            hot=hot,
            drain_seconds=drain_seconds,
            limits=limits,
            patch=patch,
            options=options,
            lifespan=lifespan,
        )
        self._opened = contextlib.ExitStack()
        super().__init__(command=command, files=files)

    def __exit__(self, kind: object, *exception: object) -> None:
        self.close()
        if kind is None:
            for words in ("ASGI", "POST /", "looked at", "Fatal", "never retrieved"):
                assert words not in self.stderr, self.stderr

    def close(self) -> None:
        super().close()
        self._opened.close()

    def socket(self, source: str = "127.0.0.1") -> Socket:
        """Connect, from another loopback address if one is given (Linux has them all); until the server's end
        at most."""
        found = Socket(self.port, source)
        self._opened.callback(found.plain.close)
        return found

    def ask(self, *pieces: bytes) -> Answer:
        """Send one request on a connection of its own and return the answer."""
        with self.socket() as connection:
            connection.send(*pieces)
            return connection.answer()


class Answer:
    """One answer: `raw` is all of it but Date, whose value changes from second to second."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self.raw = re.sub(rb"(?im)^date: [^\r]*", b"date: now", head) + body
        line, *lines = head.rstrip(b"\r\n").split(b"\r\n")
        self.status = int(line.split(b" ")[1])
        self.headers = {
            name.lower().decode(): value.strip().decode()
            for name, _, value in (each.partition(b":") for each in lines)
        }
        assert len(self.headers) == len(lines), f"a header occurs twice: {lines}"
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        """That of the JSON-RPC error."""
        return self.json["error"]["code"]

    @property
    def text(self) -> str:
        """What a tool has returned."""
        found: str = self.json["result"]["content"][0]["text"]
        return found

    def __repr__(self) -> str:
        return f"<Answer {self.raw[:400]!r}>"


class Closed(Exception):
    """The server has closed the connection; `rest` is the result of an answer before that."""

    def __init__(self, rest: bytes = b"") -> None:
        super().__init__(rest)
        self.rest = rest


class Socket:
    """A connection."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.plain = socket.create_connection(("127.0.0.1", port), SECONDS, (source, 0))
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *exception: object) -> None:
        self.plain.close()

    def send(self, *pieces: bytes, pause: float = 0.005) -> None:
        """Send pieces as separate packets. A server that has hung up is no error."""
        try:
            for number, piece in enumerate(pieces):
                if number:
                    time.sleep(pause)
                self.plain.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def answer(self, method: str = "POST", *, seconds: float = SECONDS) -> Answer:
        """Read one answer; to HEAD it has no body. Raises Closed, and TimeoutError."""
        head = self._until(b"\r\n\r\n", seconds)
        if head.startswith(b"HTTP/1.1 100") or method == "HEAD":
            return Answer(head, b"")
        length = re.search(rb"(?im)^content-length: (\d+)", head)
        if length is not None:
            return Answer(head, self._exactly(int(length[1]), seconds))
        if b"chunked" not in head:
            return Answer(head, b"")
        body = b""
        while size := int(self._until(b"\r\n", seconds), 16):
            body += self._exactly(size + 2, seconds)[:-2]
        self._until(b"\r\n", seconds)
        return Answer(head, body)

    def has_more(self) -> bool:
        """Whether more has come, or the end, by now."""
        self.plain.setblocking(False)
        try:
            self.plain.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return bool(self._read)
        return True

    def stream(self, *, seconds: float = SECONDS) -> bytes:
        """Read until the server closes, and return all that came, dates masked. Raises TimeoutError."""
        try:
            while True:
                self._more(seconds)
        except Closed:
            return re.sub(rb"(?m)^date: [^\r]*", b"date: now", self._read)

    def is_closed(self, *, seconds: float = SECONDS) -> bool:
        """Whether the server closes the connection in that time, without a word."""
        try:
            self._more(seconds)
        except Closed:
            return True
        except TimeoutError:
            return False
        raise AssertionError(f"more came: {self._read[:200]!r}")

    def _more(self, seconds: float) -> None:
        self.plain.settimeout(seconds)
        try:
            data = self.plain.recv(65536)
        except ConnectionResetError:
            data = b""
        except TimeoutError:
            raise TimeoutError from None
        if not data:
            raise Closed(self._read)
        self._read += data

    def _until(self, mark: bytes, seconds: float) -> bytes:
        while mark not in self._read:
            self._more(seconds)
        found, _, self._read = self._read.partition(mark)
        return found + mark

    def _exactly(self, size: int, seconds: float) -> bytes:
        while len(self._read) < size:
            self._more(seconds)
        found, self._read = self._read[:size], self._read[size:]
        return found


# --- requests ---------------------------------------------------------------------------------------------

META = envelope(name="raw")


def call_body(name: str = "echo", arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> bytes:
    params = {"name": name, "arguments": arguments or {}, "_meta": {**META, **meta}}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def list_body(id: Any = 1, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {**params, "_meta": META}}
    return json.dumps(message, separators=(",", ":")).encode()


def headers(body: bytes, name: str | None = "echo", method: str = "tools/call") -> list[tuple[str, str]]:
    """The headers of a right request, in the order of a usual client."""
    found = [
        ("Host", "127.0.0.1:8000"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        ("Authorization", f"Bearer {TOKEN}"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ]
    if name is not None:
        found.append(("Mcp-Name", name))
    return [*found, ("Content-Length", str(len(body)))]


def head_of(pairs: list[tuple[str, str]], line: str = "POST /mcp HTTP/1.1") -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in pairs)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def call(name: str = "echo", arguments: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> bytes:
    """A whole request that calls a tool."""
    body = call_body(
        name, {"text": "hello"} if arguments is None and name == "echo" else arguments, id, **meta
    )
    return head_of(headers(body, name)) + body


def listing(id: Any = 1, **params: Any) -> bytes:
    body = list_body(id, **params)
    return head_of(headers(body, None, "tools/list")) + body
