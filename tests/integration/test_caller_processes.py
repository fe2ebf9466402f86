"""Tokens across processes, on both kinds of databases: what others see, and what kill -9 leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.http_client import Serving
from support.waiting import eventually

from fastrpc.guard.callers.directory import GRACE_SECONDS, TokenDirectory
from fastrpc.guard.callers.http_source import DirectorySource
from fastrpc.guard.callers.tokens import CallerTokens, TokenError, TokenRecord
from fastrpc.storage.database import Database
from fastrpc.storage.schema import change_number
from fastrpc.transports.http.auth import Authenticator
from fastrpc.transports.http.guard import Refused

if TYPE_CHECKING:
    from support.postgres import Cluster

pytest_plugins = ["support.postgres"]

SECONDS = 60.0


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    database.close()


def command(url: str, *arguments: str) -> Any:
    """Run ``fastrpc token`` in a separate process, and return what it prints as JSON."""
    program = "import sys; from fastrpc.cli.token import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--json"],
        env={**os.environ, "FASTRPC_GUARD_DATABASE": url},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- what others do -----------------------------------------------------------------------------------

WATCH = """
import sys, time
from fastrpc.guard.callers.directory import TokenDirectory
from fastrpc.storage import open_database
directory = TokenDirectory(open_database(sys.argv[1]))
token, before = sys.argv[2].encode(), None
while True:
    now = directory.verify(token) is not None
    if now != before:
        print("valid" if now else "refused", flush=True)
    before = now
    time.sleep(0.01)
"""


def test_a_revocation_is_seen_by_every_process(database_url: str, database: Database) -> None:
    store = CallerTokens(database)
    record, text = store.create("ada", "operator")
    watching = [
        subprocess.Popen([sys.executable, "-c", WATCH, database_url, text], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        lines = [process.stdout for process in watching if process.stdout is not None]
        assert [line.readline() for line in lines] == ["valid\n"] * 2
        command(database_url, "revoke", record.id)
        assert [line.readline() for line in lines] == ["refused\n"] * 2
    finally:
        for process in watching:
            process.kill()
            process.communicate()


SERVER = """
    import os, sys
    from fastrpc import Server
    from fastrpc.guard.callers.directory import TokenDirectory
    from fastrpc.guard.callers.http_source import DirectorySource
    from fastrpc.storage import open_database
    from fastrpc.transports.http.auth import Authenticator

    app = Server("shop")

    @app.tool(run="inline", effect="read")
    def worker() -> str:
        return str(os.getpid())

    directory = TokenDirectory(open_database(sys.argv[1]))
    app.run(http="127.0.0.1:0", workers=2, token=Authenticator([DirectorySource(directory)]))
"""


def test_a_token_opens_a_server_with_workers_until_it_is_revoked(
    database_url: str, database: Database, tmp_path: Path
) -> None:
    """The directory is made before the workers are forked, and none of them has a part in the revocation."""
    (tmp_path / "server.py").write_text(textwrap.dedent(SERVER))
    store = CallerTokens(database)
    record, text = store.create("ada", "operator")
    with Serving(command=(sys.executable, "server.py", database_url), folder=tmp_path, token=text) as server:
        seen: set[str] = set()

        def both_have_answered() -> bool:
            seen.add(server.call("worker"))
            return len(seen) == 2

        eventually(both_have_answered)  # and have cached the head of the request
        store.revoke(record.id)
        answers: list[int] = []

        def all_refuse() -> bool:
            answers.append(server.stateless_request("tools/call", {"name": "worker", "arguments": {}}).status)
            return answers[-12:] == [401] * 12

        eventually(all_refuse)
        server.token = store.create("bob", "operator")[1]
        eventually(lambda: server.stateless_request("tools/list", {}).status == 200)
        assert text not in server.stderr + server.stdout
        assert server.stop() == 0


# --- several at once ----------------------------------------------------------------------------------


def test_of_several_who_rotate_a_token_at_once_one_does(database: Database) -> None:
    store = CallerTokens(database)
    record, _ = store.create("ada", "operator")
    outcomes: list[str] = []
    begin = threading.Barrier(4)

    def rotate() -> None:
        begin.wait()
        try:
            outcomes.append(store.rotate(record.id, 60)[0].id)
        except TokenError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=rotate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [found.id for found in store.list() if found.rotated_from == record.id]
    assert len(made) == 1
    assert sorted(outcomes) == sorted(
        [*made, *[f"token {record.id}: it was rotated already, to {made[0]}"] * 3]
    )


CREATE = """
import sys
from fastrpc.guard.callers.tokens import CallerTokens
from fastrpc.storage import open_database
store = CallerTokens(open_database(sys.argv[1]))
while True:
    record, _ = store.create("ada", "operator", ["a", "b"], 60)
    other, _ = store.rotate(record.id, 10)
    print(record.id, other.id, flush=True)
