"""The tools of the shipped toolsets as tasks: real servers, their programs, and clients of both wires."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone
from support.stdio import serve
from support.task_client import SESSION
from support.waiting import SECONDS, eventually

from fastrpc import Client, TaskCancelled, TasksUnsupported
from fastrpc.protocol.versions import STATELESS

on_both_wires = pytest.mark.parametrize(
    "version", [SESSION, pytest.param(STATELESS, marks=pytest.mark.long)]
)  # in 2026-07-28 a call becomes a task after five seconds
TREE = (
    "echo begun; (setsid sh -c 'echo $$ > grandchild; exec sleep 600' &); "
    "echo $$ > child; while [ ! -e go ]; do sleep 0.05; done; echo ended"
)


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {"FASTRPC_STATE_DIR": str(folder / "state"), "HOME": str(folder), **more}


def client(folder: Path, version: str | None = None, *target: str, **more: str) -> Client:
    command = [sys.executable, "-m", "fastrpc", "serve", *target]
    return Client(command, version=version, cwd=str(folder), env=environment(folder, **more), stderr=False)


def run(conversation: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation(), SECONDS))


def number_in(path: Path) -> int:
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fastrpc", "call", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, **environment(folder)}, text=True,
        stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe,
    )  # fmt: skip


@on_both_wires
def test_a_command_is_a_task_that_shows_its_output_so_far(tmp_path: Path, version: str) -> None:
    shown: list[str] = []

    async def conversation() -> None:
        async with client(tmp_path, version) as connected:
            command = (
                "for i in 1 2 3; do echo line $i; sleep 0.3; done; while [ ! -e go ]; do sleep 0.1; done"
            )
            task = await connected.call_tool("Bash", {"command": command}, task=True)
            assert task.id

            def on_change(task: Any) -> None:
                shown.append(task.status_message or "")
                if "line 3" in shown[-1]:
                    (tmp_path / "go").touch()

            result = await task.wait(on_change=on_change)
            assert result.text == "line 1\nline 2\nline 3"
            assert result.meta["fastrpc/facts"]["exit_code"] == 0

    run(conversation)
    assert "line 1\nline 2\nline 3\n" in shown


def test_the_output_that_a_task_shows_is_the_end_of_a_long_one(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with client(tmp_path, SESSION) as connected:
            command = "seq 100000; echo last; while [ ! -e go ]; do sleep 0.1; done"
            task = await connected.call_tool("Bash", {"command": command}, task=True)
            while not (task.status_message or "").endswith("last\n"):
                await asyncio.sleep(0.05)
                await task.refresh()
            assert len(task.status_message) == 1_000
            assert task.status_message.startswith("…")
            (tmp_path / "go").touch()
            assert "characters in" in (await task.wait()).text

    run(conversation)


@on_both_wires
def test_a_cancelled_command_ends_with_its_grandchildren(tmp_path: Path, version: str) -> None:
    async def conversation() -> None:
        async with client(tmp_path, version) as connected:
            task = await connected.call_tool("Bash", {"command": TREE, "timeout": 60_000}, task=True)
            loop = asyncio.get_running_loop()
            pids = [
                await loop.run_in_executor(None, number_in, tmp_path / name)
                for name in ("child", "grandchild")
            ]
            await task.cancel()
            for pid in pids:
                await loop.run_in_executor(None, gone, pid)
            with pytest.raises(TaskCancelled):
                await task.wait()

    run(conversation)


@pytest.mark.parametrize("version", [SESSION, STATELESS])
def test_fastrpc_call_waits_for_a_command_as_a_task(tmp_path: Path, version: str) -> None:
    words = ("Bash", "command=echo hello; sleep 0.2; echo there", "--task", "--protocol", version)
    process = begun(tmp_path, *words)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "hello\nthere\n"), err
    assert err.startswith("task ") is (
        version == SESSION
    )  # in 2026-07-28 so short a call is answered at once


def test_ctrl_c_ends_the_command_of_fastrpc_call(tmp_path: Path) -> None:
    process = begun(tmp_path, "Bash", f"command={TREE}", "--task", "--protocol", SESSION)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("task ")
    pids = [number_in(tmp_path / name) for name in ("child", "grandchild")]
    os.kill(process.pid, signal.SIGINT)
    for pid in pids:
        gone(pid)
    process.communicate(timeout=SECONDS)
    assert process.returncode != 0


@pytest.mark.long
def test_a_task_outlasts_the_patience_that_would_hand_a_command_over(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with client(tmp_path, STATELESS, FASTRPC_PATIENCE_SECONDS="6") as connected:
            task = await connected.call_tool("Bash", {"command": "sleep 8; echo done"}, task=True)
            assert task.id
            result = await task.wait()
            assert result.text == "done"
            assert result.meta["fastrpc/facts"]["task_id"] is None

    run(conversation)


def test_background_commands_are_no_tasks(tmp_path: Path) -> None:
    async def conversation() -> None:
        async with client(tmp_path, SESSION) as connected:
            task = await connected.call_tool("BackgroundBash", {"command": "echo hello"}, task=True)
            assert not task.id
            assert "Started background task 1" in (await task.wait()).text

    run(conversation)


# --- what is listed and declared ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ((), {"Bash", "ReadDocs"}),
        (
            ("fastrpc.tools.contracts",),
            {f"tachyon_{verb}" for verb in ("compile", "test", "simulate", "deploy", "call")},
        ),
        (("fastrpc.tools.knowledge",), {"document.add", "workflow.trigger"}),
    ],
)
def test_the_long_tools_say_that_they_may_be_tasks(
    tmp_path: Path, target: tuple[str, ...], allowed: set[str]
) -> None:
    async def conversation() -> None:
        async with client(tmp_path, SESSION, *target) as connected:
            assert connected.server_capabilities["tasks"]["requests"] == {"tools": {"call": {}}}
            listed = {tool.name: tool.get("execution") for tool in await connected.list_tools()}
            assert {name for name, execution in listed.items() if execution is not None} == allowed
            assert all(listed[name] == {"taskSupport": "optional"} for name in allowed)
        async with client(tmp_path, STATELESS, *target) as connected:
            assert not any("execution" in tool for tool in await connected.list_tools())

    run(conversation)


@pytest.mark.parametrize("version", [SESSION, STATELESS])
def test_without_the_libraries_of_the_database_calls_are_no_tasks(tmp_path: Path, version: str) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "sitecustomize.py").write_text("import sys\nsys.modules['sqlalchemy'] = None\n")
    blocked = {"PYTHONPATH": str(tmp_path / "blocked")}

    async def conversation() -> None:
        async with client(tmp_path, version, **blocked) as connected:
            declared = json.dumps(connected.server_capabilities)
            assert "tasks" not in declared
            assert not any("execution" in tool for tool in await connected.list_tools())
            with pytest.raises(TasksUnsupported):
                await connected.call_tool("Bash", {"command": "echo hello"}, task=True)
            assert (await connected.call_tool("Bash", {"command": "echo hello"})).text == "hello"

    run(conversation)
    with serve(environment=environment(tmp_path, **blocked), folder=str(tmp_path)) as server:
        server.initialize()
        asked = {"name": "Bash", "arguments": {"command": "echo hello"}, "task": {"ttl": 60_000}}
        assert server.request("tools/call", asked)["result"]["content"][0]["text"] == "hello"
