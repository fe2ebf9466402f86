"""The persistent state of a project: chains, artifacts and deployments, in one SQLite file shared by servers.

The ledger of deployments is written before anything is sent, by chain and idempotency key, with a fingerprint
of what is deployed. So the same key never deploys twice, and never another contract. A change is on disk when
the function returns, which costs some 2 ms. Reading costs 20 us, on a connection that is reused as long as
the file is the same. Both wait while others write: call them on a worker thread, or read by `soon`. Each
engine interprets the rows. Raises EngineError(INTERNAL_ERROR) for a file that cannot be used, and does not
change it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from .._errors import ARTIFACT_NOT_FOUND, INTERNAL_ERROR, INVALID_REQUEST, EngineError
from .._values import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Given = ParamSpec("Given")
Found = TypeVar("Found")

FILE = "contracts.sqlite3"
WAIT_SECONDS = 10.0
MOST_SEARCHED = 500  # contracts whose errors are searched
PLANNED, SENT, DONE = "planned", "sent", "done"

# The statements at index n - 1 make version n of the schema from version n - 1; released ones never change.
MIGRATIONS = (
    """
    CREATE TABLE chains (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, rpc_url TEXT NOT NULL, chain_id TEXT NOT NULL,
        preset TEXT NOT NULL, explorer TEXT NOT NULL
    );
    CREATE TABLE artifacts (
        project TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL,
        made_at REAL NOT NULL, PRIMARY KEY (project, path, name)
    );
    CREATE TABLE deployments (
        chain TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL,
        project TEXT NOT NULL, contract TEXT NOT NULL, sender TEXT NOT NULL, nonce INTEGER NOT NULL,
        address TEXT NOT NULL, tx_hash TEXT NOT NULL, receipt TEXT NOT NULL, made_at REAL NOT NULL,
        PRIMARY KEY (chain, key)
    );
    CREATE INDEX deployments_by_address ON deployments (chain, address);
    """,
)


class Chain(NamedTuple):
    """A registered chain. `chain_id` is its number."""

    id: str
    name: str
    rpc_url: str
    chain_id: int
    preset: str = ""
    explorer: str = ""

    @classmethod
    def of(cls, given: dict[str, Any], *, name: str) -> Chain:
        """The chain in the parameters of chain_register; `name`: if they have none."""
        preset, explorer = given.get("preset", ""), given.get("explorer", "")
        return cls(
            given["id"], given.get("name", name), given["rpc_url"], given["chain_id"], preset, explorer
        )


class Deployment(NamedTuple):
    """A line of the ledger. `state`: planned, before anything is sent; sent; done, with a receipt."""

    chain: str
    key: str
    fingerprint: str
    state: str
    project: str
    contract: str
    sender: str
    nonce: int
    address: str
    tx_hash: str = ""
    receipt: str = ""


class Store:
    """The file in `folder`, which must be private to the user. One connection serves all reads, in turns;
    each change uses a separate one. Both wait for `wait_seconds` while others write."""

    def __init__(self, folder: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path = os.path.join(folder, FILE)
        self._wait_seconds = wait_seconds
        self._at_once: Store | None = None
        self._turn = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    async def soon(
        self, read: Callable[Concatenate[Store, Given], Found], *given: Given.args, **more: Given.kwargs
    ) -> Found:
        """Return the result of a method that reads. It runs on this thread, which is five times as fast as on
        a worker thread. It runs on a worker thread if it must wait for a writer."""
        if self._at_once is None:
            self._at_once = Store(os.path.dirname(self.path), 0.0)
        try:
            return read(self._at_once, *given, **more)
        except EngineError as error:
            if not error.retry:
                raise
        return await asyncio.to_thread(read, self, *given, **more)

    # --- chains ---------------------------------------------------------------------------------------

    def chains(self) -> list[Chain]:
        with self._reading() as base:
            rows = base.execute(
                "SELECT id, name, rpc_url, chain_id, preset, explorer FROM chains ORDER BY id"
            )
            return [Chain(row[0], row[1], row[2], int(row[3]), row[4], row[5]) for row in rows]

    def put_chain(self, chain: Chain) -> None:
        with self._writing() as base:
            values = (*chain[:3], str(chain.chain_id), *chain[4:])
            base.execute("INSERT OR REPLACE INTO chains VALUES (?, ?, ?, ?, ?, ?)", values)

    # --- artifacts ------------------------------------------------------------------------------------

    def put_artifacts(self, project: str, artifacts: list[dict[str, Any]]) -> None:
        """Replace the project's artifacts by those of a compilation."""
        now = time.time()
        rows = [(project, each["path"], each["name"], json.dumps(each), now) for each in artifacts]
        with self._writing() as base:
            base.execute("DELETE FROM artifacts WHERE project = ?", (project,))
            base.executemany("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?)", rows)

    def artifact(self, name: str, project: str | None) -> dict[str, Any]:
        """The artifact with this name, ``Counter`` or ``path:Counter``; by default that of the newest
        project. Raises EngineError(ARTIFACT_NOT_FOUND), and INVALID_REQUEST if several paths have the
        name."""
        path, _, short = name.rpartition(":")
        with self._reading() as base:
            if project is None:
                asked, values = "name = ? AND (? = '' OR path = ?)", (short, path, path)
                newest = base.execute(
                    f"SELECT project FROM artifacts WHERE {asked} ORDER BY made_at DESC LIMIT 1", values
                ).fetchone()
                project = newest[0] if newest else ""
            rows = base.execute(
                "SELECT path, content FROM artifacts WHERE project = ? AND name = ? AND (? = '' OR path = ?)",
                (project, short, path, path),
            ).fetchall()
            known = [
                row[0] for row in base.execute("SELECT name FROM artifacts WHERE project = ?", (project,))
            ]
        if not rows:
            raise _no_artifact(name, project, known)
        if len(rows) > 1:
            choices = ", ".join(f"{row[0]}:{short}" for row in rows)
            raise EngineError(INVALID_REQUEST, f"{quoted(name)} is in several files; say which: {choices}")
        found: dict[str, Any] = json.loads(rows[0][1])
        return {"project_id": project, **found}

    def errors(self) -> list[dict[str, Any]]:
        """The errors that the contracts of all projects declare, those compiled last first."""
        newest = "SELECT content FROM artifacts ORDER BY made_at DESC LIMIT ?"
        with self._reading() as base:
            rows = base.execute(newest, (MOST_SEARCHED,)).fetchall()
        entries = (entry for (content,) in rows for entry in json.loads(content)["abi"])
        return [entry for entry in entries if entry.get("type") == "error"]

    # --- deployments ----------------------------------------------------------------------------------

    def deployment(self, chain: str, key: str) -> Deployment | None:
        with self._reading() as base:
            return _deployment(base, "chain = ? AND key = ?", (chain, key))

    def deployment_at(self, chain: str, address: str) -> Deployment | None:
        """The newest deployment to an address."""
        with self._reading() as base:
            return _deployment(base, "chain = ? AND address = ? AND state = 'done'", (chain, address))

    def deployed(self) -> set[str]:
        """The keys and addresses of all deployments that are done."""
        with self._reading() as base:
            rows = base.execute("SELECT key, address FROM deployments WHERE state = 'done'")
            return {text for row in rows for text in row}

    def projects(self) -> dict[str, str]:
        """The newest project with a contract, by the contract's name."""
        with self._reading() as base:
            return dict(base.execute("SELECT name, project FROM artifacts ORDER BY made_at"))

    def sender_on(self, chain: str) -> str:
        """The account that has made the newest deployment on a chain; empty without one."""
        with self._reading() as base:
            row = base.execute(
                "SELECT sender FROM deployments WHERE chain = ? AND state = 'done' AND sender != ''"
                " ORDER BY made_at DESC LIMIT 1",
                (chain,),
            ).fetchone()
        return "" if row is None else str(row[0])

    def put_deployment(self, deployment: Deployment) -> None:
        with self._writing() as base:
            base.execute(
                "INSERT OR REPLACE INTO deployments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*deployment, time.time()),
            )

    def drop_deployment(self, chain: str, key: str) -> None:
        """Remove a deployment of which nothing was sent."""
        with self._writing() as base:
            base.execute("DELETE FROM deployments WHERE chain = ? AND key = ?", (chain, key))

    # --- the file -------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction, which is on disk, or undone, at the end of the block."""
        with _failures_told(), closing(self._connect()) as base:
            # No write-ahead log: if the file is removed, a left-over log damages the next file.
            base.execute("PRAGMA journal_mode = DELETE")
            base.execute("PRAGMA synchronous = FULL")
            base.execute("BEGIN IMMEDIATE")
            _migrate(base)
            yield base
            base.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The shared connection, in a transaction that sees one state of the file."""
        with _failures_told(), self._turn:
            try:
                base = self._kept()
                base.execute("BEGIN")
                if _version(base) < len(MIGRATIONS):
                    base.execute("COMMIT")
                    with self._writing():
                        pass
                    base.execute("BEGIN")
                yield base
                base.execute("COMMIT")
            except BaseException:
                self._close()
                raise

    def _kept(self) -> sqlite3.Connection:
        """The connection to the file that has this path now: the former one may have been removed."""
        file = _identity(self.path)
        if self._connection is None or file is None or file != self._file:
            self._close()
            self._connection = self._connect()
            self._connection.execute("PRAGMA query_only = ON")
            self._file = file
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, self._wait_seconds, isolation_level=None, check_same_thread=False)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def __del__(self) -> None:
        self._close()


def _identity(path: str) -> tuple[int, int] | None:
    """What distinguishes a file from others with its name; None for a missing or empty one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


