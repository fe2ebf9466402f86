"""The guard's configuration in ``guard.toml``, ``fastrpc.toml`` (table ``guard``) or ``mcp-server.json``.

    [expose]                       # what anybody may call; without it, what their class may
    tools = ["search", "docs_*"]

    [classes.agent]                # of tokens: fastrpc token create --class agent
    tools = ["search"]
    rate = "60/minute"

    [[rules]]
    id = "small-orders"
    tools = ["order"]
    when = "args.count > 10"
    then = "deny"

Only the secrets that the file names are looked up; `decisions` applies it to the tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from fastrpc.errors import Reworded
from fastrpc.guard.callers import claims
from fastrpc.guard.callers.claims import ClaimRule
from fastrpc.guard.policy import budgets, risks, sections
from fastrpc.guard.policy.approval_config import ApprovalConfig
from fastrpc.guard.policy.audit_section import AuditConfig
from fastrpc.guard.policy.budgets import Budget
from fastrpc.guard.policy.dashboard_config import DashboardConfig
from fastrpc.guard.policy.patterns import Patterns
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import Section

RATE = re.compile(r"\s*([1-9][0-9]{0,8})\s*(?:/|per)\s*(second|minute|hour|day)s?\s*\Z")
UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
DENY, ASK, ALLOW = ACTIONS = ("deny", "ask", "allow")
LIST, CALL = PHASES = ("list", "call")


CLAIM_TESTS: dict[str, Callable[[Any], Callable[[object], bool]]] = {
    "equals": claims.equals,
    "contains": claims.contains,
    "matches": lambda glob: claims.matching(Patterns([sections.text(glob)]).match),
    "present": claims.present,
}
"""The tests that a rule may apply to a claim."""


class Rate:
    """At most `count` calls in any `seconds`."""

    def __init__(self, text: str) -> None:
        found = RATE.match(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"expected a rate such as 60/minute, got {sections.shown(text)}")
        self.count = int(found[1])
        self.seconds = UNIT_SECONDS[found[2]]
        self.text = f"{self.count}/{found[2]}"


class Grant:
    """What one table allows: lists of tools, resources and prompts, None for a missing list; rates and
    budgets, whose units `check_units` checks. `where` makes an error about one of its keys."""

    def __init__(self, section: Section) -> None:
        take = section.take
        self.tools: Patterns | None = take("tools", _patterns)
        self.resources: Patterns | None = take("resources", _patterns)
        self.prompts: Patterns | None = take("prompts", _patterns)
        self.rate: Rate | None = take("rate", Rate)
        self.tool_rates: list[tuple[Patterns, Rate]] = take("tool_rates", _tool_rates) or []
        self.budgets: list[Budget] = take("budget", budgets.of_caller) or []
        self.tool_budgets: list[tuple[Patterns, list[Budget]]] = take("tool_budgets", budgets.of_tools) or []
        self.where = section.error
        section.end()

    def check_units(self, known: Container[str]) -> None:
        """Raise GuardConfigError for a budget in a unit in which no tool has costs."""
        keyed = [("budget", self.budgets), *(("tool_budgets", each) for _, each in self.tool_budgets)]
        for key, found in keyed:
            for budget in found:
                if budget.measure == budgets.COST and budget.unit not in known:
                    raise self.where([key], budgets.unit_expected(budget.unit))

    def patterns(self, kind: str) -> Patterns | None:
        """Return the list of a kind: ``tool``, ``resource``, ``resource_template`` or ``prompt``."""
        if kind == "tool":
            return self.tools
        return self.prompts if kind == "prompt" else self.resources

    def allows(self, kind: str, name: str) -> bool | None:
        """Whether the list of a kind matches a name or a URI; None if there is no such list."""
        patterns = self.patterns(kind)
        if patterns is None:
            return None
        return patterns.match(name) if kind in ("tool", "prompt") else patterns.match_uri(name)


class RuleConfig:
    """One rule as it is written; `where` makes an error about one of its keys."""

    def __init__(self, section: Section, number: int) -> None:
        self.id: str = section.take("id", sections.name) or f"rule-{number + 1}"
        self.when: str = section.needed("when", sections.text)
        self.then: str | None = section.take("then", sections.one_of(*ACTIONS))
        self.risk: str | None = section.take("risk", sections.one_of(*risks.LEVELS))
        self.tools: Patterns | None = section.take("tools", _patterns)
        self.phase: str = section.take("phase", sections.one_of(*PHASES)) or CALL
        self.reason: str = section.take("reason", sections.text) or ""
        section.end()
        self.where = section.error
        if (self.then is None) == (self.risk is None):
            raise section.error([], "give either then or risk")
        if self.phase == LIST and self.then != DENY:
            raise section.error(["phase"], "a rule of the phase list can only hide: then = 'deny'")


class GuardConfig:
    """A configuration. `version` identifies its text. Raises GuardConfigError."""

    def __init__(self, root: Section, version: str, references: References) -> None:
        self.version = version
        defaults = root.table("defaults")
        take = defaults.take
        self.default_class: str = take("class", sections.name, "default")
        self.user_class: str = take("stdio_class", sections.name, "local")
        self.unknown_risk: str = take("unknown_risk", sections.one_of(*risks.LEVELS), risks.HIGH)
        self.hides: bool = take("hide", sections.flag, True)
        self.every_caller: Rate | None = take("rate", Rate, None)
        self.counts_requests: bool = take("requests", sections.one_of("calls", "all"), "calls") == "all"
        self.counts_in: str = take("count_in", sections.one_of("host", "database"), "")
        """Where rates and budgets are counted; "": in the database if that is PostgreSQL."""
        self.costs: list[tuple[Patterns, Mapping[str, int]]] = _by_name(root.table("costs"), budgets.cost)
        self.expose = Grant(root.table("expose"))
        self.classes = {name: Grant(each) for name, each in root.named_sections("classes")}
        self.callers = {name: Grant(each) for name, each in root.named_sections("callers")}
        rules = root.list_of_sections("claims")
        self.claims = [_rule_about_claims(each, "class", sections.name) for each in rules]
        self.risks: list[tuple[Patterns, str]] = _by_name(root.table("risk"), sections.one_of(*risks.LEVELS))
        self.rules = [RuleConfig(each, number) for number, each in enumerate(root.list_of_sections("rules"))]
        self.approvals = ApprovalConfig(root.table("approvals"), references)
        self.audit = AuditConfig(root, references)
        self.dashboard = DashboardConfig(root.table("dashboard"), references, _rule_about_claims)
        self.database: str = root.take("database", _database(references), "")
        self.tokens: list[tuple[str, str]] = root.take("tokens", _tokens(references)) or []
        self.transports: dict[str, bool] = {}
        self.read_at_start: tuple[Any, ...] = (
            *(root.written(key) for key in ("database", "tokens", "audit", "claims")),
            *(defaults.written(key) for key in ("class", "stdio_class", "hide", "requests", "count_in")),
        )
        """What servers read only when they start, as it is written."""
        defaults.end()
        root.end()
        seen: set[str] = set()
        for rule in self.rules:
            if rule.id in seen:
                raise rule.where(["id"], f"another rule is called {rule.id}")
            seen.add(rule.id)

    def allows(self, transport: str) -> bool:
        """Whether the server may serve over ``stdio`` or ``http``: True if the file has no such key."""
        return self.transports.get(transport, not self.transports)

    @property
    def grants(self) -> list[Grant]:
        return [self.expose, *self.classes.values(), *self.callers.values()]

    def check_units(self, declared: Iterable[Mapping[str, object]]) -> None:
        """Raise GuardConfigError for a budget in a unit that neither ``[costs]`` nor a tool declares."""
        known = {unit for each in [*(each for _, each in self.costs), *declared] for unit in each}
        for grant in self.grants:
            grant.check_units(known)

    @property
    def has_budgets(self) -> bool:
        return any(grant.budgets or grant.tool_budgets for grant in self.grants)


# --- kinds of values --------------------------------------------------------------------------------------


def _patterns(value: Any) -> Patterns:
    return Patterns(sections.texts(value))


def _tool_rates(value: Any) -> list[tuple[Patterns, Rate]]:
    if not isinstance(value, dict):
        raise ValueError(
            f'expected a table such as {{ "search" = "10/minute" }}, got {sections.shown(value)}'
        )
    return [(Patterns([glob]), Rate(rate)) for glob, rate in value.items()]


def _rule_about_claims(section: Section, key: str, outcome: Callable[[Any], str]) -> ClaimRule:
    """Return a rule about claims, whose outcome, such as a class, is the value of `key`."""
    issuer: str = section.take("issuer", sections.text, "")
    path: tuple[str, ...] = section.needed("claim", claims.path)
    found = {name: section.take(name, test) for name, test in CLAIM_TESTS.items()}
    caller_class: str = section.needed(key, outcome)
    section.end()
    given = [name for name, test in found.items() if test is not None]
    if len(given) != 1:
        came = " and ".join(given) or "none"
        raise section.error([], f"expected one of {', '.join(CLAIM_TESTS)}, got {came}")
    return claims.ClaimRule(path, found[given[0]], caller_class, issuer)


def _by_name(section: Section, convert: Callable[[Any], Any]) -> list[tuple[Patterns, Any]]:
    """Return the values by name or glob, exact names first."""
    found = [(Patterns([glob]), section.take(glob, convert)) for glob, _ in section.items()]
    return sorted(found, key=lambda each: not each[0].names)


def _database(references: References) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        found = sections.text(value)
        return found if found.startswith("sqlite:") else references.resolve(found)

    return convert


def _tokens(references: References) -> Callable[[Any], list[tuple[str, str]]]:
    """Read ``tokens = [{ id = "claude", token = "{{vault:claude}}", class = "agent" }]``."""

    def convert(value: Any) -> list[tuple[str, str]]:
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ValueError(f"expected an array of tables, got {sections.shown(value)}")
        found = []
        for number, each in enumerate(value):
            with Reworded(ValueError, ValueError, f"[{number}]: "):
                if set(each) != {"id", "token"}:
                    raise ValueError(
                        f"expected the keys id and token, got {', '.join(sorted(each)) or 'none'}"
                    )
                found.append((sections.name(each["id"]), references.resolve(sections.text(each["token"]))))
        if len({id for id, _ in found}) < len(found):
            raise ValueError("two tokens have the same id")
        return found

    return convert
