"""Every way in which a call can end, over HTTP and over standard input and output: one record and one line of
the access log, and both say what the client saw.

Real processes, loopback only. Requests of 2026-07-28 and in a session of 2025-11-25, the fast path and the
application's (which an Origin takes), answers in one body and as events.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.http_server import HttpProcess
from support.outcomes import BESIDE_TOOLS, EXPECTED, WAYS, Lines, command
from support.protocol import envelope, message
from support.raw_http import Answer, Socket, head_of
from support.waiting import SECONDS, eventually

TOKENS = {"a-token-of-alice-of-16": "alice", "a-token-of-bob-of-16-0": "bob"}
ALICE, BOB = TOKENS
STATELESS, SESSION_VERSIONS = "2026-07-28", "2025-11-25"
WIRES = (STATELESS, SESSION_VERSIONS)
ROADS = ("straight", "application")
PAUSE_SECONDS = 0.001  # not 0.05: all records and lines are waited for, one after the other
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Outcomes(HttpProcess):
    """The server, what it has recorded, and its access log. `observed` is whether it records calls."""

    def __init__(self, folder: Any, *, observed: bool, **options: Any) -> None:
        self.observed = observed
        records_file, log_file = folder / "records", folder / "access.log"
        self.recorded, self.logged = Lines(records_file), Lines(log_file)
        more = {"records": str(records_file)} if observed else {}
        super().__init__(
            command=command(
                http="127.0.0.1:0",
                token_of=TOKENS,
                access_log=str(log_file),
                access_log_format="json",
                pause_seconds=PAUSE_SECONDS,
                **more,
                **options,
            )
        )
        self.last_id = 0

    def new_id(self) -> int:
        self.last_id += 1
        return self.last_id

    def records(self, id: int) -> list[Any]:
        return [line for line in self.recorded.now() if line["id"] == str(id)]

    def entries(self, id: int) -> list[Any]:
        return [line for line in self.logged.now() if line.get("id") == id]

    def entry(self, id: int) -> Any:
        """The one line of the access log about a request."""
        found = eventually(lambda: self.entries(id))
        assert len(found) == 1
        return found[0]

    def record(self, id: int) -> Any:
        found = eventually(lambda: self.records(id))
        assert len(found) == 1
        return found[0]


class Client:
    """Speaks one wire on one road, on a connection of its own for each request or on one that stays."""

    def __init__(self, server: Outcomes, wire: str, road: str, token: str = ALICE) -> None:
        self.server = server
        self.wire = wire
        self.road = road
        self.token = token
        self.session = ""
        if wire != STATELESS:
            params = {
                "protocolVersion": wire,
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            self.session = self.ask(message("initialize", params, id="hello")).headers["mcp-session-id"]
            assert self.ask(message("notifications/initialized")).status == 202

    def request(self, body: Any, method: str = "POST", path: str = "/mcp") -> bytes:
        text = b"" if body is None else json.dumps(body).encode()
        headers = [
            ("Host", "127.0.0.1"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Authorization", f"Bearer {self.token}"),
            ("Content-Length", str(len(text))),
        ]
        if self.road != "straight":
            headers.append(("Origin", "http://localhost"))
        if self.wire == STATELESS:
            headers.append(("MCP-Protocol-Version", STATELESS))
            if isinstance(body, dict) and "method" in body:
                headers.append(("Mcp-Method", body["method"]))
                if body["method"] in NAMED:
                    headers.append(("Mcp-Name", body["params"][NAMED[body["method"]]]))
        elif self.session:
            headers += [("MCP-Protocol-Version", self.wire), ("Mcp-Session-Id", self.session)]
        return head_of(headers, f"{method} {path} HTTP/1.1") + text

    def message(self, id: int | None, method: str, params: Any = None) -> Any:
        params = dict(params or {})
        if self.wire == STATELESS:
            params["_meta"] = envelope()
        return message(method, params, id=id)

    def send(self, data: bytes) -> Socket:
        connection = Socket(self.server.port)
        connection.send(data)
        return connection

    def ask(self, body: Any, method: str = "POST", path: str = "/mcp") -> Answer:
        with self.send(self.request(body, method, path)) as connection:
            return connection.answer()

    def begin(self, name: str, id: int, **arguments: Any) -> Socket:
        """Call a tool, and do not wait for its answer."""
        params = {"name": name, "arguments": arguments}
        return self.send(self.request(self.message(id, "tools/call", params)))

    def call(self, name: str, id: int, **arguments: Any) -> Answer:
        with self.begin(name, id, **arguments) as connection:
            return connection.answer()


@pytest.fixture(scope="module", params=[False, True], ids=["unobserved", "observed"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with Outcomes(tmp_path_factory.mktemp("outcomes"), observed=request.param) as server:
        yield server


@pytest.fixture(scope="module")
def unobserved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with Outcomes(tmp_path_factory.mktemp("unobserved"), observed=False) as server:
        yield server


def check(
    server: Outcomes, id: int, answer: Answer, outcome: str, method: str, name: str, caller: str = "alice"
) -> None:
    """One record and one line say what this client saw."""
    entry = server.entry(id)
    said = {key: entry[key] for key in ("caller", "method", "name", "status", "outcome")}
    expected = {"caller": caller, "method": method, "name": name, "status": answer.status, "outcome": outcome}
    assert said == expected
    assert entry["bytes_out"] == len(answer.body)
    assert entry["peer"].startswith("127.0.0.1:")
    assert entry["bytes_in"] > 0
    assert entry["duration_ms"] >= 0
    if server.observed:
        record = server.record(id)
        assert (record["outcome"], record["name"], record["caller"]) == (outcome, name, caller)


def is_error(answer: Answer) -> bool:
    found = answer.json
    return "error" in found or bool(found["result"].get("isError"))


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_tool_does_is_what_its_record_and_its_line_say(
    server: Outcomes, way: str, wire: str, road: str
) -> None:
    client = Client(server, wire, road)
    for how, outcome in EXPECTED.items():
        if how == "forbidden" and not server.observed and way != "thread":
            continue  # the test behind this one
        id = server.new_id()
        answer = client.call(way, id, how=how)
        assert is_error(answer) == (outcome != "ok")
        check(server, id, answer, outcome, "tools/call", way)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["inline", "context", "hooked", "coroutine", "waiting", "told"])
def test_a_refusal_of_the_guard_is_one_in_the_access_log_of_a_server_without_observers(
    unobserved: Outcomes, way: str, wire: str, road: str
) -> None:
    client = Client(unobserved, wire, road)
    client.call(way, unobserved.new_id(), how="ok")
    id = unobserved.new_id()
    check(unobserved, id, client.call(way, id, how="forbidden"), "refused", "tools/call", way)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
def test_resources_and_prompts_too(server: Outcomes, wire: str, road: str) -> None:
    client = Client(server, wire, road)
    for how, outcome in BESIDE_TOOLS.items():
        uri = f"docs://{how}"
        for method, name, params in (
            ("resources/read", uri, {"uri": uri}),
            ("prompts/get", "prompt", {"name": "prompt", "arguments": {"how": how}}),
        ):
            id = server.new_id()
            answer = client.ask(client.message(id, method, params))
            assert ("error" in answer.json) == (outcome != "ok")
            check(server, id, answer, outcome, method, name)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", WAYS)
def test_calls_that_never_reach_their_function(server: Outcomes, way: str, wire: str, road: str) -> None:
    client = Client(server, wire, road)
    for name, arguments, outcome in (
        (way, {}, "invalid"),
        (way, {"how": "ok", "times": "many"}, "invalid"),
        (f"no-{way}", {"how": "ok"}, "unknown"),
        (f"no-{way}", {"how": "ok"}, "unknown"),
    ):
        id = server.new_id()
        check(server, id, client.call(name, id, **arguments), outcome, "tools/call", name)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["waiting", "thread"])
def test_a_call_that_takes_too_long(server: Outcomes, way: str, wire: str, road: str) -> None:
    client = Client(server, wire, road)
    id, name = server.new_id(), f"{way}_too_long"
    answer = client.call(name, id, how="sleeps")
    assert "did not end" in answer.json["result"]["content"][0]["text"]
    check(server, id, answer, "timeout", "tools/call", name)
    assert server.entry(id)["duration_ms"] > 190
    client.call("release", server.new_id())


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_is_a_stream_of_events(server: Outcomes, wire: str, road: str) -> None:
    client = Client(server, wire, road)
    if wire == STATELESS:
        level = {"io.modelcontextprotocol/logLevel": "info"}
    else:
        level = {}
        client.ask(client.message(server.new_id(), "logging/setLevel", {"level": "info"}))
    for how, outcome in EXPECTED.items():
        if how == "forbidden" and not server.observed:
            continue
        id = server.new_id()
        body = client.message(id, "tools/call", {"name": "told", "arguments": {"how": how}})
        body["params"].setdefault("_meta", {}).update(level)
        answer = client.ask(body)
        if outcome != "refused":
            assert answer.headers["content-type"] == "text/event-stream"
        check(server, id, answer, outcome, "tools/call", "told")


@contextmanager
def begun(server: Outcomes, client: Client, way: str, id: int) -> Iterator[Any]:
    """A connection on which a call of a tool has been sent whose function runs now."""
    before = server.stderr.count("begun")
    with client.begin(way, id, how="x") as connection:
        eventually(lambda: server.stderr.count("begun") > before)
        yield connection


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_a_stateless_call_is_cancelled_when_its_client_goes(server: Outcomes, way: str, road: str) -> None:
    client = Client(server, STATELESS, road)
    id = server.new_id()
    with begun(server, client, way, id):
        pass
    entry = server.entry(id)
    assert (entry["status"], entry["outcome"], entry["name"]) == (None, "cancelled", way)
    if server.observed:
        assert server.record(id)["outcome"] == "cancelled"
    client.call("release", server.new_id())


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_a_call_in_a_session_goes_on_when_its_connection_ends(server: Outcomes, way: str, road: str) -> None:
    client = Client(server, SESSION_VERSIONS, road)
    id = server.new_id()
    with begun(server, client, way, id):
        pass
    assert server.entry(id)["outcome"] == "cancelled"  # no one saw an answer on this connection
    assert server.records(id) == []
    client.call("release", server.new_id())
    if server.observed:
        assert server.record(id)["outcome"] == "ok"  # it is kept for a client that comes back


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_a_call_in_a_session_that_its_client_cancels(server: Outcomes, way: str, road: str) -> None:
    client = Client(server, SESSION_VERSIONS, road)
    id = server.new_id()
    with begun(server, client, way, id) as connection:
        client.ask(message("notifications/cancelled", {"requestId": id}))
        connection.answer()
    assert server.entry(id)["outcome"] == "cancelled"
    if server.observed:
        assert server.record(id)["outcome"] == "cancelled"
    client.call("release", server.new_id())


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_a_call_whose_session_ends_says_that_its_client_saw_an_error(
    server: Outcomes, way: str, road: str
) -> None:
    client = Client(server, SESSION_VERSIONS, road)
    id = server.new_id()
    with begun(server, client, way, id) as connection:
        assert client.ask(None, "DELETE").status == 200
        assert connection.answer().code == -32603
    assert server.entry(id)["outcome"] == "protocol_error"
    Client(server, STATELESS, road).call("release", server.new_id())
    if server.observed:
        assert server.record(id)["outcome"] == "protocol_error"


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["coroutine", "waiting", "thread"])
def test_one_call_too_many(tmp_path: Any, way: str, wire: str, road: str) -> None:
    with Outcomes(tmp_path, observed=True, max_in_flight=1) as server:
        client = Client(server, wire, road)
        held, id = server.new_id(), server.new_id()
        with client.begin("hold", held, how="x") as connection:
            eventually(lambda: "begun" in server.stderr)
            answer = client.call(way, id, how="ok")
            assert answer.json["error"]["data"] == {"maxInFlight": 1}
            check(server, id, answer, "overloaded", "tools/call", way)
            client.call("release", server.new_id())
            connection.answer()


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
def test_each_caller_is_named_on_each_path_of_a_call(server: Outcomes, wire: str, road: str) -> None:
    clients = {caller: Client(server, wire, road, token) for token, caller in TOKENS.items()}
    for way in (*WAYS, "told"):
        for caller in ("alice", "bob", "alice"):
            id = server.new_id()
            check(server, id, clients[caller].call(way, id, how="ok"), "ok", "tools/call", way, caller)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wire", WIRES)
def test_a_guard_receives_the_caller_on_each_path_of_a_call(server: Outcomes, wire: str, road: str) -> None:
    clients = {caller: Client(server, wire, road, token) for token, caller in TOKENS.items()}
    for way in (*WAYS, "told"):
        for caller in ("alice", "bob", "alice"):
            answer = clients[caller].call(way, server.new_id(), how="who")
            assert answer.json["result"]["content"][0]["text"] == f"you are {caller}"
    for caller, client in clients.items():
        for method, params in (
            ("resources/read", {"uri": "docs://who"}),
            ("prompts/get", {"name": "prompt", "arguments": {"how": "who"}}),
        ):
            answer = client.ask(client.message(server.new_id(), method, params))
            assert answer.json["error"]["message"] == f"you are {caller}"


# --- standard input and output ------------------------------------------------------------------------------


class Pipes:
    """The server over standard input and output."""

    def __init__(self, folder: Any, wire: str, **options: Any) -> None:
        records_file = folder / "records"
        self.recorded = Lines(records_file)
        self.wire = wire
        self.process = subprocess.Popen(
            command(records=str(records_file), pause_seconds=PAUSE_SECONDS, **options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.last_id = 0
        if wire != STATELESS:
            params = {
                "protocolVersion": wire,
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            self.send(message("initialize", params, id="hello"))
            self.read()
            self.send(message("notifications/initialized"))

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def message(self, method: str, params: Any) -> Any:
        self.last_id += 1
        meta = {"_meta": envelope()} if self.wire == STATELESS else {}
        return message(method, {**params, **meta}, id=self.last_id)

    def call(self, name: str, **arguments: Any) -> Any:
        return self.message("tools/call", {"name": name, "arguments": arguments})

    def record(self, id: int) -> Any:
        found = eventually(lambda: [line for line in self.recorded.now() if line["id"] == str(id)])
        assert len(found) == 1
        return found[0]

    def begun(self) -> None:
        assert self.process.stderr is not None
        assert self.process.stderr.readline() == b"begun\n"


@pytest.mark.parametrize("wire", WIRES)
def test_over_pipes_every_outcome_has_one_record(tmp_path: Any, wire: str) -> None:
    with Pipes(tmp_path, wire) as pipes:
        expected = []
        for way in WAYS:
            cases = [(way, {"how": how}, outcome) for how, outcome in EXPECTED.items()]
            cases.append((way, {}, "invalid"))
            if way in ("waiting", "thread"):
                cases.append((f"{way}_too_long", {"how": "sleeps"}, "timeout"))
            for name, arguments, outcome in cases:
                body = pipes.call(name, **arguments)
                pipes.send(body)
                expected.append((body["id"], "tool", name, outcome, len(json_line(pipes))))
        pipes.send(pipes.call("no-such", how="ok"))
        expected.append((pipes.last_id, "tool", "no-such", "unknown", len(json_line(pipes))))
        for how, outcome in BESIDE_TOOLS.items():
            for kind, name, body in (
                ("resource", f"docs://{how}", pipes.message("resources/read", {"uri": f"docs://{how}"})),
                (
                    "prompt",
                    "prompt",
                    pipes.message("prompts/get", {"name": "prompt", "arguments": {"how": how}}),
                ),
            ):
                pipes.send(body)
                expected.append((body["id"], kind, name, outcome, len(json_line(pipes))))
        for id, kind, name, outcome, size in expected:
            record = pipes.record(id)
            found = (id, record["kind"], record["name"], record["outcome"], record["size"])
            assert found == (id, kind, name, outcome, size)


def json_line(pipes: Pipes) -> bytes:
    assert pipes.process.stdout is not None
    return pipes.process.stdout.readline()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_over_pipes_a_cancelled_call_and_one_too_many(tmp_path: Any, way: str, wire: str) -> None:
    with Pipes(tmp_path, wire, max_in_flight=1) as pipes:
        held = pipes.call(way, how="x")
        pipes.send(held)
        pipes.begun()
        for other in ("coroutine", "waiting", "thread"):
            too_many = pipes.call(other, how="ok")
            pipes.send(too_many)
            assert pipes.read()["id"] == too_many["id"]
            assert pipes.record(too_many["id"])["outcome"] == "overloaded"
        pipes.send(message("notifications/cancelled", {"requestId": held["id"]}))
        assert pipes.record(held["id"])["outcome"] == "cancelled"


@pytest.mark.parametrize("end", ["input", "both"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("way", ["hold", "hold_context", "hold_thread"])
def test_over_pipes_a_client_that_goes_has_cancelled(tmp_path: Any, way: str, wire: str, end: str) -> None:
    with Pipes(tmp_path, wire, drain_seconds=0.1) as pipes:
        held = pipes.call(way, how="x")
        pipes.send(held)
        pipes.begun()
        assert pipes.process.stdin is not None
        assert pipes.process.stdout is not None
        pipes.process.stdin.close()
        if end == "both":
            pipes.process.stdout.close()
        pipes.process.wait(SECONDS)
        assert pipes.record(held["id"])["outcome"] == "cancelled"
        pipes.process.stdin = open(os.devnull, "wb")
        pipes.process.stdout = open(os.devnull, "rb")
