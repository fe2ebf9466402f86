"""Serves one client over the message streams of the official SDK: what its transports pass to ``server.run``.

The streams carry the SDK's SessionMessage objects; each is written as JSON and parsed again on its way, so
this costs what the SDK's own models cost. For in-memory sessions, and for the SDK's SSE and HTTP
applications.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.transports.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.transports.base import ClientConnection, Connections


MOST_UNSENT = 1024 * 1024
"""Bytes that wait for a client that does not read before nothing more is read of it."""


class MessageStreams(Transport):
    """A client behind two streams."""

    remote = False

    def __init__(self, read_stream: Any, write_stream: Any) -> None:
        self._read_stream = read_stream
        self._write_stream = write_stream
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue()
        self._unsent_bytes = 0

    async def start(self, connections: Connections) -> None:
        import mcp.shared.message
        import mcp.types

        self._message = mcp.shared.message.SessionMessage
        self._parse = _parser_of(mcp.types)
        connection = connections.open(self._write)
        self._writing = asyncio.ensure_future(self._send())
        self._reading = asyncio.ensure_future(self._receive(connection))

    async def wait_closed(self) -> None:
        await self._reading

    def _write(self, data: bytes) -> None:
        self._unsent_bytes += len(data)
        for line in data.splitlines(keepends=True):
            self._unsent.put_nowait(line)

    async def _receive(self, connection: ClientConnection) -> None:
        async with self._read_stream:
            async for received in self._read_stream:
                if isinstance(received, Exception):
                    diagnostics.write("warning", f"a message could not be read: {received}")
                else:
                    text = received.message.model_dump_json(by_alias=True, exclude_unset=True)
                    connection.receive(text.encode())
                if self._unsent_bytes > MOST_UNSENT:
                    await self._unsent.join()

    async def _send(self) -> None:
        while True:
            line = await self._unsent.get()
            try:
                await self._write_stream.send(self._message(self._parse(line)))
            except (
                Exception
            ) as error:  # the client has gone: anyio's ClosedResourceError, BrokenResourceError
                if not type(error).__name__.endswith("ResourceError"):
                    raise
            finally:
                self._unsent_bytes -= len(line)
                self._unsent.task_done()

    async def drain(self) -> None:
        await self._unsent.join()

    async def close(self) -> None:
        for task in (self._reading, self._writing):
            task.cancel()
        await asyncio.wait({self._reading, self._writing})
        await self._write_stream.aclose()


def _parser_of(types: Any) -> Any:
    """Return what makes a message of the SDK from JSON, in its 1.x and 2.x."""
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    return types.JSONRPCMessage.model_validate_json if adapter is None else adapter.validate_json
