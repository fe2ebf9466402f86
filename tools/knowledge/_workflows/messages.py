"""Messages of workflows to people: as MCP log messages to the clients of their owner, as a callback to the
agent, or to the webhook in the server's settings."""

from __future__ import annotations

import json
import time

from fastrpc import ToolError
from fastrpc.signed_requests import headers_of

from ... import _reach
from .. import _readers, _settings
from . import web_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Context

LOGGER = "workflow"
CALLBACK = "SetCallback"
SECONDS = 30.0


def log(ctx: Context, text: str) -> int:
    """Send a text to the owner's clients that have asked for log messages; return their number."""
    from fastrpc.self_calls import caller_of

    owner, server = _readers.reader_of(ctx).owner, ctx.server

    def is_owners(principal: str) -> bool:
        return _readers.reader_for(caller_of(server, principal)).owner == owner

    count: int = server.log(text, logger=LOGGER, to=is_owners)
    return count


async def call_back(ctx: Context, text: str) -> None:
    """Have the agent's tools deliver a text to the agent. Raises ToolError."""
    from fastrpc.self_calls import client_for, tools_of

    if CALLBACK not in tools_of(ctx.server, ctx.principal):
        raise ToolError(f"to: callback needs the tool {CALLBACK}, which this server has not for this caller.")
    arguments = {"action": "set", "message": text, "delay_seconds": 1, "repeat_count": 1}
    async with client_for(ctx.server, ctx.principal) as client:
        result = await client.call_tool(CALLBACK, arguments)
    if result.is_error:
        raise ToolError(result.text[:1000])


async def post(ctx: Context, text: str) -> None:
    """Post a text to the webhook, signed with its secret. Raises ToolError."""
    url, secret = _settings.WEBHOOK.read(), _settings.WEBHOOK_SECRET.read()
    if not url or not secret:
        raise ToolError(
            "to: the server has no webhook: --workflow-webhook URL, and the secret in "
            f"{_settings.WEBHOOK_SECRET.name}."
        )
    body = json.dumps({"text": text, "owner": _readers.reader_of(ctx).owner}, ensure_ascii=False).encode()
    headers = {"content-type": "application/json", **headers_of(secret.encode(), body, time.time())}
    order = web_request.Order("POST", url, headers, body=body)
    try:
        await web_request.send(order, _reach.Reach(), SECONDS)  # the operator's choice, not a caller's
    except ToolError as error:
        raise ToolError(f"the webhook: {str(error).removeprefix('url: ')}") from None
