"""W11, the benchmark over HTTP: every server of it answers rightly, and a wrong answer voids the run.

The load client is shown a server that lies in one answer: its status, its head, its id, its text, the
connection that it comes by. SDKs are tried where they are built. Real processes, loopback only. Costs eight
seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.http_server import HttpProcess
from support.skips import not_prepared

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
sys.path.append(BENCHMARKS)

roster = pytest.importorskip("roster", reason="the benchmarks are not here")
import figures  # noqa: E402
import guard  # noqa: E402
import report  # noqa: E402
from record import Record  # noqa: E402
from workloads import ROWS  # noqa: E402
from workloads.row import Options, run_client  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.path.exists(os.path.join(BENCHMARKS, ".cache", "build", "client")),
        reason=not_prepared("the load client"),
    ),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the client needs epoll"),
    pytest.mark.skipif(not roster.has_http(sys.executable), reason="without the extra http"),
]
ROW = {row.name: row for row in ROWS}
BRIEF = ["--seconds", "0.02", "--warm-up", "0.02", "--timeout", "60"]

# Speaks HTTP as far as the client does and lies in the answer to the call numbered by its third argument.
LIAR = r"""
import asyncio, json, sys

port, mode, when = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls = 0
held = None


def right(request, body):
    asked = dict(line.lower().split(": ", 1) for line in request.split("\r\n")[1:])
    message = json.loads(body)
    assert request.startswith("POST /mcp HTTP/1.1\r\n"), request
    assert asked["host"] == f"127.0.0.1:{port}", request
    assert asked["authorization"] == "bearer a-token", request
    assert asked["mcp-protocol-version"] == "2026-07-28", request
    assert (asked["mcp-method"], asked["mcp-name"]) == ("tools/call", "echo"), request
    assert {"application/json", "text/event-stream"} <= set(asked["accept"].split(", ")), request
    text = message["params"]["arguments"]["text"]
    result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def written(answer, status="200 OK", type="application/json", length=0, more=""):
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {type}\r\nContent-Length: {len(body) + length}\r\n{more}\r\n"
    return head.encode() + body


def chunked(answer):
    body = json.dumps(answer, indent=1).encode()
    parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\ncontent-type:application/json\r\n\r\n"
    return head + parts + b"0\r\n\r\n"


def lie(answer):
    block = answer["result"]["content"][0]
    if mode == "status":
        return written(answer, status="500 Internal Server Error")
    if mode == "type":
        return written(answer, type="text/event-stream")
    if mode == "close":
        return written(answer, more="Connection: close\r\n")
    if mode == "longer":
        return written(answer, length=-1)
    if mode == "twice":
        return written(answer) * 2
    if mode == "silent":
        return b""
    if mode == "no json":
        return written(answer).replace(b'"id"', b"'id'")
    if mode == "text":
        block["text"] += "."
    elif mode == "failed":
        answer["result"]["isError"] = True
    elif mode == "no result type":
        del answer["result"]["resultType"]
    elif mode == "id":
        answer["id"] += 1_000_000
    return written(answer)


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.data = b""

    def data_received(self, data):
        global calls, held
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        text = head.decode()
        if not found or len(body) < int(text.lower().partition("content-length: ")[2].partition("\r\n")[0]):
            return
        self.data = b""
        answer = right(text, body)
        calls += 1
        if mode == "crossed" and calls == when:
            held = self, answer  # until the next request, whose answer comes here instead
        elif held is not None:
            (other, first), held = held, None
            self.transport.write(written(first))
            other.transport.write(written(answer))
        elif mode == "chunked":
            whole = chunked(answer)
            self.transport.write(whole[:50])
            asyncio.get_running_loop().call_later(0.001, self.transport.write, whole[50:])
        else:
            self.transport.write(lie(answer) if calls == when else written(answer))


