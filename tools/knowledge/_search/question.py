"""Parses a question: words, "exact phrases", -without, begin*, and fields (tag:, category:, source:, before:,
after:).

No input is an error: what is not an operator here is an ordinary word.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from itertools import pairwise
from typing import TypeVar

from .folding import folded
from .stop_words import telling
from .words import is_run, stem, terms, words_of

PART = re.compile(
    r"""(?P<minus>(?<!\S)-(?=["\w]))?(?:(?P<field>(?<!\S)(?:tag|category|source|before|after)):(?=\S))?
    (?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)|")""",
    re.VERBOSE,
)
MOST_TERMS = 64
"""Terms of a question that are searched, of each kind and of one phrase. Of a longer question the first ones
are used, since every term costs a look-up in everything that contains it."""
MOST_CHARACTERS = 4096

Asked = TypeVar("Asked")
Alternative = tuple[str, ...]
"""Terms in sequence."""


class Question:
    """A parsed question. `stems` are alternatives of stems, each of which adds to an entry's rank. `phrases`
    of words must occur; `prefixes` begin a word that must occur; `without` must not occur. `words` are the
    spelled words of the stems, if they have a stem; `said` is the input without `without` and the fields.
    `fields` are pairs of a name and a value; for before and after the value is a time in seconds since
    1970."""

    __slots__ = ("fields", "phrases", "prefixes", "said", "stems", "without", "words")

    def __init__(self) -> None:
        self.stems: list[Alternative] = []
        self.words: list[str] = []
        self.phrases: list[Alternative] = []
        self.prefixes: list[str] = []
        self.without: list[Alternative] = []
        self.fields: list[tuple[str, str | float]] = []
        self.said = ""

    @property
    def asks(self) -> bool:
        """Whether the question has words, phrases or prefixes."""
        return bool(self.stems or self.phrases or self.prefixes)


def read(text: str) -> Question:
    """Parse a question."""
    text = text[:MOST_CHARACTERS].replace("\0", " ").encode(errors="replace").decode()
    question = Question()
    words: list[str] = []
    said: list[str] = []
    for part in PART.finditer(text):
        quoted = part["phrase"] is not None
        value = (part["phrase"] if quoted else part["word"]) or ""
        if part["field"] and not part["minus"] and _is_field(question, part["field"], value):
            continue
        if part["field"]:
            value = f"{part['field']} {value}"
        if part["minus"] and not value[:1].isdecimal():
            question.without += filter(None, [_phrase(value)])
            continue
        said.append(value.rstrip("*"))
        if quoted:
            question.phrases += filter(None, [_phrase(value)])
        elif value.endswith("*") and not value.endswith("**") and (begins := terms(value)):
            question.prefixes.append(begins[-1])
            words += begins[:-1]
        else:
            words += words_of(folded(value))
    question.said = " ".join(" ".join(said).split())
    question.phrases, question.prefixes = _first(question.phrases), _first(question.prefixes)
    question.without, question.fields = _first(question.without), _first(question.fields)
    _ask(question, words)
    return question


def _phrase(text: str) -> Alternative:
    return tuple(terms(text)[:MOST_TERMS])


def _first(asked: list[Asked]) -> list[Asked]:
    """Return the first terms, each once."""
    return list(dict.fromkeys(asked))[:MOST_TERMS]


def _ask(question: Question, words: list[str]) -> None:
    """Set the words that the question asks for, without stop words."""
    found: dict[Alternative, None] = {}
    for word in telling(words):
        if len(found) >= MOST_TERMS:
            break
        if is_run(word):
            found.update(dict.fromkeys(pairwise(word) if len(word) > 1 else [(word,)]))
        else:
            found[(stem(word),)] = None
            question.words.append(word)
    question.stems, question.words = list(found)[:MOST_TERMS], _first(question.words)


def instead(question: Question, words: list[str]) -> Question:
    """Return the question with these words instead of its own."""
    other = Question()
    other.phrases, other.prefixes = question.phrases, question.prefixes
    other.without, other.fields = question.without, question.fields
    _ask(other, words)
    return other


def _is_field(question: Question, name: str, value: str) -> bool:
    """Take a field; return False if its value is invalid: then it is two words."""
    if name in ("before", "after"):
        seconds = _seconds(value)
        if seconds is None:
            return False
        question.fields.append((name, seconds))
    else:
        question.fields.append((name, folded(value.strip())))
    return True


def _seconds(text: str) -> float | None:
    """Return the time at which a day, a month or a year begins (UTC), or a given time; None for anything
    else."""
    parts = text.split("-")
    try:
        if all(part.isdecimal() for part in parts) and len(parts) <= 3:
            year, month, day = (*map(int, parts), 1, 1)[:3]
            first = date(year, month, day)
            return datetime(first.year, first.month, first.day, tzinfo=timezone.utc).timestamp()
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
