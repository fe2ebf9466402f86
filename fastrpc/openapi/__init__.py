"""Servers made of an OpenAPI document: each operation of an HTTP API is a tool, a resource or a template.

`add_operations` adds them to a server; a call is one HTTP request by the given client (httpx's interface).
Documents of OpenAPI 3.0 and 3.1 are validated by openapi-pydantic; schemas are converted to JSON Schema
2020-12. pydantic is imported when a document is used; install fastrpc-mcp[openapi]. Which operation
becomes what is decided by routes (`fastrpc.openapi.routes`).
"""

from __future__ import annotations

from fastrpc.openapi.document import Operation, OperationParameter, operations_of
from fastrpc.openapi.routes import MCPType, RouteMap
from fastrpc.openapi.tools import add_operations

__all__ = ["MCPType", "Operation", "OperationParameter", "RouteMap", "add_operations", "operations_of"]
