"""A client's session, fed by hand: what it makes of messages that are invalid, too many or late."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastrpc._core.client_stream import ClientStream
from fastrpc.client import server_messages
from fastrpc.client.handlers import Handlers
from fastrpc.client.server_messages import MOST_INVALID_LOGGED
from fastrpc.client.session import Session
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import InvalidAnswer, RequestTimeout

LIMIT = 200
INITIALIZED = b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{}}'


def with_session(conversation: Callable[[Session], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        stream = ClientStream(LIMIT)
        handlers = options.pop("handlers", None) or Handlers()
        session = Session(stream, handlers, client_info={}, capabilities=None, timeout_seconds=0, **options)
        await conversation(session)

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_the_first_invalid_messages_of_a_connection_are_logged_and_then_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def conversation(session: Session) -> None:
        request, answer = session.start("ping")
        for number in range(1000):
            session.stream.receive_message(b"Loading %d %%" % number)
        session.stream.receive_message(RESULT % request.id)
        assert await answer == {}

    with_session(conversation)
    logged = [record.message for record in caplog.records]
    assert logged[0] == "the server sent an invalid message: 'Loading 0 %'"
    assert logged[-1] == "the server: further invalid messages are not logged"
    assert len(logged) == MOST_INVALID_LOGGED + 1


@pytest.mark.parametrize("waits_in_loop", [True, False])
def test_a_line_over_the_limit_fails_what_waits_but_not_an_open_subscription(waits_in_loop: bool) -> None:
    async def conversation(session: Session) -> None:
        stream = session.stream
        incoming, server = os.pipe()
        taken, outgoing = os.pipe()
        for descriptor in (incoming, outgoing):
            os.set_blocking(descriptor, False)
        stream.open(incoming, outgoing)
        stream.attach(asyncio.get_running_loop())
        try:
            subscription, _ = session.start("subscriptions/listen")
            request, answer = session.start("tools/list")
            os.write(server, b"x" * (LIMIT + 1) + b"\n")
            if waits_in_loop:
                await asyncio.wait({answer})
            else:
                assert stream.wait(request)
            with pytest.raises(
                InvalidAnswer, match="tools/list: the upstream server sent a line of more than"
            ):
                request.result()
            assert type(answer.exception()) is InvalidAnswer
            assert list(stream.pending.values()) == [subscription]
        finally:
            stream.detach()
            for descriptor in (incoming, server, taken, outgoing):
                os.close(descriptor)

    with_session(conversation, peer="the upstream server")


async def never(params: dict[str, Any]) -> None:
    await asyncio.Event().wait()


def test_requests_of_the_server_with_one_id_are_not_answered_at_once() -> None:
    """A bound on their number, counted by their ids, would be none."""
    asked = b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}'

    async def conversation(session: Session) -> None:
        before = len(asyncio.all_tasks())
        for _ in range(10):
            session.stream.receive_message(asked)
        assert len(asyncio.all_tasks()) == before + 1
        refused = [json.loads(line) for line in session.stream.take().splitlines()]
        assert [(each["id"], each["error"]["code"]) for each in refused] == [("q", -32600)] * 9
        await session.end()

    with_session(conversation, handlers=Handlers(on_elicit=never))


def test_notifications_that_handlers_have_not_done_with_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_messages, "MOST_HANDLING_BYTES", 100_000)
    gate = asyncio.Event()
    seen = 0

    async def handler(params: dict[str, Any]) -> None:
        nonlocal seen
        seen += 1
        await gate.wait()

    async def conversation(session: Session) -> None:
        note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
        before = len(asyncio.all_tasks())
        for _ in range(100):
            session.stream.receive_message(note)
        await asyncio.sleep(0)
        assert 5 < seen < 30
        gate.set()
        while len(asyncio.all_tasks()) > before or session._inbound._handling_bytes.used:
            await asyncio.sleep(0)
        before = seen
        session.stream.receive_message(note)
        await asyncio.sleep(0)
        assert seen == before + 1  # there is room again

    with_session(conversation, handlers=Handlers(on_log=handler))
    said = "the server notifies faster than the handlers end: notifications are dropped"
    assert [record.message for record in caplog.records] == [said]


def test_each_step_of_a_handshake_has_its_time_limit() -> None:
    """The notification that ends it, and the level of log messages that it sets."""

    class Unsettled(ConnectionTransport):
        async def settle(self) -> None:
            await asyncio.Event().wait()

    async def conversation(session: Session) -> None:
        session.stream.attach(asyncio.get_running_loop())
        for transport, waits_for in (
            (Unsettled(), "notifications/initialized"),
            (ConnectionTransport(), "logging"),
        ):
            session.log_level = "info"
            beginning = asyncio.create_task(session.begin("2025-11-25", 0.1, transport))
            while not session.stream.pending:
                await asyncio.sleep(0)
            session.stream.receive_message(INITIALIZED % next(iter(session.stream.pending)))
            with pytest.raises(RequestTimeout, match=waits_for):
                await beginning

    with_session(conversation)
