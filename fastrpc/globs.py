"""Globs of names, as commands and functions of fastrpc take them: ``*`` is any text, ``?`` any character.

Everything else stands for itself, ``[`` among it: names and URIs hold brackets. Upper and lower case differ.
No glob is slow on any text (`fnmatch`). Pure.
"""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(text: str, glob: str) -> bool:
    """Whether a glob matches all of a text."""
    return fnmatchcase(text, glob.replace("[", "[[]"))
