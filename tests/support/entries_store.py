"""The fixture `store`: a store of entries, in SQLite and in PostgreSQL, whose files lie in a folder of the
test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastrpc.tools.knowledge._store.entries import Entries
from fastrpc.tools.knowledge._store.kind import KNOWLEDGE

from fastrpc.storage import open_database


@pytest.fixture
def store(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Entries]:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    database = open_database(database_url, KNOWLEDGE)
    yield Entries(database)
    database.close()
