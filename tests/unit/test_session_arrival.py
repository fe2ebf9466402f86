"""The first requests of a session at a worker that has just adopted it: they wait until the other workers
have sent what they know of the session. What the client has missed meanwhile, it is notified of.

The workers are objects of this process (`support.session_workers`); the tests carry the frames.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from support.session_workers import ALICE, ONE, OTHER, Worker, Workers, among

from fastrpc.transports.http import session_wire
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.session_wire import SessionWire


class Naming:
    """A request that names a session."""

    principal = ALICE

    def __init__(self, id: str) -> None:
        self._id = id

    def header(self, name: bytes) -> str | None:
        return self._id if name == b"mcp-session-id" else None

    def at(self, worker: Worker) -> asyncio.Task[Any]:
        """Send it to a worker; return what has its session, once the worker serves the request."""
        exchanges = SimpleNamespace(runtime=None)
        wire: Any = SessionWire(exchanges, worker.sessions, None)  # type: ignore[arg-type]
        return asyncio.ensure_future(wire._session_of(self))


async def some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_requests_wait_at_a_worker_that_has_adopted_the_session_until_all_others_have_answered() -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        owner.set_level(id, "debug")
        third.session(id)
        workers.carry_all()
        other.sessions.end_all("This worker has restarted")
        requests = [Naming(id).at(other), Naming(id).at(other)]
        for sender, to in ((other, owner), (owner, other), (other, third)):
            await some_turns()
            assert not any(each.done() for each in requests)
            assert answer_fast(other, id) is None
            workers.carry(sender, to)
        workers.carry(third, other)
        await some_turns()
        assert [each.result().dispatcher.session.log_level for each in requests] == ["debug"] * 2

    among(3, act)


def answer_fast(worker: Worker, id: str) -> Any:
    """Return what the fast path answers to a request in a session: None if it leaves that to the regular one.
    Raises AttributeError when it begins to serve it."""
    app = SimpleNamespace(ending=False, sessions=worker.sessions)
    path: Any = SimpleNamespace(_app=app, _shared=None)
    head: Any = SimpleNamespace(access_token=None, session=id, principal=ALICE)
    return HotPath.answer(path, head, b"", [])


def test_requests_do_not_wait_for_workers_that_have_ended_or_do_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        other.sessions.end_all("This worker has restarted")
        request = Naming(id).at(other)
        await some_turns()
        _, has_ended = workers.between[other.number, owner.number].pop()
        assert has_ended is not None
        has_ended(False)
        assert not request.done()
        assert not workers.between[other.number, owner.number]
        workers.between[other.number, third.number].clear()
        assert (await request).id == id  # after `ARRIVAL_SECONDS`
        with pytest.raises(AttributeError):
            answer_fast(other, id)

    monkeypatch.setattr(session_wire, "ARRIVAL_SECONDS", 0.05)
    among(3, act)


def test_a_request_that_waits_is_refused_when_its_client_ends_the_session_meanwhile() -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        owner.session(id)
        workers.carry_all()
        other.sessions.end_all("This worker has restarted")
        request = Naming(id).at(other)
        await some_turns()
        assert not request.done()
        owner.sessions.end_for_client(id, ALICE)
        workers.carry(owner, other)
        with pytest.raises(Refused) as refused:
            await request
        assert refused.value.status == 404

    among(2, act)


@pytest.mark.parametrize("is_busy_elsewhere", [False, True])
def test_an_owner_that_has_lost_a_session_notifies_its_client_once_of_what_it_may_have_missed(
    is_busy_elsewhere: bool,
) -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other, third) = workers.begin()
        for worker in workers.all:
            workers.announce_from(worker)
        owner.subscribe(id, ONE)
        owner.subscribe(id, OTHER)
        third.session(id)
        other.session(id)
        workers.carry_all()
        owner.sessions.end_all("This worker has restarted")
        other.server.resource_updated(ONE)  # the client hears of nothing at this moment
        if is_busy_elsewhere:
            other.set_level(id, "debug")
            workers.carry_all()
        stream = owner.listen(id)
        workers.carry_all()
        assert sorted(await workers.heard(stream)) == [ONE, OTHER]
        other.server.resource_updated(ONE)
        assert await workers.heard(stream) == [ONE]

    among(3, act)


def test_a_worker_to_which_a_change_was_dropped_asks_for_it_and_notifies_the_client() -> None:
    async def act(workers: Workers) -> None:
        id, owner, (other,) = workers.begin()
        stream = owner.listen(id)
        other.session(id)
        workers.carry_all()
        other.subscribe(id, ONE)
        other.set_level(id, "debug")
        for _, is_taken in workers.between[other.number, owner.number]:
            assert is_taken is not None
            is_taken(False)
        workers.between[other.number, owner.number].clear()
        assert owner.state(id) == (None, set())
        owner.sharing.ask_again(other.number)
        workers.carry_all()
        assert owner.state(id) == ("debug", {ONE})
        assert await workers.heard(stream) == [ONE]

    among(2, act)
