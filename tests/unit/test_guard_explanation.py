"""What an audit record holds of a refusal, and what is explained from it: rules, lists, rates, approvals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, policy_of, shop
from support.in_memory import with_client

from fastrpc import Server
from fastrpc.errors import RemoteError
from fastrpc.guard.audit.records import encoded
from fastrpc.guard.explanation import explained
from fastrpc.guard.reasons import because
from fastrpc.redaction import MASK, hide

OPEN = '[expose]\ntools = ["*"]\n[approvals]\nfrom = "never"\n'
SMALL = """
[[rules]]
id = "small"
tools = ["order"]
when = 'args.count > 10 && args.item != "pen"'
then = "deny"
"""


def refused(
    folder: Path, policy: str, tool: str, calls: int = 1, app: Server | None = None, **arguments: Any
) -> dict[str, Any]:
    """Return the record of the last of some calls that the guard has refused, as the audit log reads it."""
    records: list[dict[str, Any]] = []

    def note(call: Any, caller: Any, verdict: Any, error: Any) -> None:
        facts = {"actor": caller.principal, "class": caller.caller_class, "tool": call.name}
        facts |= {"outcome": "refused", "why": error.reason, "risk": verdict.risk, "policy": "1"}
        facts |= {"because": because(guard.policy, call, caller, verdict, error)}
        records.append(json.loads(b"{" + encoded("audit_1", 0, facts)))

    app, guard = guarded(folder, policy, app, on_refusal=note)

    async def converse(client: Any) -> None:
        for _ in range(calls):
            try:
                await client.call(tool, **arguments)
            except RemoteError:
                pass

    with_client(app, converse)
    return records[-1]


def test_a_rule_is_explained_by_what_it_has_read_and_nothing_else_is_recorded(tmp_path: Path) -> None:
    text = OPEN + SMALL.replace(' && args.item != "pen"', "")
    record = refused(tmp_path, text, "order", item="a private thing", count=11)
    assert "private" not in json.dumps(record)
    found = explained(record)
    assert found["rule"]["saw"] == {"args.count": 11}
    assert found["changes"] == ["args.count <= 10"]


def test_values_are_those_that_were_bound_defaults_among_them(tmp_path: Path) -> None:
    text = OPEN + SMALL.replace("> 10", "== 1")
    found = explained(refused(tmp_path, text, "order", item="ink"))
    assert found["rule"]["saw"] == {"args.count": 1, "args.item": "ink"}
    assert found["changes"] == ["args.count != 1", 'args.item == "pen"']


def test_secrets_are_masked_and_long_values_cut_and_then_no_value_is_tried(tmp_path: Path) -> None:
    hide("a-secret-of-the-operator")
    for item in ("a-secret-of-the-operator", "long" * 1000):
        record = refused(tmp_path, OPEN + SMALL, "order", item=item, count=11)
        shown = json.dumps(record)
        assert "a-secret" not in shown
        assert len(shown) < 1500
        found = explained(record)
        assert found["rule"]["whole"] is False
        assert [way["example"] for way in found["rule"]["ways"]] == [None, None]
        assert found["changes"] == ["args.count <= 10", 'args.item == "pen"']
    app = Server("safe")

    @app.tool(effect="read", run="inline")
    def unlock(password: str, door: str) -> str:
        return "open"

    text = OPEN + SMALL.replace("order", "unlock").replace("args.count > 10", 'args.password != ""')
    text = text.replace("args.item", "args.door")
    found = explained(refused(tmp_path, text, "unlock", app=app, password="xyz", door="front"))
    assert found["rule"]["saw"] == {"args.door": "front", "args.password": MASK}
    assert MASK in json.dumps(refused(tmp_path, OPEN + SMALL, "order", item="token=abcdefgh12", count=11))


def test_the_text_of_a_rule_that_looks_as_if_it_held_a_secret_is_not_recorded(tmp_path: Path) -> None:
    hide("hunter2hunter2")
    text = OPEN + SMALL.replace('"pen"', '"hunter2hunter2"')
    record = refused(tmp_path, text, "order", item="ink", count=11)
    assert "hunter2" not in json.dumps(record)
    found = explained(record)
    assert (found["rule"]["when"], found["rule"]["ways"], found["changes"]) == (None, [], [])
    assert found["rule"]["saw"]["args.count"] == 11
    policy = policy_of(tmp_path, text, shop())
    policy.version = record["policy"]
    found = explained(record, policy)
    assert (found["rule"]["now"], found["changes"][0]) == ("the same", "args.count <= 10")


def test_a_rule_that_fails_says_so(tmp_path: Path) -> None:
    text = OPEN + SMALL.replace("args.count > 10", "10 / args.count > 1")
    found = explained(refused(tmp_path, text, "order", item="ink", count=0))
    assert found["rule"]["atoms"][0] == {"text": "10 / args.count > 1", "value": "error: /: division by zero"}
    assert 'args.item == "pen"' in found["changes"]


def test_a_rule_about_the_caller_alone_is_explained_too(tmp_path: Path) -> None:
    text = OPEN + "[[rules]]\nid = 'locals'\nwhen = 'caller.class == \"local\"'\nthen = 'deny'\n"
    found = explained(refused(tmp_path, text, "search", text="x"))
    assert found["rule"]["saw"] == {"caller.class": "local"}
    assert found["changes"] == ['caller.class != "local"']


def test_whether_the_policy_has_still_the_rule_is_said(tmp_path: Path) -> None:
    record = refused(tmp_path, OPEN + SMALL, "order", item="ink", count=11)
    for text, word in (
        (OPEN + SMALL, "the same"),
        (OPEN + SMALL.replace("10", "20"), "another one"),
        (OPEN, "gone"),
    ):
        found = explained(record, policy_of(tmp_path, text, shop()))
        assert (found["rule"]["now"], found["changes"][0]) == (word, "args.count <= 10")
    assert explained(record)["rule"]["now"] is None


LISTS = """
[defaults]
hide = false
[expose]
tools = ["search", "wi*"]
[classes.local]
tools = ["serch", "wipes"]
"""


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("wipe", [{"list": "classes.local.tools", "nearest": "wipes"}]),
        (
            "order",
            [{"list": "expose.tools", "nearest": None}, {"list": "classes.local.tools", "nearest": None}],
        ),
        ("search", [{"list": "classes.local.tools", "nearest": "serch"}]),
    ],
)
def test_the_lists_that_lack_a_name_are_named_with_what_is_nearest(
    tmp_path: Path, tool: str, expected: list[Any]
) -> None:
    arguments = {"search": {"text": "x"}, "wipe": {"place": "x"}, "order": {"item": "x"}}[tool]
    record = refused(tmp_path, LISTS, tool, **arguments)
    found = explained(record)
    assert found["lists"] == expected
    assert found["changes"] == [f"{each['list']} has {tool}" for each in expected]


def test_a_name_that_was_answered_as_unknown_is_explained_by_the_policy(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, LISTS, shop())
    record = {
        "actor": "os:ada",
        "class": "local",
        "action": "tools/call",
        "tool": "wipe",
        "outcome": "unknown",
    }
    assert explained(record)["changes"] == []
    assert explained(record, policy)["lists"] == [{"list": "classes.local.tools", "nearest": "wipes"}]
    record |= {"action": "prompts/get", "tool": "greet"}
    assert [each["list"] for each in explained(record, policy)["lists"]] == [
        "expose.prompts",
        "classes.local.prompts",
    ]


def test_a_rate_is_named_with_when_to_call_again(tmp_path: Path) -> None:
    text = '[expose]\ntools = ["*"]\nrate = "100/hour"\ntool_rates = { "sea*" = "2/day" }\n'
    found = explained(refused(tmp_path, text, "search", calls=3, text="x"))
    assert found["rate"] == "2/day of search"
    seconds = int(found["changes"][0].split()[3])
    assert found["changes"][0] == f"the call comes {seconds} s later"
    assert 80_000 < seconds < 100_000, "a day, and a slice of the window"
    assert found["changes"][1] == "the rate 2/day of search is higher"
    text = text.replace("100/hour", "1/hour")
    assert explained(refused(tmp_path, text, "search", calls=2, text="x"))["rate"] == "1/hour"


@pytest.mark.parametrize(
    ("more", "by"),
    [
        ("", "the effect exec"),
        ('[risk]\n"wi*" = "high"\n', "risk.wi*"),
        (
            '[risk]\n"wi*" = "low"\n[[rules]]\ntools = ["wipe"]\nwhen = "true"\nrisk = "high"\n',
            "the rule rule-1",
        ),
    ],
)
def test_an_approval_is_explained_by_what_asks_for_it(tmp_path: Path, more: str, by: str) -> None:
    found = explained(refused(tmp_path, '[expose]\ntools = ["*"]\n' + more, "wipe", place="x"))
    assert found["asks"] == {"from": "high", "risk": "high", "by": by}
    assert found["changes"][0] == "a person approves the call in time"
    assert found["changes"][1] == f"{by} makes it less than high, or approvals.from is higher"


def test_an_approval_that_a_rule_asks_for_is_explained_by_the_rule(tmp_path: Path) -> None:
    text = OPEN + SMALL.replace('"deny"', '"ask"')
    found = explained(refused(tmp_path, text, "order", item="ink", count=11))
    assert (found["rule"]["then"], found["changes"][0]) == ("ask", "args.count <= 10")
    assert found["changes"][-1] == "a person approves the call in time"


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        {"rule": {}},
        {"rule": {"when": "args.", "states": [True]}},
        {"rule": {"when": "args.a", "states": [True, True]}},
        {"rule": {"when": "args.a", "states": [True], "values": {}, "whole": True}},
        {"rate": {}},
        {"asks": {}},
    ],
)
def test_a_record_that_is_damaged_is_explained_as_far_as_it_goes(damaged: Any) -> None:
    found = explained({"id": "audit_1", "outcome": "refused", "because": damaged})
    assert found["id"] == "audit_1"
