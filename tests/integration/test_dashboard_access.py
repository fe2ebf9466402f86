"""The links, sessions and forms of the dashboard, in both kinds of databases."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fastrpc.dashboard.access import SignInStore
from fastrpc.storage.database import Database

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
