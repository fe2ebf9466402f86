"""The decision about a call, its reason, and what would change it: for `fastrpc guard why`.

The record contains everything that is needed (`reasons`): a rule is compiled from its former text, and
evaluated on the values that it saw. A policy, if it is given, shows whether the rule is still the same, and
which lists lack the name of a call that was answered as unknown. Pure.
"""

from __future__ import annotations

from fastrpc.callers import Caller, owner_of
from fastrpc.engine.messages import CALLED_BY
from fastrpc.guard import cel
from fastrpc.guard.callers import claims
from fastrpc.guard.policy.decisions import CallTarget
from fastrpc.guard.policy.rules import CALLER, TOOL
from fastrpc.guard.reasons import lacking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from fastrpc.guard.cel.atoms import Atoms, Path, Way
    from fastrpc.guard.policy.decisions import Policy

TOLD = ("id", "time", "actor", "class", "action", "tool", "outcome", "why", "reason", "risk", "approval")
"""The fields of a record that an explanation repeats."""
KINDS = {method: kind for kind, method in CALLED_BY.items()}


def explained(record: Mapping[str, Any], policy: Policy | None = None) -> dict[str, Any]:
    """Return the known facts of a record, and in words, under ``changes``, what would change the decision."""
    found: dict[str, Any] = {name: record[name] for name in TOLD if name in record}
    found["policy"] = {"recorded": record.get("policy"), "now": None if policy is None else policy.version}
    because = record.get("because")
    because = because if isinstance(because, dict) else {}
    changes: list[str] = []
    if isinstance(because.get("rule"), dict):
        found["rule"] = _rule(because["rule"], policy, record.get("policy"))
        changes += [" && ".join(way["needs"]) for way in found["rule"]["ways"]]
    elif record.get("rule"):
        found["by"] = record["rule"]
    if isinstance(because.get("asks"), dict):
        found["asks"] = asks = because["asks"]
        changes.append("a person approves the call in time")
        if "rule" not in found:
            by, least = asks.get("by"), asks.get("from")
            changes.append(f"{by} makes it less than {least}, or approvals.from is higher")
            changes.append("a rule allows it: then = 'allow'")
    if isinstance(because.get("rate"), dict):
        rate = because["rate"]
        found["rate"] = words_of(rate)
        changes.append(f"the call comes {rate.get('retry_after_seconds')} s later")
        changes.append(f"the rate {words_of(rate)} is higher")
    lists = because.get("lists")
    if lists is None and policy is not None and record.get("outcome") == "unknown":
        lists = lacking(policy, caller_of(record), _target_of(record))
    if lists is not None:
        found["lists"] = lists
        changes += [f"{each['list']} has {record.get('tool')}" for each in lists]
    found["changes"] = changes
    return found


def words_of(rate: dict[str, Any]) -> str:
    """Return a rate of a record as people write it."""
    return f"{rate.get('rate')} of {rate['tool']}" if rate.get("tool") else str(rate.get("rate"))


def _rule(facts: dict[str, Any], policy: Policy | None, version: object) -> dict[str, Any]:
    """Return what is known of a rule: its text, what it saw, the states of its atoms, the ways to make it
    false. ``now``: whether the policy's rule is the same, changed or removed. `version` is that of the policy
    that decided; if it is this policy, its text replaces one that the record lacks."""
    when, now = facts.get("when"), None
    if policy is not None:
        texts = {each.id: each.when for each in policy.config.rules}
        text = texts.get(str(facts.get("id")))
        if policy.version == version:
            when = text
        now = "gone" if text is None else "the same" if text == when else "another one"
    found = {"id": facts.get("id"), "then": facts.get("then"), "when": when, "now": now}
    values, states = facts.get("values", {}), facts.get("states", [])
    found |= {"saw": _flat(values), "whole": facts.get("whole") is True, "atoms": [], "ways": []}
    atoms = _atoms_of(when)
    if atoms is None or len(atoms.atoms) != len(states):
        return found
    found["atoms"] = [
        {"text": atom.text, "value": state} for atom, state in zip(atoms.atoms, states, strict=True)
    ]
    is_same = facts.get("whole") is True and _are_same(atoms.states(values), states)
    found["ways"] = [_shown(way) for way in atoms.ways(values if is_same else None, states)]
    return found


def _atoms_of(when: object) -> Atoms | None:
    """Return the atoms of a rule's text, None if it cannot be parsed any more."""
    if not isinstance(when, str):
        return None
    try:
        variables = {"args": cel.map_of(cel.DYN), "caller": CALLER, "tool": TOOL}
        return cel.compile(when, variables).atoms
    except cel.RuleError:
        return None


def _are_same(some: Sequence[bool | str], others: Sequence[bool | str]) -> bool:
    """Whether states are the same, ignoring the texts of errors, which depend on the declared types."""
    one, other = ([each if isinstance(each, bool) else "" for each in states] for states in (some, others))
    return one == other


def _shown(way: Way) -> dict[str, Any]:
    from fastrpc.guard.cel.atoms import ABSENT, text_of

    example = None
    if way.example is not None:
        example = {text_of(path): None if value is ABSENT else value for path, value in way.example.items()}
    return {"needs": list(way.needs), "paths": [*map(text_of, way.paths)], "example": example}


def _flat(values: Any, path: Path = ()) -> dict[str, Any]:
    """Return values by the texts of their paths; lists are values."""
    from fastrpc.guard.cel.atoms import text_of

    if not isinstance(values, dict) or (path and not values):
        return {text_of(path): values}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, (*path, name))
    return found


def _of_approvals(asks: dict[str, Any], *, has_rule: bool) -> list[str]:
    found = ["a person approves the call in time"]
    if not has_rule:
        found.append(f"{asks.get('by')} makes it less than {asks.get('from')}, or approvals.from is higher")
        found.append("a rule allows it: then = 'allow'")
    return found


def caller_of(record: Mapping[str, Any]) -> Caller:
    """Return the caller of a record, with those attributes that the record has."""
    actor = str(record.get("actor", ""))
    caller_class = str(record.get("class", ""))
    owner = owner_of(actor).removeprefix("os:")
    return claims.caller_of(actor) or Caller(actor, caller_class, owner=owner)


def _target_of(record: Mapping[str, Any]) -> CallTarget:
    kind = KINDS.get(str(record.get("action")), "tool")
    return CallTarget(kind, str(record.get("tool", "")), None)
