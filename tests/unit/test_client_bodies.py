"""What a client reads from one server at once is bounded in bytes together: bodies, and unfinished events."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from support.raw_web import Line, RawWeb

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc.client.http import wire
from fastrpc.client.http.address import Remote
from fastrpc.client.http.events import Events
from fastrpc.client.http.wire import SMALL, Wire
from fastrpc.errors import InvalidAnswer

JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
BODY = b'"' + b"x" * 500_000 + b'"'
EVENT = b"data: " + BODY + b"\n"


def run(conversation: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 30))


async def read(to: Wire) -> int:
    """Read an answer, whatever it is, and return its size."""
    async with to.send("POST", {"content-type": "application/json"}, b"{}") as answer:
        if answer.is_stream:
            return max([len(event.data) async for event in answer.events(Events(10_000_000))])
        return len(await answer.body())


async def read_at_once(
    head: bytes, first: bytes, rest: bytes, *, count: int, until_refused: bool = False
) -> list[Any]:
    """Read answers of a server, which says the `rest` of them when one was refused if that is awaited; then
    one more, alone. Return the result of them."""
    may_end = asyncio.Event()

    async def play(line: Line) -> None:
        await line.request()
        line.say(head + first)
        await may_end.wait()
        line.say(rest)

    async with RawWeb(play) as server:
        to = Wire(Remote(server.url))
        reading = [asyncio.ensure_future(read(to)) for _ in range(count)]
        if until_refused:
            await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
        may_end.set()
        found: list[Any] = [*await asyncio.gather(*reading, return_exceptions=True), await read(to)]
        await to.close()
        return found


@pytest.mark.parametrize(
    ("head", "first", "rest"), [(JSON, BODY[:400_000], BODY[400_000:]), (STREAM, EVENT, b"\n")]
)
def test_answers_that_are_read_at_once_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, head: bytes, first: bytes, rest: bytes
) -> None:
    monkeypatch.setattr(wire, "MOST_READING", 1_000_000)
    *together, alone = run(read_at_once(head, first, rest, count=4, until_refused=True))
    refused = [each for each in together if isinstance(each, InvalidAnswer)]
    assert refused
    assert "the responses being read have in total more than 1000000 bytes" in str(refused[0])
    assert len([each for each in together if each == len(BODY)]) == 4 - len(refused) > 0
    assert alone == len(BODY)


def test_events_that_are_complete_count_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_READING", 700_000)
    assert run(read_at_once(STREAM, (EVENT + b"\n") * 20 + EVENT, b"\n", count=1)) == [len(BODY)] * 2


def test_small_answers_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_READING", 0)
    body = b'"' + b"x" * (SMALL - 2)
    assert run(read_at_once(JSON, body, b'"', count=20)) == [SMALL] * 21
