"""The environment variables of this process as CPython stores them, for fast reads: ``os.environ`` takes a
microsecond for each. `fastrpc.settings` and others interpret the variables."""

from __future__ import annotations

import os


def raw_environment() -> dict[bytes, bytes] | None:
    """Return the dict that ``os.environ`` reads, by encoded name; None if this Python has no such dict."""
    variables = getattr(os.environ, "_data", None)
    return variables if type(variables) is dict else None
