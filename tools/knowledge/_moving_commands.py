"""``fastrpc knowledge import``, ``export``, ``stats``, ``check`` and ``reindex``.

They open the store directly, also while servers use it. No guard checks them, so anyone who may open the
database may run them. An import names what it skips on standard error, and then ends with exit code 1. Each
imports the store after it has read its options, so that its help needs no library.
"""

from __future__ import annotations

import json
import os
import sys
from time import monotonic

from fastrpc import ToolError, UsageError
from fastrpc.callers import current_user
from fastrpc.command_line import CommandParser
from fastrpc.regular_files import replace_file
from fastrpc.storage import StorageError, open_database

from . import _import_formats, memory
from ._settings import DATABASE, ENTITIES, MODEL_OPTIONS, embeds
from ._store.kind import KNOWLEDGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from fastrpc.storage.database import Database

    from ._store import moving

ENTRIES = "memory.jsonl"
"""The file with the entries in an exported folder."""
MOST_NAMED = 100
"""Skipped items that are named; the others are counted."""
BAR = 30


def import_entries(arguments: list[str]) -> int:
    """Import a file or a folder. Raises UsageError."""
    options = _parse(
        "import",
        "FILE|FOLDER [OPTION…]",
        "Import notes in Markdown, JSON and JSON lines: what memory.write takes, the memory.jsonl of "
        "server-memory, a folder of basic-memory, an export of mem0. Entries that exist are not added again.",
        "  fastrpc knowledge import notes\n  fastrpc knowledge import memory.jsonl --owner ada\n",
        arguments,
        ("path", "a file, or a folder with files"),
    )
    return _run(options, lambda database: _import(database, options))


def export_entries(arguments: list[str]) -> int:
    """Write an owner's entries as JSON lines, or all data of the owner into a folder. Raises UsageError."""
    options = _parse(
        "export",
        "[FOLDER] [OPTION…]",
        "Write all entries of an owner to standard output, a JSON object a line, the oldest first; or "
        "entries, documents and their files into a folder, which import reads.",
        "  fastrpc knowledge export > memory.jsonl\n  fastrpc knowledge export backup\n",
        arguments,
        ("folder", "a folder for entries, documents and their files"),
    )
    return _run(options, lambda database: _export(database, options))


def show_statistics(arguments: list[str]) -> int:
    """Print how much the store contains. Raises UsageError."""
    options = _parse(
        "stats", "[OPTION…]", "Print how much the store contains.", "  fastrpc knowledge stats\n", arguments
    )
    return _run(options, _show_statistics)


def check_store(arguments: list[str]) -> int:
    """Check the store; return 1 if it is damaged. Raises UsageError."""
    description = (
        "Check the database, its index of words and each entry. The exit code is 1 if something is wrong."
    )
    options = _parse("check", "[OPTION…]", description, "  fastrpc knowledge check\n", arguments)
    return _run(options, _check)


def reindex_store(arguments: list[str]) -> int:
    """Rebuild the indexes. Raises UsageError."""
    description = (
        "Make the indexes of words and the graph anew, in one transaction. Servers write nothing meanwhile. "
        "Where a model is named, make the vectors anew as well, or have it find what entries name."
    )
    options = _parse("reindex", "[OPTION…]", description, "  fastrpc knowledge reindex\n", arguments)
    return _run(options, lambda database: _reindex(database, options))


def _parse(
    name: str, usage: str, description: str, examples: str, arguments: list[str], *positional: tuple[str, str]
) -> Namespace:
    parser = CommandParser(f"knowledge {name}", usage, description, examples)
    for argument, text in positional:
        parser.add_argument(argument, help=text, nargs="?" if argument == "folder" else None)
    if name == "reindex":
        for option, setting in MODEL_OPTIONS.items():
            metavar = {"model": "NAME", "folder": "DIR"}.get(option.rpartition("-")[2], "URL")
            parser.add_argument(option, default=setting.read(), metavar=metavar, help=setting.description)
    parser.add_argument("--database", default=DATABASE.read(), metavar="URL", help=DATABASE.description)
    if name in ("import", "export"):
        whose = "whose entries they are: the owner of a token; you, over stdio, unless given"
        parser.add_argument("--owner", default=current_user(), metavar="OWNER", help=whose)
    return parser.parse(arguments)


def _run(options: Namespace, work: Callable[[Database], int]) -> int:
    try:
        database = open_database(options.database, KNOWLEDGE)
        try:
            return work(database)
        finally:
            database.close()
    except StorageError as error:
        raise UsageError(str(error)) from None


def _import(database: Database, options: Namespace) -> int:
    from . import _moving_documents
    from ._store import moving

    added = known = skipped = 0
    lot: list[moving.Record] = []

    def store() -> None:
        nonlocal added, known
        new = moving.add(database, options.owner, lot)
        added, known = added + new, known + len(lot) - new
        lot.clear()

    is_export = _moving_documents.is_in(options.path)
    path = os.path.join(options.path, ENTRIES) if is_export else options.path
    bar = Bar(_size_of(path))
    try:
        for where, item in _import_formats.items(path, bar.advance):
            try:
                if isinstance(item, _import_formats.Broken):
                    raise item
                lot.append(_record(item))
            except (_import_formats.Broken, ToolError) as error:
                skipped += 1
                if skipped <= MOST_NAMED:
                    bar.clear()
                    _say(f"{where}: {error}: skipped")
            if len(lot) >= moving.LOT:
                store()
        if lot:
            store()
    except OSError as error:
        raise UsageError(f"{options.path}: {error.strerror or error}") from None
    finally:
        bar.clear()
    if skipped > MOST_NAMED:
        _say(f"{skipped - MOST_NAMED:,} more were skipped")
    print(f"{added:,} added, {known:,} known already, {skipped:,} skipped")
    skipped_documents = _import_documents(database, options) if is_export else 0
    return 1 if skipped + skipped_documents else 0


