"""The index of words, one class for each kind of database: SQLite's FTS5, PostgreSQL's full-text search.

Both index the same terms (`_search.words`), without splitting them further: FTS5's tokenizer `ascii` keeps
every letter beyond ASCII, and a tsvector is written with its positions. Both return the rows that match;
`ranking` orders them by BM25, since PostgreSQL's own ranks ignore how rare a word is. Rows contain the space
of a text, so the cost of a question depends only on its owner's data.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from .._search.spelling import is_one_edit, one_edit_away
from .._search.words import stems, terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection

    from .._search.question import Question

    Parameters = dict[str, object]

ENTRIES = "knowledge_words", "knowledge_entries"
PASSAGES = "knowledge_passage_words", "knowledge_passages"
"""An index, and the table for whose numbers it has rows."""
MOST_KNOWN, MOST_LIKE = 50_000, 20
"""For a word without matches: the words with its first letter that are examined, and the similar ones of
them."""
MOST_LIKE_ROWS = 500
"""Texts with similar words."""
MOST_POSITIONS = 16_383
"""The positions in a tsvector; words after them are found, but not in a phrase (PostgreSQL, 12.9:
limitations)."""
OTHER = "-"
"""Replaces each stem of a text that the question does not contain; it equals no stem."""
ASKED = " : "
"""In a query, separates the column from the terms."""
LOCKS = {ENTRIES[0]: 0x66727073_00000000, PASSAGES[0]: 0x66727074_00000000}
"""The first of PostgreSQL's advisory locks for the spaces of an index."""


class WordIndex:
    """The common part of both: a row for each text, with its terms and their stems."""

    key: str
    """The column with a text's number."""
    ranks: bool
    """Whether the database itself ranks rows by BM25."""

    def __init__(self, table: str, texts: str) -> None:
        self.table = table
        self.texts = texts

    def lock(self, connection: Connection, space: int) -> None:
        """Wait until no other transaction numbers texts of this space. Numbers are then committed in
        ascending order, so a reader that has read up to a number has missed none below it."""

    def add_many(self, connection: Connection, rows: Iterable[tuple[int, int, str]]) -> None:
        """Add texts, at least one, each with its number and its space."""
        made = [{"number": number, "space": space, **self.row_of(content)} for number, space, content in rows]
        self.add_rows(connection, made)

    def row_of(self, content: str) -> Parameters:
        """Return the row of a text without its number. Takes a second for some megabytes."""
        words = terms(content)
        return {"words": self.written(words), "stems": self.written(stems(words))}

    def add_rows(self, connection: Connection, rows: list[Parameters]) -> None:
        """Add rows, at least one: `row_of` with the text's number and its space."""
        raise NotImplementedError

    def clear(self, connection: Connection) -> None:
        """Remove all texts."""
        connection.execute(text(f"DELETE FROM {self.table}"))

    def damage(self, connection: Connection) -> list[str]:
        """Return what the database itself reports as damaged."""
        return []

    def parts(self, spaces: Sequence[int]) -> Sequence[int | None]:
        """Return the parts of the index that are read separately; each has its own newest row."""
        raise NotImplementedError

    def newest(self, connection: Connection, part: int | None) -> int:
        """Return the highest number in a part, 0 if the part is empty."""
        raise NotImplementedError

    def numbers(self, connection: Connection, query: str, part: int | None, above: int) -> list[int]:
        """Return the ascending numbers of a part, above a given one, that match a query."""
        raise NotImplementedError

    def stems_of(self, connection: Connection, numbers: Iterable[int], question: Question) -> dict[int, str]:
        """Return the stems of these rows, without deleted ones; stems that the question does not contain may
        be OTHER."""
        raise NotImplementedError

    def all_of(self, spaces: Iterable[int]) -> str:
        """Return the query for all texts of these spaces."""
        raise NotImplementedError

    def needed(self, question: Question) -> str:
        """Return the query for texts with all required phrases and prefixes; empty without any."""
        raise NotImplementedError

    def wished(self, alternatives: Iterable[Iterable[str]]) -> str:
        """Return the query for texts with one of these."""
        raise NotImplementedError

    def unwanted(self, question: Question) -> str:
        """Return the query for texts with an excluded phrase; empty without any."""
        raise NotImplementedError

    def limits(self, question: Question) -> list[tuple[str, Parameters]]:
        """Return the conditions for texts that were not found by words: the required and the excluded
        phrases."""
        having = [self.having(question)] if question.phrases or question.prefixes else []
        return [*having, *([self.without(question)] if question.without else [])]

    def having(self, question: Question) -> tuple[str, Parameters]:
        """Return the condition for texts with everything required."""
        raise NotImplementedError

    def without(self, question: Question) -> tuple[str, Parameters]:
        """Return the condition for texts without anything excluded."""
        raise NotImplementedError

    def nearest(self, connection: Connection, word: str, spaces: Iterable[int]) -> str | None:
        """Return the word of these spaces that is one edit away, else one with this beginning. None for a
        word that they have, and if they have neither. The first letter must be right."""
        raise NotImplementedError

    def remove(self, connection: Connection, numbers: Iterable[int]) -> None:
        connection.execute(
            text(f"DELETE FROM {self.table} WHERE {self.key} = :number"),
            [{"number": each} for each in numbers],
        )

    def written(self, terms: list[str]) -> str:
        """Return terms in the database's notation."""
        raise NotImplementedError


