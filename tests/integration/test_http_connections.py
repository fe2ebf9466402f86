"""Which connection gives way when a server has as many as it may: those that have sent no whole request go
first, whoever has been served stays, and no one is shut out by connections that do nothing (raw sockets).
"""

from __future__ import annotations

import random
import resource
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raw_http import Answer, Server, Socket, call, head_of
from support.waiting import eventually

from fastrpc.transports.http.connections import BEGUN, IDLE, ByAddress, ConnectionTable, address_of
from fastrpc.transports.http.limits import ConnectionLimits

PLACES = 40
OTHER = "127.0.0.2"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNTOKENED = head_of([("Host", "localhost"), ("Content-Length", "1000")], "POST /mcp HTTP/1.1")

needs_addresses = pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address here")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(connections=PLACES, lingering=8) as running:
        yield running


@pytest.fixture
def crowd() -> Iterator[list[Socket]]:
    """Connections that are closed at the end of the test."""
    found: list[Socket] = []
    yield found
    for each in found:
        each.plain.close()


def served(connection: Socket) -> None:
    """Have a call answered on a connection."""
    connection.send(call())
    assert connection.answer().text == "hello"


def refused(answer: Answer) -> None:
    assert (answer.status, answer.headers["connection"]) == (503, "close")
    assert answer.json["error"] == {"code": -32600, "message": "Too many connections"}


# --- who gets through -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [b"", b"P", call()[:200], call()[:-1]], ids=["silent", "byte", "head", "body"]
)
def test_connections_that_send_no_whole_request_shut_no_one_out(
    server: Server, crowd: list[Socket], data: bytes
) -> None:
    """As often as it is repeated, and from the same address: who has been served stays, new ones get in."""
    with server.socket() as kept:
        served(kept)
        for _ in range(4):
            for _ in range(PLACES + 5):
                crowd.append(server.socket())
                crowd[-1].send(data)
            assert server.ask(call()).text == "hello"
            served(kept)


@needs_addresses
def test_the_address_with_the_most_of_them_gives_way(server: Server, crowd: list[Socket]) -> None:
    """However old the only one of another address is."""
    with server.socket(OTHER) as slow:
        slow.send(call()[:-10])
        for _ in range(3 * PLACES):
            crowd.append(server.socket())
            crowd[-1].send(b"P")
        assert server.ask(call()).text == "hello"
        slow.send(call()[-10:])
        assert slow.answer().text == "hello"


def test_connections_that_begin_a_second_request_give_way_too(server: Server, crowd: list[Socket]) -> None:
    """A whole request needs no token: it does not allow it to keep a place."""
    for _ in range(PLACES + 5):
        crowd.append(server.socket())
        crowd[-1].send(HEALTH)
        assert crowd[-1].answer().status == 200
        crowd[-1].send(b"P")
    assert server.ask(call()).text == "hello"


@needs_addresses
def test_an_address_with_more_than_its_share_gives_way_at_once(server: Server, crowd: list[Socket]) -> None:
    """Its connections need not have been idle for long, and others keep theirs, though they are older."""
    with server.socket(OTHER) as kept:
        served(kept)
        for _ in range(2 * PLACES):
            crowd.append(server.socket())
            crowd[-1].send(HEALTH)
            assert crowd[-1].answer().status == 200
        with server.socket(OTHER) as another:
            served(another)
        served(kept)


@needs_addresses
def test_a_client_that_does_not_read_gives_way(crowd: list[Socket]) -> None:
    """Each is over the share of its address, and waits for its client."""
    with Server(connections=PLACES, read_seconds=60.0) as server:
        for _ in range(PLACES):
            crowd.append(server.socket(OTHER))
            crowd[-1].plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            crowd[-1].plain.settimeout(0.05)
            try:
                crowd[-1].plain.sendall(call("give", {"what": "many"}) * 40)
            except TimeoutError:
                pass
        assert server.ask(call()).text == "hello"


def test_connections_that_were_refused_hold_no_place(server: Server, crowd: list[Socket]) -> None:
    """They are still read for a while, or they might not see the refusal: not many of them, and beside the
    places."""
    for _ in range(PLACES + 20):
        crowd.append(server.socket())
        crowd[-1].send(UNTOKENED)
        assert crowd[-1].answer().status == 401
    assert server.ask(call()).text == "hello"
    assert all(each.is_closed() for each in crowd[:20])  # half a connection may be open


def test_one_that_waits_between_two_requests_gives_way_the_longest_idle_first() -> None:
    # The clock of the limits goes by steps of a tenth of the shortest of them: here that of bodies.
    with Server(connections=16, eviction_seconds=0.0, body_seconds=1.0) as server:
        idle = [server.socket() for _ in range(16)]
        for each in idle:
            served(each)
        time.sleep(0.6)
        for each in idle[1:]:
            served(each)
        time.sleep(0.6)
        with server.socket() as one_more:
            served(one_more)
            assert idle[0].is_closed()
            for each in idle[1:]:
                served(each)
        for each in idle:
            each.plain.close()


# --- who does not -----------------------------------------------------------------------------------------


def test_when_all_are_served_one_more_is_refused(server: Server, crowd: list[Socket]) -> None:
    for _ in range(PLACES):
        crowd.append(server.socket())
        crowd[-1].send(call("wait", {"ms": 60_000}))
    crowd[0].plain.close()
    crowd[0] = let_in(server)
    crowd[0].send(call("wait", {"ms": 60_000}))
    time.sleep(0.05)
    for _ in range(20):
        with server.socket() as one_more:
            one_more.send(call())
            refused(one_more.answer())
    crowd[7].plain.close()
    let_in(server).plain.close()


