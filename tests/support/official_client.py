"""A server of `fastrpc serve --http` in a separate process, for tests with the official clients.

    with serve_http(source) as server:
        ...                         # server.url, server.sse_url, server.token
                                    # at the end: it must end in order, without a traceback but of tools

`recording_client` makes the HTTP client of the official Python client hand all that passes to the recorder,
which holds each message against its version's schema.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from support.http_server import HttpProcess
from support.stdio import write_source

TOKEN = "the-token-of-an-official-client"


class ServedHttp(HttpProcess):
    """A server that runs: where it is, and what opens it."""

    token = TOKEN

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def sse_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/sse"

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
    found = {**os.environ, **(environment or {}), "FASTRPC_TOKEN": TOKEN}
    variables = {name: value for name, value in found.items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="fastrpc-test-") as own:
        if target is not None and "\n" in target:
            target = write_source(own, target)
        arguments = ("serve", "--http", "127.0.0.1:0", *options, *(() if target is None else (target,)))
        with ServedHttp(*arguments, folder=folder, environment=variables) as server:
            yield server
            assert server.stop() == 0
        failed_tools = re.findall(r"ERROR fastrpc: tool \w+ failed: \w+\n", server.stderr)
        assert server.stderr.count("Traceback") == len(failed_tools), server.stderr


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
