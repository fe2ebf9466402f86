"""Workflows as they are served: created, triggered, run as whoever triggers them, resumed behind kill -9."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fastrpc.tools.knowledge._workflows import stepping
from support.guarded_folder import fastrpc, variables
from support.waiting import eventually
from support.workflows import called, ended, guarded, killed_in, served, token_of, workflow

from fastrpc import Client

pytest_plugins = ["support.postgres"]
LOOK = {
    "id": "look",
    "type": "action.skill",
    "config": {"tool": "look", "arguments": {"at": "{{ $trigger.at }}"}},
}
PAY = {"id": "pay", "type": "action.skill", "config": {"tool": "pay", "arguments": {"to": "{{ $vars.to }}"}}}
SHORT = {"id": "short", "type": "logic.if_else", "config": {"condition": "$trigger.at | length < 4"}}
WRITE = {
    "id": "write",
    "type": "action.skill",
    "config": {"tool": "memory.write", "arguments": {"content": "{{ $node.look.output.items[1] }} seen"}},
}
SKIP = {"id": "skip", "type": "data.transform", "config": {"template": {"was": "{{ $trigger.at }}"}}}


SEEN = workflow("seen", LOOK, SHORT, SKIP, WRITE, edges="look>short short>skip:true short>write:false")


def test_a_workflow_is_created_triggered_and_shown(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        assert called(client, "workflow.create", workflow=SEEN)["is_new"]
        assert not called(client, "workflow.create", workflow=SEEN)["is_new"]
        assert [each["id"] for each in called(client, "workflow.list")["workflows"]] == ["seen"]
        assert json.loads(client.read_resource("knowledge://workflows/seen").text) == SEEN
        assert called(client, "workflow.get", id="seen") == {"workflow": SEEN}
        run = called(client, "workflow.trigger", id="seen", input={"at": "Rome"}, wait_seconds=60)
        assert run["state"] == "completed"
        assert [(each["node"], each["state"]) for each in run["steps"]] == [
            ("look", "completed"), ("short", "completed"), ("write", "completed"),
        ]  # fmt: skip
        assert run["steps"][0]["output"] == {"items": ["Rome", "ROME"]}
        assert "ROME seen" in client.call_tool("memory.search", {"query": "rome"}).text
        run = called(client, "workflow.trigger", id="seen", input={"at": "Ur"}, wait_seconds=60)
        assert run["output"] == {"was": "Ur"}
        run = called(client, "workflow.trigger", id="seen", wait_seconds=60)
        assert run["state"] == "failed"
        assert run["error"].startswith("look: {{ $trigger.at }}: ")
        assert called(client, "workflow.runs", id="seen")["count"] == 3
        assert called(client, "workflow.runs", state="failed")["runs"][0]["id"] == run["id"]
        called(client, "workflow.delete", id="seen")
        assert client.call_tool("workflow.trigger", {"id": "seen"}).text == "id: there is no workflow seen."


def test_a_tool_that_is_not_there_is_refused_when_the_workflow_is_created(tmp_path: Path) -> None:
    node = {"id": "a", "type": "action.skill", "config": {"tool": "nothing"}}
    with served(tmp_path) as client:
        refused = client.call_tool("workflow.create", {"workflow": workflow("w", node)})
        assert refused.is_error
        assert refused.text == "node a: there is no tool nothing"


def test_a_loop_calls_for_each_item_and_has_a_list_of_outputs(tmp_path: Path) -> None:
    loop = {"id": "each", "type": "logic.loop", "config": {"items": "{{ $trigger.all }}", "body": ["look"]}}
    look = {**LOOK, "config": {"tool": "look", "arguments": {"at": "{{ $item }}{{ $index }}"}}}
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", loop, look, edges="each>look"))
        run = called(client, "workflow.trigger", id="w", input={"all": ["a", "b"]}, wait_seconds=60)
        assert run["output"] == {"items": [{"items": ["a0", "A0"]}, {"items": ["b1", "B1"]}]}
        assert [each["node"] for each in run["steps"]] == ["each", "each[0].look", "each[1].look"]
        run = called(client, "workflow.trigger", id="w", input={"all": "ab"}, wait_seconds=60)
        assert run["error"] == "each: items: expected a list of at most 1,000, got str"


def test_a_switch_takes_the_edge_of_its_value_or_default(tmp_path: Path) -> None:
    nodes = [{"id": "s", "type": "logic.switch", "config": {"value": "{{ $trigger.at }}"}}]
    nodes += [{"id": id, "type": "data.transform", "config": {"template": id}} for id in "ab"]
    found = workflow("w", *nodes)
    found["edges"] = [{"from": "s", "to": "a", "when": "1"}, {"from": "s", "to": "b", "when": "default"}]
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=found)
        for at, output in ((1, "a"), ("1", "a"), (2, "b"), ("", "b")):
            run = called(client, "workflow.trigger", id="w", input={"at": at}, wait_seconds=60)
            assert run["output"] == output


def test_tools_of_a_parallel_are_called_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "hold pay").touch()
    (tmp_path / "hold look").touch()
    both = {"id": "both", "type": "logic.parallel", "config": {"body": ["pay", "look"]}}
    last = {
        "id": "last",
        "type": "data.transform",
        "config": {"template": "{{ $node.look.output.items[1] }}"},
    }
    found = workflow("w", both, PAY, LOOK, last, edges="both>last", variables={"to": "Bob"})
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=found)
        run = called(client, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        eventually(
            lambda: (tmp_path / "notes").exists() and (tmp_path / "notes").read_text().count("\n") == 2
        )
        for name in ("pay", "look"):
            (tmp_path / f"hold {name}").unlink()
        assert ended(client, run)["output"] == "UR"
        run = called(client, "workflow.trigger", id="w", wait_seconds=60)
        assert run["error"].startswith("both.look: {{ $trigger.at }}")
        assert [(each["node"], each["state"]) for each in run["steps"]] == [
            ("both.pay", "completed"), ("both.look", "failed"),
        ]  # fmt: skip


def test_a_wait_ends_at_the_time_it_names(tmp_path: Path) -> None:
    wait = {"id": "wait", "type": "logic.wait", "config": {"until": "{{ $trigger.at }}"}}
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", wait))
        for at, state, error in (
            ("2026-01-01T00:00:00Z", "completed", ""),
            ("2026-01-01T00:00:00", "failed", "wait: until: expected a time with its zone"),
            ("soon", "failed", "wait: until: expected a time such as 2026-05-01T09:00:00Z, got 'soon'"),
            ("2999-01-01T00:00:00Z", "failed", "wait: until: expected a time within 30 days"),
        ):
            run = called(client, "workflow.trigger", id="w", input={"at": at}, wait_seconds=60)
            assert run["state"] == state
            assert run["error"].startswith(error)


def test_a_step_triggers_no_workflow_by_whatever_name_it_calls(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", SKIP))
    command = [sys.executable, "server.py"]
    options = {"cwd": str(tmp_path), "env": variables(tmp_path)}
    with Client.sync(command, client_info=stepping.CLIENT_INFO, **options) as client:
        refused = client.call_tool("workflow.trigger", {"id": "w"})
    assert refused.is_error
    assert refused.text == "a step of a workflow triggers no other"


def test_runs_are_kept_where_the_store_is(tmp_path: Path, database_url: str) -> None:
    """In SQLite and in PostgreSQL."""
    found = workflow("w", PAY, variables={"to": "Bob"})
    with served(tmp_path, FASTRPC_KNOWLEDGE_DATABASE=database_url) as client:
        called(client, "workflow.create", workflow=found)
        run = called(client, "workflow.trigger", id="w", wait_seconds=60)["id"]
    with served(tmp_path, FASTRPC_KNOWLEDGE_DATABASE=database_url) as client:
        assert called(client, "workflow.run", run_id=run)["output"] == {"paid": "Bob"}
        assert [each["id"] for each in called(client, "workflow.runs", state="completed")["runs"]] == [run]


def test_a_step_that_only_reads_is_repeated_after_kill_9_and_what_was_done_is_not(tmp_path: Path) -> None:
    (tmp_path / "hold look").touch()
    with served(tmp_path) as client:
        found = workflow("w", PAY, LOOK, edges="pay>look", variables={"to": "Bob"})
        called(client, "workflow.create", workflow=found)
        run = called(client, "workflow.trigger", id="w", input={"at": "Rome"})["id"]
        killed_in(client, tmp_path, "look Rome")
    (tmp_path / "hold look").unlink()
    with served(tmp_path) as client:
        found = ended(client, run)
    assert found["state"] == "completed", found
    assert found["output"] == {"items": ["Rome", "ROME"]}
    assert (tmp_path / "notes").read_text().split("\n") == ["pay Bob", "look Rome", "look Rome", ""]


def test_a_step_that_writes_is_not_repeated_after_kill_9_and_the_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "hold pay").touch()
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", PAY, variables={"to": "Bob"}))
        run = called(client, "workflow.trigger", id="w")["id"]
        killed_in(client, tmp_path, "pay")
    (tmp_path / "hold pay").unlink()
    with served(tmp_path) as client:
        found = ended(client, run)
    assert found["state"] == "failed"
    assert found["error"].startswith("pay: whether pay was done is not known")
    assert (tmp_path / "notes").read_text() == "pay Bob\n"


def test_a_run_whose_server_ends_in_the_middle_of_a_step_goes_on_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "hold look").touch()
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", LOOK))
        run = called(client, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        eventually(lambda: (tmp_path / "notes").exists())
    (tmp_path / "hold look").unlink()
    with served(tmp_path) as client:
        assert ended(client, run)["output"] == {"items": ["Ur", "UR"]}


def test_a_server_leaves_the_runs_alone_of_one_that_lives(tmp_path: Path) -> None:
    (tmp_path / "hold look").touch()
    with served(tmp_path) as first, served(tmp_path) as second:
        called(first, "workflow.create", workflow=workflow("w", LOOK))
        run = called(first, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        eventually(lambda: (tmp_path / "notes").exists())
        with served(tmp_path) as third:
            for client in (second, third):
                assert called(client, "workflow.run", run_id=run)["state"] == "running"
                called(client, "workflow.trigger", id="w", input={"at": "Rome"})
        (tmp_path / "hold look").unlink()
        assert ended(second, run)["output"] == {"items": ["Ur", "UR"]}
    assert (tmp_path / "notes").read_text().count("look Ur") == 1


def test_a_run_goes_on_in_another_server_that_is_there_when_its_own_is_killed(tmp_path: Path) -> None:
    (tmp_path / "hold look").touch()
    with served(tmp_path) as first, served(tmp_path) as second:
        called(first, "workflow.create", workflow=workflow("w", LOOK))
        run = called(first, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        killed_in(first, tmp_path, "look")
        (tmp_path / "hold look").unlink()
        assert ended(second, run)["output"] == {"items": ["Ur", "UR"]}


def test_a_broken_database_of_runs_is_an_error_until_it_is_mended(tmp_path: Path) -> None:
    broken = tmp_path / "state" / "knowledge-runs.sqlite3"
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", SKIP))
        broken.write_bytes(b"no database" * 1000)
        refused = client.call_tool("workflow.trigger", {"id": "w"})
        assert refused.text.startswith("the database of workflows: ")
        assert not list((tmp_path / "state" / "workflows").iterdir())
        broken.unlink()
        run = called(client, "workflow.trigger", id="w", input={"at": "Ur"}, wait_seconds=60)
        assert run["state"] == "completed"


def test_a_run_that_is_cancelled_in_the_middle_of_a_step_goes_no_further(tmp_path: Path) -> None:
    (tmp_path / "hold look").touch()
    with served(tmp_path) as client:
        found = workflow("w", LOOK, PAY, edges="look>pay", variables={"to": "Bob"})
        called(client, "workflow.create", workflow=found)
        run = called(client, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        eventually(lambda: (tmp_path / "notes").exists())
        assert called(client, "workflow.cancel", run_id=run)["cancelled"]
        shown = ended(client, run)
        assert (shown["state"], shown["steps"][0]["state"]) == ("cancelled", "cancelled")
        (tmp_path / "hold look").unlink()
        run = called(client, "workflow.trigger", id="w", input={"at": "Rome"}, wait_seconds=60)
        assert run["state"] == "completed"
    assert (tmp_path / "notes").read_text().split("\n") == ["look Ur", "look Rome", "pay Bob", ""]


def test_a_run_waits_over_the_end_of_a_server_and_can_be_cancelled(tmp_path: Path) -> None:
    wait = {"id": "wait", "type": "logic.wait", "config": {"seconds": 86_400}}
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=workflow("w", wait, SKIP, edges="wait>skip"))
        run = called(client, "workflow.trigger", id="w", input={"at": "Ur"})["id"]
        eventually(lambda: called(client, "workflow.run", run_id=run)["state"] == "waiting")
    with served(tmp_path) as client:
        eventually(lambda: called(client, "workflow.run", run_id=run)["state"] == "waiting")
        assert called(client, "workflow.cancel", run_id=run)["cancelled"]
        assert ended(client, run)["state"] == "cancelled"
        assert not called(client, "workflow.cancel", run_id=run)["cancelled"]


def test_nothing_of_dbos_is_imported_before_a_run(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, fastrpc.tools.knowledge as k\n"
        "from fastrpc import Server\n"
        "from fastrpc.testing import Client\n"
        "async def main():\n"
        "    app = Server('a'); app.include(k)\n"
        "    async with Client(app) as client: await client.call('workflow.list')\n"
        "asyncio.run(main()); print([each for each in ('dbos', 'jinja2') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


POLICY = """
[expose]
tools = ["workflow.*", "memory.write", "memory.search", "memory.forget_all"]

