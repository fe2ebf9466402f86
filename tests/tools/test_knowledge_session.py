"""A session with the toolset as clients of Sophon have it, message for message, behind a guard with its
policy: the names, forms and error codes that are published; and the whole of the guard over each transport,
by the policy of examples/, with the set-up that the documents show."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, records, variables
from support.http_server import FASTRPC, HttpProcess
from support.knowledge_published import MEMORY_SEARCH
from support.ports import free_port
from support.waiting import SECONDS, eventually

from fastrpc import Client, RemoteError

pytestmark = pytest.mark.long

TOOLSET = "fastrpc.tools.knowledge"
POLICY = {
    "enabled": True,
    "transports": {
        "stdio": {"enabled": True},
        "sse": {"enabled": True, "path": "/mcp/sse"},
        "streamableHttp": {"enabled": True, "path": "/mcp/http"},
    },
    "expose": {
        "tools": ["memory.search", "memory.write", "memory.forget"],
        "resources": ["sophon://memory/*"],
    },
}
WRITE = {"name": "memory.write", "arguments": {"content": "The project deadline is in May."}}
CALL = {"name": "memory.search", "arguments": {"query": "project deadline", "limit": 5}}
SESSION: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", WRITE),
    ("tools/call", CALL),
    ("resources/list", {}),
    ("resources/read", {"uri": "sophon://memory/"}),
    ("tools/call", {"name": "memory.search", "arguments": {}}),
    ("tools/call", {"name": "memory.forget_all", "arguments": {"scope": "all", "confirm": "x"}}),
    ("nothing/such", {}),
]


def begin() -> dict[str, Any]:
    params = {
        "protocolVersion": "2024-11-05",
        "clientInfo": {"name": "claude-desktop", "version": "0.7.2"},
        "capabilities": {},
    }
    return {"jsonrpc": "2.0", "id": "0", "method": "initialize", "params": params}


def messages() -> list[dict[str, Any]]:
    return [
        {"jsonrpc": "2.0", "id": f"{at}", "method": method, "params": params}
        for at, (method, params) in enumerate(SESSION, 1)
    ]


def check(began: dict[str, Any], answers: list[dict[str, Any]]) -> None:
    """Hold the answers of a session against what is published."""
    capabilities = began["result"]["capabilities"]
    assert began["result"]["protocolVersion"] == "2024-11-05"
    assert capabilities["tools"] == {"listChanged": True}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
    assert capabilities["prompts"] == {"listChanged": True}
    tools, written, found, listed, memory, lacking, refused, unknown = answers
    assert {tool["name"] for tool in tools["result"]["tools"]} == set(POLICY["expose"]["tools"])  # type: ignore[index]
    assert written["result"]["content"][0]["text"].startswith("Remembered as mem_")
    assert found["result"]["content"][0]["text"].startswith("Found 1 entry:\n")
    assert found["result"]["isError"] is False
    entry = next(each for each in listed["result"]["resources"] if "/mem_" in each["uri"])
    assert entry["uri"].startswith("sophon://memory/mem_")
    assert entry["name"] == "The project deadline is in May."
    assert entry["mimeType"] == "text/plain"
    assert entry["uri"] in memory["result"]["contents"][0]["text"]
    assert "query" in json.dumps(lacking)
    assert refused["error"]["code"] == -32000
    assert unknown["error"]["code"] == -32601


def policy_in(folder: Path) -> str:
    path = folder / "mcp-server.json"
    path.write_text(json.dumps(POLICY))
    return str(path)


def test_a_session_over_stdio(tmp_path: Path) -> None:
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = [begin(), ready, *messages()]
    serve = ["serve", TOOLSET, "--scheme", "sophon", "--guard", policy_in(tmp_path), "--drain-seconds", "30"]
    with subprocess.Popen(
        [sys.executable, "-m", "fastrpc", *serve],
        env=variables(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for line in lines:  # one after another: calls may be answered in any order
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            while "id" in line:
                answer = json.loads(process.stdout.readline())
                if "id" in answer:  # else a notification
                    answers.append(answer)
                    break
        process.stdin.close()
        assert process.wait(SECONDS) == 0
    check(answers[0], answers[1:])
    assert any(each.get("tool") == "memory.search" for each in records(tmp_path))


def test_a_session_at_the_published_address_over_http(tmp_path: Path) -> None:
    token = json.loads(fastrpc(tmp_path, "token", "create", "--owner", "ada", "--json"))["token"]
    options = ("serve", TOOLSET, "--scheme", "sophon", "--http", "127.0.0.1:0", "--guard")
    with HttpProcess(*options, policy_in(tmp_path), environment=variables(tmp_path)) as server:
        url = f"http://127.0.0.1:{server.port}/mcp/http"
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

        def ask(message: dict[str, Any]) -> dict[str, Any]:
            request = urllib.request.Request(url, json.dumps(message).encode(), headers)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                if "Mcp-Session-Id" in answer.headers:
                    headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
                text = answer.read().decode()
            found = [line[6:] for line in text.splitlines() if line.startswith("data: ")] or [text]
            return dict(json.loads(found[-1] or "{}"))

        began = ask(begin())
        ask({"jsonrpc": "2.0", "method": "notifications/initialized"})
        check(began, [ask(message) for message in messages()])
        del headers["Authorization"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(messages()[0])
        assert refused.value.code == 401
        assert json.loads(refused.value.read())["error"]["code"] == -32600


def test_a_session_at_the_published_address_over_sse(tmp_path: Path) -> None:
    token = json.loads(fastrpc(tmp_path, "token", "create", "--owner", "ada", "--json"))["token"]
    options = ("serve", TOOLSET, "--scheme", "sophon", "--http", "127.0.0.1:0", "--guard")
    with HttpProcess(*options, policy_in(tmp_path), environment=variables(tmp_path)) as server:
        place = f"http://127.0.0.1:{server.port}/mcp/sse"
        with Client.sync(place, token=token, version="2024-11-05") as client:
            assert len(client.list_tools()) == 3
            client.call_tool("memory.write", WRITE["arguments"])
            assert client.call_tool("memory.search", CALL["arguments"]).text.startswith("Found 1 entry:\n")
            (entry, *_) = client.list_resources()
            assert client.read_resource(entry["uri"]).text == "The project deadline is in May."
            with pytest.raises(RemoteError) as refused:
                client.call_tool("memory.forget_all", {"scope": "all", "confirm": "x"})
            assert refused.value.code == -32000


# --- the whole of the guard, over each transport -----------------------------------------------------------

EXAMPLE = Path(__file__).parents[2] / "examples" / "knowledge-guard.toml"
DOCUMENT = Path(__file__).parents[2] / "docs" / "knowledge.md"
ALL = {"scope": "all", "confirm": "forget everything"}


def policy_of_example(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the policy of the examples, with parts of it changed, where a server finds it."""
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    place = folder / "guard.toml"
    (folder / "new.toml").write_text(text)
    os.replace(folder / "new.toml", place)
    return place


