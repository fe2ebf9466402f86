"""The directory of live tokens, by a clock of our own: what is valid, and while nothing can be read."""

from __future__ import annotations

import asyncio
import hmac
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually

from fastrpc import diagnostics
from fastrpc.callers import Caller
from fastrpc.guard.callers import directory as directory_module
from fastrpc.guard.callers.directory import GRACE_SECONDS, POLL_SECONDS, RELOAD_SECONDS, TokenDirectory
from fastrpc.guard.callers.http_source import DirectorySource
from fastrpc.guard.callers.token_text import new_token
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.storage import DatabaseUnavailable
from fastrpc.storage.database import Database
from fastrpc.transports.http.auth import Authenticator
from fastrpc.transports.http.guard import Refused


class Place:
    """A database with a store and a directory whose clocks do not advance, and what is logged."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.now = 1000.0
        self.logged: list[tuple[str, str]] = []
        monkeypatch.setattr(diagnostics, "write", lambda *facts: self.logged.append(facts[:2]))
        self.database = Database(f"sqlite:///{path}")
        self.store = CallerTokens(self.database, self.wall)
        self.directory = TokenDirectory(
            self.database, clock=lambda: self.now, wall_clock=self.wall, threads=False
        )
        self.directory.start()
        self.source = DirectorySource(self.directory)
        self.authenticator = Authenticator([self.source])

    def wall(self) -> float:
        return self.now + 1_800_000_000

    def create(self, *arguments: Any, **options: Any) -> tuple[str, bytes]:
        record, text = self.store.create(*(arguments or ("ada", "operator")), **options)
        self.directory.poll()
        return record.id, text.encode()

    def opens(self, token: bytes) -> bool:
        return self.source.known(token) is not None

    def status(self, token: bytes) -> int:
        """What the authenticator answers to a token."""
        try:
            asyncio.run(self.authenticator.check({b"authorization": [b"Bearer " + token]}))
        except Refused as error:
            return error.status
        return 200

    def hide(self) -> None:
        """Have the database be gone."""
        self.path.rename(self.path.with_suffix(".away"))

    def put_back(self) -> None:
        self.path.with_suffix(".away").rename(self.path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    place = Place(tmp_path / "guard.sqlite3", monkeypatch)
    yield place
    place.database.close()


# --- what is valid ------------------------------------------------------------------------------------


def test_a_token_is_its_caller(place: Place) -> None:
    token_id, token = place.create("ada", "operator", ["a", "b"])
    found = place.directory.verify(token)
    assert found is not None
    caller = found[0]
    assert caller == Caller(f"ada#{token_id}", "operator", owner="ada", scopes=("a", "b"), token_id=token_id)
    assert place.directory.caller_of(caller.principal) is caller
    assert place.directory.caller_with(token_id) is caller
    admission = place.source.known(token)
    assert admission is not None
    assert admission.principal == caller.principal


def test_a_verdict_holds_for_one_poll(place: Place) -> None:
    """The heads of requests are cached for so long: with the poll itself it is half a second at most."""
    _, token = place.create()
    admission = place.source.known(token)
    assert admission is not None
    assert admission.until == place.now + POLL_SECONDS
    assert 2 * POLL_SECONDS < 1


@pytest.mark.parametrize("at", [5, 17, 18, 30, 60])
def test_a_token_that_differs_in_one_character_opens_nothing(place: Place, at: int) -> None:
    _, token = place.create()
    wrong = token[:at] + (b"x" if token[at : at + 1] != b"x" else b"y") + token[at + 1 :]
    assert place.opens(token)
    assert not place.opens(wrong)
    assert place.status(wrong) == 401


def test_the_secret_of_one_token_does_not_open_another(place: Place) -> None:
    (_, first), (_, second) = place.create(), place.create("bob", "operator")
    assert not place.opens(first[:18] + second[18:])


@pytest.mark.parametrize("token", [b"", b"frpc_", b"x" * 61, b"frpc_" + b"\xff" * 12 + b"_" + b"A" * 43])
def test_what_is_no_token_is_unknown(place: Place, token: bytes) -> None:
    assert place.directory.verify(token) is None


@pytest.mark.parametrize("kind", ["known", "wrong secret", "unknown id"])
def test_every_token_takes_one_digest_and_one_comparison(
    place: Place, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an attacker can time is the same whether there is such an id or not."""
    _, token = place.create()
    token = {
        "known": token,
        "wrong secret": token[:18] + new_token()[1].encode()[18:],
        "unknown id": new_token()[1].encode(),
    }[kind]
    steps: list[str] = []
    digest_of, compare = directory_module.digest_of, hmac.compare_digest

    def noted_digest(data: bytes) -> bytes:
        steps.append("digest")
        return digest_of(data)

    def noted_comparison(one: bytes, other: bytes) -> bool:
        assert len(one) == len(other) == 32
        steps.append("comparison")
        return compare(one, other)

    monkeypatch.setattr(directory_module, "digest_of", noted_digest)
    monkeypatch.setattr(directory_module, "compare_digest", noted_comparison)
    assert place.opens(token) is (kind == "known")
    assert steps == ["digest", "comparison"]


