"""``POST /workflows/ID/hook``: begins a run of a workflow whose trigger is a webhook.

The request must be signed with the secret of the webhook (`triggers`). For an unknown workflow the answer is
the same as for a wrong signature. Importing this imports nothing, since servers over stdio import it too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATH = "/workflows/*/hook"
LONGEST_BODY = 256 * 1024


class HookEndpoint:
    """An endpoint (`fastrpc.transports.http.endpoints`)."""

    needs_token = False

    async def answer_request(self, request: Any, body: bytes) -> bytes:
        """Return the id of the run as JSON. Raises Refused."""
        import asyncio
        import json

        from fastrpc.transports.http.endpoints import Refused

        from . import engine, triggers

        if len(body) > LONGEST_BODY:
            raise Refused(413, f"the body is longer than {LONGEST_BODY:,} bytes")
        timestamp = request.header(b"x-fastrpc-timestamp") or ""
        signature = request.header(b"x-fastrpc-signature") or ""
        engine.Place.loop = asyncio.get_running_loop()
        id = request.path.split("/")[2]
        run = await asyncio.to_thread(triggers.begun, id, body, timestamp, signature)
        return json.dumps({"run": run}).encode()

    def refusal(self, message: str) -> bytes:
        """Return the body of a refusal."""
        import json

        return json.dumps({"error": message}).encode()
