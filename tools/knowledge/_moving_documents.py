"""Documents in and out of a folder: `documents.jsonl` has a line for each, `originals/` the files by their
hashes, `texts/` the extracted text of each, as JSON.

Each file is written as a whole, `documents.jsonl` last, so a killed export can be repeated. An import
validates everything. It names and skips an invalid line, and an original that does not match its hash.
"""

from __future__ import annotations

import json
import os

from fastrpc import ToolError
from fastrpc.regular_files import open_regular, read_regular, replace_file
from fastrpc.storage import StorageError

from . import documents, memory
from ._extraction import FILE_BYTES, Extracted
from ._import_formats import Broken, seconds_of
from ._store import moving_documents
from ._store.documents import FAILED, MOST_NAMES, READY, Documents
from ._store.moving_documents import DocumentRecord
from ._store.originals import DIGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fastrpc.storage.database import Database

LINES, ORIGINALS, TEXTS = "documents.jsonl", "originals", "texts"
TEXT_FILE_BYTES = 100_000_000
"""Twice 20 MB of text, and the escapes of JSON."""
LONGEST_LINE = 1024 * 1024
LONGEST = 2000


def export(database: Database, owner: str, folder: str, say: Callable[[str], object]) -> int:
    """Write an owner's documents into a folder; return how many could not be written. Raises OSError."""
    store, left_out = Documents(database), 0
    for name in (ORIGINALS, TEXTS):
        os.makedirs(os.path.join(folder, name), 0o700, exist_ok=True)
    lines = []
    for record, document in moving_documents.everything(store, owner):
        try:
            replace_file(os.path.join(folder, ORIGINALS, record.digest), store.original(document))
        except StorageError as error:
            left_out += 1
            say(f"{document.id}: {error}: skipped")
            continue
        if record.state == READY:
            pages, markdown = moving_documents.text_of(store, document)
            text = json.dumps({"pages": pages, "markdown": markdown}, ensure_ascii=False)
            replace_file(os.path.join(folder, TEXTS, f"{record.digest}.json"), text.encode())
        lines.append(json.dumps(_line(record), ensure_ascii=False).encode() + b"\n")
    replace_file(os.path.join(folder, LINES), b"".join(lines))
    return left_out


def _line(record: DocumentRecord) -> dict[str, Any]:
    return {
        "id": record.id, "digest": record.digest, "name": record.name, "names": record.names,
        "type": record.media_type,
        "tags": record.tags, "state": record.state, "reason": record.reason, "title": record.title,
        "language": record.language, "warnings": record.warnings, "date": record.added_at,
    }  # fmt: skip


def is_in(folder: str) -> bool:
    """Whether `export` has written the folder."""
    return os.path.isfile(os.path.join(folder, LINES)) and os.path.isdir(os.path.join(folder, ORIGINALS))


def add_all(database: Database, owner: str, folder: str) -> Iterator[tuple[str, bool | str]]:
    """Add the documents of a folder; yield the line of each, and whether it is new, or why it was skipped.
    Raises OSError."""
    store = Documents(database)
    with open(open_regular(os.path.join(folder, LINES), follow=False), "rb") as file:
        at = 0
        while line := file.readline(LONGEST_LINE):
            at += 1
            try:
                record = _record(line)
                data, extracted = _files(folder, record)
                yield f"{LINES}:{at}", moving_documents.add(store, owner, record, data, extracted)
            except (Broken, ToolError) as error:
                yield f"{LINES}:{at}", str(error)


def _record(line: bytes) -> DocumentRecord:
    """Return the record in a line. Raises Broken, ToolError."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Broken("expected a JSON object on the line")
    texts = {}
    for name in ("digest", "name", "type", "id", "state", "reason", "title", "language"):
        value = texts[name] = found.get(name, "")
        if not isinstance(value, str) or len(value) > LONGEST:
            raise Broken(f"{name}: expected a text of at most {LONGEST:,} characters")
        memory.check_text(name, value)
    if DIGEST.fullmatch(texts["digest"]) is None:
        raise Broken(f"digest: expected a SHA-256 in hexadecimal, got {texts['digest']!r:.80}")
    if texts["state"] not in (READY, FAILED):
        raise Broken(f"state: expected {READY} or {FAILED}, got {texts['state']!r:.40}")
    documents.check_name(texts["name"])
    for name in ("tags", "warnings", "names"):
        value = found.get(name, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise Broken(f"{name}: expected a list of texts")
        for each in value:
            memory.check_text(name, each)
    memory.check_tags(found.get("tags", []))
    for each in found.get("names", []):
        documents.check_name(each)
    return DocumentRecord(
        texts["digest"], texts["name"], texts["type"], id=texts["id"],
        tags=memory.folded_tags(found.get("tags", [])), state=texts["state"], reason=texts["reason"],
        title=texts["title"], language=texts["language"], warnings=found.get("warnings", []),
        names=[*found.get("names", [])][-MOST_NAMES:], added_at=seconds_of(found.get("date")),
    )  # fmt: skip


def _files(folder: str, record: DocumentRecord) -> tuple[bytes, Extracted | None]:
    """Return a document's original and its text. Raises Broken."""
    import hashlib

    data = _read(os.path.join(folder, ORIGINALS, record.digest), FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != record.digest:
        raise Broken(f"{ORIGINALS}/{record.digest}: it is not the file that its name says")
    if record.state == FAILED:
        return data, None
    path = os.path.join(folder, TEXTS, f"{record.digest}.json")
    try:
        found = json.loads(_read(path, TEXT_FILE_BYTES))
        pages, markdown = found["pages"], found["markdown"]
        is_right = _are_texts(pages) and (
            markdown is None or (_are_texts(markdown) and len(markdown) == len(pages))
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise Broken(f"{TEXTS}/{record.digest}.json: expected pages, and markdown of as many or null")
    return data, Extracted(
        pages, markdown=markdown, media_type=record.media_type, title=record.title,
        language=record.language, warnings=record.warnings,
    )  # fmt: skip


def _read(path: str, most: int) -> bytes:
    try:
        return read_regular(path, most, follow=False)
    except OSError as error:
        raise Broken(f"{'/'.join(path.split('/')[-2:])}: {error.strerror or error}") from None


def _are_texts(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    for each in value:
        if not isinstance(each, str):
            return False
        memory.check_text("text", each)
    return True
