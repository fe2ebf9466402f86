"""Adds the operations of an OpenAPI document to a server: tools, resources and resource templates.

The input schema of a tool has a property for each parameter and for each member of an object body. The HTTP
method sets a tool's effect: GET and HEAD read, DELETE destroys, all others write.
"""

from __future__ import annotations

import re
from collections import Counter
from keyword import iskeyword

from fastrpc.content import Contents
from fastrpc.definitions.tool import Tool
from fastrpc.errors import DefinitionError, FastrpcError, ToolError
from fastrpc.openapi.document import operations_of
from fastrpc.openapi.requests import OperationRequest, result_of
from fastrpc.openapi.routes import DEFAULT, MCPType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
    from typing import Any

    from fastrpc.openapi.document import Operation, Schema
    from fastrpc.openapi.routes import RouteMap
    from fastrpc.options import ToolAnnotations
    from fastrpc.server import Server

    Send = Callable[[Mapping[str, Any]], Awaitable[Any]]

LONGEST_NAME = 56
ANNOTATIONS: dict[str, ToolAnnotations] = {
    "GET": {"readOnlyHint": True, "openWorldHint": True},
    "HEAD": {"readOnlyHint": True, "openWorldHint": True},
    "OPTIONS": {"readOnlyHint": True, "openWorldHint": True},
    "PUT": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
    "DELETE": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
}
WRITES: ToolAnnotations = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}


def add_operations(
    server: Server,
    document: Mapping[str, Any],
    client: Any,
    *,
    route_maps: Iterable[RouteMap] = (),
    route_of_operation: Callable[[Operation, MCPType], MCPType | None] | None = None,
    adjust: Callable[[Operation, Any], object] | None = None,
    names: Mapping[str, str] | None = None,
    headers_of_call: Callable[[], Mapping[str, str]] | None = None,
    tags: Iterable[str] = (),
    **tool_options: Any,
) -> None:
    """Add the operations of an OpenAPI document to a server. `client` sends the requests, to its base URL.

    `route_maps` are tried in order, then all operations are tools; `route_of_operation` may decide otherwise.
    `names` gives names by operationId. `adjust` may change a `Tool` before it is added.
    `headers_of_call` returns headers to send besides the client's. `tags` are added to those of the document.
    `tool_options` are options of each `Tool`. Raises DefinitionError, and ImportError without
    openapi-pydantic.
    """
    taken = {each: TakenNames() for each in MCPType}
    maps = list(route_maps)
    hides_failures = "style" in tool_options and tool_options["style"].hides_failures
    failure = FastrpcError if hides_failures else ToolError
    for operation in operations_of(document):
        route = next((each for each in maps if each.matches(operation)), DEFAULT)
        kind = route.mcp_type
        if route_of_operation is not None:
            kind = route_of_operation(operation, kind) or kind
        if kind is MCPType.EXCLUDE:
            continue
        all_tags = {*operation.tags, *route.mcp_tags, *tags}
        described = {
            "name": taken[kind].free(name_of(operation, names or {})),
            "description": operation.description
            or operation.summary
            or f"Executes {operation.method} {operation.path}",
            "meta": {"fastmcp": {"tags": sorted(all_tags)}} if all_tags else None,
        }
        schema, names_of, members = _inputs(operation)
        send = OperationRequest(operation, client, headers_of_call or dict, names_of, members, failure).send
        if kind is MCPType.TOOL:
            tool = _tool(operation, send, input_schema=schema, **described, **tool_options)
            if adjust is not None:
                adjust(operation, tool)
            server.registries.tools.add(tool)
        else:
            _add_resource(server, operation, send, described)


def name_of(operation: Operation, names: Mapping[str, str]) -> str:
    """Return the name of an operation: from `names`, its operationId up to ``__``, or its summary or path."""
    given = operation.operation_id
    if given:
        name = names.get(given) or given.partition("__")[0] or given
    else:
        name = operation.summary or f"{operation.method}_{operation.path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", re.sub(r"[\s.\-]+", "_", name)).strip("_")
    return re.sub(r"_{2,}", "_", name)[:LONGEST_NAME] or operation.method.lower()


