"""The versions of MCP and their differences, as tables: no other code compares versions.

Data only. A test compares the tables with the published schemas.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SESSION_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_SESSION_VERSION = SESSION_VERSIONS[-1]
STATELESS = "2026-07-28"
VERSIONS = (*SESSION_VERSIONS, STATELESS)

BATCHES = ("2025-03-26",)
"""Versions with JSON-RPC batches."""

COMPLETION_CONTEXT = ("2025-06-18", "2025-11-25", STATELESS)
"""Versions in which a completion request contains the other arguments (CompleteRequest: context)."""

PROGRESS_MESSAGES = ("2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
"""Versions in which progress notifications have a message."""

STRUCTURED = ("2025-06-18", "2025-11-25", STATELESS)
"""Versions with outputSchema and structuredContent."""

ANY_STRUCTURED = (STATELESS,)
"""Versions in which structuredContent may be any JSON value, not only an object."""

ELICITATION = ("2025-06-18", "2025-11-25", STATELESS)
"""Versions with elicitation by a form."""

RICH_INPUT_REQUESTS = ("2025-11-25", STATELESS)
"""Versions with elicitation by URL, multiple choice, titled choices, and sampling with tools."""

ENVELOPE = "io.modelcontextprotocol/"
VERSION_KEY = ENVELOPE + "protocolVersion"
CAPABILITIES_KEY = ENVELOPE + "clientCapabilities"
CLIENT_KEY = ENVELOPE + "clientInfo"
SERVER_KEY = ENVELOPE + "serverInfo"
LOG_KEY = ENVELOPE + "logLevel"
SUBSCRIPTION_KEY = ENVELOPE + "subscriptionId"
"""Keys of ``_meta`` that 2026-07-28 defines."""
HOP_KEYS = frozenset(
    ("progressToken", VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, SERVER_KEY, LOG_KEY, SUBSCRIPTION_KEY)
)
"""Keys of ``_meta`` that belong to a connection."""
HOP_PARAMS = frozenset(("_meta", "task", "requestState", "inputResponses"))
"""Members of a request's params that belong to a connection; ``_meta`` is replaced key by key."""

TASKS = ("2025-11-25",)
"""Versions whose core has tasks, which the client asks for. In 2026-07-28 they are an extension."""

TASKS_EXTENSION = ENVELOPE + "tasks"

_FIRST, _SECOND, _THIRD, _FOURTH = SESSION_VERSIONS

SINCE = {
    "Implementation": {
        "title": _THIRD,
        "icons": _FOURTH,
        "description": _FOURTH,
        "websiteUrl": _FOURTH,
    },
    "Tool": {
        "annotations": _SECOND,
        "title": _THIRD,
        "outputSchema": _THIRD,
        "_meta": _THIRD,
        "icons": _FOURTH,
    },
    "Resource": {"title": _THIRD, "_meta": _THIRD, "icons": _FOURTH},
    "ResourceTemplate": {"title": _THIRD, "_meta": _THIRD, "icons": _FOURTH},
    "Prompt": {"title": _THIRD, "_meta": _THIRD, "icons": _FOURTH},
    "PromptArgument": {"title": _THIRD},
    "Annotations": {"lastModified": _THIRD},
    "TextContent": {"_meta": _THIRD},
    "ImageContent": {"_meta": _THIRD},
    "AudioContent": {"_meta": _THIRD},
    "EmbeddedResource": {"_meta": _THIRD},
    "ResourceContents": {"_meta": _THIRD},
    "ResourceLink": {"icons": _FOURTH},
    "ServerCapabilities": {"completions": _SECOND, "extensions": STATELESS},
}
"""For each member of an object, the version that introduced it; members not listed have always existed."""

ONLY = {"Tool": {"execution": TASKS}, "ServerCapabilities": {"tasks": TASKS}}
"""For members of an object that some versions have and no later one, these versions."""

CONTENT_SINCE = {"audio": _SECOND, "resource_link": _THIRD}
"""The same for types of content."""


def known(kind: str, entry: dict[str, Any], version: str) -> dict[str, Any]:
    """Return an object without None and without the members that a version does not have."""
    since, only = SINCE[kind], ONLY.get(kind, {})
    return {
        name: value
        for name, value in entry.items()
        if value is not None and version >= since.get(name, "") and version in only.get(name, VERSIONS)
    }


def knows_content(kind: str, version: str) -> bool:
    """Return whether a version has a type of content."""
    return version >= CONTENT_SINCE.get(kind, "")
