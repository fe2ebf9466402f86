"""Merges the lists of several engines into one by reciprocal rank fusion.

A page's score is the sum of 1 / (60 + rank) over the engines that list it. The method and its constant are
those of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
Learning Methods", SIGIR 2009. The order in which the engines answered does not matter.
"""

from __future__ import annotations

from . import _urls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._engine import Hit

K = 60


class Entry:
    """One page, in the form of the engine that ranks it highest, and the engines that found it."""

    __slots__ = ("engines", "score", "snippet", "title", "url")

    def __init__(self, found: list[tuple[int, str, Hit]]) -> None:
        found.sort(key=lambda place: place[:2])
        best = found[0][2]
        self.title = best.title
        self.url = best.url
        self.snippet = next((hit.snippet for _, _, hit in found if hit.snippet), "")
        self.engines = [name for _, name, _ in found]
        self.score = sum(1 / (K + rank) for rank, _, _ in found)


def merge(lists: Mapping[str, list[Hit]]) -> list[Entry]:
    """Return one entry per page, best first. `lists` has each engine's hits, best first, by its name."""
    found: dict[str, dict[str, tuple[int, str, Hit]]] = {}
    for name, hits in lists.items():
        for rank, hit in enumerate(hits, 1):
            found.setdefault(_urls.canonical(hit.url), {}).setdefault(name, (rank, name, hit))
    entries = {key: Entry(list(places.values())) for key, places in found.items()}
    return [entries[key] for key in sorted(entries, key=lambda key: (-entries[key].score, key))]
