"""What a client may ask, when, and in which version: the lifecycle of MCP as a table. No I/O.

Two eras share a connection. Up to 2025-11-25 a client shakes hands with `initialize` and the session
keeps the version they agreed on. From 2026-07-28 on there is no session: each request carries its
version and capabilities in ``params._meta``, and is judged by that alone, before or behind a handshake.
"""

from __future__ import annotations

from fastrpc.errors import InvalidParams, InvalidRequest, Overloaded, UnsupportedProtocolVersion, excerpt
from fastrpc.quotas import ENTRY_BYTES, SESSION_BYTES, Quota, size_of
from fastrpc.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    LOG_KEY,
    MODERN,
    VERSION_KEY,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NEW = "new"  # nothing has been agreed
AGREED = "agreed"  # `initialize` is answered
READY = "ready"  # the client has said `notifications/initialized`

# Requests without an envelope that may come before the handshake. Everything may come behind it.
EARLY = ("initialize", "ping")

LOG_LEVELS = {
    "debug": 0,
    "info": 1,
    "notice": 2,
    "warning": 3,
    "error": 4,
    "critical": 5,
    "alert": 6,
    "emergency": 7,
}
"""The levels of log messages and how grave each is (MCP: LoggingLevel)."""


class Session:
    """One peer's lifecycle: its state and, from the handshake on, what it said of itself.

    All that is kept of what the client has sent is counted in `quota`, and refused where it is too much.
    """

    __slots__ = (
        "_roots_bytes",
        "client_capabilities",
        "client_info",
        "lasting",
        "log_level",
        "offered",
        "quota",
        "roots",
        "state",
        "subscriptions",
        "version",
    )

    def __init__(self) -> None:
        self.state = NEW
        self.lasting = True
        """Whether there is a client behind it that stays the same."""
        self.quota = Quota(SESSION_BYTES)
        self._roots_bytes = 0
        self.version: str | None = None
        self.client_info: dict[str, Any] = {}
        self.client_capabilities: dict[str, Any] = {}
        self.offered: dict[str, Any] = {}
        """The server's capabilities as the client was told of them."""
        self.log_level: str | None = None
        """What `logging/setLevel` has asked for; None: the client has not said."""
        self.roots: list[dict[str, Any]] | None = None
        """The client's answer to `roots/list`, until it says that they have changed."""
        self.subscriptions: set[str] = set()
        """The URIs of resources whose changes the client wants to hear of."""

    def agree(self, params: dict[str, Any]) -> str:
        """Take an `initialize`'s params and return the version to answer with.

        A version that is not served is answered with the latest that has a handshake (MCP 2025-11-25,
        lifecycle: version negotiation). A second `initialize` begins anew. Raises InvalidParams, and
        Overloaded if other sessions leave no room for what the client says of itself.
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
        self._keep(size - self.quota.used, "capabilities and clientInfo")  # in the place of all before
        self._roots_bytes = 0
        self.version = requested if requested in LEGACY_VERSIONS else LATEST_LEGACY
        self.client_capabilities = capabilities
        self.client_info = client
        self.log_level = self.roots = None
        self.subscriptions.clear()
        self.state = AGREED
        return self.version

    def _keep(self, size: int, name: str) -> None:
        """Count `size` more bytes that are kept for the client; `name` is what they are.

        Raises InvalidParams if that is too much for one session, Overloaded if it is for now.
        """
        quota = self.quota
        if not quota.take(size):
            if quota.used + size > quota.limit:
                raise InvalidParams(f"{name}: more than the {quota.limit} bytes that a session may have kept")
            raise Overloaded(f"Server busy: no room to keep {name}")

    def subscribe(self, uri: str) -> None:
        """Keep the URI of a resource of whose changes the client wants to hear.

        Raises InvalidParams and Overloaded, where there is no room; InvalidRequest if no client would hear of
        them.
        """
        self.check_lasting("resources/subscribe")
        if uri not in self.subscriptions:
            self._keep(bytes_of_uri(uri), "subscriptions")
            self.subscriptions.add(uri)

    def unsubscribe(self, uri: str) -> None:
        if uri in self.subscriptions:
            self.subscriptions.remove(uri)
            self.quota.release(bytes_of_uri(uri))

    def take_roots(self, roots: list[dict[str, Any]] | None) -> None:
        """Keep the client's answer to `roots/list`, if there is room for it; None: it counts no longer."""
        self.quota.release(self._roots_bytes)
        size = 0 if roots is None else size_of(roots, self.quota.limit)
        self.roots = roots if self.quota.take(size) else None
        self._roots_bytes = 0 if self.roots is None else size

    def check_lasting(self, method: str) -> None:
        """Raise InvalidRequest for a method that means nothing without a session of the client's own."""
        if not self.lasting:
            raise InvalidRequest(f"{method}: needs a session, which begins with initialize")

    def ready(self) -> None:
        """The client has acknowledged the handshake."""
        if self.state == AGREED:
            self.state = READY

    def version_of(self, method: str, params: dict[str, Any]) -> str:
        """Return the version by which a request is to be judged.

        Raises InvalidRequest for a request out of turn, InvalidParams for an incomplete envelope and
        UnsupportedProtocolVersion for one that names another version than 2026-07-28.
        """
        meta = params.get("_meta")
        if meta is not None and not isinstance(meta, dict):
            raise InvalidParams("_meta: expected an object")
        if method == "server/discover" or (meta is not None and VERSION_KEY in meta):
            check_envelope(meta or {})
            return MODERN
        if self.version is None:
            if method not in EARLY:
                raise InvalidRequest(f"{excerpt(method)}: the first request must be initialize")
            return LATEST_LEGACY
        return self.version


def bytes_of_uri(uri: str) -> int:
    """Return about how many bytes it takes to keep a URI."""
    return size_of(uri, SESSION_BYTES) + ENTRY_BYTES


def check_envelope(meta: dict[str, Any]) -> None:
    """Refuse a request whose 2026-07-28 envelope is incomplete or names another version."""
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
    if meta[VERSION_KEY] != MODERN:
        raise UnsupportedProtocolVersion(
            "Unsupported protocol version", {"supported": [MODERN], "requested": excerpt(meta[VERSION_KEY])}
        )