@contextmanager
def connected(folder: Path, transport: str, notified: Callable[[Any], None], *more: str) -> Iterator[Any]:
    """A client of a server with the policy of this folder, which comes with a token of ada's."""
    token = json.loads(fastrpc(folder, "token", "create", "--owner", "ada", "--json"))["token"]
    serve = ["serve", TOOLSET, "--scheme", "sophon", "--guard", str(folder / "guard.toml"), *more]
    options: dict[str, Any] = {"version": "2024-11-05", "on_notification": notified}
    if transport == "stdio":
        options["env"] = variables(folder, FASTRPC_TOKEN=token)
        with Client.sync([*FASTRPC, *serve], **options) as client:
            yield client
        return
    with HttpProcess(*serve, "--http", "127.0.0.1:0", environment=variables(folder)) as server:
        place = f"http://127.0.0.1:{server.port}/mcp/{transport}"
        with Client.sync(place, token=token, **options) as client:
            yield client
        assert server.stop() == 0


def decided(folder: Path, decision: str) -> threading.Thread:
    """Decide about the next call that waits, by the command."""

    def decide() -> None:
        def waiting() -> list[Any]:
            return list(json.loads(fastrpc(folder, "approvals", "list", "--json")))

        eventually(lambda: bool(waiting()))
        fastrpc(folder, "approvals", decision, waiting()[0]["id"], "--comment", "said so")

    thread = threading.Thread(target=decide, daemon=True)
    thread.start()
    return thread


def code_of(client: Any, tool: str, **arguments: Any) -> int:
    with pytest.raises(RemoteError) as refused:
        client.call_tool(tool, arguments)
    return int(refused.value.code)


