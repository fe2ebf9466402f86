"""Measures servers of the originals on their own framework, on fastrpc's classes, and with their own objects
over fastrpc's transports (``swap --run --objects original``).

    python benchmarks/original_objects.py --out benchmarks/results/original_objects.json [NAME…]

The servers are those of `SERVERS`, public ones of `tests/swap/servers.toml` that `make swap` has installed,
and the small ones of `servers/echo_of_originals.py`. For each and each side: the time to the handshake's
answer, the time of all lists, the median time of one call at a time, the time of a call with 64 at once, both
in microseconds, the processor time that the server takes for one of the latter, and its peak memory; whether
lists and answers differ from the original's, by `fastrpc.swap.comparison`, with the places of all differences
that are none by choice. Times are the smallest of the rounds, since the machine may be busy; compare
processor time then. Linux only. Takes some ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests"))

from swap.fixtures import make_folder  # noqa: E402
from swap.installing import CACHE, NotInstalled, programs_of  # noqa: E402
from swap.observing import ENVIRONMENT, run_server  # noqa: E402
from swap.roster import Entry, entries  # noqa: E402
from swap.run import steady  # noqa: E402

from fastrpc.swap.comparison import differences  # noqa: E402

SWAP = [sys.executable, "-m", "fastrpc", "swap", "--run", "--objects"]
SIDES = {"original": [], "ours": [*SWAP, "ours", "--"], "objects": [*SWAP, "original", "--"]}
SMALL = {
    "small sdk1_fastmcp": ("mcpzoo-json-diff", "SDK 1 FastMCP"),
    "small sdk1_server": ("mcp-server-diff-python", "SDK 1 Server"),
    "small sdk2_mcpserver": ("mcp-sequential-thinking", "SDK 2 MCPServer"),
    "small fastmcp": ("mcp-hashlib", "FastMCP 4"),
}
"""Small servers, and the public one in whose environment each runs."""
SERVERS = (
    *SMALL,
    *("mcpzoo-json-diff", "mcp-server-diff-python", "mcp-dice", "mcp-hashlib", "csv2json-mcp"),
    *("mcp-sequential-thinking", "usda-mcp", "mcp-yahoo-finance", "mcp-number-theory", "mcp-chainladder"),
    *("mcp-json-yaml-toml", "mcp-server"),
)
AT_ONCE, ROUNDS, REPEATED = 64, 3, 10


def entry_of(name: str, known: dict[str, Entry]) -> tuple[Entry, str]:
    """Return a server's entry and the folder of the programs that it needs."""
    if name not in SMALL:
        return known[name], programs_of(known[name], install=False)
    host, framework = SMALL[name]
    programs = programs_of(known[host], install=False)
    script = os.path.join(HERE, "servers", "echo_of_originals.py")
    command = [os.path.join(programs, "python"), script, name.split()[1]]
    calls = [("echo", {"text": "x"}), ("echo", {"text": 5}), ("echo", {})]
    return Entry(name, known[host].package, framework, command, also=known[host].also, calls=calls), programs


def measured(entry: Entry, programs: str, side: str) -> dict:
    """Return what one server says and what it costs, on one side."""
    folder = os.path.join("/tmp", "fastrpc-swap", entry.name.replace(" ", "-"))
    os.makedirs(folder, exist_ok=True)
    command, env = entry.filled(folder, programs)
    placed, words = entry.placed(folder), [*SIDES[side], *command]
    os.makedirs(os.path.join(CACHE, "logs"), exist_ok=True)
    log = os.path.join(CACHE, "logs", f"{entry.name}.{side}")
    runs = [run_server(placed, words, {**ENVIRONMENT, **env}, folder, log) for _ in range(2)]
    failures = [run["failure"] for run in runs if run.get("failure")]
    if failures:
        return {"failure": failures[0]}
    figures = {name: min(run[name] for run in runs) for name in ("start_ms", "list_ms", "rss_mb")}
    figures["call_us"] = 1000 * min(run["call_ms"] for run in runs)
    make_folder(folder)
    figures.update(at_once(words, {**os.environ, **ENVIRONMENT, **env}, folder, placed.requests()[0]))
    return {"figures": figures, "runs": runs}


def at_once(words: list[str], env: dict, folder: str, call: dict) -> dict:
    """Return the time and the processor time of a call with 64 at once, in microseconds."""
    params = {"name": call["tool"], "arguments": call["arguments"]}
    server = subprocess.Popen(
        words, env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )

    def exchange(*messages: dict) -> None:
        lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages]
        server.stdin.write(b"".join(lines))
        server.stdin.flush()
        waiting = sum("id" in message for message in messages)
        while waiting:
            line = server.stdout.readline()
            if not line:
                raise RuntimeError(f"{words[-1]}: the server has ended")
            waiting -= b'"id":' in line and b'"method":' not in line

    try:
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        }
        exchange({"id": 0, "method": "initialize", "params": client})
        exchange({"method": "notifications/initialized"}, {"id": 1, "method": "tools/list"})
        calls = [{"id": 2 + at, "method": "tools/call", "params": params} for at in range(AT_ONCE)]
        exchange(*calls)
        walls, cpus = [], []
        for _ in range(ROUNDS):
            began, used = time.perf_counter(), cpu_seconds(server.pid)
            for _ in range(REPEATED):
                exchange(*calls)
            walls.append((time.perf_counter() - began) / (REPEATED * AT_ONCE))
            cpus.append((cpu_seconds(server.pid) - used) / (REPEATED * AT_ONCE))
        return {"at_once_us": min(walls) * 1e6, "cpu_us": min(cpus) * 1e6}
    finally:
        server.stdin.close()
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()


def cpu_seconds(pid: int) -> float:
    """Return the processor time that the threads of a process have used, by Linux's scheduler."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def compared(name: str, known: dict[str, Entry]) -> dict:
    """Return the figures of one server on all sides, and what differs."""
    entry, programs = entry_of(name, known)
    sides = {side: measured(entry, programs, side) for side in SIDES}
    found: dict = {"name": name, "framework": entry.framework, "package": entry.package, "on": entry.also}
    for side, one in sides.items():
        found[side] = {"failure": one["failure"]} if "failure" in one else rounded(one["figures"])
        if side != "original" and "failure" not in one and "failure" not in sides["original"]:
            first, second = sides["original"]["runs"]
            all_found = differences(steady(first, second), one["runs"][0])
            found[side]["differences"] = sorted(each.place for each in all_found if not each.reason)
            found[side]["by_choice"] = sorted({each.reason for each in all_found if each.reason})
    return found


def rounded(figures: dict) -> dict:
    return {name: round(value, 1) for name, value in figures.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=SERVERS)
    parser.add_argument("--out", required=True, help="the JSON file to write")
    options = parser.parse_args()
    known = {entry.name: entry for entry in entries()}
    results = []
    for name in options.names:
        try:
            results.append(compared(name, known))
        except NotInstalled as reason:
            results.append({"name": name, "void": str(reason)})
        print(json.dumps(results[-1]), flush=True)
        taken = {"taken": time.strftime("%Y-%m-%d %H:%M"), "load": os.getloadavg(), "servers": results}
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(taken, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