def _import_documents(database: Database, options: Namespace) -> int:
    """Import the documents of a folder; return how many were skipped."""
    from . import _moving_documents

    added = known = skipped = 0
    try:
        for where, done in _moving_documents.add_all(database, options.owner, options.path):
            if isinstance(done, str):
                skipped += 1
                _say(f"{where}: {done}: skipped")
            else:
                added, known = added + done, known + (not done)
    except OSError as error:
        raise UsageError(f"{options.path}: {error.strerror or error}") from None
    print(f"documents: {added:,} added, {known:,} known already, {skipped:,} skipped")
    return skipped


def _record(item: dict[str, Any]) -> moving.Record:
    """Return an item in the form of an entry. Raises ToolError, Broken."""
    from ._store import moving
    from ._store.entries import CATEGORIES

    content, tags, source = item["content"], item.get("tags") or [], item.get("source") or ""
    category, scope = item.get("category") or "fact", item.get("scope") or "user"
    for name, value in (("content", content), ("source", source)):
        if not isinstance(value, str):
            raise _import_formats.Broken(f"{name}: expected a string, got {type(value).__name__}")
    if not isinstance(tags, list) or not all(isinstance(each, str) for each in tags):
        raise _import_formats.Broken("tags: expected a list of strings")
    for name, value, choices in (("category", category, CATEGORIES), ("scope", scope, ("user", "agent"))):
        if value not in choices:
            raise _import_formats.Broken(f"{name}: expected {', '.join(choices)}, got {str(value)!r:.60}")
    memory.check(content, tags, source)
    caller_class = str(item.get("class") or "") if scope == "agent" else ""
    ids = [str(item.get(name) or "") for name in ("id", "superseded_by", "supersedes")]
    date = _import_formats.seconds_of(item.get("date"))
    return moving.Record(content, category, caller_class, memory.folded_tags(tags), source, date, *ids)


def _export(database: Database, options: Namespace) -> int:
    from ._store import moving

    lines = (
        json.dumps(_line(each), ensure_ascii=False) for each in moving.everything(database, options.owner)
    )
    if options.folder is None:
        for line in lines:
            print(line)
        return 0
    from . import _moving_documents

    try:
        left_out = _moving_documents.export(database, options.owner, options.folder, _say)
        pieces = (line.encode() + b"\n" for line in lines)
        replace_file(os.path.join(options.folder, ENTRIES), pieces)
    except OSError as error:
        raise UsageError(f"{options.folder}: {error.strerror or error}") from None
    return 1 if left_out else 0


def _line(record: moving.Record) -> dict[str, Any]:
    line: dict[str, Any] = {"id": record.id, "content": record.content, "category": record.category}
    line["scope"] = "agent" if record.caller_class else "user"
    if record.caller_class:
        line["class"] = record.caller_class
    line |= {"tags": record.tags, "source": record.source, "date": record.written_at}
    if record.superseded_by:
        line["superseded_by"] = record.superseded_by
    return line


def _show_statistics(database: Database) -> int:
    from ._store import moving

    print(database.shown)
    for name, number in moving.counts(database).items():
        print(f"{name:<16}{number:>12,}")
    return 0


def _check(database: Database) -> int:
    from ._store import moving

    found = moving.problems(database)
    print("\n".join(found) or f"{database.shown}: whole")
    return 1 if found else 0


def _reindex(database: Database, options: Namespace) -> int:
    from ._store import moving

    for option, setting in MODEL_OPTIONS.items():
        os.environ[setting.name] = getattr(options, option.removeprefix("--").replace("-", "_"))
    jobs: list[Any] = []
    if embeds() or ENTITIES.read():
        from ._models import background

        jobs += background.jobs()
    print(
        f"{moving.reindex(database, [job.texts for job in jobs]):,} entries and passages indexed", flush=True
    )
    for job in jobs:
        while job.read_lot(database):
            pass
    problems = {job.problem: None for job in jobs if job.problem}
    for problem in problems:
        _say(f"{problem}: servers that know the model go on")
    return 1 if problems else 0


class Bar:
    """A progress bar on standard error, if that is a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._is_shown = sys.stderr is not None and sys.stderr.isatty() and total > 0
        self._done = 0
        self._drawn_at = 0.0

    def advance(self, number: int) -> None:
        """Count bytes that have been read, and draw the bar."""
        self._done += number
        if self._is_shown and (now := monotonic()) - self._drawn_at > 0.1:
            self._drawn_at = now
            part = min(self._done / self._total, 1.0)
            full = round(part * BAR)
            sys.stderr.write(f"\r[{'#' * full}{'.' * (BAR - full)}] {part:4.0%}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Erase the bar, before another line is written."""
        if self._is_shown and self._drawn_at:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _size_of(path: str) -> int:
    try:
        if os.path.isdir(path):
            return sum(os.lstat(place).st_size for place, _ in _import_formats.files(path))
        return os.stat(path).st_size
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
