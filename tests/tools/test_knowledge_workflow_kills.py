"""Servers that are killed (kill -9) at every step of a run: whatever had an effect has it once, what is not
known is said, and the run comes to its end in another server."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually
from support.workflows import SERVER, called, ended, served, workflow

from fastrpc import ClientError
from fastrpc.client import SyncClient

pytestmark = pytest.mark.long

pytest_plugins = ["support.postgres"]
DYING = """
import os
from fastrpc.tools.knowledge._workflows import stepping

record = stepping.Steps.record


def dying(self, name):
    recorded = record(self, name)

    async def at_its_place(function):
        if os.environ["DIE_AT"] == f"before {name}":
            os.kill(os.getpid(), 9)

        async def done():
            value = await function()
            if os.environ["DIE_AT"] == f"in {name}":  # it is done, and not recorded
                os.kill(os.getpid(), 9)
            return value

        value = await recorded(done)
        if os.environ["DIE_AT"] == f"after {name}":
            os.kill(os.getpid(), 9)
        return value

    return at_its_place


stepping.Steps.record = dying
"""
CODE = {"id": "code", "type": "action.execute_code", "config": {"code": "output = input + 1", "input": 1}}
IF = {"id": "if", "type": "logic.if_else", "config": {"condition": "$node.code.output.output == 2"}}
SWITCH = {"id": "switch", "type": "logic.switch", "config": {"value": "{{ $node.code.output.output }}"}}
WAIT = {"id": "wait", "type": "logic.wait", "config": {"seconds": 0.2}}
LOOP = {"id": "loop", "type": "logic.loop", "config": {"times": 2, "body": ["pay"]}}
PAY = {"id": "pay", "type": "action.skill", "config": {"tool": "pay", "arguments": {"to": "n{{ $index }}"}}}
BOTH = {"id": "both", "type": "logic.parallel", "config": {"body": ["look"]}}
LOOK = {"id": "look", "type": "action.skill", "config": {"tool": "look", "arguments": {"at": "Ur"}}}
LAST = {"id": "last", "type": "data.transform", "config": {"template": "{{ $node.look.output.items[1] }}"}}
FOUND = workflow(
    "w", CODE, IF, SWITCH, WAIT, LOOP, PAY, BOTH, LOOK, LAST,
    edges="code>if if>switch:true switch>wait wait>loop loop>both both>last",
)  # fmt: skip
PLACES = (
    ("in code:begin", "in code:end", "in if:end", "in switch:end", "in wait:begin"),
    ("in wait:end", "in loop:begin", "in loop[0].pay:begin", "in loop[1].pay:begin", "in loop:end"),
    (
        "before loop[0].pay:begin",
        "before loop[1].pay:begin",
        "in both.look:begin",
        "in both.look:end",
        "in last:end",
    ),
)
"""Each step's records, when what they record is done and not recorded. Not the calls that write."""


def dies(folder: Path, place: str, **more: str) -> None:
    """Have a server die at a place of the run, which the first one begins."""
    source = SERVER.replace("\nif __name__", DYING + "\nif __name__")
    more = {"DIE_AT": place, "FASTRPC_KNOWLEDGE_EXECUTE_CODE": "1", **more}
    is_begun = (folder / "server.py").exists()
    with served(folder, source=source, **more) as client, contextlib.suppress(ClientError):
        if not is_begun:
            called(client, "workflow.create", workflow=FOUND)
            called(client, "workflow.trigger", id="w")  # which it may not live to answer
        eventually(lambda: the_run(client)["state"] == "failed")
        raise AssertionError(f"it did not die {place}")


def the_run(client: SyncClient) -> Any:
    (found,) = called(client, "workflow.runs")["runs"]
    return found


@pytest.mark.parametrize("places", PLACES, ids=["first", "second", "third"])
def test_a_run_ends_well_though_its_server_dies_at_every_step(
    tmp_path: Path, database_url: str, places: tuple[str, ...]
) -> None:
    more = {"FASTRPC_KNOWLEDGE_DATABASE": database_url}
    for place in places:
        dies(tmp_path, place, **more)
    with served(tmp_path, DIE_AT="", FASTRPC_KNOWLEDGE_EXECUTE_CODE="1", **more) as client:
        found = ended(client, the_run(client)["id"])
    assert found["state"] == "completed", found
    assert found["output"] == "UR"
    notes = (tmp_path / "notes").read_text().split("\n")
    assert [each for each in notes if each.startswith("pay")] == ["pay n0", "pay n1"]


@pytest.mark.parametrize(("when", "calls"), [("before", 1), ("in", 2)])
def test_a_step_that_wrote_or_was_about_to_when_its_server_died_is_named_and_not_repeated(
    tmp_path: Path, database_url: str, when: str, calls: int
) -> None:
    more = {"FASTRPC_KNOWLEDGE_DATABASE": database_url}
    dies(tmp_path, f"{when} loop[1].pay:end", **more)
    with served(tmp_path, DIE_AT="", FASTRPC_KNOWLEDGE_EXECUTE_CODE="1", **more) as client:
        found = ended(client, the_run(client)["id"])
    assert found["error"].startswith("loop[1].pay: whether pay was done is not known"), found
    assert (tmp_path / "notes").read_text() == "pay n0\npay n1\n"[: 7 * calls]
