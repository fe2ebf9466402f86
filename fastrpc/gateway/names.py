"""Names of tools and prompts behind a gateway: the server's name, and the name that the server has for them.

``SERVER_TOOL`` is the default, as in FastMCP and for mounted servers; ``mcp__SERVER__TOOL`` is how agents
such as Claude Code show the tools of several servers to a model. The server's name is reduced to characters
that model APIs accept in names (letters, digits, ``_`` and ``-``). A listed name has at most `LONGEST`
characters; a longer one is truncated and ends with a hash of the whole name. Pure.
"""

from __future__ import annotations

import re

LONGEST = 64
"""Characters of a tool's name that model APIs accept; MCP itself recommends at most 128."""
LONGEST_SERVER = 32
HASH_SIZE = 8
SHORTENED = re.compile(rf"_[0-9a-f]{{{HASH_SIZE}}}$")
SCHEME = "fastrpc-gateway"
"""The scheme of the gateway's own resources; servers behind it cannot use it."""
STYLES = {"prefix": "{}_", "mcp": "mcp__{}__"}


def prefix_of(server: str, style: str) -> str:
    """Return the prefix of the names of a server's tools and prompts."""
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "_-") else "_" for each in server)
    return STYLES[style].format(_bounded(plain, server, LONGEST_SERVER))


def listed_name(prefix: str, name: str) -> str:
    """Return the name under which a tool or prompt is listed."""
    whole = prefix + name
    return _bounded(whole, whole, LONGEST)


def is_listable(name: str) -> bool:
    """Whether a name may be listed. A name that a gateway has shortened is not shortened again, or gateways
    that are connected in a cycle would create more and more names."""
    return not (len(name) == LONGEST and SHORTENED.search(name))


def _bounded(text: str, source: str, longest: int) -> str:
    """Return a text; if it is too long, its beginning and a hash of its source."""
    if len(text) <= longest:
        return text
    from hashlib import sha256

    digest = sha256(source.encode(errors="surrogatepass")).hexdigest()[:HASH_SIZE]
    return f"{text[: longest - HASH_SIZE - 1]}_{digest}"
