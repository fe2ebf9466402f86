"""``fastrpc bridge URL`` as a process: a client that speaks over pipes uses a server over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from support.ports import free_port
from support.protocol import SESSION_VERSIONS, STATELESS
from support.remote_server import OFFICIAL, REPOSITORY, TOKEN, Remote
from support.stdio import Process, serve
from support.waiting import SECONDS, eventually

pytest.importorskip("httptools", reason="the bridge stands on it: pip install httptools")

VARIABLE = "FASTRPC_BRIDGE_TOKEN"
HELLO = {
    "protocolVersion": SESSION_VERSIONS[-1],
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def bridge(url: str, *options: str, token: str | None = TOKEN, **popen: Any) -> Any:
    command = [sys.executable, "-m", "fastrpc", "bridge", url, *options]
    environment = {"PYTHONPATH": REPOSITORY, VARIABLE: token}
    return serve(command=command, environment=environment, **popen)


def call(server: Process, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = server.request("tools/call", {"name": tool, "arguments": arguments})
    found: dict[str, Any] = answer["result"]
    return found


def text_of(result: dict[str, Any]) -> str:
    text: str = result["content"][0]["text"]
    return text


# --- the official client in front of it ---------------------------------------------------------------


@pytest.fixture
def connect(tmp_path: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Returns how to connect the official client to a bridge, in one version; what went over the wire is held
    against the schema at the end."""
    mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
    if not hasattr(mcp, "Client"):
        pytest.skip("this version of the official client has no high-level Client")
    from mcp.client import session

    trace = tmp_path / "trace"

    def connected(version: str, url: str, *arguments: str, **options: Any) -> Any:
        if version != STATELESS:
            monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", version)
        command = ["-m", "fastrpc", "bridge", url, "--trace", str(trace), *arguments]
        environment = {**os.environ, "PYTHONPATH": REPOSITORY, VARIABLE: TOKEN}
        parameters = mcp.StdioServerParameters(command=sys.executable, args=command, env=environment)
        return mcp.Client(
            parameters, mode="auto" if version == STATELESS else "legacy", cache=None, **options
        )

    yield connected
    assert TOKEN not in trace.read_text()
    before = recorder.lines
    recorder.replay(str(trace))
    assert recorder.lines > before


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, STATELESS])
@pytest.mark.parametrize("remote", ["latest", "2025-11-25", "sse"])
def test_the_official_client_uses_every_feature_in_every_version(
    shared_remote: Remote, connect: Callable[..., Any], remote: str, version: str
) -> None:
    options = ["--protocol", remote] if remote.startswith("20") else []
    url = shared_remote.url.replace("/mcp", "/sse") if remote == "sse" else shared_remote.url
    progress, logs = [], []

    async def on_progress(reached: float, total: float | None, message: str | None) -> None:
        progress.append(reached)

    async def on_log(message: Any) -> None:
        logs.append(message.data)

    async def conversation() -> None:
        async with connect(version, url, *options, logging_callback=on_log) as client:
            assert client.protocol_version == version
            assert client.instructions == "use it well"
            assert (client.server_info.name, client.server_info.version) == ("behind", "7.1")
            tools = (await client.list_tools()).tools
            assert tools[0].description == "Add two numbers."
            assert (await client.call_tool("add", {"a": 1})).content[0].text == "3"
            assert (await client.call_tool("fail", {})).is_error
            contents = (await client.read_resource("docs://guide")).contents
            assert contents[0].text == "# read me"
            templates = (await client.list_resource_templates()).resource_templates
            assert templates[0].uri_template == "docs://{id}/raw{?page}"
            prompt = await client.get_prompt("review", {"language": "C"})
            assert prompt.messages[0].content.text == "review C kind"
            await client.call_tool("work", {}, progress_callback=on_progress)
            assert progress == [1, 2]
            if version != STATELESS:
                assert logs == ["careful"]

    asyncio.run(asyncio.wait_for(conversation(), SECONDS))


@pytest.mark.parametrize("version", [SESSION_VERSIONS[-1], STATELESS])
@pytest.mark.parametrize("remote", ["2026-07-28", "2025-11-25"])
def test_the_official_client_answers_questions_of_the_remote_server(
    shared_remote: Remote, connect: Callable[..., Any], remote: str, version: str
) -> None:
    from mcp import types

    async def on_elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"value": "Bob"})

    async def on_sample(context: Any, params: Any) -> Any:
        content = types.TextContent(type="text", text="hello")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def conversation() -> None:
        callbacks = {"elicitation_callback": on_elicit, "sampling_callback": on_sample}
        async with connect(version, shared_remote.url, "--protocol", remote, **callbacks) as client:
            assert (await client.call_tool("ask", {})).content[0].text == "accept Bob, hello"

    asyncio.run(asyncio.wait_for(conversation(), SECONDS))


