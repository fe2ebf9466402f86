"""initialize, ping, server/discover, and the notifications of the lifecycle (MCP: lifecycle, utilities)."""

from __future__ import annotations

from fastrpc._core.encoder import dumps
from fastrpc.protocol.versions import SERVER_KEY, STATELESS, STRUCTURED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request


def initialize(dispatcher: Dispatcher, request: Request) -> bytes:
    """Negotiate the version; from here on requests without an envelope are accepted."""
    version = dispatcher.session.agree(request.params)
    connection = dispatcher.connection
    connection.open = True
    connection.structured = version in STRUCTURED
    connection.take_plans(connection.plans)  # and forget a list made for another version
    description = dispatcher.runtime.description
    dispatcher.session.offered = description.capabilities(version)
    result: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": dispatcher.session.offered,
        "serverInfo": description.info_of(version),
    }
    if description.instructions is not None:
        result["instructions"] = description.instructions
    return dumps(result)


def initialized(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
    dispatcher.session.ready()


def roots_changed(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
    """The client's roots have changed: forget the stored ones."""
    dispatcher.session.take_roots(None)


def ping(dispatcher: Dispatcher, request: Request) -> bytes:
    return b"{}"


def discover(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return the server's capabilities and complete `serverInfo` without a handshake (MCP 2026-07-28)."""
    description = dispatcher.runtime.description
    result: dict[str, Any] = {
        "supportedVersions": [STATELESS],
        "capabilities": description.capabilities(STATELESS),
        **dispatcher.runtime.pages.caching(STATELESS),
        "resultType": "complete",
        "_meta": {SERVER_KEY: description.info_of(STATELESS)},
    }
    if description.instructions is not None:
        result["instructions"] = description.instructions
    return dumps(result)


def cancelled(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
    """Cancel a request; an unknown, ended or invalid id is ignored."""
    id = params.get("requestId")
    if type(id) in (str, int):
        key = dumps(id)
        said = {name: value for name, value in params.items() if name != "requestId"}
        dispatcher.requests.cancel(key, said)
        dispatcher.changes.stop_listening(key)