[risk]
"workflow.create" = "medium"
"workflow.delete" = "medium"

[approvals]
timeout_seconds = 0.5
"""
FORGET = {
    "id": "forget",
    "type": "action.skill",
    "config": {"tool": "memory.forget_all", "arguments": {"scope": "all", "confirm": "forget everything"}},
}
KEEP = {
    "id": "keep",
    "type": "action.skill",
    "config": {"tool": "memory.write", "arguments": {"content": "{{ $vars.text }}"}},
}
HIDDEN = {"id": "hidden", "type": "action.skill", "config": {"tool": "memory.read"}}


def test_behind_a_guard_steps_are_decided_as_calls_are_and_owners_are_apart(tmp_path: Path) -> None:
    tokens = {owner: token_of(tmp_path, owner)["token"] for owner in ("ada", "bob")}
    found = workflow("w", KEEP, FORGET, edges="keep>forget", variables={"text": "Ada was here."})
    with guarded(tmp_path, POLICY) as server:
        clients = {owner: Client.sync(server.place, token=token) for owner, token in tokens.items()}
        with clients["ada"] as ada, clients["bob"] as bob:
            refused = ada.call_tool("workflow.create", {"workflow": workflow("v", HIDDEN)})
            assert refused.text == "node hidden: there is no tool memory.read"
            called(ada, "workflow.create", workflow=found)
            run = called(ada, "workflow.trigger", id="w", wait_seconds=60)
            assert run["state"] == "failed"
            assert run["error"].startswith("forget: memory.forget_all was not approved")
            assert [each["state"] for each in run["steps"]] == ["completed", "failed"]
            assert called(ada, "memory.search", query="here")["count"] == 1
            assert called(bob, "memory.search", query="here")["count"] == 0
            for tool, name in (("run", "run_id"), ("cancel", "run_id"), ("trigger", "id"), ("delete", "id")):
                told = [
                    bob.call_tool(f"workflow.{tool}", {name: id}).text.replace(f" {id}.", " ….")
                    for id in ((run["id"], "w:none") if name == "run_id" else ("w", "none"))
                ]
                assert told[0] == told[1]
                assert "there is no" in told[0]
            assert called(bob, "workflow.runs")["count"] == called(bob, "workflow.list")["count"] == 0


def test_a_run_of_a_token_that_was_revoked_meanwhile_calls_nothing_more(tmp_path: Path) -> None:
    wait = {"id": "wait", "type": "logic.wait", "config": {"seconds": 5}}
    found = workflow("w", wait, KEEP, edges="wait>keep", variables={"text": "Ada was here."})
    revoked, other = token_of(tmp_path, "ada"), token_of(tmp_path, "ada")["token"]
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=revoked["token"]) as client:
        called(client, "workflow.create", workflow=found)
        run = called(client, "workflow.trigger", id="w")["id"]
    fastrpc(tmp_path, "token", "revoke", revoked["id"])
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=other) as client:
        found = ended(client, run)
        assert found["state"] == "failed"
        assert found["error"].startswith("keep: whoever started this run has no valid token any more")
        assert called(client, "memory.search", query="here")["count"] == 0
