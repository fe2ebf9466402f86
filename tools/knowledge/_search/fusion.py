"""Reciprocal rank fusion: one order made of several (Cormack, Clarke and Büttcher, SIGIR 2009).

Ranks are compared, never scores: similarities of vectors and scores of BM25 are not comparable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

K = 5
"""The constant that flattens the weight of the first ranks. The paper has 60, for orders of many systems; of
two, the first ranks say more."""
WORDS, MEANING = 1.0, 1.0
"""Weights of the two orders, as K measured on questions with known answers (docs/knowledge.md)."""


def fused(by_words: Sequence[int], by_meaning: Sequence[int]) -> dict[int, float]:
    """Return the score of each number in either of two orders, best first: 1 for the first of both."""
    found: dict[int, float] = {}
    for weight, order in ((WORDS, by_words), (MEANING, by_meaning)):
        for number, share in _shares(order):
            found[number] = found.get(number, 0.0) + share * weight / (WORDS + MEANING)
    return found


def _shares(order: Sequence[int]) -> Iterable[tuple[int, float]]:
    return ((number, (K + 1) / (K + rank)) for rank, number in enumerate(order, 1))
