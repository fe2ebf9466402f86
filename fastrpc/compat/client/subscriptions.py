"""``async with client.listen(tools_list_changed=True) as changes`` of the official SDK 2.x.

Changes are events (`fastrpc.compat.sdk2.subscription_events`). A stream that breaks over HTTP is opened
again, and everything is reported as changed then; one that cannot be raises SubscriptionLost.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from fastrpc.compat.errors import translated
from fastrpc.compat.models import typed
from fastrpc.compat.sdk2.subscription_events import event_of
from fastrpc.errors import ClientError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from fastrpc.client.listening import Listening
    from fastrpc.compat.sdk2.subscription_events import ServerEvent


class ListenNotSupportedError(RuntimeError):
    """The connection's version has no streams of changes; they came with 2026-07-28."""

    def __init__(self, negotiated_version: str | None) -> None:
        self.negotiated_version = negotiated_version
        super().__init__(
            f"the connection speaks {negotiated_version}, without subscriptions/listen (2026-07-28 has it); "
            "use subscribe_resource() and message_handler"
        )


class SubscriptionLost(RuntimeError):
    """The stream has broken: listen again, and read anew what may have changed."""


class Subscription:
    """An open stream: an async iterator of events. `honored`: the filter that the server accepts."""

    def __init__(self, listening: Listening) -> None:
        self._listening = listening
        self.subscription_id = listening.id
        self.honored = typed("SubscriptionFilter", listening.honoured)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> ServerEvent:
        """Return the next event; the end is the server's. Raises SubscriptionLost."""
        try:
            message = await self._listening.__anext__()
        except StopAsyncIteration:
            if self._listening.end is None:
                raise SubscriptionLost("the stream has broken; listen again and read anew") from None
            raise
        return event_of(message)


@asynccontextmanager
async def listen(
    session: Any,
    *,
    tools_list_changed: bool = False,
    prompts_list_changed: bool = False,
    resources_list_changed: bool = False,
    resource_subscriptions: Sequence[str] = (),
) -> AsyncIterator[Subscription]:
    """Open a stream of these changes. Raises ListenNotSupportedError, McpError for the server's error, and
    TimeoutError."""
    if session.protocol_version != STATELESS:
        raise ListenNotSupportedError(session.protocol_version)
    if isinstance(resource_subscriptions, str):
        raise TypeError("resource_subscriptions: expected several URIs, got a str")
    listening = session._client.listen(
        tools=tools_list_changed,
        prompts=prompts_list_changed,
        resources=resources_list_changed,
        uris=resource_subscriptions,
    )
    try:
        await listening.__aenter__()
    except ClientError as error:
        raise translated(error) from error
    try:
        yield Subscription(listening)
    finally:
        await listening.__aexit__(None, None, None)
