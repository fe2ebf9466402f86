"""What a worker sends to another one that has closed the socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fastrpc.transports.http import session_router

uvloop = pytest.importorskip("uvloop")


def test_a_response_for_a_worker_that_has_closed_the_socket_is_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        taken: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_unix_server(
            lambda reader, writer: taken.set_result(writer), tmp_path / "socket"
        )
        _, ours = await asyncio.open_unix_connection(tmp_path / "socket")
        theirs = await taken
        ours.close()
        await ours.wait_closed()
        response = session_router._Response(theirs)
        for _ in range(3):  # uvloop raises RuntimeError for a write to what is closed
            await response.send({"type": "http.response.start", "status": 400, "headers": []})
            await response.send({"type": "http.response.body", "body": b"cut short"})
            theirs.close()
            await asyncio.sleep(0)
        server.close()

    uvloop.install()
    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        asyncio.set_event_loop_policy(None)
