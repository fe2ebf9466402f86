"""The tools document.add, extract, query, list, get and delete.

A document is stored completely and once. Its text is extracted in the call, with progress, in a separate
process (`_extraction`), and cut into passages that a question finds. A document's content is untrusted:
answers enclose it as data (`_outside`).
"""

from __future__ import annotations

import asyncio
import re
from typing import TypedDict
from weakref import WeakKeyDictionary

from fastrpc import Context, Meta, ToolError, tool

from . import _models, _readers, _settings, _store, memory
from ._answers import answer, noted
from ._turns import Turns
from .memory import date_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Literal

    from ._store.documents import Document, FoundPassage
    from ._store.entries import Reader

else:
    from fastrpc.typing_forms import Annotated, Literal

LONGEST_NAME = 200
BUDGET = 40_000
"""Characters of text in one answer."""
PAGE = 50
LIMIT = 8
MOST_IDS = 100
AT_ONCE = 2
"""Documents that are extracted at a time; each may take a gigabyte. Over HTTP, only one of each owner."""
PAGES = re.compile(r"(\d{1,6})(?: ?- ?(\d{1,6}))?")
STEPS = 4


class DocumentEntry(TypedDict):
    """A document. `added` is ISO 8601 (UTC); `reason` says why it failed, else it is empty; `names` are all
    under which its file was added, the latest last."""

    id: str
    uri: str
    name: str
    names: list[str]
    title: str
    type: str
    size: int
    state: str
    reason: str
    pages: int
    language: str
    tags: list[str]
    warnings: list[str]
    added: str


class AddedDocument(TypedDict):
    """A document that was added; `is_new` is false for a file that was known."""

    document: DocumentEntry
    is_new: bool


class Listed(TypedDict):
    """Documents, the newest first; `next_cursor` is empty on the last page."""

    documents: list[DocumentEntry]
    next_cursor: str


class PageText(TypedDict):
    """A page, or the part of it that fits."""

    page: int
    text: str


class ExtractedText(TypedDict):
    """Text by page. What did not fit is asked for with `next_pages` and `next_offset`."""

    id: str
    name: str
    pages: list[PageText]
    next_pages: str
    next_offset: int


class PassageEntry(TypedDict):
    """A passage of a document; the higher the score, the better."""

    id: str
    uri: str
    name: str
    page: int
    heading: list[str]
    text: str
    score: float


class FoundPassages(memory.SearchNote):
    """Passages, best first."""

    count: int
    passages: list[PassageEntry]


class Deleted(TypedDict):
    """The document that was deleted."""

    deleted: str


@tool(name="document.add", effect="write", task="allowed", after_seconds=5, resumable=True)
async def add(
    ctx: Context,
    path: Annotated[str, "A file of the server's folders; or give name, and content or base64"] = "",
    name: Annotated[str, "What the file is called: report.pdf"] = "",
    content: Annotated[str, "Its text"] = "",
    base64: Annotated[str, "Its bytes"] = "",
    tags: Annotated[list[str], "Words to find it by: tag:work"] = [],  # noqa: B006 - it is only read
) -> AddedDocument:
    """Add a document to search and read it: PDF, DOCX, XLSX, PPTX, ODT, ODS, EPUB, EML, HTML, CSV, Markdown,
    text. The same file twice is one document."""
    memory.check_tags(tags)
    reader = _readers.reader_of(ctx)
    async with _turns_of(ctx).of(reader.owner):
        return await _take_in(ctx, reader, path, name, content, base64, memory.folded_tags(tags))


def _turns_of(ctx: Context) -> Turns:
    """Return the turns of this event loop's owners; over stdio it has a single one."""
    loop = asyncio.get_running_loop()
    if loop not in _turns:
        _turns[loop] = Turns(AT_ONCE, 1 if ctx.server.over_http else AT_ONCE)
    return _turns[loop]


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


