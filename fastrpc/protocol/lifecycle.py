"""The lifecycle of MCP: which requests a client may send when, and in which version. No I/O.

Two protocols share a connection. Up to 2025-11-25 a client begins a session with `initialize`, and the
session keeps the negotiated version. From 2026-07-28 on there are no sessions: each request carries its
version and capabilities in ``params._meta``, and is checked against these alone, before or after a handshake.
"""

from __future__ import annotations

from fastrpc.errors import (
    InvalidParams,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    UnsupportedProtocolVersion,
    excerpt,
)
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST_SESSION_VERSION,
    LOG_KEY,
    SESSION_VERSIONS,
    STATELESS,
    VERSION_KEY,
)
from fastrpc.quotas import ENTRY_BYTES, SESSION_BYTES, Quota, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NEW = "new"  # before `initialize`
AGREED = "agreed"  # after the result of `initialize`
READY = "ready"  # after `notifications/initialized`

# Methods without an envelope that are allowed before the handshake. After it, all are.
EARLY = ("initialize", "ping")

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LOG_LEVELS = {level: severity for severity, level in enumerate(_LEVELS)}
"""The levels of log messages and their severity (MCP: LoggingLevel)."""


class SessionState:
    """The state of one client's connection: its lifecycle and, after the handshake, what the client has
    declared.

    All stored data of the client is counted in `quota`, and refused if it is too much.
    """

    __slots__ = (
        "_roots_bytes",
        "client_capabilities",
        "client_info",
        "client_requests",
        "first_request_id",
        "hears_changes",
        "is_heard_elsewhere",
        "lasting",
        "log_level",
        "offered",
        "on_change",
        "quota",
        "roots",
        "state",
        "subscriptions",
        "task_ids",
        "version",
    )

    def __init__(self) -> None:
        self.state = NEW
        self.lasting = True
        """Whether all requests come from the same client."""
        self.quota = Quota(SESSION_BYTES)
        self._roots_bytes = 0
        self.version: str | None = None
        self.client_info: dict[str, Any] = {}
        self.client_capabilities: dict[str, Any] = {}
        self.client_requests: Any = None
        """The server's requests to the client (`fastrpc.client_requests.pending`), once there was one."""
        self.first_request_id = 1
        """The id of the first of them: other processes that serve the session must use others."""
        self.hears_changes = True
        """Whether this process notifies the client of changes of which all processes hear, and watches what
        it has subscribed to: no other one does."""
        self.is_heard_elsewhere = False
        """Whether each process that notifies the client of changes sends it what is being sent now."""
        self.on_change: Callable[[str | None, dict[str, str], tuple[str, ...]], object] | None = None
        """Called with what the client has set, be it new here or not (`SessionChange`): the log level, URIs
        that it has subscribed to, and those that it has unsubscribed from. It is called before the change is
        made here, and raises Overloaded if other processes cannot be told now."""
        self.offered: dict[str, Any] = {}
        """The capabilities that the server has declared to the client."""
        self.log_level: str | None = None
        """The level that `logging/setLevel` has set; None if the client has not set one."""
        self.roots: list[dict[str, Any]] | None = None
        """The client's result of `roots/list`, until it notifies that the roots have changed."""
        self.subscriptions: dict[str, str] = {}
        """The URIs of the resources that the client has subscribed to."""
        self.task_ids: frozenset[str] = frozenset()
        """The client's tasks that have not ended (MCP 2025-11-25)."""

    def agree(self, params: dict[str, Any]) -> str:
        """Handle the params of `initialize`, and return the version for the result.

        An unsupported version is answered with the latest that has a handshake (MCP 2025-11-25, lifecycle:
        version negotiation). A second `initialize` starts again. Raises InvalidParams, and Overloaded if
        other sessions leave no memory for what the client declares.
        """
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise InvalidParams("protocolVersion: expected a string")
        capabilities = params.get("capabilities", {})
        client = params.get("clientInfo", {})
        for name, value in (("capabilities", capabilities), ("clientInfo", client)):
            if not isinstance(value, dict):
                raise InvalidParams(f"{name}: expected an object")
        size = size_of(capabilities, self.quota.limit) + size_of(client, self.quota.limit)
        self._keep(size - self.quota.used, "capabilities and clientInfo")  # replaces what was counted before
        self._roots_bytes = 0
        self.version = requested if requested in SESSION_VERSIONS else LATEST_SESSION_VERSION
        self.client_capabilities = capabilities
        self.client_info = client
        self.log_level = self.roots = None
        self.subscriptions.clear()
        self.state = AGREED
        return self.version

    def _keep(self, size: int, name: str) -> None:
        """Count `size` more bytes that are stored for the client; `name` says what they are.

        Raises InvalidParams if one session may not store that much, Overloaded if there is no memory at the
        moment.
        """
        quota = self.quota
        if not quota.take(size):
            if quota.used + size > quota.limit:
                raise InvalidParams(f"{name}: more than the {quota.limit} bytes that a session may have kept")
            raise Overloaded(f"Server busy: no room to keep {name}")

    def subscribe(self, uri: str, asked: str | None = None) -> None:
        """Store a subscription to the URI of a resource, which the client has written as `asked`.

        Raises InvalidParams and Overloaded if there is no memory for it; InvalidRequest if the session cannot
        receive notifications.
        """
        self.check_lasting("resources/subscribe")
        if uri in self.subscriptions:
            self._changed(None, {uri: self.subscriptions[uri]}, ())
            return
        asked = uri if asked is None else asked
        size = bytes_of_subscription(uri, asked)
        self._keep(size, "subscriptions")
        try:
            self._changed(None, {uri: asked}, ())
        except ProtocolError:
            self.quota.release(size)
            raise
        self.subscriptions[uri] = asked

    def unsubscribe(self, uri: str) -> None:
        """Forget a subscription, if there is one. Raises Overloaded."""
        self._changed(None, {}, (uri,))
        if uri in self.subscriptions:
            self.quota.release(bytes_of_subscription(uri, self.subscriptions.pop(uri)))

    def set_log_level(self, level: str | None) -> None:
        """Handle `logging/setLevel`. Raises Overloaded."""
        self._changed(level, {}, ())
        self.log_level = level

    def _changed(
        self, log_level: str | None, subscribed: dict[str, str], unsubscribed: tuple[str, ...]
    ) -> None:
        if self.on_change is not None:
            self.on_change(log_level, subscribed, unsubscribed)

    def take_roots(self, roots: list[dict[str, Any]] | None) -> None:
        """Store the client's result of `roots/list`, if there is memory for it; None discards it."""
        self.quota.release(self._roots_bytes)
        size = 0 if roots is None else size_of(roots, self.quota.limit)
        self.roots = roots if self.quota.take(size) else None
        self._roots_bytes = 0 if self.roots is None else size

    def check_lasting(self, method: str) -> None:
        """Raise InvalidRequest for a method that has no meaning without a session."""
        if not self.lasting:
            raise InvalidRequest(f"{method}: needs a session, which begins with initialize")

    def ready(self) -> None:
        """Handle `notifications/initialized`."""
        if self.state == AGREED:
            self.state = READY

    def version_of(self, method: str, params: dict[str, Any]) -> str:
        """Return the protocol version of a request.

        Raises InvalidRequest for a request that is not allowed in this state, InvalidParams for an incomplete
        envelope, and UnsupportedProtocolVersion if the envelope names a version other than 2026-07-28.
        """
        meta = params.get("_meta")
        if meta is not None and not isinstance(meta, dict):
            raise InvalidParams("_meta: expected an object")
        if method == "server/discover" or (meta is not None and VERSION_KEY in meta):
            check_envelope(meta or {})
            return STATELESS
        if self.version is None:
            if method not in EARLY:
                raise InvalidRequest(f"{excerpt(method)}: the first request must be initialize")
            return LATEST_SESSION_VERSION
        return self.version