def test_the_entry_that_unknown_ids_are_compared_with_opens_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "compare_digest", lambda *_: True)
    assert not place.opens(new_token()[1].encode())


def test_a_check_reads_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = place.create()
    monkeypatch.setattr(Database, "reading", None)
    monkeypatch.setattr(Database, "changing", None)
    assert place.opens(token)
    assert not place.opens(new_token()[1].encode())


# --- until when ---------------------------------------------------------------------------------------


def test_a_token_expires_by_itself(place: Place) -> None:
    token_id, token = place.create("ada", "operator", expires_in=10)
    place.now += 9.9
    admission = place.source.known(token)
    assert admission is not None
    assert admission.until == pytest.approx(place.now + 0.1)
    place.now += 0.1
    assert not place.opens(token)
    assert place.directory.caller_with(token_id) is None
    assert place.directory.caller_of(f"ada#{token_id}") is None


def test_a_revoked_token_opens_nothing_after_the_next_poll(place: Place) -> None:
    token_id, token = place.create()
    place.store.revoke(token_id)
    place.directory.poll()
    assert place.status(token) == 401
    assert place.directory.caller_of(f"ada#{token_id}") is None


def test_a_rotated_token_is_the_same_principal_and_both_open_while_they_overlap(place: Place) -> None:
    token_id, token = place.create()
    place.now -= 5  # the clock of another machine
    record, text = place.store.rotate(token_id, 10)
    place.directory.poll()
    assert place.opens(token)
    assert place.opens(text.encode())
    caller = place.directory.caller_of(f"ada#{token_id}")
    assert caller is not None
    assert caller.token_id == record.id
    place.now += 10
    assert not place.opens(token)
    assert place.opens(text.encode())


def test_a_change_by_hand_counts_with_the_next_reload(place: Place) -> None:
    token_id, token = place.create()
    with place.database.changing() as connection:
        connection.exec_driver_sql(f"UPDATE fastrpc_tokens SET revoked_at = 1 WHERE id = '{token_id}'")
    place.directory.poll()
    assert place.opens(token)
    place.now += RELOAD_SECONDS
    place.directory.poll()
    assert not place.opens(token)


def test_a_clock_of_the_machine_that_was_wrong_counts_with_the_next_reload(place: Place) -> None:
    _, token = place.create("ada", "operator", expires_in=RELOAD_SECONDS + 100)
    place.directory.wall_clock = lambda: place.wall() + 200
    place.now += RELOAD_SECONDS
    place.directory.poll()
    assert not place.opens(token)


