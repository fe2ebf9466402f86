"""What a caller may do: for each tool, prompt and resource the policy's decision, and what decides it.

`permissions` works it out as the guard does for a call, without the call's arguments: rules that read these
are named. For `fastrpc guard check` and the dashboard. Pure, over a `Policy` that no guard uses at the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from fastrpc.guard.policy.config import ASK, DENY
from fastrpc.guard.policy.decisions import NOT_EXPOSED
from fastrpc.guard.policy.patterns import Patterns
from fastrpc.guard.reasons import lacking, lists_of, risk_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastrpc.callers import Caller
    from fastrpc.guard.policy.config import RuleConfig
    from fastrpc.guard.policy.decisions import CallTarget, Decision, Policy, Verdict

ALLOWED, ASKS, REFUSED, HIDDEN = "allowed", "asks", "refused", "hidden"
"""What happens to a call: it runs; it waits for a person's approval; it gets an error; it gets the error of
an unknown name."""


class Permission(NamedTuple):
    """What a caller may do with `target`: `word` says what happens to a call, unless one of `rules`, which
    read its arguments, decides otherwise.

    `lists` has the lists that decide, each with the name or glob that allows the call, or, if they lack the
    name, the most similar one. `rule` and `reason` are those of the rule that has decided, "" for none.
    `risk_by` and `asks_by` name what sets the risk, and what requires an approval. `limits` are rates and
    budgets."""

    target: CallTarget
    word: str
    risk: str
    risk_by: str
    lists: tuple[tuple[str, str], ...]
    rule: str
    reason: str
    rules: tuple[RuleConfig, ...]
    asks_by: str
    limits: tuple[str, ...]

    @property
    def is_allowed(self) -> bool:
        return self.word in (ALLOWED, ASKS)


def permissions(policy: Policy, caller: Caller, targets: Iterable[CallTarget]) -> list[Permission]:
    """Return what a caller may do with each target."""
    key = policy.class_key(caller)
    return [_permission(policy, caller, each, policy.decision(caller, key, each)) for each in targets]


def word_of(policy: Policy, decision: Decision) -> str:
    """Return what happens to a call that no rule about arguments concerns."""
    if not decision.is_allowed:
        return HIDDEN if decision.is_hidden else REFUSED
    return ASKS if policy.asks(decision.verdict) else ALLOWED


def _permission(policy: Policy, caller: Caller, target: CallTarget, decision: Decision) -> Permission:
    verdict = decision.verdict
    word = word_of(policy, decision)
    is_listed = verdict.action != DENY or verdict.reason != NOT_EXPOSED
    return Permission(
        target,
        word,
        verdict.risk,
        _risk_by(policy, verdict, target),
        tuple(_allowing(policy, caller, target) if is_listed else _lacking(policy, caller, target)),
        verdict.rule,
        verdict.reason if is_listed else "",
        tuple(rule.config for rule in decision.rules),
        _asked_by(policy, verdict) if word == ASKS else "",
        tuple(_limits(decision)),
    )


def _lacking(policy: Policy, caller: Caller, target: CallTarget) -> Iterable[tuple[str, str]]:
    return ((each["list"], each["nearest"] or "") for each in lacking(policy, caller, target))


def _allowing(policy: Policy, caller: Caller, target: CallTarget) -> Iterable[tuple[str, str]]:
    """Yield the lists that have a target, each with the name or the first glob that matches it."""
    for name, grant in lists_of(policy, caller, target.kind):
        patterns = grant.patterns(target.kind)
        if patterns is not None:
            yield name, _matching(patterns, target)


def _matching(patterns: Patterns, target: CallTarget) -> str:
    """Return the text of a list that matches a target: its own name, if the list has it."""
    if target.name in patterns.texts:
        return target.name
    is_uri = target.kind not in ("tool", "prompt")
    for each in map(_alone, patterns.texts):
        if each.match_uri(target.name) if is_uri else each.match(target.name):
            return each.texts[0]
    return ""


@lru_cache(maxsize=4096)
def _alone(text: str) -> Patterns:
    return Patterns([text])


def _risk_by(policy: Policy, verdict: Verdict, target: CallTarget) -> str:
    if verdict.risk_rule:
        return f"rules.{verdict.risk_rule}"
    return risk_source(policy, target) if target.kind == "tool" else ""


def _asked_by(policy: Policy, verdict: Verdict) -> str:
    is_by_rule = verdict.action == ASK
    return f"rules.{verdict.rule}" if is_by_rule else f"approvals.from = {policy.config.approvals.least}"


def _limits(decision: Decision) -> Iterable[str]:
    texts = [(about, rate.text) for about, rate in decision.rates]
    texts += [(about, budget.text) for about, budget, _ in decision.budgets]
    return (f"{text}: {about}" if about else text for about, text in texts)
