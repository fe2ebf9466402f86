"""A queue of PostgreSQL by hand, the floor of any: a row, NOTIFY, SKIP LOCKED, and an update at the end.

    python plain.py prepare|submit|worker URL

`submit` reads a line for each job, and writes the time before it (monotonic, ns); `worker` writes the time at
which each job begins.
"""

from __future__ import annotations

import sys
import time

import psycopg

TAKE = (
    "UPDATE plain_jobs SET state = 'running' WHERE id = (SELECT id FROM plain_jobs WHERE state = 'queued' "
    "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
)


def prepare(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE plain_jobs (id serial PRIMARY KEY, state text, params text)")
        connection.execute("CREATE INDEX ON plain_jobs (state, id)")


def submit(url: str) -> None:
    with psycopg.connect(url) as connection:
        for _ in sys.stdin:
            began = time.monotonic_ns()
            connection.execute("INSERT INTO plain_jobs (state, params) VALUES ('queued', '{}')")
            connection.execute("NOTIFY plain_jobs")
            connection.commit()
            print(began, flush=True)


def worker(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as heard, psycopg.connect(url, autocommit=True) as connection:
        heard.execute("LISTEN plain_jobs")
        for _ in heard.notifies():
            while (row := connection.execute(TAKE).fetchone()) is not None:
                print(time.monotonic_ns(), flush=True)
                connection.execute("UPDATE plain_jobs SET state = 'done' WHERE id = %s", row)


if __name__ == "__main__":
    {"prepare": prepare, "submit": submit, "worker": worker}[sys.argv[1]](sys.argv[2])