async def _take_in(
    ctx: Context, reader: Reader, path: str, name: str, content: str, base64: str, tags: list[str]
) -> AddedDocument:
    """Store a file, and extract its text. Raises ToolError."""
    from ._extraction import ExtractionError, extract_data, passages

    name, data = await asyncio.to_thread(_given, ctx, path, name, content, base64)
    store = await asyncio.to_thread(_store.current_documents)
    task = ctx.task
    takes_over = task is not None and (task.is_run_again or task.is_cancelled)
    document, is_begun = await asyncio.to_thread(store.begin, reader, name, data, tags, takes_over)
    if task is not None and task.is_cancelled and is_begun:
        await asyncio.to_thread(store.fail, document.number, "its extraction was interrupted; add it again")
        raise ToolError(f"{name}: its task was cancelled.")
    if not is_begun:
        return answer(
            f"Known as {document.id}: {_about(document)}.",
            AddedDocument(document=_shown(document), is_new=False),
        )
    try:
        ctx.progress(1, STEPS, f"{name}: extracting")
        extracted = await extract_data(data, name)
        pages = len(extracted.pages)
        ctx.progress(2, STEPS, f"{name}: {pages:,} {'page' if pages == 1 else 'pages'} read, chunking")
        await asyncio.to_thread(store.is_chunking, document.number)
        found = await asyncio.to_thread(passages, extracted)
        ctx.progress(3, STEPS, f"{name}: {len(found):,} passages")
        done = await asyncio.to_thread(store.finish, document.number, extracted, found)
    except ExtractionError as error:
        await asyncio.to_thread(store.fail, document.number, str(error).removeprefix(f"{name}: "))
        raise ToolError(f"{error}. It is kept as {document.id}, failed.") from None
    except BaseException:
        await asyncio.to_thread(store.fail, document.number, "its extraction was interrupted; add it again")
        raise
    if done is None:
        raise ToolError(f"{name}: it was deleted while its text was extracted.")
    _models.wrote()
    ctx.progress(STEPS, STEPS, f"{name}: ready")
    warnings = "".join(f" Note: {each}." for each in done.warnings)
    return answer(
        f"Added as {done.id}: {_about(done)}.{warnings}",
        AddedDocument(document=_shown(done), is_new=True),
    )


@tool(name="document.extract", effect="read", risk="low", run="thread")
def extract(
    ctx: Context,
    id: Annotated[str, "The document's id: doc_…"],
    pages: Annotated[str, "3, or 3-7; all by default"] = "",
    format: Literal["text", "markdown"] = "text",
    offset: Annotated[int, Meta(ge=0), "Characters of the first page to leave out"] = 0,
) -> ExtractedText:
    """Read a document's text by page, as much as fits in one answer; the answer says how to go on."""
    document = _ready(ctx, id)
    first, last = _range(pages, document.pages)
    shown, reached, next_offset = part_of(document, first, last, offset, as_markdown=format == "markdown")
    next_pages = "" if reached > last else f"{reached}-{last}"
    whole = "\n\n".join(f"[page {each['page']} of {document.pages}]\n{each['text']}" for each in shown)
    text = _enclosed(whole, document.name)
    if next_pages:
        more = f", offset={next_offset}" if next_offset else ""
        text += f'\n[Pages {next_pages} are left: go on with pages="{next_pages}"{more}.]'
    return answer(
        text,
        ExtractedText(id=id, name=document.name, pages=shown, next_pages=next_pages, next_offset=next_offset),
    )


def part_of(
    document: Document, first: int, last: int, offset: int = 0, *, as_markdown: bool = False
) -> tuple[list[PageText], int, int]:
    """Return pages of a document, without the first `offset` characters, as much as fits in one answer; and
    the page and the offset that follow, a page after `last` if nothing is left."""
    found = _store.current_documents().text(document, first, last, BUDGET + offset, as_markdown=as_markdown)
    shown, left, reached, next_offset = [], BUDGET, first, 0
    for number, text in found:
        start = offset if number == first else 0
        part = text[start : start + left]
        shown.append(PageText(page=number, text=part))
        left -= len(part)
        is_cut = start + len(part) < len(text)
        reached, next_offset = (number, start + len(part)) if is_cut else (number + 1, 0)
        if left <= 0:
            break
    return shown, reached, next_offset


