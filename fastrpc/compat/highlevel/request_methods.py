"""The methods through which the originals answer requests, for programs that replace them: `SDK_METHODS`, and
FastMCP's ``async def _list_tools_mcp(self)``, which often filters what a client sees, and the like.

Requests are answered through such a method of a subclass; what it calls here does what the server would have
done. Costs nothing for other servers.
"""

from __future__ import annotations

from fastrpc.compat.dialect import installed_release
from fastrpc.compat.field_types import ModelType
from fastrpc.compat.models import typed
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.dialect import Dialect

RESULTS = {
    "prompts": "ListPromptsResult",
    "resources": "ListResourcesResult",
    "resourceTemplates": "ListResourceTemplatesResult",
    "tools": "ListToolsResult",
}

SDK_METHODS = (
    "call_tool",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tools",
    "read_resource",
)
"""Methods through which a server of the official SDK answers, where a program overrides them."""


class RequestMethods:
    """FastMCP's methods; they call `list_tools` and the others of the server."""

    dialect: Dialect

    if TYPE_CHECKING:  # `Interception` and `Catalogue` have them

        def _handle(self, handlers: Any) -> None: ...
        async def list_tools(self, **options: object) -> list[Any]: ...
        async def list_resources(self, **options: object) -> list[Any]: ...
        async def list_resource_templates(self, **options: object) -> list[Any]: ...
        async def list_prompts(self, **options: object) -> list[Any]: ...
        async def call_tool(self, name: str, arguments: Any = None) -> Any: ...
        async def read_resource(self, uri: Any) -> Any: ...
        async def render_prompt(self, name: str, arguments: Any = None) -> Any: ...

    def _override(self, method: str) -> None:
        """Have requests answered through a method that the program has overridden."""
        from fastrpc.compat.interception.overridden import answers_through

        known = self.__dict__.setdefault("_overridden", set())
        if method not in known:
            known.add(method)
            self._handle(answers_through(self, method))

    async def _list_tools_mcp(self, request: object = None) -> Any:
        return await self._inner_list("_list_tools_mcp", self.list_tools, "tools")

    async def _list_resources_mcp(self, request: object = None) -> Any:
        return await self._inner_list("_list_resources_mcp", self.list_resources, "resources")

    async def _list_resource_templates_mcp(self, request: object = None) -> Any:
        method = "_list_resource_templates_mcp"
        return await self._inner_list(method, self.list_resource_templates, "resourceTemplates")

    async def _list_prompts_mcp(self, request: object = None) -> Any:
        return await self._inner_list("_list_prompts_mcp", self.list_prompts, "prompts")

    async def _call_tool_mcp(self, key: str, arguments: dict[str, Any]) -> Any:
        return await self._through("_call_tool_mcp", self.call_tool, name=key, arguments=arguments)

    async def _read_resource_mcp(self, uri: Any) -> Any:
        return await self._through("_read_resource_mcp", self.read_resource, uri=str(uri))

    async def _get_prompt_mcp(self, name: str, arguments: dict[str, Any] | None) -> Any:
        given = arguments or {}
        return await self._through("_get_prompt_mcp", self.render_prompt, name=name, arguments=given)

    async def _through(self, method: str, outside: Any, **params: Any) -> Any:
        """Return what the server itself answers the running request with; `outside` of one that is answered
        through this method it is called."""
        from fastrpc.compat.interception import overridden

        if overridden.is_within(self, method):
            return await overridden.proceed(**params)
        return await outside(**params)

    async def _inner_list(self, method: str, outside: Any, member: str) -> Any:
        """Return the entries that `_through` returns as the installed FastMCP does: as a list, from version 3
        on as a result."""
        entries = await self._through(method, outside)
        given = [_descriptor(each) for each in entries]
        found = typed(RESULTS[member], {member: given})
        return getattr(found, member) if installed_release("fastmcp") < (3, 0) else found


FASTMCP_METHODS = tuple(name for name in vars(RequestMethods) if name.endswith("_mcp"))


def _descriptor(entry: Any) -> dict[str, Any]:
    """Return the descriptor of a component object, or of an entry that middleware sees."""
    is_object = isinstance(entry, ModelType)
    raw: dict[str, Any] = entry.descriptor(*(() if is_object else (LATEST_SESSION_VERSION,)))
    return raw