def let_in(server: Server) -> Socket:
    """A connection on which a call was answered, once the server has seen that another one has gone."""

    def found() -> Socket | None:
        connection = server.socket()
        connection.send(call())
        answer = connection.answer()
        if answer.status == 200:
            return connection
        refused(answer)
        connection.plain.close()
        return None

    return eventually(found)


def test_a_request_that_is_served_keeps_its_connection(server: Server, crowd: list[Socket]) -> None:
    with server.socket() as busy, server.socket() as waiting:
        busy.send(call("stay", {}))
        waiting.send(call("stay", {}) + call()[:50])  # and a second one has begun
        eventually(lambda: server.ask(call("count_staying", {})).text == "2")
        for _ in range(3 * PLACES):
            crowd.append(server.socket())
            crowd[-1].send(b"P")
        for _ in range(2):
            assert server.ask(call("release", {})).text == "released"
        assert busy.answer().text == waiting.answer().text == "stayed"
        waiting.send(call()[50:])
        assert waiting.answer().text == "hello"


def test_a_request_that_gives_way_is_answered_with_the_reason_and_not_served(
    server: Server, crowd: list[Socket]
) -> None:
    with server.socket() as counting:
        counting.send(call("count", {}))
        before = int(counting.answer().text)
        request = call("count", {})
        for _ in range(PLACES + 20):
            crowd.append(server.socket())
            crowd[-1].send(request[:-5])
            served(counting)  # by then the beginning has been read
        for each in crowd[:10]:
            refused(each.answer())
            assert each.is_closed()
        counting.send(request)
        assert int(counting.answer().text) == before + 1


@pytest.mark.skipif(sys.platform != "linux", reason="the process's limit of open files is set from outside")
def test_places_and_refusals_fit_the_limit_of_open_files(crowd: list[Socket]) -> None:
    """With 160 files the server accepts, refuses and serves on."""
    with Server(connections=10_000) as unbounded:
        soft, _ = resource.prlimit(unbounded.process.pid, resource.RLIMIT_NOFILE)
        assert soft == resource.RLIM_INFINITY or soft >= min(
            10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        )
    with Server(connections=10_000, files=160, eviction_seconds=0.0) as server, server.socket() as kept:
        served(kept)
        for number in range(400):
            crowd.append(server.socket())
            crowd[-1].send((b"P", HEALTH, UNTOKENED)[number % 3])
        assert server.ask(call()).text == "hello"
        assert server.ask(call("give", {"what": "dict"})).status == 200
        assert "Too many open files" not in server.stderr


# --- the bookkeeping --------------------------------------------------------------------------------------


class Fake:
    """A connection that waits for its client."""

    def __init__(
        self, address: str, eviction_class: int | None, *, whole: bool = True, since: float = 0.0
    ) -> None:
        self.address, self.eviction_class, self.has_sent_request, self.since = (
            address,
            eviction_class,
            whole,
            since,
        )
        self.looks = 0
        self.ended = False

    def evict(self) -> None:
        self.ended = True


@settings(max_examples=100)
@given(steps=st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60), seed=st.integers(0, 9))
def test_the_oldest_of_the_address_with_the_most_is_found(steps: list[tuple[str, bool]], seed: int) -> None:
    """Held against the plainest model after every step."""
    chance = random.Random(seed)
    kept, model = ByAddress(), []
    for address, comes in steps:
        if comes or not model:
            model.append(Fake(address, IDLE))
            kept.add(model[-1])  # type: ignore[arg-type]
        else:
            gone = chance.choice(model)
            model.remove(gone)
            for _ in range(2):  # one that is not there is no error
                kept.discard(gone)
        counts = {each: sum(one.address == each for one in model) for each in "abc"}
        assert len(kept) == len(model)
        found: Any = kept.oldest()
        if not model:
            assert found is None
        else:
            assert counts[found.address] == max(counts.values())
            assert found is next(each for each in model if each.address == found.address)


def test_a_flood_of_connections_is_refused_without_a_look_at_all_for_each() -> None:
    connections: Any = ConnectionTable(ConnectionLimits(connections=1000), 10.0)

    class Busy(Fake):
        @property
        def eviction_class(self) -> None:
            nonlocal looks
            looks += 1

        @eviction_class.setter
        def eviction_class(self, value: None) -> None: ...

    looks = 0
    for number in range(1000):
        connections.add(Busy(str(number % 7), None))
    refusals = sum(not connections.add(Fake("flood", IDLE, whole=False)) for _ in range(500))
    assert refusals == 500
    assert looks <= 2000
    connections.now += 0.5
    connections.add(Fake("flood", IDLE, whole=False))
    assert looks <= 3000


def test_idle_ones_go_before_those_that_have_begun_a_request() -> None:
    connections: Any = ConnectionTable(ConnectionLimits(connections=4), 100.0)
    begun, young, old = Fake("a", BEGUN), Fake("b", IDLE, since=99.5), Fake("c", IDLE, since=50.0)
    for each in (begun, young, old, Fake("d", None)):
        assert connections.add(each)
    for gone in (old, begun):
        assert connections.add(Fake("e", None))
        assert gone.ended
    assert not connections.add(Fake("f", None))
    assert not young.ended


def test_one_customers_addresses_are_one() -> None:
    assert address_of(("2001:db8:1:2::1", 1)) == address_of(("2001:db8:1:2:ffff::9", 2))
    assert address_of(("2001:db8:1:3::1", 1)) != address_of(("2001:db8:1:2::1", 1))
    assert address_of(("fe80::1%eth0", 1)) == address_of(("fe80::1%eth1", 1))
    assert address_of(("10.0.0.1", 1)) != address_of(("10.0.0.2", 1))
    assert address_of(None) == address_of(None)
