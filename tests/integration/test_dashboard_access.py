"""The links, sessions and forms of the dashboard, in both kinds of databases."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import select

from fastrpc.dashboard.access import LINK_SECONDS, SESSION_SECONDS, SignInStore
from fastrpc.storage.database import Database
from fastrpc.storage.schema import dashboard_keys

pytest_plugins = ["support.postgres"]
FORMS = 20


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    found = Database(database_url)
    yield found
    found.close()


def test_of_a_form_that_arrives_twice_at_once_one_is_the_first(database: Database) -> None:
    keys, both = SignInStore(database), Barrier(2, timeout=60)

    def is_first(form: str) -> bool:
        both.wait()
        return keys.is_first(form, "ada")

    with ThreadPoolExecutor(2) as threads:
        for number in range(FORMS):
            assert sorted(threads.map(is_first, [f"form {number}"] * 2)) == [False, True]


@pytest.mark.parametrize("added", ["link", "session", "form"])
def test_whatever_is_added_removes_what_has_ended(database: Database, added: str) -> None:
    now = 1000.0
    keys = SignInStore(database, lambda: now)
    keys.make_link("ada", "viewer")
    keys.begin("ada", "viewer")
    keys.is_first("a form", "ada")
    now += SESSION_SECONDS + LINK_SECONDS
    if added == "link":
        keys.make_link("bob", "viewer")
    elif added == "session":
        keys.begin("bob", "viewer")
    else:
        keys.is_first("another form", "bob")
    with database.reading() as connection:
        rows = connection.execute(select(dashboard_keys.c.kind, dashboard_keys.c.person)).all()
    assert [tuple(row) for row in rows] == [(added, "bob")]
