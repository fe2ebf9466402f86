"""What a server over HTTP logs of the requests that it refuses, and what it leaves out. Real processes."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from support.http_client import TOKEN, Serving, handshake, stateless_request
from support.waiting import SECONDS, eventually

TOOLS = """
import os
from fastrpc import Server

app = Server("logging")

@app.tool(run="inline")
def echo(text: str) -> str:
    return text
"""
BOTH = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
RECORD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) fastrpc: (.*)$")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def serve(folder: Path, *options: str, level: str = "info", **more: Any) -> Serving:
    given = ("--http", "127.0.0.1:0", "--log-level", level, *options)
    return Serving("serve", "tools.py", *given, folder=folder, **more)


def send(server: Serving, head: str, *headers: str, body: str = "") -> None:
    """Send a request with the right token on a separate connection, and read how its answer begins."""
    lines = [head, "Host: localhost", f"Authorization: Bearer {TOKEN}", *headers]
    text = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]) + body
    send_bytes(server, text.encode("latin-1"))


def send_bytes(server: Serving, data: bytes, *, last: bytes = b"") -> None:
    """Send something, and read answers until one of them has `last` in it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
        connection.sendall(data)
        received = connection.recv(65536)
        while last not in received:
            received += connection.recv(65536)


def logged(text: str) -> list[tuple[str, str]]:
    """The records of a log, the port that a client came from left out; each must be one whole line."""
    found = []
    for line in text.splitlines():
        if line.startswith("fastrpc: serving at"):
            continue
        match = RECORD.match(line)
        assert match, f"no record: {line!r}"
        found.append((match[1], re.sub(r"(from (?:127\.0\.0\.1|\[::1\])):\d+", r"\1", match[2])))
    return found