def test_listeners_are_notified_of_those_whose_caller_is_another_now(place: Place) -> None:
    heard: list[frozenset[str]] = []
    place.directory.on_change(lambda principals: 1 / 0)
    place.directory.on_change(heard.append)
    one, _ = place.create()
    two, _ = place.create("bob", "operator")
    place.directory.poll()
    place.store.revoke(one)
    place.directory.poll()
    assert heard == [frozenset({f"ada#{one}"}), frozenset({f"bob#{two}"}), frozenset({f"ada#{one}"})]
    assert place.logged[0] == ("error", "a listener for changed tokens failed")


def test_listeners_hear_at_the_next_poll_of_each_token_that_expires_also_of_one_that_has_a_successor(
    place: Place,
) -> None:
    """Over stdio the caller is who has this token, and is remembered until then."""
    heard: list[frozenset[str]] = []
    expired, _ = place.create("bob", "operator", expires_in=5)
    rotated, _ = place.create()
    place.store.rotate(rotated, 10)
    place.directory.poll()
    place.directory.on_change(heard.append)
    place.now += 5
    place.directory.poll()
    assert place.directory.caller_with(rotated) is not None
    place.now += 5
    place.directory.poll()
    assert place.directory.caller_with(rotated) is None
    assert heard == [frozenset({f"bob#{expired}"}), frozenset({f"ada#{rotated}"})]


def test_listeners_hear_when_no_token_is_valid_any_more_since_none_can_be_read_and_when_they_are_again(
    place: Place,
) -> None:
    heard: list[frozenset[str]] = []
    token_id, _ = place.create()
    place.directory.on_change(heard.append)
    place.hide()
    place.directory.poll()
    assert heard == []
    place.now += GRACE_SECONDS
    for _ in range(2):
        place.directory.poll()
        assert heard == [frozenset({f"ada#{token_id}"})]
    place.put_back()
    place.directory.poll()
    assert heard == [frozenset({f"ada#{token_id}"})] * 2


# --- while nothing can be read ------------------------------------------------------------------------


def test_known_tokens_stay_valid_for_a_minute_then_503_until_it_can_be_read(place: Place) -> None:
    _, token = place.create()
    place.hide()
    place.now += GRACE_SECONDS - 0.1
    place.directory.poll()
    assert place.status(token) == 200
    assert place.status(new_token()[1].encode()) == 401
    assert "No such file" in place.logged[-1][1]
    place.now += 0.1
    place.directory.poll()
    assert place.status(token) == 503
    assert place.status(new_token()[1].encode()) == 503
    assert "no token is valid" in place.logged[-1][1]
    place.put_back()
    place.directory.poll()
    assert place.status(token) == 200
    assert [level for level, _ in place.logged] == ["error", "error", "warning"]


def test_what_was_revoked_meanwhile_is_refused_as_soon_as_it_can_be_read(place: Place) -> None:
    token_id, token = place.create()
    place.hide()
    place.directory.poll()
    place.put_back()
    place.store.revoke(token_id)
    place.directory.poll()
    assert place.status(token) == 401


def test_the_minute_counts_without_anybody_who_polls(place: Place) -> None:
    """A thread that has ended must not leave tokens valid for ever."""
    token_id, token = place.create()
    place.now += GRACE_SECONDS
    assert place.status(token) == 503
    assert not place.directory.is_available
    assert place.directory.caller_with(token_id) is None


def test_a_database_that_cannot_be_read_at_the_start_is_an_error(place: Place) -> None:
    place.hide()
    with pytest.raises(DatabaseUnavailable):
        TokenDirectory(place.database, threads=False)


def test_a_table_that_is_gone_is_no_database_without_tokens(place: Place) -> None:
    _, token = place.create()
    with place.database.changing() as connection:
        connection.exec_driver_sql("DROP TABLE fastrpc_tokens")
        connection.exec_driver_sql("UPDATE fastrpc_changes SET number = number + 1")
    place.directory.poll()
    assert place.status(token) == 200
    assert "no such table" in place.logged[-1][1]


