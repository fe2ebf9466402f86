"""The guard in front of calls: allowlists, rules, rates, risks and approvals, and what a refusal says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.guarded import CALLERS, guarded, policy_of, shop
from support.in_memory import every_version

from fastrpc import Server
from fastrpc.callers import Caller
from fastrpc.errors import RemoteError
from fastrpc.guard.policy import decisions
from fastrpc.guard.policy.decisions import CallTarget
from fastrpc.guard.policy.patterns import Patterns
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.refusals import ApprovalTimedOut
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

EVERYTHING = '[expose]\ntools = ["*"]\nresources = ["*"]\nprompts = ["*"]\n[approvals]\nfrom = "never"\n'


async def outcome(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the text of a call, or the code of the error."""
    try:
        return (await client.call(tool, **arguments)).text
    except RemoteError as error:
        return error.code


def talk(
    app: Server, principal: str, conversation: Any, version: str = LATEST_SESSION_VERSION, **options: Any
) -> Any:
    async def run() -> Any:
        async with Client(app, version=version, **options) as client:
            for dispatcher in app.runtime.dispatchers:
                dispatcher.principal = principal
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


def call(
    app: Server, principal: str, tool: str, version: str = LATEST_SESSION_VERSION, **arguments: Any
) -> Any:
    return talk(app, principal, lambda client: outcome(client, tool, **arguments), version)


def refusal(
    app: Server, principal: str, tool: str, version: str = LATEST_SESSION_VERSION, **arguments: Any
) -> RemoteError:
    async def converse(client: Client) -> RemoteError:
        with pytest.raises(RemoteError) as caught:
            await client.call(tool, **arguments)
        return caught.value

    found: RemoteError = talk(app, principal, converse, version)
    return found


# --- allowlists -------------------------------------------------------------------------------------------


LISTS = """
[expose]
tools = ["search", "order", "wi*"]
resources = ["documents/*"]
[classes.staff]
tools = ["*"]
prompts = ["greet"]
[classes.guest]
tools = ["search"]
[callers.eve]
tools = ["order", "search"]
[approvals]
from = "never"
"""


@every_version
def test_the_smallest_of_all_lists_decides_what_is_listed_and_what_can_be_called(
    tmp_path: Path, version: str
) -> None:
    app, _ = guarded(tmp_path, LISTS)

    async def seen(client: Client) -> tuple[set[str], set[str], set[str]]:
        return (
            {tool["name"] for tool in await client.tools()},
            {resource["uri"] for resource in await client.resources()},
            {prompt["name"] for prompt in await client.prompts()},
        )

    assert talk(app, "ada", seen, version) == (
        {"search", "order", "wipe"},
        {"shop://documents/guide"},
        {"greet"},
    )
    assert talk(app, "eve", seen, version) == ({"search"}, {"shop://documents/guide"}, set())
    assert call(app, "ada", "wipe", version, place="x") == "wiped x"
    assert call(app, "eve", "search", version, text="x") == "found x"
    assert call(app, "eve", "order", version, item="x") == -32602
    assert call(app, "ada", "mystery", version) == -32602


@pytest.mark.parametrize("arguments", [{}, {"place": "x"}, {"place": [1]}])
def test_a_tool_outside_of_the_lists_looks_like_an_unknown_one(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    app, _ = guarded(tmp_path, LISTS)
    hidden = refusal(app, "eve", "wipe", **arguments)
    unknown = refusal(app, "eve", "wipx", **arguments)
    assert (hidden.code, hidden.message) == (unknown.code, unknown.message.replace("wipx", "wipe"))


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32000), (STATELESS, 403)])
def test_a_tool_outside_of_the_lists_is_refused_with_the_code_of_the_wire_where_nothing_is_hidden(
    tmp_path: Path, version: str, code: int
) -> None:
    app, _ = guarded(tmp_path, LISTS + "[defaults]\nhide = false\n")
    error = refusal(app, "eve", "wipe", version, place="x")
    assert (error.code, error.data["reason"]) == (code, "not_allowed")
    assert "not in the allowlist" in error.message


