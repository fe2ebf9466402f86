"""``fastrpc audit``: reads the audit log: shows, searches, exports and verifies it, proves one record.

How a log is read is in `fastrpc.guard.audit.reading`. The log's own lines are shown if they are about records
(`gap`, `delayed`). The rules of the format are in `fastrpc.guard.audit.verify`, which an auditor can run
without fastrpc.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from time import sleep
from typing import Any

from fastrpc.cli import configuration
from fastrpc.command_line import CommandParser
from fastrpc.diagnostics import write_line
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard.audit import reading
from fastrpc.guard.audit.reading import Entry, Record, fields_of
from fastrpc.regular_files import open_regular

COLUMNS = ("time", "actor", "action", "tool", "outcome", "decision", "risk", "total_us", "id")
COLUMNS_OF_CSV = (*COLUMNS[:-1], "category", "rule", "policy", "bytes", "id")
WIDTHS = (24, 16, 12, 24, 14, 8, 8, 8, 0)
FOLLOW_SECONDS = 0.25
TAIL = 10

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
    for name, field in reading.FIELDS.items():
        as_recorded = "" if field == name else f" ({field})"
        parser.option(f"--{name} GLOB", f"only records of this {name}{as_recorded}")
    parser.option("--since TIME", "only records since then: RFC 3339, or how long ago: 90s, 30m, 2h, 7d")
    parser.option("--until TIME", "only records before then")
    return parser


def folder_of(chosen: Namespace) -> str:
    folder: str = chosen.folder or os.path.join(configuration()["FASTRPC_STATE_DIR"], reading.FOLDER)
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
    follower = reading.Follower(folder)
    for entry in reading.latest(folder, chosen.n, matches):
        show(entry)
    with suppress(KeyboardInterrupt):
        while chosen.follow:
            sys.stdout.flush()
            sleep(FOLLOW_SECONDS)
            for entry in follower.added():
                if matches(entry[1]):
                    show(entry)
    return 0


def search(arguments: list[str]) -> int:
    parser = _with_filters("search")
    parser.option("--json", "print the lines of the log unchanged (JSON)")
    parser.option("--limit N", "print at most N records", type=int)
    chosen = parser.parse(arguments)
    found = _found(chosen)
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
    found = _found(chosen)
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


def _filter_of(chosen: Namespace) -> reading.RecordFilter:
    """Return the filter of the options. Raises UsageError."""
    wanted = {name: getattr(chosen, name) for name in reading.FIELDS if getattr(chosen, name) is not None}
    times = []
    for name in ("since", "until"):
        with Reworded(ValueError, UsageError, f"--{name}: "):
            times.append(reading.time_of(getattr(chosen, name) or ""))
    return reading.RecordFilter(wanted, *times)


def _found(chosen: Namespace) -> Iterator[Entry]:
    wanted = _filter_of(chosen)
    return reading.entries(folder_of(chosen), wanted, wanted.since)


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