def many(client: Any) -> None:
    for _ in range(100):
        client.call_tool("datetime.now")


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_each_published_code_comes_by_what_provokes_it(tmp_path: Path, transport: str) -> None:
    told: list[str] = []
    allowed, wait = '"workflow.*"]', "timeout_seconds = 300"
    with_budget = ("budget = [", 'tool_budgets = { "memory.traverse" = ["1 calls/day"] }\nbudget = [')
    policy_of_example(tmp_path, with_budget)
    with connected(tmp_path, transport, lambda each: told.append(each["method"])) as client:
        client.call_tool("memory.write", WRITE["arguments"])
        assert code_of(client, "agent.list") == -32000
        thread = decided(tmp_path, "reject")
        assert code_of(client, "memory.forget_all", **ALL) == -32001
        thread.join(SECONDS)
        thread = decided(tmp_path, "approve")
        forgot = client.call_tool("memory.forget_all", {**ALL, "scope": "user"})
        assert forgot.text == "Forgot 1 entry."
        thread.join(SECONDS)
        assert not client.call_tool("memory.traverse", {"entity": "May"}).is_error
        assert code_of(client, "memory.traverse", entity="May") == -32003

        del told[:]
        changed = (allowed, '"workflow.*", "agent.*"]'), (wait, "timeout_seconds = 1")
        policy_of_example(tmp_path, with_budget, *changed)
        for _ in range(300):
            if "notifications/tools/list_changed" in told:
                break
            client.wait(0.1)
        assert "notifications/tools/list_changed" in told
        assert not client.call_tool("agent.list").is_error
        assert code_of(client, "memory.forget_all", **{**ALL, "scope": "agent"}) == -32002
        with pytest.raises(RemoteError) as refused:
            many(client)
        assert refused.value.code == -32004
        assert refused.value.data["retry_after_seconds"] > 0
    lines = fastrpc(tmp_path, "audit", "search", "--json").splitlines()
    seen = [json.loads(line) for line in lines]
    refused_for = {each["why"] for each in seen if each["outcome"] == "refused"}
    assert refused_for >= {
        "not_allowed", "approval_rejected", "approval_timed_out", "budget", "rate_limit",
    }  # fmt: skip
    approvals = [each for each in seen if each["category"] == "approval"]
    assert {each["outcome"] for each in approvals} >= {"asked", "rejected", "approved", "used"}
    assert {each["actor"].partition("#")[0] for each in seen} == {"ada"}
    assert "verified:" in fastrpc(tmp_path, "audit", "verify")


WORKFLOW = {
    "id": "weekly", "name": "Weekly", "version": "1", "trigger": {"type": "manual"},
    "nodes": [{"id": "now", "type": "action.skill", "config": {"tool": "datetime.now", "arguments": {}}}],
    "edges": [],
}  # fmt: skip


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
def test_all_that_is_published_is_there_over_each_transport(tmp_path: Path, transport: str) -> None:
    nova = tmp_path / "agents" / "nova"
    nova.mkdir(parents=True)
    (nova / "SOUL.md").write_text("# Nova\n")
    (nova / "config.json").write_text('{"model": "m", "api_key": "sk-abcdefghijklmnopqrstuvwxyz0123456789"}')
    (tmp_path / "guard.toml").write_text(
        '[expose]\ntools = ["*"]\nresources = ["*"]\nprompts = ["*"]\n[approvals]\nfrom = "critical"\n'
    )
    told: list[Any] = []
    with connected(tmp_path, transport, told.append, "--agents", str(nova.parent)) as client:

        def read(place: str) -> dict[str, Any]:
            uri = f"sophon://{place}"
            (content,) = client.request("resources/read", {"uri": uri})["contents"]
            assert content["uri"] == uri
            return dict(content)

        def made(tool: str, arguments: dict[str, Any]) -> str:
            found = re.search(r"(?:mem|doc)_[a-z2-9]{12}", client.call_tool(tool, arguments).text)
            assert found
            return found[0]

        search = next(each for each in client.list_tools() if each["name"] == "memory.search")
        assert search["description"] == "Search user and agent memory by natural-language query."
        assert search["inputSchema"] == MEMORY_SEARCH
        memory = made("memory.write", {"content": "The deadline is in May."})
        report = {"name": "Q3-sales-report.md", "content": "# Q3 sales report\n\nSales rose by 7 %.\n"}
        document = made("document.add", report)
        client.call_tool("workflow.create", {"workflow": WORKFLOW})
        found = client.request("tools/call", {"name": "memory.search", "arguments": {"query": "deadline"}})
        assert found["isError"] is False
        assert found["content"][0]["text"].startswith("Found 1 entry:")

        listed = {each["uri"]: each for each in client.list_resources()}
        of_document = listed[f"sophon://documents/{document}"]
        assert of_document["name"] == "Q3-sales-report.md"
        assert re.fullmatch(r"Q3-sales-report.md — uploaded \d{4}-\d\d-\d\d", of_document["description"])
        assert listed[f"sophon://memory/{memory}"]["mimeType"] == "text/plain"
        text = read(f"documents/{document}")
        assert (text["mimeType"], "Sales rose by 7 %." in text["text"]) == ("text/plain", True)
        original = read(f"documents/{document}/original")
        assert base64.b64decode(original["blob"]).decode() == report["content"]
        assert document in read("documents/")["text"]
        assert read(f"memory/{memory}")["text"] == "The deadline is in May."
        assert memory in read("memory/")["text"]
        assert read("agents/nova/SOUL.md")["text"] == "# Nova\n"
        config = json.loads(read("agents/nova/config")["text"])
        assert config["model"] == "m"
        assert "sk-" not in config["api_key"]
        assert json.loads(read("workflows/weekly")["text"])["nodes"] == WORKFLOW["nodes"]

        prompts = {each["name"] for each in client.list_prompts()}
        assert prompts == {"summarize-document", "draft-email", "extract-action-items", "research-topic"}
        arguments = {"documentUri": of_document["uri"]}
        prompt = client.request("prompts/get", {"name": "summarize-document", "arguments": arguments})
        assert "Sales rose by 7 %." in json.dumps(prompt, ensure_ascii=False)

        client.request("resources/subscribe", {"uri": "sophon://memory/"})
        client.call_tool("memory.forget", {"id": memory})
        updated = {"uri": "sophon://memory/"}
        for _ in range(300):
            if any(each.get("params") == updated for each in told):
                break
            client.wait(0.1)
        assert any(each["method"] == "notifications/resources/updated" for each in told)
        client.request("resources/unsubscribe", {"uri": "sophon://memory/"})


