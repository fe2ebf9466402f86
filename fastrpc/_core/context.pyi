"""The base class of `fastrpc.Context`: at first it holds the message's text and nothing else."""

from typing import Any

from fastrpc.engine.ports import OutboundChannel

class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    cancelled: bool
    @property
    def ended(self) -> bool:
        """Whether the function of the call has returned."""
    @property
    def asks_no_progress(self) -> bool:
        """Whether the request has no progress token."""
    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
    @property
    def protocol_version(self) -> str:
        """The version that the client speaks."""
    @property
    def client_info(self) -> dict[str, Any]:
        """The clientInfo of the client: its name and version (MCP: Implementation)."""
    @property
    def _tool(self) -> Any:
        """The tool that is called; None once the request has been looked at, and for one made by hand."""
    @property
    def _is_recorded(self) -> bool:
        """Whether a budget may count what the call spends: reading it parses nothing."""
    @property
    def _channel(self) -> OutboundChannel | None: ...
    def fill(
        self,
        request_id: str | int,
        protocol_version: str,
        client_info: dict[str, Any],
        link: OutboundChannel | None,
    ) -> None:
        """Set the attributes, once; `link` is the channel to the client, or None."""
