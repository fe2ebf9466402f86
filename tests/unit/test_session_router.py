"""What a worker sends to another one that has closed the socket, or does not read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fastrpc import diagnostics, tracebacks
from fastrpc.transports.http import session_router

uvloop = pytest.importorskip("uvloop")


def router_to_a_busy_worker(
    count: int,
) -> tuple[session_router.SessionRouter, asyncio.Event, list[tuple[int, int]]]:
    """Return a router of `count` workers, of which the others read nothing before the event is set; and to
    which one it has begun to send how many frames."""
    app: Any = SimpleNamespace()
    router = session_router.SessionRouter(app, "", 0, count, lambda: None)
    reading = asyncio.Event()
    sent: list[tuple[int, int]] = []

    async def send(other: int, frames: list[bytes]) -> None:
        sent.append((other, len(frames)))
        await reading.wait()

    router._send_all = send  # type: ignore[method-assign]
    return router, reading, sent


def test_a_response_for_a_worker_that_has_closed_the_socket_is_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        taken: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
        server = await asyncio.start_unix_server(
            lambda reader, writer: taken.set_result(writer), tmp_path / "socket"
        )
        _, ours = await asyncio.open_unix_connection(tmp_path / "socket")
        theirs = await taken
        ours.close()
        await ours.wait_closed()
        respond = session_router._respond
        for _ in range(3):  # uvloop raises RuntimeError for a write to what is closed
            await respond(theirs, {"type": "http.response.start", "status": 400, "headers": []})
            await respond(theirs, {"type": "http.response.body", "body": b"cut short"})
            theirs.close()
            await asyncio.sleep(0)
        server.close()

    uvloop.install()
    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        asyncio.set_event_loop_policy(None)


def test_a_frame_that_cannot_be_handled_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = SimpleNamespace(sessions=SimpleNamespace())
    heard: list[int] = []
    failures: list[str] = []
    monkeypatch.setattr(tracebacks, "report", lambda what, error: failures.append(type(error).__name__))

    def hear(change: str, number: int) -> None:
        if number % 2:
            raise RuntimeError("this one")
        heard.append(number)

    async def run() -> None:
        routers = [session_router.SessionRouter(app, str(tmp_path), number, 2, hear) for number in range(2)]
        for router in routers:
            await router.begin()
        routers[0]._share(b"no JSON")
        for number in range(5):
            routers[0]._share(b'["changed",%d]' % number)
        while len(heard) < 3:
            await asyncio.sleep(0.001)
        for router in routers:
            await router.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert heard == [0, 2, 4]
    assert failures == ["JSONDecodeError", "RuntimeError", "RuntimeError"]


def test_a_worker_that_has_not_taken_announcements_hears_that_it_has_missed_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = SimpleNamespace(sessions=SimpleNamespace())
    heard: list[tuple[Any, ...]] = []
    asked: list[int] = []
    monkeypatch.setattr(session_router, "MISSED_SECONDS", 0.01)

    async def run() -> None:
        first, second = (
            session_router.SessionRouter(app, str(tmp_path), number, 2, lambda *change: heard.append(change))
            for number in range(2)
        )
        await first.begin()
        first._share(b'["changed",1]')  # the other one does not listen yet
        while not first._owed:
            await asyncio.sleep(0.001)
        await second.begin()
        second._sharing = SimpleNamespace(ask_again=asked.append)  # type: ignore[assignment]
        while not asked:
            await asyncio.sleep(0.001)
        first._share(b'["changed",2]')
        while len(heard) < 2:
            await asyncio.sleep(0.001)
        for router in (first, second):
            await router.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert heard == [("missed",), ("changed", 2)]
    assert asked == [0]


def test_announcements_to_a_worker_that_does_not_take_them_are_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(diagnostics, "write", lambda at, text: lines.append(text))
    monkeypatch.setattr(session_router, "MOST_UNSENT", 1000)

    async def run() -> None:
        router, reading, sent = router_to_a_busy_worker(3)
        router._share(b"x" * 5000)  # one is always sent
        await asyncio.sleep(0)
        for _ in range(100):
            router._share(b"x" * 100)
        for other in (1, 2):
            sizes = [len(frame) for frame, _ in router._unsent[other, False]]
            assert 1000 - sizes[0] < sum(sizes) <= 1000
        kept = len(sizes)
        reading.set()
        await asyncio.gather(*router._tasks)
        assert sent == [(1, 1), (2, 1), (1, kept), (2, kept)]
        router._share(b"x" * 100)
        await asyncio.gather(*router._tasks)
        assert sent[4:] == [(1, 1), (2, 1)]

    asyncio.run(asyncio.wait_for(run(), 60))
    assert lines == [f"worker {other} takes announcements too slowly: some are dropped" for other in (1, 2)]


def test_what_one_principal_has_other_workers_told_drops_nothing_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagnostics, "write", lambda at, text: None)
    monkeypatch.setattr(session_router, "MOST_UNSENT", 4000)
    monkeypatch.setattr(session_router, "MOST_OF_ONE", 2000)
    taken: list[tuple[str, bool]] = []

    async def run() -> None:
        router, reading, _ = router_to_a_busy_worker(2)
        for principal in ("alice",) * 5 + ("bob", ""):
            frame = {
                "type": session_router.SHARED,
                "what": "state",
                "principal": principal,
                "data": b"x" * 800,
            }
            router._send_later(1, frame, lambda is_taken, of=principal: taken.append((of, is_taken)))
        router._share(b"x" * 3900)
        assert len(router._unsent[1, False]) == 5
        reading.set()
        await asyncio.gather(*router._tasks)

    asyncio.run(asyncio.wait_for(run(), 60))
    alice = [("alice", False)] * 3 + [("alice", True)] * 2
    assert sorted(taken) == sorted([*alice, ("bob", True), ("", True)])


def test_what_clients_post_drops_nothing_else_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(diagnostics, "write", lambda at, text: lines.append(text))
    monkeypatch.setattr(session_router, "MOST_UNSENT", 2000)
    taken: list[tuple[str, bool]] = []

    async def run() -> None:
        router, reading, _ = router_to_a_busy_worker(2)
        for what in ("message", "message", "state", "ended", "line", "known", "message"):
            data = b"x" * 5000 if what == "message" else b""
            frame = {"type": session_router.SHARED, "what": what, "principal": "alice", "data": data}
            router._send_later(1, frame, lambda is_taken, what=what: taken.append((what, is_taken)))
        router._share(b"[]")
        waiting = {queue: len(frames) for queue, frames in router._unsent.items()}
        assert waiting == {(1, True): 1, (1, False): 5}
        reading.set()
        await asyncio.gather(*router._tasks)
        messages = [("message", False), ("message", False), ("message", True)]
        others = [(what, True) for what in ("ended", "known", "line", "state")]
        assert sorted(taken) == sorted([*messages, *others])

    asyncio.run(asyncio.wait_for(run(), 60))
    assert lines == ["worker 1 takes messages of clients too slowly: some are dropped"]
