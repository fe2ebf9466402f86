"""``fastrpc worker``: a process that runs the tasks of servers, with which it shares a database.

It serves no client. The servers that leave tasks to it have the same target, so that it finds their tools,
the same database and guard, and the setting FASTRPC_TASK_WORKERS. At its end, on a signal, it takes no more
tasks, waits for those that run, and leaves the rest to others.
"""

from __future__ import annotations

import os

from fastrpc.cli import configuration, parser
from fastrpc.cli._assemble import assemble
from fastrpc.cli._durations import waiting_time
from fastrpc.errors import Reworded, UsageError

PLACES = 4
DRAIN_SECONDS = 30.0
DRAIN_SETTING = "FASTRPC_DRAIN_SECONDS"
EXAMPLES = """\
  fastrpc worker my_tools.py --tasks 8
  fastrpc worker my_tools.py --database postgresql://db/tasks
"""


def main(arguments: list[str]) -> int:
    """Run tasks until a signal arrives; return 0. Raises UsageError."""
    from fastrpc.cli.serve import apply, enter

    options = parser("worker", "TARGET…", EXAMPLES)
    options.add_argument(
        "targets", metavar="TARGET", nargs="+", help="what the servers serve: file.py, module"
    )
    options.option(
        "--database URL",
        "where tasks are: postgresql://… or sqlite:///PATH (FASTRPC_TASKS_DATABASE, also for a URL with "
        "a password)",
    )
    options.option("--tasks N", f"tasks that run at once ({PLACES})", type=int, default=PLACES)
    options.option(
        "--guard FILE",
        "the guard of the servers: runs the tasks of servers that are started with this policy and the same "
        "FASTRPC_GUARD_DATABASE",
    )
    options.option("--name NAME", "the servers' name, if they are started with --name")
    options.option("--cwd DIR", "change to the folder DIR first")
    options.option(
        "--drain-seconds N",
        f"wait so long for running tasks at the end ({DRAIN_SETTING}, {DRAIN_SECONDS:g})",
        type=waiting_time,
    )
    chosen = options.parse(arguments)
    if chosen.tasks < 1:
        raise UsageError(f"--tasks: expected a number from 1 up, got {chosen.tasks}")
    enter(chosen.cwd)
    settings = configuration(targets=chosen.targets)
    apply(settings)
    drain_seconds = chosen.drain_seconds
    if drain_seconds is None:
        is_set = settings.origin(DRAIN_SETTING) != "default"
        drain_seconds = settings[DRAIN_SETTING] if is_set else DRAIN_SECONDS
    from fastrpc.storage import StorageError
    from fastrpc.tasks.fleet import WorkerTransport

    with Reworded(StorageError, UsageError):
        if chosen.database:
            _take_database(chosen.database)
        server = assemble(chosen.targets, settings, name=chosen.name)
        if chosen.guard:
            from fastrpc.guard.serving import GuardedServing

            GuardedServing(chosen.guard, "worker").guarded(server)
        server.run(transport=WorkerTransport(server, chosen.tasks), drain_seconds=drain_seconds)
    return 0


def _take_database(url: str) -> None:
    """Use the database at a URL of the command line. Raises StorageError for what is no URL of a database,
    and UsageError for one with a password: every user of the machine can read the command line."""
    from fastrpc.storage.urls import place_of
    from fastrpc.tasks.kind import TASKS

    if place_of(url, TASKS).secrets:
        raise UsageError("--database: a URL with a password belongs into FASTRPC_TASKS_DATABASE")
    os.environ["FASTRPC_TASKS_DATABASE"] = url
