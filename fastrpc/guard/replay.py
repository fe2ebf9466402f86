"""What recorded calls would meet under another policy: `replay` decides each as the policy would.

The audit log has who called what, and how it ended, but of the arguments only hashes. So a call that a rule
about arguments concerns is decided only where nothing that matters has changed since it was recorded; other
such calls are counted apart. Rates and budgets are not replayed. Reading pauses again and again, since the
process may serve calls at the same time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from time import time
from typing import NamedTuple

from fastrpc.engine.messages import CALLED_BY
from fastrpc.guard.audit import reading
from fastrpc.guard.audit.calls import CATEGORY
from fastrpc.guard.audit.records import rfc3339
from fastrpc.guard.permissions import ALLOWED, ASKS, REFUSED, permissions
from fastrpc.guard.policy.decisions import CallTarget
from fastrpc.guard.refusals import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.guard.permissions import Permission
    from fastrpc.guard.policy.decisions import Policy

    Record = dict[str, Any]

DAY_SECONDS = 86_400.0
MOST_RECORDS = 300_000
UNKNOWN = "depends"
"""What a call would meet depends on its arguments."""
KINDS = {method: kind for kind, method in CALLED_BY.items()}
ASKED = ("approval_rejected", "approval_timed_out", "approval_waiting", "too_many_approvals")
"""The reasons of refusals for which a person had been asked."""


class ChangedCalls(NamedTuple):
    """Calls that would meet something else: who called what, what they met and would meet (`ALLOWED`, `ASKS`,
    `REFUSED`, `UNKNOWN`), and the permission that says why."""

    actor: str
    caller_class: str
    kind: str
    name: str
    was: str
    would: str
    permission: Permission


@dataclass
class Replay:
    """The result: how many calls were decided, how many times each change was found, and the id of the
    latest record of each. `is_cut`: there are more calls than `MOST_RECORDS`."""

    calls: int = 0
    changes: dict[ChangedCalls, int] = field(default_factory=dict)
    examples: dict[ChangedCalls, str] = field(default_factory=dict)
    is_cut: bool = False

    def count(self, would: str) -> int:
        """Return how many calls would meet something, and did not."""
        return sum(count for change, count in self.changes.items() if change.would == would)


def replay(
    policy: Policy,
    former: Policy,
    records: Iterable[Record],
    caller_of: Callable[[Record], Caller],
    targets: Mapping[tuple[str, str], CallTarget] | None,
) -> Replay:
    """Decide recorded calls by `policy`. `former` is the policy that the file has now. `targets` has what the
    server offers, by kind and name; None: that is not known, so the recorded risk of a call is used."""
    found = Replay()
    known: dict[tuple[Any, ...], tuple[Permission, bool]] = {}
    for record in records:
        if found.calls >= MOST_RECORDS:
            found.is_cut = True
            break
        kind, name = KINDS[record["action"]], record["tool"]
        target = _target_of(record, kind, name, targets)
        if target is None:
            continue
        found.calls += 1
        key = (record.get("actor"), record.get("class"), target)
        if key not in known:
            caller = caller_of(record)
            (now,), (before,) = (permissions(each, caller, [target]) for each in (policy, former))
            known[key] = now, _decide_alike(now, before, policy, former)
        permission, is_alike = known[key]
        was = _met(record)
        would = _would_meet(permission)
        if would == UNKNOWN and is_alike and record.get("policy") == former.version:
            continue
        if would != was:
            actor, caller_class = str(record.get("actor")), str(record.get("class"))
            change = ChangedCalls(actor, caller_class, kind, name, was, would, permission)
            found.changes[change] = found.changes.get(change, 0) + 1
            found.examples[change] = str(record.get("id"))
    return found


def _target_of(
    record: Record, kind: str, name: str, targets: Mapping[tuple[str, str], CallTarget] | None
) -> CallTarget | None:
    """Return what a record is about; None for a name that the server no longer has, or never had."""
    found = None if targets is None else targets.get((kind, name))
    if found is not None or record.get("outcome") == "unknown":
        return found
    if targets is None or kind == "resource":  # templates have any number of URIs
        return CallTarget(kind, name, None, record.get("risk"))
    return None


def _met(record: Record) -> str:
    """Return what a recorded call met. One that came too often was allowed by the lists and rules."""
    outcome, why = record.get("outcome"), record.get("why")
    if outcome == "unknown" or (outcome == "refused" and why == NotAllowed.reason):
        return REFUSED
    return ASKS if record.get("approval") or (outcome == "refused" and why in ASKED) else ALLOWED


def _would_meet(permission: Permission) -> str:
    if not permission.is_allowed:
        return REFUSED
    return UNKNOWN if permission.rules else permission.word


def _decide_alike(now: Permission, before: Permission, policy: Policy, former: Policy) -> bool:
    """Whether two policies decide alike about a target, whatever the arguments are."""

    def facts(permission: Permission, of: Policy) -> tuple[object, ...]:
        rules = [(rule.when, rule.then, rule.risk) for rule in permission.rules]
        return permission.word, permission.risk, rules, of.config.approvals.least

    return facts(now, policy) == facts(before, former)


def recorded_calls(folder: str, seconds: float = DAY_SECONDS) -> Iterator[Record]:
    """Yield the records of calls of the last `seconds` in the audit log of a folder, the newest first; none
    if there is no log."""
    since = rfc3339(int((time() - seconds) * 1000))
    matches = reading.UnhurriedFilter({}, since)
    if not os.path.isdir(folder):
        return
    for place, line in reading.newest(folder):
        if place.time < since:  # when it was written: what a record tells of may be earlier
            return
        if matches(line) and _is_call(record := reading.fields_of(line)):
            yield record


def _is_call(record: Record) -> bool:
    """Whether a record is that of a call that has ended, of a name that is recorded."""
    return (
        record.get("category") == CATEGORY
        and record.get("action") in KINDS
        and record.get("outcome") != "begun"
        and isinstance(record.get("tool"), str)
    )
