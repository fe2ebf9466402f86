"""The setting that names the guard's database."""

from __future__ import annotations

from fastrpc.settings import Setting

GUARD_DATABASE = Setting(
    "FASTRPC_GUARD_DATABASE",
    "secret",
    "",
    "the guard's database: sqlite:///PATH or postgresql://…; unset: guard.sqlite3 in the state folder",
)
"""A secret, since a URL may hold a password: it is not exported to child processes, nor shown."""
