"""Tasks of the shipped toolsets whose server is killed (kill -9): what ends with it, what another server goes
on with, and what that says of the rest."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone
from support.stdio import serve
from support.task_client import SESSION
from support.task_host import TaskHost
from support.waiting import eventually
from support.workflows import SERVER, called, served, workflow

from fastrpc.client import SyncClient

pytestmark = pytest.mark.long

TREE = (
    "(setsid sh -c 'echo $$ > grandchild; exec sleep 600' &); echo $$ > child; "
    "while [ ! -e go ]; do sleep 0.05; done"
)
HELD = """
from fastrpc.tools.knowledge import _extraction

extract_data = _extraction.extract_data


async def held(data, name):
    import asyncio

    note("extract")
    while os.path.exists("hold extract"):
        await asyncio.sleep(0.02)
    return await extract_data(data, name)


_extraction.extract_data = held
"""


def number_in(path: Path) -> int:
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def notes(folder: Path) -> list[str]:
    path = folder / "notes"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def kill(client: SyncClient) -> None:
    os.kill(called(client, "pid")["result"], signal.SIGKILL)


def test_nothing_of_a_command_outlives_its_server_and_the_task_fails(tmp_path: Path) -> None:
    def started() -> Any:
        variables = {"FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
        return serve(environment=variables, folder=str(tmp_path))

    with started() as server:
        id = TaskHost(server).begin("Bash", command=TREE, timeout=60_000)
        pids = [number_in(tmp_path / name) for name in ("child", "grandchild")]
        os.kill(server.pid, signal.SIGKILL)
        server.process.wait()
        for pid in pids:
            gone(pid)
    with started() as second:
        found = TaskHost(second).ended(id)
    assert found["status"] == "failed"
    assert "not idempotent" in found["error"]["message"]
    assert not (tmp_path / "go").exists()


def test_a_run_that_a_task_waits_for_goes_on_in_another_server_once(tmp_path: Path) -> None:
    pay = {"id": "pay", "type": "action.skill", "config": {"tool": "pay", "arguments": {"to": "Ur"}}}
    look = {"id": "look", "type": "action.skill", "config": {"tool": "look", "arguments": {"at": "Ur"}}}
    (tmp_path / "hold look").touch()
    with served(tmp_path, version=SESSION) as client:
        called(client, "workflow.create", workflow=workflow("w", pay, look, edges="pay>look"))
        task = client.call_tool("workflow.trigger", {"id": "w", "wait_seconds": 300}, task=True)
        eventually(lambda: "look Ur" in notes(tmp_path))
        kill(client)
    with served(tmp_path, version=SESSION) as second:
        again = second.task(task.id)
        again.refresh()  # which opens the tasks: the second server takes this one over
        assert again.status == "working"
        eventually(lambda: notes(tmp_path).count("look Ur") == 2)
        (tmp_path / "hold look").unlink()
        result = again.wait()
        assert not result.is_error, result.text
        runs = called(second, "workflow.runs")["runs"]
    assert [each["state"] for each in runs] == ["completed"]
    assert result.structured["id"] == runs[0]["id"]
    assert result.structured["state"] == "completed"
    assert notes(tmp_path) == ["pay Ur", "look Ur", "look Ur"]


def test_a_document_whose_server_was_killed_while_it_was_read_is_added_again(tmp_path: Path) -> None:
    source = SERVER.replace("\nif __name__", HELD + "\nif __name__")
    document = {"name": "a.txt", "content": "Ask the harbourmaster."}
    (tmp_path / "hold extract").touch()
    with served(tmp_path, source=source, version=SESSION) as client:
        task = client.call_tool("document.add", document, task=True)
        eventually(lambda: notes(tmp_path) == ["extract"])
        kill(client)
    (tmp_path / "hold extract").unlink()
    with served(tmp_path, source=source, version=SESSION) as second:
        again = second.task(task.id)
        again.refresh()
        result = again.wait()
        assert not result.is_error, result.text
        listed = called(second, "document.list")["documents"]
        found = called(second, "document.query", query="harbourmaster")
    assert [each["state"] for each in listed] == ["ready"]
    assert "harbourmaster" in json.dumps(found)
    assert notes(tmp_path) == ["extract", "extract"]


def test_a_document_of_a_task_that_was_cancelled_after_its_server_was_killed_can_be_added_again(
    tmp_path: Path,
) -> None:
    source = SERVER.replace("\nif __name__", HELD + "\nif __name__")
    document = {"name": "a.txt", "content": "Ask the harbourmaster."}
    (tmp_path / "hold extract").touch()
    with served(tmp_path, source=source, version=SESSION) as client:
        task = client.call_tool("document.add", document, task=True)
        eventually(lambda: notes(tmp_path) == ["extract"])
        kill(client)
    with served(tmp_path, source=source, version=SESSION) as second:
        second.task(task.id).cancel()

        def state() -> str:
            (found,) = called(second, "document.list")["documents"]
            return str(found["state"])

        (tmp_path / "hold extract").unlink()
        eventually(lambda: state() == "failed")
        assert called(second, "document.add", **document)["document"]["state"] == "ready"
