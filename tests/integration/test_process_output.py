"""What happens to a program's output: bounds, exactness, files, a full disk (scorecard D4)."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.child_processes import bash, on_asyncio, runner

from fastrpc import processes
from fastrpc.processes import output as process_output

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    return runner(request.param)


class Lag:
    """Measures how late the loop is, every 5 ms."""

    async def __aenter__(self) -> Lag:
        self.late: list[float] = []
        self.task = asyncio.ensure_future(self.watch())
        return self

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            self.late.append(time.monotonic() - began - 0.005)

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()

    @property
    def p99(self) -> float:
        return sorted(self.late)[int(len(self.late) * 0.99)]


def resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def kept_in(tmp_path: Any, limit: int = processes.FILE_LIMIT) -> Callable[[], processes.OutputFile]:
    def open_file() -> processes.OutputFile:
        path = str(tmp_path / "output.txt")
        return processes.OutputFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), path, limit)

    return open_file


@pytest.mark.alone
@pytest.mark.parametrize(
    ("command", "options"),
    [("yes", {"timeout_ms": 3000}), ("echo first; head -c 300000000 /dev/zero; echo last", {})],
)
def test_a_flood_is_bounded_in_memory_and_does_not_hold_up_the_loop(
    run: Any, tmp_path: Any, command: str, options: Any
) -> None:
    """Every tool: memory is bounded while output is read, not afterwards."""
    limit = 1024 * 1024
    highest = 0

    def watch(_: bytes) -> None:
        nonlocal highest
        highest = max(highest, resident())

    async def flood() -> tuple[processes.Process, float, int]:
        await bash("true")
        output = processes.Output(limit, kept_in(tmp_path))
        base = resident()
        async with Lag() as lag:
            process = await bash(command, output=output, on_output=watch, **options)
        return process, lag.p99, base

    process, p99, base = run(flood())
    output = process.output
    assert output.total > 100_000_000
    assert highest < base + limit + 8 * 1024 * 1024
    assert p99 < 0.05
    assert len(output.head) + len(output.tail) <= limit
    if command != "yes":
        assert output.total == 300_000_000 + len("first\nlast\n")
        assert output.head.startswith(b"first\n\0\0")
        assert output.tail.endswith(b"\0\0last\n")
    assert os.path.getsize(output.file.path) <= processes.FILE_LIMIT
    output.file.close()


def test_head_tail_and_file_are_exact(tmp_path: Any) -> None:
    output = processes.Output(9000, kept_in(tmp_path))
    process = on_asyncio(processes.run(["seq", "100000"], output=output))
    whole = b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert process.output.total == len(whole)
    assert output.head == whole[:3000]
    assert output.tail == whole[-6000:]
    assert output.dropped_characters == len(whole) - 9000
    assert output.dropped_lines == whole[3000:-6000].count(b"\n")
    output.file.close()
    with open(output.file.path, "rb") as file:
        assert file.read() == whole
    assert output.read(50_000, 1000) == (50_000, whole[50_000:51_000])  # by path, after close


@pytest.mark.parametrize("size", [1000, 99_999, 100_000, 100_001, 149_999, 150_001, 1_000_003])
def test_a_file_over_its_limit_holds_the_head_and_the_latest_part_in_order(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(process_output, "SLACK", 0)  # memory must not help out
    whole = b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]
    output = processes.Output(900, kept_in(tmp_path, 100_000))
    for start in range(0, size, 777):
        output.feed(whole[start : start + 777])
    file = output.file
    assert file is not None

    def everything() -> bytes:
        read, offset = b"", 0
        while offset < size:
            begins, data = output.read(offset, 4096)
            read += b"<gap>" * (begins != offset) + data
            offset = begins + len(data)
        return read

    expected = whole if size <= 100_000 else whole[:50_000] + b"<gap>" + whole[-50_000:]
    assert everything() == expected
    assert os.path.getsize(file.path) <= 100_000
    if file.wrapped:
        for _ in file.straighten():
            pass
        with open(file.path, "rb") as kept:
            assert kept.read() == expected.replace(
                b"<gap>", b"\n[... %d bytes are missing here ...]\n" % (size - 100_000)
            )
        assert everything() == expected
    file.close()


def test_a_full_disk_costs_the_file_only(tmp_path: Any) -> None:
    def open_file() -> processes.OutputFile:
        return processes.OutputFile(os.open("/dev/full", os.O_RDWR), "/dev/full")

    output = processes.Output(3000, open_file)
    process = on_asyncio(processes.run(["seq", "10000"], output=output))
    output.file.close()
    assert process.exit_code == 0
    assert output.file_error is not None
    assert output.tail.endswith(b"\n10000\n")
