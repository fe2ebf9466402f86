"""Servers over HTTP, started as users start them (`http_server`), and small clients that speak both eras.

    with Serving("serve", "tools.py", "--http", "127.0.0.1:0", folder=tmp_path) as server:
        assert server.call("echo", text="hello") == "hello"
        with server.session() as session: ...
        assert server.stop() == 0

Nothing waits longer than its `seconds`. Python's standard library only; nothing of fastrpc is imported.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from support.http_server import FASTRPC, READY, HttpProcess
from support.protocol import STATELESS, envelope, message
from support.waiting import SECONDS, eventually

TOKEN = "a-token-for-tests-of-serving"
META = envelope({"elicitation": {"form": {}}})

ECHO_AND_WAIT = """
import asyncio, os

@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool
async def wait(seconds: float) -> str:
    print("begun", flush=True)
    await asyncio.sleep(seconds)
    return "waited"

@app.tool
async def wait_for(path: str) -> str:
    print("begun", flush=True)
    while not os.path.exists(path):
        await asyncio.sleep(0.005)
    return "waited"
"""
"""Tools for the server `app` of a file that is served; `Serving.has_begun` counts the calls that have begun
to wait, for some seconds or for a file."""


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of fastrpc's, and some more."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    return {**kept, "FASTRPC_TOKEN": TOKEN, **more}


class Answer:
    """A whole answer."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The JSON-RPC answer: the body, or the last event of a stream."""
        if self.headers.get_content_type() == "text/event-stream":
            return json.loads(re.findall(rb"^data: (\{.*\})\r?$", self.body, re.MULTILINE)[-1])
        return json.loads(self.body)

    @property
    def text(self) -> str:
        found: str = self.json["result"]["content"][0]["text"]
        return found


class Serving(HttpProcess):
    """A server's process and its clients; `environ` is added to an environment without fastrpc's settings."""

    def __init__(
        self,
        *arguments: str,
        command: Sequence[str] = FASTRPC,
        folder: Any = None,
        ready: str = READY,
        tls: ssl.SSLContext | None = None,
        token: str | None = TOKEN,
        path: str = "/mcp",
        **environ: str,
    ) -> None:
        self.token = token
        self.tls = tls
        self.path = path
        super().__init__(
            *arguments, command=command, folder=folder, environment=environment(**environ), ready=ready
        )

    def has_begun(self, calls: int) -> None:
        """Wait until so many calls in all have said ``begun`` on standard output."""
        eventually(lambda: self.stdout.count("begun") >= calls)

    def is_refused(self) -> bool:
        """Whether no one listens any more where the server is."""
        connection = self.connection()
        try:
            connection.connect()
        except (ConnectionError, FileNotFoundError):
            return True
        finally:
            connection.close()
        return False

    # --- clients --------------------------------------------------------------------------------------

    @cached_property
    def _opened(self) -> contextlib.ExitStack:
        return contextlib.ExitStack()

    def close(self) -> None:
        super().close()
        self._opened.close()

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection that is closed with the server, and so are the responses that it gives: one may
        have taken over the socket."""
        connection = self._connection()

        def response(*arguments: Any, **options: Any) -> http.client.HTTPResponse:
            found = http.client.HTTPResponse(*arguments, **options)
            self._opened.callback(found.close)
            return found

        connection.response_class = response  # type: ignore[assignment]
        self._opened.callback(connection.close)
        return connection

    def _connection(self) -> http.client.HTTPConnection:
        if self.place.startswith("unix:"):
            return UnixConnection(self.place[5:])
        host = "::1" if "[::1]" in self.place else "127.0.0.1"
        if self.tls is not None:
            return http.client.HTTPSConnection("localhost", self.port, timeout=SECONDS, context=self.tls)
        return http.client.HTTPConnection(host, self.port, timeout=SECONDS)

    def headers(self, **more: str) -> dict[str, str]:
        """The headers of every request; those of `more` with ``_`` for ``-``."""
        found = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.token is not None:
            found["Authorization"] = f"Bearer {self.token}"
        return {**found, **{name.replace("_", "-"): value for name, value in more.items()}}

    def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request on a separate connection."""
        connection = self.connection()
        try:
            return ask(connection, verb, path, body, self.headers(**headers))
        finally:
            connection.close()

    def stateless_request(self, method: str, params: dict[str, Any], **headers: str) -> Answer:
        """Send a request of 2026-07-28."""
        message, more = stateless_request(method, params)
        return self.ask("POST", self.path, message, **{**more, **headers})

    def call(self, tool: str, **arguments: Any) -> str:
        """Call a tool in 2026-07-28 and return its text."""
        return self.stateless_request("tools/call", {"name": tool, "arguments": arguments}).text

    def begin_call(self, tool: str, **arguments: Any) -> http.client.HTTPConnection:
        """Send a call of 2026-07-28, and do not wait for its answer."""
        message, more = stateless_request("tools/call", {"name": tool, "arguments": arguments})
        connection = self.connection()
        connection.request("POST", self.path, json.dumps(message), self.headers(**more))
        return connection

    def session(self, version: str = "2025-11-25") -> Session:
        return Session(self, version)