@tool(name="document.query", effect="read", run="thread")
def query(
    ctx: Context,
    query: Annotated[str, 'Words; "an exact phrase", -without, begin*, tag:work'],
    ids: Annotated[list[str], "Only of these documents"] = [],  # noqa: B006 - it is only read
    tags: Annotated[list[str], "Of documents that have all of these"] = [],  # noqa: B006 - it is only read
    limit: Annotated[int, Meta(ge=1, le=50)] = LIMIT,
) -> FoundPassages:
    """Search documents; the answer is passages with their document and page, best first."""
    memory.check_tags(tags)
    if len(ids) > MOST_IDS:
        raise ToolError(f"ids: expected at most {MOST_IDS}, got {len(ids)}.")
    for at, each in enumerate(ids):
        memory.check_text(f"ids[{at}]", each)
    found, notes = find(_readers.reader_of(ctx), query, ids, memory.folded_tags(tags), limit)
    parts = [_found_line(each) for each in found]
    head = f"Found {len(found)} {'passage' if len(found) == 1 else 'passages'}"
    text = f"{head}:\n{_enclosed(chr(10).join(parts), 'documents')}" if found else f"{head}."
    shown = [
        PassageEntry(
            id=each.document, uri=uri_of(each.document), name=each.name, page=each.page,
            heading=each.heading, text=each.content, score=each.score,
        )
        for each in found
    ]  # fmt: skip
    return noted(text, FoundPassages(count=len(found), passages=shown), notes)


def find(
    reader: Reader, query: str, ids: list[str], tags: list[str], limit: int
) -> tuple[list[FoundPassage], list[str]]:
    """Return the passages that answer a query, best first, and notes: sentences, which may be empty."""
    from ._search import question

    store, asked = _store.current_documents(), question.read(query)
    meaning, note = _models.meaning_of(asked.said)
    notes = [note]
    found = store.search(reader, asked, ids, tags, limit, meaning)
    if not found and (like := store.nearest(reader, asked)):
        found = store.search(reader, question.instead(asked, list(like.values())), ids, tags, limit)
        notes += memory.nearest_notes("passage", like) if found else []
    return found, notes


@tool(name="document.list", effect="read", run="thread")
def list_documents(
    ctx: Context,
    tag: str = "",
    state: Literal["", "extracting", "chunking", "ready", "failed"] = "",
    cursor: Annotated[str, "next_cursor of the page before"] = "",
) -> Listed:
    """List documents, the newest first."""
    from ._store.cursors import Cursors

    store, reader, before = _store.current_documents(), _readers.reader_of(ctx), None
    cursors = Cursors(store.database, reader)
    if cursor:
        numbers = cursors.opened(cursor, 1)
        if numbers is None:
            raise ToolError(f"cursor: expected next_cursor of a list, got {cursor:.40}.")
        before = numbers[0]
    if tag:
        memory.check_tags([tag])
    wanted = memory.folded_tags([tag])[0]
    found = store.page(reader, before, PAGE, tag=wanted, state=state)
    following = cursors.sealed(found[-1].number) if len(found) == PAGE else ""
    lines = [f"{len(found)} {'document' if len(found) == 1 else 'documents'}{':' if found else '.'}"]
    lines += [f"{each.id} {_about(each)}" for each in found]
    if following:
        lines.append(f'[More may follow: cursor="{following}".]')
    return answer("\n".join(lines), Listed(documents=[_shown(each) for each in found], next_cursor=following))


@tool(name="document.get", effect="read", run="thread")
def get(ctx: Context, id: Annotated[str, "The document's id: doc_…"]) -> DocumentEntry:
    """Say what is known of a document: state, type, size, pages, tags."""
    document = _known(ctx, id)
    warnings = "".join(f"\nNote: {each}." for each in document.warnings)
    return answer(f"{document.id} {_about(document)}{warnings}\n{uri_of(id)}", _shown(document))


@tool(name="document.delete", effect="write", risk="high", run="thread")
def delete(ctx: Context, id: Annotated[str, "The document's id: doc_…"]) -> Deleted:
    """Delete a document with its text, its passages and the file."""
    if not _store.current_documents().delete(_readers.reader_of(ctx), id):
        raise _unknown(id)
    return answer(f"Deleted {id}.", Deleted(deleted=id))


