"""Limits and environment of a process that reads untrusted input. Imports the standard library alone, for
programs that import nothing of fastrpc."""

from __future__ import annotations

import os
import resource


def limit(memory: int, seconds: int | None = None, *more: int) -> None:
    """Set kernel limits for the rest of this process's life: bytes of address space, seconds of processor
    time, no written files, no core dump. `more` names resources whose limit is set to zero."""
    bounds = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)]
    if seconds is not None:
        bounds.append((resource.RLIMIT_CPU, seconds))
    for which, value in (*bounds, *((each, 0) for each in more)):
        try:
            resource.setrlimit(which, (value, value))
        except (OSError, ValueError):
            pass  # macOS does not have this limit


def environment(*begins: str) -> dict[str, str]:
    """Return the part of the environment that such a process gets: where shared libraries are, and the
    variables whose names begin with these prefixes. The rest may hold secrets."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.endswith("LIBRARY_PATH") or name.startswith(begins)
    }