def bytes_of_subscription(uri: str, asked: str) -> int:
    """Return the memory of a subscription, in bytes."""
    return bytes_of_uri(uri) + (0 if asked == uri else bytes_of_uri(asked))


def bytes_of_uri(uri: str) -> int:
    """Return the estimated memory, in bytes, of a stored URI."""
    return size_of(uri, SESSION_BYTES) + ENTRY_BYTES


def check_envelope(meta: dict[str, Any]) -> None:
    """Check the envelope of a 2026-07-28 request. Raises InvalidParams and UnsupportedProtocolVersion."""
    for key, kind, expected in (
        (VERSION_KEY, str, "a string"),
        (CAPABILITIES_KEY, dict, "an object"),
    ):
        if key not in meta:
            raise InvalidParams(f"_meta: {key} is missing")
        if not isinstance(meta[key], kind):
            raise InvalidParams(f"_meta: {key}: expected {expected}")
    if not isinstance(meta.get(CLIENT_KEY, {}), dict):
        raise InvalidParams(f"_meta: {CLIENT_KEY}: expected an object")
    level = meta.get(LOG_KEY, "info")
    if not isinstance(level, str) or level not in LOG_LEVELS:
        raise InvalidParams(f"_meta: {LOG_KEY}: expected one of {', '.join(LOG_LEVELS)}")
    if meta[VERSION_KEY] != STATELESS:
        raise UnsupportedProtocolVersion(
            "Unsupported protocol version",
            {"supported": [STATELESS], "requested": excerpt(meta[VERSION_KEY])},
        )
