"""Identifies people: the names by which a person calls, and those by which the same person approves."""

from __future__ import annotations


def person(name: str) -> str:
    """Return the person of a name: ``ada`` for ``os:ada``, ``ada#k3x7…``, ``Ada``, and for the subject of an
    authorization server's token, ``https://login.example.com#ada``."""
    owner, _, rest = name.removeprefix("os:").partition("#")
    return (rest if "://" in owner else owner).casefold()
