"""Sealed sessions among the workers of one server: what they send each other, in any order that their sockets
allow: frames from one worker to another keep their order, others do not.

The workers are objects of this process (`support.session_workers`); the tests carry the frames.
"""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from support.session_workers import ALICE, KEYS, ONE, OTHER, Worker, Workers, among, new_server

from fastrpc import Server, tracebacks
from fastrpc._core.message import Message
from fastrpc.compat.lowlevel.server import Server as LowLevelServer
from fastrpc.compat.sdk2.subscription_events import (
    InMemorySubscriptionBus,
    ResourceUpdated,
    SubscriptionBus,
    listen_to,
)
from fastrpc.signed_texts import TextKeys
from fastrpc.subscriptions import list_listeners, subscribers
from fastrpc.transports.http import session_seals, session_sharing, sessions
from fastrpc.transports.http.exchange import ANSWER
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.session_sharing import FORWARDED
from fastrpc.transports.http.session_wire import SessionWire
from fastrpc.transports.http.sessions import Sessions
from fastrpc.transports.http.streams import Reader

# --- the end of a session ---------------------------------------------------------------------------------


def test_an_ended_session_is_refused_by_a_worker_that_has_begun_none() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        owner.sessions.end_for_client(id, ALICE)
        workers.carry_all()
        for worker in (owner, other):
            assert worker.sessions.adopt(id, ALICE, asyncio.get_running_loop()) is None

    among(2, act)


class Deletion:
    """A DELETE of a session."""

    principal = ALICE

    def __init__(self, id: str) -> None:
        self.id = id
        self.status = 0

    def header(self, name: bytes) -> str | None:
        return self.id if name == b"mcp-session-id" else None

    async def answer(self, status: int) -> None:
        self.status = status

    async def at(self, worker: Worker) -> int:
        """Send it to a worker; return the status of the response."""
        wire: Any = SessionWire(None, worker.sessions, None)  # type: ignore[arg-type]
        try:
            await wire.delete(self)
        except Refused as error:
            return error.status
        return self.status


def test_a_worker_that_does_not_have_a_session_ends_it_without_beginning_to_serve_it() -> None:
    async def act(workers: Workers) -> None:
        (id, *_), (another, *_) = workers.begin(), workers.begin()
        _, other, third = workers.all
        third.session(id)
        other.sessions._per_caller = 1
        other.session(another)  # it is idle: one more session would end it
        workers.carry_all()
        workers.sent.clear()
        assert await Deletion(id).at(other) == 200
        assert workers.sent == ["ended"] * 2
        workers.carry_all()
        for worker in workers.all:
            assert worker.state(id) is None
            assert worker.sessions.adopt(id, ALICE, asyncio.get_running_loop()) is None
            assert await Deletion(id).at(worker) == 404
        assert other.state(another) is not None
        assert await Deletion("no.such.id").at(other) == 404

    among(3, act)


def test_a_text_with_two_dots_connects_once_only_to_read_the_keys() -> None:
    async def run() -> None:
        server, connected = new_server(TextKeys()), []

        def connect(main: Any = None) -> Any:
            dispatcher = server.connect(main)
            connected.append(weakref.ref(dispatcher))
            return dispatcher

        sessions = Sessions(connect)
        for _ in range(3):
            assert sessions.adopt("a.b.c", ALICE, asyncio.get_running_loop()) is None
        assert len(connected) == 1
        assert not server.runtime.dispatchers

    asyncio.run(run())


def test_keys_that_cannot_be_read_leave_no_connection_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(runtime: Any) -> Any:
        raise RuntimeError("no keys")

    async def run() -> None:
        server = new_server(TextKeys())
        sessions_of_server = Sessions(server.connect)
        monkeypatch.setattr(sessions, "keys_of", fail)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="no keys"):
                sessions_of_server.adopt("a.b.c", ALICE, asyncio.get_running_loop())
        assert not server.runtime.dispatchers

    asyncio.run(run())


def test_a_session_that_the_server_ends_while_it_begins_does_not_come_back() -> None:
    def act(workers: Workers) -> None:
        first = workers.all[0]
        session = first.sessions.open(ALICE, asyncio.get_running_loop())
        assert session is not None
        session.dispatcher.session.agree({"protocolVersion": "2025-11-25"})
        first.sessions.end_all("The server has ended")
        first.sessions.seal(session)
        assert len(first.sessions) == 0

    among(2, act)


@pytest.mark.parametrize("count", [1, 2])
def test_a_session_that_has_ended_is_freed_at_once(count: int) -> None:
    def act(workers: Workers) -> None:
        id, owner, others = workers.begin()
        found = [weakref.ref(worker.session(id)) for worker in (owner, *others)]
        workers.carry_all()
        owner.sessions.end_for_client(id, ALICE)
        for each in found:
            session = each()
            if session is not None:
                session.close()
            del session
        for worker in workers.all:
            worker.sessions.end_all("over")
        assert [each() for each in found] == [None] * count

    gc.disable()
    try:
        among(count, act)
    finally:
        gc.enable()