@every_version
def test_a_resource_outside_of_the_lists_is_answered_as_an_unknown_one(tmp_path: Path, version: str) -> None:
    app, _ = guarded(tmp_path, LISTS)
    without, _ = guarded(tmp_path, LISTS, shop(has_secrets=False))

    async def read(client: Client, uri: str) -> Any:
        try:
            return (await client.read(uri)).text
        except RemoteError as error:
            return error.code, error.message

    async def found(client: Client) -> list[Any]:
        uris = ("shop://documents/guide", "shop://secrets/x", "shop://secrets/guide", "shop://nothing/x")
        return [await read(client, uri) for uri in uris]

    answers = talk(app, "ada", found, version)
    assert answers == talk(without, "ada", found, version)
    assert answers[0] == "the guide"
    assert all(message.startswith("Resource not found") for _, message in answers[1:])


def test_without_any_list_nothing_is_allowed(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, "")
    assert talk(app, "ada", lambda client: client.tools()) == []
    assert call(app, "ada", "search", text="x") == -32602


def test_a_caller_of_no_class_may_do_nothing_whatever_is_exposed(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, EVERYTHING, shop())
    for caller_class, is_allowed in (("", False), ("staff", True)):
        caller = Caller("eve#1", caller_class, owner="eve")
        decision = policy.decision(caller, policy.class_key(caller), CallTarget("tool", "search", "read"))
        assert (decision.is_allowed, decision.is_hidden) == (is_allowed, not is_allowed)


def test_a_callers_own_list_is_that_of_its_token_else_of_its_owner_else_of_its_principal(
    tmp_path: Path,
) -> None:
    names = {"t1": "search", "ada": "order", "ada#1": "wipe"}
    own = "".join(f'[callers."{name}"]\ntools = ["{tool}"]\n' for name, tool in names.items())
    policy = policy_of(tmp_path, EVERYTHING + own, shop())
    for facts, allowed in (
        ({"owner": "ada", "token_id": "t1"}, {"search"}),
        ({"owner": "ada", "token_id": "t2"}, {"order"}),
        ({"owner": "eve", "token_id": "t2"}, {"wipe"}),
    ):
        caller = Caller("ada#1", "staff", **facts)
        decisions = {
            name: policy.decision(
                caller, facts["owner"] + facts["token_id"], CallTarget("tool", name, "read")
            )
            for name in ("search", "order", "wipe")
        }
        assert {name for name, decision in decisions.items() if decision.is_allowed} == allowed


# --- rules ------------------------------------------------------------------------------------------------


RULES = (
    EVERYTHING
    + """
[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
reason = "more than 10 need a person's approval"
[[rules]]
id = "guests-look"
when = "caller.class == 'guest' && tool.effect != 'read'"
then = "deny"
[[rules]]
id = "no-wiping-at-all"
when = "tool.name == 'wipe' && caller.class == 'staff'"
then = "deny"
phase = "list"
"""
)


@every_version
def test_a_rule_over_arguments_judges_those_that_are_bound(tmp_path: Path, version: str) -> None:
    app, _ = guarded(tmp_path, RULES)
    assert call(app, "ada", "order", version, item="x", count="10") == "ordered 10 x"
    assert call(app, "ada", "order", version, item="x") == "ordered 1 x"
    error = refusal(app, "ada", "order", version, item="x", count="11")
    assert (error.code, error.data) == (
        403 if version == STATELESS else -32000,
        {"reason": "not_allowed", "rule": "small-orders"},
    )
    assert "more than 10 need a person's approval" in error.message


def test_a_rule_over_caller_and_tool_holds_for_the_callers_of_the_class(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, RULES)
    assert call(app, "eve", "order", item="x") == -32000
    assert call(app, "eve", "search", text="x") == "found x"
    assert call(app, "ada", "order", item="x") == "ordered 1 x"


