"""A client's session, fed by hand: what it makes of messages that are invalid."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastrpc._core.client_stream import ClientStream
from fastrpc.client.handlers import Handlers
from fastrpc.client.session import MOST_INVALID_LOGGED, Session
from fastrpc.errors import InvalidAnswer

LIMIT = 200
RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{}}'


def with_session(conversation: Callable[[Session], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        stream = ClientStream(LIMIT)
        session = Session(stream, Handlers(), client_info={}, capabilities=None, timeout_seconds=0, **options)
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
