"""A database of the guard, new for each test: a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fastrpc.storage.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = Database(f"sqlite:///{tmp_path}/guard.sqlite3")
    yield found
    found.close()