def documented() -> list[str]:
    """Return what docs/knowledge.md says to type to have the toolset behind a guard."""
    section = DOCUMENT.read_text().partition("## With a guard")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```console\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return re.split(r"^\$ ", "".join(blocks), flags=re.MULTILINE)[1:]


def test_what_the_documents_say_to_type_serves_a_memory_behind_a_guard(tmp_path: Path) -> None:
    install, *lines = documented()
    assert install.startswith("pip install")
    at = next(at for at, line in enumerate(lines) if line.startswith("fastrpc serve"))
    port = free_port()
    command = f'fastrpc() {{ "{sys.executable}" -m fastrpc "$@"; }}\n'

    def run(some: list[str]) -> str:
        text = command + "".join(some).replace("127.0.0.1:8080", f"127.0.0.1:{port}")
        done = subprocess.run(
            ["sh", "-ec", text], cwd=tmp_path, env=variables(tmp_path), capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(lines[:at])
    serve = shlex.split(lines[at].replace(":8080", f":{port}"))[1:]
    with HttpProcess(*serve, folder=tmp_path, environment=variables(tmp_path)):
        said = run(lines[at + 1 :])
    assert "Remembered as mem_" in said
    assert "Found 1 entry:" in said
    assert "memory.search" in said


def test_the_policy_of_the_examples_asks_before_what_cannot_be_undone(tmp_path: Path) -> None:
    found = json.loads(fastrpc(tmp_path, "guard", "check", str(EXAMPLE), TOOLSET, "--json"))
    unasked = {each["tool"]: each["risk"] for each in found["tools"] if each["default"].startswith("allowed")}
    assert {"high", "critical"}.isdisjoint(unasked.values())
    assert {"memory.search", "memory.write", "document.add", "workflow.trigger"} <= unasked.keys()
    reader = {each["tool"]: each["risk"] for each in found["tools"] if each["reader"] != "hidden"}
    assert set(reader.values()) == {"none", "low"}


def test_the_policy_of_the_examples_lets_no_caller_name_a_file_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("# Secret\n")
    policy_of_example(tmp_path)
    options = ["--documents", str(tmp_path), "--guard", str(tmp_path / "guard.toml")]
    token = json.loads(fastrpc(tmp_path, "token", "create", "--owner", "ada", "--json"))["token"]
    environment = variables(tmp_path, FASTRPC_TOKEN=token)
    legacy = Client.sync([*FASTRPC, "serve", TOOLSET, *options], env=environment, version="2024-11-05")
    with legacy as client:
        for path in ("secret.md", str(tmp_path / "secret.md"), "./secret.md"):
            assert code_of(client, "document.add", path=path) == -32000
        assert not client.call_tool("document.add", {"name": "a.md", "content": "# Mine"}).is_error
