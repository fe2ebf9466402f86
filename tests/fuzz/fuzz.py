"""Fuzzes the compiled core with whole conversations, for a given time, and says how to repeat what it finds.

    make fuzz                                     an hour, under ASan and UBSan
    python tests/fuzz/sanitized.py tests/fuzz/fuzz.py --seconds 120
    python tests/fuzz/fuzz.py --seconds 20        on the normal build: what the twin sees, not the sanitizers
    python tests/fuzz/fuzz.py --replay FILE       one conversation again

`conversations.py` makes what is sent, `judges.py` holds the core to it. Worker processes, one a processor,
take every n-th conversation of a seed; this process does not load the core, notices when a worker fails,
dies or hangs, cuts the conversation short as long as it still fails, and writes it to a file. Exit status
0: nothing was found; 1: something was; 2: the fuzzer itself could not run.
"""

from __future__ import annotations

import argparse
import ast
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module

FOLDER = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(FOLDER))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]

from conversations import conversation  # noqa: E402

HANG_SECONDS = 60.0  # for one conversation, which takes a tenth of a second
START_SECONDS = 120.0
LOOK_SECONDS = 0.1
SHOWN = 2000  # of a message, in bytes
REPORT = 6000  # of what a worker says, in characters
PROGRESS = struct.Struct("<qq")
PROGRAM = [sys.executable, os.path.abspath(__file__)]


# --- a worker: loads the core -----------------------------------------------------------------------------


def work(judges: str, seed: str, first: int, step: int, seconds: float, progress: int) -> None:
    """Judge every `step`-th conversation; `progress` is a descriptor where the number of each is noted."""
    judge = import_module(judges).Judge()
    number = first
    os.pwrite(progress, PROGRESS.pack(number, 0), 0)
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until:
        judge.judge(conversation(seed, number), f"{seed}.{number}")
        number += step
        done += 1
        os.pwrite(progress, PROGRESS.pack(number, done), 0)


def replay(judges: str, path: str) -> None:
    """Judge the conversation that a file holds."""
    seed, messages = read_case(path)
    import_module(judges).Judge().judge(messages, seed)


# --- cases in files ---------------------------------------------------------------------------------------


def write_case(path: str, seed: str, messages: list[bytes]) -> None:
    """Write a conversation: its seed, and a message a line, as Python writes bytes."""
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{seed}\n" + "".join(f"{message!r}\n" for message in messages))


def read_case(path: str) -> tuple[str, list[bytes]]:
    with open(path, encoding="ascii") as file:
        seed, *lines = file.read().splitlines()
    return seed, [ast.literal_eval(line) for line in lines]


def shortened(messages: list[bytes], still: Callable[[list[bytes]], object], until: float) -> list[bytes]:
    """Leave messages out, large pieces first, and then bytes of them, as long as it still fails."""
    messages = _cut(messages, still, until)
    for at in range(len(messages)):
        messages = _shorter_message(messages, at, still, until)
    return messages


def _shorter_message(
    messages: list[bytes], at: int, still: Callable[[list[bytes]], object], until: float
) -> list[bytes]:
    def put(pieces: list[bytes]) -> list[bytes]:
        return [*messages[:at], b"".join(pieces), *messages[at + 1 :]]

    pieces = [bytes([byte]) for byte in messages[at]]
    return put(_cut(pieces, lambda fewer: still(put(fewer)), until))


def _cut(items: list[bytes], still: Callable[[list[bytes]], object], until: float) -> list[bytes]:
    size = (len(items) + 1) // 2
    while size:
        at = 0
        while at < len(items) and time.monotonic() < until:
            fewer = items[:at] + items[at + size :]
            if fewer and still(fewer):
                items = fewer
            else:
                at += size
        size //= 2
    return items


# --- the one who watches ----------------------------------------------------------------------------------


class Worker:
    """A process that judges conversations, watched from outside."""

    def __init__(self, options: list[str]) -> None:
        """Start it, with options of this program."""
        self.progress = tempfile.TemporaryFile()
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.number, self.done = -1, 0
        """The conversation that is being judged, -1 before the first; how many have been."""
        self.hangs = False
        self._since = time.monotonic()
        descriptor = self.progress.fileno()
        self.process = subprocess.Popen(
            [*PROGRAM, *options, f"--progress={descriptor}"], stderr=self.errors, pass_fds=[descriptor]
        )

    def works(self) -> bool:
        """Whether it still works; one that makes no progress is killed."""
        now = time.monotonic()
        found = os.pread(self.progress.fileno(), PROGRESS.size, 0)
        seen = PROGRESS.unpack(found) if len(found) == PROGRESS.size else (-1, 0)
        if seen != (self.number, self.done):
            (self.number, self.done), self._since = seen, now
        elif now - self._since > (START_SECONDS if self.number < 0 else HANG_SECONDS):
            self.hangs = True
            self.process.kill()
        return self.process.poll() is None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.works()

    @property
    def report(self) -> str:
        if self.hangs:
            return f"no end after {HANG_SECONDS:.0f} s"
        self.errors.seek(0)
        return self.errors.read() or f"ended with {self.process.returncode}"


