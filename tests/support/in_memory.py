"""A conversation with a server in memory: through the client, by one request, or line by line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

SECONDS = 60.0  # a server behind may be a process that has to be started

every_version = pytest.mark.parametrize("version", VERSIONS)


def with_client(app: Server, conversation: Any, version: str = LATEST_SESSION_VERSION, **options: Any) -> Any:
    """Run a coroutine function with a client of `app`, and return what it returns."""

    async def run() -> Any:
        async with Client(app, version=version, **options) as client:
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def ask(app: Server, method: str, params: dict[str, Any] | None = None, version: str = STATELESS) -> Any:
    """Return the result of one request."""
    return with_client(app, lambda client: client.request(method, params), version)


def read(app: Server, uri: str, version: str = STATELESS) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = ask(app, "resources/read", {"uri": uri}, version)["contents"]
    return contents


def refusal(app: Server, method: str, params: dict[str, Any], version: str = STATELESS) -> RemoteError:
    with pytest.raises(RemoteError) as caught:
        ask(app, method, params, version)
    return caught.value


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def line_of(id: Any, name: str, arguments: Any, version: str, meta: dict[str, Any] | None = None) -> bytes:
    params: dict[str, Any] = {"name": name}
    if arguments is not None:
        params["arguments"] = arguments
    if version == STATELESS or meta:
        params["_meta"] = {**(ENVELOPE if version == STATELESS else {}), **(meta or {})}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


class RawConversation:
    """The lines of one connection in the running loop. With `stepped` False every call that is not plain goes
    through the dispatcher. `handed_on` counts the messages that did; `said` is what was no answer."""

    def __init__(self, app: Server, version: str, *, stepped: bool = True) -> None:
        self.dispatcher = app.connect()
        self.connection = self.dispatcher.connection
        self.version = version
        self.answers: dict[Any, bytes] = {}
        self.said: list[Any] = []
        self.handed_on = 0
        self._transport = connected(self.connection, self._hear)
        if version != STATELESS:
            self.dispatcher.adopt_version(version)
        self.connection.delegate.on_client_idle()
        if not stepped:
            self.connection.shared = True
        dispatch = self.dispatcher.dispatch

        def counted(*arguments: Any) -> None:
            self.handed_on += 1
            dispatch(*arguments)

        self.dispatcher.dispatch = counted  # type: ignore[method-assign]

    def _hear(self, line: bytes) -> None:
        message = json.loads(line)
        if isinstance(message, list):
            for each in message:
                self._hear(json.dumps(each).encode())
            return
        if "method" in message:
            self.said.append((len(self.answers), message))
            return
        id = message.get("id")
        assert id not in self.answers, "answered twice"
        self.answers[id] = line

    def call(self, id: Any, name: str, arguments: Any, meta: dict[str, Any] | None = None) -> None:
        self._transport.send(line_of(id, name, arguments, self.version, meta))

    def send(self, line: bytes) -> None:
        self._transport.send(line)

    def say(self, message: dict[str, Any]) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def answer(self, id: Any) -> Any:
        while id not in self.answers:
            await asyncio.sleep(0.002)
        return json.loads(self.answers[id])

    def close(self) -> None:
        self._transport.disconnect()


def in_loop(conversation: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation(), SECONDS))


def connected(connection: Any, on_line: Callable[[bytes], object]) -> MemoryTransport:
    """Return a client in memory, connected by this connection of a server."""
    transport = MemoryTransport(on_line)
    transport.connect(Connections(lambda: connection))
    return transport


def texts_of(result: dict[str, Any]) -> list[str]:
    """Return the texts of a tool's result, block by block."""
    return [block["text"] for block in result["content"]]
