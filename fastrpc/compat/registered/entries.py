"""The entries of a server's registries as component objects: for transforms, and for the server's own
program. Each has its definition in `entry`; a call of it goes to that, whatever name a copy has."""

from __future__ import annotations

from fastrpc.compat.components.objects import FunctionResource, Prompt, ResourceTemplate, prompt_arguments
from fastrpc.compat.components.tools import Tool
from fastrpc.compat.models import typed
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ServedTool(Tool):
    """A tool of a server, as its program sees it. `fn` is its function."""

    def __init__(self, server: Any, entry: Any, raw: dict[str, Any] | None = None) -> None:
        raw = entry.descriptor(LATEST_SESSION_VERSION) if raw is None else raw
        annotations = raw.get("annotations")
        super().__init__(
            **_described(server, "tool", raw, entry),
            output_schema=raw.get("outputSchema"),
            annotations=typed("ToolAnnotations", annotations) if annotations else None,
        )
        self.parameters = raw["inputSchema"]
        self.fn = entry.function
        self._others = getattr(entry, "others", None)
        self.entry = entry
        self._server = server

    async def run(self, arguments: dict[str, Any]) -> Any:
        from fastrpc.compat.composition.nested_calls import call_tool_entry

        return await call_tool_entry(self._server, self.entry, arguments)


def _described(server: Any, kind: str, raw: dict[str, Any], entry: Any) -> dict[str, Any]:
    """Return the options that components of all kinds have."""
    meta = dict(raw.get("_meta") or {})
    own = dict(meta.pop("fastmcp", None) or {})
    tags, version = own.pop("tags", ()), own.pop("version", None)
    if own:
        meta["fastmcp"] = own
    return {
        "name": raw.get("name") or entry.name,
        "title": raw.get("title"),
        "description": raw.get("description"),
        "meta": meta or None,
        "tags": tags,
        "version": version,
        "icons": raw.get("icons"),
        "auth": server._checks_at(kind, entry.key) if hasattr(server, "_checks") else None,
    }


def served(server: Any, kind: str, thing: Any) -> Any:
    """Return the object of an entry of a registry, or of what middleware has left of one (`Component`)."""
    entry = getattr(thing, "entry", thing)
    raw = thing.descriptor(LATEST_SESSION_VERSION)
    if entry is None or not hasattr(entry, "function"):
        return thing  # middleware has made it
    if kind == "tool":
        return ServedTool(server, entry, raw)
    options = _described(server, kind, raw, entry)
    found: Any
    if kind == "prompt":
        found = Prompt(fn=entry.function, arguments=prompt_arguments(raw), **options)
    else:
        options |= {"mime_type": raw.get("mimeType"), "annotations": raw.get("annotations")}
        if kind == "resource":
            found = FunctionResource(fn=entry.function, uri=raw["uri"], size=raw.get("size"), **options)
        else:
            found = ResourceTemplate(fn=entry.function, uri_template=raw["uriTemplate"], **options)
    found.description = raw.get("description")
    found.has_mime_type = "mimeType" in raw
    found._others = getattr(entry, "others", None)
    found.entry = entry
    return found
