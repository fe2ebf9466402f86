"""What the policy says of each class of callers and each tool, resource and prompt: a `Decision`.

Decisions are made once, when a name is first called by a class, and kept: a call looks one up. What has to be
evaluated for each call is in `Decision.rules`. What one rule denies is denied, else what one asks for is
asked for, in whatever order they stand. The risk is settled first: rules that set it are evaluated in the
file's order, the last that holds counts, and those that read ``tool.risk`` come behind all of them. So
wherever a rule about arguments sets the risk, those that read it are evaluated for each call, too. A rule
that sets the risk and reads what another may set is an error: no order would settle both (`check_order`).
Pure, over a `GuardConfig` and the facts of the tools.
"""

from __future__ import annotations

from fastrpc._core.budget_table import LARGEST_AMOUNT
from fastrpc.guard.cel.errors import EvaluationError
from fastrpc.guard.policy import risks
from fastrpc.guard.policy.approval_config import NEVER
from fastrpc.guard.policy.budgets import CALLS, COST, MILLION
from fastrpc.guard.policy.config import ALLOW, ASK, DENY, LIST, GuardConfig
from fastrpc.guard.policy.rules import Rule, rule_for
from fastrpc.guard.policy.sections import GuardConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from fastrpc._core.call_gate import Screen
    from fastrpc.callers import Caller
    from fastrpc.guard.policy.budgets import Budget
    from fastrpc.guard.policy.config import Grant, Rate

    BudgetOfCall = tuple[str, Budget, int]
    """A budget that counts a call: the tool that it is about, "" for all; what the call costs, 0 for what is
    measured, or said by the tool."""

    class PolicyTarget(Protocol):
        """What may be called."""

        @property
        def kind(self) -> str: ...
        @property
        def name(self) -> str: ...
        @property
        def effect(self) -> str | None: ...
        @property
        def risk(self) -> str | None: ...


MOST_KEPT, MOST_KEPT_IN_ALL = 4096, 65_536
"""Decisions that are kept, of one class of callers and of all: anybody may read any URI, and where rules tell
callers apart, each is a class."""
LONGEST_KEPT = 1024
"""Characters of a name or URI whose decision is kept."""
NOT_EXPOSED = "not in the allowlist"
RANKS = {action: rank for rank, action in enumerate(("", ALLOW, ASK, DENY))}
"""Which of several actions holds: the last."""


class Verdict:
    """What rules say of a call: `action` (deny, ask, allow, or "" if none is about it), the rule's id, its
    reason, and the risk, one of `risks.LEVELS`; `risk_rule` is the id of the rule that has set it, or ""."""

    __slots__ = ("action", "reason", "risk", "risk_rule", "rule")

    def __init__(self, action: str, rule: str, reason: str, risk: str, risk_rule: str = "") -> None:
        self.action = action
        self.rule = rule
        self.reason = reason
        self.risk = risk
        self.risk_rule = risk_rule

    def says_the_same_as(self, other: Verdict) -> bool:
        return self is other or (
            self.action == other.action and self.rule == other.rule and self.risk == other.risk
        )


class Decision:
    """What the policy says of a class of callers and a tool, a resource or a prompt.

    `verdict` is that of the lists and of the rules that are about all its calls; `rules` are evaluated
    for each call besides, on `values` and the call's arguments, unless one of them sets the risk
    (`varies_risk`). `rates` are those that count calls: each with the tool that it is about, "" for all; so
    are `budgets`."""

    __slots__ = (
        "asks",
        "budgets",
        "is_allowed",
        "is_hidden",
        "is_plain",
        "needs_judging",
        "rates",
        "rules",
        "values",
        "varies_risk",
        "verdict",
    )

    def __init__(
        self,
        verdict: Verdict,
        *,
        is_hidden: bool = False,
        asks: bool = False,
        rules: tuple[Rule, ...] = (),
        values: Mapping[str, Any] | None = None,
        rates: tuple[tuple[str, Rate], ...] = (),
        budgets: tuple[BudgetOfCall, ...] = (),
    ) -> None:
        self.verdict = verdict
        self.is_allowed = verdict.action != DENY
        self.is_hidden = is_hidden
        self.asks = asks
        self.rules = rules
        self.values = values or {}
        self.varies_risk = any(rule.sets_risk for rule in rules)
        self.rates = rates
        self.budgets = budgets
        self.needs_judging = not self.is_allowed or asks or bool(rules)
        """Whether not every call is allowed, as far as rates and budgets go."""
        self.is_plain = not self.needs_judging and not budgets

    @property
    def screens(self) -> tuple[Screen, ...] | None:
        """What says of the rules that are evaluated for each call that none holds: then its verdict is
        `verdict`, which allows it. None: a call needs more than that."""
        if not self.is_allowed or self.asks or self.varies_risk:
            return None
        return tuple(rule.expression.screen(self.values) for rule in self.rules)


