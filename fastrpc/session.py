"""What a client may ask, when, and in which version: the lifecycle of MCP as a table. No I/O.

Two eras share a connection. Up to 2025-11-25 a client shakes hands with `initialize` and the session
keeps the version they agreed on. From 2026-07-28 on there is no session: each request carries its
version and capabilities in ``params._meta``, and is judged by that alone, before or behind a handshake.
"""

from __future__ import annotations

from fastrpc.errors import InvalidParams, InvalidRequest, UnsupportedProtocolVersion, excerpt
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
    """One peer's lifecycle: its state and, from the handshake on, what it said of itself."""

    __slots__ = (
        "client_capabilities",
        "client_info",
        "log_level",
        "offered",
        "roots",
        "state",
        "subscriptions",
        "version",
    )

    def __init__(self) -> None:
        self.state = NEW
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
        lifecycle: version negotiation). A second `initialize` begins anew. Raises InvalidParams.
        """
        requested = params.get("protocolVersion")
        if not isinstance(requested, str):
            raise InvalidParams("protocolVersion: expected a string")
        capabilities = params.get("capabilities", {})
        client = params.get("clientInfo", {})
        for name, value in (("capabilities", capabilities), ("clientInfo", client)):
            if not isinstance(value, dict):
                raise InvalidParams(f"{name}: expected an object")
        self.version = requested if requested in LEGACY_VERSIONS else LATEST_LEGACY
        self.client_capabilities = capabilities
        self.client_info = client
        self.log_level = self.roots = None
        self.subscriptions.clear()
        self.state = AGREED
        return self.version

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
