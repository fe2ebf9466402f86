"""Subscriptions to each form of resource and to the list of all, where another server on the same store makes
the change, in both kinds of databases; and completion of ids."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import knowledge
from fastrpc.tools.knowledge import _resources
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess

from fastrpc import Client, RemoteError, Server
from fastrpc.subscriptions import subscribers
from fastrpc.testing import Client as InMemory

pytest_plugins = ["support.postgres"]

TOOLSET = "fastrpc.tools.knowledge"
LIST = "knowledge://memory/"
POLICY = """
[expose]
tools = ["memory.*"]
resources = ["knowledge://*"]
"""
UPDATED = "notifications/resources/updated"


def opened(folder: Path, url: str, **options: Any) -> Any:
    serve = [sys.executable, "-m", "fastrpc", "serve", TOOLSET, "--database", url]
    return Client.sync(serve, env=variables(folder), **options)


def noting(seen: list[str]) -> dict[str, Any]:
    def note(each: dict[str, Any]) -> None:
        if each["method"] == UPDATED:
            seen.append(each["params"]["uri"])

    return {"version": "2025-06-18", "on_notification": note}


def write(client: Any, content: str, **more: str) -> str:
    written = client.call_tool("memory.write", {"content": content, **more})
    return str(written.structured["uri"])


def forget(client: Any, uri: str) -> None:
    assert not client.call_tool("memory.forget", {"id": uri.rpartition("/")[2]}).is_error


def wait_for(client: Any, seen: list[str], number: int) -> None:
    for _ in range(300):
        if len(seen) >= number:
            return
        client.wait(0.1)
    raise AssertionError(f"{number} notifications were expected, {seen} came")


def test_a_subscriber_learns_what_another_server_changes(tmp_path: Path, database_url: str) -> None:
    seen: list[str] = []
    with opened(tmp_path, database_url) as other, opened(tmp_path, database_url, **noting(seen)) as client:
        first, second = write(other, "one"), write(other, "two")
        client.subscribe(first)
        client.subscribe(LIST)
        forget(other, second)
        wait_for(client, seen, 1)
        assert seen == [LIST]
        write(client, "three", supersedes=first.rpartition("/")[2])
        wait_for(client, seen, 3)
        assert sorted(seen[1:]) == [LIST, first]
        client.unsubscribe(LIST)
        forget(other, first)
        wait_for(client, seen, 4)
        assert seen[3:] == [first]


def test_a_stream_of_changes_is_reported_too(tmp_path: Path, database_url: str) -> None:
    other, client = opened(tmp_path, database_url), opened(tmp_path, database_url)
    with other, client, client.listen(uris=[LIST]) as changes:
        write(other, "one")
        assert changes.next(30.0)["params"]["uri"] == LIST


@contextmanager
def two_owners(folder: Path) -> Iterator[tuple[Any, Any]]:
    """A server, and a client of each of two owners."""
    policy = folder / "guard.toml"
    policy.write_text(POLICY)
    tokens = [
        json.loads(fastrpc(folder, "token", "create", "--owner", owner, "--json"))["token"]
        for owner in ("ada", "bob")
    ]
    options = ("serve", TOOLSET, "--http", "127.0.0.1:0", "--guard", str(policy))
    with HttpProcess(*options, environment=variables(folder)) as server:
        ada, bob = (Client.sync(server.place, token=token) for token in tokens)
        with ada, bob:
            yield ada, bob


def test_no_one_is_informed_of_what_is_anothers(tmp_path: Path) -> None:
    with two_owners(tmp_path) as (ada, bob):
        uri = write(ada, "Ada's")
        id = uri.rpartition("/")[2]
        found = [each.complete(f"{LIST}{{id}}", "id", "mem_").values for each in (ada, bob)]
        assert found == [[id], []]
        with bob.listen(uris=[uri, LIST]) as bobs, ada.listen(uris=[uri, LIST]) as adas:
            forget(ada, uri)
            told = {adas.next(30.0)["params"]["uri"] for _ in range(2)}
            assert told == {uri, LIST}
            write(bob, "Bob's")
            assert bobs.next(30.0)["params"]["uri"] == LIST
            assert len(bobs.changes) <= 1


def test_ids_are_completed(tmp_path: Path) -> None:
    with opened(tmp_path, f"sqlite:///{tmp_path}/other.sqlite3") as client:
        first, second = (write(client, text).rpartition("/")[2] for text in ("one", "two"))
        template = f"{LIST}{{id}}"
        assert client.complete(template, "id", "mem_").values == [second, first]
        assert client.complete(template, "id", first[:9]).values == [first]
        assert client.complete(template, "id", "%").values == []
        assert client.read_resource(f"{LIST}{first}").text == "one"
        for unknown in ("mem_aaaaaaaaaaaa", "x", "a/b"):
            with pytest.raises(RemoteError):
                client.read_resource(LIST + unknown)


def test_nothing_looks_for_changes_while_no_one_has_subscribed() -> None:
    app = Server("watched")
    looked: list[int] = []

    class Provider:
        def read(self, uri: str) -> str:
            return uri

        def watch(self, uri: str) -> None:
            app.watch(self.look, 0.01)

        def look(self) -> None:
            found = subscribers(app, "db://rows/")
            looked.append(len(found))
            for each in found:
                each.notify()
            if not found:
                app.unwatch(self.look)

    app.resources("db")(Provider())
    seen: list[dict[str, Any]] = []
    with InMemory.sync(app, version="2025-11-25", on_notification=seen.append) as client:
        client.read_resource("db://rows/1")
        client.wait(0.1)
        assert looked == []
        client.subscribe("DB://rows/%31")
        client.subscribe("db://other")
        client.wait(0.1)
        assert (seen[0]["method"], seen[0]["params"]) == (UPDATED, {"uri": "DB://rows/%31"})
        client.unsubscribe("db://rows/1")
        client.wait(0.1)
        assert looked[-1] == 0
        number = len(looked)
        client.wait(0.1)
        assert len(looked) == number


def test_a_completion_says_that_there_are_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(_resources, "MOST_IDS", 1)
    app = Server("one")
    app.include(knowledge)
    with InMemory.sync(app) as client:
        for text in ("one", "two"):
            write(client, text)
        found = client.complete(f"{LIST}{{id}}", "id", "m")
        assert (len(found.values), found.has_more) == (1, True)


def added(client: Any, text: str) -> str:
    done = client.call_tool("document.add", {"name": "a.md", "content": text})
    return str(done.structured["document"]["uri"])


def test_documents_their_files_and_their_list_are_watched(tmp_path: Path, database_url: str) -> None:
    seen: list[str] = []
    documents = "knowledge://documents/"
    other, client = opened(tmp_path, database_url), opened(tmp_path, database_url, **noting(seen))
    with other, client:
        first, second = added(other, "one"), added(other, "two")
        for uri in (documents, first, f"{first}/original", LIST):
            client.subscribe(uri)
        other.call_tool("document.delete", {"id": second.rpartition("/")[2]})
        wait_for(client, seen, 1)
        assert seen == [documents]
        added(other, "one")  # it has the later date
        wait_for(client, seen, 3)
        assert sorted(seen[1:]) == sorted([documents, first])
        client.unsubscribe(documents)
        other.call_tool("document.delete", {"id": first.rpartition("/")[2]})
        wait_for(client, seen, 5)
        assert sorted(seen[3:]) == sorted([first, f"{first}/original"])


def test_a_workflow_is_watched(tmp_path: Path, database_url: str) -> None:
    seen: list[str] = []
    node = {"id": "one", "type": "logic.wait", "config": {"seconds": 1}}
    workflow = {"name": "W", "version": "1", "trigger": {"type": "manual"}, "nodes": [node], "edges": []}
    other, client = opened(tmp_path, database_url), opened(tmp_path, database_url, **noting(seen))
    with other, client:

        def create(id: str) -> None:
            done = other.call_tool("workflow.create", {"workflow": {**workflow, "id": id}})
            assert not done.is_error, done.text

        create("mine")
        client.subscribe("knowledge://workflows/mine")
        create("another")
        create("mine")
        wait_for(client, seen, 1)
        other.call_tool("workflow.delete", {"id": "mine"})
        wait_for(client, seen, 2)
        assert seen == ["knowledge://workflows/mine"] * 2


def test_agents_are_watched(tmp_path: Path) -> None:
    seen: list[str] = []
    agent = tmp_path / "agents" / "anna"
    agent.mkdir(parents=True)
    (agent / "SOUL.md").write_text("# Anna\n")
    (agent / "config.json").write_text("{}")
    serve = [sys.executable, "-m", "fastrpc", "serve", TOOLSET, "--agents", str(agent.parent)]
    with Client.sync(serve, env=variables(tmp_path), **noting(seen)) as client:
        soul, config = (f"knowledge://agents/anna/{name}" for name in ("SOUL.md", "config"))
        client.subscribe(soul)
        client.subscribe(config)
        client.list_tools()
        (agent / "SOUL.md").write_text("# Anna, changed\n")
        wait_for(client, seen, 1)
        (agent / "config.json").unlink()
        wait_for(client, seen, 2)
        assert seen == [soul, config]


@pytest.mark.parametrize("is_first", [True, False], ids=["the first call of a server", "a later call"])
def test_a_list_of_resources_that_changes_is_reported(tmp_path: Path, is_first: bool) -> None:
    told: list[str] = []
    url = f"sqlite:///{tmp_path}/other.sqlite3"
    legacy = {"version": "2025-06-18", "on_notification": lambda each: told.append(each["method"])}
    with opened(tmp_path, url, **legacy) as client:
        if not is_first:
            client.list_resources()
        write(client, "one")
        wait_for(client, told, 1)
        with opened(tmp_path, url) as other:
            added(other, "two")
            wait_for(client, told, 2)
        client.wait(2.5)
        assert set(told) == {"notifications/resources/list_changed"}
        number = len(told)
        client.call_tool("memory.search", {"query": "one"})
        client.wait(2.5)
        assert len(told) == number


def test_many_changes_of_a_list_are_few_notifications(tmp_path: Path) -> None:
    told: list[str] = []
    legacy = {"version": "2025-11-25", "on_notification": lambda each: told.append(each["method"])}
    with opened(tmp_path, f"sqlite:///{tmp_path}/other.sqlite3", **legacy) as client:
        for number in range(60):
            write(client, f"entry {number}")
        wait_for(client, told, 1)
        client.wait(2.5)
        assert len(told) < 30


def test_no_one_is_informed_of_anothers_list(tmp_path: Path) -> None:
    with two_owners(tmp_path) as (ada, bob), bob.listen(resources=True) as bobs:
        with ada.listen(resources=True) as adas:
            write(ada, "Ada's")
            assert adas.next(30.0)["method"] == "notifications/resources/list_changed"
        assert not bobs.changes
        write(bob, "Bob's")
        assert bobs.next(30.0)["method"] == "notifications/resources/list_changed"
