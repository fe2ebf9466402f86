"""The tools memory.search, memory.write, memory.read, memory.forget and memory.forget_all.

The name of memory.search, its parameters and the beginning of its answer are published, word for word
(`_contract`). An answer is a text for the model; its structured content says the same to programs.
"""

from __future__ import annotations

from typing import TypedDict

from fastrpc import Context, Meta, ToolError, tool

from . import _models, _readers, _settings, _store
from ._answers import answer, noted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Literal

    from ._store.entries import Entry, Reader
else:
    from fastrpc.typing_forms import Annotated, Literal

LONGEST_BYTES = 16 * 1024
LONGEST_LINE = 500
"""Characters of an entry in a list of results."""
MOST_TAGS = 32
LONGEST_TAG = 64
LONGEST_SOURCE = 1024
LIMIT = 10
CONFIRMATION = "forget everything"


class MemoryEntry(TypedDict):
    """An entry. `date` is ISO 8601 (UTC); `superseded_by` the id of the entry that holds instead, else
    empty."""

    id: str
    uri: str
    category: str
    date: str
    content: str
    tags: list[str]
    source: str
    superseded_by: str


class SearchNote(TypedDict, total=False):
    """`note` says why a search was by words alone, although a model for meaning is configured, and which
    other words were searched."""

    note: str


class Found(SearchNote):
    """Entries, best first."""

    count: int
    entries: list[MemoryEntry]


class Written(TypedDict):
    """An entry that was written; `is_new` is false for content that was known, and has the later date now."""

    id: str
    uri: str
    is_new: bool


class Forgotten(TypedDict):
    """How many entries were forgotten."""

    forgotten: int


@tool(name="memory.search", effect="read", run="thread")
def search(
    ctx: Context,
    query: str,
    scope: Literal["user", "agent", "all"] | None = None,
    limit: Annotated[int | None, Meta(ge=1, le=100)] = None,
) -> Found:
    """Search user and agent memory by natural-language query."""
    found, notes = find(_readers.reader_of(ctx), query, scope or "all", limit or LIMIT)
    entries = "entry" if len(found) == 1 else "entries"
    lines = [f"Found {len(found)} {entries}{':' if found else '.'}", *map(line, found)]
    return noted("\n".join(lines), Found(count=len(found), entries=[shown(each) for each in found]), notes)


def find(reader: Reader, query: str, scope: str, limit: int) -> tuple[list[Entry], list[str]]:
    """Return the entries that answer a query, best first, and notes: sentences, which may be empty."""
    from ._search import question

    store, asked = _store.current(), question.read(query)
    meaning, note = _models.meaning_of(asked.said)
    notes = [note]
    found = store.search(reader, asked, scope, limit, meaning)
    if not found and (like := store.nearest(reader, asked, scope)):
        found = store.search(reader, question.instead(asked, list(like.values())), scope, limit)
        notes += nearest_notes("entry", like) if found else []
    return found, notes


@tool(name="memory.write", effect="write", run="thread")
def write(
    ctx: Context,
    content: Annotated[str, "What to remember, in whole sentences that can be understood by themselves"],
    category: Literal["fact", "preference", "observation"] = "fact",
    scope: Annotated[
        Literal["user", "agent"], "user: for all agents of this person; agent: only for this class of agents"
    ] = "user",
    tags: Annotated[list[str], "Words to find it by: tag:work"] = [],  # noqa: B006 - it is only read
    source: Annotated[str, "Where it is from: a URI, a name"] = "",
    supersedes: Annotated[str, "The id of an entry that is no longer true"] = "",
) -> Written:
    """Remember something. The same content twice is one entry, with the later date."""
    check(content, tags, source)
    kept = folded_tags(tags)
    done = _store.current().write(_readers.reader_of(ctx), content, category, scope, kept, source, supersedes)
    if done is None:
        raise ToolError(f"supersedes: there is no entry {supersedes:.40}.")
    _models.wrote()
    entry, is_new = done
    text = f"Remembered as {entry.id}." if is_new else f"Known as {entry.id}; it has today's date now."
    return answer(text, Written(id=entry.id, uri=uri_of(entry.id), is_new=is_new))


@tool(name="memory.read", effect="read", run="thread")
def read(ctx: Context, id: Annotated[str, "The entry's id: mem_…"]) -> MemoryEntry:
    """Read an entry of the memory, whole."""
    entry = _store.current().read(_readers.reader_of(ctx), id)
    if entry is None:
        raise _unknown(id)
    return answer(f"{_head(entry)}\n{entry.content}", shown(entry))


