"""The stand-in engine over HTTP, in the test's own loop: JSON-RPC 2.0 at /rpc, byte by byte as scripted.

    async with HttpEngine() as engine:       # engine.url
        engine.on("tachyon_compile", loses(), waits())
        ...
        assert engine.methods() == ["tachyon_compile"]

A failure of the engine's own is status 200; a missing or wrong token is 401, an envelope and no JSON-RPC. A
verb is answered while another one still runs. The id of the answer is that of the request. Each request is
kept as it came, with the connection that it came on, and when it began and ended, by one count of all of
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from itertools import count, pairwise
from typing import Any

from support.standin_engine import NO_NODE, SECONDS, Engine, Play, misread

ANY = "*"
"""In the place of a method: each request, whatever it is."""
REASONS = {200: "OK", 401: "Unauthorized"}

# --- what can be played over HTTP alone -------------------------------------------------------------------


def status(number: int, body: str = "", kind: str = "text/plain", **headers: str) -> Play:
    """An answer of another status; ``_`` in a header's name is ``-``."""
    return {"play": "status", "number": number, "body": body.encode(), "kind": kind, "headers": headers}


def sends(body: bytes, kind: str = "application/json") -> Play:
    """Status 200 with this body, in which ``$ID`` is the request's id."""
    return {"play": "sends", "body": body, "kind": kind}


def raw(data: bytes) -> Play:
    """These bytes and the end of the connection."""
    return {"play": "raw", "data": data}


def endless() -> Play:
    """A body in chunks that goes on until the client has enough."""
    return {"play": "endless"}


def hangs_up() -> Play:
    """The usual answer, and the end of the connection, which was not announced."""
    return {"play": "hangs_up"}


class Asked:
    """A request that has come. `body` and `headers` are as it came, `connection` is a number."""

    def __init__(self, connection: int, headers: dict[str, str], path: str, body: bytes, began: int) -> None:
        self.connection = connection
        self.headers = headers
        self.path = path
        self.body = body
        self.began = began
        self.ended: int | None = None
        self.gone = asyncio.Event()
        """The client has closed the connection before the answer."""
        try:
            self.message = json.loads(body)
        except ValueError:
            self.message = {}

    @property
    def method(self) -> str:
        return str(self.message.get("method"))

    @property
    def params(self) -> dict[str, Any]:
        found: dict[str, Any] = self.message["params"]
        return found


def overlap(requests: list[Asked]) -> bool:
    """Whether one of them began before another had ended."""
    in_order = sorted(requests, key=lambda asked: asked.began)
    return any(one.ended is None or one.ended > other.began for one, other in pairwise(in_order))