async def main():
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main())
"""


def driven(command: list[str], *options: str, **peer: Any) -> dict[str, Any]:
    """One short run of the load client against a command."""
    asked = roster.Peer("a server", {roster.HTTP: command}, **peer)
    report: dict[str, Any] = run_client(
        ROW["W11"], asked, [*BRIEF, "--client-cpu", str(min(os.sched_getaffinity(0))), *options]
    )
    return report


def told(mode: str, when: int = 10, *options: str) -> dict[str, Any]:
    """What the client reports of the server that lies."""
    command = [sys.executable, "-S", "-c", LIAR, roster.PORT, mode, str(when)]
    return driven(command, "--connections", "4", "--token", "a-token", *options)


# --- the load client --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["truth", "chunked"])
def test_a_right_server_is_measured(mode: str) -> None:
    report = told(mode)
    assert report.get("void") is None
    assert (report["window"], report["exit_code"]) == (4, 0)
    assert report["calls"] > 0
    assert report["calls_per_second"] == pytest.approx(report["calls"] / report["seconds"], rel=1e-3)
    assert 0 < report["p50"] <= report["p99"] <= report["max"]
    assert report["peak_rss_kb"] > 5000


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("status", "expected status 200, got HTTP/1.1 500"),
        ("type", "expected content-type application/json, got text/event-stream"),
        ("close", "closes the connection"),
        ("longer", "more came than was asked for"),
        ("twice", "asked for"),
        ("silent", "answers: "),
        ("no json", "not JSON"),
        ("text", "expected the text"),
        ("failed", "the tool failed"),
        ("no result type", "expected resultType complete"),
        ("id", "the answer to nothing in flight"),
        ("crossed", "on another's connection"),
    ],
)
def test_a_wrong_answer_voids_the_run(mode: str, reason: str) -> None:
    patience = ("--timeout", "3") if mode == "silent" else ()  # it has to start within that, too
    assert reason in told(mode, 10, *patience)["void"]


def test_a_server_that_does_not_start_is_distinguished_from_a_slow_one() -> None:
    assert "ended before it took a connection" in driven([sys.executable, "-c", "pass"])["void"]


# --- the servers ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fastrpc() -> Any:
    return roster.peer_of("fastrpc", sys.executable)


@pytest.mark.parametrize("connections", ["1", "64"])
@pytest.mark.parametrize("asked", [roster.HTTP, roster.HTTP_ASGI])
def test_fastrpc_answers_rightly_and_asks_for_the_token(fastrpc: Any, asked: str, connections: str) -> None:
    command = fastrpc.commands[asked]
    peer = {"environment": fastrpc.environment}
    assert "void" not in driven(command, "--connections", connections, **peer)
    report = driven(command, "--connections", connections, "--token", roster.TOKEN[:-1], **peer)
    assert "got HTTP/1.1 401" in report["void"]


def test_the_plain_loop_answers_rightly() -> None:
    command = roster.peer_of("python-loop", sys.executable).commands[roster.HTTP]
    assert driven(command)["answer_bytes"] > 100


def test_each_sdk_that_is_built_answers_rightly() -> None:
    """Where none is built, none is measured either."""
    peers = [roster.peer_of(name, sys.executable) for name in roster.HTTP_SDKS]
    for peer in peers:
        if not peer.missing:
            report = driven(peer.commands[roster.HTTP])
            assert "void" not in report, peer.name
            assert report["exit_code"] == 0


def test_fastrpc_is_measured_in_sessions_and_in_every_shape(fastrpc: Any) -> None:
    options = Options(rounds=1, seconds=0.05)
    plain = replace(roster.peer_of(roster.PLAIN, sys.executable), warm_up=0.05)
    fastrpc = replace(fastrpc, warm_up=0.05)
    names = ["W11-session", *(name for name in ROW if name.startswith("W12-http-"))]
    assert len(names) > 3
    for name in names:
        for peer in (fastrpc, plain):
            report = ROW[name].measure(ROW[name], peer, options)
            assert "void" not in report, (name, peer.name, report)
            assert report["calls"] > 0
    sent = driven(fastrpc.commands[roster.HTTP], "--wire", "session")["request_bytes"]
    assert sent != driven(fastrpc.commands[roster.HTTP])["request_bytes"]


def test_a_server_without_sessions_is_void_where_they_are_asked_for() -> None:
    assert "void" in told("truth", 10, "--wire", "session")


@pytest.fixture
def address(fastrpc: Any) -> Iterator[tuple[str, int]]:
    """Fastrpc's server of W11, as it is there."""
    command = [word.replace(roster.PORT, "0") for word in fastrpc.commands[roster.HTTP]]
    with HttpProcess(command=command, environment=fastrpc.environment) as server:
        found = re.search(r"//(.+):\d+/mcp", server.place)
        assert found, server.place
        yield found[1], server.port


