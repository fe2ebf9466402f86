"""The searchers that knowledge_search.py compares, all with one interface.

`FullText` is what a program gets from SQLite's FTS5 by itself: its words, or Porter's stems, in an OR-query
ordered by bm25. `Reference` is the recipe of docs/knowledge.md in its shortest form, for studying it: it
keeps no metadata, knows no filters and only English. `Product` is the knowledge toolset's own search,
`Meaning` the same with the model of a folder.
"""

from __future__ import annotations

import os
import re
import sqlite3
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    Entry = tuple[str, str, str]  # id, title, text

    class Searcher(Protocol):
        def __init__(self, path: str) -> None: ...
        def add(self, entries: Iterable[Entry]) -> None:
            """Write these entries in one transaction, durably."""

        def search(self, query: str, limit: int) -> list[str]:
            """Return the ids of the entries that answer best, the best first."""

        def close(self) -> None: ...


WORD = re.compile(r"[^\W_]+")
FUNCTION_WORDS = frozenset(
    """
    a an and are as at be but by can did do does for from had has have he her his how i if in into is
    it its me my of on or our she so than that the their them then there these they this to was we
    were what when where which who whom whose why will with would you your
    """.split()  # noqa: SIM905, which is easier to read
)


def words_of(text: str) -> list[str]:
    """Its words as FTS5's unicode61 cuts and folds them."""
    if text.isascii():
        return WORD.findall(text.lower())
    decomposed = unicodedata.normalize("NFKD", text)
    return WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c)).casefold())


def either(words: Iterable[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


class FullText:
    """FTS5 with a tokenizer of its own, asked for any word of the question."""

    tokenizer = "unicode61"

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, isolation_level=None, timeout=60)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = FULL")
        self.database.execute("CREATE TABLE IF NOT EXISTS entries (id TEXT UNIQUE, title TEXT, text TEXT)")
        self.database.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(title, text, tokenize = '{self.tokenizer}')"
        )

    def indexed(self, text: str) -> str:
        return text

    def add(self, entries: Iterable[Entry]) -> None:
        self.database.execute("BEGIN IMMEDIATE")
        for entry in entries:
            row = self.database.execute("INSERT INTO entries VALUES (?, ?, ?)", entry).lastrowid
            self.database.execute(
                "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)",
                (row, self.indexed(entry[1]), self.indexed(entry[2])),
            )
        self.database.execute("COMMIT")

    def search(self, query: str, limit: int) -> list[str]:
        found = self.database.execute(
            "SELECT id FROM words JOIN entries ON entries.rowid = words.rowid"
            " WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (either(dict.fromkeys(words_of(query))), limit),
        )
        return [name for (name,) in found]

    def close(self) -> None:
        self.database.close()


class Porter(FullText):
    tokenizer = "porter unicode61"


class Reference(FullText):
    """Snowball's stems; a question loses its function words; the first entries by bm25 are ordered again by
    how many of the question's words they have."""

    first = 50
    title_weight, text_weight = 2.0, 1.0
    coverage = 0.5

    def __init__(self, path: str) -> None:
        import Stemmer

        super().__init__(path)
        self.stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords

    def indexed(self, text: str) -> str:
        return " ".join(self.stem(words_of(text)))

    def search(self, query: str, limit: int) -> list[str]:
        words = words_of(query)
        telling = [word for word in words if word not in FUNCTION_WORDS] or words
        stems = list(dict.fromkeys(self.stem(telling)))
        if not stems:
            return []
        found = self.database.execute(
            "SELECT rowid, -bm25(words, ?, ?) AS score, title, text FROM words WHERE words MATCH ?"
            " ORDER BY score DESC LIMIT ?",
            (self.title_weight, self.text_weight, either(stems), max(limit, self.first)),
        ).fetchall()
        asked = set(stems)
        ranked = []
        for number, score, title, text in found:
            covered = len(asked.intersection(f"{title} {text}".split()))
            ranked.append((-score * (covered / len(asked)) ** self.coverage, number))
        ranked.sort()
        names = self.database.execute(
            f"SELECT rowid, id FROM entries WHERE rowid IN ({','.join(str(n) for _, n in ranked[:limit])})"
        )
        name_of = dict(names)
        return [name_of[number] for _, number in ranked[:limit]]


class Product:
    """The search of the knowledge toolset, over a store of its own in this folder."""

    def __init__(self, path: str) -> None:
        from fastrpc.tools.knowledge._store.entries import Entries, Reader
        from fastrpc.tools.knowledge._store.kind import KNOWLEDGE

        from fastrpc.storage import open_database

        os.makedirs(path, mode=0o700, exist_ok=True)
        self.store = Entries(open_database(f"sqlite:///{path}/knowledge.sqlite3", KNOWLEDGE))
        self.reader = Reader("reader", "")

    def add(self, entries: Iterable[Entry]) -> None:
        from fastrpc.tools.knowledge._store import moving

        written = [moving.Record(f"{title}\n{text}", "fact", "", [], id) for id, title, text in entries]
        moving.add(self.store.database, self.reader.owner, written)

    def search(self, query: str, limit: int) -> list[str]:
        from fastrpc.tools.knowledge._search.question import read

        return [entry.source for entry in self.store.search(self.reader, read(query), "all", limit)]

    def close(self) -> None:
        self.store.database.close()


class Meaning(Product):
    """The same, by meaning as well: `MODEL` names a folder as `--embeddings-folder` does."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        os.environ["FASTRPC_KNOWLEDGE_DATABASE"] = f"sqlite:///{path}/knowledge.sqlite3"
        os.environ["FASTRPC_KNOWLEDGE_EMBEDDINGS_FOLDER"] = os.environ[MODEL]

    def add(self, entries: Iterable[Entry]) -> None:
        from fastrpc.tools.knowledge._models.background import jobs

        super().add(entries)
        for job in jobs():
            while job.read_lot(self.store.database):
                pass
            if job.problem:
                raise SystemExit(job.problem)

    def search(self, query: str, limit: int) -> list[str]:
        from fastrpc.tools.knowledge._models import meaning_of
        from fastrpc.tools.knowledge._search.question import read

        question = read(query)
        meaning, note = meaning_of(question.said)
        if meaning is None:
            raise SystemExit(note)
        return [entry.source for entry in self.store.search(self.reader, question, "all", limit, meaning)]


MODEL = "FASTRPC_BENCHMARK_MODEL"
SEARCHERS: dict[str, Callable[[str], Searcher]] = {
    "FTS5": FullText,
    "FTS5, Porter": Porter,
    "reference": Reference,
    "ours": Product,
    "ours, with a model": Meaning,
}
