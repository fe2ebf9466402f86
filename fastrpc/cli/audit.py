"""``fastrpc audit``: reads the audit log: shows, searches, exports and verifies it, proves one record.

Reads the segments of all processes in the order of time, except those that a time limit excludes. Takes no
lock on the log and writes nothing. Shows the readable part of a damaged log; `verify` reports the damage. The
log's own lines are shown if they are about records (`gap`, `delayed`). The rules of the format are in
`fastrpc.guard.audit.verify`, which an auditor can run without fastrpc.
"""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from heapq import heappop, heappush
from itertools import islice
from typing import Any

from fastrpc import globs
from fastrpc._core.audit_lines import ALPHABET
from fastrpc.cli import configuration
from fastrpc.cli._durations import seconds_in
from fastrpc.command_line import CommandParser
from fastrpc.diagnostics import write_line
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard.audit import segments
from fastrpc.guard.audit.records import rfc3339
from fastrpc.guard.audit.verify import fields_of as fields_of
from fastrpc.regular_files import open_regular

Record = dict[str, Any]
Entry = tuple[str, bytes]
"""The time of a line, and the line without its newline."""

FOLDER = "audit"
"""The name of the folder in the state folder."""
COLUMNS = ("time", "actor", "action", "tool", "outcome", "decision", "risk", "total_us", "id")
COLUMNS_OF_CSV = (*COLUMNS[:-1], "category", "rule", "policy", "bytes", "id")
WIDTHS = (24, 16, 12, 24, 14, 8, 8, 8, 0)
FOLLOW_SECONDS = 0.25
TAIL = 10
BLOCK = 64 * 1024
SLACK_MILLISECONDS = 2000

EXAMPLES = """\
  fastrpc audit tail -f
  fastrpc audit search --since 2h --outcome refused
  fastrpc audit search --caller ada --tool 'memory.*' --json
  fastrpc audit export --since 2026-04-01 --format csv --output april.csv
  fastrpc audit verify --public-key audit.pub --checkpoint /mnt/other/checkpoints.jsonl
  fastrpc audit prove audit_01M8BQNEE9163M5P6X0000016K > proof.json
  fastrpc audit check proof.json --public-key audit.pub
"""
USAGE = """\
tail [-f] [-n N] [FILTER…]
       fastrpc audit search [--json] [FILTER…]
       fastrpc audit export [--format json|csv] [--output FILE] [FILTER…]
       fastrpc audit verify [--public-key FILE] [--checkpoint FILE]…
       fastrpc audit prove ID
       fastrpc audit check PROOF --public-key FILE [--record FILE]"""


def main(arguments: list[str]) -> int:
    """Run a command of the audit log; return the exit code. Raises UsageError."""
    command, *rest = arguments or [""]
    if command.startswith("-"):
        _whole_parser().parse(arguments)  # --help
    if command not in COMMANDS_OF_AUDIT:
        from fastrpc.command_line import suggestion

        said = f"unknown command {command!r:.80}" if command else "expected a command"
        near = suggestion(command, COMMANDS_OF_AUDIT) if command else ""
        raise UsageError(f"audit: {said}{near or ': one of ' + ', '.join(COMMANDS_OF_AUDIT)}")
    run, _ = COMMANDS_OF_AUDIT[command]
    return run(rest)


def _whole_parser() -> CommandParser:
    description = "Read the audit log: show, search, export or verify it."
    actions = {name: (sentence, ()) for name, (_, sentence) in COMMANDS_OF_AUDIT.items()}
    parser = CommandParser("audit", USAGE, description, EXAMPLES, actions)
    parser.option("--folder FOLDER", "the folder of the log (audit, in FASTRPC_STATE_DIR)")
    return parser


def _parser(action: str) -> CommandParser:
    return _whole_parser().parser_of(action)


def _with_filters(action: str) -> CommandParser:
    parser = _parser(action)
    parser.option("--category GLOB", "only records of this category")
    parser.option("--caller GLOB", "only records of this caller (actor)")
    parser.option("--tool GLOB", "only records of this tool")
    parser.option("--outcome GLOB", "only records with this outcome")
    parser.option("--since TIME", "only records since then: RFC 3339, or how long ago: 90s, 30m, 2h, 7d")
    parser.option("--until TIME", "only records before then")
    return parser


def folder_of(chosen: Namespace) -> str:
    folder: str = chosen.folder or os.path.join(configuration()["FASTRPC_STATE_DIR"], FOLDER)
    if not os.path.isdir(folder):
        raise UsageError(f"audit: there is no log in {folder}")
    return folder


