"""The methods a client may call, one file a feature, and the table that names them all.

A feature's file has a function for each of its methods. A new feature is a new file and its lines here.
"""

from __future__ import annotations

from fastrpc.methods import lifecycle, tools
from fastrpc.versions import LEGACY_VERSIONS, MODERN, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.dispatcher import Dispatcher, Request

    Serve = Callable[[Dispatcher, Request], "bytes | None"]


class Method:
    """A request method: the versions that have it, and the function that serves it.

    `serve` returns the result as JSON text, or None when it will answer later. `needs` names the property
    of the service that says whether this server has anything for the method; without it all have.
    """

    __slots__ = ("needs", "serve", "versions")

    def __init__(self, versions: tuple[str, ...], serve: Serve, needs: str = "") -> None:
        self.versions = versions
        self.serve = serve
        self.needs = needs


def _later(room: str, name: str) -> Serve:
    """A method whose room is imported by the first request that wants it."""

    def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
        from importlib import import_module

        result: bytes | None = getattr(import_module(f"fastrpc.methods.{room}"), name)(dispatcher, request)
        return result

    return serve


METHODS: dict[str, Method] = {
    "initialize": Method(LEGACY_VERSIONS, lifecycle.initialize),
    "ping": Method(LEGACY_VERSIONS, lifecycle.ping),
    "server/discover": Method((MODERN,), lifecycle.discover),
    "tools/list": Method(VERSIONS, tools.list_tools),
    "tools/call": Method(VERSIONS, tools.call_tool),
    "resources/list": Method(VERSIONS, _later("resources", "list_resources"), "has_resources"),
    "resources/templates/list": Method(VERSIONS, _later("resources", "list_templates"), "has_resources"),
    "resources/read": Method(VERSIONS, _later("resources", "read_resource"), "has_resources"),
    "resources/subscribe": Method(LEGACY_VERSIONS, _later("resources", "subscribe"), "has_resources"),
    "resources/unsubscribe": Method(LEGACY_VERSIONS, _later("resources", "unsubscribe"), "has_resources"),
    "prompts/list": Method(VERSIONS, _later("prompts", "list_prompts"), "has_prompts"),
    "prompts/get": Method(VERSIONS, _later("prompts", "get_prompt"), "has_prompts"),
    "completion/complete": Method(VERSIONS, _later("completion", "complete"), "has_completions"),
    "logging/setLevel": Method(LEGACY_VERSIONS, _later("logging", "set_level")),
    "subscriptions/listen": Method((MODERN,), _later("subscriptions", "listen")),
}

NOTIFICATIONS: dict[str, Callable[[Dispatcher, dict[str, Any]], object]] = {
    "notifications/initialized": lifecycle.initialized,
    "notifications/cancelled": lifecycle.cancelled,
    "notifications/roots/list_changed": lifecycle.roots_changed,
}
"""Notifications that mean something here. All others are silently taken."""