@contextmanager
def _failures_told() -> Iterator[None]:
    """Convert exceptions of SQLite to EngineError."""
    try:
        yield
    except sqlite3.Error as error:
        raise EngineError(
            INTERNAL_ERROR,
            f"the project's file {FILE} cannot be used: {error}",
            retry="locked" in str(error),
        ) from error


def _version(base: sqlite3.Connection) -> int:
    """The version of the schema. Raises EngineError for an unknown one."""
    version: int = base.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise EngineError(
            INTERNAL_ERROR, f"the project's file {FILE} is of a newer fastrpc (version {version})"
        )
    return version


def _migrate(base: sqlite3.Connection) -> None:
    for number in range(_version(base), len(MIGRATIONS)):
        for statement in MIGRATIONS[number].split(";"):
            base.execute(statement)
        base.execute(f"PRAGMA user_version = {number + 1}")


def _deployment(base: sqlite3.Connection, condition: str, values: tuple[str, str]) -> Deployment | None:
    columns = ", ".join(Deployment._fields)
    row = base.execute(
        f"SELECT {columns} FROM deployments WHERE {condition} ORDER BY made_at DESC LIMIT 1", values
    ).fetchone()
    return None if row is None else Deployment(*row)


def _no_artifact(name: str, project: str, known: list[str]) -> EngineError:
    from fastrpc.errors import suggestion

    where = f" in project {quoted(project)}" if project else ""
    hint = suggestion(name.rpartition(":")[2], known) or "; compile it first"
    return EngineError(ARTIFACT_NOT_FOUND, f"no contract {quoted(name)}{where}{hint}")
