"""Finds what a text names: people, projects, places, organisations, dates, and its links. No model.

A name is a run of capitalised words, with particles between them (Bank of Japan, Ludwig van Beethoven). The
words around it decide its kind; if they do not, the kind is `name`. At the beginning of a sentence every word
is capitalised. A single one there is `unsure` unless something else shows that it is a name. Texts in scripts
without capitals name by ``[[links]]`` and tags. The results are guesses, for finding entries, not for
asserting anything.
"""

from __future__ import annotations

import re
from datetime import date

from ._search.folding import folded
from ._search.stop_words import ENGLISH, GERMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 64
"""Entities of one text; later ones are ignored."""
LONGEST = 100
"""Characters of a name; longer ones are ignored."""

LINK = re.compile(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
WORD = re.compile(r"[^\W_]+(?:['’&.-][^\W_]+)*")
_DIGIT = re.compile(r"\d")
BETWEEN = re.compile(r"[ \t]+|\. ")
"""What may separate two words of a name; a full stop only after an abbreviation (`SHORT`)."""
SENTENCE = frozenset('.!?:;•"“(*#>-')
"""Characters after which a sentence begins, as it does at the beginning of a line."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PARTICLES = _set("of the de la le du des van von der den di da del dos al bin ibn")
SHORT = _set("mr mrs ms dr prof st inc ltd corp")
PERSON_BEFORE = _set(
    """mr mrs ms dr prof professor sir wife husband partner friend colleague boss manager brother sister
    mother father son daughter cousin uncle aunt teacher doctor lawyer dentist neighbour neighbor herr frau"""
)
PERSON_BEHIND = _set(
    """said says likes liked loves loved prefers lives lived wants wanted wrote told asked thinks thought met
    joined knows knew hates hated eats drinks studies speaks married agreed promised decided"""
)
"""Verbs whose subject is nearly always a person."""
PLACE_LAST = _set(
    """street road avenue square city river lake mountain mountains island islands airport station park bay
    valley county village beach coast bridge straße strasse platz"""
)
PLACE_FIRST = _set("mount lake san santa port fort new cape")
ORGANISATION_LAST = _set(
    """inc ltd llc gmbh ag corp corporation company co group university college institute school bank ministry
    agency foundation council committee association society club hospital department labs laboratory airlines
    press party union"""
)
ORGANISATION_FIRST = _set("university bank ministry institute department college council")
PROJECT = _set("project projekt projet proyecto")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NO_NAMES = _set(
    f"""{" ".join(MONTHS)} {" ".join(DAYS)} i ok i'm i'll i've i'd am pm todo note montag dienstag mittwoch
    donnerstag freitag samstag"""
)
NO_NAMES_ALONE = frozenset(word[:3] for word in (*MONTHS, *DAYS))
"""Jan is a month, Jan Berg is not."""
_ENGLISH, _GERMAN = _set(ENGLISH), _set(GERMAN)
STARTERS = _set(
    f"""{ENGLISH} {GERMAN} yesterday today tomorrow tonight now later then soon also always never usually
    often sometimes maybe perhaps please however remember reminder both only all any some most many every
    each no not yes call email ask tell send meet visit see read write buy book use using let since while
    during after before until about against between over under if because although though once when
    whenever there here last next this these those first second third new old project"""
)

_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" if month[3:] else month for month in MONTHS)
_TH = "(?:st|nd|rd|th)?"
_DATES = (
    (
        re.compile(r"\d[-/.]\d"),
        re.compile(r"(?<![\d./-])(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?![\d/-])"),
    ),
    (
        re.compile(r"\d\.\s?\d"),
        re.compile(r"(?<![\d./-])(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})(?!\d)"),
    ),
    (re.compile(r"\d年"), re.compile(r"(?P<y>\d{4})年(?P<m>\d{1,2})月(?:(?P<d>\d{1,2})日)?")),
    (
        re.compile(rf"\d{_TH}\.? (?:of )?(?:{_MONTH})"),
        re.compile(rf"\b(?P<d>\d{{1,2}}){_TH}\.? (?:of )?(?P<n>{_MONTH})\b\.?(?:,? (?P<y>\d{{4}})\b)?"),
    ),
    (
        re.compile(rf"(?:{_MONTH})\.? \d"),
        re.compile(rf"\b(?P<n>{_MONTH})\b\.? (?P<d>\d{{1,2}}){_TH}\b(?:,? (?P<y>\d{{4}})\b)?"),
    ),
    (re.compile(rf"(?:{_MONTH}),? \d"), re.compile(rf"\b(?P<n>{_MONTH})\b,? (?P<y>\d{{4}})\b")),
    (re.compile(r"\d-\d"), re.compile(r"(?<![\d./-])(?P<y>\d{4})-(?P<m>\d{2})(?![\d-])")),
)
"""For each form of a date: a pattern that every such date contains, which is found faster since it begins
with a digit or a letter, and the form itself."""
DATE, TOPIC, NAME, UNSURE = "date", "topic", "name", "unsure"
VAGUE = {UNSURE: 2, NAME: 1, TOPIC: 1}
"""Kinds that any less vague kind replaces."""


class Entity:
    """A named thing: `key` is the same for all spellings. For a date it is YYYY-MM-DD, YYYY-MM, or, without a
    year, MM-DD."""

    __slots__ = ("key", "kind", "name")

    def __init__(self, kind: str, name: str, key: str = "") -> None:
        self.kind = kind
        self.name = name
        self.key = key or key_of(name)

    def __repr__(self) -> str:
        return f"{self.kind}:{self.name}"


def entities_in(text: str, tags: Iterable[str] = ()) -> list[Entity]:
    """Return what a text and its tags name, each once, with the least vague kind that was found."""
    found: dict[str, Entity] = {}
    for entity in _all_in(text, tags):
        known = found.get(entity.key)
        if known is None and entity.key and len(found) < MOST:
            found[entity.key] = entity
        elif known is not None and VAGUE.get(entity.kind, 0) < VAGUE.get(known.kind, 0):
            known.kind = entity.kind
    return list(found.values())


def key_of(name: str) -> str:
    """Return the key by which names are compared: a date's own form, or the folded words."""
    whole = folded(name.strip())
    if _DIGIT.search(whole):
        for entity, begin, end in _dates_in(whole):
            if begin == 0 and end == len(whole):
                return entity.key
    words = whole.replace("-", " ").split()
    return " ".join(words[1:] if len(words) > 1 and words[0] == "the" else words)[:LONGEST]


def _all_in(text: str, tags: Iterable[str]) -> Iterator[Entity]:
    for found in LINK.finditer(text):
        if len(name := found[1].strip()) <= LONGEST:
            yield Entity(TOPIC, name)
    for entity, _, _ in _dates_in(folded(text)):
        yield entity
    for tag in tags:
        yield Entity(TOPIC, tag)
    yield from _names_in(LINK.sub(lambda link: "\n" * len(link[0]), text))


# --- dates --------------------------------------------------------------------------------------------


def _dates_in(text: str) -> Iterator[tuple[Entity, int, int]]:
    """Yield the dates in a folded text, with their positions."""
    taken: list[tuple[int, int]] = []
    for hint, pattern in _DATES:
        if hint.search(text) is None:
            continue
        for found in pattern.finditer(text):
            begin, end = found.span()
            if len(taken) >= MOST:
                return
            key = _date_key(found.groupdict())
            if key and not any(begin < last and first < end for first, last in taken):
                taken.append((begin, end))
                yield Entity(DATE, key, key), begin, end


def _date_key(part: dict[str, str | None]) -> str:
    """Return the key of a date; "" if it is not in the calendar."""
    year, day, name = part.get("y"), part.get("d"), part.get("n")
    month = int(part.get("m") or 0)
    if name:
        month = 1 + next(at for at, each in enumerate(MONTHS) if each.startswith(name[:3]))
    try:
        checked = date(int(year or 2024), month, int(day or 1))  # 2024 has a 29 February
    except ValueError:
        return ""
    whole = checked.isoformat()
    return whole[5:] if year is None else whole if day else whole[:7]


# --- names --------------------------------------------------------------------------------------------


class _Words:
    """The words of a text, each with its start and its end."""

    __slots__ = ("ends", "own", "starts", "text")

    def __init__(self, text: str) -> None:
        found = list(WORD.finditer(text))
        self.text = text
        self.own = [word[0] for word in found]
        self.starts = [word.start() for word in found]
        self.ends = [word.end() for word in found]

    def begins_sentence(self, at: int) -> bool:
        start = self.starts[at]
        before = self.text[max(0, start - 8) : start]
        kept = before.rstrip()
        return not kept or kept[-1] in SENTENCE or "\n" in before[len(kept) :]


def _names_in(text: str) -> Iterator[Entity]:
    words = _Words(text)
    own = words.own
    capital = [at for at, word in enumerate(own) if word[0].isupper()]
    if not capital or len([word for word in own if word.isupper() and len(word) > 1]) * 2 > len(own) > 3:
        return  # a text without capitals, or all in capitals
    plain = {word for word in own if word.islower()}
    nouns_are_capital = len(plain & _GERMAN) > len(plain & _ENGLISH)
    inside = {own[at] for at in capital if not words.begins_sentence(at)}
    end = 0
    for at in capital:
        if at < end or not _is_name(own[at]):
            continue
        end = _end_of_run(words, at)
        first = _first_of(words, at, end, plain)
        if first < end and (entity := _entity(own, first, end)) is not None:
            alone = end - first == 1 and entity.kind == NAME and not _is_coined(own[first])
            if alone and own[first] not in inside and words.begins_sentence(first):
                entity.kind = UNSURE
            if not (alone and nouns_are_capital):
                yield entity


def _is_name(word: str) -> bool:
    return word[0].isupper() and word.lower() not in NO_NAMES


def _is_coined(word: str) -> bool:
    """Whether a word cannot be an ordinary one even at the beginning of a sentence: NASA, PyPI, A380."""
    return len(word) > 1 and (any(letter.isupper() for letter in word[1:]) or not word.isalpha())


def _end_of_run(words: _Words, at: int) -> int:
    """Return the place after the last word of a name."""
    own = words.own
    looked = end = at + 1
    while looked < len(own) and looked - at < 8 and not _is_possessive(own[looked - 1]):
        gap = words.text[words.ends[looked - 1] : words.starts[looked]]
        if gap != " " and (
            not BETWEEN.fullmatch(gap) or ("." in gap and own[looked - 1].lower() not in SHORT)
        ):
            break
        word = own[looked]
        looked += 1
        if _is_name(word):
            end = looked
        elif word not in PARTICLES or looked - end > 2:
            break
    return end


def _first_of(words: _Words, at: int, end: int, plain: set[str]) -> int:
    """Return the index of a name's first word, without words that are capitalised only because a sentence
    begins."""
    if not words.begins_sentence(at):
        return at
    while at < end:
        word = words.own[at].lower()
        if word not in STARTERS and word not in plain and word not in PARTICLES:
            break
        at += 1
    return at


def _is_possessive(word: str) -> bool:
    return word.endswith(("'s", "’s"))


def _entity(words: list[str], first: int, end: int) -> Entity | None:
    """Return what a run of words names, judged by the words in it and around it."""
    own = words[first:end]
    before = words[first - 1].lower() if first else ""
    behind = words[end].lower() if end < len(words) else ""
    low = [word.lower() for word in own]
    if low[0] in PERSON_BEFORE:
        before, own, low = low[0], own[1:], low[1:]
    if low and low[0] in PROJECT:
        before, own, low = low[0], own[1:], low[1:]
    is_whose = bool(own) and _is_possessive(own[-1])
    if is_whose:
        own[-1] = own[-1][:-2]
        low[-1] = low[-1][:-2]
    name = " ".join(own)
    is_short = len(own) == 1 and (low[0] in NO_NAMES_ALONE or (len(name) == 1 and name.isascii()))
    if not own or is_short or len(name) > LONGEST:
        return None
    if behind in PROJECT or before in PROJECT:
        kind = "project"
    elif before in PERSON_BEFORE:
        kind = "person"
    elif len(own) > 1 and (low[-1] in ORGANISATION_LAST or low[0] in ORGANISATION_FIRST):
        kind = "organisation"
    elif len(own) > 1 and (low[-1] in PLACE_LAST or low[0] in PLACE_FIRST):
        kind = "place"
    elif behind in PERSON_BEHIND and not _is_coined(own[-1]) and not is_whose:
        kind = "person"
    elif before in ("in", "near") and not _is_coined(own[0]):
        kind = "place"
    else:
        kind = NAME
    return Entity(kind, name)
