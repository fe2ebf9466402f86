"""W12b: what a call costs in each form in which people write parameters, results and failures.

The forms are those of `servers/forms.py`, each with what has to come of its calls. 256 calls are sent at
once, the next when all of them are answered, both processes on one core. 20,000 calls are a row's figure;
2,000 and 300,000 stand beside it: loops are short, so what a server learns late counts. A ratio is to as many
calls of the plain `echo`, of a form with a twin to those of the twin, in the same round.

Requests are prepared before the clock starts, all answers are compared after it has stopped; a wrong one
voids the row.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from roster import FORM, PLAIN, SERVERS, Peer
from workloads.row import Column, Options, Result, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.append(SERVERS)

try:
    import forms
    import orjson
except ImportError:  # this Python only drives others: it has not got what the forms are written with
    FORMS: dict[str, Any] = {}
else:
    FORMS = forms.FORMS

WINDOW = 256
LENGTHS = {"calls_per_second": 20_000, "at_2000": 2_000, "at_300000": 300_000}
LETTERS = "abcdefghijklmnop qrstuvwxyz"
QUIET_SECONDS = 0.1  # a client looks at the list, and pauses
READ_BYTES = 1 << 20
BEGIN = (
    {
        "id": "begin",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "forms", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": "list", "method": "tools/list"},
)


def measure(row: Row, peer: Peer, options: Options) -> Result:
    """Measure the row's form at each length; on the plain server the one that it is compared with."""
    name = row.name.removeprefix("W12b-")
    if peer.name == PLAIN:
        name = FORMS[name].twin
    found: Result = {}
    for figure, calls in LENGTHS.items():
        try:
            found[figure] = calls / seconds_of(peer, name, calls)
        except (OSError, ValueError) as problem:
            return {"void": f"{name}, {calls:,} calls: {problem}"}
    return found


def seconds_of(peer: Peer, name: str, calls: int) -> float:
    """Start a server, make so many calls, return how long they took. Raises ValueError for a wrong answer."""
    form = FORMS[name]
    texts = texts_for(calls)
    lines = [
        line(id, "tools/call", name="echo", arguments=form.arguments(text)) for id, text in enumerate(texts)
    ]
    with one_core():
        server = subprocess.Popen(
            [*peer.commands[FORM], name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=peer.environment,
            cwd=peer.folder,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        to, answers = server.stdin.fileno(), server.stdout.fileno()
        try:
            for message in BEGIN:
                os.write(to, orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n")
            read_lines(answers, 2)
            time.sleep(QUIET_SECONDS)
            batches = [b"".join(lines[at : at + WINDOW]) for at in range(0, calls, WINDOW)]
            got = []
            began = time.perf_counter()
            for at, batch in enumerate(batches):
                os.write(to, batch)
                got.append(read_lines(answers, min(WINDOW, calls - at * WINDOW)))
            took = time.perf_counter() - began
        finally:
            server.stdin.close()
            server.wait(timeout=30)
            server.stdout.close()
    check(form, texts, b"".join(got).splitlines())
    return took


@cache
def texts_for(calls: int) -> tuple[str, ...]:
    """Make the texts that so many calls echo, the same ones for each form."""
    chance = random.Random(1)
    return tuple("".join(chance.choices(LETTERS, k=chance.randint(4, 40))) for _ in range(calls))


def line(id: int, method: str, **params: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + b"\n"


def read_lines(source: int, count: int) -> bytes:
    """Read so many lines. Raises ValueError if the server ends before."""
    parts = []
    while count > 0:
        part = os.read(source, READ_BYTES)
        if not part:
            raise ValueError("the server has ended")
        parts.append(part)
        count -= part.count(b"\n")
    return b"".join(parts)


def check(form: Any, texts: tuple[str, ...], answers: list[bytes]) -> None:
    """Raise ValueError unless each call has one answer, the right one."""
    left = set(range(len(texts)))
    for answer in answers:
        message = orjson.loads(answer)
        id = message.get("id")
        if id not in left:
            raise ValueError(f"an answer that was not asked for: {answer[:200]!r}")
        left.remove(id)
        result = message.get("result", {})
        result.pop("_meta", None)
        if result != form.want(texts[id]):
            raise ValueError(f"a wrong answer: {answer[:200]!r}")
    if left:
        raise ValueError(f"{len(left)} calls without an answer")


@contextmanager
def one_core() -> Iterator[None]:
    """Keep to one core, with the processes that are started here, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(usable)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


ROWS = tuple(
    Row(
        f"W12b-{name}",
        f"echo in 20,000 calls, 256 at once: {form.title}",
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        bar=form.bar,
        goal=None if form.bar is None else min(1.5 * form.bar, 1.0),
        base=PLAIN,
        server=FORM,
        columns=(Column("2,000", "at_2000"), Column("300,000", "at_300000")),
    )
    for name, form in FORMS.items()
    if form.bar is not None
)