def test_an_id_of_a_version_that_is_not_served_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(workers: Workers) -> None:
        id, _, (other,) = workers.begin()
        monkeypatch.setattr(session_seals, "SESSION_VERSIONS", ("2025-06-18",))
        assert other.sessions.adopt(id, ALICE, asyncio.get_running_loop()) is None

    among(2, act)


# --- the state of a session -------------------------------------------------------------------------------


def test_what_a_client_sets_at_a_worker_that_has_just_adopted_the_session_takes_nothing_away() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        owner.subscribe(id, ONE)
        owner.set_level(id, "debug")
        workers.carry_all()
        other.subscribe(id, OTHER)
        other.set_level(id, "error")
        workers.carry_all()
        assert owner.state(id) == other.state(id) == ("error", {ONE, OTHER})

    among(2, act)


def test_what_a_client_takes_back_at_a_worker_that_has_just_adopted_the_session_does_not_come_back() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        owner.subscribe(id, ONE)
        owner.subscribe(id, OTHER)
        third.session(id)
        workers.carry_all()
        other.sessions.end_all("This worker has restarted")
        other.unsubscribe(id, ONE)
        workers.carry_all()
        assert [each.state(id) for each in workers.all] == [(None, {OTHER})] * 3
        other.subscribe(id, ONE)
        workers.carry_all()
        assert [each.state(id) for each in workers.all] == [(None, {ONE, OTHER})] * 3

    among(3, act)


def test_an_old_answer_of_a_third_worker_brings_nothing_back() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        owner.subscribe(id, ONE)
        third.session(id)
        workers.carry_all()
        other.sessions.end_all("This worker has restarted")
        other.session(id)
        workers.carry(other, third)  # it answers what it knows now
        owner.unsubscribe(id, ONE)
        workers.carry(owner, other)
        workers.carry_all()
        assert [each.state(id) for each in workers.all] == [(None, set())] * 3

    among(3, act)


def test_an_old_answer_of_a_third_worker_takes_nothing_away() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        owner.subscribe(id, ONE)
        other.session(id)
        workers.carry_all()
        third.session(id)
        workers.carry(third, other)  # it answers what it knows now
        owner.subscribe(id, OTHER)
        owner.set_level(id, "debug")
        workers.carry(owner, third)
        workers.carry_all()
        assert [each.state(id) for each in workers.all] == [("debug", {ONE, OTHER})] * 3

    among(3, act)


def test_a_change_of_a_session_has_only_its_owner_adopt_it() -> None:
    def act(workers: Workers) -> None:
        id, owner, others = workers.begin()
        others[0].subscribe(id, ONE)
        workers.carry_all()
        here = [each for each in workers.all if each.state(id) is not None]
        assert set(here) == {owner, others[0], workers.all[0]}
        assert all(each.state(id) == (None, {ONE}) for each in here)
        assert len(workers.sent) <= 4 * len(workers.all)

    among(8, act)


def own_methods() -> Any:
    """Return a server whose functions take subscriptions, and wait."""
    server: Any = LowLevelServer("shared")
    server.runtime.signing_keys = KEYS

    @server.subscribe_resource()
    async def subscribe(uri: Any) -> None:
        await asyncio.sleep(0)

    @server.unsubscribe_resource()
    async def unsubscribe(uri: Any) -> None:
        await asyncio.sleep(0)

    return server


@pytest.mark.parametrize("make", [new_server, own_methods], ids=["at once", "later"])
def test_a_request_that_sets_state_is_answered_when_all_workers_know_it(make: Callable[[], Any]) -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        owner.session(id)
        session = other.session(id)
        workers.carry_all()
        uri = {"uri": ONE}
        requests = {
            "resources/subscribe": uri,
            "logging/setLevel": {"level": "error"},
            "resources/unsubscribe": uri,
        }
        if make is own_methods:
            del requests["logging/setLevel"]  # it has no function for that
        for number, (method, params) in enumerate(requests.items()):
            exchange = session.exchange()
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            assert exchange.receive(json.dumps(message).encode()) is None
            while not session.undelivered and exchange.peek() is None:
                await asyncio.sleep(0)
            for _ in range(10):
                await asyncio.sleep(0)
            assert exchange.waits
            assert exchange.peek() is None
            workers.carry(other, owner)
            await asyncio.sleep(0)
            assert exchange.waits
            assert exchange.peek() is None
            workers.carry(other, third)
            await asyncio.sleep(0)
            kind, line = exchange.next() or ("", b"")
            assert (kind, json.loads(line)["result"]) == (ANSWER, {})
            assert not exchange.waits
            session.put_back(exchange)
            workers.carry_all()
        if make is new_server:
            assert owner.state(id) == ("error", set())

    among(3, act, make)