# --- the time of last use -----------------------------------------------------------------------------


def test_when_a_token_was_used_is_written_apart_from_the_check(place: Place) -> None:
    _, token = place.create()
    place.now += 1
    place.create("bob", "operator")
    place.opens(token)
    assert [record.last_used_at for record in place.store.list()] == [None, None]
    used_at = place.wall()
    place.now += 20
    place.directory.poll()
    place.directory.write_uses()
    assert [record.last_used_at for record in place.store.list()] == [used_at, None]
    assert place.opens(token)


def test_a_use_that_could_not_be_written_is_kept(place: Place) -> None:
    _, token = place.create()
    place.opens(token)
    place.hide()
    place.directory.write_uses()
    assert place.logged[-1][0] == "warning"
    place.put_back()
    place.directory.write_uses()
    assert [record.last_used_at for record in place.store.list()] == [place.wall()]


def test_a_wrong_secret_is_refused(place: Place) -> None:
    _, token = place.create()
    place.opens(token[:-1] + b"-")
    place.directory.write_uses()
    assert place.store.list()[0].last_used_at is None


# --- threads and processes ----------------------------------------------------------------------------


def test_threads_see_changes_and_end_with_the_directory(place: Place) -> None:
    before = set(threading.enumerate())  # some may end on their own: others' of earlier tests
    directory = TokenDirectory(place.database)
    record, text = CallerTokens(place.database).create("ada", "operator")
    eventually(lambda: directory.verify(text.encode()))
    CallerTokens(place.database).revoke(record.id)
    eventually(lambda: directory.verify(text.encode()) is None)
    directory.close()
    assert set(threading.enumerate()) <= before
    assert place.store.list()[0].last_used_at is not None
    assert directory.verify(text.encode()) is None


def test_no_thread_runs_before_it_is_started_or_used(place: Place) -> None:
    """A server that forks its workers refuses to, once there are threads."""
    _, token = place.create()
    before = set(threading.enumerate())
    directory = TokenDirectory(place.database)
    assert set(threading.enumerate()) <= before
    assert directory.verify(token) is not None
    assert len(set(threading.enumerate()) - before) == 2
    directory.start()
    assert len(set(threading.enumerate()) - before) == 2
    directory.close()


def test_a_fault_of_ours_does_not_end_the_thread(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = TokenDirectory(place.database)
    read = directory._read
    faults: list[int] = []

    def broken() -> Any:
        faults.append(1)
        raise LookupError("a fault")

    monkeypatch.setattr(directory, "_read", broken)
    directory.start()
    eventually(lambda: len(faults) > 2)
    monkeypatch.setattr(directory, "_read", read)
    _, text = CallerTokens(place.database).create("ada", "operator")
    eventually(lambda: directory.verify(text.encode()))
    directory.close()
    assert ("error", "the token directory failed") in place.logged


def test_a_forked_process_sees_what_is_revoked(place: Place) -> None:
    """Workers are forked from the process that has made the directory."""
    directory = TokenDirectory(place.database)
    directory.start()
    record, text = CallerTokens(place.database).create("ada", "operator")
    eventually(lambda: directory.verify(text.encode()))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if directory.verify(text.encode()) is not None:
                os.write(writing, b"valid")
                eventually(lambda: directory.verify(text.encode()) is None)
                code = 0 if directory.is_available else 2
        finally:
            os._exit(code)
    os.close(writing)
    assert os.read(reading, 5) == b"valid"
    os.close(reading)
    CallerTokens(place.database).revoke(record.id)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    directory.close()


def test_nothing_shows_a_secret_or_a_digest(place: Place) -> None:
    _, token = place.create()
    found = place.directory.verify(token)
    assert found is not None
    shown = f"{place.directory!r} {found!r} {place.database!r} {place.store.list()!r} {place.logged!r}"
    assert token[18:].decode() not in shown
    assert directory_module.digest_of(token).hex() not in shown