class Session:
    """A session of a version up to 2025-11-25; each request comes on a separate connection."""

    def __init__(self, server: Serving, version: str) -> None:
        self.server = server
        self.version = version
        answer = server.ask("POST", server.path, handshake(version))
        assert answer.status == 200, answer.body
        self.id = answer.headers["Mcp-Session-Id"]
        self._last_id = 1
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def headers(self) -> dict[str, str]:
        return {"Mcp_Session_Id": self.id, "MCP_Protocol_Version": self.version}

    def send(self, message: Any) -> Answer:
        return self.server.ask("POST", self.server.path, message, **self.headers())

    def call(self, tool: str, **arguments: Any) -> Answer:
        return answer_of(self.begin_call(tool, **arguments))

    def begin_call(self, tool: str, **arguments: Any) -> http.client.HTTPConnection:
        connection = self.server.connection()
        self._last_id += 1
        message = request("tools/call", {"name": tool, "arguments": arguments}, self._last_id)
        headers = self.server.headers(**self.headers())
        connection.request("POST", self.server.path, json.dumps(message), headers)
        return connection

    def listen(self) -> Stream:
        return Stream(self.server, "GET", self.server.path, **self.headers())


class Stream:
    """A stream of events that is open."""

    def __init__(
        self,
        server: Serving,
        verb: str,
        path: str,
        body: Any = None,
        connection: http.client.HTTPConnection | None = None,
        **headers: str,
    ) -> None:
        self.connection = connection or server.connection()
        text = None if body is None else json.dumps(body)
        self.connection.request(verb, path, text, server.headers(**headers))
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.headers.get_content_type() == "text/event-stream"

    def lines(self) -> Iterator[str]:
        """The lines of the stream, to its end; comments keep no one waiting for ever."""
        deadline = time.monotonic() + SECONDS
        for line in self.response:
            assert time.monotonic() < deadline, "what was waited for has not come"
            yield line.decode().rstrip("\r\n")

    def data(self) -> Iterator[str]:
        """What the events say."""
        for line in self.lines():
            if line.startswith("data: ") and len(line) > 6:
                yield line[6:]

    def close(self) -> None:
        self.connection.close()


class UnixConnection(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)


def ask(
    connection: http.client.HTTPConnection, verb: str, path: str, body: Any, headers: dict[str, str]
) -> Answer:
    text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
    connection.request(verb, path, text, headers)
    return answer_of(connection)


def answer_of(connection: http.client.HTTPConnection) -> Answer:
    response = connection.getresponse()
    return Answer(response.status, response.headers, response.read())


def request(method: str, params: dict[str, Any], id: Any = 1) -> dict[str, Any]:
    return message(method, params, id)


def handshake(version: str) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    }
    return request("initialize", params)


def stateless_request(method: str, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of 2026-07-28 and the headers that go with it."""
    given = {**params, "_meta": {**META, **params.get("_meta", {})}}
    headers = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": method}
    name = params.get("name") or params.get("uri") or params.get("taskId")
    if name:
        headers["Mcp_Name"] = name
    return request(method, given), headers


def children(pid: int) -> list[int]:
    """The processes that another has begun and that still run."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
