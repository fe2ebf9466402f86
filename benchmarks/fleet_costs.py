"""What a fleet costs one PostgreSQL and its hosts, measured with the real stores: the figures of `fleet.py`.

PostgreSQL flushes to the disk (fsync). Processor time is that of all its processes, so other programs on the
machine do not count; what waits for the disk does, and is given with the machine's load.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
sys.path[:0] = [REPOSITORY, os.path.join(REPOSITORY, "tests")]

import psycopg  # noqa: E402
from support.http_client import Serving  # noqa: E402
from support.postgres import program, running  # noqa: E402
from support.programs import extend_path  # noqa: E402

from fastrpc.guard.leases.store import Change, LimitStore  # noqa: E402
from fastrpc.protocol.session_changes import SessionChange  # noqa: E402
from fastrpc.shared_store import rows  # noqa: E402
from fastrpc.shared_store.kind import SHARED_STORE  # noqa: E402
from fastrpc.storage import open_database  # noqa: E402
from fastrpc.storage.database import KeptConnection  # noqa: E402
from fastrpc.tasks import store  # noqa: E402
from fastrpc.tasks.changes import announce  # noqa: E402
from fastrpc.tasks.kind import TASKS  # noqa: E402
from fastrpc.tasks.record import COMPLETED, TaskRecord  # noqa: E402
from http_workers import CLIENT, command  # noqa: E402
from roster import PORT, TOKEN  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.postgres import Cluster

    from fastrpc.storage import DatabaseKind

    Work = Callable[[Any, int], object]

ROUNDS, AT_ONCE = 10, 20
LISTENERS = 40
CONNECTIONS = 8
SECONDS = 2.0
SESSIONS = 500
CHANNEL = "fastrpc_measured"
TEXT = "x" * 200
PARAMS = json.dumps({"name": "build", "arguments": {"what": TEXT}})
RESULT = json.dumps({"content": [{"type": "text", "text": 2 * TEXT}]})


def measured() -> dict[str, Any]:
    """All costs, by name; `_ms` are milliseconds of a processor, unless they say `wait`."""
    extend_path()
    before = os.getloadavg()[0]
    with running(
        program("initdb"), program("postgres"), "PostgreSQL is not installed", fsync="on"
    ) as cluster:
        found = {
            "task": of_tasks(cluster),
            "session": of_sessions(cluster),
            "limit": of_limits(cluster),
            "notification": of_notifications(cluster),
            "commits": of_commits(cluster),
        }
    found["host"] = of_hosts()
    found["load"] = [round(before, 1), round(os.getloadavg()[0], 1)]
    return found


# --- statements -----------------------------------------------------------------------------------------


class Measured:
    """A database of a kind, and what statements on it cost."""

    def __init__(self, cluster: Cluster, kind: DatabaseKind) -> None:
        self.name = cluster.new_database()
        self.cluster = cluster
        self.database = open_database(cluster.url(self.name), kind)
        self._kept = KeptConnection(self.database)
        self._times: dict[str, list[float]] = {}

    def run(self, name: str, work: Work, count: int = AT_ONCE) -> None:
        """Do something so many times, a transaction each."""
        before = server_ns(self.cluster)
        for at in range(count):
            with self.database.changing(self._kept) as connection:
                work(connection, at)
        used = {pid: ns - before.get(pid, 0) for pid, ns in server_ns(self.cluster).items()}
        self._times.setdefault(name, []).append(sum(used.values()) / count / 1e6)

    def costs(self) -> dict[str, float]:
        """The median milliseconds of PostgreSQL's processors of each kind of transaction."""
        self._kept.close()
        self.database.close()
        return {f"{name}_ms": round(statistics.median(each), 4) for name, each in self._times.items()}


def server_ns(cluster: Cluster) -> dict[int, int]:
    """The processor time of each process of PostgreSQL."""
    found = {}
    with open(f"/proc/{cluster.process.pid}/task/{cluster.process.pid}/children", encoding="ascii") as file:
        pids = [cluster.process.pid, *map(int, file.read().split())]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/schedstat", "rb") as file_of:
                found[pid] = int(file_of.read().split()[0])
        except OSError:  # it has ended meanwhile
            continue
    return found


