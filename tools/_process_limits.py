"""Limits and environment of a process that reads what strangers wrote. Imports the standard library alone,
for programs that know nothing of fastrpc."""

from __future__ import annotations

import os
import resource


def limit(memory: int, seconds: int | None = None, *more: int) -> None:
    """Have the kernel bound this process for the rest of its life: bytes of address space, seconds of
    processor time, no file that is written, no core dump. `more`: resources of which it gets nothing more."""
    bounds = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)]
    if seconds is not None:
        bounds.append((resource.RLIMIT_CPU, seconds))
    for which, value in (*bounds, *((each, 0) for each in more)):
        try:
            resource.setrlimit(which, (value, value))
        except (OSError, ValueError):
            pass  # macOS has no limit of that kind


def environment(*begins: str) -> dict[str, str]:
    """Return what such a process gets of this one's environment, the rest of which may hold secrets: where
    shared libraries lie, and the variables whose names begin so."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.endswith("LIBRARY_PATH") or name.startswith(begins)
    }
