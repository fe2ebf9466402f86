"""Which tools of which servers a gateway shows: globs of names to allow and to deny.

A text consists of groups, separated by ``;``. ``SERVER:GLOB,GLOB`` applies to the tools of the servers that
match ``SERVER``, a glob too; a group without a server applies to all servers. ``shop:get_*,list_*;files:*``
is the form of scorpiox's MCP_ALLOW and MCP_DENY. Names of tools and servers may contain colons. The text
before a colon is a server if the configuration has a matching one. Otherwise it is part of the tool's name,
and of the names that follow in its group, so a misspelt server does not allow tools of these names on all
servers. In globs only ``*`` and ``?`` are special (`fastrpc.globs`). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fastrpc.errors import InvalidConfig, suggestion
from fastrpc.globs import composed, matches

ANY = "*"


@dataclass(eq=False, slots=True)
class Pattern:
    """A glob of a server's name, "" for every server, and one of a tool's name, then also of a listed one.
    `text`: what the user has written. `is_exact`: the server's name is no glob, though it may look so."""

    server: str
    glob: str
    text: str
    is_exact: bool = False
    is_used: bool = False
    """Whether it has matched something."""

    def matches(self, server: str, names: tuple[str, ...]) -> bool:
        """Whether it matches a tool; `names[0]` is the server's name for it, the others are listed names."""
        if self.server:
            found = self.is_about(server) and matches(names[0], self.glob)
        else:
            found = any(matches(name, self.glob) for name in names)
        self.is_used |= found
        return found

    def is_about(self, server: str) -> bool:
        """Whether it applies to the tools of a server."""
        return server == self.server if self.is_exact else not self.server or matches(server, self.server)


def patterns_of(text: str, servers: Collection[str], *, both: bool = False) -> list[Pattern]:
    """Return the patterns of a text, for servers with these names; empty parts are skipped. With `both`, an
    ambiguous part becomes one pattern for each reading."""
    found = []
    for group in text.split(";"):
        server = unknown = ""
        for part in filter(None, map(str.strip, group.split(","))):
            written = part
            readings = _readings(part, servers)
            if readings:
                server = readings[0][0]
            elif part.startswith(":"):
                server, unknown, part = "", "", part[1:].strip()
            elif server:
                written = f"{server}:{part}"
            elif ":" in part:
                unknown = part.partition(":")[0].strip()
            elif unknown:
                readings = [("", f"{unknown}:{part}")]
                written = part if both else f"{unknown}:{part}"
            if both and readings:
                readings.append(("", part))
            meant = readings[: None if both else 1] or [(server, part)]
            found += [Pattern(of, glob, written, is_exact=not both and of in servers) for of, glob in meant]
    return found


def _readings(part: str, servers: Collection[str]) -> list[tuple[str, str]]:
    """Return the ways to divide a part after a server: a known name, the longest first, or else a glob."""
    places = [place for place, letter in enumerate(part) if letter == ":"]
    divided = [(part[:place].strip(), part[place + 1 :].strip()) for place in places]
    exact = [each for each in divided if each[0] in servers]
    return exact[::-1] or [each for each in divided if any(matches(name, each[0]) for name in servers)]


def _checked(option: str, texts: Iterable[str]) -> list[str]:
    """Return the texts that are not empty. Raises InvalidConfig."""
    found = [composed(text) for text in texts if text.strip()]
    for text in found:
        parts = [part.strip() for part in text.replace(";", ",").split(",")]
        if not any(parts):
            raise InvalidConfig(f"{option}: expected globs of tools, got {text!r}")
        for part in parts:
            if part.endswith(":"):
                raise InvalidConfig(f"{option}: {part!r} names no tool; all tools of a server are 'SERVER:*'")
    return found


class Rules:
    """What is allowed and denied. Without texts to allow, everything is allowed; what is denied is not.

    A glob is compared with the tool's own name; without a server, also with the tool's listed name and with
    ``mcp__SERVER__TOOL``. Servers become known through `know`, or by the first query about them. For an
    ambiguous text, all readings are denied, and only the first is allowed. Raises InvalidConfig for a text
    that names no tool: without a glob, ``shop:`` would allow everything.
    """

    def __init__(self, allow: Iterable[str] = (), deny: Iterable[str] = ()) -> None:
        self._texts = _checked("allow", allow), _checked("deny", deny)
        self._servers: frozenset[str] = frozenset()
        self._allowed: list[Pattern] = []
        self._denied: list[Pattern] = []
        self.know(())

    def know(self, servers: Iterable[str]) -> None:
        """Parse the texts for these servers, the names of all servers."""
        self._servers = frozenset(map(composed, servers))
        used = {each.text for each in (*self._allowed, *self._denied) if each.is_used}
        allow, deny = self._texts
        self._allowed = [each for text in allow for each in patterns_of(text, self._servers)]
        self._denied = [each for text in deny for each in patterns_of(text, self._servers, both=True)]
        for pattern in (*self._allowed, *self._denied):
            pattern.is_used = pattern.text in used

    def shows(self, server: str, tool: str, listed: str) -> bool:
        """Whether a tool of a server is shown."""
        server = self._known(server)
        names = (tool, listed, f"mcp__{server}__{tool}")
        is_allowed = [each.matches(server, names) for each in self._allowed]  # all: each records its use
        is_denied = [each.matches(server, names) for each in self._denied]
        return not any(is_denied) and (not is_allowed or any(is_allowed))

    def uses(self, server: str, prefix: str) -> bool:
        """Whether any tool of a server can be shown. `prefix` is that of its tools' listed names."""
        server = self._known(server)
        whole = (ANY, f"{prefix}{ANY}", f"mcp__{server}__{ANY}")
        for each in self._denied:
            if each.is_about(server) and (each.glob == ANY if each.server else each.glob in whole):
                each.is_used = True
                return False
        return not self._allowed or any(each.is_about(server) for each in self._allowed)

    def unused(self) -> list[str]:
        """Return the texts that have matched nothing so far."""
        found = dict.fromkeys(each.text for each in (*self._allowed, *self._denied))
        for pattern in (*self._allowed, *self._denied):
            if pattern.is_used:
                found.pop(pattern.text, None)
        return list(found)

    def hint(self, text: str) -> str:
        """Return the probable mistake in a text that has matched nothing, "" if none is found."""
        server, colon, _ = text.partition(":")
        if not colon or any(matches(each, server) for each in self._servers):
            return ""
        return f"; there is no server {server}{suggestion(server, self._servers)}"

    def _known(self, server: str) -> str:
        """Return the name of a server in the form in which it is compared; parse the texts for a new one."""
        name = composed(server)
        if name not in self._servers:
            self.know({*self._servers, name})
        return name
