"""What every client of W13 is driven by: texts, passes, the check of answers, the report.

    python clients/fastrpc_client.py --window 256 --seconds 0.5 -- python servers/echo.py
    python clients/fastrpc_client.py --in-memory servers/echo.py
    python clients/fastrpc_client.py --http TOKEN -- python servers/http_echo.py {port} TOKEN

A driver hands over how its client calls a tool and how it takes the text out of a result; both run while the
clock does, as in an agent's loop. The load comes in passes, as the load client's: texts are made before the
clock starts, every answer is compared with its text after it has stopped. One JSON object is printed:
`calls_per_second`, one call at a time also `p50`, `p99` and so on in us, or {"void": reason} with exit code
1. A window of N is N coroutines that each call again when answered. The server is a child of this process
and so runs on its core, over HTTP too. Costs a pass or two more than `--warm-up` and `--seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

START_SECONDS = 30.0
PORTS = range(28_000, 32_000)  # the load client's, below those that systems give out by themselves
VERSION = "2025-11-25"
"""The protocol version that all clients are held to: the latest that everybody here speaks."""
PASS_SECONDS = 0.1
PASS_CALLS = 65536
LEAST_CALLS = 4  # of each coroutine in a pass: the first and the last of them find the window half empty

WORDS = "build the main branch and run its tests list every file in source order then read config from disk"
ODD = ("\n", '"quoted"', "back\\slash", "\t", "café", "مرحبا", "漢字", "🚀")


class Void(Exception):
    """What was wrong with the run; there are no figures."""


@dataclass(frozen=True)
class Load:
    """What a driver is asked for. It has a command of the server, the server itself, or its URL and token."""

    command: list[str]
    app: Any
    window: int
    seconds: float
    warm_up: float
    is_sync: bool
    planted_us: int | None = None
    url: str = ""
    token: str = ""


def texts(count: int, chance: random.Random) -> list[str]:
    """Words by chance, no two alike, one in eight with an escape or a letter beyond ASCII."""
    words, found = WORDS.split(), []
    for _ in range(count):
        chosen = [f"{chance.getrandbits(40):x}", *chance.choices(words, k=chance.randrange(2, 6))]
        if chance.randrange(8) == 0:
            chosen.append(chance.choice(ODD))
        found.append(" ".join(chosen))
    return found


class Meter:
    """Says how long each pass is and sums up what came of them; the warm-up is forgotten."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.chance = random.Random()
        self.is_warm = False
        self.forget()

    def forget(self) -> None:
        self.calls = self.passes = self.elapsed_ns = 0
        self.took_ns: list[int] = []

    def all_passes(self) -> Iterator[list[str]]:
        """The texts of each pass, until the time is up."""
        calls_per_second = 0.0
        for seconds in (self.load.warm_up, self.load.seconds):
            self.forget()
            while (left := seconds - self.elapsed_ns / 1e9) > 0:
                wanted = int(calls_per_second * min(PASS_SECONDS, left))
                least = LEAST_CALLS * self.load.window
                yield texts(min(max(wanted, least), PASS_CALLS), self.chance)
                calls_per_second = self.calls_per_second

    def add(self, sent: list[str], got: Sequence[str], elapsed_ns: int, took_ns: Sequence[int] = ()) -> None:
        """Take the times of a pass. Raises Void if one of its answers is wrong."""
        for text, answer in zip(sent, got, strict=True):
            if answer != text:
                raise Void(f"expected the text {text!r:.100}, got {answer!r:.100}")
        self.calls += len(sent)
        self.passes += 1
        self.elapsed_ns += elapsed_ns
        self.took_ns += took_ns

    @property
    def calls_per_second(self) -> float:
        return self.calls / (self.elapsed_ns / 1e9)

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = {"workload": "echo", "window": self.load.window, "version": VERSION}
        found |= {"calls": self.calls, "passes": self.passes, "calls_per_second": self.calls_per_second}
        if self.took_ns:
            in_order = sorted(self.took_ns)
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)):
                found[name] = in_order[int(share * (len(in_order) - 1))] / 1e3
        return found


# ------------------------------------------------------------------------------------------- passes

CallTool = Callable[[str, dict[str, str]], Any]
TextOf = Callable[[Any], str]


def drive_sync(load: Load, call_tool: CallTool, text_of: TextOf) -> dict[str, Any]:
    """Call one at a time without an event loop. Raises Void."""
    meter, text_of = Meter(load), late(load, text_of)
    for sent in meter.all_passes():
        got, moments = [], [perf_counter_ns()]
        for text in sent:
            got.append(text_of(call_tool("echo", {"text": text})))
            moments.append(perf_counter_ns())
        meter.add(sent, got, *elapsed(moments))
    return meter.report()


async def drive(load: Load, call_tool: CallTool, text_of: TextOf) -> dict[str, Any]:
    """Keep the window full. Raises Void."""
    meter, text_of = Meter(load), late(load, text_of)
    for sent in meter.all_passes():
        if load.window == 1:
            got, moments = [], [perf_counter_ns()]
            for text in sent:
                got.append(text_of(await call_tool("echo", {"text": text})))
                moments.append(perf_counter_ns())
            meter.add(sent, got, *elapsed(moments))
        else:
            got, begun = [""] * len(sent), perf_counter_ns()
            numbered = enumerate(sent)
            workers = [keep_calling(call_tool, text_of, numbered, got) for _ in range(load.window)]
            await asyncio.gather(*workers)
            meter.add(sent, got, perf_counter_ns() - begun)
    loop = type(asyncio.get_running_loop()).__module__.partition(".")[0]
    return {**meter.report(), "loop": loop}


