"""``fastrpc guard replay FILE``: what recorded calls would meet under a policy, for a person, and for a CI.

`fastrpc.guard.replay` decides; the dashboard's page of the policy uses it, too. Prints how many calls would
meet what, and each change with its cause; nothing is called, and no file is changed. A million calls take
less than a minute.
"""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import closing

from fastrpc.cli import configuration
from fastrpc.cli._catalogue import print_json, print_table
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard import replay
from fastrpc.guard.audit import reading
from fastrpc.guard.guard import targets_of
from fastrpc.guard.permissions import ALLOWED, ASKS, REFUSED
from fastrpc.guard.policy.decisions import Policy
from fastrpc.guard.policy.file import read
from fastrpc.guard.serving import policy_for
from fastrpc.storage.kinds import GUARD
from fastrpc.storage.settings import GUARD_DATABASE
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from fastrpc.guard.callers.tokens import TokenRecord
    from fastrpc.guard.policy.config import GuardConfig
    from fastrpc.guard.policy.decisions import CallTarget
    from fastrpc.guard.replay import ChangedCalls, Replay
    from fastrpc.server import Server

    Loaded = Callable[[str, list[str]], tuple[Server, Policy]]

OTHERWISE = (REFUSED, ASKS, ALLOWED, replay.UNKNOWN)
"""What a call may meet instead, in the order in which it is printed."""
MOST_SHOWN = 100
"""How many kinds of changed calls are printed as text."""
BY: dict[str, Callable[[ChangedCalls], str]] = {
    "tool": lambda change: change.name,
    "caller": lambda change: f"{change.actor} ({change.caller_class})",
    "rule": lambda change: change.cause,
}


def replay_recorded(chosen: Namespace, loaded: Loaded) -> int:
    """Print what the recorded calls would meet; return 1 if one would surely meet something else than it has
    met. `loaded` returns the server of targets, and a file as its policy. Raises UsageError, also if there
    are no calls."""
    if len(chosen.words) > 1:
        raise UsageError("guard replay: expected a file and at most one recording")
    policy, former, targets = _policies(chosen, loaded)
    records = _records(chosen, policy.config)
    caller_of = replay.callers_among(_tokens(policy.config))
    with Reworded(OSError, UsageError, "guard replay: "):
        found = replay.replay(policy, former, records, caller_of, targets, most=None)
    if not found.calls:
        raise UsageError("guard replay: the recording has no such calls")
    changes = sorted(found.changes.items(), key=lambda each: (OTHERWISE.index(each[0].would), -each[1]))
    if chosen.json:
        print_json(_as_json(found, changes, policy, former))
    else:
        _print(found, changes, policy, knows_tools=targets is not None)
    return int(any(change.would != replay.UNKNOWN for change in found.changes))


def _policies(
    chosen: Namespace, loaded: Loaded
) -> tuple[Policy, Policy, Mapping[tuple[str, str], CallTarget] | None]:
    """Return the policy, the one that has decided the calls, and what the targets offer, None without any."""
    if not chosen.target:
        policy = Policy(read(chosen.file), {})
        return policy, policy if chosen.former is None else Policy(read(chosen.former), {}), None
    server, policy = loaded(chosen.file, chosen.target)
    former = policy if chosen.former is None else policy_for(read(chosen.former), server)
    return policy, former, {(each.kind, each.name): each for each in targets_of(server)}


def _records(chosen: Namespace, config: GuardConfig) -> Iterator[dict[str, Any]]:
    times = []
    for name in ("since", "until"):
        with Reworded(ValueError, UsageError, f"--{name}: "):
            times.append(reading.time_of(getattr(chosen, name) or ""))
    wanted = reading.RecordFilter({}, *times)
    place = chosen.words[0] if chosen.words else config.audit.path
    if os.path.isdir(place):
        return replay.recorded_calls(place, wanted)
    if not os.path.exists(place):
        raise UsageError(f"guard replay: there is no recording {place}")
    return replay.exported_calls(place, wanted)


def _tokens(config: GuardConfig) -> list[TokenRecord]:
    """Return the tokens of the guard's database, if there is one: they have the scopes of callers."""
    settings = configuration()
    settings.declare([GUARD_DATABASE])
    url = config.database or settings[GUARD_DATABASE.name]
    settings.export(os.environ)
    if not (url or os.path.exists(GUARD.default_path)):
        return []
    from fastrpc.guard.callers.tokens import CallerTokens
    from fastrpc.storage import StorageError, open_database

    with Reworded(StorageError, UsageError), closing(open_database(url)) as database:
        return CallerTokens(database).list()


def _as_json(
    found: Replay, changes: list[tuple[ChangedCalls, int]], policy: Policy, former: Policy
) -> dict[str, Any]:
    return {
        "policy": policy.version,
        "former": former.version,
        "calls": found.calls,
        "met": [{"was": was, "would": would, "calls": count} for (was, would), count in found.met.items()],
        "changes": [
            {
                "calls": count,
                "kind": change.kind,
                "name": change.name,
                "caller": change.actor,
                "class": change.caller_class,
                "was": change.was,
                "would": change.would,
                "by": change.cause,
                "record": found.examples[change],
            }
            for change, count in changes
        ],
        **{f"by_{name}": found.by(of) for name, of in BY.items()},
    }


def _print(
    found: Replay, changes: list[tuple[ChangedCalls, int]], policy: Policy, *, knows_tools: bool
) -> None:
    print(f"{found.calls:,} calls, by the policy {policy.version}:")
    rows = [(f"{count:,}", was, would) for (was, would), count in sorted(found.met.items())]
    print_table(("calls", "met", "would meet"), rows, ("calls",))
    if changes:
        print()
        print_table(
            ("calls", "name", "caller", "met", "would meet", "by", "a record"),
            [_row(change, count, found.examples[change]) for change, count in changes[:MOST_SHOWN]],
            ("calls",),
        )
        if len(changes) > MOST_SHOWN:
            print(f"and {len(changes) - MOST_SHOWN:,} more kinds of calls: --json has all")
        for name, of in BY.items():
            print()
            counts = sorted(found.by(of).items(), key=lambda each: -sum(each[1].values()))
            cells = [(*(f"{each.get(word, 0):,}" for word in OTHERWISE), plain(of)) for of, each in counts]
            print_table((*OTHERWISE, f"by {name}"), cells[:MOST_SHOWN], OTHERWISE)
    print()
    if found.count(replay.UNKNOWN):
        print("depends: on the arguments, of which the log has only hashes")
    if not knows_tools:
        print("Without --target the recorded risks of tools are used.")
    print("Rates and budgets are not compared.")


def _row(change: ChangedCalls, count: int, record: str) -> tuple[str, ...]:
    texts = change.name, BY["caller"](change), change.was, change.would, change.cause, record
    return (f"{count:,}", *map(plain, texts))
