"""The reason of a refusal for its audit record, from which `fastrpc guard why` explains it.

For a rule: its text, the values that it has read, and the states of its atoms, so that it can be explained
even if the file has changed. No other arguments are recorded; long values are truncated, secrets masked. For
an allowlist: the lists that lack the name. A refusal takes some 30 µs more; the first one by a rule also
compiles its atoms.
"""

from __future__ import annotations

from typing import Any

from fastrpc._core.call_info import CallInfo
from fastrpc.callers import Caller
from fastrpc.errors import suggest
from fastrpc.guard.audit.records import Quoted
from fastrpc.guard.policy.config import DENY, Grant
from fastrpc.guard.policy.decisions import NOT_EXPOSED, CallTarget, Policy, Verdict, values_of
from fastrpc.guard.policy.rules import Rule
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.refusals import RateExceeded
from fastrpc.guard.shell.masking import masked_member
from fastrpc.redaction import masked

LONGEST_TEXT = 200
MOST_PARTS = 20
MOST_COMPARED = 1000
DEEPEST = 4
LISTS = {"tool": "tools", "prompt": "prompts"}
"""The key of the list for each kind; for all other kinds it is ``resources``."""


def because(
    policy: Policy, call: CallInfo, caller: Caller, verdict: Verdict, error: BaseException
) -> dict[str, Any]:
    """Return the fields of a refused call's record that state the reason."""
    if isinstance(error, RateExceeded):
        return {"rate": {"rate": error.rate.text, "tool": error.about, **error.data}}
    target = CallTarget.of_call(call)
    if verdict.action == DENY and verdict.reason == NOT_EXPOSED:
        return {"lists": lacking(policy, caller, target)}
    found: dict[str, Any] = {}
    try:
        rule = policy.rule(verdict.rule, target) if verdict.rule else None
    except GuardConfigError:  # the verdict's reason states it
        rule = None
    if rule is not None:
        risk = verdict.risk if rule.config.risk is None else policy.base_risk(target)
        found["rule"] = _facts(rule, caller, target, risk, call.arguments)
    if verdict.action != DENY:
        by = f"the rule {verdict.risk_rule}" if verdict.risk_rule else risk_source(policy, target)
        found["asks"] = {"from": policy.config.approvals.least, "risk": verdict.risk, "by": by}
    return found


def lacking(policy: Policy, caller: Caller, target: CallTarget) -> list[dict[str, Any]]:
    """Return the lists that lack the called name, each with the most similar name or glob; without any list,
    those that could have it."""
    lists = lists_of(policy, caller, target.kind)
    found = []
    for name, grant in lists:
        patterns = grant.patterns(target.kind)
        if patterns is not None and grant.allows(target.kind, target.name) is False:
            near = suggest(target.name, patterns.texts[:MOST_COMPARED], 1)
            found.append({"list": name, "nearest": near[0] if near else None})
    if all(grant.patterns(target.kind) is None for _, grant in lists):
        key = LISTS.get(target.kind, "resources")
        names = ("expose", f"classes.{caller.caller_class}")
        found = [{"list": f"{name}.{key}", "nearest": None} for name in names]
    return found


def lists_of(policy: Policy, caller: Caller, kind: str) -> list[tuple[str, Grant]]:
    """Return the grants that apply to a caller, each with the path of its list for a kind."""
    config = policy.config
    tables = {id(config.expose): "expose"}
    tables |= {id(grant): f"classes.{name}" for name, grant in config.classes.items()}
    tables |= {id(grant): f"callers.{name}" for name, grant in config.callers.items()}
    key = LISTS.get(kind, "resources")
    return [(f"{tables[id(grant)]}.{key}", grant) for grant in policy.grants(caller)]


def _facts(
    rule: Rule, caller: Caller, target: CallTarget, risk: str, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return a rule, and the values that it saw. A text that seems to contain a secret is left out."""
    values = values_of(caller, target, risk)
    if rule.reads_arguments:
        values["args"] = arguments
    values = dict(rule.expression.prepared(values))
    atoms = rule.expression.atoms
    short = Shortened(atoms.read(values))
    config = rule.config
    return {
        "id": config.id,
        "then": config.then,
        "when": config.when if masked(config.when) == config.when else None,
        "values": Quoted(short.values),
        "whole": short.is_whole,
        "states": atoms.states(values),
    }


def risk_source(policy: Policy, target: CallTarget) -> str:
    """Return what determines the risk of a call if no rule does."""
    for patterns, _ in policy.config.risks:
        if patterns.match(target.name):
            return f"risk.{patterns.texts[0]}"
    if target.risk is not None:
        return "the tool itself"
    return f"the effect {target.effect}" if target.effect else "defaults.unknown_risk"


class Shortened:
    """Values in the form of a record. `is_whole`: nothing was left out, so a rule sees the same values."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.is_whole = True
        self.values = self._short(values, DEEPEST)

    def _short(self, value: Any, depth: int, of: str = "", *, is_element: bool = False) -> Any:
        """Return the value of the name `of` in the form of a record."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int) and -(2**63) <= value < 2**63:
            return int(value)
        if isinstance(value, str):
            text = str.__str__(value)
            hidden = masked_member(of, text, is_element=is_element)
            self.is_whole &= len(text) <= LONGEST_TEXT and hidden == text
            if len(hidden) <= LONGEST_TEXT:
                return hidden
            return f"{hidden[:LONGEST_TEXT]}… ({len(hidden) - LONGEST_TEXT:,} more characters)"
        if isinstance(value, dict) and depth:
            self.is_whole &= len(value) <= MOST_PARTS
            return {
                str(key): self._short(value[key], depth - 1, str(key)) for key in list(value)[:MOST_PARTS]
            }
        if isinstance(value, list | tuple) and depth:
            self.is_whole &= len(value) <= MOST_PARTS
            return [self._short(each, depth - 1, of, is_element=True) for each in value[:MOST_PARTS]]
        self.is_whole = False
        return f"({type(value).__name__})"
