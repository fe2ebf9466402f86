"""``POST /approvals`` of a guarded server: signed decisions about approvals, without a token (`webhook`).

The guard's file at the time of the request determines whether there is a webhook. Without one the path
requires a token and does not exist.
"""

from __future__ import annotations

import asyncio

from fastrpc._core.encoder import dumps
from fastrpc.guard.approvals.webhook import LONGEST_BODY, DecisionRefused, Webhook
from fastrpc.storage.errors import StorageError
from fastrpc.transports.http import guard
from fastrpc.transports.http.endpoints import Endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.transports.http.request import HttpRequest


class ApprovalsEndpoint(Endpoint):
    """Accepts decisions, each on a thread. `poll` is called before each, so that a change of the file takes
    effect even while no client is connected."""

    def __init__(self, webhook: Webhook, look: Callable[[], object]) -> None:
        self._webhook = webhook
        self._poll_policy = look

    @property
    def needs_token(self) -> bool:  # type: ignore[override]
        self._poll_policy()
        return self._webhook.receiver is None

    async def answer_request(self, request: HttpRequest, body: bytes) -> bytes:
        receiver = self._webhook.receiver
        if receiver is None:
            raise guard.Refused(404, "there is no webhook for approvals")
        if len(body) > LONGEST_BODY:
            raise guard.Refused(413, f"the body is longer than {LONGEST_BODY:,} bytes")
        timestamp = request.header(b"x-fastrpc-timestamp")
        signature = request.header(b"x-fastrpc-signature")
        try:
            return await asyncio.to_thread(receiver.receive, body, timestamp, signature)
        except DecisionRefused as refused:
            raise guard.Refused(refused.status, str(refused)) from None
        except StorageError as error:
            raise guard.Refused(503, str(error)) from None

    def refusal(self, message: str) -> bytes:
        return dumps({"error": message})