# --- commands ---------------------------------------------------------------------------------------------


def tail(arguments: list[str]) -> int:
    parser = _with_filters("tail")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with each new record")
    parser.option("-n N", f"print the latest N records ({TAIL})", type=int, default=TAIL)
    parser.option("--json", "print the lines of the log unchanged (JSON)")
    chosen = parser.parse(arguments)
    folder, matches = folder_of(chosen), _filter_of(chosen)
    show = _printer(chosen.json)
    follower = Follower(folder)
    for entry in latest(folder, max(0, chosen.n), matches):
        show(entry)
    with suppress(KeyboardInterrupt):
        while chosen.follow:
            sys.stdout.flush()
            for entry in follower.wait():
                if matches(entry[1]):
                    show(entry)
    return 0


def search(arguments: list[str]) -> int:
    parser = _with_filters("search")
    parser.option("--json", "print the lines of the log unchanged (JSON)")
    parser.option("--limit N", "print at most N records", type=int)
    chosen = parser.parse(arguments)
    found = entries(folder_of(chosen), _filter_of(chosen), _time_of("--since", chosen.since))
    show = _printer(chosen.json)
    is_empty = True
    for entry in islice(found, None if chosen.limit is None else max(0, chosen.limit)):
        show(entry)
        is_empty = False
    if is_empty:
        write_line("fastrpc: no records")
    return int(is_empty)


def export(arguments: list[str]) -> int:
    """Write the records that pass the filters as JSON lines, as they are, or as CSV."""
    parser = _with_filters("export")
    parser.add_argument(
        "--format", choices=("json", "csv"), default="json", help="json: the lines of the log unchanged"
    )
    parser.option("--output FILE", "write to this new file, which only you can read (mode 0600)")
    chosen = parser.parse(arguments)
    found = entries(folder_of(chosen), _filter_of(chosen), _time_of("--since", chosen.since))
    if chosen.output is None:
        _export(found, chosen.format, sys.stdout.buffer.write)
        sys.stdout.flush()
        return 0
    with Reworded(OSError, UsageError, "--output: ", f": {chosen.output}"):
        descriptor = open_regular(chosen.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:
            _export(found, chosen.format, file.write)
    except BaseException as error:
        os.unlink(chosen.output)  # a partial export would look complete
        if isinstance(error, OSError) and error.filename is None:
            error.filename = chosen.output
        raise
    return 0


def verify(arguments: list[str]) -> int:
    parser = _parser("verify")
    parser.option("--public-key FILE", "check signatures with this copy of the public key")
    parser.option("--checkpoint FILE…", "compare with this copy of the checkpoints; may be repeated")
    chosen = parser.parse(arguments)
    from fastrpc.guard.audit import verify as verifier

    try:
        return verifier.show(verifier.verify(folder_of(chosen), chosen.public_key, chosen.checkpoint))
    except (OSError, ValueError) as error:
        raise UsageError(f"audit verify: {error}") from None


def prove(arguments: list[str]) -> int:
    parser = _parser("prove")
    parser.add_argument("id", metavar="ID", help="the id of the record")
    chosen = parser.parse(arguments)
    from fastrpc.guard.audit.prove import prove as proof_of

    try:
        print(proof_of(folder_of(chosen), chosen.id))
    except LookupError as error:
        write_line(f"fastrpc: {error}")
        return 1
    return 0


def check(arguments: list[str]) -> int:
    parser = _parser("check")
    parser.add_argument("proof", metavar="PROOF", help="the file with the proof")
    parser.option("--public-key FILE", "the public key of the log", required=True)
    parser.option("--record FILE", "a file with the record's line, to check that the proof is of it")
    chosen = parser.parse(arguments)
    from fastrpc.guard.audit import verify as verifier

    try:
        return verifier.show_proof(chosen.proof, chosen.public_key, chosen.record)
    except (OSError, ValueError) as error:
        raise UsageError(f"audit check: {error}") from None


COMMANDS_OF_AUDIT: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "tail": (tail, "Print the latest records; with -f, also each new one."),
    "search": (search, "Print the records that pass the filters; exit code 1 if there are none."),
    "export": (export, "Write the records that pass the filters, for other programs."),
    "verify": (verify, "Verify the log; exit code 1 if something is wrong."),
    "prove": (prove, "Print a proof that a signed checkpoint covers a record."),
    "check": (check, "Check a proof; exit code 1 if it is wrong."),
}

# --- which records ----------------------------------------------------------------------------------------


