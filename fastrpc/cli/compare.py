"""``fastrpc compare``: runs a server as it is and on fastrpc, and prints where the two differ.

Both are started over stdio, one after the other; the second is the same command with its imports served by
fastrpc (`fastrpc.swap.launch`). Their descriptions are compared, and their results of the calls in a
file; without a file, no tool is called. Differences that affect a client or a model are printed first, then
deliberate ones with the reason. Exit codes: 0; 1 for differences of the first kind, or if only one of the two
starts; 2 for a wrong command line.
"""

from __future__ import annotations

import json
import os
import tempfile

from fastrpc.cli import parser
from fastrpc.cli._catalogue import print_json
from fastrpc.cli._durations import time_limit
from fastrpc.cli._target import split_command
from fastrpc.diagnostics import write_line
from fastrpc.errors import Reworded, UsageError
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.swap.comparison import Difference

EXAMPLES = """\
  fastrpc compare -- python server.py
  fastrpc compare --calls calls.json --repeat 100 -- python server.py
  fastrpc compare --json -- uvx mcp-server-time
  echo '[{"tool": "add", "arguments": {"a": 1}}, {"resource": "a://b"}]' > calls.json
"""
USAGE = "[--calls FILE] [--repeat N] [--timeout N] [--json] -- COMMAND…"
MOST_PLACES = 3
"""How many places are shown for one deliberate difference."""
LONGEST_VALUE = 160
ANSWER_SECONDS = 120.0
LARGEST_CALLS = 16 * 1024 * 1024


def main(arguments: list[str]) -> int:
    """Compare a server with itself on fastrpc; return the exit code. Raises UsageError."""
    from fastrpc.protocol.versions import LATEST_SESSION_VERSION

    arguments, command = split_command(arguments)
    options = parser("compare", USAGE, EXAMPLES)
    options.option("--calls FILE", "a JSON file with the calls, reads and prompts to send to both")
    options.option("--repeat N", "send each of these N times (1)", type=int, default=1)
    options.option(
        "--protocol VERSION", f"speak this version ({LATEST_SESSION_VERSION})", default=LATEST_SESSION_VERSION
    )
    options.option(
        "--timeout N",
        f"seconds in which each server must start, and send each answer ({ANSWER_SECONDS:g})",
        type=time_limit,
        default=ANSWER_SECONDS,
    )
    options.option("--json", "print all of both servers and the differences as JSON")
    options.option("--all", f"list every place of an intended difference, not only the first {MOST_PLACES}")
    chosen = options.parse(arguments)
    if not command:
        raise UsageError("compare: a command is needed, such as: fastrpc compare -- python server.py")
    if chosen.repeat < 1:
        raise UsageError(f"--repeat: expected at least 1, got {chosen.repeat}")
    calls = _calls_in(chosen.calls) if chosen.calls is not None else []
    return _compare(chosen, command, calls)


def _calls_in(path: str) -> list[dict[str, Any]]:
    """Return the calls of a file. Raises UsageError."""
    from fastrpc.regular_files import read_regular
    from fastrpc.swap.observation import request_of

    with Reworded((OSError, ValueError), UsageError, f"--calls {path}: "):
        calls = json.loads(read_regular(path, LARGEST_CALLS))
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise UsageError(f"--calls {path}: expected a list of objects")
        for call in calls:
            request_of(call)
    return calls


def _compare(chosen: Namespace, command: list[str], calls: list[dict[str, Any]]) -> int:
    from fastrpc.swap.comparison import differences, real
    from fastrpc.swap.launch import environment
    from fastrpc.swap.observation import observe

    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "served")
        variables = {**environment(command), "FASTRPC_SWAP_REPORT": report}
        options = {
            "version": chosen.protocol,
            "repeat": chosen.repeat,
            "start_seconds": chosen.timeout,
            "call_seconds": chosen.timeout,
        }
        with Reworded((TypeError, ValueError), UsageError, "compare: "):
            original = observe(command, calls, env=os.environ, **options)
            swapped = observe(command, calls, env=variables, **options)
        is_swapped = os.path.exists(report)
    if not is_swapped and not original.get("failure"):
        write_line(f"fastrpc: {command[0]} has imported neither fastmcp nor mcp; it runs as it is")
        return 1
    found = differences(original, swapped)
    if chosen.json:
        shown = [difference.as_json() for difference in found]
        print_json({"original": original, "swapped": swapped, "differences": shown})
    else:
        print("\n".join(_lines(original, swapped, found, is_whole=chosen.all)))
    failed = bool(original.get("failure") or swapped.get("failure"))
    return int(failed or bool(real(found)))


def _lines(
    original: dict[str, Any], swapped: dict[str, Any], found: list[Difference], *, is_whole: bool
) -> Iterator[str]:
    for title, seen in (("the original", original), ("on fastrpc", swapped)):
        if seen.get("failure"):
            yield f"{title}, it does not run: {plain(seen['failure'])}"
    from fastrpc.swap.comparison import real

    acted_on = real(found)
    if not (original.get("failure") or swapped.get("failure")):
        count = len(acted_on) or "no"
        yield f"{count} difference{'' if count == 1 else 's'} that a client or a model would act on"
        for difference in acted_on:
            yield f"  {plain(difference.place)}"
            yield f"    original: {_shown(difference.original)}"
            yield f"    fastrpc:  {_shown(difference.swapped)}"
        yield from _choices(found, is_whole)
        yield ""
        yield f"{'':<8}{'original':>12}{'fastrpc':>12}"
        for name, title in (("start", "start"), ("list", "lists"), ("call", "call")):
            if name in original["seconds"] and name in swapped["seconds"]:
                theirs, ours = original["seconds"][name], swapped["seconds"][name]
                times = f"{theirs / ours:.1f}x" if ours else ""
                yield f"{title:<8}{_duration(theirs):>12}{_duration(ours):>12}{times:>9}"


def _choices(found: list[Difference], is_whole: bool) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for difference in found:
        if difference.reason:
            by_reason.setdefault(difference.reason, []).append(plain(difference.place))
    if by_reason:
        yield ""
        yield "by choice"
    for reason, places in by_reason.items():
        shown = places if is_whole else places[:MOST_PLACES]
        rest = f", and {len(places) - len(shown)} more (--all)" if len(places) > len(shown) else ""
        yield f"  {reason}"
        yield f"    {', '.join(shown)}{rest}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.1 else f"{seconds * 1e6:,.0f} µs"


def _shown(value: Any) -> str:
    from fastrpc.swap.comparison import ABSENT

    text = repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)
    return plain(text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…")
