"""A transport of one's own: lines of JSON over a Unix socket, for clients of the same machine.

Serve with `python examples/unix_socket.py demo.sock`; a client writes one message a line, and reads one.
"""

from __future__ import annotations

import asyncio
import os
import sys

from fastrpc import Server
from fastrpc.transports.base import Connections, Transport

app = Server("unix-socket", version="1.0")


@app.tool(effect="read")
async def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


class UnixSocket(Transport):
    """Serves whoever may connect to the socket at `path`, which is made for its owner only."""

    remote = False

    def __init__(self, path: str) -> None:
        self._path = path
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, connections: Connections) -> None:
        self._connections = connections
        before = os.umask(0o177)
        try:
            self._listener = await asyncio.start_unix_server(self._serve_client, self._path)
        finally:
            os.umask(before)

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._connections.open(writer.write)
        self._writers.add(writer)
        try:
            while data := await reader.read(65536):
                connection.feed_data(data)
                await writer.drain()  # a client that does not read is not read either
            await connection.end()
        except ConnectionError:
            pass  # it has gone without a word
        finally:
            connection.close()
            self._writers.discard(writer)
            writer.close()

    async def stop_accepting(self) -> None:
        self._listener.close()

    async def drain(self) -> None:
        for writer in list(self._writers):
            await writer.drain()

    async def close(self) -> None:
        for writer in list(self._writers):
            writer.close()
        os.unlink(self._path)


if __name__ == "__main__":
    app.run(transport=UnixSocket(sys.argv[1]))
