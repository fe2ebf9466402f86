"""The bar S5: what a second worker adds to the calls a second over HTTP (`make bench-workers`).

    python benchmarks/http_workers.py           half a minute
    python benchmarks/http_workers.py --write   and writes results/http_workers.json

`computing`: calls of a tool that uses the processor for 5 ms, from 16 connections; the clients need under a
tenth of that. The factor is that of the calls a second that two workers and one would do if no other program
wanted the processors: Linux counts how long a process runs, and how long it waits for a processor to run on.
`echo`: the smallest call, in sessions, 64 connections. The load client needs a processor itself, which two
workers do not get. So the factor is that of the servers' processor time of a call: if it is the same with two
workers, two processors do twice the calls.
Both are medians of pairs that take turns. The calls that were really made in a second are shown, too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
sys.path[:0] = [REPOSITORY, os.path.join(REPOSITORY, "tests")]

from support.http_client import children  # noqa: E402
from support.http_server import HttpProcess  # noqa: E402
from support.protocol import envelope  # noqa: E402
from support.waiting import eventually  # noqa: E402

from roster import PORT, TOKEN  # noqa: E402

BAR = 1.7
SERVER = os.path.join(HERE, "servers", "http_workers.py")
CLIENT = os.path.join(HERE, ".cache", "build", "client")
RECORD = os.path.join(HERE, "results", "http_workers.json")
CONNECTIONS = 16
SECONDS = 2.0
PAIRS = 4
COMPUTED_MS = 5
SHORT, LONG = 0.5, 2.5
"""Seconds of two loads: the difference is free of what the start costs."""


def command(workers: int, port: str) -> list[str]:
    return [sys.executable, SERVER, port, TOKEN, str(workers)]


# --- a tool that computes -------------------------------------------------------------------------------


class Callers:
    """Connections that call `compute` without a pause."""

    def __init__(self, port: int) -> None:
        self.counts = [0] * CONNECTIONS
        self._over = threading.Event()
        self._port = port
        params = {"name": "compute", "arguments": {"ms": COMPUTED_MS}, "_meta": envelope()}
        self._body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        self._threads = [threading.Thread(target=self._call, args=(at,)) for at in range(CONNECTIONS)]
        for thread in self._threads:
            thread.start()

    def _call(self, at: int) -> None:
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "compute",
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._over.is_set():
            connection.request("POST", "/mcp", self._body, headers)
            answer = json.loads(connection.getresponse().read())
            assert answer["result"]["structuredContent"] == {"result": COMPUTED_MS}, answer
            self.counts[at] += 1
        connection.close()

    def rate(self, pids: list[int]) -> tuple[float, float]:
        """Calls a second in the next `SECONDS`: those that were made, and those that these processes would
        have made if they had run whenever they wanted to."""
        calls, began, ran, waited = sum(self.counts), time.monotonic(), *scheduled(pids)
        time.sleep(SECONDS)
        ran, waited = (now - before for now, before in zip(scheduled(pids), (ran, waited), strict=True))
        made = (sum(self.counts) - calls) / (time.monotonic() - began)
        return made, made * (ran + waited) / ran

    def end(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def scheduled(pids: list[int]) -> tuple[int, int]:
    """How long the threads of processes have run, and waited for a processor, in nanoseconds."""
    ran = waited = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                found = file.read().split()
            ran, waited = ran + int(found[0]), waited + int(found[1])
    return ran, waited


def computing_rate(workers: int) -> tuple[float, float]:
    with ExitStack() as stack:
        server = HttpProcess(command=command(workers, "0"))
        stack.callback(server.stop)
        callers = Callers(server.port)
        stack.callback(callers.end)
        eventually(lambda: all(callers.counts))
        return callers.rate([server.pid, *children(server.pid)])


def computing() -> dict[str, Any]:
    pairs = [(computing_rate(1), computing_rate(2)) for _ in range(PAIRS)]
    return {
        "calls_a_second": [[round(made, 1) for made, _ in pair] for pair in pairs],
        "without_other_programs": [[round(alone, 1) for _, alone in pair] for pair in pairs],
        "factor": round(statistics.median(two / one for (_, one), (_, two) in pairs), 3),
    }


# --- the smallest call ----------------------------------------------------------------------------------


def load(workers: int, seconds: float) -> tuple[int, float]:
    """The calls of a load, and the processor time of all of the server's processes, in microseconds."""
    options = ("--workload", "http", "--connections", "64", "--token", TOKEN, "--wire", "session")
    done = subprocess.run(
        [CLIENT, *options, "--seconds", str(seconds), "--", *command(workers, PORT)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode:
        raise RuntimeError(f"the load client has failed: {done.stdout} {done.stderr}")
    found = json.loads(done.stdout)
    return found["calls"], (found["server_user_seconds"] + found["server_system_seconds"]) * 1e6


def echo_us(workers: int) -> float:
    """Processor time of a call."""
    (few, started), (many, used) = load(workers, SHORT), load(workers, LONG)
    return (used - started) / (many - few)


def echo() -> dict[str, Any]:
    pairs = [(echo_us(1), echo_us(2)) for _ in range(PAIRS)]
    return {
        "us_of_a_call": [[round(each, 2) for each in pair] for pair in pairs],
        "factor": round(2 * statistics.median(one / two for one, two in pairs), 3),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fail when a second worker adds too little.")
    parser.add_argument("--write", action="store_true", help=f"write {os.path.relpath(RECORD, REPOSITORY)}")
    given = parser.parse_args(arguments)
    before = os.getloadavg()[0]
    found: dict[str, Any] = {"cores": os.cpu_count(), "computing": computing(), "echo": echo()}
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    found["holds"] = min(found[kind]["factor"] for kind in ("computing", "echo")) >= BAR
    print(json.dumps(found, indent=1))
    if given.write:
        with open(RECORD, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
