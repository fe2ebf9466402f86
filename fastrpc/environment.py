"""The environment variables of this process as they are stored, for quick looks: a read of ``os.environ``
costs a microsecond. What a variable means is left to `fastrpc.settings` and others."""

from __future__ import annotations

import os


def raw_environment() -> dict[bytes, bytes] | None:
    """Return the dict that ``os.environ`` reads, by encoded name; None where this Python has no such dict."""
    variables = getattr(os.environ, "_data", None)
    return variables if type(variables) is dict else None
