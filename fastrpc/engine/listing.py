"""Lists that are not simply the descriptors of their entries.

Entries that cannot be written are left out, and logged once, so that clients get the others; tools may be
published by other names than their own.

An entry may hold what is no JSON (an object in its ``_meta``, half a surrogate pair in its description). That
is found when a list is encoded as a whole, and only then are entries tried one by one.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from fastrpc.definitions.tool import Tool

LONGEST = 500
"""Characters of a record."""
log = diagnostics.Once("error")


class RenamedTool:
    """A tool as it is listed by another name than its own."""

    __slots__ = ("kind", "name", "published", "tool")

    def __init__(self, tool: Tool, published: str) -> None:
        self.tool = tool
        self.kind, self.name = tool.kind, tool.name
        self.published = published

    def descriptor(self, version: str) -> dict[str, Any]:
        return {**self.tool.descriptor(version), "name": self.published}


def renamed(tools: Iterable[Tool], published: Mapping[str, Tool]) -> list[Tool | RenamedTool]:
    """Return tools as they are listed, where some have another name."""
    names = {tool.name: name for name, tool in published.items()}
    return [RenamedTool(tool, names[tool.name]) if tool.name in names else tool for tool in tools]


def writable(entries: Iterable[Any], version: str) -> list[dict[str, Any]]:
    """Return the descriptors of the entries that can be written as JSON."""
    found = []
    for entry in entries:
        try:
            descriptor: dict[str, Any] = entry.descriptor(version)
            to_json(descriptor)
        except Exception as error:
            left_out(f"{getattr(entry, 'kind', 'entry')} {entry.name!r:.80}", f"{error}")
        else:
            found.append(descriptor)
    return found


def left_out(what: str, why: str) -> None:
    """Log, once, that something is left out of a list."""
    log.write(f"{what} is left out of its list: {why}"[:LONGEST])
