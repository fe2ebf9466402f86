"""Which module of fastrpc serves a name that a file imports from an original's module.

``find("mcp.server.fastmcp", "FastMCP")`` is the one answer for `fastrpc swap`, which rewrites imports, and
for the import hook (`fastrpc.swap.import_hook`). Everything of the package fastmcp is served by
`fastrpc.compat.fastmcp`, servers and clients of the official SDK by `fastrpc.compat.mcp`. The SDK's types,
its authorization and the rest of it are not: they are used as they are. Imports the two modules only to
look up their names.
"""

from __future__ import annotations

from fastrpc.compat import type_names
from fastrpc.compat.names.modules import FASTMCP, ORIGINAL_MODULES, SDK
from fastrpc.compat.names.packages import is_served, package_of
from fastrpc.swap.missing_names import alternative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

SERVED_BY = {"fastmcp": "fastrpc.compat.fastmcp", "mcp": "fastrpc.compat.mcp"}
"""By the original's package."""

COMMANDS = ("fastmcp.__main__", "fastmcp.cli", "fastmcp.cli.__main__", "mcp.cli")
"""Modules of the originals' command lines."""

OBJECTS = ("fastmcp.prompts.prompt", "fastmcp.resources.resource", "fastmcp.settings", "fastmcp.tools.tool")
"""Modules, in one version, with the name of an object of the package: ``from fastmcp.tools import tool``."""

RELEASES = {"mcp.server.fastmcp": (1, 2), "mcp.server.mcpserver": (2, 100)}
"""The first release of an original that has a package of it, and the first later one that has not."""

TYPES = "mcp.types"
PACKAGE_NAMES = frozenset(
    {
        "Client",
        "ClientSession",
        "ClientSessionGroup",
        "InputRequiredRoundsExceededError",
        "InvalidUriTemplate",
        "MCPDeprecationWarning",
        "MCPError",
        "McpError",
        "ServerSession",
        "StdioServerParameters",
        "UriTemplate",
        "UrlElicitationRequiredError",
        "stdio_client",
        "stdio_server",
    }
)
"""What the package ``mcp`` itself offers beside types: a ``Tool`` or a ``Resource`` there is a type."""

TYPES_ELSEWHERE = frozenset(
    {
        "Annotations",
        "AudioContent",
        "BlobResourceContents",
        "Completion",
        "CompletionArgument",
        "CompletionContext",
        "ContentBlock",
        "EmbeddedResource",
        "ErrorData",
        "GetPromptResult",
        "Icon",
        "ImageContent",
        "PromptMessage",
        "PromptReference",
        "ResourceTemplateReference",
        "SamplingMessage",
        "TextContent",
        "TextResourceContents",
        "ToolAnnotations",
    }
)
"""Types that files also import from the modules of servers, which import them."""

RENAMED_TYPES = {"SamplingRole": "Role"}

STARS = {
    "fastmcp": ("Client", "Context", "FastMCP"),
    "mcp.server": ("FastMCP", "InitializationOptions", "MCPServer", "NotificationOptions", "Server"),
    "mcp.server.fastmcp": ("Audio", "Context", "FastMCP", "Icon", "Image"),
    "mcp.server.lowlevel": ("NotificationOptions", "Server"),
    "mcp.server.mcpserver": ("AssistantMessage", "Audio", "Context", "Icon", "Image", "MCPServer", "Message",
                             "UserMessage"),
}  # fmt: skip
"""What ``from module import *`` brings, where it is more than one name."""


class ServedName:
    """What serves a name: `member` of `module`, or `module` itself if `member` is "".

    `is_original`: it is the original's. `missing`: why nothing serves it, or what to write instead.
    """

    __slots__ = ("is_original", "member", "missing", "module")

    def __init__(
        self, module: str, member: str = "", *, is_original: bool = False, missing: str | None = None
    ) -> None:
        self.module = module
        self.member = member
        self.is_original = is_original
        self.missing = missing


def home_of(module: str) -> str | None:
    """Return the module of fastrpc that serves a module of an original; None if the original is used."""
    if module in COMMANDS:
        return "fastrpc.swap.run_command"
    return SERVED_BY[package_of(module)] if is_served(module) else None


def is_known(module: str) -> bool:
    """Return whether an original has this module, in one of the versions that are known here."""
    return module in FASTMCP or module in SDK or module in COMMANDS


def other_release(module: str, release: tuple[int, ...]) -> str:
    """Return which releases of the original have a module, as "1.x"; "" if this one may have it."""
    for package, (first, end) in RELEASES.items():
        if module == package or module.startswith(package + "."):
            return "" if (first,) <= release < (end,) else f"{first}.x"
    return ""


def find(module: str, name: str) -> ServedName:
    """Return what serves ``from module import name``."""
    home = home_of(module)
    below = f"{module}.{name}"
    if home is None:
        return ServedName(module, name, is_original=True)
    if module == "mcp" and name not in PACKAGE_NAMES:
        if home_of(below) is None:
            if below in ORIGINAL_MODULES:
                return ServedName(below, is_original=True)
            return ServedName(TYPES, RENAMED_TYPES.get(name, name), is_original=True)
        if is_known(below):
            return ServedName(home)
        return ServedName(TYPES, RENAMED_TYPES.get(name, name), is_original=True)
    offered = _loaded(home)
    if name in offered.__all__:
        return ServedName(home, name)
    if home_of(below) is None:
        return ServedName(below, is_original=True)
    if is_known(below) and below not in OBJECTS:
        return ServedName(home)
    if name in TYPES_ELSEWHERE:
        return ServedName(TYPES, name, is_original=True)
    if name in type_names.__all__:
        return ServedName(type_names.__name__, name)
    alternatives: dict[str, str] = getattr(offered, "_MODULE_ALTERNATIVES", {})
    return ServedName(home, name, missing=alternatives.get(name) or alternative(module, name))


def star_names(module: str) -> list[str]:
    """Return the names that ``from module import *`` brings, as far as they are served."""
    home = home_of(module)
    names = STARS.get(module) or (_loaded(home).__all__ if home else ())
    return [name for name in names if find(module, name).missing is None]


def complaint(module: str, name: str, missing: str) -> str:
    """Return what to say of a name that nothing serves."""
    instead = f"; {missing}" if missing else ""
    return f"fastrpc has no {name} of {module}{instead} (docs/compat.md has the table)"


def _loaded(home: str) -> ModuleType:
    return __import__(home, fromlist=["__all__"])
