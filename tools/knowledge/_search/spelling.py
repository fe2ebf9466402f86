"""The words that a misspelt word may mean: those that are one edit away.

An edit adds, removes or replaces a letter, or swaps two adjacent ones. The first letter must be right.
"""

from __future__ import annotations

from functools import cache
from posixpath import commonprefix

from .folding import folded
from .words import WORD, is_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHORTEST = 5
"""Letters of a word for which alternatives are searched."""
ALPHABETS = (
    (ord("0"), ord("9")),
    (ord("a"), ord("z")),
    (0x00DF, 0x024F),  # Latin beyond ASCII
    (0x03B1, 0x03CE),  # Greek
    (0x0430, 0x045F),  # Cyrillic
    (0x0561, 0x0586),  # Armenian
    (0x05D0, 0x05EA),  # Hebrew
    (0x0621, 0x064A),  # Arabic
    (0x0901, 0x094D),  # Devanagari
    (0x0B82, 0x0BCD),  # Tamil
)
"""First and last letters; every alphabet includes digits and Latin letters."""


def is_one_edit(word: str, other: str) -> bool:
    """Whether one edit turns one word into the other."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return False
    at = len(commonprefix([word, other]))
    left, right = word[at:], other[at:]
    swapped = left[1:2] + left[:1] + left[2:]
    return right in (left[1:], swapped) or left == right[1:] or left[1:] == right[1:]


def one_edit_away(word: str) -> set[str]:
    """Return all words that are one edit away, with letters of the alphabets that the word uses."""
    letters = [each for first, last in _alphabets_of(word) for each in _letters(first, last)]
    found: set[str] = set()
    for at in range(1, len(word) + 1):
        head, tail = word[:at], word[at:]
        found.update(head + each + tail for each in letters)
        found.update(head + each + tail[1:] for each in letters)
        found.update((head + tail[1:], head + tail[1:2] + tail[:1] + tail[2:]))
    return found - {word}


def _alphabets_of(word: str) -> Iterator[tuple[int, int]]:
    yield from ALPHABETS[:2]
    for first, last in ALPHABETS[2:]:
        if any(first <= ord(each) <= last for each in word):
            yield first, last


@cache
def _letters(first: int, last: int) -> list[str]:
    """Return the letters that occur in indexed words."""
    every = map(chr, range(first, last + 1))
    return [each for each in every if folded(each) == each and WORD.fullmatch(each) and not is_run(each)]
