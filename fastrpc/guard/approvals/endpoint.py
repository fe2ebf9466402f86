"""``POST /approvals`` of a guarded server: signed decisions about approvals, without a token (`webhook`)."""

from __future__ import annotations

import asyncio

from fastrpc._core.encoder import dumps
from fastrpc.guard.approvals.webhook import LONGEST_BODY, Receiver, Refused
from fastrpc.storage.errors import StorageError
from fastrpc.transports.http import guard
from fastrpc.transports.http.endpoints import Endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.transports.http.request import Request


class ApprovalsEndpoint(Endpoint):
    """Takes decisions, each on a thread."""

    needs_token = False

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def answer_request(self, request: Request, body: bytes) -> bytes:
        if len(body) > LONGEST_BODY:
            raise guard.Refused(413, f"the body is longer than {LONGEST_BODY:,} bytes")
        timestamp = request.header(b"x-fastrpc-timestamp")
        signature = request.header(b"x-fastrpc-signature")
        try:
            return await asyncio.to_thread(self._receiver.receive, body, timestamp, signature)
        except Refused as refused:
            raise guard.Refused(refused.status, str(refused)) from None
        except StorageError as error:
            raise guard.Refused(503, str(error)) from None

    def refusal(self, message: str) -> bytes:
        return dumps({"error": message})
