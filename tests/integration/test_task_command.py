"""``fastrpc call`` with tasks: real processes, over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.child_processes import gone
from support.task_client import SESSION
from support.task_shop import TOKEN, Shop
from support.waiting import SECONDS, eventually

from fastrpc.protocol.versions import STATELESS


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    with ExitStack() as stack:
        yield Shop(tmp_path, "http", stack)


def begin(shop: Shop, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fastrpc", "call", shop.target, *words]
    command += ["--token-file", str(shop.folder / "token")]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def call(shop: Shop, *words: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error."""
    process = begin(shop, *words)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def test_a_task_is_begun_without_waiting_and_waited_for_later(shop: Shop) -> None:
    code, out, err = call(shop, "build", f"go={shop.go}", "--no-wait")
    assert (code, out) == (0, "")
    id = err.removeprefix("task ").strip()
    eventually(lambda: shop.runs)
    shop.let_go()
    assert call(shop, "--task-id", id) == (0, "built ship\n", "")


def test_a_task_is_waited_for_and_its_id_is_printed(shop: Shop) -> None:
    process = begin(shop, "build", f"go={shop.go}", "--task")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("task ")
    shop.let_go()
    assert process.communicate(timeout=SECONDS)[0] == "built ship\n"
    assert process.returncode == 0
    assert call(shop, "price", "fails=true", "--task")[:2] == (1, "sold out\n")
    assert call(shop, "plain", "--task") == (0, "plain\n", "")  # answered at once


@pytest.mark.parametrize("version", [SESSION, STATELESS])
def test_a_tool_that_requires_a_task_is_called_as_one_unasked(shop: Shop, version: str) -> None:
    code, out, err = call(shop, "price", "--protocol", version)
    assert (code, out, err[:5]) == (0, "7\n", "task ")
    assert call(shop, "price", "fails=true", "--protocol", version)[:2] == (1, "sold out\n")


def test_ctrl_c_cancels_the_task_and_its_processes(shop: Shop) -> None:
    path = shop.folder / "pid"
    process = begin(shop, "child", f"pid_file={path}", "--task")
    eventually(path.exists)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("task ")
    os.kill(process.pid, signal.SIGINT)
    gone(int(path.read_text()))
    process.communicate(timeout=SECONDS)
    assert process.returncode != 0


@pytest.mark.parametrize(
    "words",
    [
        ("plain", "--task-id", "x"),
        ("--task-id", "x", "--task"),
        ("--task-id", "x", "--prompt", "y"),
        ("--prompt", "y", "--task"),
    ],
)
def test_options_that_exclude_each_other_are_a_usage_error(shop: Shop, words: tuple[str, ...]) -> None:
    code, out, err = call(shop, *words)
    assert (code, out) == (2, "")
    assert err.startswith("fastrpc: ")
