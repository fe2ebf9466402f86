"""Sealed sessions of one process with a store that the test answers for: what is posted to other hosts, and
how much of one principal may wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from support.session_workers import ONE, Worker, Workers, among

from fastrpc.protocol.session_changes import CommonState, SessionChange
from fastrpc.proxy.upstream import UpstreamClient
from fastrpc.transports.http import session_sharing

BOB = "bob"


class Store:
    """The store of a server: what has been written or posted, until the test answers."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.posted: list[bytes] = []
        self.written: list[tuple[SessionChange, Future[CommonState]]] = []

    def read_session(self, id: str) -> Future[CommonState]:
        found: Future[CommonState] = Future()
        found.set_result(CommonState())
        return found

    def change_session(self, id: str, made: SessionChange) -> Future[CommonState]:
        self.written.append((made, Future()))
        return self.written[-1][1]

    def listened(self, id: str) -> None:
        pass

    def post(self, session: str, kind: str, body: bytes) -> None:
        self.posted.append(body)


def sharing(worker: Worker) -> Store:
    """Have a worker share its sessions by a store, and return that."""
    store, runtime = Store(), worker.server.runtime
    served: Any = SimpleNamespace(announcements=runtime.announcements, shared=store)
    worker.sharing.use(served)
    return store


async def some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_heard_by_all", [True, False])
def test_only_what_no_other_host_hears_is_posted_to_the_one_that_has_the_stream(
    is_heard_by_all: bool,
) -> None:
    async def act(workers: Workers) -> None:
        (worker,) = workers.all
        store = sharing(worker)
        workers.begin()
        announcements = worker.server.runtime.announcements
        announcements.notify("notifications/own", {}, is_heard_by_all=is_heard_by_all)
        announcements.take("resource_updated", ONE)
        assert [b"notifications/own" in each for each in store.posted] == [True] * (not is_heard_by_all)

    among(1, act)


@pytest.mark.parametrize("has_request_streams", [True, False])
def test_what_an_upstream_sends_on_the_stream_of_no_call_belongs_to_none(has_request_streams: bool) -> None:
    heard: list[Any] = []
    client = UpstreamClient.__new__(UpstreamClient)
    call = SimpleNamespace(context="that of a call")
    pending = SimpleNamespace(is_forwarded=False, context=call)
    parts: Any = client
    parts.transport = SimpleNamespace(answering=None, has_request_streams=has_request_streams)
    parts.stream = SimpleNamespace(pending={1: pending})
    parts.session = SimpleNamespace(listening=[])
    parts.owner = SimpleNamespace(on_notification=lambda method, params, context: heard.append(context))
    own = {"jsonrpc": "2.0", "method": "notifications/own"}
    client._on_notification(own)
    parts.transport.answering = pending
    client._on_notification(own)
    client._on_notification({**own, "method": "notifications/message"})
    assert heard == [None if has_request_streams else call.context, call.context, call.context]


def test_one_principal_has_a_bound_of_what_waits_for_other_processes_and_others_do_not_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_sharing, "MOST_UNDELIVERED", 7000)

    async def act(workers: Workers) -> None:
        (worker,) = workers.all
        store = sharing(worker)
        id, *_ = workers.begin()
        session = worker.session(id)
        state = session.dispatcher.session
        uris = [f"docs://{number}/" + "x" * 1000 for number in range(6)]
        changes: list[Callable[[str], object]] = [state.subscribe, state.unsubscribe, state.subscribe]
        for change, uri in zip(changes, uris, strict=False):
            change(uri)
        used = state.quota.used
        for refused in (state.subscribe, state.unsubscribe):
            with pytest.raises(session_sharing.Overloaded, match="what this client has set before"):
                refused(uris[4] * 3)
        assert (state.quota.used, len(state.subscriptions)) == (used, 2)
        other = worker.sessions.open(BOB, asyncio.get_running_loop())
        assert other is not None
        other.id = "b" * 20
        worker.sharing.bind(other, is_adopted=False)
        other.dispatcher.session.on_change(None, {uris[0]: uris[0]}, ())  # type: ignore[misc]
        assert len(store.written) == 4
        for made, writing in store.written:
            writing.set_result(CommonState().with_change(made))
        await some_turns()
        state.subscribe(uris[4])
        assert len(store.written) == 5

    among(1, act)