def test_a_rule_of_the_phase_list_hides(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, RULES)
    names = {tool["name"] for tool in talk(app, "ada", lambda client: client.tools())}
    assert "wipe" not in names
    assert call(app, "ada", "wipe", place="x") == -32602
    assert "wipe" in {tool["name"] for tool in talk(app, "", lambda client: client.tools())}


def test_a_rule_that_fails_denies_and_says_so_to_the_audit(tmp_path: Path) -> None:
    told: list[Any] = []
    text = EVERYTHING + '[[rules]]\ntools = ["order"]\nwhen = "1 / (args.count - 1) > 0"\nthen = "ask"\n'
    app, _ = guarded(tmp_path, text, on_refusal=lambda *facts: told.append(facts))
    assert call(app, "ada", "order", item="x") == -32000
    ((_, caller, verdict, error),) = told
    assert (caller.principal, verdict.rule) == ("ada#1", "rule-1")
    assert "division by zero" in verdict.reason
    assert verdict.reason in error.message


def test_what_one_rule_denies_no_other_allows(tmp_path: Path) -> None:
    both = [
        f'[[rules]]\nid = "{then}"\nwhen = "tool.name == \'search\'"\nthen = "{then}"\n'
        for then in ("allow", "deny")
    ]
    for order in (both, both[::-1]):
        app, _ = guarded(tmp_path, EVERYTHING + "".join(order))
        assert refusal(app, "ada", "search", text="x").data["rule"] == "deny"


def test_of_rules_that_want_the_same_the_first_is_named_and_one_after_them_still_denies(
    tmp_path: Path,
) -> None:
    def rules(*actions: str) -> str:
        return EVERYTHING + "".join(
            f'[[rules]]\nid = "{number}"\nwhen = "tool.name == \'search\'"\nthen = "{action}"\n'
            for number, action in enumerate(actions)
        )

    for actions, named in ((("deny", "deny"), "0"), (("ask", "ask", "deny"), "2")):
        app, _ = guarded(tmp_path, rules(*actions))
        assert refusal(app, "ada", "search", text="x").data["rule"] == named


def test_a_rule_over_arguments_may_read_the_caller_and_is_named_where_one_without_wants_the_same(
    tmp_path: Path,
) -> None:
    text = (
        EVERYTHING
        + """
[[rules]]
id = "staff"
when = "caller.class == 'staff'"
then = "ask"
[[rules]]
id = "many"
tools = ["order"]
when = "args.count > 10 && caller.name.startsWith('ada')"
then = "ask"
"""
    )
    policy = policy_of(tmp_path, text, shop())
    target = CallTarget("tool", "order", "write")
    for owner, count, named in (("ada", 11, "many"), ("ada", 1, "staff"), ("eve", 11, "staff")):
        caller = Caller(f"{owner}#1", "staff")
        decision = policy.decision(caller, policy.class_key(caller), target)
        verdict = policy.judge(decision, caller, target, {"count": count})
        assert (verdict.action, verdict.rule) == ("ask", named)


@pytest.mark.parametrize(
    "text",
    [
        LISTS + "[defaults]\nhide = false\n",
        RULES,
        EVERYTHING + '[[rules]]\ntools = ["wipe"]\nwhen = "true"\nthen = "deny"\n',
        EVERYTHING + '[[rules]]\ntools = ["wipe"]\nwhen = "true"\nthen = "ask"\n',
        EVERYTHING.replace("never", "low")
        + '[[rules]]\ntools = ["wipe"]\nwhen = "args.place == \'y\'"\nrisk = "none"\n',
    ],
)
def test_what_is_refused_once_is_refused_again_by_the_fast_path(tmp_path: Path, text: str) -> None:
    app, _ = guarded(tmp_path, text)

    async def converse(client: Client) -> list[Any]:
        return [await outcome(client, "wipe", place="x") for _ in range(3)]

    first, *others = talk(app, "eve", converse)
    assert first < 0
    assert others == [first, first]


