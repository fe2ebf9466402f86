"""The thread of the store that hosts share: a database that hangs delays no one, and that it is away is said
once."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason='pip install "fastrpc-mcp[guard]"')
pytest.importorskip("psycopg", reason='pip install "psycopg[binary]"')

from support.waiting import eventually

from fastrpc.shared_store import payloads, store
from fastrpc.shared_store.store import SharedStore, StoreAway
from fastrpc.storage import DatabaseUnavailable
from fastrpc.storage.notifications import MOST_BYTES


class Announcements:
    """What receives the announcements of others."""

    def __init__(self) -> None:
        self.carriers: list[Any] = []

    def take(self, change: str, *values: Any) -> None:
        raise AssertionError(change)

    def missed(self) -> None:
        raise AssertionError("nothing was missed")


class HangingDatabase:
    """Opens, and then does not answer until it is let go."""

    def __init__(self) -> None:
        self.goes = Event()
        self.transactions = 0

    def changing(self) -> Any:
        self.transactions += 1
        self.goes.wait(60)
        raise DatabaseUnavailable("it hangs")

    def close(self) -> None:
        pass


class Unheard:
    """A channel on which nothing comes."""

    def end(self) -> None:
        pass


@pytest.fixture(autouse=True)
def setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_SHARED", "postgresql://me@db/x")
    monkeypatch.setattr(store, "listen", lambda *_: Unheard())


def test_a_store_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    database = HangingDatabase()
    monkeypatch.setattr(store, "open_database", lambda *_: database)
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.05)
    shared = SharedStore("s", Announcements())
    first = shared.read_session("a" * 16)
    eventually(lambda: shared.is_away)
    for _ in range(100):
        reading = shared.read_session("b" * 16)
        assert reading.done()
        assert isinstance(reading.exception(), StoreAway)
    shared.announce(b'["list_changed","tool"]')  # returns
    database.goes.set()
    assert isinstance(first.exception(60), StoreAway)
    shared.close()


def test_a_store_that_is_away_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = 0

    def fails(*_: object) -> None:
        nonlocal attempts
        attempts += 1
        raise DatabaseUnavailable("no route")

    monkeypatch.setattr(store, "open_database", fails)
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    said: list[str] = []
    monkeypatch.setattr(
        store.diagnostics, "write", lambda at, text, error=None: at == "warning" and said.append(text)
    )
    shared = SharedStore("s", Announcements())
    eventually(lambda: attempts > 4)
    for _ in range(100):
        shared.announce(b'["list_changed","tool"]')
        assert isinstance(shared.read_session("a" * 16).exception(), StoreAway)
    shared.close()
    assert len(said) == 1
    assert "away" in said[0]


def test_a_payload_is_never_too_long() -> None:
    for size in (10, MOST_BYTES - 200, MOST_BYTES, 3 * MOST_BYTES):
        for announcement in (
            b'["resource_updated","x:%b",null]' % (b"a" * size),
            b'["resource_updated","x:a",{"b":"%b"}]' % ("é" * size).encode(),
        ):
            payload = payloads.announced("g", "p", announcement)
            assert len(payload.encode()) <= MOST_BYTES
            assert payloads.read(payload)[2] in ("resource_updated", "missed")
