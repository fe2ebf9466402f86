"""The methods through which FastMCP answers requests, for servers that override them or their callers:
``async def _list_tools_mcp(self)``, which often filters what a client sees, and ``_call_tool_mcp``.

Where a subclass has one of its own, requests are answered through it; what it calls here does what the server
would have done. Costs nothing for a server without.
"""

from __future__ import annotations

from fastrpc.compat.dialect import FASTMCP, installed_release
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


class InnerMethods:
    """The methods by those names; `list_tools` and the others are those of the server."""

    dialect: Dialect

    if TYPE_CHECKING:  # `Catalogue` has them

        def _override(self, method: str) -> None: ...
        async def list_tools(self, **options: object) -> list[Any]: ...
        async def list_resources(self, **options: object) -> list[Any]: ...
        async def list_resource_templates(self, **options: object) -> list[Any]: ...
        async def list_prompts(self, **options: object) -> list[Any]: ...
        async def call_tool(self, name: str, arguments: Any = None) -> Any: ...
        async def read_resource(self, uri: Any) -> Any: ...
        async def render_prompt(self, name: str, arguments: Any = None) -> Any: ...

    def _override_inner_methods(self) -> None:
        """Have requests answered through the methods of these names that a subclass has."""
        if self.dialect is FASTMCP:
            for method in [name for name in vars(InnerMethods) if name.endswith("_mcp")]:
                if getattr(type(self), method) is not getattr(InnerMethods, method):
                    self._override(method)

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


def _descriptor(entry: Any) -> dict[str, Any]:
    """Return the descriptor of a component object, or of an entry that middleware sees."""
    is_object = isinstance(entry, ModelType)
    raw: dict[str, Any] = entry.descriptor(*(() if is_object else (LATEST_SESSION_VERSION,)))
    return raw
