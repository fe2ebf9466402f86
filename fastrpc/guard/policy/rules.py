"""The rules of a policy, made ready for each tool.

A rule whose condition reads only ``caller`` and ``tool`` is decided when the policy is loaded, once for each
class of callers and tool. A rule that reads ``args`` names the tools to which it applies; it is checked
against the schema of each, and evaluated for each call on the bound arguments. A rule that cannot be checked
denies.
"""

from __future__ import annotations

from fastrpc.guard import cel
from fastrpc.guard.policy.config import LIST, RuleConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.guard.cel.expression import Expression

CALLER = cel.struct(
    {"name": cel.STRING, "class": cel.STRING, "owner": cel.STRING, "scopes": cel.list_of(cel.STRING)},
    label="caller",
)
TOOL = cel.struct(
    {"name": cel.STRING, "kind": cel.STRING, "effect": cel.STRING, "risk": cel.STRING}, label="tool"
)
BY_CLASS = frozenset(("class",))
"""The members of a caller that all callers of a class have in common."""


class Rule:
    """A rule that is compiled for one tool. `holds` returns whether its condition is true for some values, or
    raises EvaluationError. `action` is the rule's action then, None if it only sets the risk.
    `reads_arguments`: it is evaluated for each call; `reads_risk`: after the rules that set the risk."""

    def __init__(self, config: RuleConfig, expression: Expression) -> None:
        self.config = config
        self.expression = expression
        self.action = config.then
        self.holds: Callable[[Mapping[str, Any]], bool] = expression.test
        self.sets_risk = config.risk is not None
        self.reads_arguments = "args" in expression.variables
        self.reads_risk = "tool" in expression.whole or "risk" in expression.members("tool")
        self.reads_caller = "caller" in expression.whole or bool(expression.members("caller") - BY_CLASS)


def rule_for(config: RuleConfig, tool: str, schema: Mapping[str, Any] | None) -> Rule:
    """Return a rule, checked against a tool's schema of arguments if given. Raises GuardConfigError."""
    variables: dict[str, cel.Type] = {"caller": CALLER, "tool": TOOL}
    choices: frozenset[str] = frozenset()
    if config.tools is not None and config.phase != LIST:
        if schema is not None:
            variables["args"] = cel.type_of_schema(
                schema, label=f"the tool {tool}", noun="argument", is_closed=True
            )
            choices = cel.choices_in(schema)
        else:
            variables["args"] = cel.map_of(cel.DYN)
    try:
        expression = cel.compile(config.when, variables, choices)
    except cel.RuleError as error:
        hint = ""
        if "args" not in variables and "args" in config.when:
            hint = '; a rule about arguments is of the phase call and names the tools: tools = ["…"]'
        where = (
            f"column {error.column}: " if error.line == 1 else f"line {error.line}, column {error.column}: "
        )
        raise config.where(["when"], f"{where}{error.message}{hint}") from None
    if expression.type.kind not in ("bool", "dyn"):
        raise config.where(["when"], "expected a condition, which is true or false")
    return Rule(config, expression)
