"""What is bounded in number is bounded in bytes, and the other way round: what the other side sends, and what
is kept for it (docs/limits.md)."""

from __future__ import annotations

import asyncio
import json
import os
from types import SimpleNamespace
from typing import Any

import pytest

from fastrpc import Server, diagnostics
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.handlers import Handlers
from fastrpc.client.http.stateless import StatelessCarrier
from fastrpc.client.listening import MOST_UNREAD, UPDATED, Listening
from fastrpc.client.server_messages import MOST_ANSWERING
from fastrpc.client.session import Session
from fastrpc.client.stdio import LAST_WORDS, REST_READS, HeardProcess
from fastrpc.compat.lowlevel.streams import MOST_UNSENT, MessageStreams
from fastrpc.compat.middleware import caching
from fastrpc.engine import outbound
from fastrpc.errors import ClientError
from fastrpc.protocol import followed_pages
from fastrpc.protocol.followed_pages import MOST_PAGES, FollowedPages
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.proxy.requests import MOST_QUESTIONS, CallOrigin
from fastrpc.transports.http.streams import EventStream, Store

MEGABYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(diagnostics, "write", lambda at, text, error=None: lines.append(text))
    return lines


def test_a_list_ends_where_a_cursor_comes_again(logged: list[str]) -> None:
    pages = FollowedPages("tools/list", "the server")
    assert pages.next({"tools": [], "nextCursor": "a"}) == {"cursor": "a"}
    assert pages.next({"tools": [], "nextCursor": "b"}) == {"cursor": "b"}
    assert pages.next({"tools": [], "nextCursor": "a"}) is None
    assert logged == ["the server: tools/list is read only up to page 3: a cursor is repeated"]


@pytest.mark.parametrize("end", [{}, {"nextCursor": None}, {"nextCursor": ""}])
def test_a_list_ends_in_order_without_a_cursor(end: dict[str, Any], logged: list[str]) -> None:
    assert FollowedPages("tools/list", "the server").next({"tools": [], **end}) is None
    assert logged == []


def test_a_list_is_bounded_in_pages_and_in_bytes(monkeypatch: pytest.MonkeyPatch, logged: list[str]) -> None:
    pages = FollowedPages("tools/list", "the server")
    for number in range(MOST_PAGES - 1):
        assert pages.next({"tools": [], "nextCursor": f"{number}"}) is not None
    assert pages.next({"tools": [], "nextCursor": "last"}) is None
    monkeypatch.setattr(followed_pages, "MOST_BYTES", 5 * MEGABYTE)
    pages = FollowedPages("tools/list", "the server")
    large = {"name": "x" * (2 * MEGABYTE)}
    assert pages.next({"tools": [large], "nextCursor": "1"}) is not None
    assert pages.next({"tools": [large], "nextCursor": "2"}) is not None
    assert pages.next({"tools": [large], "nextCursor": "3"}) is None
    assert len(logged) == 2
    assert FollowedPages("tools/list", "the server").next({"tools": [], "nextCursor": 7}) is None


def test_a_list_is_bounded_in_time_that_its_pages_take(logged: list[str]) -> None:
    pages = FollowedPages("tools/list", "the server", 10)
    assert pages.next({"tools": [], "nextCursor": "1"}, 6) is not None
    assert pages.next({"tools": [], "nextCursor": "2"}, 6) is None
    assert logged == ["the server: tools/list is read only up to page 2: it takes longer than 10 s"]


def test_notifications_that_no_one_reads_are_bounded_as_requests_are() -> None:
    stream = ClientStream()
    line = b'{"jsonrpc":"2.0","method":"m","params":"' + b"x" * MEGABYTE + b'"}'
    for _ in range(64):
        stream.send(line)
    with pytest.raises(ClientError, match="does not read its input"):
        stream.send(line)
    stream.cancel(1, {"reason": "too late"})  # says nothing, and does not raise
    assert len(stream.take()) < 66 * MEGABYTE
    stream.send(line)


def session_of(stream: ClientStream) -> Session:
    handlers = Handlers()

    async def never() -> Any:
        await asyncio.get_running_loop().create_future()

    handlers.answer = lambda method, params: never()  # type: ignore[method-assign, assignment]
    session = Session(stream, handlers, client_info={}, capabilities={}, timeout_seconds=0)
    session.version = LATEST_SESSION_VERSION
    return session


@pytest.mark.parametrize("size", [1, 2 * MEGABYTE])
def test_requests_of_a_server_that_are_being_answered_are_bounded(size: int) -> None:
    async def flood() -> list[Any]:
        stream = ClientStream()
        session = session_of(stream)
        for id in range(2 * MOST_ANSWERING if size == 1 else 64):
            params = {"text": "x" * size}
            request = {"jsonrpc": "2.0", "id": f"s{id}", "method": "sampling/createMessage", "params": params}
            stream.receive_message(json.dumps(request).encode())
        sent = [json.loads(line) for line in stream.take().splitlines()]
        await session.end()
        return sent

    refused = asyncio.run(flood())
    assert len(refused) >= (MOST_ANSWERING if size == 1 else 30)
    assert all(each["error"]["code"] == -31001 for each in refused)


def test_what_a_server_asks_during_a_forwarded_call_is_bounded() -> None:
    async def ask() -> None:
        call = CallOrigin(None, asyncio.get_running_loop().create_future())
        assert [call.ask({"id": id}) for id in range(MOST_QUESTIONS + 1)] == [True] * MOST_QUESTIONS + [False]
        large = CallOrigin(None, asyncio.get_running_loop().create_future())
        assert not large.ask({"text": "x" * (17 * MEGABYTE)})

    asyncio.run(ask())