class Fts5Index(WordIndex):
    """SQLite's index: a row of FTS5 for each text."""

    key = "rowid"
    ranks = True

    def add_rows(self, connection: Connection, rows: list[Parameters]) -> None:
        insertion = "(rowid, space, words, stems) VALUES (:number, :space, :words, :stems)"
        made = [{**row, "space": self.space_token(row["space"])} for row in rows]
        connection.execute(text(f"INSERT INTO {self.table} {insertion}"), made)

    def remove(self, connection: Connection, numbers: Iterable[int]) -> None:
        """Remove texts, including the data that FTS5 would keep until it merges its parts."""
        super().remove(connection, numbers)
        connection.execute(text(f"INSERT INTO {self.table} ({self.table}) VALUES ('optimize')"))

    def clear(self, connection: Connection) -> None:
        connection.execute(text(f"DROP TABLE {self.table}"))
        connection.execute(
            text(f"CREATE VIRTUAL TABLE {self.table} USING fts5 (space, words, stems, tokenize = 'ascii')")
        )
        connection.execute(
            text(f"INSERT INTO {self.table} ({self.table}, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)')")
        )

    def damage(self, connection: Connection) -> list[str]:
        try:
            connection.execute(text(f"INSERT INTO {self.table} ({self.table}) VALUES ('integrity-check')"))
        except DatabaseError:
            return ["the index of words is damaged: fastrpc knowledge reindex mends it"]
        return []

    def written(self, terms: list[str]) -> str:
        return " ".join(terms)

    def parts(self, spaces: Sequence[int]) -> Sequence[int | None]:
        return (None,)

    def newest(self, connection: Connection, part: int | None) -> int:
        return connection.exec_driver_sql(f"SELECT max(number) FROM {self.texts}").scalar() or 0

    def numbers(self, connection: Connection, query: str, part: int | None, above: int) -> list[int]:
        statement = f"SELECT rowid FROM {self.table} WHERE {self.table} MATCH ? AND rowid > ?"
        return [number for (number,) in connection.exec_driver_sql(statement, (query, above)).all()]

    def stems_of(self, connection: Connection, numbers: Iterable[int], question: Question) -> dict[int, str]:
        wanted = ", ".join(map(str, numbers))
        rows = connection.exec_driver_sql(f"SELECT rowid, stems FROM {self.table} WHERE rowid IN ({wanted})")
        return {row.rowid: row.stems for row in rows}

    def space_token(self, space: object) -> str:
        """Return the token of a space in rows: no word has this letter."""
        return f"§{space}"

    def all_of(self, spaces: Iterable[int]) -> str:
        return f"space : ({' OR '.join(_phrase([self.space_token(each)]) for each in spaces)})"

    def needed(self, question: Question) -> str:
        # No term can be an operator, since none contains a quote.
        parts = [f"words : {_phrase(each)}" for each in question.phrases]
        parts += [f'words : "{each}" *' for each in question.prefixes]
        return " AND ".join(parts)

    def wished(self, alternatives: Iterable[Iterable[str]]) -> str:
        parts = " OR ".join(map(_phrase, alternatives))
        return parts and f"stems : ({parts})"

    def unwanted(self, question: Question) -> str:
        parts = " OR ".join(map(_phrase, question.without))
        return parts and f"words : ({parts})"

    def query(self, question: Question, spaces: Iterable[int]) -> str:
        """Return the FTS5 query that ranks all matches of a question."""
        needed, wished, unwanted = self.needed(question), self.wished(question.stems), self.unwanted(question)
        if needed:
            wished = f"{needed} AND ({wished} OR ({needed}))" if wished else needed
        query = f"{self.all_of(spaces)} AND {wished}"
        return f"({query}) NOT {unwanted}" if unwanted else query

    def having(self, question: Question) -> tuple[str, Parameters]:
        found = f"SELECT rowid FROM {self.table} WHERE {self.table} MATCH :having"
        return f"e.number IN ({found})", {"having": self.needed(question)}

    def nearest(self, connection: Connection, word: str, spaces: Iterable[int]) -> str | None:
        vocabulary = f"{self.table}_vocabulary"
        connection.exec_driver_sql(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{vocabulary} USING fts5vocab (main, {self.table}, col)"
        )
        known = connection.exec_driver_sql(
            f"SELECT term FROM temp.{vocabulary} WHERE term >= ? AND term < ? AND col = 'words' "
            f"LIMIT {MOST_KNOWN:d}",
            (word[0], word[0] + "\U0010ffff"),
        ).scalars()
        like = sorted(
            (not is_one_edit(word, each), len(each), each)
            for each in known
            if each.startswith(word) or is_one_edit(word, each)
        )
        own = self.all_of(spaces)
        statement = f"SELECT 1 FROM {self.table} WHERE {self.table} MATCH ? LIMIT 1"
        for each in [word, *(each for _, _, each in like[:MOST_LIKE])]:
            if connection.exec_driver_sql(statement, (f'{own} AND words : "{each}"',)).first():
                return None if each == word else each
        return None

    def without(self, question: Question) -> tuple[str, Parameters]:
        found = f"SELECT rowid FROM {self.table} WHERE {self.table} MATCH :without"
        return f"e.number NOT IN ({found})", {"without": self.unwanted(question)}