async def keep_calling(
    call_tool: CallTool, text_of: TextOf, numbered: Iterable[tuple[int, str]], got: list[str]
) -> None:
    """One of the coroutines that share a pass: take the next text, call, and again when answered."""
    for number, text in numbered:
        got[number] = text_of(await call_tool("echo", {"text": text}))


def late(load: Load, text_of: TextOf) -> TextOf:
    """The function itself, or one that wastes so much time at first as has been planted."""
    if load.planted_us is None:
        return text_of
    nanoseconds = 1000 * load.planted_us

    def text_of_late(result: Any) -> str:
        until = perf_counter_ns() + nanoseconds
        while perf_counter_ns() < until:
            pass
        return text_of(result)

    return text_of_late


def elapsed(moments: list[int]) -> tuple[int, list[int]]:
    """From the moments around calls that follow each other: the whole time and that of each, in ns."""
    return moments[-1] - moments[0], [after - before for before, after in itertools.pairwise(moments)]


# ---------------------------------------------------------------------------------------- a driver


def hold_to_version(version: object) -> None:
    """Raise Void if another protocol version has been negotiated."""
    if version != VERSION:
        raise Void(f"expected version {VERSION}, got {version}")


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Drive a client of MCP before a server that echoes.")
    parser.add_argument("--window", type=int, default=1, help="calls at once")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--warm-up", type=float, default=0.2)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds after which the run is void")
    parser.add_argument("--planted", type=int, help="us that each call wastes: for the guard's own test")
    parser.add_argument("--client-cpu", type=int, help="the core of the client and of its server")
    parser.add_argument("--sync", action="store_true", help="without an event loop, where the client can")
    parser.add_argument("--http", metavar="TOKEN", help="over HTTP; the command has {port} for its port")
    parser.add_argument("--in-memory", metavar="FILE", help="serve the `app` of this file in this process")
    parser.add_argument("command", nargs="*", help="of the server, behind --")
    found = parser.parse_args(arguments)
    if bool(found.in_memory) == bool(found.command):
        parser.error("expected --in-memory FILE, or a command behind --")
    if found.window < 1 or (found.sync and found.window > 1):
        parser.error("--window: expected at least 1, with --sync no other")
    return found


def app_of(path: str) -> Any:
    """The server that a file makes."""
    specification = importlib.util.spec_from_file_location("served", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["served"] = module  # where annotations of its tools are looked up
    specification.loader.exec_module(module)
    return module.app


def chosen_port() -> int:
    """A port that nobody uses at the moment; and not one of those that the system may give to somebody else
    before the server has it."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Void("no port is free")


class OverHttp:
    """A server over HTTP that runs while this is entered. Raises Void."""

    def __init__(self, command: list[str]) -> None:
        self.port = chosen_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._command = [part.replace("{port}", str(self.port)) for part in command]

    def __enter__(self) -> OverHttp:
        self._server = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._server.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.01)
            else:
                return self
        self.__exit__()
        raise Void(f"the server did not listen within {START_SECONDS:g} s")

    def __exit__(self, *exception: object) -> None:
        self._server.terminate()
        self._server.wait()


Driver = Callable[[Load], Coroutine[Any, Any, "dict[str, Any]"]]


def run(coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run a driver in uvloop where it is installed, as all environments here have it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(coroutine)
    found: dict[str, Any] = uvloop.run(coroutine)
    return found


def main(driver: Driver, sync_driver: Callable[[Load], dict[str, Any]] | None = None) -> int:
    """Do what the command line asks for and print the report."""
    found = options_of(None)
    if found.client_cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {found.client_cpu})
    app = app_of(found.in_memory) if found.in_memory else None
    limit = threading.Timer(found.timeout, give_up, [found.timeout])
    limit.daemon = True
    limit.start()
    shape = (found.window, found.seconds, found.warm_up, found.sync, found.planted)
    try:
        if found.sync and sync_driver is None:
            raise Void("this client needs an event loop")
        with OverHttp(found.command) if found.http else nullcontext() as server:
            url = server.url if server else ""
            load = Load(found.command, app, *shape, url, found.http or "")
            report = sync_driver(load) if load.is_sync and sync_driver else run(driver(load))
    except BaseException as error:  # whatever a client raises, in groups too: there are no figures
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        report = {"void": f"{type(error).__name__}: {reason_of(error)}"[:500]}
    limit.cancel()
    print(json.dumps(report))
    return 1 if "void" in report else 0


def give_up(seconds: float) -> None:
    """End the process: an answer that never comes would be waited for by most clients."""
    print(json.dumps({"void": f"not done after {seconds:g} s"}), flush=True)
    os._exit(1)


def reason_of(error: BaseException) -> str:
    """The first of the exceptions in a group, at any depth."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return str(error) or type(error).__name__
