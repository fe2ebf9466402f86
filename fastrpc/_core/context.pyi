"""What `fastrpc.Context` is made of: a call that is known by its message's text alone until somebody asks."""

from typing import Any

from fastrpc.engine.ports import OutboundChannel

class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    cancelled: bool
    @property
    def ended(self) -> bool: ...
    @property
    def asks_no_progress(self) -> bool: ...
    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
    @property
    def protocol_version(self) -> str:
        """The version that the client speaks."""
    @property
    def client_info(self) -> dict[str, Any]:
        """What the client has said of itself (MCP: Implementation)."""
    @property
    def _link(self) -> OutboundChannel | None: ...
    def fill(
        self,
        request_id: str | int,
        protocol_version: str,
        client_info: dict[str, Any],
        link: OutboundChannel | None,
    ) -> None:
        """Say what it is the context of; `link` is the way to the client, or None. Only once."""
