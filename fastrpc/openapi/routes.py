"""What an operation of an OpenAPI document becomes: the first route map that matches decides, else a tool."""

from __future__ import annotations

import re
from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from fastrpc.openapi.document import Operation


class MCPType(Enum):
    """What an operation becomes."""

    TOOL = "TOOL"
    RESOURCE = "RESOURCE"
    RESOURCE_TEMPLATE = "RESOURCE_TEMPLATE"
    EXCLUDE = "EXCLUDE"


class RouteMap:
    """The operations of these `methods` whose path contains a match of `pattern`, and that have all `tags`,
    become an `mcp_type`; `mcp_tags` are added to their own."""

    def __init__(
        self,
        *,
        methods: Iterable[str] | Literal["*"] = "*",
        pattern: str | re.Pattern[str] = r".*",
        tags: Iterable[str] = (),
        mcp_type: MCPType,
        mcp_tags: Iterable[str] = (),
    ) -> None:
        self.methods = "*" if methods == "*" else {method.upper() for method in methods}
        self.pattern = re.compile(pattern)
        self.tags = set(tags)
        self.mcp_type = mcp_type
        self.mcp_tags = set(mcp_tags)

    def matches(self, operation: Operation) -> bool:
        """Whether this map decides about an operation."""
        return (
            (self.methods == "*" or operation.method in self.methods)
            and self.pattern.search(operation.path) is not None
            and self.tags.issubset(operation.tags)
        )


DEFAULT = RouteMap(mcp_type=MCPType.TOOL)