def _time_of(option: str, text: str | None) -> str:
    """Return a time in the form of records; "" for None. Raises UsageError."""
    if text is None:
        return ""
    ago = seconds_in(text)
    if ago is not None:
        found = datetime.now(timezone.utc) - timedelta(seconds=ago)
    else:
        try:
            found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
        except ValueError:
            words = f"expected RFC 3339 such as 2026-04-22T10:15:23Z, or 2h, got {text!r:.80}"
            raise UsageError(f"{option}: {words}") from None
        if found.tzinfo is None:
            found = found.replace(tzinfo=timezone.utc)
    return found.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _filter_of(chosen: Namespace) -> Callable[[bytes], bool]:
    """Return a filter of lines; without options it accepts the log's lines about missing records, too."""
    since, until = _time_of("--since", chosen.since), _time_of("--until", chosen.until)
    globs = (chosen.category, chosen.caller, chosen.tool, chosen.outcome)
    named = zip(("category", "actor", "tool", "outcome"), globs, strict=True)
    wanted = {name: glob for name, glob in named if glob is not None}

    def matches(line: bytes) -> bool:
        fields = fields_of(line)
        if fields.get("kind") in ("segment", "checkpoint") or (wanted and "kind" in fields):
            return False
        time = str(fields.get("time", ""))
        if time < since or (until and time >= until):
            return False
        return all(_is_like(fields.get(name), glob) for name, glob in wanted.items())

    return matches


def _is_like(value: Any, glob: str) -> bool:
    """Return whether a value, or one of its members, matches: an actor may be an object."""
    if isinstance(value, dict):
        return any(_is_like(each, glob) for each in value.values())
    return value is not None and globs.matches(str(value), glob)


# --- reading ----------------------------------------------------------------------------------------------


def entries(folder: str, matches: Callable[[bytes], bool], since: str = "") -> Iterator[Entry]:
    """Yield the matching lines of all segments in the order of time. A segment is opened when its first line
    may be the next one. Segments that have not been written after `since` are skipped."""
    names = (name for name in segments.names_in(folder) if not since or _changed(folder, name) >= since)
    waiting = deque((_earliest(name), name) for name in names)
    heap: list[tuple[str, int, bytes, Iterator[bytes]]] = []
    count = 0
    while waiting or heap:
        while waiting and (not heap or heap[0][0] >= waiting[0][0]):
            _push(heap, count, _lines(folder, waiting.popleft()[1]), matches)
            count += 1
        if heap:
            time, number, line, rest = heappop(heap)
            yield time, line
            _push(heap, number, rest, matches)


def _push(
    heap: list[tuple[str, int, bytes, Iterator[bytes]]],
    number: int,
    lines: Iterator[bytes],
    matches: Callable[[bytes], bool],
) -> None:
    for line in lines:
        if matches(line):
            heappush(heap, (_moment(line), number, line, lines))
            return


def _moment(line: bytes) -> str:
    """Return when a line was written. The record's field `time` may be earlier, such as that of the call."""
    fields = fields_of(line)
    identifier = fields.get("id")
    if isinstance(identifier, str) and identifier[6:16].isalnum():
        milliseconds = 0
        for character in identifier[6:16]:
            milliseconds = milliseconds * 32 + max(0, ALPHABET.find(character))
        return rfc3339(milliseconds)
    return str(fields.get("time", ""))


