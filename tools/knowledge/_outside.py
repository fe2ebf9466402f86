"""Reads a text by its URI, and quotes it in a prompt so that a model treats it as data.

    name, text = read_text("knowledge://memory/mem_…", reader)
    enclosed(text, source=name)

`SOURCES` maps a kind of resource (``memory`` of ``SCHEME://memory/{id}``) to its reader. `enclosed` writes a
text between ``<external_content id="…" source="…">`` and its closing tag, with a random id. It rewrites each
tag of that name in the text, in any spelling, and cuts the text to a budget. After the text it says how much
is missing.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from functools import lru_cache

from fastrpc import ArgumentError

from . import _settings, _store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from ._store.entries import Reader

    class Source(Protocol):
        """Texts of one kind, ``SCHEME://KIND/{id}``. It reads nothing of other owners."""

        def text(self, reader: Reader, id: str) -> tuple[str, str] | None:
            """Return the name and the text, None for an unknown id."""

        def ids(self, reader: Reader, typed: str) -> list[str]:
            """Return ids whose name contains the typed text, newest first."""


BUDGET = 48_000
"""Characters of one text in a prompt."""
LONGEST_SOURCE = 200
LOOKED_AT = 1000
"""The number of newest entries that are searched for a name."""
TAG = re.compile(r"<[/\\]*external[_-]*content")
ALIKE = str.maketrans("‹〈⟨❮˂≺⁄∕аеосхтн", "<<<<<<//aeocxtn")
"""Signs and Cyrillic letters that look like those of a tag, and have no compatibility decomposition."""


class Memory:
    """The entries of the memory."""

    def text(self, reader: Reader, id: str) -> tuple[str, str] | None:
        entry = _store.current().read(reader, id)
        return None if entry is None else (id, entry.content)

    def ids(self, reader: Reader, typed: str) -> list[str]:
        wanted = typed.casefold()
        newest = _store.current().page(reader, None, LOOKED_AT)
        return [entry.id for entry in newest if wanted in entry.content[:LONGEST_SOURCE].casefold()]


class Documents:
    """The texts of documents."""

    def text(self, reader: Reader, id: str) -> tuple[str, str] | None:
        store = _store.current_documents()
        document = store.get(reader, id)
        if document is None or document.state != "ready":
            return None
        return document.name, store.whole_text(document)

    def ids(self, reader: Reader, typed: str) -> list[str]:
        wanted = typed.casefold()
        newest = _store.current_documents().page(reader, None, LOOKED_AT, state="ready")
        return [each.id for each in newest if wanted in "\n".join([*each.names, each.title]).casefold()]


SOURCES: dict[str, Source] = {"memory": Memory(), "documents": Documents()}


def read_text(uri: str, reader: Reader) -> tuple[str, str]:
    """Return the name and the text of the resource at a URI. Raises ArgumentError."""
    scheme, _, rest = uri.partition("://")
    kind, _, id = rest.partition("/")
    source = SOURCES.get(kind) if scheme == _settings.SCHEME.read() else None
    found = source.text(reader, id) if source is not None and id else None
    if found is None:
        kinds = " or ".join(f"{_settings.SCHEME.read()}://{each}/…" for each in SOURCES)
        raise ArgumentError(
            f"documentUri: expected the URI of a text ({kinds}), got {uri:.100}: there is none."
        )
    return found


def uris(reader: Reader, typed: str) -> list[str]:
    """Return the URIs of texts that begin with the typed text, or whose name contains it."""
    scheme = _settings.SCHEME.read()
    found = []
    for kind, source in SOURCES.items():
        prefix = f"{scheme}://{kind}/"
        if typed and prefix.startswith(typed):
            found += [prefix + id for id in source.ids(reader, "")]
        elif typed.startswith(prefix):
            begun = typed.removeprefix(prefix)
            found += [prefix + id for id in source.ids(reader, "") if id.startswith(begun)]
        else:
            found += [prefix + id for id in source.ids(reader, typed)]
    return found


def enclosed(text: str, source: str, left_out: str) -> str:
    """Return a text between tags, cut to `BUDGET`. `left_out` is the sentence about the missing text, a
    format with the fields `missing`, `total` and `source`."""
    kept = _beginning(text)
    id, name = secrets.token_hex(8), _attribute(source)
    whole = f'<external_content id="{id}" source="{name}">\n{defanged(kept)}\n</external_content>'
    if len(kept) == len(text):
        return whole
    missing = f"{len(text) - len(kept):,}"
    return f"{whole}\n{left_out.format(missing=missing, total=f'{len(text):,}', source=name)}"


def defanged(text: str) -> str:
    """Return a text in which no tag ``external_content`` opens or closes, in any spelling: letters of any
    case and width, with spaces, marks or invisible characters between them."""
    folded, places = [], []
    for at, character in enumerate(text):
        for each in _folded(character):
            folded.append(each)
            places.append(at)
    parts, end = [], 0
    for found in TAG.finditer("".join(folded)):
        parts += [text[end : places[found.start()]], "&lt;", "/" * ("/" in found[0]), "external-content"]
        end = places[found.end() - 1] + 1
    return "".join([*parts, text[end:]])


@lru_cache(4096)
def _folded(character: str) -> str:
    """Return the letters that a reader of tags sees in a character; "" for an invisible one."""
    kept = unicodedata.normalize("NFKD", character).casefold().translate(ALIKE)
    seen = "".join(each for each in kept if unicodedata.category(each)[0] not in "CMZ")
    return "_" if seen and unicodedata.category(seen[0]) == "Pc" else seen


def _beginning(text: str) -> str:
    """Return the beginning of a text, at most `BUDGET` characters; it ends with a line or a word if an end is
    near."""
    if len(text) <= BUDGET:
        return text
    kept = text[:BUDGET]
    at = max(kept.rfind("\n", BUDGET - 2000), kept.rfind(" ", BUDGET - 100))
    return kept[:at] if at > 0 else kept


def _attribute(text: str) -> str:
    line = "".join(" " if unicodedata.category(each)[0] in "CZ" else each for each in defanged(text))
    for sign, name in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        line = line.replace(sign, name)
    return line[:LONGEST_SOURCE]
