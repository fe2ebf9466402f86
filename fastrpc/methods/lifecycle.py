"""initialize, ping, server/discover, and the notifications of the lifecycle (MCP: lifecycle, utilities)."""

from __future__ import annotations

from fastrpc._core.encode import dumps
from fastrpc.session import MODERN, STRUCTURED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.dispatcher import Dispatcher, Request

DISCOVER_TTL_MS = 60_000

CAPABILITIES: dict[str, Any] = {"tools": {}}
"""What this server can do, in every version: the same for each client."""


def initialize(dispatcher: Dispatcher, request: Request) -> bytes:
    """Agree on a version; from here on requests without an envelope are welcome."""
    version = dispatcher.session.agree(request.params)
    connection = dispatcher.connection
    connection.open = True
    connection.structured = version in STRUCTURED
    connection.take_plans(connection.plans)  # and forget a list made for another version
    service = dispatcher.service
    result: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": service.server_info,
    }
    if service.instructions is not None:
        result["instructions"] = service.instructions
    return dumps(result)


def initialized(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
    dispatcher.session.ready()


def ping(dispatcher: Dispatcher, request: Request) -> bytes:
    return b"{}"


def discover(dispatcher: Dispatcher, request: Request) -> bytes:
    """What the server is and can do, without a handshake (MCP 2026-07-28)."""
    service = dispatcher.service
    result: dict[str, Any] = {
        "supportedVersions": [MODERN],
        "capabilities": CAPABILITIES,
        "ttlMs": DISCOVER_TTL_MS,
        "cacheScope": "private",
    }
    if service.instructions is not None:
        result["instructions"] = service.instructions
    return dumps(result)[:-1] + service.results.ending(MODERN)


def cancelled(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
    """Stop a request; an id that is unknown, ended or no id at all is ignored."""
    id = params.get("requestId")
    if type(id) in (str, int):
        dispatcher.cancel(dumps(id))
