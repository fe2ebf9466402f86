"""The store of a project: what one server writes others read, whatever happens to the file meanwhile."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts._errors import EngineError
from fastrpc.tools.contracts._project_files import store as module
from fastrpc.tools.contracts._project_files.store import DONE, Chain, Deployment, Store
from support.contracts_session import in_loop

SEPOLIA = Chain("sepolia", "Sepolia", "https://node.example", 11155111)
LINE = Deployment("31337", "k", "f", DONE, "p", "a.sol:A", "0x1", 0, "0x2")

READER = """
import sys
from fastrpc.tools.contracts._project_files.store import Store
store = Store(sys.argv[1])
for _ in sys.stdin:
    print(*[chain.id for chain in store.chains()], flush=True)
"""
"""Another server, which reads the chains for each line and keeps its connection."""


class Reader:
    """That program."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", READER, str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.communicate()

    def chains(self) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        return self._process.stdout.readline().split()


def test_what_one_server_writes_is_what_others_read_next(tmp_path: Path) -> None:
    here = Store(str(tmp_path))
    with Reader(tmp_path) as other:
        assert (here.chains(), other.chains()) == ([], [])
        here.put_chain(SEPOLIA)
        assert (here.chains(), other.chains()) == ([SEPOLIA], ["sepolia"])
        here.put_deployment(LINE)
        assert here.deployment("31337", "k") == here.deployment_at("31337", "0x2") == LINE
        here.drop_deployment("31337", "k")
        assert here.deployment("31337", "k") is None


def test_a_file_that_is_removed_is_begun_anew_by_all_servers(tmp_path: Path) -> None:
    here = Store(str(tmp_path))
    with Reader(tmp_path) as other:
        here.put_chain(SEPOLIA)
        assert (here.chains(), other.chains()) == ([SEPOLIA], ["sepolia"])
        os.unlink(here.path)
        here.put_chain(SEPOLIA._replace(id="other"))
        assert ([each.id for each in here.chains()], other.chains()) == (["other"], ["other"])
        os.unlink(here.path)
        assert (other.chains(), here.chains()) == ([], [])
        here.put_chain(SEPOLIA)
        assert other.chains() == ["sepolia"]
    assert os.listdir(tmp_path) == [module.FILE]


def test_a_file_that_is_emptied_in_its_place_is_begun_anew(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)
    assert store.chains() == [SEPOLIA]
    os.truncate(store.path, 0)
    assert store.chains() == []


def test_a_file_that_a_newer_fastrpc_has_changed_is_neither_read_nor_written(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)
    assert store.chains() == [SEPOLIA]
    newer = len(module.MIGRATIONS) + 1
    with sqlite3.connect(store.path) as base:
        base.execute(f"PRAGMA user_version = {newer}")
    base.close()
    for use in (store.chains, lambda: store.put_chain(SEPOLIA._replace(id="other"))):
        with pytest.raises(EngineError, match=f"of a newer fastrpc \\(version {newer}\\)") as caught:
            use()
        assert (caught.value.code, caught.value.retry) == ("INTERNAL_ERROR", False)
    with sqlite3.connect(store.path) as base:
        assert base.execute("SELECT id FROM chains").fetchall() == [("sepolia",)]
    base.close()


def test_a_damaged_file_is_reported_and_left_and_a_whole_one_in_its_place_is_read(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)
    whole = Path(store.path).read_bytes()
    Path(store.path).write_bytes(b"nothing of the kind " * 500)
    for _ in range(2):
        with pytest.raises(EngineError, match="cannot be used: file is not a database") as caught:
            store.chains()
        assert (caught.value.code, caught.value.retry) == ("INTERNAL_ERROR", False)
    assert Path(store.path).read_bytes() == b"nothing of the kind " * 500
    Path(store.path).write_bytes(whole)
    assert store.chains() == [SEPOLIA]


@in_loop
async def test_reading_opens_the_file_once_and_begins_nothing_on_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)
    opened, statements = [], []
    connect = sqlite3.connect

    def counted(*given: Any, **more: Any) -> sqlite3.Connection:
        opened.append(given)
        connection: sqlite3.Connection = connect(*given, **more)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counted)
    monkeypatch.setattr(asyncio, "to_thread", None)
    for _ in range(10):
        assert await store.soon(Store.chains) == [SEPOLIA]
        assert await store.soon(Store.deployment, "31337", "k") is None
    assert len(opened) == 1
    assert statements.count("BEGIN") == 20
    assert not [each for each in statements if "IMMEDIATE" in each or "journal" in each]


@in_loop
async def test_a_lookup_waits_on_a_thread_while_somebody_writes(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)
    assert await store.soon(Store.chains) == [SEPOLIA]
    base = sqlite3.connect(store.path, isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    reading = asyncio.ensure_future(store.soon(Store.chains))
    for _ in range(20):
        await asyncio.sleep(0)  # the loop goes on
    assert not reading.done()
    base.execute("UPDATE chains SET name = 'changed'")
    base.execute("COMMIT")
    base.close()
    (found,) = await reading
    assert found.name == "changed"


def test_who_waits_for_too_long_may_try_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path), wait_seconds=0.01)
    store.put_chain(SEPOLIA)
    base = sqlite3.connect(store.path, isolation_level=None)
    base.execute("BEGIN EXCLUSIVE")
    for use in (store.chains, lambda: store.put_chain(SEPOLIA)):
        with pytest.raises(EngineError, match="locked") as caught:
            use()
        assert caught.value.retry is True
    base.close()
    assert store.chains() == [SEPOLIA]


def test_threads_read_one_after_another(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.put_chain(SEPOLIA)

    async def all_at_once() -> list[list[Chain]]:
        return await asyncio.gather(*(asyncio.to_thread(store.chains) for _ in range(50)))

    assert asyncio.run(all_at_once()) == [[SEPOLIA]] * 50


def test_errors_of_all_projects_are_known(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    error = {"type": "error", "name": "TooMuch", "inputs": []}
    for project, abi in (("one", [error, {"type": "constructor"}]), ("two", [])):
        store.put_artifacts(project, [{"path": "a.sol", "name": "A", "abi": abi}])
    assert store.errors() == [error]