def test_the_measured_server_has_all_its_checks_in_place(address: tuple[str, int]) -> None:
    """Each request is the client's own but for one header."""
    host, port = address
    envelope = {
        "protocolVersion": "2026-07-28",
        "clientCapabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    call = {
        "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in envelope.items()},
        "name": "echo",
        "arguments": {"text": "a"},
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    headers = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {roster.TOKEN}",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    wrong = {
        "Authorization": ("Bearer another", 401),
        "Host": ("example.com", 421),
        "Origin": ("https://example.com", 403),
        "Mcp-Name": ("add", 400),
        "Mcp-Method": ("tools/list", 400),
        "MCP-Protocol-Version": ("2025-11-25", 400),
    }
    statuses, expected = {}, {"": 200}
    for name, (value, status) in {"": ("", 200), **wrong}.items():
        connection = http.client.HTTPConnection(host, port, timeout=10)
        connection.request("POST", "/mcp", body, {**headers, **({name: value} if name else {})})
        statuses[name] = connection.getresponse().status
        connection.close()
        expected[name] = status
    assert statuses == expected


READY_LATE = """
import socket, sys, time
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    connection, _ = server.accept()
    assert connection.recv(1000).startswith(b"GET /readyz ")
    time.sleep(0.3)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    connection.recv(1)
"""


def test_a_start_over_http_ends_with_the_answer_of_readyz(fastrpc: Any) -> None:
    row, options = ROW["W8-http"], Options(rounds=1, starts=1)
    late = roster.Peer("late", {row.server: [sys.executable, "-S", "-c", READY_LATE, roster.PORT]})
    assert row.measure(row, late, options)["p50"] > 299
    for peer in (fastrpc, roster.peer_of("bare", sys.executable)):
        report = row.measure(row, peer, options)
        assert "void" not in report
        assert report["p50"] > 0


# --- roster, guard and report -----------------------------------------------------------------------


def test_who_cannot_serve_http_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "has_http", lambda python: False)
    for name in ("fastrpc", "python-loop", "ts-v1", "rmcp-pipes", "tower-mcp", "go-sdk"):
        assert not {roster.HTTP, roster.HTTP_ASGI} & roster.peer_of(name, sys.executable).commands.keys()
    assert roster.HTTP in roster.peer_of("rmcp", sys.executable).commands


def test_the_guard_asks_for_the_floor_over_http() -> None:
    row = ROW["W11-cpu"]
    assert row.name in guard.GUARDED
    assert (row.base, row.client, row.cores) == ("python-loop", ROW["W11"].client, 2)
    assert row.less_is_better
    assert row.bar is not None
    assert row.bar < 1


def test_w11_is_in_the_report_with_its_bars() -> None:
    row = ROW["W11"]
    speeds = {"fastrpc": 100_000.0, "python-loop": 70_000.0, "mcp-plain": 4_000.0, "rmcp": 80_000.0}
    speeds |= {"fastrpc-async": 90_000.0, "mcp": 4_500.0}
    runs = {peer: [{row.figure: speed}] * 2 for peer, speed in speeds.items()}
    entries = [figures.slim(figures.summary(row, roster.Peer(peer, {}), runs)) for peer in runs]
    document = {
        "created": "2026-01-02T03:04:05Z",
        "commit": "0123456789",
        "machine": {"processor": "A Processor", "cpus": 2, "load_before": 0.25},
        "versions": {"python": "3.11.7 (main)", "rmcp": {"version": "3.9.0"}},
        "options": {"rounds": 2},
        "rows": entries,
    }
    record = Record(document)
    lines = [line for line in report.bars(record).splitlines() if line.startswith("| W11 ")]
    assert lines[0].endswith("| 100 k calls/s | plain Python loop 70 k | 1.43 |  |  |  |")
    assert lines[1].endswith("|  | mcp (Python), plain 4,000 | 25 | ≥ 20× | ≥ 30× | holds |")
    assert lines[2].endswith("|  | rmcp 3.9 (Rust) 80 k | 1.25 | ≥ 1.3× | ≥ 2× | **missed** |")
    lines = [line for line in report.bars(record).splitlines() if line.startswith("| W11 async ")]
    assert lines[0].endswith("| 90 k calls/s | plain Python loop 70 k | 1.29 |  |  |  |")
    assert lines[1].endswith(
        "| times better than the best SDK |  | mcp (Python) 4,500 | 20 | ≥ 1× |  | holds |"
    )
    assert lines[2].endswith("|  | mcp (Python) 4,500 | 20 | ≥ 20× |  | holds |")
    assert "http" in report.charts_of(record)
    document["rows"] = [{**entry, "row": "W2"} for entry in entries]
    assert "http" not in report.charts_of(Record(document))
