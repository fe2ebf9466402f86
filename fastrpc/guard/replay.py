"""What recorded calls would meet under another policy: `replay` decides each as the policy would.

The audit log has who called what, and how it ended, but of the arguments only hashes. So a call that a rule
about arguments concerns is decided only where nothing that matters has changed since it was recorded; other
such calls are counted apart. Rates and budgets are not replayed. For ``fastrpc guard replay``, and for the
dashboard, which shows this before a policy is saved; a process that may serve calls at the same time reads
with an `UnhurriedFilter`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from time import time
from typing import NamedTuple

from fastrpc.callers import Caller
from fastrpc.engine.messages import CALLED_BY
from fastrpc.guard.audit import reading
from fastrpc.guard.audit.calls import CATEGORY
from fastrpc.guard.audit.records import rfc3339
from fastrpc.guard.explanation import caller_of
from fastrpc.guard.permissions import ALLOWED, ASKS, REFUSED, permissions
from fastrpc.guard.policy.decisions import CallTarget
from fastrpc.guard.refusals import NotAllowed
from fastrpc.regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from fastrpc.guard.audit.reading import RecordFilter
    from fastrpc.guard.callers.tokens import TokenRecord
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

    @property
    def cause(self) -> str:
        """What in the policy decides: the rule, the rules about arguments, what requires an approval, or the
        lists that have or lack the name. Empty if there are no lists."""
        found = self.permission
        if self.would == UNKNOWN:
            return ", ".join(f"rules.{rule.id}" for rule in found.rules)
        by_rule = f"rules.{found.rule}" if found.rule else ""
        return by_rule or found.asks_by or ", ".join(name for name, _ in found.lists)


@dataclass
class Replay:
    """The result: how many calls were decided; `met` counts them by what they met and would meet; how many
    times each change was found, and the id of one record of each. `is_cut`: there are more calls than were
    to be decided."""

    calls: int = 0
    met: dict[tuple[str, str], int] = field(default_factory=dict)
    changes: dict[ChangedCalls, int] = field(default_factory=dict)
    examples: dict[ChangedCalls, str] = field(default_factory=dict)
    is_cut: bool = False

    def count(self, would: str) -> int:
        """Return how many calls would meet something, and did not."""
        return sum(count for change, count in self.changes.items() if change.would == would)

    def by(self, of: Callable[[ChangedCalls], str]) -> dict[str, dict[str, int]]:
        """Return how many calls would meet what instead, for each value of a function of the changes."""
        found: dict[str, dict[str, int]] = {}
        for change, count in self.changes.items():
            counts = found.setdefault(of(change), {})
            counts[change.would] = counts.get(change.would, 0) + count
        return found


def replay(
    policy: Policy,
    former: Policy,
    records: Iterable[Record],
    caller_of: Callable[[Record], Caller],
    targets: Mapping[tuple[str, str], CallTarget] | None,
    most: int | None = MOST_RECORDS,
) -> Replay:
    """Decide recorded calls by `policy`, at most `most` (None: all). `former` is the policy that has decided
    them, as far as that is known. `targets` has what the server offers, by kind and name; None: that is not
    known, so the recorded risk of a call is used."""
    found = Replay()
    known: dict[tuple[Any, ...], tuple[Permission, bool]] = {}
    for record in records:
        if most is not None and found.calls >= most:
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
            would = was
        found.met[was, would] = found.met.get((was, would), 0) + 1
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


def since_ago(seconds: float) -> str:
    """Return the time so many seconds ago, as records have it."""
    return rfc3339(int((time() - seconds) * 1000))


def recorded_calls(folder: str, wanted: RecordFilter) -> Iterator[Record]:
    """Yield the records of calls that a filter wants, in the audit log of a folder, the newest first; none if
    there is no log."""
    if not os.path.isdir(folder):
        return
    before = reading.Place(wanted.until, "", 0) if wanted.until else None
    for place, line in reading.newest(folder, before):
        if place.time < wanted.since:  # when it was written: what a record tells of may be earlier
            return
        if wanted(line) and _is_call(record := reading.fields_of(line)):
            yield record


def exported_calls(path: str, wanted: RecordFilter) -> Iterator[Record]:
    """Yield the records of calls that a filter wants, in a file of lines as `fastrpc audit export` writes
    them. Raises OSError."""
    with open(open_regular(path), "rb") as file:
        for line in file:
            if wanted(line) and _is_call(record := reading.fields_of(line)):
                yield record


def callers_among(tokens: Iterable[TokenRecord]) -> Callable[[Record], Caller]:
    """Return what makes the caller of a record. A record has no scopes and no id of a token: those of the
    newest of `tokens` of the same caller are used."""
    known = {each.principal: each for each in tokens}

    def caller(record: Record) -> Caller:
        token = known.get(str(record.get("actor")))
        if token is None:
            return caller_of(record)
        of_class = str(record.get("class"))
        return Caller(token.principal, of_class, owner=token.owner, scopes=token.scopes, token_id=token.id)

    return caller


def _is_call(record: Record) -> bool:
    """Whether a record is that of a call that has ended, of a name that is recorded."""
    return (
        record.get("category") == CATEGORY
        and record.get("action") in KINDS
        and record.get("outcome") != "begun"
        and isinstance(record.get("tool"), str)
    )
