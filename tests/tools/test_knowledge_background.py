"""What a model is to read is read as soon as it is written: the order of events, however long each takes. And
a server with many requests wakes one thread, not one for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from fastrpc.tools.knowledge import _settings, _store
from fastrpc.tools.knowledge._models import background
from fastrpc.tools.knowledge._store import readings

SECONDS = 30.0


class Store:
    """Texts that were written, for a job that reads those of them that it sees when it looks."""

    def __init__(self) -> None:
        self.left: list[str] = []
        self.read: list[str] = []
        self.database = object()


class Reading(background.Job):
    """Reads one text at each look, which ends when the test lets it."""

    def __init__(self, store: Store) -> None:
        super().__init__(readings.ENTRIES)
        self.store = store
        self.began, self.may_end, self.done = Event(), Event(), Event()
        self.threads: list[Thread] = []
        self.fails: list[Exception] = []
        self.may_end.set()

    def read_lot(self, database: Any) -> bool:
        seen = self.store.left[:1]
        self.began.set()
        assert self.may_end.wait(SECONDS)
        if self.fails:
            raise self.fails.pop()
        del self.store.left[: len(seen)]
        self.store.read += seen
        if self.store.read:
            self.done.set()
        return bool(seen)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    found = Store()
    monkeypatch.setattr(_store, "current", lambda: found)
    return found


@pytest.fixture
def job(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    """A job whose server looks by itself at nothing: only writing wakes it."""
    found = Reading(store)
    monkeypatch.setattr(background, "jobs", lambda: [found])
    monkeypatch.setattr(background, "_running", [])
    monkeypatch.setenv(_settings.EMBEDDINGS.name, "http://127.0.0.1:9/v1")

    def started(*arguments: Any, **options: Any) -> Thread:
        found.threads.append(Thread(*arguments, **options))
        return found.threads[-1]

    monkeypatch.setattr(background, "Thread", started)
    background.attach(SimpleNamespace(watch=lambda look, seconds: None))  # type: ignore[arg-type]
    yield found
    found.may_end.set()
    join(found)


def join(job: Reading) -> None:
    for thread in job.threads:
        thread.join(SECONDS)
        assert not thread.is_alive()


def write(store: Store, text: str) -> None:
    """What a tool does: the text is there, then its writer says so."""
    from fastrpc.tools.knowledge import _models

    store.left.append(text)
    _models.wrote()


def test_what_is_written_is_read_without_waiting_for_a_look(store: Store, job: Reading) -> None:
    write(store, "a")
    assert job.done.wait(SECONDS)
    assert store.read == ["a"]


def test_what_is_written_during_a_last_look_is_read_after_it(store: Store, job: Reading) -> None:
    """The look has seen that nothing is left when the text comes: another has to follow."""
    job.may_end.clear()
    background.wake()
    assert job.began.wait(SECONDS)
    write(store, "a")
    job.may_end.set()
    assert job.done.wait(SECONDS)
    assert store.read == ["a"]


def test_many_writers_wake_one_thread(store: Store, job: Reading) -> None:
    job.may_end.clear()
    for number in range(50):
        write(store, str(number))
    assert job.began.wait(SECONDS)
    job.may_end.set()
    join(job)
    assert store.read == [str(number) for number in range(50)]
    assert len(job.threads) == 1


def test_a_thread_that_has_ended_is_followed_by_another(store: Store, job: Reading) -> None:
    write(store, "a")
    assert job.done.wait(SECONDS)
    join(job)
    write(store, "b")
    join(job)
    assert store.read == ["a", "b"]


def test_a_store_that_was_away_keeps_nothing_from_being_read_after_the_next_writing(
    store: Store, job: Reading
) -> None:
    from fastrpc.storage import StorageError

    job.fails = [StorageError("away")]
    write(store, "a")
    assert job.began.wait(SECONDS)
    join(job)
    assert store.read == []
    write(store, "b")
    join(job)
    assert store.read == ["a", "b"]