def test_callers_whom_a_rule_tells_apart_by_their_scopes_are_so_under_one_name(tmp_path: Path) -> None:
    policy = policy_of(
        tmp_path, EVERYTHING + "[[rules]]\nwhen = \"'admin' in caller.scopes\"\nthen = 'deny'\n", shop()
    )
    actions = []
    for scopes in ((), ("admin",)):
        caller = Caller("ada#1", "staff", scopes=scopes)
        target = CallTarget("tool", "search", "read")
        actions.append(policy.decision(caller, policy.class_key(caller), target).verdict.action)
    assert actions == ["", "deny"]


def test_a_rule_that_is_wrong_for_a_tool_is_refused_where_the_policy_is_read(tmp_path: Path) -> None:
    text = EVERYTHING + '[[rules]]\ntools = ["ord*"]\nwhen = "args.cuont > 1"\nthen = "deny"\n'
    with pytest.raises(GuardConfigError, match="cuont"):
        policy_of(tmp_path, text, shop())


def test_exact_names_that_no_tool_has_are_known(tmp_path: Path) -> None:
    text = (
        '[expose]\ntools = ["search", "serch", "no*"]\n[risk]\nwipee = "low"\nwipe = "low"\n'
        "[costs]\nordr = { usd = 1 }\n"
        '[[rules]]\ntools = ["late", "order"]\nwhen = "true"\nthen = "deny"\n'
    )
    assert policy_of(tmp_path, text, shop()).unknown_tools() == ["late", "ordr", "serch", "wipee"]


def test_verdicts_say_the_same_whose_action_rule_and_risk_are_the_same() -> None:
    said = decisions.Verdict("ask", "many", "why", "low", "by")
    assert said.says_the_same_as(decisions.Verdict("ask", "many", "because", "low", "another"))
    for action, rule, risk in (("deny", "many", "low"), ("ask", "few", "low"), ("ask", "many", "high")):
        assert not said.says_the_same_as(decisions.Verdict(action, rule, "why", risk, "by"))


# --- rates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32004), (STATELESS, 429)])
def test_more_calls_than_the_rate_are_refused_until_they_may_be_made(
    tmp_path: Path, version: str, code: int
) -> None:
    app, _ = guarded(
        tmp_path, EVERYTHING + '[classes.staff]\nrate = "3/hour"\ntool_rates = { "sea*" = "2/hour" }\n'
    )

    async def converse(client: Client) -> list[Any]:
        calls = [("search", {"text": "x"})] * 3 + [("order", {"item": "x"})] * 2
        return [await outcome(client, tool, **arguments) for tool, arguments in calls]

    assert talk(app, "ada", converse, version) == ["found x", "found x", code, "ordered 1 x", code]
    assert call(app, "eve", "search", version, text="x") == "found x"
    error = refusal(app, "ada", "order", version, item="x")
    assert error.data["reason"] == "rate_limit"
    assert 3400 < error.data["retry_after_seconds"] <= 3780


# --- risks and approvals ----------------------------------------------------------------------------------


ASKING = '[expose]\ntools = ["*"]\n'


@every_version
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_a_risky_call_runs_if_the_person_at_the_client_accepts(
    tmp_path: Path, version: str, action: str
) -> None:
    app, _ = guarded(tmp_path, ASKING)
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        asked.append(request)
        return {"accept": {}, "decline": False, "cancel": None}[action]

    async def converse(client: Client) -> None:
        assert await outcome(client, "search", text="x") == "found x"
        assert asked == []
        found = await outcome(client, "wipe", place="the disk")
        if version < "2025-06-18":  # which has no forms
            assert (found, asked) == (-32001, [])
            return
        assert len(asked) == 1
        assert "the disk" in str(asked[0])
        assert found == ("wiped the disk" if action == "accept" else 403 if version == STATELESS else -32001)
        assert await outcome(client, "mystery") in ("done", -32001, 403)
        assert len(asked) == 2, "a tool of unknown risk is asked about, too"

    talk(app, "ada", converse, version, on_elicit=answer)


