"""The knowledge toolset as it is served: over stdio, and HTTP behind a guard, where each owner has theirs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.knowledge_published import MEMORY_SEARCH

from fastrpc import Client, RemoteError

TOOLSET = "fastrpc.tools.knowledge"
SERVE = [sys.executable, "-m", "fastrpc", "serve", TOOLSET]
POLICY = """
[expose]
tools = ["memory.*"]
resources = ["knowledge://*"]

[approvals]
timeout_seconds = 0.5
"""


def test_memory_search_is_published_word_for_word(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        tools = {tool.name: tool for tool in client.list_tools()}
    found = tools["memory.search"]
    assert found.description == "Search user and agent memory by natural-language query."
    assert found.input_schema == MEMORY_SEARCH


def test_what_is_written_is_found_read_and_forgotten(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        written = client.call_tool("memory.write", {"content": "The deadline is in May.", "tags": ["Work"]})
        id, uri = written.structured["id"], written.structured["uri"]
        assert written.text == f"Remembered as {id}."
        client.call_tool("memory.write", {"content": "会议室在三楼", "category": "observation"})
    with Client.sync([*SERVE, "--scheme", "sophon"], env=variables(tmp_path)) as client:
        found = client.call_tool("memory.search", {"query": "when are the deadlines?", "limit": 5})
        assert found.text.startswith(f"Found 1 entry:\n{id} [fact, ")
        assert found.structured["entries"][0]["tags"] == ["work"]
        assert client.call_tool("memory.search", {"query": "will of it"}).text == "Found 0 entries."
        listed = client.list_resources()
        assert [each["name"] for each in listed] == ["会议室在三楼", "The deadline is in May."]
        assert listed[1]["uri"] == f"sophon://memory/{id}" == uri.replace("knowledge:", "sophon:")
        assert client.read_resource(listed[1]["uri"]).text == "The deadline is in May."
        assert id in client.read_resource("sophon://memory/").text
        assert client.call_tool("memory.forget", {"id": id}).text == f"Forgot {id}."
        with pytest.raises(RemoteError):
            client.read_resource(listed[1]["uri"])
        done = client.call_tool("memory.forget_all", {"scope": "all", "confirm": "forget everything"})
        assert done.structured == {"forgotten": 1}


def test_where_nothing_has_a_word_the_nearest_is_searched_and_the_answer_says_so(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        client.call_tool("memory.write", {"content": "The deadline is in May."})
        client.call_tool("document.add", {"name": "a.txt", "content": "Ask the harbourmaster."})
        found = client.call_tool("memory.search", {"query": "what is the deadlne"})
        assert found.text.startswith("Found 1 entry:\n")
        assert found.text.endswith("\n[No entry has deadlne; nearest: deadline.]")
        assert found.structured["count"] == 1
        for text in ("harbour", "harbuormaster"):
            found = client.call_tool("document.query", {"query": text})
            assert found.text.endswith(f"\n[No passage has {text}; nearest: harbourmaster.]")
        for text in ("dead", "eadlines", "deadlne -may", "deadlne tag:work", '"deadlne"'):
            assert client.call_tool("memory.search", {"query": text}).text == "Found 0 entries."


def test_entries_and_documents_are_one_list_newest_first_in_pages_that_stay_right(tmp_path: Path) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:

        def remember(number: int) -> str:
            return str(client.call_tool("memory.write", {"content": f"Note {number}."}).structured["uri"])

        def add(number: int) -> str:
            document = {"name": f"{number}.txt", "content": f"Text {number}."}
            id = client.call_tool("document.add", document).structured["document"]["id"]
            return f"knowledge://documents/{id}"

        made = [add(number) if number % 5 == 0 else remember(number) for number in range(130)]
        first = client.request("resources/list", {})
        assert [each["uri"] for each in first["resources"]] == made[:29:-1]
        remember(130)
        add(131)
        client.call_tool("memory.forget", {"id": made[21].rpartition("/")[2]})
        client.call_tool("document.delete", {"id": made[30].rpartition("/")[2]})
        second = client.request("resources/list", {"cursor": first["nextCursor"]})
        assert [each["uri"] for each in second["resources"]] == [*made[29:21:-1], *made[20::-1]]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("memory.write", {"content": " "}, "content: expected what to remember, got an empty text."),
        ("memory.write", {"content": "é" * 8193}, "content: expected at most 16,384 bytes, got 16,386."),
        (
            "memory.write",
            {"content": "a", "tags": ["x" * 65]},
            "tags[0]: expected a line of 1 to 64 characters",
        ),
        ("memory.write", {"content": "a", "tags": ["x"] * 33}, "tags: expected at most 32, got 33."),
        ("memory.write", {"content": "a\0"}, "content: expected a text, got a NUL in it."),
        ("memory.write", {"content": "a", "tags": ["\0"]}, "tags[0]: expected a text, got a NUL in it."),
        ("memory.read", {"id": "mem_\0"}, "id: there is no entry mem_"),
        ("memory.write", {"content": "a", "supersedes": "mem_x"}, "supersedes: there is no entry mem_x."),
        ("memory.write", {"content": "a", "category": "rumour"}, "category: "),
        ("memory.search", {"query": "a", "limit": 101}, "limit: "),
        ("memory.read", {"id": "mem_x"}, "id: there is no entry mem_x."),
        (
            "memory.forget_all",
            {"scope": "all", "confirm": "yes"},
            'confirm: expected "forget everything", got "yes".',
        ),
    ],
)
def test_bad_arguments_are_one_clear_sentence(
    tmp_path: Path, tool: str, arguments: object, message: str
) -> None:
    with Client.sync(SERVE, env=variables(tmp_path)) as client:
        result = client.call_tool(tool, arguments)
        assert result.is_error
        assert message in result.text
        assert client.call_tool("memory.search", {"query": "a"}).structured["count"] == 0


def test_behind_a_guard_each_owner_has_their_own_and_forgetting_all_is_asked_for(tmp_path: Path) -> None:
    policy = tmp_path / "guard.toml"
    policy.write_text(POLICY)
    tokens = {
        owner: json.loads(fastrpc(tmp_path, "token", "create", "--owner", owner, "--json"))["token"]
        for owner in ("ada", "bob")
    }
    options = ("serve", TOOLSET, "--http", "127.0.0.1:0", "--guard", str(policy))
    with HttpProcess(*options, environment=variables(tmp_path)) as server:
        clients = {owner: Client.sync(server.place, token=token) for owner, token in tokens.items()}
        with clients["ada"] as ada, clients["bob"] as bob:
            written = ada.call_tool("memory.write", {"content": "Ada's deadline is in May."})
            bob.call_tool("memory.write", {"content": "Bob's deadline is in June."})
            for client, own in ((ada, "May"), (bob, "June")):
                found = client.call_tool("memory.search", {"query": "deadline"})
                assert found.structured["count"] == 1
                assert own in found.text
                assert len(client.list_resources()) == 1
            id, none = written.structured["id"], "mem_aaaaaaaaaaaa"
            told = [bob.call_tool("memory.read", {"id": each}).text for each in (id, none)]
            assert told[0].replace(id, none) == told[1] == f"id: there is no entry {none}."
            asked = ada.call_tool("memory.forget_all", {"scope": "all", "confirm": "forget everything"})
            assert asked.is_error
            assert "approv" in asked.text
            assert ada.call_tool("memory.search", {"query": "deadline"}).structured["count"] == 1


def test_names_with_underscores_are_published_and_both_are_called_behind_a_guard_too(tmp_path: Path) -> None:
    policy = tmp_path / "guard.toml"
    policy.write_text(POLICY)
    for more in ([], ["--guard", str(policy)]):
        serve = [*SERVE, "--names", "underscore", *more]
        with Client.sync(serve, env=variables(tmp_path)) as client:
            names = {tool.name for tool in client.list_tools()}
            assert "memory_search" in names
            assert not any("." in name for name in names)
            for name in ("memory_search", "memory.search"):
                assert client.call_tool(name, {"query": "a"}).text == "Found 0 entries."
            if more:
                for name in ("datetime_now", "datetime.now"):
                    with pytest.raises(RemoteError, match="Unknown tool"):
                        client.call_tool(name)


def test_an_unknown_form_of_names_is_reported_in_one_sentence(tmp_path: Path) -> None:
    said = fastrpc(tmp_path, "serve", TOOLSET, "--names", "camel", code=2)
    assert said.strip() == "fastrpc: --names: expected dotted or underscore, got 'camel'"