# --- what a client is notified of -------------------------------------------------------------------------


async def each_has(workers: Workers) -> tuple[str, Reader]:
    """Begin a session that all workers serve and whose client has subscribed; return its id and stream."""
    id, owner, others = workers.begin()
    owner.subscribe(id, ONE)
    for other in others:
        other.session(id)
    workers.carry_all()
    return id, owner.listen(id)


LISTS = [f"notifications/{name}/list_changed" for name in ("tools", "resources", "prompts")]


@pytest.mark.parametrize(
    ("notify", "heard"),
    [
        (
            lambda hearing: hearing.notify("notifications/own", {}, is_heard_by_all=True),
            ["notifications/own"],
        ),
        (lambda hearing: hearing.take("resource_updated", ONE), [ONE]),
        (lambda hearing: hearing.take("list_changed", "tool"), LISTS[:1]),
        (lambda hearing: hearing.take_other_lists(lambda principal: principal == ALICE), LISTS[:2]),
        (lambda hearing: hearing.missed(), [*LISTS[:2], ONE]),
    ],
    ids=["of an upstream", "a resource", "a list", "filters", "missed"],
)
def test_a_client_hears_once_of_what_all_workers_hear(notify: Any, heard: list[str]) -> None:
    async def act(workers: Workers) -> None:
        _, stream = await each_has(workers)
        for worker in workers.all:
            notify(worker.server.runtime.announcements)
        assert sorted(await workers.heard(stream)) == sorted(heard)

    among(3, act)


@pytest.mark.parametrize(
    ("notify", "heard"),
    [
        (
            lambda server: server.runtime.announcements.notify(
                "notifications/own", {}, is_heard_by_all=False
            ),
            ["notifications/own"],
        ),
        (lambda server: server.lists_changed(lambda principal: principal == ALICE), LISTS[:2]),
        (lambda server: [each.notify() for each in list_listeners(server)], LISTS[1:2]),
    ],
    ids=["of an upstream", "filters", "the list of resources"],
)
@pytest.mark.parametrize("number", range(3))
def test_a_client_hears_of_what_any_one_worker_hears(number: int, notify: Any, heard: list[str]) -> None:
    async def act(workers: Workers) -> None:
        _, stream = await each_has(workers)
        notify(workers.all[number].server)
        assert await workers.heard(stream) == heard

    among(3, act)


@pytest.mark.parametrize("is_of_one_process", [True, False])
def test_a_client_hears_once_of_what_is_published_on_a_bus(is_of_one_process: bool) -> None:
    class Everywhere(SubscriptionBus):
        """A bus of several processes."""

        def __init__(self) -> None:
            self.listeners: list[Any] = []

        def subscribe(self, listener: Any) -> Any:
            self.listeners.append(listener)

        async def publish(self, event: Any) -> None:
            for each in self.listeners:
                each(event)

    async def act(workers: Workers) -> None:
        _, stream = await each_has(workers)
        everywhere = Everywhere()
        buses = [InMemorySubscriptionBus() if is_of_one_process else everywhere for _ in workers.all]
        for worker, bus in zip(workers.all, buses, strict=True):
            listen_to(bus, worker.server)
            workers.announce_from(worker)
        for bus in buses[: None if is_of_one_process else 1]:
            await bus.publish(ResourceUpdated(ONE))
            assert await workers.heard(stream) == [ONE]

    among(3, act)


# --- what a client posts ----------------------------------------------------------------------------------


NOTES = (*FORWARDED, "notifications/x")


def test_only_a_batch_is_parsed_once_more_to_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    notes = {name: b'{"jsonrpc":"2.0","method":"%b"}' % name.encode() for name in NOTES}
    read: list[bytes] = []

    class Counted(Message):
        def read(self, text: Any) -> None:
            read.append(bytes(text))
            super().read(text)

    def act(workers: Workers) -> None:
        id, *_ = workers.begin()
        for worker in workers.all:
            session = worker.session(id)
        workers.carry_all()
        workers.sent.clear()
        worker.sharing.message(session, "response", "", answer)
        for name, note in notes.items():
            worker.sharing.message(session, "notification", name, note)
        assert read == []
        sent = ["message"] * (1 + len(FORWARDED)) * 2
        assert workers.sent == sent
        batch = b"[" + b",".join([answer, *notes.values()]) + b"]"
        worker.sharing.message(session, "batch", "", batch)
        assert workers.sent == 2 * sent

    monkeypatch.setattr(session_sharing, "Message", Counted)
    among(3, act)
    assert len(read) == 2 + len(notes)


