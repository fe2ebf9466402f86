"""What a server and its processes for tools agree on, besides the protocol."""

from __future__ import annotations

RAISED = "fastrpc/raised"
"""The key in ``_meta`` of what a function has raised: [the name of its class, its text, whether the tool
refuses the call, its traceback, whether the process is to end]."""


def wire_name(function: str, tool: str) -> str:
    """Return the name by which a process serves a tool: that of its function and its own, which may be
    longer than names of tools may be, and contain other characters."""
    from hashlib import blake2b

    return blake2b(f"{function}\n{tool}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