@pytest.mark.parametrize("size", [1, 100_000])
def test_changes_that_no_one_reads_become_one_of_everything(size: int) -> None:
    async def listen() -> tuple[int, int, list[Any]]:
        listening = Listening(session_of(ClientStream()), {"resourceSubscriptions": ["a://b"]})
        for _ in range(3 * MOST_UNREAD):
            params = {"uri": "a://b", "text": "x" * size}
            listening.add({"jsonrpc": "2.0", "method": UPDATED, "params": params})
        return listening._queue.qsize(), len(listening.changes), listening.changes

    waiting, kept, changes = asyncio.run(listen())
    assert 0 < waiting <= MOST_UNREAD
    assert 0 < kept <= 2 * MOST_UNREAD
    assert len(json.dumps(changes)) < 3 * MEGABYTE


def test_messages_for_a_client_that_does_not_read_are_dropped_but_no_answers(
    monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    monkeypatch.setattr(outbound, "MOST_UNSENT", MEGABYTE)
    dispatcher: Any = Server("t").connect()
    dispatcher.connection.flush = None
    for _ in range(100):
        dispatcher.outbound.notify("notifications/message", {"data": "x" * 100_000})
    assert dispatcher.connection.output.unsent < 2 * MEGABYTE
    dispatcher.connection.receive(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert b'"id":1' in dispatcher.connection.output.take()
    assert len(logged) == 1


def test_kept_results_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "MOST_BYTES", 10_000)
    middleware = caching.ResponseCachingMiddleware()
    for number in range(100):
        middleware._keep(("", "tools/call", f"{number}"), 0.0, "packed", 1000)
    middleware._keep(("", "tools/call", "99"), 0.0, "packed", 2000)
    assert len(middleware._kept) <= 10
    assert middleware._bytes == sum(size for _, _, size in middleware._kept.values()) <= 10_000


def test_header_lines_of_long_names_are_not_kept() -> None:
    """A proxy's clients choose the URIs that it reads."""
    carrier: Any = StatelessCarrier.__new__(StatelessCarrier)
    carrier._parameters, carrier._lines = {}, {}
    carrier._headers = lambda method, params: {"mcp-name": params["uri"]}
    for size in (10, 5000):
        request: Any = type("Request", (), {"method": "resources/read"})
        assert len(carrier.lines_at_once(request, {"uri": "x" * size})) > size
    assert [uri for _, uri in carrier._lines] == ["x" * 10]


def test_what_is_written_once_is_remembered_by_its_hash(
    monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    monkeypatch.setattr(diagnostics, "MOST_REMEMBERED", 2)
    once = diagnostics.Once("warning")
    for text in ("a" * 100_000, "b", "a" * 100_000, "b", "c", "b"):
        once.write(text)
    assert [text[0] for text in logged] == ["a", "b", "c", "b"]
    assert all(type(each) is int for each in once._written)


def test_a_thousand_clients_that_do_not_read_take_no_more_than_all_may_have() -> None:
    async def fan_out() -> list[EventStream]:
        loop = asyncio.get_running_loop()
        all_events = Store(3000, MEGABYTE)
        streams = [EventStream(0, loop, Store(100, 100_000, all_events)) for _ in range(1000)]
        for number in range(20):
            for stream in streams:
                stream.put(b'{"number":%d,"text":"%b"}' % (number, b"x" * 500))
        assert all_events.bytes <= MEGABYTE
        assert all_events._live == sum(len(each._events) for each in streams) <= 3000
        assert len(all_events._events) + sum(len(each._store._events) for each in streams) < 12_000
        return streams

    streams = asyncio.run(fan_out())
    newest = [stream.part_after(0)[0] for stream in streams]
    assert all(b'"number":19' in part and part.count(b"data: ") <= 3 for part in newest)


def test_a_server_that_never_stops_to_write_to_standard_error_holds_nothing_up() -> None:
    """Its event loop has a turn behind each piece, and the end comes whatever its children write."""
    reads = []

    def read(descriptor: int, size: int) -> bytes:
        reads.append(size)
        assert len(reads) < 10 * REST_READS, "it reads for ever"
        return b"x" * size

    process: Any = HeardProcess.__new__(HeardProcess)
    process._errors, process._shows_stderr, process._last_words = 7, False, b""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", read)
        process._read_errors()
        assert len(reads) == 1
        process._read_rest_of_errors()
        assert len(reads) == 1 + REST_READS
    assert process._last_words == b"x" * LAST_WORDS


def test_nothing_more_is_read_of_a_client_that_does_not_read() -> None:
    """Over the streams of the official SDK: what waits for the client is bounded."""

    class Requests:
        """A stream that never ends; its messages are their own JSON."""

        read = 0

        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *exception: object) -> None: ...

        def __aiter__(self) -> Requests:
            return self

        async def __anext__(self) -> Any:
            await asyncio.sleep(0)
            self.read += 1
            return SimpleNamespace(message=SimpleNamespace(model_dump_json=lambda **options: "{}"))

    async def talk() -> None:
        requests, reads = Requests(), asyncio.Semaphore(0)
        responses = SimpleNamespace(send=lambda message: reads.acquire())
        streams: Any = MessageStreams(requests, responses)
        streams._message = streams._parse = lambda line: line
        connection = SimpleNamespace(receive=lambda text: streams._write(b"x" * 99_999 + b"\n"))
        running = [asyncio.ensure_future(each) for each in (streams._receive(connection), streams._send())]
        for _ in range(100):
            await asyncio.sleep(0)
        assert requests.read * 100_000 == streams._unsent_bytes < MOST_UNSENT + 100_001
        before = requests.read
        for _ in range(before):
            reads.release()
        while requests.read == before:
            await asyncio.sleep(0)
        for each in running:
            each.cancel()

    asyncio.run(asyncio.wait_for(talk(), 60))
