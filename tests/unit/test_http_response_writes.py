"""How responses of the regular path are written: the head with the body that comes at once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastrpc.transports.http.bounded_connection import LARGEST_JOINED, ResponseTransport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire:
    """A socket's transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.ended = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.ended

    def end(self) -> None:
        self.ended = True


def written_by(act: Callable[[ResponseTransport, Wire], Any], *, turns: int = 2) -> list[bytes]:
    """What was written when `act` has used a transport, and the loop has gone on for some turns."""

    async def run() -> list[bytes]:
        wire = Wire()
        act(ResponseTransport(wire, asyncio.get_running_loop(), wire.end), wire)  # type: ignore[arg-type]
        for _ in range(turns):
            await asyncio.sleep(0)
        return wire.written

    return asyncio.run(run())


def test_a_head_and_the_body_that_follows_at_once_are_one_write() -> None:
    def act(transport: ResponseTransport, wire: Wire) -> None:
        transport.write(HEAD)
        transport.write(b"{}")

    assert written_by(act) == [HEAD + b"{}"]


def test_a_head_whose_body_comes_later_is_written_in_the_next_turn_of_the_loop() -> None:
    assert written_by(lambda transport, wire: transport.write(HEAD), turns=1) == [HEAD]


def test_a_large_body_is_not_copied() -> None:
    body = bytes(LARGEST_JOINED + 1)

    def act(transport: ResponseTransport, wire: Wire) -> None:
        transport.write(HEAD)
        transport.write(body)
        transport.write(b"HTTP/1.0 in a body")

    assert written_by(act) == [HEAD, body, b"HTTP/1.0 in a body"]


def test_a_body_that_looks_like_a_head_keeps_its_place() -> None:
    def act(transport: ResponseTransport, wire: Wire) -> None:
        for part in (HEAD, b"a", HEAD, b"b", HEAD, HEAD):
            transport.write(part)

    assert b"".join(written_by(act)) == HEAD + b"a" + HEAD + b"b" + HEAD + HEAD


def test_a_head_without_a_body_is_written_before_the_connection_closes() -> None:
    def act(transport: ResponseTransport, wire: Wire) -> None:
        transport.write(HEAD)
        transport.close()

    assert written_by(act) == [HEAD]


def test_nothing_is_written_to_a_connection_that_has_ended_meanwhile() -> None:
    def act(transport: ResponseTransport, wire: Wire) -> None:
        transport.write(HEAD)
        wire.end()

    assert written_by(act) == []
