"""What clients may have a server keep: bytes of a session, of a caller, and of all."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.in_memory import connected

from fastrpc import Server
from fastrpc.errors import InvalidParams, InvalidRequest, Overloaded
from fastrpc.protocol.lifecycle import SessionState
from fastrpc.quotas import SESSION_BYTES, Quota, Quotas, size_of
from fastrpc.transports.memory import MemoryTransport

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


@settings(max_examples=200)
@given(
    limits=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    steps=st.lists(st.tuples(st.integers(0, 1), st.integers(-4, 6)), max_size=40),
)
def test_no_quota_holds_more_than_its_limit_nor_loses_count(
    limits: tuple[int, int, int], steps: list[tuple[int, int]]
) -> None:
    outer = Quota(limits[2])
    quotas = [Quota(limits[0], outer), Quota(limits[1], outer)]
    kept = [0, 0]
    for number, size in steps:
        if size <= 0:
            size = min(-size, kept[number])
            quotas[number].release(size)
            kept[number] -= size
        elif quotas[number].take(size):
            kept[number] += size
        else:
            assert kept[number] + size > limits[number] or sum(kept) + size > limits[2]
        assert [quota.used for quota in quotas] == kept
        assert outer.used == sum(kept) <= limits[2]
        assert all(used <= limit for used, limit in zip(kept, limits, strict=False))
    for quota in quotas:
        quota.close()
        assert not quota.take(1)
    assert outer.used == 0


def test_room_is_made_in_what_is_around_a_quota_and_not_for_what_it_may_not_have() -> None:
    outer = Quota(10)
    idle = [Quota(10, outer) for _ in range(3)]
    for quota in idle:
        assert quota.take(3)
    asked = Quota(8, outer)
    given_up = []

    def make_room() -> bool:
        if not idle:
            return False
        given_up.append(idle.pop())
        given_up[-1].close()
        return True

    outer.make_room = make_room
    assert not asked.take(9)
    assert given_up == []
    assert asked.take(4)
    assert len(given_up) == 1
    assert not Quota(20, outer).take(11)


def test_a_callers_quota_is_forgotten_with_all_that_it_counts() -> None:
    quotas = Quotas()
    session = Quota(100, quotas.of("somebody"))
    assert session.take(60)
    assert quotas.of("somebody") is session.outer
    assert quotas.used == 60
    session.close()
    del session
    gc.collect()
    assert len(quotas._callers) == 0


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        [{}] * 100_000,
        {str(number): number for number in range(100_000)},
        [[[["\xe9" * 1000]]]] * 1000,
        [True, None, 1.5] * 50_000,
    ],
    ids=["text", "empty objects", "numbers", "nested", "constants"],
)
def test_the_size_of_a_value_is_about_its_memory(value: Any) -> None:
    import tracemalloc

    text = json.dumps(value)
    tracemalloc.start()
    copy = json.loads(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken * 0.7 < size_of(copy, 10**9) < taken * 5
    assert size_of(copy, 1000) > 1000


def test_no_more_is_looked_at_than_it_takes() -> None:
    class Counted(list[Any]):
        def __iter__(self) -> Any:
            nonlocal looks
            looks += 1
            return super().__iter__()

    looks = 0
    assert size_of([Counted([1, 2]) for _ in range(10_000)], 500) > 500
    assert looks == 0


# --- sessions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", ["clientInfo", "capabilities"])
def test_what_a_client_says_of_itself_is_bounded(member: str) -> None:
    session = SessionState()
    session.agree(HELLO)
    session.ready()
    with pytest.raises(InvalidParams, match="more than the 1048576 bytes that a session may have kept"):
        session.agree({**HELLO, "protocolVersion": "2025-06-18", member: {"name": "x" * SESSION_BYTES}})
    assert (session.version, session.state) == ("2025-11-25", "ready")  # what was agreed on holds
    used = session.quota.used
    for _ in range(100):  # each takes the place of the one before
        session.agree({**HELLO, member: {"name": "x" * (SESSION_BYTES // 2)}})
    session.agree(HELLO)
    assert session.quota.used == used


def test_subscriptions_are_bounded_and_count_once() -> None:
    session = SessionState()
    session.subscribe("docs://a")
    once = session.quota.used
    session.subscribe("docs://a")
    assert session.quota.used == once
    session.unsubscribe("docs://a")
    session.unsubscribe("docs://a")
    assert session.quota.used == 0
    with pytest.raises(InvalidParams, match="subscriptions: more than"):
        session.subscribe("docs://" + "x" * SESSION_BYTES)

    def subscribe_to_many() -> None:
        for number in range(SESSION_BYTES):
            session.subscribe(f"docs://{number}")

    with pytest.raises(InvalidParams, match="subscriptions: more than"):
        subscribe_to_many()
    assert 1000 < len(session.subscriptions) < 10_000
    assert session.quota.used <= SESSION_BYTES


def test_roots_that_are_too_large_are_not_remembered() -> None:
    session = SessionState()
    roots = [{"uri": "file:///a"}]
    for _ in range(3):
        session.take_roots(roots)
    assert session.roots is roots
    used = session.quota.used
    session.take_roots([{"uri": "file:///" + "x" * SESSION_BYTES}])
    assert session.roots is None
    session.take_roots(roots)
    assert session.quota.used == used
    session.take_roots(None)
    assert session.quota.used == 0


def test_when_others_have_all_the_room_the_server_is_busy() -> None:
    outer = Quota(2000)
    first, second = SessionState(), SessionState()
    first.quota.outer = second.quota.outer = outer
    first.agree({**HELLO, "clientInfo": {"name": "x" * 1500}})
    with pytest.raises(Overloaded, match="no room to keep capabilities and clientInfo"):
        second.agree({**HELLO, "clientInfo": {"name": "x" * 1500}})
    assert second.version is None
    first.quota.close()
    second.agree({**HELLO, "clientInfo": {"name": "x" * 1500}})


def test_what_needs_a_session_is_refused_where_each_request_may_be_anothers() -> None:
    session = SessionState()
    session.lasting = False
    with pytest.raises(InvalidRequest, match="resources/subscribe: needs a session"):
        session.subscribe("docs://a")


# --- streams of changes -----------------------------------------------------------------------------------

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def listen(id: Any, uris: Any) -> bytes:
    params = {"notifications": {"resourceSubscriptions": uris}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params}
    return json.dumps(message).encode()


def served(app: Server) -> tuple[Any, MemoryTransport, list[Any]]:
    """Return a dispatcher of a server, how to send to it, and what it has sent."""
    lines: list[Any] = []
    dispatcher = app.connect()
    transport = connected(dispatcher.connection, lambda line: lines.append(json.loads(line)))
    return dispatcher, transport, lines


def resources() -> Server:
    app = Server("t")

    @app.resource("docs://{name}")
    def page(name: str) -> str:
        return name

    return app


@pytest.mark.parametrize(
    ("id", "uris"),
    [
        (1, ["docs://" + "x" * SESSION_BYTES]),
        (1, [f"docs://{number}" for number in range(10_000)]),
        (1, [""] * 1_000_000),
        ("x" * SESSION_BYTES, ["docs://a"]),
    ],
)
def test_what_a_stream_of_changes_keeps_is_bounded(id: Any, uris: list[str]) -> None:
    app = resources()
    _, transport, lines = served(app)
    transport.send(listen(id, uris))
    assert lines[-1]["error"]["code"] == -32602
    assert lines[-1]["error"]["message"].startswith("notifications")
    assert app.runtime.quotas.used == 0
    transport.send(listen(2, ["docs://a"]))
    assert lines[-1]["method"] == "notifications/subscriptions/acknowledged"


def test_streams_of_changes_are_bounded_together_and_free_what_they_kept() -> None:
    app = resources()
    dispatcher, transport, lines = served(app)
    uris = [f"docs://{'x' * 1000}/{number}" for number in range(600)]
    count = 0
    while "error" not in (lines[-1] if lines else {}):
        count += 1
        transport.send(listen(count, uris))
    assert lines[-1]["error"]["code"] == -31001
    assert 15 < count < 40
    transport.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    transport.send(listen("again", uris))
    assert "error" not in lines[-1]
    app.resource_updated(uris[599])
    assert sum(line.get("method") == "notifications/resources/updated" for line in lines) == count - 1
    dispatcher.changes.end_listening()
    assert app.runtime.quotas.used == 0
    transport.send(listen("last", uris))
    assert app.runtime.quotas.used > 600_000
    dispatcher.close()
    assert app.runtime.quotas.used == 0
