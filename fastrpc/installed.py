"""Tells what is installed, without importing it: `importlib.util` would import `contextlib`, which a start
does not need."""

from __future__ import annotations

import sys

_can_store_tasks: bool | None = None


def can_store_tasks() -> bool:
    """Whether the libraries for the database of tasks are installed: the extra `guard`."""
    global _can_store_tasks
    if _can_store_tasks is None:
        _can_store_tasks = is_installed("sqlalchemy") and is_installed("alembic")
    return _can_store_tasks


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported. Some 50 µs."""
    if module in sys.modules:
        return sys.modules[module] is not None
    finders = [getattr(finder, "find_spec", None) for finder in sys.meta_path]
    return any(find is not None and find(module, None) is not None for find in finders)
