"""Definitions of component objects: what the engine calls for a tool, a resource or a prompt that no registry
has, since a provider or a transform has made it. Made once for a resource or a prompt object, and anew for
each call of a tool object, which costs some microseconds.
"""

from __future__ import annotations

from copy import copy

from fastrpc import running_call
from fastrpc.compat.components.described_tool import DescribedTool
from fastrpc.compat.components.tools import FunctionTool
from fastrpc.compat.dialect import FASTMCP
from fastrpc.compat.functions import adapted
from fastrpc.compat.functions.contents_meta import with_meta
from fastrpc.compat.values import plain, prompt_value, resource_value, tool_value
from fastrpc.definitions.handler import made
from fastrpc.definitions.prompt import Prompt as PromptDefinition
from fastrpc.definitions.resource import Resource as ResourceDefinition
from fastrpc.definitions.resource import ResourceTemplate as TemplateDefinition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.components.tools import Tool


def definition_of(kind: str, component: Any, server: Any) -> Any:
    """Return the definition of a component object: `kind` is ``tool``, ``resource``, ``template`` or
    ``prompt``. Raises DefinitionError."""
    if kind == "tool":
        return tool_definition_of(component, server)
    kept = component.__dict__.get("_served")
    if kept is None or kept[0] is not server:  # several servers may have a provider
        definition = _made(kind, component, server)
        if hasattr(server, "_style_failures"):
            server._style_failures(definition)
        kept = component._served = server, definition
    return kept[1]


def tool_definition_of(tool: Tool, server: Any) -> Any:
    """Return the definition of a tool object for a server, by the name that the object has now."""
    if isinstance(tool, FunctionTool) and type(tool).run is FunctionTool.run:
        found = copy(tool._definition)
        found.name, found.style = tool.name, server._style
        if server.refuses_conversions:
            from fastrpc.compat.functions.strict_arguments import strict

            found._signature = strict(found.signature)
        return found
    return DescribedTool(tool.descriptor(), runner(tool), server._style)


def runner(tool: Tool) -> Any:
    """Return what calls a tool object by its ``run``: with the arguments and, in the SDK, the Context."""
    code = getattr(tool.run, "__code__", None)
    takes_context = code is not None and code.co_argcount > 2

    async def call(arguments: dict[str, Any], context: Any) -> Any:
        with running_call.running(context):
            if not takes_context:
                return tool_value(await tool.run(arguments))
            from fastrpc.compat.context import Context

            run: Any = tool.run
            return tool_value(await run(arguments, Context(context, context.server)))

    return call


def _made(kind: str, component: Any, server: Any) -> Any:
    options = {
        "name": component.name,
        "title": component.title,
        "description": None if component.is_docstring else component.description,
        "icons": plain(component.icons),
        "meta": component.meta,
    }
    function: Any = component.function()
    if kind == "prompt":
        function = adapted(function, server, prompt_value, FASTMCP)
        return made(PromptDefinition, function, {**options, "name": component.key})
    options["mime_type"] = component.mime_type
    options["uri"] = component.key
    kinds: Any = ResourceDefinition if kind == "resource" else TemplateDefinition
    function = with_meta(function, component.meta, FASTMCP, kind)
    return made(kinds, adapted(function, server, resource_value), options)
