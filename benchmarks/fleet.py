"""The bar S6: what 100 hosts and a million sessions need, and where one PostgreSQL ends (`make bench-fleet`).

    python benchmarks/fleet.py            measure (two minutes), and print the tables
    python benchmarks/fleet.py --write    and write results/fleet.json and the tables of docs/fleet.md
    python benchmarks/fleet.py --tables   the tables of the committed figures

A load is what somebody assumes (`Fleet`), costs are measured (`fleet_costs`), the rest is multiplication: the
processor time of PostgreSQL for each kind of transaction, times how often it comes. Queueing is left out:
what the tables call an end is where a resource is used up, and delays begin to grow at half of that.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "results", "fleet.json")
PAGE = os.path.join(os.path.dirname(HERE), "docs", "fleet.md")
BEGIN, END = "<!-- fleet -->\n", "<!-- /fleet -->\n"
SWEEP_SECONDS = 5.0
TURNS_A_SECOND = 2.0
"""`TaskBoard`'s."""
READS_OF_A_TASK = 2
CHANGES_OF_A_TASK = 3
"""What is announced of a task: it waits for a worker, it has been taken or has a message, it has ended."""
CONNECTIONS = 5
"""Most of a process, of which one listens."""


@dataclass(frozen=True)
class Fleet:
    """What is assumed: see `ASSUMED`. `is_spread`: a session's requests come to all hosts by chance."""

    hosts: int = 100
    processes: int = 8
    workers: int = 100
    sessions: int = 1_000_000
    call_seconds: float = 10.0
    session_seconds: float = 1800.0
    changing: float = 0.2
    ended: float = 0.5
    updates: float = 1.0
    tasks: float = 10.0
    limited_keys: int = 10
    database_processors: int = 16
    is_spread: bool = False

    @property
    def listeners(self) -> int:
        """Processes that hear notifications."""
        return self.hosts * self.processes + self.workers

    @property
    def begun(self) -> float:
        """Sessions that begin in a second."""
        return self.sessions / self.session_seconds

    @property
    def served_by(self) -> float:
        """Processes to which the requests of one session come: by chance among those of one host, which the
        load balancer chooses by the session's id, or of all hosts."""
        among = self.processes * (self.hosts if self.is_spread else 1)
        return among * (1 - (1 - 1 / among) ** (self.session_seconds / self.call_seconds))


ASSUMED = {
    "hosts": "hosts",
    "processes": "processes that serve, on each host",
    "workers": "processes of `fastrpc worker`",
    "sessions": "sessions of the older wires at once",
    "call_seconds": "seconds between two calls of a session",
    "session_seconds": "seconds that a session lasts",
    "changing": "share of sessions that subscribe or set the log level",
    "ended": "share of sessions that the client ends by `DELETE`",
    "updates": "`resource_updated` and changed lists a second",
    "tasks": "tasks a second",
    "limited_keys": "rates or budgets that each process uses",
    "database_processors": "processors of PostgreSQL",
}


