"""The risk of a call is settled before the rules that read it, wherever they are; what no order would
settle is refused when the policy is loaded."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from support.guarded import policy_of, shop

from fastrpc.callers import Caller
from fastrpc.guard.policy.decisions import CallTarget, Policy, Verdict
from fastrpc.guard.policy.sections import GuardConfigError

OPEN = '[expose]\ntools = ["*"]\n[approvals]\nfrom = "never"\n'
ADA = Caller("ada#1", "staff", owner="ada")


def rule(id: str, when: str, what: str, tools: str = "", phase: str = "") -> str:
    lines = [f'id = "{id}"', f"when = '''{when}'''"]
    lines.append(f'risk = "{what[5:]}"' if what.startswith("risk ") else f'then = "{what}"')
    lines += [f'tools = ["{tools}"]'] if tools else []
    lines += [f'phase = "{phase}"'] if phase else []
    return "[[rules]]\n" + "\n".join(lines) + "\n"


def policy(folder: Path, *rules: str) -> Policy:
    return policy_of(folder, OPEN + "".join(rules), shop())


def judged(policy: Policy, tool: str = "order", caller: Caller = ADA, **arguments: Any) -> Verdict:
    effect = {"order": "write", "search": "read", "wipe": "exec"}[tool]
    target = CallTarget("tool", tool, effect)
    decision = policy.decision(caller, policy.class_key(caller), target)
    return policy.judge(decision, caller, target, arguments)


MANY = rule("many", "args.count > 10", "risk critical", "order")
STAFF = rule("staff", 'caller.class == "staff"', "risk low")


@pytest.mark.parametrize("then", ["deny", "ask", "allow"])
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_rule_without_arguments_reads_the_risk_that_the_arguments_set(
    tmp_path: Path, then: str, at: str
) -> None:
    reads = rule("reads", 'tool.risk == "critical"', then)
    found = policy(tmp_path, *((reads, MANY) if at == "first" else (MANY, reads)))
    verdict = judged(found, item="x", count=11)
    assert (verdict.action, verdict.risk, verdict.rule, verdict.risk_rule) == (
        *(then, "critical", "reads"),
        "many",
    )
    verdict = judged(found, item="x", count=1)
    assert (verdict.action, verdict.risk, verdict.rule, verdict.risk_rule) == ("", "medium", "", "")


@pytest.mark.parametrize("then", ["deny", "ask", "allow"])
def test_one_that_holds_at_the_base_risk_alone_does_not_hold_at_another(tmp_path: Path, then: str) -> None:
    found = policy(tmp_path, rule("reads", 'tool.risk == "medium"', then), MANY)
    assert judged(found, item="x", count=1).action == then
    assert judged(found, item="x", count=11).action == ""


def test_the_risk_that_a_rule_about_the_caller_sets_is_read_without_a_call(tmp_path: Path) -> None:
    found = policy(tmp_path, rule("reads", 'tool.risk == "low"', "deny"), STAFF)
    target = CallTarget("tool", "order", "write")
    assert found.decision(ADA, found.class_key(ADA), target).verdict.action == "deny"
    eve = Caller("eve#1", "guest", owner="eve")
    assert found.decision(eve, found.class_key(eve), target).verdict.action == ""


def test_of_several_that_hold_the_last_one_sets_it(tmp_path: Path) -> None:
    both = policy(tmp_path, STAFF, MANY)
    assert (judged(both, item="x", count=11).risk, judged(both, item="x", count=1).risk) == (
        "critical",
        "low",
    )
    other = policy(tmp_path, MANY, STAFF)
    assert judged(other, item="x", count=11).risk == "low"


def test_the_only_rule_that_sets_it_may_read_what_it_was(tmp_path: Path) -> None:
    found = policy(
        tmp_path,
        rule("more", 'tool.risk == "medium" && args.count > 10', "risk high", "order"),
        rule("reads", 'tool.risk == "high"', "ask"),
    )
    assert [judged(found, item="x", count=count).risk for count in (1, 11)] == ["medium", "high"]
    assert judged(found, item="x", count=11).action == "ask"
    (rule_that_sets,) = [each for each in found._general if each.config.id == "more"]
    assert rule_that_sets.reads_risk


def test_a_list_has_the_risk_that_needs_no_call(tmp_path: Path) -> None:
    hides = rule("hides", 'tool.risk == "medium"', "deny", phase="list")
    found = policy(tmp_path, hides, MANY)
    target = CallTarget("tool", "order", "write")
    assert found.decision(ADA, found.class_key(ADA), target).is_hidden
    found = policy(tmp_path, hides.replace('"medium"', '"critical"'), MANY)
    assert not found.decision(ADA, found.class_key(ADA), target).is_hidden


def test_the_order_in_the_file_does_not_matter_to_what_reads_it(tmp_path: Path) -> None:
    rules = (
        MANY,
        rule("deny-critical", 'tool.risk == "critical" && args.item == "bomb"', "deny", "order"),
        rule("ask-critical", 'tool.risk == "critical"', "ask"),
        rule("allow-medium", 'tool.risk == "medium"', "allow"),
    )
    expected = {("x", 1): "allow", ("x", 11): "ask", ("bomb", 11): "deny", ("bomb", 1): "allow"}
    for some in itertools.permutations(rules):
        found = policy(tmp_path, *some)
        for (item, count), action in expected.items():
            assert judged(found, item=item, count=count).action == action


NIGHT = rule("night", 'tool.risk == "low"', "risk high")


@pytest.mark.parametrize(
    ("rules", "line", "other"),
    [
        ((NIGHT, STAFF), 7, "staff"),
        ((STAFF, NIGHT), 11, "staff"),
        (
            (rule("one", "tool.risk == 'low'", "risk high"), rule("two", "tool.risk == 'high'", "risk low")),
            7,
            "two",
        ),
        ((rule("whole", "size(string(tool.risk)) == 3", "risk high"), MANY), 7, "many"),
        ((rule("here", "tool.risk == 'low' && args.count > 1", "risk high", "order"), STAFF), 7, "staff"),
        (
            (rule("globs", "tool.risk == 'low'", "risk high", "o*"), rule("order", "true", "risk low", "*r")),
            7,
            "order",
        ),
    ],
)
def test_a_rule_that_sets_the_risk_and_reads_what_another_sets_is_refused_with_its_line(
    tmp_path: Path, rules: tuple[str, ...], line: int, other: str
) -> None:
    with pytest.raises(GuardConfigError) as caught:
        policy(tmp_path, *rules)
    said = str(caught.value)
    assert f"guard.toml, line {line}: rules[" in said
    assert f".when: it reads tool.risk, which the rule {other} sets, too: no order settles both" in said


def test_such_rules_about_different_tools_are_none_and_a_tool_that_comes_later_is_refused(
    tmp_path: Path,
) -> None:
    found = policy(
        tmp_path,
        rule("one", "tool.risk == 'low'", "risk high", "new_*"),
        rule("two", "true", "risk low", "*_tool"),
    )
    assert judged(found, item="x", count=1).action == ""
    target = CallTarget("tool", "new_tool", "write")
    decision = found.decision(ADA, found.class_key(ADA), target)
    assert decision.verdict.action == "deny"
    assert "a rule cannot be checked" in decision.verdict.reason
    assert "no order settles both" in decision.verdict.reason


def test_a_rule_of_risk_that_fails_denies(tmp_path: Path) -> None:
    found = policy(tmp_path, rule("fails", "10 / args.count > 1", "risk low", "order"))
    verdict = judged(found, item="x", count=0)
    assert (verdict.action, verdict.rule) == ("deny", "fails")


STRICTNESS = ["allow", "ask", "deny"]


@pytest.mark.parametrize(("then", "otherwise"), [*itertools.combinations(STRICTNESS, 2)])
@pytest.mark.parametrize("at", ["first", "last"])
def test_of_a_rule_over_arguments_and_one_without_the_stricter_holds(
    tmp_path: Path, then: str, otherwise: str, at: str
) -> None:
    general = rule("staff", 'caller.class == "staff"', otherwise)
    other = rule("many", "args.count > 10", then, "order")
    found = policy(tmp_path, *((general, other) if at == "first" else (other, general)))
    assert (judged(found, count=11).action, judged(found, count=11).rule) == (otherwise, "staff")
    assert judged(found, count=1).action == otherwise


def test_what_is_allowed_stays_so_whatever_risk_the_arguments_set(tmp_path: Path) -> None:
    found = policy(tmp_path, rule("staff", 'caller.class == "staff"', "allow"), MANY)
    verdict = judged(found, item="x", count=11)
    assert (verdict.action, verdict.rule, verdict.risk) == ("allow", "staff", "critical")
