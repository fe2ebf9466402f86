"""`ToolInjectionMiddleware`: tools that come with the middleware. They are added to the server, in the place
of those with the same name, so that a call of them costs what any call costs."""

from __future__ import annotations

from typing import Any

from fastrpc.compat.context import Context
from fastrpc.compat.middleware.base import Middleware
from fastrpc.definitions.handler import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class ToolInjectionMiddleware(Middleware):
    """Adds `tools` to the server that it is added to: functions, or what `add_tool` takes."""

    def __init__(self, tools: Sequence[Any]) -> None:
        self._tools = {_name_of(tool): tool for tool in tools}

    @property
    def injected_tools(self) -> list[Any]:
        """The tools, of several with one name the last."""
        return [*self._tools.values()]

    def get_injected_tool(self, name: str) -> Any:
        """Return the tool of a name, or None."""
        return self._tools.get(name)

    def attach(self, server: Any) -> None:
        """Add the tools to a server."""
        for name, tool in self._tools.items():
            if name in server.registries.tools:
                server.remove_tool(name)
            server.add_tool(tool)


def _name_of(tool: Any) -> str:
    name = getattr(tool, "name", None)
    return name if isinstance(name, str) else name_of(tool)


async def list_prompts(context: Context) -> list[dict[str, Any]]:
    """List the prompts of this server."""
    return _descriptors(context, context.fastmcp.registries.prompts)


async def get_prompt(
    context: Context, name: str, arguments: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a prompt of this server, by its name and its arguments."""
    from fastrpc.errors import ToolError
    from fastrpc.methods.prompts import messages_of

    prompt = context.fastmcp.registries.prompts.get(name)
    if prompt is None:
        raise ToolError(f"Unknown prompt: {name}")
    bound = prompt.signature.bind(arguments or {})
    value = prompt.signature.call(prompt.function, bound, context.inner)
    return messages_of(await value if prompt.is_async else value, context.protocol_version)


async def list_resources(context: Context) -> list[dict[str, Any]]:
    """List the resources of this server."""
    return _descriptors(context, context.fastmcp.registries.resources)


async def read_resource(context: Context, uri: str) -> list[dict[str, Any]]:
    """Return the contents of a resource of this server, by its URI."""
    found: list[Any] = await context.read_resource(uri)
    return [{"content": part.content, "mime_type": part.mime_type} for part in found]


def _descriptors(context: Context, registry: Any) -> list[dict[str, Any]]:
    return [entry.descriptor(context.protocol_version) for entry in registry]


class PromptToolMiddleware(ToolInjectionMiddleware):
    """Adds the tools ``list_prompts`` and ``get_prompt``."""

    def __init__(self) -> None:
        super().__init__([list_prompts, get_prompt])


class ResourceToolMiddleware(ToolInjectionMiddleware):
    """Adds the tools ``list_resources`` and ``read_resource``."""

    def __init__(self) -> None:
        super().__init__([list_resources, read_resource])
