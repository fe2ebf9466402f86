"""Globs of names, as commands and functions of fastrpc take them: ``*`` is any text, ``?`` any character.

Every other character matches itself, ``[`` included: names and URIs may contain brackets. Upper and lower
case differ; Unicode's normal forms of one text do not. No glob is slow on any text, unlike with `fnmatch`.
Pure.
"""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(text: str, glob: str) -> bool:
    """Whether a glob matches all of a text."""
    return fnmatchcase(composed(text), composed(glob).replace("[", "[[]"))


def composed(text: str) -> str:
    """Return a name in the normal form in which names are compared (NFC)."""
    if text.isascii():
        return text
    from fastrpc.unicode_forms import normal_form

    return normal_form("NFC", text)
