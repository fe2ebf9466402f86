"""A session with the toolset as clients of Sophon have it, message for message, behind a guard with its
policy: the names, forms and error codes that are published."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.guarded_folder import fastrpc, records, variables
from support.http_server import HttpProcess
from support.waiting import SECONDS

from fastrpc import Client, RemoteError

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
            if "id" in line:
                answers.append(json.loads(process.stdout.readline()))
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