"""


def settled(database: Database) -> tuple[int, list[TokenRecord]]:
    """The number of changes, and the tokens of just then: PostgreSQL may still complete what a process has
    asked of it that is gone."""

    def number() -> int:
        with database.reading() as connection:
            return change_number(connection, "tokens")

    while True:
        before, records = number(), CallerTokens(database).list()
        if number() == before:
            return before, records


@pytest.mark.long
@pytest.mark.parametrize("least", [1, 3, 5])
def test_a_process_that_is_killed_leaves_whole_tokens_or_none(
    database_url: str, database: Database, least: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CREATE, database_url], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(least)]
    process.send_signal(signal.SIGKILL)
    said += process.communicate()[0].splitlines()
    assert process.returncode == -signal.SIGKILL
    number, records = settled(database)
    found = {record.id: record for record in records}
    for line in said:
        for token_id in line.split():
            if len(token_id) == 12:
                assert token_id in found
    rotations = [record for record in records if record.rotated_from is not None]
    for record in records:
        assert (record.owner, record.scopes) == ("ada", ("a", "b"))
    for record in rotations:  # a successor and the end of the former one come together
        former = found[str(record.rotated_from)]
        assert former.expires_at == pytest.approx(record.created_at + 10)
        assert former.family == record.family
    assert len(records) - len(rotations) in (len(rotations), len(rotations) + 1)
    assert number == len(records)
    Database(database_url).close()  # it is whole


# --- PostgreSQL goes away -----------------------------------------------------------------------------


def test_tokens_stay_valid_for_a_minute_without_postgresql(postgres: Cluster) -> None:
    name = postgres.new_database()
    database = Database(postgres.url(name))
    store = CallerTokens(database)
    record, text = store.create("ada", "operator")
    now = [0.0]
    directory = TokenDirectory(database, clock=lambda: now[0], threads=False)
    authenticator = Authenticator([DirectorySource(directory)])

    def status() -> int:
        directory.poll()
        try:
            asyncio.run(authenticator.check({b"authorization": [b"Bearer " + text.encode()]}))
        except Refused as error:
            return error.status
        return 200

    assert status() == 200
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    postgres.disconnect(name)
    now[0] = GRACE_SECONDS - 0.1
    assert status() == 200
    now[0] = GRACE_SECONDS
    assert status() == 503
    postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert status() == 200
    postgres.disconnect(name)
    assert status() == 200
    store.revoke(record.id)
    assert status() == 401
    directory.close()
    database.close()


def test_a_failover_is_no_reason_to_miss_a_revocation(postgres: Cluster) -> None:
    """Behind the address there may be another server, whose number happens to be the same."""
    name = postgres.new_database()
    database = Database(postgres.url(name))
    record, text = CallerTokens(database).create("ada", "operator")
    directory = TokenDirectory(database, threads=False)
    assert directory.verify(text.encode()) is not None
    postgres.execute(f"UPDATE fastrpc_tokens SET revoked_at = 1 WHERE id = '{record.id}'", name)
    postgres.disconnect(name)
    directory.poll()  # notices that the connection is gone
    directory.poll()
    assert directory.verify(text.encode()) is None
    directory.close()
    database.close()
