"""Notifications of PostgreSQL: one connection for all that listens in a process, made again if it is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from support.waiting import eventually

pytest.importorskip("sqlalchemy", reason='pip install "fastrpc-mcp[guard]"')

from fastrpc.storage import open_database
from fastrpc.storage.notifications import MOST_BYTES, listen, notify
from fastrpc.tasks.kind import TASKS

pytest_plugins = ["support.postgres"]


class Heard:
    """What one subscription has heard; a connection is None."""

    def __init__(self, database: Any, channel: str) -> None:
        self.all: list[str | None] = []
        self.subscription = listen(database, channel, self.all.append, lambda: self.all.append(None))


@pytest.fixture
def name(postgres: Any) -> str:
    return str(postgres.new_database())


@pytest.fixture
def databases(postgres: Any, name: str) -> Iterator[list[Any]]:
    """Two kinds of databases at one URL."""
    opened = [open_database(postgres.url(name)), open_database(postgres.url(name), TASKS)]
    yield opened
    for each in opened:
        each.close()


def said(database: Any, channel: str, payload: str) -> None:
    with database.changing() as connection:
        notify(connection, channel, payload)


def listeners(postgres: Any, name: str) -> int:
    found = postgres.execute(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND query LIKE 'LISTEN%'"
    )
    return int(found[0][0])


def test_all_that_listens_shares_one_connection(postgres: Any, name: str, databases: list[Any]) -> None:
    one, two = Heard(databases[0], "one"), Heard(databases[1], "two")
    eventually(lambda: one.all == [None] and two.all == [None])
    later = Heard(databases[0], "one")
    eventually(lambda: later.all == [None])
    said(databases[0], "one", "a" * MOST_BYTES)
    said(databases[1], "two", "é")
    eventually(lambda: one.all[1:] == later.all[1:] == ["a" * MOST_BYTES] and two.all[1:] == ["é"])
    assert listeners(postgres, name) == 1
    one.subscription.end()
    said(databases[0], "one", "b")
    eventually(lambda: later.all[2:] == ["b"])
    assert len(one.all) == 2
    later.subscription.end()
    two.subscription.end()
    eventually(lambda: listeners(postgres, name) == 0)


def test_a_lost_connection_is_made_again_and_that_is_said(
    postgres: Any, name: str, databases: list[Any]
) -> None:
    heard = Heard(databases[0], "one")
    eventually(lambda: heard.all == [None])
    postgres.disconnect(name)
    eventually(lambda: heard.all == [None, None])
    postgres.execute("SELECT pg_notify('one', 'after')", name)
    eventually(lambda: heard.all == [None, None, "after"])
    heard.subscription.end()


def test_what_a_listener_raises_ends_nothing(databases: list[Any]) -> None:
    def fails(payload: str) -> None:
        raise ValueError(payload)

    failing = listen(databases[0], "one", fails, lambda: None)
    heard = Heard(databases[0], "one")
    eventually(lambda: heard.all == [None])
    for number in range(3):
        said(databases[0], "one", str(number))
    eventually(lambda: heard.all[1:] == ["0", "1", "2"])
    failing.end()
    heard.subscription.end()


def test_a_forked_child_leaves_the_connection_to_its_parent(databases: list[Any]) -> None:
    heard = Heard(databases[0], "one")
    eventually(lambda: heard.all == [None])
    child = os.fork()
    if child == 0:
        from fastrpc.storage import notifications

        os._exit(len(notifications._listeners))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    said(databases[0], "one", "still")
    eventually(lambda: heard.all == [None, "still"])
    heard.subscription.end()
