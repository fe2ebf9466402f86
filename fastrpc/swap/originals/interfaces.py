"""What `fastrpc.swap.originals` needs of one low-level server of an original. For type checkers only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from fastrpc.errors import ProtocolError


class Original(Protocol):
    """A low-level server of the SDK's 1.x or 2.x, with the options of one ``run`` and its lifespan's
    value."""

    state: Any
    """What the server's lifespan has given."""
    info: dict[str, Any]
    """The `serverInfo` (MCP: Implementation)."""
    instructions: str | None
    hands_initialize: bool
    """Whether the original takes part in the handshake, whose result is then its own."""
    session_versions: tuple[str, ...]
    """The protocol versions with a handshake that the installed original has, the latest last."""
    methods: Mapping[str, tuple[str, ...]]
    """The requests that clients may send, and the versions of each."""
    notifications: Collection[str]
    """The notifications that the original has a handler for."""
    add_tools: Callable[[list[Any]], object] | None
    """Set by the server: called with the tools that may be called by the compiled connection."""
    planned: set[str]
    """The names of the tools that `add_tools` has been called with."""

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return the capabilities that are declared to clients of a version."""

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request of the running call (`own_methods.current`). Raises
        ProtocolError."""

    async def take(self, method: str, params: dict[str, Any], dispatcher: Any) -> None:
        """Call the handler of a notification."""

    def error_of(self, error: Exception, version: str) -> ProtocolError:
        """Return the JSON-RPC error for an exception of a handler."""

    def find_plain_tools(self) -> bool:
        """Look for tools that may be called by the compiled connection; return whether there are new ones."""