def uri_of(id: str) -> str:
    """Return the URI of a document's text."""
    return f"{_settings.SCHEME.read()}://documents/{id}"


def _given(ctx: Context, path: str, name: str, content: str, base64: str) -> tuple[str, bytes]:
    """Return the name and the bytes of the added file. Raises ToolError."""
    from ._extraction import FILE_BYTES

    named = [each for each, value in (("path", path), ("content", content), ("base64", base64)) if value]
    if len(named) != 1:
        raise ToolError(
            f"expected path, or name and content or base64, got {' and '.join(named) or 'none of them'}."
        )
    if path:
        from . import _document_paths

        found, data = _document_paths.read(ctx, path)
        name = name or found
    else:
        memory.check_text("content", content)
        data = content.encode() if content else _decoded(base64)
    check_name(name)
    if not data:
        raise ToolError(f"{name}: it is empty.")
    if len(data) > FILE_BYTES:
        raise ToolError(f"{name}: it has {len(data):,} bytes; at most {FILE_BYTES:,} are read.")
    return name, data


def check_name(name: str) -> None:
    """Raise ToolError for an invalid name of a document."""
    memory.check_text("name", name)
    if not name.strip() or len(name) > LONGEST_NAME or "/" in name or not name.isprintable():
        raise ToolError(
            f"name: expected the name of a file, of 1 to {LONGEST_NAME} characters, got {name!r:.80}."
        )


def _decoded(base64: str) -> bytes:
    from base64 import b64decode

    try:
        return b64decode("".join(base64.split()), validate=True)
    except ValueError:
        raise ToolError("base64: expected base64, got something else.") from None


def _known(ctx: Context, id: str) -> Document:
    document = _store.current_documents().get(_readers.reader_of(ctx), id)
    if document is None:
        raise _unknown(id)
    return document


def _ready(ctx: Context, id: str) -> Document:
    """Return a document whose text is ready. Raises ToolError."""
    document = _known(ctx, id)
    if document.state != "ready":
        why = f": {document.reason}" if document.reason else ""
        raise ToolError(f"id: {id} has no text, it is {document.state}{why}.")
    return document


def _unknown(id: str) -> ToolError:
    return ToolError(f"id: there is no document {id:.40}.")


def _range(pages: str, count: int) -> tuple[int, int]:
    """Return the first and the last requested page."""
    if not pages.strip():
        return 1, count
    found = PAGES.fullmatch(pages.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last:
        raise ToolError(f"pages: expected a page or two, such as 3-7, got {pages!r:.40}.")
    if first > count:
        raise ToolError(f"pages: the document has {count:,}, got {pages:.40}.")
    return first, min(last, count)


def _about(document: Document) -> str:
    """Return a line about a document. Its owner chose its name and tags, but not its title, which is left
    out."""
    parts = [document.state if not document.reason else f"{document.state}: {document.reason}"]
    if document.pages:
        parts.append(f"{document.pages:,} {'page' if document.pages == 1 else 'pages'}")
    parts += [f"{document.size:,} bytes", date_of(document.added_at)[:10]]
    if others := [each for each in document.names if each != document.name]:
        parts.append(f"also added as {', '.join(others)}")
    if document.tags:
        parts.append(f"tags: {', '.join(document.tags)}")
    return f"{document.name} ({', '.join(parts)})"


def _shown(document: Document) -> DocumentEntry:
    return DocumentEntry(
        id=document.id, uri=uri_of(document.id), name=document.name, names=document.names,
        title=document.title, type=document.type, size=document.size,
        state=document.state, reason=document.reason, pages=document.pages,
        language=document.language, tags=document.tags,
        warnings=document.warnings, added=date_of(document.added_at),
    )  # fmt: skip


def _found_line(found: FoundPassage) -> str:
    heading = f", {' > '.join(found.heading)}" if found.heading else ""
    head = f"[{found.document} {found.name}, page {found.page}{heading}, score {found.score:.2f}]"
    return f"{head}\n{found.content}\n"


def _enclosed(text: str, source: str) -> str:
    from . import _outside
    from ._prompt_words import ENGLISH

    return f"{ENGLISH.is_data}\n{_outside.enclosed(text, source, ENGLISH.left_out)}"
