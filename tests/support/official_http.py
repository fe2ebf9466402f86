"""A server of `fastrpc serve --http` in a process of its own, for tests with the official clients.

    with serve_http(source) as server:
        ...                         # server.url, server.sse_url, server.token
                                    # at the end: it must end in order, without a traceback but of tools

`recording_client` makes the HTTP client of the official Python client hand all that passes to the recorder,
which holds each message against its version's schema.
"""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from support.stdio import SECONDS, Process, TimedOut, serve

TOKEN = "the-token-of-an-official-client"


class ServedHttp:
    """A server that runs: where it is, and what opens it."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port
        self.token = TOKEN
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.sse_url = f"http://127.0.0.1:{port}/sse"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@contextlib.contextmanager
def serve_http(
    target: str | None,
    *options: str,
    environment: Mapping[str, str | None] | None = None,
    folder: str | None = None,
) -> Iterator[ServedHttp]:
    """Serve a source text, a file or (None) the agent's tools at a port that the system chooses."""
    arguments = ("--http", "127.0.0.1:0", *options)
    variables = {**(environment or {}), "FASTRPC_TOKEN": TOKEN}
    with serve(target, *arguments, environment=variables, folder=folder) as process:
        yield ServedHttp(process, _port(process))
        process.signal(signal.SIGTERM)
        assert process.wait() == 0
        failed_tools = re.findall(r"ERROR fastrpc: tool \w+ failed: \w+\n", process.stderr)
        assert process.stderr.count("Traceback") == len(failed_tools), process.stderr


def _port(process: Process) -> int:
    """Wait until the server says where it is."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.returncode is None:
        found = re.search(r"serving at http://127\.0\.0\.1:(\d+)/mcp", process.stderr)
        if found:
            return int(found[1])
        time.sleep(0.01)
    raise TimedOut(f"the server is not there: exit code {process.returncode}, stderr:\n{process.stderr}")


def recording_client(recorder: Any, name: str, **options: Any) -> Any:
    """Return an HTTP client whose exchanges the recorder sees; `options` are those of httpx2.AsyncClient.

    All of it is one conversation of the recorder's, however many connections carry it.
    """
    import httpx2

    conversation = recorder.conversation(name)

    class Recording(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.method == "POST":
                conversation.sent(await request.aread() + b"\n")
            response = await super().handle_async_request(request)
            kind = response.headers.get("content-type", "")
            response.stream = Tee(response.stream, reader_of(kind, conversation.received))
            return response

    class Tee(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, reader: Messages) -> None:
            self._stream = stream
            self._reader = reader

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                self._reader.feed(part)
                yield part
            self._reader.end()

        async def aclose(self) -> None:
            await self._stream.aclose()

    return httpx2.AsyncClient(transport=Recording(), trust_env=False, **options)


class Messages:
    """Takes the messages out of an answer's body, and hands them on as lines; this one: of none."""

    def __init__(self, take: Any) -> None:
        self._take = take
        self._text = b""

    def feed(self, part: bytes) -> None:
        self._text += part

    def end(self) -> None:
        """The body is over."""


class JsonMessage(Messages):
    """A body that is one message."""

    def end(self) -> None:
        if self._text.strip():
            self._take(self._text + b"\n")
            self._text = b""


class EventMessages(Messages):
    """A body of server-sent events; those with data are messages, but for the one that names an address."""

    def feed(self, part: bytes) -> None:
        *events, self._text = (self._text + part).split(b"\n\n")
        for event in events:
            fields = [line.partition(b": ") for line in event.split(b"\n")]
            data = b"\n".join(value for name, _, value in fields if name == b"data")
            if data and (b"event", b": ", b"endpoint") not in fields:
                self._take(data + b"\n")


def reader_of(content_type: str, take: Any) -> Messages:
    if content_type.startswith("text/event-stream"):
        return EventMessages(take)
    return JsonMessage(take) if content_type.startswith("application/json") else Messages(take)