class TakenNames:
    """The names of one kind of entry."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        """Each name that is taken, with the last number that was appended to it."""

    def free(self, name: str) -> str:
        """Take a name; a number is appended if it is taken."""
        free, number = name, self._last.get(name, 1)
        while free in self._last:
            number += 1
            free = f"{name}_{number}"
        self._last[name] = number
        self._last.setdefault(free, 1)
        return free


def _tool(operation: Operation, send: Send, **options: Any) -> Tool:
    schema = operation.result_schema
    wraps = schema is not None and schema.get("type") != "object"

    async def call(**arguments: Any) -> Any:
        return result_of(await send(arguments), wraps)

    call.__name__ = options["name"]
    annotations = ANNOTATIONS.get(operation.method, WRITES)
    return Tool(call, annotations=annotations, structured=False, **options)


def _add_resource(server: Server, operation: Operation, send: Send, described: dict[str, Any]) -> None:
    """Add an operation as a resource, or as a template of its path's variables."""
    variables = [each.name for each in operation.parameters if each.place == "path"]
    uri = f"resource://{described['name']}" + "".join(f"/{{{each}}}" for each in variables)

    async def read(arguments: dict[str, Any]) -> Any:
        response = await send(arguments)
        kind = response.headers.get("content-type", "text/plain").partition(";")[0]
        is_text = kind.startswith("text/") or "json" in kind or "xml" in kind
        return Contents(response.text if is_text else response.content, kind)

    function = _with_parameters(read, variables)
    function.__name__ = described["name"]
    server.resource(uri, mime_type="application/json", **described)(function)


def _with_parameters(read: Any, variables: list[str]) -> Any:
    """Return a coroutine function with a parameter for each variable of a template: `read` as its body."""
    for each in variables:
        if not each.isidentifier() or iskeyword(each):
            raise DefinitionError(f"openapi: {each!r} cannot be a variable of a resource; make it a tool")
    pairs = ", ".join(f"{each!r}: {each}" for each in variables)
    parameters = ", ".join(f"{each}: str" for each in variables)
    made: dict[str, Any] = {}
    exec(f"async def resource({parameters}):\n    return await read({{{pairs}}})", {"read": read}, made)
    return made["resource"]


def _inputs(operation: Operation) -> tuple[Schema, dict[tuple[str, str], str], Collection[str] | None]:
    """Return the input schema of an operation, and `names` and `body_members` of its `OperationRequest`.

    A name that a parameter has in common with another, or with a member of the body, gets its place as a
    suffix: ``id__path``.
    """
    members: dict[str, Any] = {}
    if operation.body_type is not None and operation.body_schema.get("type") == "object":
        members = operation.body_schema.get("properties") or {}
    counts = Counter([*members, *(parameter.name for parameter in operation.parameters)])
    properties: dict[str, Any] = {}
    required: list[str] = []
    names: dict[tuple[str, str], str] = {}
    for parameter in operation.parameters:
        is_shared = counts[parameter.name] > 1
        name = f"{parameter.name}__{parameter.place}" if is_shared else parameter.name
        names[parameter.place, parameter.name] = name
        schema = dict(parameter.schema)
        if is_shared:
            place = f"({parameter.place.capitalize()} parameter)"
            schema["description"] = f"{schema.get('description', '')} {place}".strip()
        properties[name] = schema
        if parameter.required:
            required.append(name)
    if members:
        properties.update(members)
        if operation.body_required:
            required += operation.body_schema.get("required") or ()
    elif operation.body_type is not None:
        properties["body"] = operation.body_schema
        if operation.body_required:
            required.append("body")
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if operation.definitions:
        schema["$defs"] = operation.definitions
    return schema, names, members or None
