"""Streams of events over HTTP that outlive their connections, what they keep, and the orderly end."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.http_sessions import (
    Server,
    Session,
    Stream,
    calling,
    given_up,
    http,
    peak_memory,
    refused,
    stateless_request,
    text_of,
)
from support.protocol import SESSION_VERSIONS, STATELESS, message
from support.raw_http import Closed
from support.waiting import eventually as until

from fastrpc.transports.http.streams import EventStream as Kept
from fastrpc.transports.http.streams import Store

DROPPED_STREAMS = 1000
LOG = "io.modelcontextprotocol/logLevel"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def numbers(messages: list[Any]) -> list[int]:
    """The numbers that `say` has said."""
    return [each["params"]["data"]["n"] for each in messages if "params" in each]


# --- events and their ids ---------------------------------------------------------------------------------


def test_a_stream_of_2025_11_25_begins_with_an_event_to_resume_from(server: Server) -> None:
    session = Session(server)
    with session.open(calling("say", count=1)) as stream, session.listen() as listening:
        for first in (stream.event(), listening.event()):
            assert first.data == ""
            assert first.retry is not None
            assert first.id
        events = stream.rest()
        assert [event.kind for event in events] == ["message", "message"]


@pytest.mark.parametrize("version", SESSION_VERSIONS[:-1])
def test_older_clients_get_no_event_without_a_message(server: Server, version: str) -> None:
    session = Session(server, version)
    with session.open(calling("say", count=1)) as stream, session.listen() as listening:
        assert [bool(event.data) for event in stream.rest()] == [True, True]
        server.call("change")
        assert listening.event().method == "notifications/tools/list_changed"


def test_event_ids_are_unique_in_the_session(server: Server) -> None:
    session = Session(server)
    ids = []
    with session.listen() as listening:
        for _ in range(3):
            with session.open(calling("say", count=3)) as stream:
                ids += [event.id for event in stream.rest()]
            server.call("change")
        ids += [listening.event().id for _ in range(4)]
    assert len(ids) == len(set(ids)) == 3 * 5 + 4
    assert None not in ids


# --- resuming ---------------------------------------------------------------------------------------------


def test_a_dropped_stream_is_resumed_from_its_last_event(server: Server) -> None:
    session = Session(server)
    with session.open(calling("hold", 7, name="dropped", say=True)) as stream:
        stream.event()
        said = stream.event()
        assert said.json["params"]["data"] == "dropped has begun"
    server.call("let_go", name="dropped")
    assert server.call("outcome", name="dropped") == "returned"  # going away has not cancelled it
    for _ in range(2):  # and it may be lost once more
        with session.listen(said.id) as resumed:
            (answer,) = resumed.messages()
            assert (answer["id"], text_of(answer)) == (7, "dropped")


def test_each_event_comes_once_over_a_thousand_dropped_streams(server: Server) -> None:
    session = Session(server)
    chance = random.Random(20251125)
    count = DROPPED_STREAMS + 200
    got: list[Any] = [{}]
    stream = session.open(calling("say", count=count, pause_ms=0.2, every=3))
    last = stream.event().id
    drops = 0
    while "result" not in got[-1]:
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            if "result" not in got[-1]:
                event = stream.event()
                last = event.id
                got.append(event.json)
        if drops < DROPPED_STREAMS and "result" not in got[-1]:
            if chance.random() < 0.3:  # the server may notice at once, or not before it writes
                stream.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            stream.close()
            drops += 1
            stream = session.listen(last)
            assert stream.event().data == ""
    stream.close()
    assert drops == DROPPED_STREAMS
    assert numbers(got) == list(range(count))
    assert text_of(got[-1]) == f"said {count}"


def test_a_resumed_stream_has_what_is_its_own_and_no_other(server: Server) -> None:
    session = Session(server)
    streams = [session.open(calling("hold", number, name=f"own {number}", say=True)) for number in range(3)]
    firsts = [stream.event().id for stream in streams]
    for stream in streams:
        assert stream.event().data
        stream.close()
    server.call("change")
    for number in reversed(range(3)):
        server.call("let_go", name=f"own {number}")
        with session.listen(firsts[number]) as resumed:
            said, answer = resumed.messages()
            assert said["params"]["data"] == f"own {number} has begun"
            assert (answer["id"], text_of(answer)) == (number, f"own {number}")


def test_a_resumed_stream_goes_on_while_the_call_runs(server: Server) -> None:
    session = Session(server, "2025-06-18")
    stream = session.open(calling("hold", name="later", say=True))
    said = stream.event()
    stream.close()
    with session.listen(said.id) as resumed:
        with pytest.raises(TimeoutError):
            resumed.next(0.05)
        server.call("let_go", name="later")
        assert text_of(resumed.message()) == "later"
        assert resumed.next() is None


def test_a_call_goes_on_though_what_runs_the_application_gives_its_request_up(server: Server) -> None:
    session = Session(server)
    answer = session.post(calling("hold", 1, name="silent"), **given_up("begun silent"))
    assert answer.status == 500
    stream = session.open(calling("hold", 2, name="loud", say=True), **given_up("sent loud"))
    first = stream.event()
    assert stream.is_cut()
    for name in ("silent", "loud"):
        server.call("let_go", name=name)
        assert server.call("outcome", name=name) == "returned"
    with session.listen(first.id) as resumed:
        assert text_of(resumed.messages()[-1]) == "loud"
    until(lambda: server.counts()["running"] == 0)
    until(lambda: server.counts()["readers"] == 0)
    stream.close()


@pytest.mark.parametrize(
    "id",
    [
        "x",
        "",
        "1",
        "-",
        "1-",
        "-1",
        "9999-0",
        "0-9999",
        "1-99",
        "1-1-1",
        "٣-٠",
        "1-1e3",
        "+1-0",
        "1" * 4000 + "-0",
    ],
)
def test_an_event_id_of_another_session_is_refused(server: Server, id: str) -> None:
    session = Session(server)
    with session.open(calling("say", count=2)) as stream:
        assert len(stream.rest()) == 4
    given = id.encode().decode("latin-1")  # as its bytes are on the wire
    with session.listen(given) as stream:
        refused(stream.answer(), 400)


def test_an_event_id_is_of_one_session_only(server: Server) -> None:
    session, another = Session(server), Session(server)
    with session.open(calling("say", count=5)) as stream:
        ids = [event.id for event in stream.rest()]
    with another.open(calling("say", count=1)) as stream:
        assert ids[0] == stream.event().id  # the same, and yet
        stream.rest()
    with another.listen(ids[0]) as resumed:
        assert numbers(resumed.messages()) == [0]
    with another.listen(ids[-1]) as resumed:
        refused(resumed.answer(), 400)


def test_who_listens_anew_takes_the_place_of_the_one_before(server: Server) -> None:
    session = Session(server)
    with session.listen() as first:
        assert first.event().data == ""
        with session.listen() as second:
            assert second.event().data == ""
            assert first.rest() == []
            server.call("change")
            assert second.message()["method"] == "notifications/tools/list_changed"


def test_what_happens_while_no_one_listens_is_reported_once(server: Server) -> None:
    session = Session(server)
    server.call("change")
    with session.listen() as stream:
        stream.event()
        event = stream.event()
        assert event.method == "notifications/tools/list_changed"
    server.call("change")
    with session.listen() as stream:
        stream.event()
        following = stream.event()
        assert following.id != event.id
        with pytest.raises(TimeoutError):
            stream.next(0.05)
    with session.listen(event.id) as stream:
        stream.event()
        assert stream.event().id == following.id


def test_a_call_goes_on_whose_client_has_gone_before_anything_was_said(server: Server) -> None:
    session = Session(server)
    stream = session.open(calling("hold", name="nobody hears"))
    server.call("begun", name="nobody hears")
    streams = server.counts()["streams"]
    stream.close()
    until(lambda: server.counts()["streams"] == streams + 1)  # it is noticed
    until(lambda: server.counts()["readers"] == 0)
    server.call("let_go", name="nobody hears")
    assert server.call("outcome", name="nobody hears") == "returned"
    until(lambda: server.counts()["running"] == 0)


def test_a_dropped_call_that_has_ended_does_not_hold_the_session(server: Server) -> None:
    session = Session(server)
    before = server.counts()["running"]
    for number in range(100):
        session.open(calling("say", number, count=1, pause_ms=1)).close()
    until(lambda: server.counts()["running"] == before)
    until(lambda: server.counts()["readers"] == 0)
    with session.open(calling("say", count=1)) as stream:
        stream.rest()
    assert server.counts()["streams"] <= 64 + 10 + 2 * server.counts()["sessions"]
    session.delete()


# --- polling: the client comes back for the rest ----------------------------------------------------------


def test_a_call_may_send_its_client_away_to_come_back_later(server: Server) -> None:
    session = Session(server)
    with session.open(calling("say", 3, count=6, polls=2)) as stream:
        *before, last = stream.rest()
        assert all("result" not in event.json for event in [*before, last] if event.data)
    got = [event.json for event in [*before, last] if event.data]
    id = last.id
    rounds = 1
    while "result" not in got[-1]:
        with session.listen(id) as stream:
            for event in stream.rest():
                id = event.id
                if event.data:
                    got.append(event.json)
        rounds += 1
        assert rounds < 10
    assert rounds > 1
    assert numbers(got) == list(range(6))
    assert text_of(got[-1]) == "said 6"


@pytest.mark.parametrize("version", [*SESSION_VERSIONS[:-1], STATELESS, None])
def test_other_clients_are_not_sent_away(server: Server, version: str | None) -> None:
    if version == STATELESS:
        arguments = {"name": "say", "arguments": {"count": 6, "polls": 2}}
        stream = server.open(stateless_request("tools/call", arguments, meta={LOG: "info"}))
    elif version is None:
        stream = server.open(http(body=calling("say", count=6, polls=2)))
    else:
        stream = Session(server, version).open(calling("say", count=6, polls=2))
    with stream:
        messages = stream.messages()
    assert numbers(messages) == list(range(6))
    assert text_of(messages[-1]) == "said 6"


# --- bounds -----------------------------------------------------------------------------------------------


def test_what_a_session_keeps_is_bounded_by_number() -> None:
    patch = {"transports.http.streams.SESSION_EVENTS": 10}
    with Server(patch=patch) as server:
        session = Session(server)
        with session.open(calling("hold", name="first", say=True)) as stream:
            first = stream.event().id
            server.call("let_go", name="first")
            stream.rest()
        with session.open(calling("say", 2, count=30)) as stream:
            second = stream.event().id
            stream.rest()
        with session.listen(second) as resumed:
            messages = resumed.messages()
            assert numbers(messages) == list(range(21, 30))
            assert text_of(messages[-1]) == "said 30"
        with session.listen(first) as resumed:
            assert resumed.messages() == []


def test_what_a_session_keeps_is_bounded_by_size_and_by_what_all_keep() -> None:
    patch = {
        "transports.http.streams.SESSION_BYTES": 50_000,
        "transports.http.streams.ALL_BYTES": 120_000,
    }
    with Server(patch=patch) as server:
        sessions = [Session(server) for _ in range(5)]
        for number, session in enumerate(sessions):
            with session.open(calling("say", count=30, size=5000)) as stream:
                assert numbers(stream.messages()) == list(range(30))
            assert server.counts()["kept"] <= min(50_000 * (number + 1), 120_000)
        assert server.counts()["kept"] > 100_000
        for session in sessions:
            session.delete()
        assert server.counts()["kept"] == 0


def test_what_no_one_listens_to_is_bounded() -> None:
    with Server(patch={"transports.http.sessions.STANDALONE_EVENTS": 5}) as server:
        session = Session(server)
        for number in range(20):
            session.post(message("resources/subscribe", {"uri": f"docs://{number}"}, 1))
            server.call("touch", uri=f"docs://{number}")
        with session.listen() as stream:
            uris = [stream.message()["params"]["uri"] for _ in range(5)]
            assert uris == [f"docs://{number}" for number in range(15, 20)]


def test_a_client_that_stops_reading_is_bounded_then_dropped_and_may_resume() -> None:
    with Server(limits={"read_seconds": 0.5}) as server:
        session = Session(server)
        before = peak_memory(server)
        stream = session.open(calling("say", count=20_000, size=20_000, every=10))
        first = stream.event().id
        until(lambda: server.counts()["running"] == 0, 30)
        assert peak_memory(server) - before < 60_000  # of 400 MB that were said
        until(lambda: server.counts()["readers"] == 0)
        assert stream.is_cut()
        stream.close()
        with session.listen(first) as resumed:
            messages = resumed.messages()
        assert text_of(messages[-1]) == "said 20000"
        said = numbers(messages)
        assert said == list(range(said[0], 20_000))
        assert 0 < said[0] < 20_000 - 100


class Line:
    """What a model of a stream keeps: number and bytes, the oldest first."""

    def __init__(self, stream: int, number: int, line: bytes) -> None:
        self.stream, self.number, self.line = stream, number, line


@settings(max_examples=150)
@given(
    events=st.integers(1, 6),
    size=st.integers(1, 60),
    all_events=st.integers(1, 12),
    all_size=st.integers(1, 120),
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.one_of(st.integers(0, 30), st.sampled_from(["forget", "read"]))),
        max_size=60,
    ),
)
def test_stores_keep_the_newest_within_all_their_bounds(
    events: int, size: int, all_events: int, all_size: int, steps: list[tuple[int, Any]]
) -> None:
    """Two sessions of two streams each: held against the plainest model after every step."""
    loop = asyncio.new_event_loop()
    try:
        outer = Store(all_events, all_size)
        stores = [Store(events, size, outer) for _ in range(2)]
        streams = [Kept(number, loop, stores[number // 2]) for number in range(4)]
        kept: list[Line] = []

        def shrink(mine: Callable[[Line], bool], most: int, most_bytes: int) -> None:
            while (own := [each for each in kept if mine(each)]) and (
                len(own) > most or (sum(len(each.line) for each in own) > most_bytes and len(own) > 1)
            ):
                kept.remove(own[0])

        for number, step in steps:
            stream = streams[number]
            if step == "forget":
                stream.forget()
                kept = [each for each in kept if each.stream != number]
            elif step == "read":
                own = [each for each in kept if each.stream == number]
                data, last = stream.part_after(0)
                ids = [line for line in data.split(b"\n") if line.startswith(b"id: ")]
                assert ids == [f"id: {number}-{each.number}".encode() for each in own]
                assert last == (own[-1].number if own else 0)
            else:
                line = b"x" * step
                stream.put(line)
                kept.append(Line(number, stream.last, line))
                shrink(lambda each, half=number // 2: each.stream // 2 == half, events, size)
                shrink(lambda each: True, all_events, all_size)
            for half, store in enumerate(stores):
                assert store.bytes == sum(len(each.line) for each in kept if each.stream // 2 == half)
            assert outer.bytes == sum(len(each.line) for each in kept)
            assert sum(len(each._events) for each in streams) == len(kept)
    finally:
        loop.close()


def test_what_has_gone_does_not_fill_a_store_beside_what_stays() -> None:
    loop = asyncio.new_event_loop()
    try:
        outer = Store(1000, 1000)
        store = Store(1000, 1000, outer)
        stays, goes = (Kept(number, loop, store) for number in range(2))
        stays.put(b"first")
        for _ in range(1000):
            goes.put(b"x")
            goes.forget()
            assert len(store._events) <= 70
            assert len(outer._events) <= 70
        assert stays.part_after(0)[1] == 1
    finally:
        loop.close()


# --- the end of the server --------------------------------------------------------------------------------


def test_calls_in_flight_end_within_the_grace_time_and_streams_end_with_an_event() -> None:
    with Server(drain_seconds=10) as server:
        session = Session(server)
        new = server.open(stateless_request("tools/call", {"name": "hold", "arguments": {"name": "new"}}))
        wanted = {"notifications": {"toolsListChanged": True}}
        changes = server.open(stateless_request("subscriptions/listen", wanted, "changes"))
        assert changes.message()["method"] == "notifications/subscriptions/acknowledged"
        listening = session.listen()
        listening.event()
        old = session.open(calling("wait", 1, ms=400))
        said = session.open(calling("say", 2, count=20, pause_ms=25))
        assert said.message()
        releasing = Stream(server.port)  # a connection that exists already
        server.call("begun", name="new")
        server.process.send_signal(signal.SIGTERM)
        farewell = listening.event()
        assert (farewell.data, listening.next()) == ("", None)
        assert farewell.retry is not None
        assert farewell.retry >= 5000
        assert farewell.id == "0-0"
        ending = changes.message()
        assert ending["id"] == "changes"
        assert ending["result"]["resultType"] == "complete"
        assert changes.next() is None
        assert old.answer().text == "waited"
        assert numbers(said.messages())[-1] == 19
        with pytest.raises(ConnectionRefusedError):
            Stream(server.port)
        new.close()  # which would have waited for ten seconds
        code, errors = server.ended()
        assert (code, errors) == (0, "")
        for stream in (changes, listening, old, said, releasing):
            stream.close()


def test_calls_that_do_not_end_in_time_are_answered_with_an_error() -> None:
    with Server(drain_seconds=0.2) as server:
        session = Session(server)
        older = Session(server, "2025-03-26")
        silent = server.open(
            stateless_request("tools/call", {"name": "hold", "arguments": {"name": "a"}}, "a")
        )
        arguments = {"name": "b", "say": True}
        loud = server.open(
            stateless_request("tools/call", {"name": "hold", "arguments": arguments}, "b", meta={LOG: "info"})
        )
        old = session.open(calling("hold", "c", name="c"))
        old_loud = session.open(calling("hold", "d", name="d", say=True))
        batch = older.open([message("ping", id="e"), calling("hold", "f", name="f")])
        sessionless = server.open(http(body=calling("hold", "g", name="g")))
        for name in "abcdfg":
            server.call("begun", name=name)
        listening = older.listen()
        assert listening.head.status == 200
        code, errors = server.end()
        assert (code, errors) == (0, "")
        for stream, id, status in ((silent, "a", 503), (old, "c", 200), (sessionless, "g", 200)):
            answer = stream.answer()
            assert (answer.status, answer.json["id"]) == (status, id)
            assert answer.json["error"] == {"code": -32603, "message": "The server has ended"}
        for stream, id in ((loud, "b"), (old_loud, "d")):
            assert stream.message()["method"] == "notifications/message"
            (last,) = stream.messages()
            assert (last["id"], last["error"]["code"]) == (id, -32603)
        answers = {each["id"]: each for each in batch.answer().json}
        assert answers["e"]["result"] == {}
        assert answers["f"]["error"]["code"] == -32603
        assert listening.rest() == []
        for stream in (silent, loud, old, old_loud, batch, sessionless, listening):
            stream.close()


def test_an_application_that_ends_while_its_host_goes_on_lets_nothing_in() -> None:
    with Server() as server:
        session = Session(server)
        with session.listen() as listening, server.open(http("GET", "/healthz")) as kept:
            listening.event()
            assert kept.answer().status == 200
            server.call("stop", grace_seconds=0.1)
            assert listening.event().retry == 5000
            for request in (
                stateless_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}}),
                session.request(calling("echo", text="hi")),
                session.request(method="GET"),
                http("GET", "/sse"),
            ):
                answer = server.ask(request)
                refused(answer, 503)
                assert int(answer.headers["retry-after"]) > 0
            ready = server.ask(http("GET", "/readyz", token=None))
            assert (ready.status, ready.json) == (503, {"status": "stopping"})
            assert server.ask(http("GET", "/healthz", token=None)).status == 200


def test_a_server_without_anything_to_end_ends_at_once() -> None:
    with Server(drain_seconds=60) as server:
        Session(server)
        with Stream(server.port) as idle:
            assert server.end() == (0, "")
            with pytest.raises(Closed):
                idle.next()
