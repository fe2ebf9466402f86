"""All bodies together are bounded in bytes: one more is answered 503, small ones are always served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.raw_http import Answer, Server, Socket, call, call_body, head_of, headers
from support.waiting import eventually

CLIENT = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
MEGABYTE = 1024 * 1024
BODY = call_body("echo", {"text": "x" * 700_000})
HEAD = head_of(headers(BODY))


@pytest.fixture(scope="module", params=[True, False], ids=["straight", "regular path"])
def narrow(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose bodies have a megabyte together: two of these do not fit."""
    with Server(hot=request.param, max_body=MEGABYTE, max_bodies=MEGABYTE) as server:
        yield server


def has_no_room(answer: Answer) -> bool:
    if answer.status != 503:
        return False
    assert answer.headers["retry-after"] == "5"
    assert answer.headers["connection"] == "close"
    assert answer.code == -31001
    assert "all bodies together" in answer.json["error"]["message"]
    return True


def begin(server: Server, size: int) -> Socket:
    """Send a head and so much of its body."""
    connection = server.socket()
    connection.send(HEAD, BODY[:size])
    return connection


def is_full(server: Server) -> bool:
    return has_no_room(server.ask(HEAD + BODY))


def stays(server: Server) -> bool:
    """Whether the call of `stay` runs. Before it has its room, a body that asks for some could take it."""
    return server.ask(call("count_staying", {})).text == "1"


def in_session(method: str, params: dict[str, Any], session: str = "") -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    given = [(name, value) for name, value in headers(body) if not name.lower().startswith("mcp-")]
    return head_of([*given, *([("Mcp-Session-Id", session)] if session else [])]) + body


def echoes(server: Server) -> bool:
    return server.ask(HEAD + BODY).status == 200


def test_a_body_for_which_there_is_no_room_is_refused_at_its_head(narrow: Server) -> None:
    with begin(narrow, 600_000) as first:
        eventually(lambda: is_full(narrow))
        assert has_no_room(narrow.ask(HEAD))
        assert narrow.ask(call()).text == "hello"
        first.send(BODY[600_000:])
        assert first.answer().text == "x" * 700_000
    assert echoes(narrow)


def test_bodies_that_grow_at_once_give_way_to_one_another(narrow: Server) -> None:
    """Neither says how long it will be: the one that finds no room is refused, and the other served."""
    given = [pair for pair in headers(BODY) if pair[0] != "Content-Length"]
    head = head_of([*given, ("Transfer-Encoding", "chunked")])
    half = b"%x\r\n%b\r\n" % (450_000, BODY[:450_000])
    rest = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY) - 450_000, BODY[450_000:])
    with narrow.socket() as one, narrow.socket() as other, narrow.socket() as third:
        for connection in (one, other, third):
            connection.send(head, half)
        assert eventually(lambda: [each for each in (one, other, third) if each.has_more()])
        left = [each for each in (one, other, third) if not each.has_more()]
        for each in left:
            each.send(rest)
        answers = [each.answer() for each in (one, other, third)]
        assert sorted(answer.status for answer in answers)[0] == 200
        assert has_no_room(max(answers, key=lambda answer: answer.status))
    assert echoes(narrow)


def test_a_body_counts_until_its_call_is_over(narrow: Server) -> None:
    body = call_body("stay", {"text": "x" * 700_000})
    with narrow.socket() as connection:
        connection.send(head_of(headers(body, "stay")) + body)
        eventually(lambda: stays(narrow))
        eventually(lambda: is_full(narrow))
        narrow.ask(call("release", {}))
        assert connection.answer().text == "stayed"
    assert eventually(lambda: echoes(narrow))


def test_a_call_that_goes_on_in_its_session_without_its_client_still_counts(narrow: Server) -> None:
    with narrow.socket() as connection:
        connection.send(in_session("initialize", {"protocolVersion": "2025-11-25", **CLIENT}))
        session = connection.answer().headers["mcp-session-id"]
        arguments = {"name": "stay", "arguments": {"text": "x" * 700_000}}
        connection.send(in_session("tools/call", arguments, session))
        eventually(lambda: stays(narrow))
        eventually(lambda: is_full(narrow))
    for _ in range(5):
        assert is_full(narrow)
    narrow.ask(call("release", {}))
    assert eventually(lambda: echoes(narrow))


def test_a_client_that_has_gone_gives_its_room_back(narrow: Server) -> None:
    begin(narrow, 600_000).plain.close()
    assert eventually(lambda: echoes(narrow))


def test_who_sends_too_slowly_is_cut_and_its_room_is_free() -> None:
    with (
        Server(max_body=MEGABYTE, max_bodies=MEGABYTE, body_seconds=0.6) as server,
        begin(server, 600_000) as slow,
    ):
        assert slow.answer().status == 408
        assert eventually(lambda: echoes(server))
