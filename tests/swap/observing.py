"""Runs one server over stdio in a folder of its own and records what it describes, answers and costs.

What is recorded, and how, is left to `fastrpc.swap.observation`. This adds the surroundings: the
folder is made anew for each run at the same path, since paths are in answers; there is no network where the
system allows that (`unshare`), so that an answer depends on nothing outside; standard error goes into a log,
for the first error of a server that does not start; and the memory of the process is read while it runs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import statistics
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from swap.fixtures import make_folder
from swap.roster import Entry

from fastrpc.swap.observation import observe

START_SECONDS = 60.0
CALL_SECONDS = 20.0
TIMED_CALLS = 30
ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "",
    "NO_COLOR": "1",
    "DO_NOT_TRACK": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "FASTMCP_SHOW_SERVER_BANNER": "false",
    "PYTHONHASHSEED": "0",
}
"""What servers have in their environment beside their own: no colours, no looking for updates."""
UNKNOWN = {"tool": "no_such_tool", "arguments": {}}
SAMPLED_SECONDS = 0.1
LAST_LINE_LENGTH = 300
EXCEPTION = re.compile(r"[\w.]*(Error|Exception|NotOffered|Exit|Interrupt)\b.*:")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
BORDERS = "│╭╰─╮╯ |+"


def run_server(
    entry: Entry, command: list[str], env: dict[str, str], folder: str, log: str
) -> dict[str, Any]:
    """Return the observation of a server; its ``failure`` is the first error. ``call_ms``: the median time of
    the first call, which is made `TIMED_CALLS` times more; ``rss_mb``: the most memory that it had."""
    make_folder(folder)
    with open(log, "wb"):
        pass
    pid_file = f"{log}.pid"
    script = f'echo $$ > {shlex.quote(pid_file)}; exec "$@" 2>>{shlex.quote(log)}'
    requests = [*entry.requests(), UNKNOWN]
    timed = requests[:1] * TIMED_CALLS
    with memory(pid_file) as found:
        seen = observe(
            [*isolation(), "sh", "-c", script, "sh", *command],
            [*requests, *timed],
            env=env,
            cwd=folder,
            start_seconds=START_SECONDS,
            call_seconds=CALL_SECONDS,
        )
    if seen.get("failure"):
        is_started = "serverInfo" in seen
        reason = f"after the start: {seen['failure']}" if is_started else error_in(log) or seen["failure"]
        return {**seen, "failure": reason}
    answers = seen["answers"]
    seen["answers"] = answers[: len(requests)]
    seconds = seen.pop("seconds")
    seen["start_ms"], seen["list_ms"] = seconds["start"] * 1000, seconds["list"] * 1000
    seen["call_ms"] = statistics.median(each["seconds"] for each in answers[len(requests) :]) * 1000
    seen["rss_mb"] = max(found, default=0.0)
    return seen


@functools.cache
def isolation() -> tuple[str, ...]:
    """The words before a command that leave it only the loopback interface; none where that is forbidden."""
    words = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")
    if not shutil.which("unshare") or not shutil.which("ip"):
        return ()
    return () if subprocess.run([*words, "true"], capture_output=True).returncode else words


@contextlib.contextmanager
def memory(pid_file: str) -> Iterator[list[float]]:
    """Sample the peak memory, in MB, of the process that the file names; nothing where there is no /proc."""
    found: list[float] = []
    is_over = threading.Event()

    def sample() -> None:
        while not is_over.wait(SAMPLED_SECONDS):
            with contextlib.suppress(OSError):
                with open(pid_file, encoding="ascii") as file:
                    pid = file.read().strip()
                with open(f"/proc/{pid}/status", encoding="ascii") as file:
                    found.extend(int(kb) / 1024 for kb in re.findall(r"VmHWM:\s+(\d+) kB", file.read()))

    with contextlib.suppress(FileNotFoundError):
        os.unlink(pid_file)  # of an earlier run
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()


def error_in(log: str) -> str:
    """The line of a log that names the last exception, or its last line."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [COLOUR.sub("", line).strip().strip(BORDERS) for line in file]
    lines = [line for line in lines if line]
    named = [line for line in lines if EXCEPTION.match(line)]
    return (named or lines or [""])[-1][:LAST_LINE_LENGTH]
