"""The programs that `make prepare` has fetched for want of the system's: they come last on the path.

So whoever looks for a program along PATH, a test, the package or a program that one of them starts, finds the
system's first, and one of ours where there is none. The path is that of the process of the tests alone.
"""

from __future__ import annotations

import os

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
POSTGRES = "/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/pgsql-*/bin"
"""Where systems have PostgreSQL's programs beside the path."""
FOLDER = os.path.join(REPOSITORY, ".cache", "programs", "bin")


def extend_path() -> None:
    """Put the folder behind what is on the path, once: workers of pytest-xdist inherit it."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if FOLDER not in places:
        os.environ["PATH"] = os.pathsep.join((*places, FOLDER))


def is_fetched(program: str | None) -> bool:
    """Whether a program that was found is one of ours."""
    return program is not None and os.path.dirname(program) == FOLDER