@tool(name="memory.forget", effect="write", run="thread")
def forget(ctx: Context, id: Annotated[str, "The entry's id: mem_…"]) -> Forgotten:
    """Forget an entry for good."""
    if not _store.current().forget(_readers.reader_of(ctx), id):
        raise _unknown(id)
    return answer(f"Forgot {id}.", Forgotten(forgotten=1))


@tool(name="memory.forget_all", effect="write", risk="critical", run="thread")
def forget_all(
    ctx: Context,
    scope: Literal["user", "agent", "all"],
    confirm: Annotated[str, f"The words: {CONFIRMATION}"],
) -> Forgotten:
    """Forget all entries of a scope for good."""
    if confirm != CONFIRMATION:
        raise ToolError(f'confirm: expected "{CONFIRMATION}", got "{confirm:.40}".')
    number = _store.current().forget_all(_readers.reader_of(ctx), scope)
    return answer(f"Forgot {number} {'entry' if number == 1 else 'entries'}.", Forgotten(forgotten=number))


def uri_of(id: str) -> str:
    """Return the URI of an entry."""
    return f"{_settings.SCHEME.read()}://memory/{id}"


def date_of(seconds: float) -> str:
    """Return a time as ISO 8601, in whole seconds (UTC)."""
    from datetime import datetime, timezone

    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def check(content: str, tags: list[str], source: str) -> None:
    """Raise ToolError for invalid values of an entry."""
    if not content.strip():
        raise ToolError("content: expected what to remember, got an empty text.")
    check_text("content", content)
    check_text("source", source)
    if (size := len(content.encode())) > LONGEST_BYTES:
        raise ToolError(f"content: expected at most {LONGEST_BYTES:,} bytes, got {size:,}.")
    check_tags(tags)
    if len(source) > LONGEST_SOURCE:
        raise ToolError(f"source: expected at most {LONGEST_SOURCE:,} characters, got {len(source):,}.")


def check_tags(tags: list[str]) -> None:
    """Raise ToolError for invalid tags."""
    if len(tags) > MOST_TAGS:
        raise ToolError(f"tags: expected at most {MOST_TAGS}, got {len(tags)}.")
    for at, tag in enumerate(tags):
        check_text(f"tags[{at}]", tag)
        if not tag.strip() or len(tag) > LONGEST_TAG or "\n" in tag:
            raise ToolError(f"tags[{at}]: expected a line of 1 to {LONGEST_TAG} characters, got {tag!r:.80}.")


def folded_tags(tags: list[str]) -> list[str]:
    """Return tags in their stored form."""
    from ._search.folding import folded

    return [folded(each.strip()) for each in tags]


def check_text(name: str, text: str) -> None:
    """Raise ToolError for text that a database cannot store."""
    if "\0" in text:
        raise ToolError(f"{name}: expected a text, got a NUL in it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{name}: expected a text, got half of a surrogate pair in it.") from None


def _unknown(id: str) -> ToolError:
    return ToolError(f"id: there is no entry {id:.40}.")


def shown(entry: Entry) -> MemoryEntry:
    """Return an entry in the form of structured content."""
    return MemoryEntry(
        id=entry.id,
        uri=uri_of(entry.id),
        category=entry.category,
        date=date_of(entry.written_at),
        content=entry.content,
        tags=entry.tags,
        source=entry.source,
        superseded_by=entry.superseded_by or "",
    )


def _head(entry: Entry) -> str:
    superseded = f", superseded by {entry.superseded_by}" if entry.superseded_by else ""
    tags = f", tags: {', '.join(entry.tags)}" if entry.tags else ""
    return f"{entry.id} [{entry.category}, {date_of(entry.written_at)[:10]}{tags}{superseded}]"


def nearest_notes(what: str, like: dict[str, str]) -> list[str]:
    """Return sentences that name the words without matches, and the similar words that were searched
    instead."""
    return [f"No {what} has {word}; nearest: {near}." for word, near in like.items()]


def line(entry: Entry) -> str:
    """Return an entry as a line of a list."""
    content = " ".join(entry.content.split())
    if len(content) > LONGEST_LINE:
        content = f"{content[:LONGEST_LINE]}… ({len(entry.content):,} characters: memory.read)"
    return f"{_head(entry)} {content}"
