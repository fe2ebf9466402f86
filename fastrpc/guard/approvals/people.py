"""Who is who: the names by which a person calls, and those by which the same person approves."""

from __future__ import annotations


def person(name: str) -> str:
    """Return who stands behind a name: ``ada`` for ``os:ada``, ``ada#k3x7…`` and ``Ada``."""
    return name.removeprefix("os:").partition("#")[0].casefold()
