"""Writes a line for the operator of the server to stderr. `print` is unsuitable: if stderr was closed, it
writes to stdout, which carries the protocol."""

from __future__ import annotations

import sys


def write_line(what: str) -> None:
    """Write a line to stderr, if it is open."""
    if sys.stderr is not None:
        print(f"fastrpc: {what}", file=sys.stderr, flush=True)