class Policy:
    """A configuration, applied. `schemas` has the input schema of each tool that is known, `costs` what calls
    of those cost that say so themselves; ``[costs]`` overrides it, unit by unit.

    Raises GuardConfigError for a rule that is wrong for a tool that is known.
    """

    def __init__(
        self,
        config: GuardConfig,
        schemas: Mapping[str, Mapping[str, Any]],
        costs: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.config = config
        self._costs = costs or {}
        self.version = config.version
        self._schemas = schemas
        self._decisions: dict[Hashable, dict[tuple[str, str], Decision]] = {}
        self._kept = 0
        self._general = [rule_for(rule, "", None) for rule in config.rules]
        """The rules as far as they do not depend on the arguments of a tool."""
        self._splits = any(rule.reads_caller for rule in self._general)
        """Whether callers of one class may be told apart."""
        self._of_tools: dict[tuple[int, str], Rule] = {}
        for number, rule in enumerate(config.rules):
            if rule.tools is not None:
                for name in filter(rule.tools.match, schemas):
                    self._rule_for_tool(number, name)
        check_order(self._general, schemas)

    def forget(self) -> None:
        """Decide again about everything: the tools have changed."""
        self._decisions, self._of_tools, self._kept = {}, {}, 0

    def unknown_tools(self) -> list[str]:
        """Return the exact names of tools in lists and rules that no tool has."""
        lists = [grant.tools for grant in self.config.grants] + [rule.tools for rule in self.config.rules]
        named = {name for each in lists if each is not None for name in each.names}
        named |= {name for each, _ in [*self.config.risks, *self.config.costs] for name in each.names}
        return sorted(named - set(self._schemas))

    def class_key(self, caller: Caller) -> Hashable:
        """Return what all callers have in common of whom the policy says the same."""
        own = self._own_grant(caller) is not None
        alone = own or self._splits
        return (caller.caller_class, caller.principal if alone else "", caller.scopes if alone else ())

    def _own_grant(self, caller: Caller) -> Grant | None:
        callers = self.config.callers
        return callers.get(caller.token_id) or callers.get(caller.owner) or callers.get(caller.principal)

    def grants(self, caller: Caller) -> list[Grant]:
        """Return the grants that all have to allow what a caller does: everybody's, the class's, its own."""
        grants = [self.config.expose]
        of_class = self.config.classes.get(caller.caller_class)
        own = self._own_grant(caller)
        return [*grants, *(each for each in (of_class, own) if each is not None)]

    def rule(self, id: str, target: PolicyTarget) -> Rule | None:
        """Return a rule as it is for what is called; None: it is not about that. Raises GuardConfigError."""
        return next((rule for rule in self._rules_about(target) if rule.config.id == id), None)

    def decision(self, caller: Caller, key: Hashable, target: PolicyTarget) -> Decision:
        """Return the decision about a caller, of the class `key`, and what it calls."""
        of_class = self._decisions.get(key)
        place = (target.kind, target.name)
        found = None if of_class is None else of_class.get(place)
        if found is None:
            found = self._decide(caller, target)
            if len(target.name) <= LONGEST_KEPT:
                self._keep(key, place, found)
        return found

    def _keep(self, key: Hashable, place: tuple[str, str], decision: Decision) -> None:
        if self._kept >= MOST_KEPT_IN_ALL:
            self._decisions, self._kept = {}, 0
        of_class = self._decisions.setdefault(key, {})
        if len(of_class) >= MOST_KEPT:
            self._kept -= len(of_class)
            of_class.clear()
        of_class[place] = decision
        self._kept += 1

    def _decide(self, caller: Caller, target: PolicyTarget) -> Decision:
        risk = self.base_risk(target)
        rates = tuple(self._rates(caller, target))
        of_refused = rates if self.config.counts_requests else ()
        if not self._is_exposed(caller, target):
            return Decision(Verdict(DENY, "", NOT_EXPOSED, risk), is_hidden=True, rates=of_refused)
        try:
            rules = self._rules_about(target)
        except GuardConfigError as error:
            return Decision(Verdict(DENY, "", f"a rule cannot be checked: {error}", risk), rates=of_refused)
        varies = any(rule.reads_arguments and rule.sets_risk for rule in rules)
        later = tuple(rule for rule in rules if rule.reads_arguments or (varies and _is_about_risk(rule)))
        now = [rule for rule in rules if not rule.reads_arguments and (rule.sets_risk or rule not in later)]
        verdict = judge(now, caller, target, None, risk)
        if verdict.action == DENY:
            hides = any(rule.config.id == verdict.rule and rule.config.phase == LIST for rule in rules)
            return Decision(verdict, is_hidden=hides, rates=of_refused)
        return Decision(
            verdict,
            asks=self.asks(verdict),
            rules=later,
            values=values_of(caller, target, verdict.risk) if later else None,
            rates=rates,
            budgets=tuple(self._budgets(caller, target)),
        )

    def asks(self, verdict: Verdict) -> bool:
        """Whether a person has to approve a call: a rule says so, or its risk, unless a rule allows it."""
        least = self.config.approvals.least
        is_risky = least != NEVER and risks.rank(verdict.risk) >= risks.rank(least)
        return verdict.action == ASK or (is_risky and verdict.action != ALLOW)

    def judge(
        self, decision: Decision, caller: Caller, target: PolicyTarget, arguments: Mapping[str, Any]
    ) -> Verdict:
        """Return the verdict on one call: that of its decision, and of the rules that are evaluated for each
        call."""
        before = decision.verdict
        if decision.varies_risk:
            verdict = judge(decision.rules, caller, target, arguments, before.risk)
            if not verdict.risk_rule:
                verdict.risk_rule = before.risk_rule
        else:
            values = {**decision.values, "args": arguments}
            verdict = _acted(decision.rules, values, before.risk, before.risk_rule) or before
        if RANKS[before.action] > RANKS[verdict.action]:
            return Verdict(before.action, before.rule, before.reason, verdict.risk, verdict.risk_rule)
        return verdict

    def _is_exposed(self, caller: Caller, target: PolicyTarget) -> bool:
        if not caller.caller_class:
            return False
        states = [grant.allows(target.kind, target.name) for grant in self.grants(caller)]
        return True in states and False not in states

    def base_risk(self, target: PolicyTarget) -> str:
        """Return the risk before any rule sets it: by ``[risk]``, by what the tool says, or by its effect."""
        if target.kind != "tool":
            return risks.NONE
        for patterns, level in self.config.risks:
            if patterns.match(target.name):
                return level
        return target.risk or risks.of_effect(target.effect, self.config.unknown_risk)

    def _rates(self, caller: Caller, target: PolicyTarget) -> Iterable[tuple[str, Rate]]:
        """Yield what counts calls: of a caller, and of a caller and a tool. The nearest grant decides."""
        grants = list(reversed(self.grants(caller)))
        rate = next((grant.rate for grant in grants if grant.rate is not None), self.config.every_caller)
        if rate is not None:
            yield "", rate
        if target.kind == "tool":
            for grant in grants:
                for patterns, tool_rate in grant.tool_rates:
                    if patterns.match(target.name):
                        yield target.name, tool_rate
                        return

    def _budgets(self, caller: Caller, target: PolicyTarget) -> Iterable[BudgetOfCall]:
        """Yield the budgets of a tool's calls: of a caller, and of a caller and the tool. For each unit and
        period the nearest grant decides."""
        if target.kind != "tool":
            return
        declared = self._costs.get(target.name, {})
        costs = {unit: min(round(amount * MILLION), LARGEST_AMOUNT) for unit, amount in declared.items()}
        costs.update(next((each for patterns, each in self.config.costs if patterns.match(target.name)), {}))
        found: dict[tuple[str, str, str], Budget] = {}
        for grant in reversed(self.grants(caller)):
            of_tool = [each for patterns, each in grant.tool_budgets if patterns.match(target.name)]
            for about, budgets in [("", grant.budgets), *((target.name, each) for each in of_tool)]:
                for budget in budgets:
                    found.setdefault((about, budget.unit, budget.period), budget)
        for (about, unit, _), budget in found.items():
            fixed = 1 if budget.measure == CALLS else costs.get(unit, 0)
            if fixed or budget.measure != COST or unit in declared:
                yield about, budget, fixed

    def _rules_about(self, target: PolicyTarget) -> tuple[Rule, ...]:
        found = []
        for number, (config, general) in enumerate(zip(self.config.rules, self._general, strict=True)):
            if config.tools is None:
                found.append(general)
            elif target.kind == "tool" and config.tools.match(target.name):
                found.append(self._rule_for_tool(number, target.name))
        check_order(found)
        return tuple(found)

    def _rule_for_tool(self, number: int, tool: str) -> Rule:
        """Return a rule, checked against the arguments of a tool. Raises GuardConfigError."""
        found = self._of_tools.get((number, tool))
        if found is None:
            found = rule_for(self.config.rules[number], tool, self._schemas.get(tool))
            self._of_tools[number, tool] = found
        return found


def _is_about_risk(rule: Rule) -> bool:
    """Whether a rule sets the risk, or reads it where a call is judged: lists have no call that could vary
    it."""
    return rule.sets_risk or (rule.reads_risk and rule.config.phase != LIST)


def check_order(rules: Sequence[Rule], names: Iterable[str] | None = None) -> None:
    """Raise GuardConfigError for a rule that sets the risk and reads what another one sets. Of rules that may
    be about different tools, `names` are those that there are; None: all are about the same."""
    setting = [rule for rule in rules if rule.sets_risk]
    for rule in filter(lambda each: each.reads_risk, setting):
        for other in setting:
            if other is not rule and (names is None or _meet(rule, other, names)):
                raise rule.config.where(
                    ["when"],
                    f"it reads tool.risk, which the rule {other.config.id} sets, too: no order settles both. "
                    f"Repeat the condition of {other.config.id} instead",
                )


def _meet(rule: Rule, other: Rule, names: Iterable[str]) -> bool:
    """Whether two rules are about the same tool: one of these, or one that they name."""
    tools, others = rule.config.tools, other.config.tools
    if tools is None or others is None:
        return True
    return any(tools.match(name) and others.match(name) for name in {*names, *tools.names, *others.names})


def values_of(caller: Caller, target: PolicyTarget, risk: str) -> dict[str, Any]:
    """Return the variables of rules but for the arguments."""
    return {
        "caller": {
            "name": caller.principal,
            "class": caller.caller_class,
            "owner": caller.owner,
            "scopes": list(caller.scopes),
        },
        "tool": {"name": target.name, "kind": target.kind, "effect": target.effect or "", "risk": risk},
    }


def judge(
    rules: Sequence[Rule],
    caller: Caller,
    target: PolicyTarget,
    arguments: Mapping[str, Any] | None,
    risk: str,
) -> Verdict:
    """Return what the rules say of a call. A rule that fails denies.

    Rules of the phase list are about lists and calls alike. The risk is settled before the rules that ask,
    deny or allow: by the last rule that sets it and holds.
    """
    values = values_of(caller, target, risk)
    if arguments is not None:
        values["args"] = arguments
    settled, by = risk, ""
    for rule in rules:
        level = rule.config.risk
        if level is not None:
            try:
                if rule.holds(values):
                    settled, by = level, rule.config.id
            except EvaluationError as error:
                return _failed(rule, error, risk)
    values["tool"]["risk"] = settled
    return _acted(rules, values, settled, by) or Verdict("", "", "", settled, by)


def _acted(rules: Iterable[Rule], values: Mapping[str, Any], risk: str, risk_rule: str) -> Verdict | None:
    """Return what the rules want that hold, once the risk is settled; None if there is none of them."""
    found: dict[str, Rule] = {}
    for rule in rules:
        action = rule.action
        if action is None or action in found:
            continue
        try:
            if rule.holds(values):
                found[action] = rule
        except EvaluationError as error:
            return _failed(rule, error, risk, risk_rule)
    for action in (DENY, ASK, ALLOW) if found else ():
        if action in found:
            config = found[action].config
            return Verdict(action, config.id, config.reason, risk, risk_rule)
    return None


def _failed(rule: Rule, error: EvaluationError, risk: str, risk_rule: str = "") -> Verdict:
    return Verdict(DENY, rule.config.id, f"the rule has failed: {error}", risk, risk_rule)