# --- who watches what a client has subscribed to ----------------------------------------------------------


class Upstream:
    """The upstream server of a worker's server, which notes what is watched there."""

    live = declares_everything = False

    def __init__(self, server: Any) -> None:
        self._server = server
        self.connected = 0
        self.watched: set[str] = set()

    def defers(self, dispatcher: Any, request: Any) -> bool:
        return False

    def connect(self, capabilities: dict[str, Any]) -> None:
        self.connected += 1

    def watch(self, uri: str, capabilities: dict[str, Any]) -> None:
        self.watched.add(uri)

    def unwatch(self, uri: str) -> None:
        if not self._server.runtime.announcements.is_subscribed(uri):
            self.watched.discard(uri)


def with_upstream() -> Any:
    """Return a server with an upstream."""
    server: Any = Server("shared")
    server._upstream = Upstream(server)
    server.resource(ONE)(lambda: "one")
    server.runtime.signing_keys = KEYS
    return server


def watching(workers: Workers) -> list[Worker]:
    """Return the workers that watch a resource."""
    assert all(worker.server._upstream.watched <= {ONE} for worker in workers.all)
    return [worker for worker in workers.all if worker.server._upstream.watched]


@pytest.mark.parametrize("subscribes", range(3))
@pytest.mark.parametrize("unsubscribes", range(3))
def test_the_owner_alone_watches_and_unwatches(subscribes: int, unsubscribes: int) -> None:
    def act(workers: Workers) -> None:
        id, owner, others = workers.begin()
        each = [owner, *others]
        each[subscribes].subscribe(id, ONE)
        workers.carry_all()
        assert watching(workers) == [owner]
        for other in others:
            other.session(id)
        workers.carry_all()
        for other in others:
            other.sessions.end(other.session(id))  # idle for too long
            assert watching(workers) == [owner]
        each[unsubscribes].unsubscribe(id, ONE)
        workers.carry_all()
        assert watching(workers) == []

    among(3, act, with_upstream)


def test_an_owner_that_begins_to_serve_a_session_watches_until_that_ends() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other, _) = workers.begin()
        other.subscribe(id, ONE)
        workers.carry_all()
        owner.sessions.end(owner.session(id))
        assert watching(workers) == []
        connected = owner.server._upstream.connected
        owner.listen(id)
        assert owner.server._upstream.connected == connected + 1
        workers.carry_all()
        assert watching(workers) == [owner]
        other.sessions.end_for_client(id, ALICE)
        workers.carry_all()
        assert watching(workers) == []

    among(3, act, with_upstream)


def test_a_copy_of_another_session_keeps_no_watch() -> None:
    def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        another = next(found for found, its, _ in iter(workers.begin, None) if its is other)
        for each in (id, another):
            for worker in workers.all:
                worker.session(each)
            owner.subscribe(each, ONE)
            workers.carry_all()
        assert watching(workers) == workers.all
        owner.unsubscribe(id, ONE)
        workers.carry_all()
        assert watching(workers) == [other]

    among(2, act, with_upstream)


def test_a_provider_watches_for_the_clients_of_its_worker() -> None:
    watched: dict[int, list[str]] = {}

    def make() -> Server:
        server = new_server()
        found = watched[len(watched)] = []

        class Rows:
            def read(self, uri: str) -> str:
                return uri

            def watch(self, uri: str) -> None:
                found.append(uri)

        server.resources("db")(Rows())
        return server

    def act(workers: Workers) -> None:
        id, owner, others = workers.begin()
        for worker in workers.all:
            worker.session(id)
        workers.carry_all()
        others[0].subscribe(id, "db://rows/1")
        workers.carry_all()
        assert [watched[worker.number] for worker in (owner, *others)] == [["db://rows/1"], [], []]
        for worker in workers.all:
            found = [each.uri for each in subscribers(worker.server, "db://")]
            assert found == watched[worker.number]

    among(3, act, make)


def test_a_provider_that_fails_to_watch_leaves_the_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[str] = []
    monkeypatch.setattr(tracebacks, "report", lambda what, error: failures.append(what))

    def make() -> Server:
        server = new_server()

        class Rows:
            def read(self, uri: str) -> str:
                return uri

            def watch(self, uri: str) -> None:
                raise RuntimeError("no rows")

        server.resources("db")(Rows())
        return server

    def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        other.subscribe(id, ONE)
        other.subscribe(id, "db://rows/1")
        workers.carry_all()
        assert failures == ["a provider does not watch db://rows/1"]
        other.set_level(id, "info")
        workers.carry_all()
        assert owner.state(id) == other.state(id) == ("info", {ONE, "db://rows/1"})

    among(2, act, make)