@pytest.mark.parametrize("mode", ["session", "sse"])
def test_a_server_of_the_official_sdk_is_bridged_to_the_official_client(
    connect: Callable[..., Any], mode: str
) -> None:
    path = "/sse" if mode == "sse" else "/mcp"

    async def conversation(url: str) -> None:
        async with connect(SESSION_VERSIONS[-1], url) as client:
            assert client.server_info.name == "official"
            assert (await client.call_tool("add", {"a": 3})).content[0].text == "5"
            assert (await client.read_resource("docs://guide")).contents[0].text == "# read me"

    with Remote(OFFICIAL.replace("MODE", repr(mode)), token=None, path=path) as remote:
        asyncio.run(asyncio.wait_for(conversation(remote.url), SECONDS))


# --- the remote server goes away ----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [STATELESS, SESSION_VERSIONS[-1]])
def test_a_remote_server_that_goes_away_is_reported_and_used_again_when_it_is_back(
    own_remote: Remote, protocol: str
) -> None:
    with bridge(own_remote.url, "--protocol", protocol) as server:
        server.initialize()
        first = text_of(call(server, "pid"))
        own_remote.stop()
        for _ in range(3):
            away = call(server, "add", a=1)
            assert away["isError"]
            assert "cannot be reached: connection refused" in text_of(away)
        assert "error" in server.request("prompts/get", {"name": "review", "arguments": {"language": "C"}})
        own_remote.start()
        again = call(server, "pid")
        assert not again.get("isError")
        assert text_of(again) != first
        server.close_stdin()
        assert server.wait() == 0


def test_one_that_is_never_there_is_reported_in_answers_and_by_the_exit_code() -> None:
    port = free_port()
    with bridge(f"http://127.0.0.1:{port}/mcp") as server:
        server.initialize()
        answer = server.request("tools/list")
        assert answer["error"]["code"] == -32603
        assert (
            f"http://127.0.0.1:{port}/mcp cannot be reached: connection refused" in answer["error"]["message"]
        )
        assert server.request("ping")["result"] == {}
        server.close_stdin()
        assert server.wait() == 1
        assert server.stderr.rstrip().endswith("cannot be reached: connection refused")


JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n"
EVENTS_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"


@contextmanager
def answering(data: bytes | None) -> Iterator[int]:
    """A server that answers each connection with these bytes, and then is silent; None: it is so at once.
    Yields its port."""
    open_ones = []

    def serve() -> None:
        while True:
            try:
                connection = listener.accept()[0]
                open_ones.append(connection)
                if data is not None:
                    connection.recv(65536)
                    connection.sendall(data)
            except OSError:
                return  # closed

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in open_ones:
                each.close()


@pytest.mark.parametrize(
    ("scheme", "data", "awaited"),
    [
        ("http", None, "an answer to server/discover"),
        ("http", JSON_HEAD, "an answer to server/discover"),
        ("http", EVENTS_HEAD, "an answer to server/discover"),
        ("https", None, "its TLS handshake"),
    ],
)
def test_it_says_what_it_waits_for_and_gives_up_after_the_time_that_is_set(
    scheme: str, data: bytes | None, awaited: str
) -> None:
    with answering(data) as port, bridge(f"{scheme}://127.0.0.1:{port}/mcp", "--timeout", "2.5") as server:
        server.initialize()  # is answered once the time is over
        url = f"{scheme}://127.0.0.1:{port}/mcp"
        over = f"it did not start within 2.5 s, waiting for {awaited} (--timeout sets the limit)"
        refused = server.request("tools/list")["error"]["message"]
        assert refused == f"the upstream server ({url}) cannot be used: {over}"
        server.close_stdin()
        assert server.wait() == 1
        first, *_, last = server.stderr.splitlines()
        assert first == f"fastrpc: {url}: waiting for {awaited}, 0.5 s more at most (--timeout)"
        assert last == f"fastrpc: {refused}"


