"""Serves one client over the message streams of the official SDK: what its transports pass to ``server.run``.

The streams carry the SDK's SessionMessage objects; each is written as JSON and parsed again on its way, so
this costs what the SDK's own models cost. For in-memory sessions, and for the SDK's SSE and HTTP
applications.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import diagnostics
from fastrpc.engine.results import error_object
from fastrpc.errors import InternalError
from fastrpc.json_encoding import to_json
from fastrpc.transports.base import Transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.transports.base import ClientConnection, Connections


MOST_UNSENT = 1024 * 1024
"""Bytes that wait for a client that does not read before nothing more is read of it."""


class MessageStreams(Transport):
    """A client that is connected by two streams."""

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
                    connection.receive(_line_of(received.message))
                if self._unsent_bytes > MOST_UNSENT:
                    await self._unsent.join()

    async def _send(self) -> None:
        while True:
            line = await self._unsent.get()
            try:
                message = self._message_of(line)
                if message is not None:
                    await self._write_stream.send(self._message(message))
            except Exception as error:
                # anyio's ClosedResourceError, BrokenResourceError: the client has gone
                if not type(error).__name__.endswith("ResourceError"):
                    diagnostics.write("warning", f"a message could not be sent: {error}")
            finally:
                self._unsent_bytes -= len(line)
                self._unsent.task_done()

    def _message_of(self, line: bytes) -> Any:
        """Return the SDK's model of a message. A response that its model refuses becomes an error with the
        same id, so that its request does not wait for ever; another such message becomes None."""
        try:
            return self._parse(line)
        except ValueError as error:  # pydantic's ValidationError is one
            diagnostics.write("warning", f"the SDK has no model of a message to the client: {error}")
            sent = json.loads(line)
            if "method" in sent or sent.get("id") is None:
                return None
            problem = error_object(
                InternalError.code, "Internal error: the official SDK has no model of the response"
            )
            return self._parse(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (to_json(sent["id"]), problem))

    async def drain(self) -> None:
        await self._unsent.join()

    async def close(self) -> None:
        for task in (self._reading, self._writing):
            task.cancel()
        await asyncio.wait({self._reading, self._writing})
        await self._write_stream.aclose()


def _line_of(message: Any) -> bytes:
    """Return a message of the SDK as JSON: half a surrogate pair as an escape, which is then refused by the
    message's id."""
    try:
        text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
        return text.encode()
    except ValueError:  # pydantic's PydanticSerializationError and UnicodeEncodeError are some
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()


def _parser_of(types: Any) -> Any:
    """Return what makes a message of the SDK from JSON, in its 1.x and 2.x."""
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    return types.JSONRPCMessage.model_validate_json if adapter is None else adapter.validate_json
