"""Keeps the speed of search in the knowledge toolset: fails where it takes more than 1.5 times as long as a
query of FTS5 that was written by hand for the same rows (`make bench-guard`).

    python benchmarks/knowledge_guard.py                 both stores, two to four minutes
    python benchmarks/knowledge_guard.py --entries 5000  smaller ones

`owners`: 1,000 owners with 100 entries each, asked in turn; the query by hand has the owner as a word of the
index, so FTS5 reads none of the others' rows. `lengths`: one owner, whose entries have 25 to 1,200 words, as
notes do. Both searchers are asked each question in turn, and ratios are taken question by question; what is
over the bar is measured again, up to three times: noise stops nobody.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from knowledge_search import many, questions  # noqa: E402
from knowledge_searchers import FullText, Product, either, words_of  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from knowledge_searchers import Entry

    Asked: TypeAlias = Callable[[str, str], object]

BAR = 1.5
ENTRIES, EACH = 100_000, 100
LONG_ENTRIES = 20_000
LONGEST = 14  # times the words of an entry for speed, of which there are some 85
QUESTIONS = 60
REPETITIONS = 3


class OfOwners(FullText):
    """FTS5 by hand, with the owner as a word of each row."""

    def add_of(self, owner: str, entries: list[Entry]) -> None:
        self.add((id, title, f"{text}\n{owner}") for id, title, text in entries)

    def search_of(self, owner: str, query: str) -> list[str]:
        words = either(dict.fromkeys(words_of(query)))
        found = self.database.execute(
            "SELECT id FROM words JOIN entries ON entries.rowid = words.rowid"
            " WHERE words MATCH ? ORDER BY rank LIMIT 10",
            (f'text : "{owner}" AND ({words})',),
        )
        return [name for (name,) in found]


def of_owners(folder: str, count: int) -> tuple[list[str], Asked, Asked]:
    """The owners of a store of many, and what asks ours and the one by hand."""
    ours, by_hand = Product(os.path.join(folder, "owners")), OfOwners(os.path.join(folder, "owners.sqlite3"))
    entries, owners = list(many(count)), [f"owner{number}" for number in range(count // EACH)]
    readers = {owner: type(ours.reader)(owner, "") for owner in owners}
    for at, owner in enumerate(owners):
        written = entries[at * EACH : (at + 1) * EACH]
        ours.reader = readers[owner]
        ours.add(written)
        by_hand.add_of(owner, written)

    def asked(owner: str, question: str) -> object:
        ours.reader = readers[owner]
        return ours.search(question, 10)

    return owners, asked, by_hand.search_of


def of_lengths(folder: str, count: int) -> tuple[list[str], Asked, Asked]:
    """The same of one owner, whose entries are of all lengths."""
    ours, by_hand = (
        Product(os.path.join(folder, "lengths")),
        FullText(os.path.join(folder, "lengths.sqlite3")),
    )
    written = list(of_all_lengths(count))
    ours.add(written)
    by_hand.add(written)
    return (
        [""],
        lambda _, question: ours.search(question, 10),
        lambda _, question: by_hand.search(question, 10),
    )


def of_all_lengths(count: int) -> Iterator[Entry]:
    """Entries of a third of a short one's words up to many times as many; most are short."""
    draw, pieces = random.Random(35), many(count * 4)
    for number in range(count):
        _, title, text = next(pieces)
        if (times := int(draw.paretovariate(1.2))) == 1:
            words = text.split()
            text = " ".join(words[: draw.randint(min(25, len(words)), len(words))])
        else:
            text = "\n\n".join([text, *(next(pieces)[2] for _ in range(min(times, LONGEST) // 2))])
        yield str(number), title, text


def ratio(owners: list[str], ours: Asked, by_hand: Asked) -> tuple[float, float, float]:
    """Milliseconds of both at the median, and the median of the ratios."""
    draw, times = random.Random(35), []
    wanted = [question for question, _ in draw.sample(questions(), QUESTIONS)]
    for question in [*wanted, *wanted]:  # the first turn warms up
        owner = draw.choice(owners)
        times.append((milliseconds(ours, owner, question), milliseconds(by_hand, owner, question)))
    mine, theirs = zip(*times[QUESTIONS:], strict=True)
    ratios = [one / other for one, other in zip(mine, theirs, strict=True)]
    return statistics.median(mine), statistics.median(theirs), statistics.median(ratios)


def milliseconds(ask: Asked, owner: str, question: str) -> float:
    began = time.perf_counter()
    ask(owner, question)
    return 1000 * (time.perf_counter() - began)


def holds(name: str, owners: list[str], ours: Asked, by_hand: Asked) -> bool:
    for _ in range(REPETITIONS):
        mine, theirs, found = ratio(owners, ours, by_hand)
        said = "ok" if found <= BAR else f"misses the bar of {BAR:g}"
        print(f"{name:<8} {mine:7.2f} ms, by hand {theirs:7.2f} ms, ratio {found:.2f}  {said}", flush=True)
        if found <= BAR:
            return True
    return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Fail when search in the knowledge toolset has become slower."
    )
    parser.add_argument("--entries", type=int, default=ENTRIES, help="of all owners; a fifth of it of one")
    count = parser.parse_args(arguments).entries
    held = []
    with tempfile.TemporaryDirectory() as folder:
        held.append(holds("owners", *of_owners(folder, count)))
        held.append(holds("lengths", *of_lengths(folder, count * LONG_ENTRIES // ENTRIES)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
