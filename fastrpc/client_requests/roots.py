"""The folders that the client works in, its roots (MCP, client features: roots)."""

from __future__ import annotations

from fastrpc.client_requests.base import InputRequest, InvalidClientResult
from fastrpc.protocol.versions import SESSION_VERSIONS
from fastrpc.schema.converters import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.ports import ClientRequest
    from fastrpc.options import Root


class Roots(InputRequest["list[Root]"]):
    """The folders (roots) that the client works in. See `fastrpc.Context.roots`."""

    method = "roots/list"
    capability = "roots"

    def known(self, request: ClientRequest) -> list[Root] | None:
        """Return the stored roots: a client that declares `listChanged` is asked once per session."""
        known: list[Root] | None = request.known_roots
        return known

    def read(self, result: object, request: ClientRequest) -> list[Root]:
        roots: Any = result.get("roots") if isinstance(result, dict) else None
        if not isinstance(roots, list):
            raise InvalidClientResult(f"roots: expected an array, got {shorten(roots)}")
        for root in roots:
            if not isinstance(root, dict) or not isinstance(root.get("uri"), str):
                raise InvalidClientResult(f"roots: expected objects with a uri, got {shorten(root)}")
        declared = request.client_capabilities.get("roots")
        if request.version in SESSION_VERSIONS and declared and declared.get("listChanged") is True:
            request.keep_roots(roots)
        return roots
