"""What the requests of a server to its client have in common (MCP: client features; InputRequest).

An `InputRequest` knows its method and params in each version, the capability that the client must declare,
and how the client's result becomes a Python value. `fastrpc.client_requests.pending` sends it.
"""

from __future__ import annotations

from types import GenericAlias

from fastrpc.errors import ToolError
from fastrpc.protocol.versions import VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generic, TypeVar

    from fastrpc.engine.ports import ClientRequest

    Value = TypeVar("Value", covariant=True)
else:

    class Generic:
        """Replaces `typing.Generic`, whose import costs 10 ms."""

        __slots__ = ()
        __class_getitem__ = classmethod(GenericAlias)

    Value = None


class InvalidClientResult(Exception):
    """The client's result is not a valid response to the request. The message says why."""


class ClientRefusal(ToolError):
    """The client has answered a request with an error, which is `error` if it is one of JSON-RPC's."""

    def __init__(self, text: str, error: object) -> None:
        super().__init__(text)
        self.error: dict[str, Any] | None = None
        if isinstance(error, dict) and type(error.get("code")) is int and type(error.get("message")) is str:
            self.error = error


class InputRequest(Generic[Value]):
    """A request to the client, and the type of its answer. The client must have declared `capability` and, if
    set, its `mode`. `versions` are those that have it."""

    method = ""
    capability = ""
    mode = ""
    versions: tuple[str, ...] = VERSIONS

    def params(self, version: str) -> dict[str, Any]:
        """Return the params of the request. Raises ToolError if the version cannot express them."""
        return {}

    def known(self, request: ClientRequest) -> Value | None:
        """Return the answer if it is already known, else None."""
        return None

    def read(self, result: object, request: ClientRequest) -> Value:
        """Return the value of the client's result. Raises `InvalidClientResult`."""
        raise NotImplementedError

    def obstacle(self, version: str, capabilities: dict[str, Any]) -> str | None:
        """Return why this client cannot be asked, or None if it can."""
        if version not in self.versions:
            return f"protocol {version}, which the client speaks, has no {self.wanted}"
        declared = capabilities.get(self.capability)
        if not isinstance(declared, dict) or not self._is_declared(declared):
            return f"the client does not offer {self.wanted}"
        return None

    def _is_declared(self, declared: dict[str, Any]) -> bool:
        """Whether the mode is declared; forms are by default (MCP 2025-11-25, elicitation: capabilities)."""
        return not self.mode or self.mode in declared or (self.mode == "form" and "url" not in declared)

    @property
    def needs(self) -> dict[str, dict[str, Any]]:
        """The capabilities that the client must declare (MCP: ClientCapabilities)."""
        return {self.capability: {self.mode: {}} if self.mode else {}}

    @property
    def wanted(self) -> str:
        """The same in words."""
        return f"{self.capability} ({self.mode})" if self.mode else self.capability