class TextSearchIndex(WordIndex):
    """PostgreSQL's index: two vectors for each text."""

    key = "number"
    ranks = False

    def lock(self, connection: Connection, space: int) -> None:
        key = LOCKS[self.table] | space & 0xFFFFFFFF
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    def add_rows(self, connection: Connection, rows: list[Parameters]) -> None:
        insertion = (
            f"INSERT INTO {self.table} (number, space, words, stems) VALUES "
            "(:number, :space, CAST(:words AS tsvector), CAST(:stems AS tsvector))"
        )
        connection.execute(text(insertion), rows)

    def written(self, terms: list[str]) -> str:
        """Return terms as the text of a tsvector, with the positions that it can hold."""
        return " ".join(f"'{term}':{min(at, MOST_POSITIONS)}" for at, term in enumerate(terms, 1))

    def parts(self, spaces: Sequence[int]) -> Sequence[int | None]:
        return spaces

    def newest(self, connection: Connection, part: int | None) -> int:
        statement = f"SELECT max(number) FROM {self.table} WHERE space = {part:d}"
        return connection.exec_driver_sql(statement).scalar() or 0

    def numbers(self, connection: Connection, query: str, part: int | None, above: int) -> list[int]:
        column, _, asked = query.partition(ASKED)
        statement = f"SELECT number FROM {self.table} WHERE space = :part"
        values: Parameters = {"part": part}
        if asked:
            statement += f" AND {column} @@ CAST(:asked AS tsquery)"
            values["asked"] = asked
        if above:
            statement += " AND number > :above"
            values["above"] = above
        return sorted(number for (number,) in connection.execute(text(statement), values).all())

    def stems_of(self, connection: Connection, numbers: Iterable[int], question: Question) -> dict[int, str]:
        """Return texts of the question's stems, each at its positions, with OTHER at the other positions."""
        rows = connection.execute(
            text(
                "SELECT w.number, t.size, t.found "
                f"FROM {self.table} AS w CROSS JOIN LATERAL (SELECT max(positions[cardinality(positions)]) "
                "AS size, json_object_agg(lexeme, positions) FILTER (WHERE lexeme = ANY(:asked)) AS found "
                f"FROM unnest(w.stems)) AS t WHERE w.number IN ({', '.join(map(str, numbers))})"
            ),
            {"asked": list({stem for each in question.stems for stem in each})},
        )
        texts = {}
        for number, size, found in rows:
            stems = [OTHER] * (size or 0)
            for stem, positions in (found or {}).items():
                for position in positions:
                    stems[position - 1] = stem
            texts[number] = " ".join(stems)
        return texts

    def all_of(self, spaces: Iterable[int]) -> str:
        return ""

    def needed(self, question: Question) -> str:
        parts = [*map(_followed, question.phrases), *(f"'{each}':*" for each in question.prefixes)]
        return f"words{ASKED}{' & '.join(f'({each})' for each in parts)}" if parts else ""

    def wished(self, alternatives: Iterable[Iterable[str]]) -> str:
        return f"stems{ASKED}{' | '.join(map(_followed, alternatives))}"

    def unwanted(self, question: Question) -> str:
        parts = [f"({_followed(each)})" for each in question.without]
        return f"words{ASKED}{' | '.join(parts)}" if parts else ""

    def having(self, question: Question) -> tuple[str, Parameters]:
        found = f"SELECT number FROM {self.table} WHERE words @@ CAST(:having AS tsquery)"
        return f"e.number IN ({found})", {"having": self.needed(question).partition(ASKED)[2]}

    def nearest(self, connection: Connection, word: str, spaces: Iterable[int]) -> str | None:
        """PostgreSQL's index cannot list its words, so all candidates are searched."""
        for query in (" | ".join(f"'{each}'" for each in [word, *one_edit_away(word)]), f"'{word}':*"):
            found = self._words_of(connection, query, spaces)
            if word in found:
                return None
            like = [each for each in found if each.startswith(word) or is_one_edit(word, each)]
            if like:
                return min(like, key=lambda each: (not is_one_edit(word, each), len(each), each))
        return None

    def _words_of(self, connection: Connection, query: str, spaces: Iterable[int]) -> list[str]:
        """Return the words of texts of these spaces that match a query."""
        # PostgreSQL expects a match in all rows for so many words, and would read each row.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        having = f"SELECT number FROM {self.table} WHERE words @@ CAST(:query AS tsquery)"
        statement = (
            f"WITH like_it AS MATERIALIZED ({having}), own AS MATERIALIZED "
            f"(SELECT w.words FROM {self.table} AS w JOIN like_it ON like_it.number = w.number "
            f"WHERE w.space IN ({', '.join(map(str, spaces))}) LIMIT {MOST_LIKE_ROWS:d}) "
            "SELECT DISTINCT lexeme FROM own CROSS JOIN LATERAL unnest(own.words)"
        )
        return list(connection.execute(text(statement), {"query": query}).scalars())

    def without(self, question: Question) -> tuple[str, Parameters]:
        found = f"SELECT number FROM {self.table} WHERE words @@ CAST(:without AS tsquery)"
        return f"e.number NOT IN ({found})", {"without": self.unwanted(question).partition(ASKED)[2]}


def coverage(question: Question, kept: Iterable[str]) -> float:
    """Return the share of a question's terms that a text contains, given its stems in order."""
    if len(question.stems) < 2:
        return 1.0
    text = f" {' '.join(kept)} "
    return sum(f" {' '.join(each)} " in text for each in question.stems) / len(question.stems)


def index_of(connection: Connection, what: tuple[str, str] = ENTRIES) -> Fts5Index | TextSearchIndex:
    """Return the index of this kind of database, of the entries or of the PASSAGES."""
    return Fts5Index(*what) if connection.dialect.name == "sqlite" else TextSearchIndex(*what)


def _phrase(terms: Iterable[str]) -> str:
    return '"' + " ".join(terms) + '"'


def _followed(terms: Iterable[str]) -> str:
    return " <-> ".join(f"'{each}'" for each in terms)
