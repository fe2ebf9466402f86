"""The policy's `Decision` for each class of callers and each tool, resource and prompt.

A decision is made once, when a class first calls a name, and cached: a call looks it up. Rules that must be
evaluated for each call are in `Decision.rules`. If any rule denies, the call is denied; otherwise, if any
rule asks, a person is asked; the order of the rules does not matter. The risk is determined first: rules that
set it are evaluated in the file's order, and the last one whose condition holds wins. Rules that read
``tool.risk`` are evaluated after all of them; so if a rule about arguments sets the risk, they are evaluated
for each call, too. A rule that sets the risk and reads a risk that another rule may set is an error, since no
order would be correct for both (`check_order`). Pure, over a `GuardConfig` and the facts of the tools.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastrpc._core.budget_table import LARGEST_AMOUNT
from fastrpc._core.call_gate import Screen
from fastrpc._core.call_info import CallInfo
from fastrpc.callers import Caller
from fastrpc.guard.cel.errors import EvaluationError
from fastrpc.guard.policy import risks
from fastrpc.guard.policy.approval_config import NEVER
from fastrpc.guard.policy.budgets import CALLS, COST, MILLION, Budget
from fastrpc.guard.policy.config import ALLOW, ASK, DENY, LIST, Grant, GuardConfig, Rate
from fastrpc.guard.policy.rules import Rule, rule_for
from fastrpc.guard.policy.sections import GuardConfigError

BudgetOfCall = tuple[str, Budget, int]
"""A budget that counts a call: its tool, "" for all; the budget; and the call's cost in it, 0 if the cost
is measured, or reported by the tool."""


MOST_KEPT, MOST_KEPT_IN_ALL = 4096, 65_536
"""How many decisions are cached for one class of callers, and for all. Callers may read any number of URIs,
and if rules distinguish callers, each caller is a class."""
LONGEST_KEPT = 1024
"""The maximum length, in characters, of a name or URI whose decision is cached."""
NOT_EXPOSED = "not in the allowlist"
RANKS = {action: rank for rank, action in enumerate(("", ALLOW, ASK, DENY))}
"""Of several actions the one with the highest rank wins."""


class CallTarget(NamedTuple):
    """A tool, resource or prompt that is called or listed."""

    kind: str
    name: str
    effect: str | None
    risk: str | None = None

    @classmethod
    def of_call(cls, call: CallInfo) -> CallTarget:
        return cls(call.kind, call.name, call.effect, call.risk)


class Verdict(NamedTuple):
    """The result of the rules for a call: `action` (deny, ask, allow, or "" if no rule applies), the rule's
    id, its reason, and the risk, one of `risks.LEVELS`; `risk_rule` is the id of the rule that has set it, or
    ""."""

    action: str
    rule: str
    reason: str
    risk: str
    risk_rule: str = ""

    def says_the_same_as(self, other: Verdict) -> bool:
        return (self.action, self.rule, self.risk) == (other.action, other.rule, other.risk)


@dataclass(slots=True, eq=False)
class Decision:
    """The policy's decision about a class of callers and a tool, a resource or a prompt.

    `verdict` is that of the lists and of the rules that apply to all its calls. `rules` are also evaluated
    for each call, on `values` and the call's arguments, unless one of them sets the risk (`varies_risk`).
    `rates` count calls, each with the tool that it applies to, "" for all; so do `budgets`."""

    verdict: Verdict
    is_hidden: bool = False
    asks: bool = False
    rules: tuple[Rule, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    rates: tuple[tuple[str, Rate], ...] = ()
    budgets: tuple[BudgetOfCall, ...] = ()
    is_allowed: bool = field(init=False)
    varies_risk: bool = field(init=False)
    needs_judging: bool = field(init=False)
    """Whether calls need more than the counting of rates and budgets to be allowed."""
    is_plain: bool = field(init=False)

    def __post_init__(self) -> None:
        self.is_allowed = self.verdict.action != DENY
        self.varies_risk = any(rule.sets_risk for rule in self.rules)
        self.needs_judging = not self.is_allowed or self.asks or bool(self.rules)
        self.is_plain = not self.needs_judging and not self.budgets

    @property
    def screens(self) -> tuple[Screen, ...] | None:
        """The screens by which a call is recognised to which none of `rules` applies: then its verdict is
        `verdict`, which allows it. None: screens are not sufficient."""
        if not self.is_allowed or self.asks or self.varies_risk:
            return None
        return tuple(rule.expression.screen(self.values) for rule in self.rules)


class Policy:
    """An applied configuration. `schemas` has the input schema of each known tool, `costs` the costs that
    tools declare; ``[costs]`` overrides them, unit by unit.

    Raises GuardConfigError for a rule that is wrong for a known tool.
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
        """The rules without the arguments of a tool."""
        self._splits = any(rule.reads_caller for rule in self._general)
        """Whether rules may distinguish callers of one class."""
        self._of_tools: dict[tuple[int, str], Rule] = {}
        for number, rule in enumerate(config.rules):
            if rule.tools is not None:
                for name in filter(rule.tools.match, schemas):
                    self._rule_for_tool(number, name)
        check_order(self._general, schemas)

    def forget(self) -> None:
        """Clear all decisions: the tools have changed."""
        self._decisions, self._of_tools, self._kept = {}, {}, 0

    def unknown_tools(self) -> list[str]:
        """Return the exact names of tools in lists and rules that no tool has."""
        lists = [grant.tools for grant in self.config.grants] + [rule.tools for rule in self.config.rules]
        named = {name for each in lists if each is not None for name in each.names}
        named |= {name for each, _ in [*self.config.risks, *self.config.costs] for name in each.names}
        return sorted(named - set(self._schemas))

    def class_key(self, caller: Caller) -> Hashable:
        """Return the key that is common to all callers for whom the policy's decisions are the same."""
        own = self._own_grant(caller) is not None
        alone = own or self._splits
        return (caller.caller_class, caller.principal if alone else "", caller.scopes if alone else ())

    def _own_grant(self, caller: Caller) -> Grant | None:
        callers = self.config.callers
        return callers.get(caller.token_id) or callers.get(caller.owner) or callers.get(caller.principal)

    def grants(self, caller: Caller) -> list[Grant]:
        """Return the grants of everyone, the class and the caller; all must allow a call."""
        grants = [self.config.expose]
        of_class = self.config.classes.get(caller.caller_class)
        own = self._own_grant(caller)
        return [*grants, *(each for each in (of_class, own) if each is not None)]

    def rule(self, id: str, target: CallTarget) -> Rule | None:
        """Return a rule in its form for the target; None if it does not apply. Raises GuardConfigError."""
        return next((rule for rule in self._rules_about(target) if rule.config.id == id), None)

    def decision(self, caller: Caller, key: Hashable, target: CallTarget) -> Decision:
        """Return the decision about a caller of the class `key` and a target."""
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

    def _decide(self, caller: Caller, target: CallTarget) -> Decision:
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
            values=values_of(caller, target, verdict.risk) if later else {},
            rates=rates,
            budgets=tuple(self._budgets(caller, target)),
        )

    def asks(self, verdict: Verdict) -> bool:
        """Whether a person has to approve: by a rule, or by the risk unless a rule allows the call."""
        least = self.config.approvals.least
        is_risky = least != NEVER and risks.rank(verdict.risk) >= risks.rank(least)
        return verdict.action == ASK or (is_risky and verdict.action != ALLOW)

    def judge(
        self, decision: Decision, caller: Caller, target: CallTarget, arguments: Mapping[str, Any]
    ) -> Verdict:
        """Return the verdict on one call: that of its decision and of the rules for each call."""
        before = decision.verdict
        if decision.varies_risk:
            verdict = judge(decision.rules, caller, target, arguments, before.risk)
            if not verdict.risk_rule:
                verdict = verdict._replace(risk_rule=before.risk_rule)
        else:
            values = {**decision.values, "args": arguments}
            verdict = _acted(decision.rules, values, before.risk, before.risk_rule) or before
        if RANKS[before.action] > RANKS[verdict.action]:
            return before._replace(risk=verdict.risk, risk_rule=verdict.risk_rule)
        return verdict

    def _is_exposed(self, caller: Caller, target: CallTarget) -> bool:
        if not caller.caller_class:
            return False
        states = [grant.allows(target.kind, target.name) for grant in self.grants(caller)]
        return True in states and False not in states

    def base_risk(self, target: CallTarget) -> str:
        """Return the risk before any rule: by ``[risk]``, the tool's declaration, or its effect."""
        if target.kind != "tool":
            return risks.NONE
        for patterns, level in self.config.risks:
            if patterns.match(target.name):
                return level
        return target.risk or risks.BY_EFFECT.get(target.effect or "", self.config.unknown_risk)

    def _rates(self, caller: Caller, target: CallTarget) -> Iterable[tuple[str, Rate]]:
        """Yield the rates for a caller, and for a caller and a tool. The most specific grant wins."""
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

    def _budgets(self, caller: Caller, target: CallTarget) -> Iterable[BudgetOfCall]:
        """Yield the budgets of a tool's calls: for a caller, and for a caller and the tool. For each unit and
        period the most specific grant wins."""
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

    def _rules_about(self, target: CallTarget) -> tuple[Rule, ...]:
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
    """Whether a rule sets the risk, or reads it in calls: lists have no arguments that could change it."""
    return rule.sets_risk or (rule.reads_risk and rule.config.phase != LIST)


def check_order(rules: Sequence[Rule], names: Iterable[str] | None = None) -> None:
    """Raise GuardConfigError for a rule that sets the risk and reads the risk that another rule sets. `names`
    are the tools' names, if the rules may apply to different tools; None: all apply to the same one."""
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
    """Whether two rules apply to the same tool: one of `names`, or one that the rules name."""
    tools, others = rule.config.tools, other.config.tools
    if tools is None or others is None:
        return True
    return any(tools.match(name) and others.match(name) for name in {*names, *tools.names, *others.names})


def values_of(caller: Caller, target: CallTarget, risk: str) -> dict[str, Any]:
    """Return the variables of rules, except the arguments."""
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
    target: CallTarget,
    arguments: Mapping[str, Any] | None,
    risk: str,
) -> Verdict:
    """Return the verdict of the rules on a call. A rule that fails denies.

    Rules of the phase list apply to lists and calls. The risk is determined before the rules that ask, deny
    or allow, by the last rule that sets it and whose condition holds.
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
    """Return the verdict of the rules that apply once the risk is determined; None without any."""
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