def test_a_client_that_cannot_ask_anybody_is_refused(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, ASKING)
    error = refusal(app, "ada", "wipe", place="x")
    assert (error.code, error.data["reason"]) == (-32001, "approval_rejected")


def test_what_is_critical_is_never_approved_through_the_client(tmp_path: Path) -> None:
    app, _ = guarded(tmp_path, ASKING + '[risk]\n"wi*" = "critical"\n')
    asked: list[Any] = []

    async def converse(client: Client) -> None:
        assert await outcome(client, "wipe", place="x") == -32001

    talk(
        app,
        "ada",
        converse,
        on_elicit=lambda request: asked.append(request) or {"action": "accept", "content": {}},
    )
    assert asked == []


def test_no_one_answering_means_no(tmp_path: Path) -> None:
    async def approve(asked: Any) -> dict[str, Any]:
        assert (asked.verdict.risk, asked.config.timeout_seconds) == ("high", 300.0)
        raise ApprovalTimedOut("nobody", asked.version)

    refused: list[str] = []
    options: dict[str, Any] = {
        "approve": approve,
        "on_refusal": lambda call, caller, verdict, error: refused.append(error.reason),
    }
    app, _ = guarded(tmp_path, ASKING, **options)
    for version in (LATEST_SESSION_VERSION, STATELESS):
        result = talk(app, "ada", lambda client: client.call("wipe", place="x"), version)
        assert (result.is_error, result.text) == (True, "nobody")
    assert refused == ["approval_timed_out"] * 2

    with_code, _ = guarded(tmp_path, ASKING + '[approvals]\ntimeout_answer = "error"\n', **options)
    assert call(with_code, "ada", "wipe", place="x") == -32002
    assert call(with_code, "ada", "wipe", STATELESS, place="x") == 408


def test_a_rule_sets_the_risk_of_the_calls_that_it_is_about(tmp_path: Path) -> None:
    text = ASKING + '[[rules]]\ntools = ["wipe"]\nwhen = "args.place.startsWith(\'/tmp/\')"\nrisk = "low"\n'
    app, _ = guarded(tmp_path, text)
    assert call(app, "ada", "wipe", place="/tmp/x") == "wiped /tmp/x"
    assert call(app, "ada", "wipe", place="/etc") == -32001


def test_an_approval_is_asked_for_by_a_rule_and_not_needed_where_one_allows(tmp_path: Path) -> None:
    text = (
        ASKING
        + """
[[rules]]
when = "tool.name == 'search'"
then = "ask"
[[rules]]
when = "tool.name == 'wipe'"
then = "allow"
"""
    )
    app, _ = guarded(tmp_path, text)
    assert call(app, "ada", "search", text="x") == -32001
    assert call(app, "ada", "wipe", place="x") == "wiped x"


# --- another policy ---------------------------------------------------------------------------------------


def test_another_policy_holds_at_once_and_only_those_whose_lists_change_are_notified(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, LISTS)

    async def run() -> None:
        async with Client(app) as ada:
            (dispatcher,) = app.runtime.dispatchers
            dispatcher.principal = "ada"
            assert await outcome(ada, "wipe", place="x") == "wiped x"
            async with Client(app) as eve:
                for each in app.runtime.dispatchers - {dispatcher}:
                    each.principal = "eve"
                assert await outcome(eve, "search", text="x") == "found x"
                guard.use(policy_of(tmp_path, LISTS.replace('tools = ["*"]', 'tools = ["search"]'), app))
                assert await outcome(ada, "wipe", place="x") == -32602
                assert await outcome(eve, "search", text="x") == "found x"
                while len(ada.notifications) < 3:
                    await asyncio.sleep(0.002)
                assert eve.notifications == []

    asyncio.run(asyncio.wait_for(run(), 60))


