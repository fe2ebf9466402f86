"""Tools, resources, templates and prompts as the hooks of lists see them: they may be left out, changed, or
others put beside them. A change shows in that list alone."""

from __future__ import annotations

from fastrpc.compat import models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMBERS = {
    "parameters": "inputSchema",
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "mime_type": "mimeType",
    "uri_template": "uriTemplate",
    "website_url": "websiteUrl",
}
"""Attributes whose member of the descriptor has another name."""

KNOWN = frozenset(
    (
        "annotations",
        "arguments",
        "description",
        "icons",
        "inputSchema",
        "mimeType",
        "name",
        "outputSchema",
        "size",
        "title",
        "uri",
        "uriTemplate",
    )
)


class ListedComponent:
    """One entry of a list: its attributes are those of FastMCP's components.

    `tags` is a set, `meta` what the author gave beside them. Setting an attribute changes what this list
    shows; `model_copy(update=…)` returns a changed copy.
    """

    __slots__ = ("_own", "_raw", "entry", "meta", "tags")

    enabled = True

    def __init__(self, raw: dict[str, Any], entry: Any = None) -> None:
        self._raw = raw
        self.entry = entry
        """The definition of it; None for one that middleware has made."""
        meta = dict(raw.get("_meta") or {})
        self._own: dict[str, Any] = dict(meta.pop("fastmcp", None) or {})
        self.tags: set[str] = set(self._own.pop("tags", ()))
        self.meta: dict[str, Any] | None = meta or None

    @property
    def key(self) -> str:
        """The key of its registry."""
        found = self._raw.get("uri") or self._raw.get("uriTemplate") or self._raw["name"]
        return str(found)

    @property
    def version(self) -> str | None:
        """Its own version."""
        found: str | None = self._own.get("version")
        return found

    @property
    def fn(self) -> Any:
        """The function that serves it."""
        return None if self.entry is None else self.entry.function

    def __getattr__(self, name: str) -> Any:
        member = MEMBERS.get(name, name)
        if member not in KNOWN:
            raise AttributeError(f"an entry of a list has no {name}")
        value = self._raw.get(member)
        return models.typed("ToolAnnotations", value) if member == "annotations" and value else value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ListedComponent.__slots__:
            object.__setattr__(self, name, value)
            return
        member = MEMBERS.get(name, name)
        if member not in KNOWN:
            raise AttributeError(f"an entry of a list has no {name}")
        self._raw[member] = models.dumped(value)

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> ListedComponent:
        """Return a copy with other values of some attributes."""
        from copy import deepcopy

        raw = self.descriptor("")
        copy = type(self)(deepcopy(raw) if deep else raw, self.entry)
        for name, value in (update or {}).items():
            setattr(copy, name, value)
        return copy

    copy = model_copy

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the entry of the list that is sent."""
        found = {name: value for name, value in self._raw.items() if name != "_meta" and value is not None}
        meta = dict(self.meta or {})
        if self.tags or self._own:
            meta["fastmcp"] = {**({"tags": sorted(self.tags)} if self.tags else {}), **self._own}
        if meta:
            found["_meta"] = meta
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ListedComponent):
            return NotImplemented
        return self.descriptor("") == other.descriptor("")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Component({self.key!r}, description={self._raw.get('description')!r}, tags={self.tags!r})"


def component_of(thing: Any, version: str) -> ListedComponent:
    """Return an entry of a list that middleware has returned: a component, a definition, a model of the SDK
    or a dict. Raises TypeError for anything else."""
    if isinstance(thing, ListedComponent):
        return thing
    if hasattr(thing, "descriptor"):
        return ListedComponent(dict(thing.descriptor(version)), thing)
    convert = getattr(thing, "to_mcp_tool", None)
    raw = models.dumped(thing if convert is None else convert())
    if not isinstance(raw, dict):
        raise TypeError(f"middleware: expected an entry of the list, got {thing!r:.60}")
    return ListedComponent(dict(raw))