def _earliest(name: segments.SegmentName) -> str:
    """Return a time that no record of a segment precedes, "" if its name has no time. The name has the time
    at which the segment was begun; records may have waited for it."""
    try:
        begun = datetime.strptime(name.time, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return ""
    return rfc3339(int(begun.timestamp() * 1000) - SLACK_MILLISECONDS)


def _changed(folder: str, name: segments.SegmentName) -> str:
    """Return the latest time at which a segment may have been changed: file times may be coarse. Return "" if
    retention has removed the segment meanwhile."""
    try:
        changed = os.stat(os.path.join(folder, name.file)).st_mtime
    except OSError:
        return ""
    return rfc3339(int(changed * 1000) + SLACK_MILLISECONDS)


def _lines(folder: str, name: segments.SegmentName) -> Iterator[bytes]:
    """Yield the whole lines of a segment; none if retention has dropped it meanwhile."""
    try:
        descriptor = open_regular(os.path.join(folder, name.file), follow=False)
    except OSError:
        return
    with open(descriptor, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def latest(folder: str, count: int, matches: Callable[[bytes], bool]) -> list[Entry]:
    """Return the latest matching lines, read from the ends of the segments."""
    found: list[Entry] = []
    changed = [(_changed(folder, name), name) for name in segments.names_in(folder) if count]
    for last, name in sorted(changed, reverse=True):
        if not last or (len(found) >= count and last < found[0][0]):
            break  # all lines of the remaining files are older
        lines = (line for line in _lines_backwards(os.path.join(folder, name.file)) if matches(line))
        mine = [(_moment(line), line) for line in islice(lines, count)]
        found = sorted(mine[::-1] + found, key=lambda entry: entry[0])[-count:]
    return found


def _lines_backwards(path: str) -> Iterator[bytes]:
    """Yield the whole lines of a file, the last one first."""
    descriptor = open_regular(path, follow=False)
    try:
        at = os.fstat(descriptor).st_size
        rest = b""
        is_end = True
        while at:
            size = min(BLOCK, at)
            at -= size
            first, *lines = (os.pread(descriptor, size, at) + rest).split(b"\n")
            if lines and is_end:
                lines.pop()  # empty, or an incomplete line
                is_end = False
            yield from reversed(lines)
            rest = first
        if rest and not is_end:
            yield rest
    finally:
        os.close(descriptor)


class Follower:
    """Polls a folder four times a second for lines that are added from now on."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._at: dict[str, int] = {}
        self._look(is_first=True)

    def wait(self) -> list[Entry]:
        """Wait a little; return the lines that have been added, in the order of time."""
        from time import sleep

        sleep(FOLLOW_SECONDS)
        return sorted(self._look(), key=lambda entry: entry[0])

    def _look(self, *, is_first: bool = False) -> list[Entry]:
        found: list[Entry] = []
        names = [name.file for name in segments.names_in(self._folder)]
        for gone in self._at.keys() - set(names):
            del self._at[gone]
        for file in names:
            try:
                descriptor = open_regular(os.path.join(self._folder, file), follow=False)
            except OSError:
                continue
            try:
                size, at = os.fstat(descriptor).st_size, self._at.get(file, 0)
                if is_first or size <= at:
                    self._at[file] = size if is_first else at
                    continue
                whole = os.pread(descriptor, size - at, at).rpartition(b"\n")[0]
            finally:
                os.close(descriptor)
            self._at[file] = at + len(whole) + (1 if whole else 0)
            lines = whole.split(b"\n") if whole else []
            found += [(_moment(line), line) for line in lines]
        return found


# --- showing ----------------------------------------------------------------------------------------------


def _printer(as_json: bool) -> Callable[[Entry], None]:
    """Return a function that prints a line unchanged, or as a row of a table with a header."""
    from fastrpc.cli._catalogue import print_lines

    is_first = True

    def show(entry: Entry) -> None:
        nonlocal is_first
        if as_json:
            sys.stdout.write(entry[1].decode("utf-8", "backslashreplace") + "\n")
            return
        if is_first:
            print_lines([_row(COLUMNS)])
            is_first = False
        print_lines([_shown(fields_of(entry[1]))])

    return show


def _shown(fields: Record) -> str:
    if fields.get("kind") == "gap":
        what = f"{fields.get('lost')} records are missing here"
    elif fields.get("kind") == "delayed":
        what = f"{fields.get('records')} records above were written late"
    else:
        return _row(_cell(fields.get(name)) for name in COLUMNS)
    text = f"-- {what}: {fields.get('reason')} --"
    return f"{_cell(fields.get('time'))}  {_cell(text)}"


def _row(cells: Iterable[str]) -> str:
    return "  ".join(cell.ljust(width) for width, cell in zip(WIDTHS, cells, strict=True)).rstrip()


def _cell(value: Any) -> str:
    from fastrpc.terminal.text import plain

    if value is None:
        return "-"
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return plain(str(value))


def _export(found: Iterator[Entry], form: str, write: Callable[[bytes], object]) -> None:
    if form == "json":
        for _, line in found:
            write(line + b"\n")
        return
    import csv
    from io import StringIO

    text = StringIO()
    writer = csv.writer(text)
    writer.writerow([*COLUMNS_OF_CSV, "others"])
    for _, line in found:
        fields = fields_of(line)
        row = [_text_of(fields.pop(name, None)) for name in COLUMNS_OF_CSV]
        for name in ("seq", "prev"):
            fields.pop(name, None)
        writer.writerow([*row, json.dumps(fields, ensure_ascii=False) if fields else ""])
        write(text.getvalue().encode("utf-8", "backslashreplace"))
        text.seek(0)
        text.truncate()
    write(text.getvalue().encode())


def _text_of(value: Any) -> str:
    """Return a cell of CSV. A text that a spreadsheet would read as a formula gets a leading apostrophe."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
