"""Writes a line for the operator of the server to stderr. `print` will not do: where stderr was closed, it
writes to stdout, which is the wire."""

from __future__ import annotations

import sys


def write_line(what: str) -> None:
    """Write a line to stderr, if there is one."""
    if sys.stderr is not None:
        print(f"fastrpc: {what}", file=sys.stderr, flush=True)