def test_calls_that_are_allowed_do_not_reach_the_dispatcher(tmp_path: Path) -> None:
    from support.in_memory import RawConversation

    async def run() -> None:
        app, _ = guarded(tmp_path, EVERYTHING + '[defaults]\nrate = "1000/hour"\n')
        peer = RawConversation(app, STATELESS)
        for id in range(5):
            peer.call(id, "search", {"text": "x"})
            assert (await peer.answer(id))["result"]["isError"] is False
        assert peer.handed_on == 0
        peer.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_mounted_servers_and_their_tools_pass_the_guard_by_the_names_that_clients_call(
    tmp_path: Path,
) -> None:
    outer = Server("outer")
    outer.mount(shop(), prefix="shop")
    app, _ = guarded(tmp_path, '[expose]\ntools = ["shop_search"]\n', outer)
    assert call(app, "ada", "shop_search", text="x") == "found x"
    assert call(app, "ada", "shop_order", item="x") == -32602


def test_callers_of_one_class_share_their_lists_and_plans(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, LISTS)
    assert app.runtime.filters.view_of("somebody") is app.runtime.filters.view_of("else")
    assert app.runtime.filters.view_of("somebody") is not app.runtime.filters.view_of("ada")
    guard.use(
        policy_of(tmp_path, LISTS + "[[rules]]\nwhen = \"caller.name == 'else'\"\nthen = 'deny'\n", app)
    )
    assert app.runtime.filters.view_of("somebody") is not app.runtime.filters.view_of("else")


def test_a_rule_that_tells_callers_apart_does_so_for_tools_that_come_later(tmp_path: Path) -> None:
    text = (
        EVERYTHING
        + """
[[rules]]
tools = ["late"]
when = "caller.owner == 'eve#2'"
then = "deny"
"""
    )
    app, guard = guarded(tmp_path, text)
    assert call(app, "somebody", "search", text="x") == "found x"

    @app.tool(run="inline")
    def late() -> str:
        return "late"

    CALLERS["twin"] = Caller("twin#3", "guest")
    try:
        assert {guard.entry(each).caller.caller_class for each in ("twin", "eve")} == {"guest"}
        assert call(app, "twin", "late") == "late"
        assert call(app, "eve", "late") == -32000
    finally:
        del CALLERS["twin"]


def test_a_name_with_brackets_matches_itself_and_globs_without_a_match_are_known() -> None:
    patterns = Patterns(["x[1]", "db_*", "no_*", "exact"])
    assert patterns.match("x[1]")
    assert patterns.match("x1"), "as a glob"
    assert not patterns.match("x[2]")
    assert patterns.unmatched(["db_drop", "x1"]) == ["no_*"]


def test_decisions_are_kept_in_bounds_of_each_class_and_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_KEPT", 5)
    monkeypatch.setattr(decisions, "MOST_KEPT_IN_ALL", 20)
    policy = policy_of(tmp_path, EVERYTHING, shop())
    for number in range(500):
        caller = Caller(f"somebody {number % 7}", "default")
        policy.decision(caller, caller.principal, CallTarget("resource", f"a://{number}", None))
        kept = [len(of_class) for of_class in policy._decisions.values()]
        assert max(kept) <= 5
        assert sum(kept) == policy._kept <= 20
    assert policy._kept > 10
    policy.forget()
    caller = Caller("somebody", "default")
    for number in range(12):
        policy.decision(caller, "one class", CallTarget("resource", f"a://{number}", None))
        assert policy._kept == len(policy._decisions["one class"]) == number % 5 + 1
    policy.forget()
    for length in (decisions.LONGEST_KEPT, decisions.LONGEST_KEPT + 1):
        policy.decision(caller, "one class", CallTarget("resource", "x" * length, None))
    assert policy._kept == 1
