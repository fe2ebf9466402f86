"""Which tools of which servers a gateway shows: globs of names to allow and to deny.

A text has groups, separated by ``;``: ``SERVER:GLOB,GLOB`` is about the tools of one server (a glob, too), a
group without a server about all. ``shop:get_*,list_*;files:*`` is the form of scorpiox's MCP_ALLOW and
MCP_DENY. Upper and lower case differ. Pure.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

Pattern = tuple[str, str]
"""Globs of a server's name and of a tool's."""

ANY = "*"


def patterns_of(text: str) -> list[Pattern]:
    """Return the patterns of a text; empty parts are skipped."""
    found = []
    for group in text.split(";"):
        server, colon, globs = group.rpartition(":")
        for glob in globs.split(","):
            if glob.strip():
                found.append((server.strip() if colon else "", glob.strip()))
    return found


class Rules:
    """What is allowed and denied. Without anything to allow everything is allowed; what is denied is not.

    A glob is compared with the tool's own name; without a server also with the name under which the tool is
    listed, and with ``mcp__SERVER__TOOL``.
    """

    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._allowed = [pattern for text in allow for pattern in patterns_of(text)]
        self._denied = [pattern for text in deny for pattern in patterns_of(text)]

    def shows(self, server: str, tool: str, listed: str) -> bool:
        """Whether a tool of a server is shown."""
        names = (tool, listed, f"mcp__{server}__{tool}")
        if any(_matches(pattern, server, names) for pattern in self._denied):
            return False
        return not self._allowed or any(_matches(pattern, server, names) for pattern in self._allowed)

    def uses(self, server: str, prefix: str) -> bool:
        """Whether a tool of a server can be shown at all. `prefix` stands before the names of its tools."""
        whole = (ANY, f"{prefix}{ANY}", f"mcp__{server}__{ANY}")
        for of, glob in self._denied:
            if fnmatchcase(server, of) and glob == ANY if of else glob in whole:
                return False
        return not self._allowed or any(not of or fnmatchcase(server, of) for of, _ in self._allowed)


def _matches(pattern: Pattern, server: str, names: tuple[str, ...]) -> bool:
    of, glob = pattern
    if of:
        return fnmatchcase(server, of) and fnmatchcase(names[0], glob)
    return any(fnmatchcase(name, glob) for name in names)
