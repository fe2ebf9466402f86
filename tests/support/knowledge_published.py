"""What is published of seeds/002, word for word."""

from __future__ import annotations

MEMORY_SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "scope": {"type": "string", "enum": ["user", "agent", "all"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    },
    "required": ["query"],
}
"""The arguments of `memory.search`."""