def of_tasks(cluster: Cluster) -> dict[str, Any]:
    """A task's life, tasks one after the other, and the turns of a process in which nothing runs."""
    measured = Measured(cluster, TASKS)

    def wal() -> int:
        return int(cluster.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])

    began = wal()
    for _ in range(ROUNDS):
        life_of_tasks(measured)
    written = wal() - began
    for _ in range(ROUNDS):
        measured.run("turn", lambda c, at: store.take_queued(c, "shop", ["build"], "aw", 0.0, [], 4))
        measured.run("sweep", lambda c, at: sweep(c, time.time()), 4)
    size = cluster.execute("SELECT pg_total_relation_size('fastrpc_tasks')", measured.name)[0][0]
    count = ROUNDS * AT_ONCE
    kept = {"log_bytes": round(written / count), "row_bytes": round(size / count)}
    return {**measured.costs(), **kept}


def life_of_tasks(measured: Measured) -> None:
    now = time.time()
    records = [record(now + at / 1e6) for at in range(AT_ONCE)]
    ids = [each.id for each in records]

    def end(connection: Any, at: int) -> None:
        assert store.end(connection, ids[at], "aw", COMPLETED, now, result=RESULT)

    def take(connection: Any, at: int) -> None:
        taken = store.take_queued(connection, "shop", ["build"], "aw", now + 15, ids[:at], 1)
        assert [each.id for each in taken] == [ids[at]]

    measured.run("create", lambda c, at: store.create(c, records[at]))
    measured.run("take", take)
    measured.run("read", lambda c, at: store.read(c, ids[at], "shop", "ada", now))
    measured.run("end", end)
    measured.run("announce", lambda c, at: announce(c, ids[at], "aw"))


def record(now: float) -> TaskRecord:
    return TaskRecord(
        id=store.new_id(),
        owner="ada",
        server="shop",
        tool="build",
        version="2026-07-28",
        idempotent=1,
        created_at=now,
        updated_at=now,
        ttl_ms=86_400_000,
        expires_at=now + 86_400,
        poll_ms=500,
        worker="",
        lease_until=0.0,
        runs=0,
        params=PARAMS,
    )


def sweep(connection: Any, now: float) -> None:
    """What `TaskBoard._sweep` does in several transactions."""
    store.renew(connection, "aw", now, [])
    store.remove_expired(connection, now)
    store.workers(connection, "shop")
    store.fail_lost(connection, "shop", "aw", now, [], 16, "{}")
    store.take_lost(connection, "shop", "aw", now, now, [], 16)


def of_sessions(cluster: Cluster) -> dict[str, float]:
    """A session's first change, which makes its row; a further one; and reading it at another process."""
    measured = Measured(cluster, SHARED_STORE)
    change = SessionChange(None, {"docs://guide": ""}, ())
    for turn in range(ROUNDS):
        ids = [f"session-{turn}-{at}" for at in range(AT_ONCE)]
        measured.run("change", lambda c, at, ids=ids: rows.change(c, ids[at], change))  # type: ignore[misc]
        measured.run("read", lambda c, at, ids=ids: rows.read(c, [ids[at]]))  # type: ignore[misc]
        measured.run("end", lambda c, at, ids=ids: rows.end(c, ids[at]))  # type: ignore[misc]
    return measured.costs()


def of_limits(cluster: Cluster) -> dict[str, float]:
    """A process's lease of a rate: at most one transaction a second and process."""
    url = cluster.url(cluster.new_database())
    database = open_database(url)
    limits, times = LimitStore(database), []
    asked = Change("a key", 10**9, 60, slice_seconds=60.0, least=1, want=10)
    for _ in range(ROUNDS):
        before = server_ns(cluster)
        for _ in range(AT_ONCE):
            limits.settle([asked])
        used = {pid: ns - before.get(pid, 0) for pid, ns in server_ns(cluster).items()}
        times.append(sum(used.values()) / AT_ONCE / 1e6)
    database.close()
    return {"settle_ms": round(statistics.median(times), 4)}


# --- notifications and commits --------------------------------------------------------------------------


