"""Names that a list allows: exact ones, and globs (``*``, ``?``, ``[abc]``). Upper and lower case differ.

The globs of a list become one regular expression in which a ``*`` does not backtrack: no glob can make a
match slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

from fastrpc.protocol.uri_template import normal, without_dots

LONGEST = 256
MOST = 10_000


class Patterns:
    """What a list allows. Raises ValueError for a glob that is too long, and for too many."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(texts)
        for text in self.texts:
            if not text or len(text) > LONGEST:
                raise ValueError(f"a name or glob has 1 to {LONGEST} characters, this {len(text)}")
        if len(self.texts) > MOST:
            raise ValueError(f"a list has at most {MOST} names and globs, this {len(self.texts)}")
        self._uris: Patterns | None = None
        """The same for URIs in their normal form."""
        self._exact = frozenset(self.texts)  # a name with brackets also matches itself
        self.names = frozenset(text for text in self.texts if not _is_glob(text))
        globs = [translate(text) for text in self.texts if _is_glob(text)]
        self._globs = re.compile("|".join(globs)) if globs else None

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """Return the globs that match none of these names."""
        names = list(names)
        globs = [text for text in self.texts if _is_glob(text)]
        return [glob for glob in globs if not any(map(Patterns([glob]).match, names))]

    def match(self, name: str) -> bool:
        return name in self._exact or (self._globs is not None and self._globs.match(name) is not None)

    def match_uri(self, uri: str) -> bool:
        """Whether a URI is allowed: the URI, or the part after its scheme (``documents/*``), in any spelling.
        If its path contains ``..``, both the URI and the resolved one must be allowed."""
        if self._uris is None:
            self._uris = Patterns(normal(text)[: max(LONGEST, len(text))] for text in self.texts)
        meant = normal(uri)
        return all(
            self._uris.match(form) or self._uris.match(form.partition("://")[2])
            for form in {meant, without_dots(meant)}
        )


def _is_glob(text: str) -> bool:
    return any(character in text for character in "*?[")