@pytest.mark.parametrize(
    ("scheme", "data", "why"),
    [
        ("http", ALERT, "it speaks TLS: is it an https URL?"),
        ("https", JSON_HEAD, "its response is not TLS: is it an http URL?"),
    ],
)
def test_the_wrong_scheme_is_reported_at_once(scheme: str, data: bytes, why: str) -> None:
    with answering(data) as port, bridge(f"{scheme}://127.0.0.1:{port}/mcp") as server:
        server.initialize()
        assert server.request("tools/list")["error"]["message"].endswith(why)


# --- the end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [STATELESS, SESSION_VERSIONS[-1]])
def test_at_the_end_of_input_what_was_asked_is_still_answered(shared_remote: Remote, protocol: str) -> None:
    with bridge(shared_remote.url, "--protocol", protocol) as server:
        server.send_message(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "add", "arguments": {"a": 1}},
            },
            {
                "jsonrpc": "2.0",
                "id": 3,
                "method": "tools/call",
                "params": {"name": "wait", "arguments": {"ms": 300}},
            },
        )
        server.close_stdin()
        answers = {answer["id"]: answer["result"] for answer in server.answers(3)}
        assert text_of(answers[2]) == "3"
        assert text_of(answers[3]) == "waited"
        assert server.wait() == 0
        assert [line for line in server.stderr.splitlines() if "waiting for" not in line] == []


def test_what_takes_too_long_at_the_end_is_cancelled_there(shared_remote: Remote, tmp_path: Any) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"
    with bridge(shared_remote.url, "--drain-seconds", "0.2") as server:
        server.initialize()
        params = {"name": "sleep", "arguments": {"path": str(path)}}
        server.send_message({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        eventually(begun.exists)
        server.close_stdin()
        assert server.wait() == 0
        eventually(path.exists)


@pytest.mark.parametrize("protocol", [STATELESS, SESSION_VERSIONS[-1]])
def test_a_signal_ends_it_at_once(shared_remote: Remote, tmp_path: Any, protocol: str) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"
    with bridge(shared_remote.url, "--protocol", protocol) as server:
        server.initialize()
        params = {"name": "sleep", "arguments": {"path": str(path)}}
        server.send_message({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})
        eventually(begun.exists)
        server.signal(15)
        assert server.wait() == 0
        eventually(path.exists)


# --- the token and mistakes ---------------------------------------------------------------------------


def test_the_token_is_in_no_command_line_and_no_message(shared_remote: Remote, tmp_path: Any) -> None:
    with bridge(shared_remote.url, "--log-level", "debug", token=f"{TOKEN}-wrong") as server:
        server.initialize()
        answer = server.request("tools/list")
        assert "refuses the token (status 401 Unauthorized)" in answer["error"]["message"]
        with open(f"/proc/{server.pid}/cmdline", "rb") as file:
            assert TOKEN.encode() not in file.read()
        assert TOKEN not in json.dumps(answer) + server.stderr

    with bridge(shared_remote.url, token=None) as server:
        server.initialize()
        message = server.request("tools/list")["error"]["message"]
        assert "requires a token; none was sent" in message


def test_the_token_may_be_in_a_file_or_another_header(shared_remote: Remote, tmp_path: Any) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\nnot this\n")
    with bridge(shared_remote.url, "--token-file", str(path), token=None) as server:
        server.initialize()
        assert text_of(call(server, "add", a=1)) == "3"
    command = [sys.executable, "-m", "fastrpc", "bridge", shared_remote.url, "--header", "Authorization=OURS"]
    environment = {"PYTHONPATH": REPOSITORY, VARIABLE: None, "OURS": f"Bearer {TOKEN}"}
    with serve(command=command, environment=environment) as server:
        server.initialize()
        assert text_of(call(server, "add", a=1)) == "3"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "URL"),
        (["ftp://host/"], "expected an http or https URL"),
        (["http://name:secret-word@host/"], "a user name or a password"),
        (["http://host/", "more"], "one argument too many"),
        (["http://host/", "--tokens", "x"], "--token-file"),
        (["http://host/", "--token-file", "/no/such"], "--token-file /no/such: No such file"),
        (["http://host/", "--header", "X"], "NAME=VARIABLE"),
        (["http://host/", "--header", "X=NO_SUCH_VARIABLE"], "no environment variable"),
        (["http://host/", "--protocol", "1"], "expected one of 2024-11-05"),
        (["http://host/", "--auth", "basic"], "--auth"),
        (["http://host/", "--drain-seconds", "soon"], "--drain-seconds"),
        (["http://host/", "--trace", "/no/such/folder/trace"], "No such file"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], complaint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "bridge", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": REPOSITORY},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("fastrpc: ")
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr
    assert "secret-word" not in done.stderr
