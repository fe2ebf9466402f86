"""Globs of names, as commands and functions of fastrpc take them: ``*`` is any text, ``?`` any character.

Everything else stands for itself, ``[`` among it: names and URIs hold brackets. Upper and lower case differ;
Unicode's normal forms of one text do not. No glob is slow on any text (`fnmatch`). Pure.
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
