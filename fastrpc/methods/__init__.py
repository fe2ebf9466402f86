"""The methods a client may call, one file a feature, and the table that names them all.

A feature's file has a function for each of its methods. A new feature is a new file and its lines here.
"""

from __future__ import annotations

from fastrpc.methods import lifecycle, tools
from fastrpc.session import LEGACY_VERSIONS, MODERN, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.dispatcher import Dispatcher, Request

    Serve = Callable[[Dispatcher, Request], "bytes | None"]


class Method:
    """A request method: the versions that have it, and the function that serves it.

    `serve` returns the result as JSON text, or None when it will answer later.
    """

    __slots__ = ("serve", "versions")

    def __init__(self, versions: tuple[str, ...], serve: Serve) -> None:
        self.versions = versions
        self.serve = serve


METHODS: dict[str, Method] = {
    "initialize": Method(LEGACY_VERSIONS, lifecycle.initialize),
    "ping": Method(LEGACY_VERSIONS, lifecycle.ping),
    "server/discover": Method((MODERN,), lifecycle.discover),
    "tools/list": Method(VERSIONS, tools.list_tools),
    "tools/call": Method(VERSIONS, tools.call_tool),
}

NOTIFICATIONS: dict[str, Callable[[Dispatcher, dict[str, Any]], object]] = {
    "notifications/initialized": lifecycle.initialized,
    "notifications/cancelled": lifecycle.cancelled,
}
"""Notifications that mean something here. All others, `notifications/progress` among them (it speaks of
requests that a server sends, and this one sends none), are silently taken."""
