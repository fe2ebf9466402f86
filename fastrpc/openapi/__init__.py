"""Servers made of an OpenAPI document: each operation of an HTTP API is a tool, a resource or a template.

`add_operations` adds them to a server; a call is one HTTP request by the given client (httpx's interface).
Documents of OpenAPI 3.0 and 3.1 are validated by openapi-pydantic; schemas are converted to JSON Schema
2020-12. Imported when a document is used, with pydantic; install fastrpc-mcp[openapi]. Which operation
becomes what is decided by routes (`fastrpc.openapi.routes`).
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.openapi.document import Operation, OperationParameter, operations_of
    from fastrpc.openapi.routes import MCPType, RouteMap
    from fastrpc.openapi.tools import add_operations

__all__ = ["MCPType", "Operation", "OperationParameter", "RouteMap", "add_operations", "operations_of"]

_HOME_OF = {
    "MCPType": "fastrpc.openapi.routes",
    "Operation": "fastrpc.openapi.document",
    "Parameter": "fastrpc.openapi.document",
    "RouteMap": "fastrpc.openapi.routes",
    "add_operations": "fastrpc.openapi.tools",
    "operations_of": "fastrpc.openapi.document",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOME_OF, name)
