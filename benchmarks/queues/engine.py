"""The same as `plain.py` by procrastinate, an engine on PostgreSQL; runs in an environment of its own."""

from __future__ import annotations

import sys
import time

import procrastinate


def app_at(url: str, is_worker: bool) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector if is_worker else procrastinate.SyncPsycopgConnector
    app = procrastinate.App(connector=connector(conninfo=url))

    @app.task(name="noop")
    def noop() -> None:
        print(time.monotonic_ns(), flush=True)

    return app


def prepare(url: str) -> None:
    with app_at(url, False).open() as app:
        app.schema_manager.apply_schema()


def submit(url: str) -> None:
    with app_at(url, False).open() as app:
        noop = app.tasks["noop"]
        for _ in sys.stdin:
            began = time.monotonic_ns()
            noop.defer()
            print(began, flush=True)


def worker(url: str) -> None:
    import asyncio

    async def run() -> None:
        app = app_at(url, True)
        async with app.open_async():
            await app.run_worker_async(concurrency=1, install_signal_handlers=False)

    asyncio.run(run())


if __name__ == "__main__":
    {"prepare": prepare, "submit": submit, "worker": worker}[sys.argv[1]](sys.argv[2])
