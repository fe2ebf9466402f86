"""What `fastrpc guard why` names as a change really changes the decision: random rules on small domains."""

from __future__ import annotations

import json
from itertools import product
from types import SimpleNamespace
from typing import Any

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from fastrpc.callers import Caller
from fastrpc.guard import cel
from fastrpc.guard.audit.records import encoded
from fastrpc.guard.explanation import explained
from fastrpc.guard.policy.config import DENY, GuardConfig
from fastrpc.guard.policy.decisions import Policy, Verdict
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import Section
from fastrpc.guard.reasons import because
from fastrpc.guard.refusals import NotAllowed

DOMAIN: dict[str, list[Any]] = {
    "a": [0, 1, 2, 3],
    "b": [0, 1, 2, 3],
    "w": ["x", "y", "xy", ""],
    "f": [True, False],
    "l": [[], ["x"], ["x", "y"]],
}
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "integer"},
        "w": {"type": "string"},
        "f": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["a", "b", "w", "f", "l"],
}
ADA = Caller("ada", "staff")
COMPARED = st.builds(
    "{} {} {}".format,
    st.sampled_from(["args.a", "args.b", "size(args.l)", "args.a + args.b"]),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["0", "1", "2", "3", "args.a", "args.b"]),
)
ATOMS = COMPARED | st.sampled_from(
    [
        "args.f",
        'args.w == "x"',
        'args.w != "y"',
        'args.w in ["x", "y"]',
        "args.a in [1, 2]",
        '"x" in args.l',
        'args.w.startsWith("x")',
        'args.w.contains("y")',
        'args.w.matches("^x.*")',
        "size(args.w) > 1",
        'args.l.exists(e, e == "y")',
        "args.a / args.b > 0",
        'caller.class == "staff"',
    ]
)
RULES = st.recursive(
    ATOMS,
    lambda inner: (
        st.builds("({} && {})".format, inner, inner)
        | st.builds("({} || {})".format, inner, inner)
        | st.builds("!({})".format, inner)
        | st.builds("({} ? {} : {})".format, inner, inner, inner)
    ),
    max_leaves=4,
)
ARGUMENTS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in DOMAIN.items()})


def policy_of(when: str) -> Policy:
    rule = {"id": "it", "tools": ["order"], "when": when, "then": "deny", "reason": "no"}
    table = {"expose": {"tools": ["*"]}, "approvals": {"from": "never"}, "rules": [rule]}
    config = GuardConfig(Section("guard.toml", table, {}), "1", References("."))
    return Policy(config, {"order": SCHEMA})


def called(arguments: dict[str, Any]) -> Any:
    return SimpleNamespace(kind="tool", name="order", effect="write", risk=None, arguments=arguments)


def verdict_on(policy: Policy, arguments: dict[str, Any], caller: Caller = ADA) -> Verdict:
    call = called(arguments)
    decision = policy.decision(caller, policy.class_key(caller), call)
    return policy.judge(decision, caller, call, arguments)


def is_denied(policy: Policy, values: dict[str, Any]) -> bool:
    caller = Caller("ada", values["caller"]["class"])
    return verdict_on(policy, values["args"], caller).action == DENY


def ways_for(policy: Policy, arguments: dict[str, Any], verdict: Verdict) -> list[dict[str, Any]]:
    """The ways that the explanation of the record names, written and read as the audit log does."""
    reasons = because(policy, called(arguments), ADA, verdict, NotAllowed("no", ""))
    line = b"{" + encoded("audit_1", 0, {"because": reasons})
    ways: list[dict[str, Any]] = explained(json.loads(line))["rule"]["ways"]
    return ways


def changed(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    variable, member = path.split(".")
    return {**values, variable: {**values[variable], member: value}}


@settings(max_examples=200, deadline=None)
@given(when=RULES, arguments=ARGUMENTS)
@example(when="args.a == 3 || args.a < 5", arguments={"a": 3, "b": 0, "w": "", "f": True, "l": []})
@example(when="args.a == 1 || args.a != 1", arguments={"a": 1, "b": 0, "w": "", "f": True, "l": []})
@example(when="args.a / args.b > 0 || args.f", arguments={"a": 1, "b": 0, "w": "", "f": True, "l": []})
def test_whatever_meets_the_needs_of_a_way_is_not_denied(when: str, arguments: dict[str, Any]) -> None:
    policy = policy_of(when)
    verdict = verdict_on(policy, arguments)
    assume(verdict.action == DENY)
    values = {"args": arguments, "caller": {"class": ADA.caller_class}}
    ways = ways_for(policy, arguments, verdict)
    event(f"{len(ways)} ways")
    for way in ways:
        if way["example"] is not None:
            others = values
            for path, value in way["example"].items():
                others = changed(others, path, value)
            assert not is_denied(policy, others), way
        needs = [cel.compile(text, dict.fromkeys(values, cel.DYN)) for text in way["needs"]]
        choices = [DOMAIN.get(path.partition(".")[2], ["staff", "other"]) for path in way["paths"]]
        for chosen in product(*choices):
            others = values
            for path, value in zip(way["paths"], chosen, strict=True):
                others = changed(others, path, value)
            if all(_holds(need, others) for need in needs):
                assert not is_denied(policy, others), (way, chosen)


def _holds(need: Any, values: dict[str, Any]) -> bool:
    try:
        return bool(need.test(values))
    except cel.EvaluationError:
        return False


PLAIN = st.recursive(
    st.builds(
        "args.{} {} {}".format,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        st.sampled_from(["0", "1", "2", "3"]),
    )
    | st.sampled_from(["args.f", 'args.w == "x"', 'args.w in ["x", "y"]']),
    lambda inner: (
        st.builds("({} && {})".format, inner, inner)
        | st.builds("({} || {})".format, inner, inner)
        | st.builds("!({})".format, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(when=PLAIN, arguments=ARGUMENTS)
def test_where_one_other_argument_would_do_one_is_named(when: str, arguments: dict[str, Any]) -> None:
    policy = policy_of(when)
    verdict = verdict_on(policy, arguments)
    assume(verdict.action == DENY)
    would_do = any(
        verdict_on(policy, {**arguments, name: value}).action != DENY
        for name, values in DOMAIN.items()
        for value in values
    )
    assert not would_do or any(len(way["paths"]) == 1 for way in ways_for(policy, arguments, verdict))