def of_notifications(cluster: Cluster) -> dict[str, float]:
    """A notification without listeners, and what each process that listens adds."""
    url, found = cluster.url(cluster.new_database()), []
    for listeners in (0, LISTENERS):
        with_them = [psycopg.connect(url, autocommit=True) for _ in range(listeners)]
        for each in with_them:
            each.execute(f'LISTEN "{CHANNEL}"')
        times = []
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(ROUNDS):
                before = server_ns(cluster)
                for _ in range(AT_ONCE):
                    connection.execute(f"SELECT pg_notify('{CHANNEL}', 'a payload')")
                time.sleep(0.05)  # until the last has been heard
                used = {pid: ns - before.get(pid, 0) for pid, ns in server_ns(cluster).items()}
                times.append(sum(used.values()) / AT_ONCE / 1e6)
        for each in with_them:
            each.close()
        found.append(statistics.median(times))
    alone, heard = found
    return {"send_ms": round(alone, 4), "listener_ms": round((heard - alone) / LISTENERS, 5)}


def of_commits(cluster: Cluster) -> dict[str, float]:
    """Transactions a second of several connections; those that notify commit one after the other. And the
    memory of a connection, and the wait for the disk, by which another disk's figures can be told."""
    name = cluster.new_database()
    url = cluster.url(name)
    cluster.execute("CREATE TABLE written (id bigserial PRIMARY KEY, content text)", name)
    insert = f"INSERT INTO written (content) VALUES ('{TEXT}')"
    return {
        "rows_a_second": rate(url, [insert]),
        "notifying_a_second": rate(url, [f"SELECT pg_notify('{CHANNEL}', 'a payload')"]),
        "rows_that_notify_a_second": rate(url, ["BEGIN", insert, f"NOTIFY {CHANNEL}, 'x'", "COMMIT"]),
        "connection_mb": connection_mb(cluster),
        "flush_wait_ms": flush_ms(cluster.folder),
    }


def rate(url: str, statements: Sequence[str]) -> int:
    counts, over = [0] * CONNECTIONS, threading.Event()

    def run(at: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set():
                for statement in statements:
                    connection.execute(statement.encode())
                counts[at] += 1

    threads = [threading.Thread(target=run, args=(at,)) for at in range(CONNECTIONS)]
    for each in threads:
        each.start()
    time.sleep(SECONDS)
    over.set()
    for each in threads:
        each.join()
    return round(sum(counts) / SECONDS)


def connection_mb(cluster: Cluster) -> float:
    """The private memory of a connection's process that has run the statements of tasks."""
    database, sizes = open_database(cluster.url(cluster.new_database()), TASKS), []
    for _ in range(5):
        with database.changing() as connection:
            store.create(connection, record(time.time()))
            store.take_queued(connection, "shop", ["build"], "aw", time.time(), [], 1)
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            sizes.append(private_kb(f"/proc/{pid}/smaps_rollup") / 1024)
    database.close()
    return round(statistics.median(sizes), 1)


def private_kb(path: str) -> int:
    with open(path, encoding="ascii") as file:
        lines = dict(line.split(":", 1) for line in file.readlines()[1:])
    return sum(int(lines[name].split()[0]) for name in ("Private_Dirty", "Private_Clean"))


def flush_ms(folder: str) -> float:
    path, times = os.path.join(folder, "flushed"), []
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(200):
        os.write(file, b"x" * 8192)
        began = time.perf_counter()
        os.fdatasync(file)
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.002)
    os.close(file)
    return round(statistics.median(times), 3)


# --- hosts ----------------------------------------------------------------------------------------------


def of_hosts() -> dict[str, float]:
    """The smallest call in a session, and the memory of a session that is not in use."""
    options = ("--workload", "http", "--connections", "64", "--token", TOKEN, "--wire", "session")
    load = [CLIENT, *options, "--seconds", str(SECONDS), "--", *command(1, PORT)]
    done = subprocess.run(load, capture_output=True, text=True, timeout=120, check=True)
    return {
        "call_ms": round(json.loads(done.stdout)["server_cpu_us_per_call"] / 1000, 5),
        "session_kb": session_kb(),
    }


def session_kb() -> float:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tools.py").write_text('from fastrpc import Server\napp = Server("idle")\n')
        environment = {"FASTRPC_STATE_DIR": folder, "FASTRPC_SECRET": TOKEN}
        where = ("serve", "tools.py", "--http", "127.0.0.1:0")
        with Serving(*where, folder=Path(folder), **environment) as server:
            for _ in range(50):
                server.session()
            before = private_kb(f"/proc/{server.pid}/smaps_rollup")
            for _ in range(SESSIONS):
                server.session()
            return round((private_kb(f"/proc/{server.pid}/smaps_rollup") - before) / SESSIONS, 1)
