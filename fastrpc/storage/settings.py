"""The setting that names the guard's database."""

from __future__ import annotations

import os

from fastrpc.settings import STATE_DIR, Setting

FILE_NAME = "guard.sqlite3"

GUARD_DATABASE = Setting(
    "FASTRPC_GUARD_DATABASE",
    "secret",
    "",
    "the guard's database: sqlite:///PATH or postgresql://…; unset: guard.sqlite3 in the state folder",
)
"""A secret, since a URL may hold a password: it is not exported to child processes, nor shown."""


def default_path() -> str:
    """Return the file of the database where no other is named."""
    return os.path.join(STATE_DIR.read(), FILE_NAME)
