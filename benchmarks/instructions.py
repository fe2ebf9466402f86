"""Counts the instructions of one echo call: a figure that does not mind a noisy machine.

    python benchmarks/instructions.py            # count, show where they go, write results/instructions.json
    python benchmarks/instructions.py --check    # count; fail when over 2 % above the committed figure

A real server is run twice under ``valgrind --tool=callgrind``, with a file of calls as its standard
input; the second file has 20,000 calls more, and the difference is theirs: start-up, handshake and
warm-up cancel out. The calls are the same in every run, and so is the figure. Takes a few seconds.

A figure holds for one build of Python, one compiler and one C library; several may be committed. Where none
was taken with these, `--check` says that it cannot compare and ends with 0. Without valgrind there is no
figure: that is said, and the exit code is 0, or 1 with `--check`, since a check that was not made has
not passed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import Any

import fastrpc
from fastrpc._core import connection

FOLDER = os.path.dirname(os.path.abspath(__file__))
COMMITTED = os.path.join(FOLDER, "results", "instructions.json")
WARM_UP = 1_000  # calls of both runs
CALLS = 20_000  # more of them in the second run
TOLERANCE = 1.02
ROWS = 30
SECONDS = 300  # of one run
LETTERS = "abcdefghijklmnop qrstuvwxyz"

SERVER = """
from fastrpc import Server

app = Server("instructions")


@app.tool(run="inline")
def echo(text: str) -> str:
    return text


app.run()
"""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "instructions", "version": "1"},
    },
}


class CannotCount(Exception):
    """The server did not do what it was to do; the message says what came instead."""


# ------------------------------------------------------------------------------------------ counting


def call_lines(count: int) -> list[bytes]:
    """The handshake and `count` calls; texts differ, and are the same each time."""
    chance = random.Random(1)
    lines = [json.dumps(INITIALIZE).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    for id in range(1, count + 1):
        text = "".join(chance.choices(LETTERS, k=chance.randint(4, 40)))
        lines.append(
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}'
            % (id, text.encode())
        )
    return lines


def count_run(valgrind: str, folder: str, calls: int) -> Counter[str]:
    """Serve so many calls under callgrind; return the instructions by function."""
    server, requests, profile = (os.path.join(folder, name) for name in ("server.py", "requests", "profile"))
    with open(server, "w", encoding="utf-8") as file:
        file.write(SERVER)
    with open(requests, "wb") as file:
        file.write(b"\n".join(call_lines(calls)) + b"\n")
    command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={profile}", "--error-exitcode=99"]
    place = os.path.dirname(os.path.dirname(os.path.abspath(fastrpc.__file__)))
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": place}
    with open(requests, "rb") as file:
        # Without site: an editable install would add an import hook, which is no part of fastrpc.
        done = subprocess.run(
            [*command, sys.executable, "-S", server],
            stdin=file,
            capture_output=True,
            env=environment,
            timeout=SECONDS,
        )
    answers = done.stdout.count(b'"isError":false')
    if done.returncode != 0 or answers != calls:
        said = done.stderr.decode(errors="replace")[-2000:]
        raise CannotCount(f"{answers} of {calls} calls answered, exit code {done.returncode}: {said}")
    with open(profile, encoding="utf-8", errors="replace") as file:
        return own_costs(file)


def own_costs(profile: Iterable[str]) -> Counter[str]:
    """Read callgrind's output format: each function's own instructions, without those it called."""
    costs: Counter[str] = Counter()
    names: dict[str, str] = {}
    current = ""
    of_callee = False  # the line behind ``calls=`` has what the callee cost
    for line in profile:
        key, equals, value = line.partition("=")
        if equals and key in ("fn", "cfn"):
            number, _, name = value.rstrip().partition(" ")
            if name:
                names[number] = name
            if key == "fn":
                current = names[number]
        elif equals and key == "calls":
            of_callee = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not of_callee:
                costs[current] += int(line.split()[1])
            of_callee = False
    return costs


def count_calls(valgrind: str) -> dict[str, float]:
    """The instructions of one call by function, the most expensive first."""
    with tempfile.TemporaryDirectory(prefix="fastrpc-instructions-") as folder:
        count_run(valgrind, folder, 1)  # compiles what has changed since: not a cost of the run that counts
        before = count_run(valgrind, folder, WARM_UP)
        after = count_run(valgrind, folder, WARM_UP + CALLS)
    after.subtract(before)
    return {name: count / CALLS for name, count in after.most_common()}


# ------------------------------------------------------------------------------------ what it holds for


def build() -> dict[str, str]:
    """What must be the same for two figures to be compared."""
    return {
        "python": sys.version.replace("\n", " "),
        "compiler": extension_compiler(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
    }


def extension_compiler() -> str:
    """The compiler that made the extensions, as it has signed them."""
    with open(connection.__file__, "rb") as file:
        signature = re.search(rb"(GCC: \([^)]*\) [\d.]+|[\w ]*clang version [\d.]+)", file.read())
    return signature[1].decode() if signature else platform.python_compiler()


def committed() -> list[dict[str, Any]]:
    """The committed figures: one for each build that somebody has counted on."""
    try:
        with open(COMMITTED, encoding="utf-8") as file:
            figures: list[dict[str, Any]] = json.load(file)
    except FileNotFoundError:
        return []
    return figures


def is_of(figure: dict[str, Any], facts: dict[str, str]) -> bool:
    return all(figure.get(name) == value for name, value in facts.items())


def check(total: float) -> int:
    """Compare with the committed figure of this build; return the exit code."""
    here = build()
    before = next((figure["instructions_per_call"] for figure in committed() if is_of(figure, here)), None)
    if before is None:
        print(f"cannot compare: no figure is committed for {', '.join(here.values())}")
        return 0
    print(f"committed: {before:.1f}; now {total / before:.4f} of it, at most {TOLERANCE}")
    if total > before * TOLERANCE:
        print("over the bar: win them back, or run without --check and say why in the commit")
        return 1
    return 0


def write(total: float, functions: dict[str, float]) -> None:
    here = build()
    figure = {
        "instructions_per_call": round(total, 1),
        **here,
        "functions": {name: round(count, 1) for name, count in list(functions.items())[:ROWS]},
    }
    figures = [figure, *(other for other in committed() if not is_of(other, here))]
    os.makedirs(os.path.dirname(COMMITTED), exist_ok=True)
    with open(COMMITTED, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")
    print(f"written to {os.path.relpath(COMMITTED)}")


def show(total: float, functions: dict[str, float]) -> None:
    for name, count in list(functions.items())[:ROWS]:
        print(f"{count:9.1f} {count / total:6.1%}  {name:.90}")
    print(f"{total:9.1f}         instructions of one echo call")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count the instructions of one echo call.")
    parser.add_argument("--check", action="store_true", help="compare with the committed figure")
    options = parser.parse_args(arguments)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("valgrind is not installed: nothing was counted")
        return 1 if options.check else 0
    try:
        functions = count_calls(valgrind)
    except (CannotCount, subprocess.TimeoutExpired) as problem:
        print(f"instructions.py: {problem}", file=sys.stderr)
        return 1
    total = sum(functions.values())
    show(total, functions)
    if options.check:
        return check(total)
    write(total, functions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
