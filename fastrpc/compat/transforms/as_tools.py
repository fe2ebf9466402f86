"""`PromptsAsTools` and `ResourcesAsTools`: prompts and resources for clients that only know tools.

What these tools return is what the client would get, within the server's middleware and guards.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

from fastrpc import running_call
from fastrpc.compat.components.tools import Tool
from fastrpc.compat.components.versions import deduplicated
from fastrpc.compat.models import dumped
from fastrpc.compat.transforms.base import Transform
from fastrpc.content import Contents
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrpc.compat.components.versions import VersionSpec


class _AsTools(Transform):
    """Adds tools to those of a server. Raises TypeError for anything but a server of this package."""

    def __init__(self, provider: Any) -> None:
        if not hasattr(type(provider), "add_transform") or not hasattr(type(provider), "dialect"):
            raise TypeError(
                f"{type(self).__name__}: expected a FastMCP server, got {type(provider).__name__}; "
                "its tools call the server"
            )
        self._provider = provider
        self._tools = {tool.name: tool for tool in self._made()}

    def _made(self) -> list[Tool]:
        raise NotImplementedError

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [*tools, *self._tools.values()]

    async def get_tool(self, name: str, call_next: Any, *, version: VersionSpec | None = None) -> Any:
        own = self._tools.get(name)
        return await call_next(name, version=version) if own is None else own

    def _server(self) -> Any:
        """Return the server of the running call."""
        running = running_call.current()
        return self._provider if running is None or running.server is None else running.server

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._provider.name!r})"


class PromptsAsTools(_AsTools):
    """Adds the tools ``list_prompts`` and ``get_prompt``."""

    def _made(self) -> list[Tool]:
        async def list_prompts() -> str:
            """List the prompts of this server: JSON with their names, descriptions and arguments."""
            found = deduplicated(await self._server().list_prompts())
            return to_json([_described(prompt) for prompt in found]).decode()

        async def get_prompt(
            name: Annotated[str, "The name of the prompt to get"],
            arguments: Annotated[dict[str, Any] | None, "Optional arguments for the prompt"] = None,
        ) -> str:
            """Get the messages of a prompt by its name and arguments, as JSON with an array `messages`."""
            server = self._server()
            found = await server._chain.call_for_tool("prompt", name, dict(arguments or {}))
            return to_json({"messages": [_message(each) for each in _messages(found)]}).decode()

        return [Tool.from_function(list_prompts), Tool.from_function(get_prompt)]


def _described(prompt: Any) -> dict[str, Any]:
    listed = prompt.descriptor().get("arguments") or ()
    arguments = [
        {
            "name": each["name"],
            "description": each.get("description"),
            "required": bool(each.get("required")),
        }
        for each in listed
    ]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


def _messages(value: Any) -> list[dict[str, Any]]:
    from fastrpc.methods.prompts import messages_of
    from fastrpc.protocol.versions import LATEST_SESSION_VERSION

    found: list[dict[str, Any]] = messages_of(value, LATEST_SESSION_VERSION)
    return found


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    is_text = content.get("type") == "text"
    return {"role": message["role"], "content": content["text"] if is_text else dumped(content)}


class ResourcesAsTools(_AsTools):
    """Adds the tools ``list_resources`` and ``read_resource``."""

    def _made(self) -> list[Tool]:
        async def list_resources() -> str:
            """List the resources and resource templates of this server, as JSON. A resource has a `uri`, a
            template a `uri_template` with variables such as {name}."""
            server = self._server()
            resources = deduplicated(await server.list_resources())
            templates = deduplicated(await server.list_resource_templates())
            listed: list[dict[str, Any]] = [
                {
                    "uri": each.uri,
                    "name": each.name,
                    "description": each.description,
                    "mime_type": each.mime_type,
                }
                for each in resources
            ]
            listed += [
                {"uri_template": each.uri_template, "name": each.name, "description": each.description}
                for each in templates
            ]
            return to_json(listed).decode()

        async def read_resource(uri: Annotated[str, "The URI of the resource to read"]) -> str:
            """Read a resource by its URI, for a template with the variables filled in. Returns its text;
            binary content is in base64."""
            from fastrpc.methods.resources import contents_of

            server = self._server()
            found = contents_of(await server._chain.call_for_tool("resource", uri, None), uri, None)
            if len(found) == 1:
                return _text(found[0])
            return to_json([{"content": _text(each), "mime_type": each.mime_type} for each in found]).decode()

        options: dict[str, Any] = {"annotations": {"readOnlyHint": True}}
        return [
            Tool.from_function(list_resources, **options),
            Tool.from_function(read_resource, **options),
        ]


def _text(part: Contents) -> str:
    return b64encode(part.content).decode() if isinstance(part.content, bytes) else str(part.content)
