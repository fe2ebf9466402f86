"""Processes: `true` run to its end through `fastrpc.processes`, beside the standard library's two ways."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from fastrpc import processes

pytestmark = pytest.mark.benchmark(group="spawn", max_time=0.5, min_rounds=20)

TRUE = shutil.which("true") or "true"


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.run_until_complete(processes.close())
    made.close()


def test_running_true(benchmark, loop: asyncio.AbstractEventLoop) -> None:
    async def run() -> int | None:
        return (await processes.run([TRUE])).exit_code

    assert benchmark(lambda: loop.run_until_complete(run())) == 0


def test_true_with_posix_spawn(benchmark) -> None:
    def run() -> int:
        return os.waitpid(os.posix_spawn(TRUE, [TRUE], os.environ), 0)[1]

    assert benchmark(run) == 0


def test_true_with_asyncio(benchmark, loop: asyncio.AbstractEventLoop) -> None:
    async def run() -> int:
        process = await asyncio.create_subprocess_exec(TRUE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        await process.communicate()
        return process.returncode or 0

    assert benchmark(lambda: loop.run_until_complete(run())) == 0