def demand(fleet: Fleet, costs: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """For each kind of work, how often a second it comes, and how many processors PostgreSQL needs for it."""
    session, task, note = costs["session"], costs["task"], costs["notification"]
    heard_ms = note["send_ms"] + fleet.listeners * note["listener_ms"]
    changed, ended = fleet.begun * fleet.changing, fleet.begun * fleet.ended
    reads = fleet.begun * (fleet.served_by - 1)
    boards = fleet.listeners / SWEEP_SECONDS
    a_task = task["create_ms"] + task["take_ms"] + READS_OF_A_TASK * task["read_ms"] + task["end_ms"]
    woken_ms = fleet.workers * task["turn_ms"]
    found = {
        "a session's row is read": (reads, session["read_ms"]),
        "a session's row is changed": (changed, session["change_ms"]),
        "… and heard by all processes": (changed, heard_ms),
        "a session is ended": (ended, session["end_ms"]),
        "… and heard by all processes ": (ended, heard_ms),
        "an update is heard by all processes": (fleet.updates, heard_ms),
        "a task: its row": (fleet.tasks, a_task),
        "… its changes heard by all processes": (fleet.tasks * CHANGES_OF_A_TASK, heard_ms),
        "… and each worker that waits looks": (fleet.tasks, woken_ms),
        "workers look for tasks": (fleet.workers * TURNS_A_SECOND, task["turn_ms"]),
        "processes look for what was lost": (boards, task["sweep_ms"]),
        "leases of rates and budgets": (
            fleet.hosts * fleet.processes * fleet.limited_keys,
            costs["limit"]["settle_ms"],
        ),
    }
    return {name: (rate, rate * ms / 1000) for name, (rate, ms) in found.items()}


def processors(fleet: Fleet, costs: dict[str, Any]) -> float:
    """The processors that PostgreSQL needs."""
    return sum(each for _, each in demand(fleet, costs).values())


def serialized(fleet: Fleet, costs: dict[str, Any]) -> float:
    """The share of the time in which a transaction that writes rows and notifies is committed: there is one
    at a time, since PostgreSQL keeps notifications in the order of commits, and each waits for the disk."""
    rate = fleet.begun * (fleet.changing + fleet.ended) + fleet.tasks
    return rate / float(costs["commits"]["rows_that_notify_a_second"])


def most(fits: Callable[[float], bool]) -> float:
    """The largest value that fits, by bisection; 0 if none does."""
    least, high = 0.0, 1.0
    while fits(high) and high < 1e9:
        least, high = high, 2 * high
    for _ in range(40):
        middle = (least + high) / 2
        least, high = (middle, high) if fits(middle) else (least, middle)
    return least


def ends(fleet: Fleet, fits: Callable[[Fleet], bool]) -> dict[str, float]:
    """Where a resource ends: for each quantity the largest value that fits, everything else as assumed, or
    nothing else."""
    alone = replace(fleet, sessions=0, tasks=0.0, updates=0.0)
    each = fleet.sessions / fleet.hosts
    changed: dict[str, Callable[[float], Fleet]] = {
        "hosts, with as many sessions each": lambda n: replace(fleet, hosts=int(n), sessions=int(n * each)),
        "sessions": lambda n: replace(fleet, sessions=int(n)),
        "sessions, with nothing else": lambda n: replace(alone, sessions=int(n)),
        "tasks a second, with nothing else": lambda n: replace(alone, tasks=n),
        "updates a second, with nothing else": lambda n: replace(alone, updates=n),
    }
    return {name: most(lambda n, make=make: fits(make(n))) for name, make in changed.items()}  # type: ignore[misc]


# --- the tables -----------------------------------------------------------------------------------------


def shown(value: float) -> str:
    """A number with as many digits as count."""
    if value >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.3g}"


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    rule = "|" + "---|" * (head.count("|") - 1)
    return "\n".join([head, rule, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def tables(costs: dict[str, Any]) -> str:
    """The tables of the page."""
    fleet = Fleet()
    spread = replace(fleet, is_spread=True)
    host, task, commits = costs["host"], costs["task"], costs["commits"]
    loads = demand(fleet, costs)
    of_spread = demand(spread, costs)
    calls = fleet.sessions / fleet.call_seconds
    copies = fleet.sessions * fleet.served_by
    memory = copies * host["session_kb"] / 1e6 / fleet.hosts
    connections = fleet.listeners * CONNECTIONS
    kept = fleet.tasks * 86_400 * task["row_bytes"] / 1e9
    rows = [
        (name.strip(), shown(rate), f"{need:.3f}", f"{of_spread[name][1]:.3f}")
        for name, (rate, need) in loads.items()
    ]
    totals = [processors(each, costs) for each in (fleet, spread)]
    rows.append(("**together**", "", *(f"**{total:.1f}**" for total in totals)))
    needs = [
        ("calls a second", shown(calls)),
        ("processors of all hosts for them, the tools' work apart", shown(calls * host["call_ms"] / 1000)),
        ("processes that serve requests of one session", shown(fleet.served_by)),
        ("sessions that a process holds", shown(copies / fleet.hosts / fleet.processes)),
        ("memory of a host for them", f"{shown(memory)} GB"),
        ("connections to PostgreSQL, at most", shown(connections)),
        ("memory of PostgreSQL for them", f"{shown(connections * commits['connection_mb'] / 1000)} GB"),
        ("tasks of a day on its disk", f"{shown(kept)} GB"),
        ("share of the time in which commits that notify are made", f"{serialized(fleet, costs):.2f}"),
    ]
    measured = [
        (f"{group}: {name.replace('_', ' ')}", shown(value))
        for group, values in costs.items()
        if isinstance(values, dict)
        for name, value in values.items()
    ]
    assumed = [
        (text, shown(getattr(fleet, each.name))) for each in fields(Fleet) if (text := ASSUMED.get(each.name))
    ]

    def has_processors(changed: Fleet) -> bool:
        return processors(changed, costs) <= fleet.database_processors

    by_one, by_all = ends(fleet, has_processors), ends(spread, has_processors)
    by_commits = ends(fleet, lambda changed: serialized(changed, costs) <= 1)
    ended = [
        (name, shown(value), shown(by_all[name]), shown(by_commits[name]) if by_commits[name] < 1e8 else "")
        for name, value in by_one.items()
    ]
    on = f"{costs['cores']} cores, load {costs['load'][0]} to {costs['load'][1]}"
    parts = {
        "Assumed:": table("| | |", assumed),
        f"Measured, on {on}; `ms` are milliseconds of a processor:": table("| cost | |", measured),
        "What the hosts need:": table("| | |", needs),
        "What PostgreSQL needs, if a session's requests come to one host, and if they are spread over all:": (
            table("| work | a second | processors | spread |", rows)
        ),
        f"Where one PostgreSQL with {fleet.database_processors} processors ends, and where its commits do:": (
            table("| | one host | spread | commits |", ended)
        ),
    }
    return "\n".join(f"{text}\n\n{made}" for text, made in parts.items())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="What a large fleet needs of its database.")
    parser.add_argument("--write", action="store_true", help="write the figures and the page's tables")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    given = parser.parse_args(arguments)
    if given.tables:
        with open(RECORD, encoding="utf-8") as file:
            costs = json.load(file)
    else:
        from fleet_costs import measured

        costs = {"cores": os.cpu_count(), **measured()}
    if given.write:
        with open(RECORD, "w", encoding="utf-8") as file:
            json.dump(costs, file, indent=1)
            file.write("\n")
        with open(PAGE, encoding="utf-8") as file:
            before, _, rest = file.read().partition(BEGIN)
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + tables(costs) + END + rest.partition(END)[2])
    print(tables(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