class Fuzzer:
    """Watches workers, and looks into what one of them has found."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.seed: str = given.seed
        self.seconds: float = given.seconds
        self.jobs: int = given.jobs
        self.keep: str = given.keep
        self.shrink_seconds: float = given.shrink_seconds
        self.judges: str = given.judges

    def run(self) -> int:
        """Fuzz for a time; return the exit status."""
        began = time.monotonic()
        print(f"fuzzing {self.seconds:.0f} s with {self.jobs} processes, --seed={self.seed}", flush=True)
        options = [f"--seed={self.seed}", f"--seconds={self.seconds}", f"--judges={self.judges}"]
        workers = [Worker([*options, f"--worker={first},{self.jobs}"]) for first in range(self.jobs)]
        try:
            while all(worker.process.poll() in (None, 0) for worker in workers):
                if not [worker for worker in workers if worker.works()]:
                    break
                time.sleep(LOOK_SECONDS)
            failed = next((worker for worker in workers if worker.process.poll()), None)
        finally:
            for worker in workers:
                worker.end()
        done = sum(worker.done for worker in workers)
        print(f"{done} conversations in {time.monotonic() - began:.0f} s", flush=True)
        if failed is not None and failed.number >= 0:
            self.show(failed.number, failed.report)
            return 1
        if failed is not None or done == 0:
            print(f"a worker could not begin:\n{failed.report if failed else ''}", file=sys.stderr)
            return 2
        return 0

    def show(self, number: int, report: str) -> None:
        """Cut a conversation short, write it to a file and say how to repeat it."""
        print(report[-REPORT:])
        name = f"{self.seed}.{number}"
        messages = conversation(self.seed, number)
        os.makedirs(self.keep, exist_ok=True)
        path = os.path.join(self.keep, f"case-{name}.txt")
        write_case(path, name, messages)
        print(f"\nconversation {name} failed, {len(messages)} messages, in {path}", flush=True)
        if self.complaint(name, messages) is None:
            print("It passes by itself: what went before it matters. Repeat it with the same seed and jobs.")
            return
        until = time.monotonic() + self.shrink_seconds
        messages = shortened(messages, lambda fewer: self.complaint(name, fewer) is not None, until)
        write_case(path, name, messages)
        print(f"cut down to {len(messages)}:")
        for message in messages:
            print(f"  {message[:SHOWN]!r}")
        print(f"{(self.complaint(name, messages) or '')[-REPORT:]}\nagain: {self.again(path)}")

    def complaint(self, name: str, messages: list[bytes]) -> str | None:
        """Judge a conversation in a separate process; return what is wrong with it, None for nothing."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "case")
            write_case(path, name, messages)
            command = [*PROGRAM, f"--judges={self.judges}", f"--replay={path}"]
            try:
                ended = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", timeout=HANG_SECONDS
                )
            except subprocess.TimeoutExpired:
                return f"no end after {HANG_SECONDS:.0f} s"
        return None if ended.returncode == 0 else ended.stderr or f"ended with {ended.returncode}"

    def again(self, path: str) -> str:
        """The command that judges a case again, on the build that found it."""
        sanitized = "tests/fuzz/sanitized.py " if os.environ.get("FASTRPC_SANITIZED") else ""
        return f"python {sanitized}tests/fuzz/fuzz.py --replay {path}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seconds", type=float, default=120.0, help="how long (120)")
    options.add_argument(
        "--seed", default=str(time.time_ns() % 10**9), help="of the conversations (the time)"
    )
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (one a processor)")
    options.add_argument("--keep", default=os.path.join(REPOSITORY, ".cache", "fuzz"), help="where cases go")
    options.add_argument("--shrink-seconds", type=float, default=60.0, help="to cut a case short (60)")
    options.add_argument("--replay", metavar="FILE", help="judge the conversation in this file, and end")
    options.add_argument("--judges", default="judges", help=argparse.SUPPRESS)  # another module with a Judge
    options.add_argument("--worker", help=argparse.SUPPRESS)
    options.add_argument("--progress", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.replay:
        replay(given.judges, given.replay)
        return 0
    if given.worker:
        first, step = map(int, given.worker.split(","))
        work(given.judges, given.seed, first, step, given.seconds, given.progress)
        return 0
    return Fuzzer(given).run()


if __name__ == "__main__":
    sys.exit(main())