class HttpEngine:
    """A stand-in at a URL of this machine. With a `token` it answers no one who does not show it."""

    def __init__(self, *, token: str = "", port: int = 0, rpc_url: str = NO_NODE) -> None:
        self.engine = Engine(rpc_url=rpc_url)
        self.token = token
        self.requests: list[Asked] = []
        self._port = port
        self._script: dict[str, list[Play]] = {}
        self._always: dict[str, Play] = {}
        self._released = asyncio.Event()
        self._clock = count()
        self._connections = count()
        self._open: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def on(self, method: str, *plays: Play) -> None:
        """Play these for the next requests of a method, one for each."""
        self._script.setdefault(method, []).extend(plays)

    def always(self, method: str, play: Play | None) -> None:
        """Play this for all further requests of a method; None: answer them."""
        self._always.pop(method, None)
        if play is not None:
            self._always[method] = play

    def release(self) -> None:
        """Have those that wait now, and later, go on."""
        self._released.set()

    def forget(self) -> None:
        """Forget what was asked and what is to be played; what was compiled and deployed stays."""
        self.requests.clear()
        self._script.clear()
        self._always.clear()
        self._released.clear()

    def asked(self, method: str) -> list[Asked]:
        """The requests of a method."""
        return [each for each in self.requests if each.method == method]

    def methods(self) -> list[str]:
        """What was asked, in order."""
        return [each.method for each in self.requests]

    async def __aenter__(self) -> HttpEngine:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: Any) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open.values():
            writer.transport.abort()
        if self._open:
            await asyncio.wait(self._open, timeout=SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        connection = Connection(next(self._connections), reader, writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer_one(connection):
                    pass
        finally:
            writer.close()
            del self._open[task]

    async def _answer_one(self, connection: Connection) -> bool:
        """Answer one request. Return whether another may follow on its connection."""
        path, headers, body = await connection.request()
        asked = Asked(connection.number, headers, path, body, next(self._clock))
        self.requests.append(asked)
        try:
            return await self._perform(self._next_play(asked.method), asked, connection)
        finally:
            asked.ended = next(self._clock)

    def _next_play(self, method: str) -> Play:
        for each in (method, ANY):
            if self._script.get(each):
                return self._script[each].pop(0)
            if each in self._always:
                return self._always[each]
        return {"play": "usual"}

    async def _perform(self, play: Play, asked: Asked, connection: Connection) -> bool:
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            error = {"code": "INVALID_REQUEST", "message": "not this token", "retry": False}
            await connection.answer(401, json.dumps({"ok": False, "error": error}).encode())
            return True
        kind = play["play"]
        if kind == "drops":
            connection.reset()
        elif kind == "status":
            await connection.answer(play["number"], play["body"], play["kind"], **play["headers"])
        elif kind == "sends":
            id = json.dumps(asked.message["id"]).encode()
            await connection.answer(200, play["body"].replace(b"$ID", id), play["kind"])
        elif kind == "raw":
            await connection.send(play["data"])
        elif kind == "endless":
            await connection.endless()
        else:
            return await self._usual(play, asked, connection)
        return kind in ("status", "sends")

    async def _usual(self, play: Play, asked: Asked, connection: Connection) -> bool:
        kind = play["play"]
        if kind == "pauses":
            await asyncio.sleep(play["seconds"])
        elif kind == "waits" and not await connection.waited(self._released):
            asked.gone.set()
            return False
        answer = self._said(play, asked)
        body = json.dumps({"jsonrpc": "2.0", "id": asked.message.get("id"), **answer}).encode()
        if kind == "cuts":
            await connection.head(200, "application/json", content_length=str(len(body)))
            await connection.send(body[: len(body) // 2])
        elif kind != "loses":
            await connection.answer(200, body)
        return kind not in ("cuts", "loses", "hangs_up")

    def _said(self, play: Play, asked: Asked) -> dict[str, Any]:
        if play["play"] == "says":
            return {"result": play["envelope"]}
        refusal = misread(asked.method, asked.message.get("params"))
        if play["play"] == "refuses":
            refusal = play["code"], play["message"]
        if refusal is not None:
            return {"error": {"code": refusal[0], "message": refusal[1]}}
        return {"result": self.engine.answer(asked.method, asked.params)}


class Connection:
    """A connection of a client's: bytes and HTTP."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = number
        self._reader = reader
        self._writer = writer

    async def request(self) -> tuple[str, dict[str, str], bytes]:
        """The path, the headers and the body of the next request, which says how long its body is."""
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await self._reader.readexactly(int(headers["content-length"]))
        return first.split(" ")[1], headers, body

    async def answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        await self.head(status, kind, content_length=str(len(body)), **headers)
        await self.send(body)

    async def head(self, status: int, kind: str, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}", f"content-type: {kind}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def endless(self) -> None:
        """A success whose data does not end."""
        await self.head(200, "application/json", transfer_encoding="chunked")
        await self.send(b'10\r\n{"jsonrpc":"2.0"\r\n')
        while True:
            await self.send(b"100000\r\n" + b" " * 0x100000 + b"\r\n")

    async def waited(self, event: asyncio.Event) -> bool:
        """Wait for an event. Return False if the client has closed the connection first."""
        closed = asyncio.ensure_future(self._reader.read(1))
        happened = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait([closed, happened], return_when=asyncio.FIRST_COMPLETED)
            return happened.done()
        finally:
            for each in (closed, happened):
                each.cancel()
            await asyncio.gather(closed, happened, return_exceptions=True)

    def reset(self) -> None:
        """Break it off, so that the client reads an error and no end."""
        raw_socket = self._writer.get_extra_info("socket")
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


def serve_by_hand(port: int = 0) -> None:
    """Serve until the end of the process, and say where."""

    async def serve() -> None:
        async with HttpEngine(port=port) as engine:
            print(engine.url, flush=True)
            await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