def test_each_refusal_says_why(folder: Path) -> None:
    with serve(folder, "--allow-origin", "https://app.test") as server:
        message, headers = stateless_request("tools/list", {})
        server.token = None
        server.ask("POST", "/mcp", message, **headers)
        server.token = "a-token-of-nobody-at-all"
        server.ask("POST", "/mcp?secret=in-the-query", message, **headers)
        server.token = TOKEN
        server.ask("POST", "/mcp", message, **headers, Origin="https://evil.test")
        server.ask("POST", "/nowhere", message, **headers)
        server.ask("POST", "/mcp", message, **headers, Host="evil.test")
        server.ask("PUT", "/mcp", message)
        server.ask("POST", "/mcp", "{", **headers)
        server.ask("POST", "/mcp", message, **{**headers, "Mcp_Method": "tools/call"})
        server.ask("GET", "/mcp", Mcp_Session_Id="a-session-of-nobody")
        server.stateless_request("no/such", {})
        server.stateless_request("tools/call", {"name": "nobody", "arguments": {}})
        send_bytes(server, b"nonsense\r\n\r\n")
        send_bytes(server, b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n")
        assert server.stateless_request("tools/list", {}).status == 200  # of which nothing is said
        assert server.stop() == 0
    expected = [
        r"401 POST /mcp from 127.0.0.1: Unauthorized: this server needs a token .*",
        r"401 POST /mcp from 127.0.0.1: Unauthorized: the token is not known",
        r"403 POST /mcp from 127.0.0.1: Origin: pages from there may not use this server",
        r"404 POST /nowhere from 127.0.0.1: There is nothing at /nowhere",
        r"421 POST /mcp from 127.0.0.1: Host: this server does not answer to that name",
        r"405 PUT /mcp from 127.0.0.1: PUT: not served here",
        r"400 POST /mcp from 127.0.0.1: Parse error: .*",
        r"400 POST /mcp from 127.0.0.1: Mcp-Method: the header says 'tools/call', the body 'tools/list'",
        r"404 GET /mcp from 127.0.0.1: Mcp-Session-Id: there is no such session",
        r"404 POST /mcp from 127.0.0.1: Method not found: no/such.*",
        r"400 POST /mcp.*: .*nobody.*",
        r"400 from 127.0.0.1: Broken HTTP",
        r"501 from 127.0.0.1: CONNECT: this server opens no tunnels",
    ]
    records = logged(server.stderr)
    assert len(records) == len(expected), records
    for (level, message), pattern in zip(records, expected, strict=True):
        assert level == "INFO"
        assert re.fullmatch(pattern, message), message
    assert "in-the-query" not in server.stderr
    assert "a-token-of-nobody" not in server.stderr
    assert "a-session-of" not in server.stderr


def test_too_many_sessions_and_too_many_requests_say_why(folder: Path) -> None:
    with serve(folder, FASTRPC_HTTP_SESSIONS="1") as server:
        stream = server.session().listen()
        assert server.ask("POST", "/mcp", handshake("2025-11-25")).status == 429
        one = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n{BOTH}"
        ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
        send_bytes(
            server, f"{one}Content-Length: {len(ping)}\r\n\r\n{ping}".encode() * 70, last=b"HTTP/1.1 429"
        )
        stream.close()
        assert server.stop() == 0
    said = [message for _, message in logged(server.stderr)]
    assert "429 POST /mcp from 127.0.0.1: Too many sessions are open" in said
    assert "429 from 127.0.0.1: Too many requests on one connection" in said


def test_tokens_that_cannot_be_read_say_why(folder: Path) -> None:
    path = folder / "tokens"
    path.write_text("a-token-that-was-right\n")
    path.chmod(0o600)
    code = (
        "import sys; from fastrpc.transports.http import auth\n"
        "auth.LOOK_SECONDS = auth.FILE_GRACE_SECONDS = 0.1\n"
        "from fastrpc.__main__ import main; sys.exit(main())"
    )
    with serve(folder, "--token-file", "tokens", command=[sys.executable, "-c", code]) as server:
        server.token = "a-token-that-was-right"
        path.unlink()
        eventually(lambda: server.stateless_request("tools/list", {}).status == 503)
        assert server.stop() == 0
    records = logged(server.stderr)
    assert (
        "INFO",
        "503 POST /mcp from 127.0.0.1: The tokens cannot be read; see the server's log",
    ) in records


@pytest.mark.parametrize("level", ["warning", "error"])
def test_nothing_is_said_above_info(folder: Path, level: str) -> None:
    with serve(folder, level=level) as server:
        server.token = None
        for path in ("/mcp", "/nowhere"):
            assert server.ask("POST", path, {}).status in (401, 404)
        assert server.stop() == 0
    assert logged(server.stderr) == []


def test_what_a_caller_sends_forges_no_record(folder: Path) -> None:
    forged = "2026-01-01 00:00:00,000 ERROR fastrpc: forged"
    with serve(folder) as server:
        send(server, f"GET /x%0A{forged.replace(' ', '%20')}%0D%1B%5B2K%E2%80%AE HTTP/1.1")
        send(server, "POST /mcp HTTP/1.1", "Content-Type: application/json", "Content-Encoding: a\x85\x9b2Kb")
        send(server, "GET /mcp HTTP/1.1", "Mcp-Session-Id: \x9b2K", "MCP-Protocol-Version: \x85\x9b")
        assert server.stop() == 0
    records = logged(server.stderr)
    assert [record for record in records if record[0] != "INFO"] == []
    assert len(records) == 3
    assert records[0][1].startswith(
        "404 GET /x\\n2026-01-01%2000:00:00,000%20ERROR%20fastrpc:%20forged\\r\\x1b[2K"
    )
    assert server.stderr.isascii()


def test_a_flood_of_refusals_is_counted_and_hides_nothing_else(folder: Path) -> None:
    with serve(folder) as server:
        asked = f"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
            for _ in range(300):
                connection.sendall(asked)
                while not connection.recv(65536).endswith(b"}}"):
                    pass
        server.token = None
        server.ask("POST", "/mcp", {})
        assert server.stop() == 0
    records = [message for _, message in logged(server.stderr)]
    missing = [message for message in records if message.startswith("404 GET /nowhere ")]
    counted = [re.match(r"404: (\d+) more within 10 s", message) for message in records]
    assert len(missing) + sum(int(match[1]) for match in counted if match) == 300
    assert len(missing) <= 100  # 20 of each ten seconds
    assert [message for message in records if message.startswith("401 POST /mcp ")]


def test_a_request_for_a_session_of_a_worker_that_has_died_says_why(folder: Path) -> None:
    with serve(folder, "--workers", "2") as server:
        sessions = [server.session() for _ in range(4)]
        for child in map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()):
            os.kill(child, 9)
        eventually(lambda: server.stderr.count("another one takes its place") == 2)
        eventually(lambda: is_there(server))
        for session in sessions:
            assert session.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404
        assert server.stop() == 0
    said = [message for _, message in logged(server.stderr)]
    assert said.count("404 POST /mcp from 127.0.0.1: Mcp-Session-Id: there is no such session") == 4


def is_there(server: Serving) -> bool:
    try:
        return server.ask("GET", "/healthz").status == 200
    except OSError:
        return False


# --- --log-file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_log_goes_to_the_file_and_the_address_to_stderr(folder: Path, workers: str) -> None:
    with serve(folder, "--log-file", "log", "--workers", workers) as server:
        server.ask("GET", "/nowhere")
        (folder / "log").rename(folder / "log.1")
        server.ask("GET", "/elsewhere")
        assert server.stop() == 0
    assert re.fullmatch(r"fastrpc: serving at \S+( \(2 workers\))?\n", server.stderr)
    both = [(folder / name).read_text() for name in ("log.1", "log")]
    assert [re.findall(r"nothing at (\S+)", text) for text in both] == [["/nowhere"], ["/elsewhere"]]
    assert [(folder / name).stat().st_mode & 0o777 for name in ("log.1", "log")] == [0o600, 0o600]


def test_a_log_file_may_be_named_by_the_environment(folder: Path) -> None:
    with serve(folder, FASTRPC_LOG_FILE="log") as server:
        server.ask("GET", "/nowhere")
        assert server.stop() == 0
    assert "nothing at /nowhere" in (folder / "log").read_text()
    assert server.stderr.count("\n") == 1
