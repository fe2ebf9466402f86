"""What a client may ask, when, and in which version: the state table, through the real parser."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.in_memory import connected

from fastrpc import Server
from fastrpc.errors import InvalidParams, Overloaded, suggest
from fastrpc.protocol.lifecycle import AGREED, LOG_LEVELS, NEW, READY, SessionState, bytes_of_uri
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS
from fastrpc.quotas import Quota

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Peer:
    """A raw peer in memory: sends objects or bytes, keeps what comes back."""

    def __init__(self, **options: Any) -> None:
        self.app = Server("unit", version="1.2", **options)

        @self.app.tool(run="inline")
        def echo(text: str) -> str:
            return text

        self.lines: list[bytes] = []
        self.transport = connected(self.app.connect().connection, self.lines.append)

    def send(self, message: Any) -> list[Any]:
        """Send one message; return all that came back at once."""
        self.lines.clear()
        self.transport.send(message if isinstance(message, bytes) else json.dumps(message).encode())
        return [json.loads(line) for line in self.lines]

    def ask(self, method: str, params: Any = None, id: Any = 1) -> Any:
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        (answer,) = self.send(message if params is None else {**message, "params": params})
        assert answer["id"] == id
        return answer

    def initialize(self, version: str = SESSION_VERSIONS[-1]) -> Any:
        client = {"name": "t", "version": "1"}
        return self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})


def code(answer: Any) -> int:
    return answer["error"]["code"]


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_each_version_with_a_handshake_is_agreed_to(version: str) -> None:
    result = Peer(instructions="be kind").initialize(version)["result"]
    assert result == {
        "protocolVersion": version,
        "capabilities": {"logging": {}, "tools": {"listChanged": True}},
        "serverInfo": {"name": "unit", "version": "1.2"},
        "instructions": "be kind",
    }


@pytest.mark.parametrize("version", [STATELESS, "1999-01-01", "", "v2"])
def test_an_unknown_version_is_answered_with_the_latest_that_has_a_handshake(version: str) -> None:
    assert Peer().initialize(version)["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 1},
        {"protocolVersion": "2025-11-25", "capabilities": []},
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": "me"},
    ],
)
def test_a_malformed_initialize_is_refused_and_agrees_to_nothing(params: Any) -> None:
    peer = Peer()
    assert code(peer.ask("initialize", params)) == -32602
    assert code(peer.ask("tools/list")) == -32600


def test_before_the_handshake_only_ping_is_served() -> None:
    peer = Peer()
    assert peer.ask("ping")["result"] == {}
    for method in ("tools/list", "tools/call", "nonsense"):
        answer = peer.ask(method, {"name": "echo", "arguments": {"text": "x"}})
        assert code(answer) == -32600
        assert "initialize" in answer["error"]["message"]


def test_a_request_with_an_envelope_is_served_before_and_after_a_handshake() -> None:
    peer = Peer()
    params = {"_meta": ENVELOPE, "name": "echo", "arguments": {"text": "hi"}}
    for _ in range(2):
        result = peer.ask("tools/call", params)["result"]
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "unit", "version": "1.2"}
        peer.initialize()
    assert "resultType" not in peer.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})["result"]


def test_discover_needs_no_handshake_but_its_envelope() -> None:
    peer = Peer()
    result = peer.ask("server/discover", {"_meta": ENVELOPE})["result"]
    assert result["supportedVersions"] == [STATELESS]
    assert result["resultType"] == "complete"
    assert isinstance(result["ttlMs"], int)
    assert result["cacheScope"] in ("public", "private")
    assert code(peer.ask("server/discover")) == -32602


@pytest.mark.parametrize("missing", list(ENVELOPE))
def test_an_incomplete_envelope_is_minus_32602(missing: str) -> None:
    meta = {key: value for key, value in ENVELOPE.items() if key != missing}
    assert code(Peer().ask("server/discover", {"_meta": meta})) == -32602


@pytest.mark.parametrize("version", ["v999.0.0", "2025-11-25"])
def test_an_envelope_of_another_version_names_the_versions_that_are_served(version: str) -> None:
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": version}
    answer = Peer().ask("tools/list", {"_meta": meta})
    assert code(answer) == -32022
    assert answer["error"]["data"] == {"supported": [STATELESS], "requested": version}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "unknown/method"])
def test_methods_of_the_handshake_do_not_exist_in_2026_07_28(method: str) -> None:
    assert code(Peer().ask(method, {"_meta": ENVELOPE})) == -32601


def test_an_unknown_method_names_its_nearest() -> None:
    peer = Peer()
    peer.initialize()
    answer = peer.ask("tools/lst")
    assert code(answer) == -32601
    assert "tools/list" in answer["error"]["message"]


def test_a_second_initialize_begins_anew() -> None:
    peer = Peer()
    peer.initialize("2024-11-05")
    assert peer.initialize("2025-06-18")["result"]["protocolVersion"] == "2025-06-18"


def test_notifications_and_stray_responses_are_silent() -> None:
    peer = Peer()
    peer.initialize()
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "nobody"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "no/such/thing"},
        {"jsonrpc": "1.0", "method": "no/such/thing"},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
    ):
        assert peer.send(message) == []


# --- batches --------------------------------------------------------------------------------------------


def test_a_batch_is_answered_as_one_array_in_2025_03_26() -> None:
    peer = Peer()
    peer.initialize("2025-03-26")
    (answers,) = peer.send(
        [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": "b", "method": "tools/call",
             "params": {"name": "echo", "arguments": {"text": "hi"}}},
            {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {}},
            7,
            [],
        ]
    )  # fmt: skip
    assert [answer["id"] for answer in answers] == [1, "b", 3, None, None]
    assert answers[1]["result"]["content"][0]["text"] == "hi"
    assert [code(answer) for answer in answers[2:]] == [-32600] * 3


def test_a_batch_of_notifications_is_silent() -> None:
    peer = Peer()
    peer.initialize("2025-03-26")
    assert peer.send([{"jsonrpc": "2.0", "method": "notifications/initialized"}]) == []


@pytest.mark.parametrize("version", [version for version in SESSION_VERSIONS if version != "2025-03-26"])
def test_other_versions_have_no_batches(version: str) -> None:
    peer = Peer()
    peer.initialize(version)
    (answer,) = peer.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert (answer["id"], code(answer)) == (None, -32600)


def test_an_empty_batch_is_an_invalid_request() -> None:
    peer = Peer()
    peer.initialize("2025-03-26")
    (answer,) = peer.send(b"[]")
    assert (answer["id"], code(answer)) == (None, -32600)


# --- ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id",
    [b"1", b'"1"', b"-7", b"0", b"9223372036854775808", b"18446744073709551616", b"1" * 400, b'"\\u0000"',
     b'""', b'"\\u00e9"', '"é"'.encode(), b'"a\\"b"', b'"' + b"x" * 100_000 + b'"'],
)  # fmt: skip
def test_ids_come_back_with_their_exact_text(id: bytes) -> None:
    peer = Peer()
    peer.initialize()
    for method in (b'"ping"', b'"tools/call","params":{"name":"echo","arguments":{"text":"x"}}'):
        peer.send(b'{"jsonrpc":"2.0","id":' + id + b',"method":' + method + b"}")
        assert peer.lines[0].startswith(b'{"jsonrpc":"2.0","id":' + id + b',"result":')


@pytest.mark.parametrize("id", [b"true", b"null", b"1.0", b"1.5", b"1e2", b"[]", b"{}"])
def test_other_ids_are_refused(id: bytes) -> None:
    (answer,) = Peer().send(b'{"jsonrpc":"2.0","id":' + id + b',"method":"ping"}')
    assert (answer["id"], code(answer)) == (None, -32600)


# --- lists ----------------------------------------------------------------------------------------------


def add_numbered(app: Server, count: int) -> None:
    for number in range(count):
        app.tool(name=f"tool{number}", run="inline")(lambda: None)


def test_a_list_is_paged_and_cursors_survive_changes() -> None:
    peer = Peer(page_size=2)
    add_numbered(peer.app, 4)
    peer.initialize()
    first = peer.ask("tools/list")["result"]
    assert [tool["name"] for tool in first["tools"]] == ["echo", "tool0"]
    peer.app.remove_tool("echo")
    second = peer.ask("tools/list", {"cursor": first["nextCursor"]})["result"]
    assert [tool["name"] for tool in second["tools"]] == ["tool1", "tool2"]
    last = peer.ask("tools/list", {"cursor": second["nextCursor"]})["result"]
    assert [tool["name"] for tool in last["tools"]] == ["tool3"]
    assert "nextCursor" not in last


@pytest.mark.parametrize("cursor", ["", "x", "!!!", "YWZ0ZXI6bm9ib2R5", 7])
def test_an_unreadable_cursor_is_minus_32602(cursor: Any) -> None:
    peer = Peer()
    peer.initialize()
    assert code(peer.ask("tools/list", {"cursor": cursor})) == -32602


def test_a_removed_tool_is_neither_listed_nor_called() -> None:
    peer = Peer()
    peer.initialize()
    call = {"name": "echo", "arguments": {"text": "x"}}
    assert "result" in peer.ask("tools/call", call)
    assert len(peer.ask("tools/list")["result"]["tools"]) == 1
    peer.app.remove_tool("echo")
    assert peer.ask("tools/list")["result"]["tools"] == []
    assert code(peer.ask("tools/call", call)) == -32602


def test_an_unknown_tool_names_its_nearest() -> None:
    peer = Peer()
    peer.initialize()
    answer = peer.ask("tools/call", {"name": "ecko", "arguments": {}})
    assert code(answer) == -32602
    assert "echo" in answer["error"]["message"]


def test_names_that_were_meant_are_reported_nearest_first_three_at_most_whatever_their_capitals() -> None:
    known = ["other", "list_dir", "list_of_files", "List_Files", "listfile"]
    assert suggest("LIST_FILE", known) == ["List_Files", "listfile", "list_of_files"]
    assert suggest("LIST_FILE", known, 1) == ["List_Files"]
    assert suggest("nothing like it", known) == []


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": "echo", "arguments": []}, {"name": "echo", "arguments": None}]
)
def test_malformed_calls_are_minus_32602(params: Any) -> None:
    peer = Peer()
    peer.initialize()
    assert code(peer.ask("tools/call", params)) == -32602


# --- what a session keeps -----------------------------------------------------------------------------------

CLIENT = {"protocolVersion": SESSION_VERSIONS[-1], "capabilities": {}, "clientInfo": {"name": "t"}}


def test_a_session_is_ready_only_after_what_was_agreed() -> None:
    session = SessionState()
    session.ready()
    assert session.state == NEW
    session.agree(CLIENT)
    assert session.state == AGREED
    session.ready()
    assert session.state == READY
    session.ready()
    assert session.state == READY


def test_roots_that_are_given_up_give_back_what_they_took_and_no_more() -> None:
    session = SessionState()
    for _ in range(2):
        session.agree(CLIENT)
        kept = session.quota.used
        session.take_roots(None)
        assert session.quota.used == kept
        session.take_roots([{"uri": "file:///a"}])
        assert session.quota.used > kept
        session.take_roots(None)
        assert session.quota.used == kept


def test_a_second_handshake_gives_back_what_the_first_took() -> None:
    session = SessionState()
    session.agree(CLIENT)
    kept = session.quota.used
    assert kept > 0
    session.take_roots([{"uri": "file:///a"}])
    session.agree(CLIENT)
    assert session.quota.used == kept


def test_roots_before_a_handshake_give_back_what_they_took_too() -> None:
    session = SessionState()
    session.take_roots([{"uri": "file:///a"}])
    session.take_roots(None)
    assert session.quota.used == 0


def test_a_subscription_that_is_given_up_gives_back_what_it_took_and_another_none_does() -> None:
    session = SessionState()
    session.subscribe("docs://a")
    kept = session.quota.used
    session.unsubscribe("docs://b")
    assert (session.quota.used, list(session.subscriptions)) == (kept, ["docs://a"])
    session.unsubscribe("docs://a")
    assert (session.quota.used, list(session.subscriptions)) == (0, [])


def test_the_levels_of_logs_are_in_the_order_of_rfc_5424() -> None:
    severities = list(LOG_LEVELS.values())
    assert severities == sorted(set(severities))
    assert next(iter(LOG_LEVELS)) == "debug"


def test_what_a_session_may_keep_and_there_is_no_memory_for_is_an_overload() -> None:
    session = SessionState()
    size = bytes_of_uri("docs://a")
    session.quota = Quota(size, Quota(0))
    with pytest.raises(Overloaded, match="no room to keep subscriptions"):
        session.subscribe("docs://a")
    session.quota = Quota(size - 1)
    with pytest.raises(InvalidParams, match=f"more than the {size - 1} bytes"):
        session.subscribe("docs://a")
    session.quota = Quota(size)
    session.subscribe("docs://a")
    assert session.quota.used == size
