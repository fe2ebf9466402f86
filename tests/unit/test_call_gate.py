"""The compiled part of a guard: it allows what is open, and leaves everything else to the guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.guarded import caller_of, policy_of, shop
from support.in_memory import RawConversation, in_loop

from fastrpc import Server
from fastrpc._core.call_gate import CallGate
from fastrpc.callers import Caller
from fastrpc.guard.budgets.file import BudgetFile
from fastrpc.guard.budgets.ledger import Ledger
from fastrpc.guard.guard import Guard
from fastrpc.protocol.versions import STATELESS

POLICY = """
[expose]
tools = ["*"]

[risk]
"*" = "low"

[classes.local]
rate = "RATE"
tool_rates = { "search" = "TOOL_RATE" }
"""


class Counting(Guard):
    """A guard that counts what is not decided in compiled code."""

    decided = 0

    def decide(self, call: Any) -> Any:
        self.decided += 1
        return super().decide(call)


def guarded(folder: Path, rate: str = "1000/hour", tool_rate: str = "1000/hour") -> tuple[Server, Counting]:
    app = shop()
    text = POLICY.replace("TOOL_RATE", tool_rate).replace("RATE", rate)
    guard = Counting(policy_of(folder, text, app), caller_of)
    guard.install(app)
    return app, guard


def answers(app: Server, tools: list[str], between: Any = None) -> list[Any]:
    """Call these tools one after the other; return the code of each error, None for a result."""
    found: list[Any] = []

    async def run() -> None:
        peer = RawConversation(app, STATELESS)
        for id, tool in enumerate(tools):
            peer.call(id, tool, {"text": "x"} if tool == "search" else {})
            answer = await peer.answer(id)
            found.append(answer["error"]["code"] if "error" in answer else None)
            if between is not None:
                between(id)
        peer.close()

    in_loop(run)
    return found


def test_the_first_call_of_a_tool_is_decided_by_the_guard_and_later_ones_at_the_gate(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path)
    assert answers(app, ["search"] * 5 + ["mystery"] * 5) == [None] * 10
    assert guard.decided == 2


def test_a_call_that_comes_too_soon_takes_nothing_from_the_other_rate(tmp_path: Path) -> None:
    """Two calls of `search` are allowed, and four of all tools: the refused ones count for neither."""
    app, _ = guarded(tmp_path, rate="4/hour", tool_rate="2/hour")
    tools = ["search", "search", "search", "search", "mystery", "mystery", "mystery"]
    assert answers(app, tools) == [None, None, 429, 429, None, None, 429]


def test_a_budget_is_counted_at_the_gate_until_there_is_something_to_say_about_it(tmp_path: Path) -> None:
    """Results say so from 80 per cent on: the guard looks at these calls, and at those that it refuses."""
    app = shop()
    file = BudgetFile(str(tmp_path / "budgets"))
    text = '[expose]\ntools = ["*"]\nbudget = ["10 calls/day"]\nrate = "1000/hour"\n[risk]\n"*" = "low"\n'
    ledger = Ledger(file)
    guard = Counting(policy_of(tmp_path, text, app), caller_of, ledger=ledger)
    guard.install(app)
    app.observe(ledger)
    decided: list[int] = []
    found = answers(app, ["search"] * 12, lambda id: decided.append(guard.decided))
    assert found == [None] * 10 + [402] * 2
    assert decided == [1] * 7 + [2, 3, 4, 5, 6]
    app.drain_observers()
    assert [amount for _, _, _, amount, _ in file.table.entries()] == [10]
    file.close()


def test_a_gate_that_is_closed_while_a_budget_is_asked_ends_the_call_as_it_began() -> None:
    app = shop()
    asked: list[Any] = []
    gate = CallGate(asked.append)
    reserved: list[None] = []

    def reserve() -> bool:
        gate.close()
        reserved.append(None)
        return True

    gate.open("", "search", (), reserve)
    app.guard(gate)
    assert answers(app, ["search"] * 3) == [None] * 3
    assert (len(reserved), len(asked)) == (1, 2)


def test_a_gate_takes_nothing_but_limits() -> None:
    with pytest.raises(TypeError, match="limits: expected a RateLimit, got 3"):
        CallGate(print).open("", "search", (3,))  # type: ignore[arg-type]


def test_another_policy_another_caller_and_other_tools_close_the_gate(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path)
    callers = {"": Caller("os:tester", "local")}
    guard.caller_of = lambda principal: callers[principal]
    none = policy_of(tmp_path, '[expose]\ntools = ["mystery"]\n', app, "other.toml")
    before = guard.policy

    def change(id: int) -> None:
        if id == 1:
            guard.use(none)
        elif id == 2:
            guard.use(before)
        elif id == 4:
            callers[""] = Caller("", "")  # a token that was revoked
            guard.forget(frozenset([""]))
        elif id == 5:
            callers[""] = Caller("os:tester", "local")
            guard.forget(frozenset([""]))
        elif id == 7:
            app.remove_tool("search")

    expected = [None, None, -32602, None, None, -32602, None, None, -32602]
    assert answers(app, ["search"] * 9, change) == expected


@pytest.mark.parametrize("moment", ["looked up", "opened"])
def test_a_token_that_another_thread_sees_revoked_while_its_caller_is_decided_about_is_not_remembered(
    tmp_path: Path, moment: str
) -> None:
    app = shop()
    text = POLICY.replace("TOOL_RATE", "9/hour").replace("RATE", "9/hour")
    guard = Guard(policy_of(tmp_path, "[defaults]\nhide = false\n" + text, app), caller_of)
    callers = {"": Caller("os:tester", "local")}

    def revoke(now: str) -> None:
        if moment == now and callers[""].principal:
            callers[""] = Caller("", "")
            guard.forget(frozenset([""]))

    def looked_up(principal: str) -> Caller:
        found = callers[principal]
        revoke("looked up")
        return found

    class LateGate(CallGate):
        def open(self, *arguments: Any) -> None:
            revoke("opened")
            super().open(*arguments)

    guard.caller_of = looked_up
    guard._gate = LateGate(guard.decide)
    guard.install(app)
    first, *later = answers(app, ["search"] * 3)
    assert first == (None if moment == "opened" else 403)  # which was allowed before
    assert later == [403, 403]


def test_a_tool_that_has_proven_quick_stays_inline_with_a_gate(tmp_path: Path) -> None:
    app = shop()

    @app.tool
    def quick() -> str:
        return "done"

    Guard(
        policy_of(tmp_path, POLICY.replace("TOOL_RATE", "9/hour").replace("RATE", "90/hour"), app), caller_of
    ).install(app)
    found: list[bool] = []
    answers(app, ["quick"] * 40, lambda id: found.append(app.runtime.plans.tools["quick"].inline))
    assert not found[0]
    assert all(found[20:])


def test_the_calls_of_a_tool_of_a_mounted_server_are_allowed_in_compiled_code(tmp_path: Path) -> None:
    app, inner = Server("outer"), Server("inner")
    inner.add_tool(lambda: "done", name="act", description="Act.", effect="read")
    app.mount(inner, "in")
    text = POLICY.replace("TOOL_RATE", "9/hour").replace("RATE", "3/hour").replace('"search"', '"in_act"')
    guard = Counting(policy_of(tmp_path, text, app), caller_of)
    guard.install(app)
    assert answers(app, ["in_act"] * 4) == [None, None, None, 429]
    assert guard.decided == 2  # the first, by which the gate learns, and the one too many
    assert app.runtime.plans.tools["in_act"].guard is guard._gate  # so that calls need no CallInfo


@pytest.mark.parametrize(
    "rule", ['when = "args.text == \'x\'"\nthen = "deny"', 'when = "true"\nthen = "ask"']
)
def test_a_tool_whose_calls_are_looked_at_one_by_one_is_never_open(tmp_path: Path, rule: str) -> None:
    app = shop()
    text = f'{POLICY}[[rules]]\ntools = ["search"]\n{rule}\n'.replace("TOOL_RATE", "9/hour")
    guard = Counting(policy_of(tmp_path, text.replace("RATE", "9/hour"), app), caller_of)
    guard.install(app)
    answers(app, ["search"] * 3)
    assert guard.decided == 3


@pytest.mark.parametrize(
    "when",
    [
        'args.text == "y"',
        'args.text in ["y"]',
        'args.text + "y" == "y"',
        'args.text.matches("^y")',
        'args.text.size() > 1 ? true : args.text == "y"',
        'caller.class == "guest" && args.text == "x"',
        "args == {}",
    ],
)
def test_a_rule_that_does_not_hold_is_evaluated_at_the_gate_and_one_that_holds_by_the_guard(
    tmp_path: Path, when: str
) -> None:
    app = shop()
    rule = f'[[rules]]\ntools = ["search"]\nwhen = \'{when}\'\nthen = "deny"\n'
    text = (POLICY + rule).replace("TOOL_RATE", "1000/hour").replace("RATE", "1000/hour")
    guard = Counting(policy_of(tmp_path, text, app), caller_of)
    guard.install(app)
    assert answers(app, ["search"] * 4) == [None] * 4
    assert guard.decided == 1
    guard.use(policy_of(tmp_path, text.replace(when, f"!({when})"), app, "turned.toml"))
    assert answers(app, ["search"] * 2) == [403] * 2
    assert guard.decided == 3


def test_what_the_evaluation_of_a_rule_raises_is_left_to_the_guard(tmp_path: Path) -> None:
    app = shop()
    rule = '[[rules]]\ntools = ["search"]\nwhen = \'int(args.text) > 7\'\nthen = "deny"\n'
    text = (POLICY + rule).replace("TOOL_RATE", "1000/hour").replace("RATE", "1000/hour")
    guard = Counting(policy_of(tmp_path, text, app), caller_of)
    guard.install(app)
    assert answers(app, ["search"] * 2) == [403] * 2, "a rule that fails denies"
    assert guard.decided == 2
