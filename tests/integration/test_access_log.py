"""The access log over HTTP: one whole line for each request, nothing in it that a client has smuggled in.

What calls come to is in test_outcomes.py, which reads the same log. Real processes, loopback only.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from typing import Any

import pytest
from support.http_client import Serving
from support.http_server import FASTRPC, HttpProcess
from support.outcomes import command, lines_of
from support.raw_http import Socket, call, call_body, head_of, headers
from support.waiting import eventually

from fastrpc._core.access_buffer import AccessBuffer
from fastrpc._core.recorder import ticks
from fastrpc.telemetry.access_log import CAPACITY, AccessLog, pieces

TOKEN = "a-token-for-tests"
LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (?P<peer>127\.0\.0\.1:\d+|-) (?P<caller>\S+) "
    r"(?P<method>\S+) (?P<name>\S+) (?P<status>\d{3}|-) (?P<outcome>[a-z_]+|-) (?P<ms>\d+\.\d{3}) "
    r"(?P<bytes_in>\d+) (?P<bytes_out>\d+) (?P<id>\S+)"
)


class Logged(HttpProcess):
    def __init__(self, folder: Any, format: str = "json", **options: Any) -> None:
        self.file = folder / "access.log"
        super().__init__(
            command=command(
                **{
                    "http": "127.0.0.1:0",
                    "token": TOKEN,
                    "access_log": str(self.file),
                    "access_log_format": format,
                    **options,
                }
            )
        )

    def ask(self, data: bytes) -> Any:
        with Socket(self.port) as connection:
            connection.send(data)
            return connection.answer()

    def lines(self, count: int) -> list[Any]:
        """Return the lines, once there are so many."""
        return eventually(lambda: len(found := lines_of(self.file)) >= count and found)


def bare(line: str, *more: tuple[str, str], body: bytes = b"", token: str | None = TOKEN) -> bytes:
    pairs = [("Host", "127.0.0.1"), ("Content-Length", str(len(body))), *more]
    if token is not None:
        pairs.append(("Authorization", f"Bearer {token}"))
    return head_of(pairs, line) + body


def noted(entry: Any) -> tuple[Any, ...]:
    return entry["method"], entry["name"], entry["status"], entry["outcome"]


def test_what_is_refused_before_a_message_is_read_has_its_line_too(tmp_path: Any) -> None:
    json_type = ("Content-Type", "application/json")
    sent = [
        (bare("GET /healthz HTTP/1.1", token=None), ("GET", "/healthz", 200, None)),
        (bare("POST /mcp HTTP/1.1", json_type, token=None), ("POST", "/mcp", 401, "refused")),
        (bare("POST /mcp HTTP/1.1", json_type, token="wrong"), ("POST", "/mcp", 401, "refused")),
        (
            bare("POST /mcp HTTP/1.1", json_type, ("Origin", "http://evil.example")),
            ("POST", "/mcp", 403, "refused"),
        ),
        (bare("GET /nothing HTTP/1.1"), ("GET", "/nothing", 404, "refused")),
        (bare("PUT /mcp HTTP/1.1"), ("PUT", "/mcp", 405, "refused")),
        (bare("POST /mcp HTTP/1.1", json_type, body=b"x" * 2000), ("POST", "/mcp", 413, "refused")),
        (bare("POST /mcp HTTP/1.1", json_type, body=b"{"), ("POST", "/mcp", 400, "protocol_error")),
        (bare("POST /mcp HTTP/1.1", json_type, body=b"[1]"), ("batch", None, 200, "protocol_error")),
        (b"nonsense\r\n\r\n", (None, None, 400, "refused")),
        (bare(f"GET /{'x' * 9000} HTTP/1.1"), (None, None, 414, "refused")),
    ]
    with Logged(tmp_path, max_body=1000) as server:
        for data, expected in sent:
            answer = server.ask(data)
            assert answer.status == expected[2]
        found = server.lines(len(sent))
        assert [noted(entry) for entry in found] == [expected for _, expected in sent]
        assert found[1]["caller"] is None


def test_a_session_from_its_beginning_to_its_end(tmp_path: Any) -> None:
    with Logged(tmp_path) as server, Conversation(server) as session:
        session.post({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        for id in range(3):
            body = {"name": "inline", "arguments": {"how": "ok"}}
            session.post({"jsonrpc": "2.0", "id": f"n{id}", "method": "tools/call", "params": body})
        session.post({"jsonrpc": "2.0", "id": 8, "method": "tools/list"})
        session.post({"jsonrpc": "2.0", "id": 9, "method": "no/such"})
        session.post([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
        listener = session.listen()
        session.delete()
        listener.answer("GET")
        listener.plain.close()
        found = server.lines(11)
        assert [(*noted(entry), entry["id"]) for entry in found] == [
            ("initialize", None, 200, "ok", 0),
            ("notifications/initialized", None, 202, None, None),
            ("ping", None, 200, "ok", 7),
            *[("tools/call", "inline", 200, "ok", f"n{id}") for id in range(3)],
            ("tools/list", None, 200, "ok", 8),
            ("no/such", None, 200, "protocol_error", 9),
            ("batch", None, 200, "ok", None),
            *sorted([("DELETE", "/mcp", 200, None, None), ("GET", "/mcp", 200, None, None)])[
                :: found_order(found)
            ],
        ]


def found_order(found: list[Any]) -> int:
    """Whether DELETE or the stream that it ends comes first is a matter of chance."""
    return 1 if found[-1]["method"] == "GET" else -1


class Conversation:
    """A session of 2025-03-26, which has batches."""

    def __init__(self, server: Logged) -> None:
        self.server = server
        self.id = ""

    def __enter__(self) -> Conversation:
        params = {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.id = answer.headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def request(self, line: str, body: bytes = b"") -> bytes:
        more = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        if self.id:
            more.append(("Mcp-Session-Id", self.id))
        return bare(line, *more, body=body)

    def post(self, body: Any) -> Any:
        return self.server.ask(self.request("POST /mcp HTTP/1.1", json.dumps(body).encode()))

    def listen(self) -> Socket:
        connection = Socket(self.server.port)
        connection.send(self.request("GET /mcp HTTP/1.1"))
        eventually(connection.has_more)
        connection.plain.setblocking(True)
        return connection

    def delete(self) -> Any:
        return self.server.ask(self.request("DELETE /mcp HTTP/1.1"))


HOSTILE = (
    "a\nb",
    "a\r\n2026-01-01T00:00:00.000Z 1.2.3.4:5 root tools/call rm 200 ok 0.001 1 1 1",
    'quote " backslash \\ tab \t',
    "escape \x1b[2J and \x9b",
    "right to left \u202e and line \u2028",
    "astral \U0001f600",
    "x" * 5000,
)


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("road", ["straight", "application"])
def test_no_name_begins_a_new_line_or_column(tmp_path: Any, format: str, road: str) -> None:
    with Logged(tmp_path, format) as server:
        for at, name in enumerate(HOSTILE):
            body = call_body(name, {}, id=f"{at} {name}")
            pairs = [pair for pair in headers(body, None) if pair[0] != "Mcp-Name"]
            encoded = b64encode(name.encode()).decode()
            pairs.append(("Mcp-Name", f"=?base64?{encoded}?="))
            if road != "straight":
                pairs.append(("Origin", "http://localhost"))
            assert server.ask(head_of(pairs) + body).status in (400, 431)
        for path in ("/a%0Ab", "/a%0d%0a%20b", "/%1b[2J", "/%ff%fe", "/a b?token=hidden-in-the-query"):
            server.ask(bare(f"GET {path} HTTP/1.1"))
        count = len(HOSTILE) + 5
        text = eventually(
            lambda: (found := server.file.read_text(encoding="ascii")).count("\n") >= count and found
        )
        assert text.count("\n") == count
        assert text.isascii()
        assert text.replace("\n", "").isprintable()
        assert "hidden-in-the-query" not in text
        for line in text.splitlines():
            if format == "text":
                assert LINE.fullmatch(line), line
            else:
                assert list(json.loads(line)) == KEYS
        if format == "json":
            names = [json.loads(line)["name"] for line in text.splitlines()]
            assert names[:2] == list(HOSTILE[:2])
            assert names[5] == HOSTILE[5]


KEYS = [
    *("time", "peer", "caller", "method", "name", "status", "outcome", "duration_ms", "bytes_in"),
    *("bytes_out", "id"),
]


def test_no_secret_is_in_a_line(tmp_path: Any) -> None:
    secret = "c2VjcmV0LXNlY3JldA1234"
    with Logged(tmp_path, "text") as server:
        server.ask(bare(f"GET /mcp?token={secret} HTTP/1.1"))
        server.ask(bare(f"GET /x/Bearer%20{secret} HTTP/1.1"))
        server.ask(bare("POST /mcp HTTP/1.1", token=secret))
        server.ask(call(f"Bearer {secret}", {}))
        server.ask(call("inline", {"how": "ok"}, id=f"Authorization: Bearer {secret}"))
        for uri in (f"docs://ok?key={secret}", f"docs://user:{secret}@host/x", f"docs://ok#{secret}"):
            body = call_body("x", {}).replace(b"tools/call", b"resources/read")
            body = body.replace(b'"name":"x","arguments":{}', f'"uri":"{uri}"'.encode())
            server.ask(head_of(headers(body, uri, "resources/read")) + body)
        text = eventually(lambda: (found := server.file.read_text()).count("\n") >= 8 and found)
        assert secret not in text
        assert TOKEN not in text
        assert "docs://ok?" in text


def test_workers_share_a_file_and_each_writes_whole_lines(tmp_path: Any) -> None:
    with Logged(tmp_path, workers=2) as server:
        for at in range(60):
            server.ask(call("inline", {"how": "ok"}, id=at))
        server.stop()
        assert sorted(entry["id"] for entry in lines_of(server.file)) == list(range(60))


def test_what_is_noted_last_is_written_when_serving_ends(tmp_path: Any) -> None:
    with Logged(tmp_path) as server:
        server.ask(call("inline", {"how": "ok"}, id=1))
        assert server.stop() == 0
        assert [entry["id"] for entry in lines_of(server.file)] == [1]


def test_a_file_that_has_been_moved_is_made_anew_within_a_second_and_no_line_is_lost(tmp_path: Any) -> None:
    sent = 1
    moved = tmp_path / "access.log.1"

    def is_made_anew() -> bool:
        nonlocal sent
        sent += 1
        server.ask(call("inline", {"how": "ok"}, id=sent))
        return bool(os.path.exists(server.file))

    with Logged(tmp_path) as server:
        server.ask(call("inline", {"how": "ok"}, id=1))
        server.lines(1)
        os.rename(server.file, moved)
        eventually(is_made_anew)
        assert os.stat(server.file).st_mode & 0o077 == 0
        eventually(lambda: (lines := lines_of(server.file)) and lines[-1]["id"] == sent)
        ids = [line["id"] for file in (moved, server.file) for line in lines_of(file)]
    assert ids == list(range(1, sent + 1))


def test_the_command_writes_to_standard_error(tmp_path: Any) -> None:
    (tmp_path / "tools.py").write_text(
        "from fastrpc import tool\n@tool(run='inline')\ndef hello() -> str:\n    'Say hi.'\n    return 'hi'\n"
    )
    options = ("--http", "127.0.0.1:0", "--no-auth", "--access-log", "-")
    with Serving("serve", "tools.py", *options, folder=tmp_path, FASTRPC_TOKEN="") as server:
        assert server.call("hello") == "hi"
        (line,) = eventually(lambda: [line for line in server.stderr.splitlines() if "hello" in line])
        found = LINE.fullmatch(line)
        assert found
        assert found["caller"] == "-"
        assert (found["method"], found["name"], found["outcome"]) == ("tools/call", "hello", "ok")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--access-log", "x"), "--access-log is for HTTP"),
        (("--http", "127.0.0.1:0", "--no-auth", "--access-log-format", "json"), "needs --access-log too"),
        (
            ("--http", "127.0.0.1:0", "--no-auth", "--access-log", "-", "--access-log-format", "xml"),
            "access_log_format: expected text or json, got 'xml'",
        ),
        (("--http", "127.0.0.1:0", "--no-auth", "--access-log", "/no/such/folder/x"), "access_log: "),
        (("--http", "127.0.0.1:0", "--no-auth", "--access-log", "/dev/null"), "a device"),
    ],
)
def test_wrong_options_are_refused_before_anything_begins(options: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [*FASTRPC, "serve", *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert words in done.stderr


def test_without_an_access_log_nothing_of_it_is_imported(tmp_path: Any) -> None:
    source = (
        "import sys\nfrom fastrpc import Server\napp = Server('t')\n"
        "@app.tool(run='inline')\ndef seen() -> str:\n"
        "    return ' '.join(name for name in sys.modules if name.endswith(('.access', '.access_buffer')))\n"
        "app.run(http='127.0.0.1:0', auth=None)\n"
    )
    with HttpProcess(command=(sys.executable, "-c", source)) as server, Socket(server.port) as connection:
        body = call_body("seen", {})
        connection.send(head_of([p for p in headers(body, "seen") if p[0] != "Authorization"]) + body)
        assert connection.answer().text == ""


# --- the buffer, and what writes it -------------------------------------------------------------------------


def note(buffer: AccessBuffer, id: int = 1, **more: Any) -> None:
    values = {
        "began": ticks(),
        "client": ("::1", 8000),
        "caller": "alice",
        "method": "tools/call",
        "name": "echo",
        "id": b"%d" % id,
        "status": 200,
        "outcome": "ok",
        "bytes_in": 10,
        "bytes_out": 20,
        **{key.replace("id_text", "id"): value for key, value in more.items()},
    }
    buffer.note(*values.values())


def without_thread(path: str, *, as_json: bool, capacity: int = CAPACITY) -> AccessLog:
    """A log that is written when the test says so, and not also 50 ms after a record."""
    log = AccessLog(path, as_json=as_json)
    log.buffer = AccessBuffer(capacity)
    return log


def test_records_that_do_not_fit_are_counted_and_the_log_says_how_many(tmp_path: Any) -> None:
    log = without_thread(str(tmp_path / "log"), as_json=True, capacity=1000)
    for id in range(20):
        note(log.buffer, id)
    dropped = log.buffer.dropped
    assert 0 < dropped < 20
    log.write()
    note(log.buffer, 20)
    log.close()
    told, *rest = lines_of(tmp_path / "log")
    assert told["dropped"] == dropped
    assert [line["id"] for line in rest] == [*range(20 - dropped), 20]


def test_lines_that_cannot_be_written_are_counted_too(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("fastrpc.telemetry.access_log.LOOK_SECONDS", 3600.0)
    log = without_thread(str(tmp_path / "log"), as_json=False)
    note(log.buffer, 0)
    log.write()  # has the file looked at, which it is not again: it would be found to be another one
    note(log.buffer, 1)
    note(log.buffer, 2)
    file = log._file.fileno()
    kept = os.dup(file)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, file)
    log.write()
    assert log.buffer.unwritten == 2
    os.dup2(kept, file)
    os.close(full)
    os.close(kept)
    note(log.buffer, 3)
    log.close()
    _, first, second = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(r"# \S+ 2 requests are missing here: there was no room for them", first)
    assert second.endswith(" 3")


def test_standard_error_that_no_one_reads_holds_nothing_up(monkeypatch: Any) -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream, os.fdopen(read, "rb") as pipe:
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr("fastrpc.telemetry.access_log.WRITE_SECONDS", 0.05)
        log = without_thread("-", as_json=True)
        for round in range(3):
            for id in range(1000):
                note(log.buffer, id + 1000 * round)
            log.write()
        os.set_blocking(read, False)
        while pipe.read(65536):
            pass
        note(log.buffer, 5000)
        log.close()
        told, last = [json.loads(line) for line in pipe.read().splitlines()]
        assert told["dropped"] > 1000
        assert last["id"] == 5000


def test_pieces_are_whole_lines_that_a_pipe_takes_at_once() -> None:
    from select import PIPE_BUF

    lines = b"".join(b"x" * (at % 300) + b"\n" for at in range(1000)) + b"y" * (2 * PIPE_BUF) + b"\nz\n"
    found = list(pieces(lines))
    assert b"".join(found) == lines
    assert all(piece.endswith(b"\n") for piece in found)
    assert [piece for piece in found if len(piece) > PIPE_BUF] == [b"y" * (2 * PIPE_BUF) + b"\n"]


@pytest.mark.parametrize("as_json", [False, True])
def test_texts_of_any_bytes_and_missing_ones_make_a_line(as_json: bool) -> None:
    buffer = AccessBuffer()
    note(buffer, client=None, caller="", name="", id_text=b"", status=0, outcome=None)
    note(buffer, name="\u00e9\u20ac\U0001f600" * 100)
    note(buffer, id_text=b'"' + b"x" * 500 + b'"')
    note(buffer, id_text=b'"\xed\xa0\x80\xff\xc3"')
    first, second, third, fourth = buffer.take(as_json).decode("ascii").splitlines()
    if as_json:
        empty = json.loads(first)
        assert [empty[key] for key in ("peer", "caller", "name", "status", "outcome", "id")] == [None] * 6
        assert json.loads(second)["name"] == ("\u00e9\u20ac\U0001f600" * 29)[: 28 * 3 + 1]
        assert json.loads(third)["id"] is None
        assert isinstance(json.loads(fourth)["id"], str)
        assert json.loads(second)["peer"] == "[::1]:8000"
    else:
        assert first.split(" ")[1:3] == ["-", "-"]
        assert all(len(line.split(" ")) == 11 for line in (first, second, third, fourth))
