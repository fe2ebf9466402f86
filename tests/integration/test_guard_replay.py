"""`fastrpc guard replay`: recorded calls against another policy, for a person and for a CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.call_records import call_record
from support.guarded_folder import fastrpc, records, variables
from support.http_server import FASTRPC

from fastrpc import Client
from fastrpc.errors import ClientError
from fastrpc.guard.audit.log import AuditLog

TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def search(text: str) -> str:
    return text

@app.tool(effect="write")
def order(item: str, count: int = 1) -> str:
    return item * count
"""
GUARD = """
[expose]
tools = ["*"]

[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
"""
STRICTER = (
    GUARD
    + """
[[rules]]
id = "no-agents"
tools = ["search"]
when = "caller.class == 'agent'"
then = "deny"

[risk]
order = "high"
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD)
    (tmp_path / "stricter.toml").write_text(STRICTER)
    return tmp_path


def called(tool: str, caller: str = "ada#1", of_class: str = "agent", **others: Any) -> dict[str, Any]:
    """Return the record of a call."""
    return call_record(tool, **{"actor": caller, "class": of_class, "policy": "before", **others})


def write(folder: Path, *found: dict[str, Any]) -> None:
    """Write records into the log that the guard's file names."""
    log = AuditLog(str(folder / "state" / "audit"))
    for each in found:
        log.append(each)
    log.close()


def replayed(folder: Path, *words: str, code: int = 1) -> Any:
    said = fastrpc(folder, "guard", "replay", *words, "--json", code=code)
    return json.loads(said)


def test_real_calls_are_decided_once_more_and_the_exit_code_says_whether_something_changes(
    folder: Path,
) -> None:
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(folder), env=variables(folder)) as client:
        assert client.call_tool("search", {"text": "x"}).text == "x"
        assert client.call_tool("order", {"item": "y", "count": 2}).text == "yy"
        with pytest.raises(ClientError):
            client.call_tool("order", {"item": "y", "count": 11})
    same = replayed(folder, "guard.toml", "--target", "shop.py:app", code=0)
    assert (same["calls"], same["changes"]) == (3, [])
    assert sorted((each["was"], each["would"], each["calls"]) for each in same["met"]) == [
        ("allowed", "allowed", 2),
        ("refused", "refused", 1),
    ]
    (folder / "closed.toml").write_text(GUARD.replace('["*"]', '["search"]'))
    changed = replayed(folder, "closed.toml", "--former", "guard.toml", "--target", "shop.py:app")
    (change,) = changed["changes"]
    order = next(each for each in records(folder) if each.get("tool") == "order" and each["outcome"] == "ok")
    assert {name: change[name] for name in ("calls", "name", "was", "would", "by", "record")} == {
        "calls": 1,
        "name": "order",
        "was": "allowed",
        "would": "refused",
        "by": "expose.tools",
        "record": order["id"],
    }


def test_what_changes_is_counted_by_tool_caller_and_rule(folder: Path) -> None:
    write(
        folder,
        *[called("search")] * 3,
        called("search", "bob#2", "staff"),
        *[called("order", "bob#2", "staff", risk="high")] * 2,
    )
    found = replayed(folder, "stricter.toml", "--target", "shop.py:app")
    assert found["calls"] == 6
    assert found["by_tool"] == {"search": {"refused": 3}, "order": {"depends": 2}}
    assert found["by_caller"] == {"ada#1 (agent)": {"refused": 3}, "bob#2 (staff)": {"depends": 2}}
    assert found["by_rule"] == {"rules.no-agents": {"refused": 3}, "rules.small-orders": {"depends": 2}}
    said = fastrpc(folder, "guard", "replay", "stricter.toml", code=1)
    assert "6 calls, by the policy" in said
    assert " 3  search  ada#1 (agent)  allowed  refused     rules.no-agents" in said
    assert "depends: on the arguments, of which the log has only hashes" in said
    assert "Without --target the recorded risks of tools are used." in said


def test_what_only_depends_on_arguments_is_no_change_to_a_ci_and_none_if_the_former_policy_decided_alike(
    folder: Path,
) -> None:
    version = json.loads(fastrpc(folder, "guard", "check", "guard.toml", "shop.py:app", "--json"))["policy"]
    write(folder, called("order", policy=version), called("order", policy="older"))
    (folder / "more.toml").write_text(GUARD + '[risk]\nsearch = "high"\n')
    found = replayed(folder, "more.toml", "--former", "guard.toml", code=0)
    (change,) = found["changes"]
    assert (change["would"], change["calls"]) == ("depends", 1)  # the one that another policy had decided


def test_an_exported_file_and_a_period_can_be_replayed(folder: Path) -> None:
    write(folder, called("search"), called("search"))
    fastrpc(folder, "audit", "export", "--output", "calls.jsonl")
    with (folder / "calls.jsonl").open("a") as file:
        file.write("not a record\n[1]\n")
    assert replayed(folder, "stricter.toml", "calls.jsonl")["calls"] == 2
    assert replayed(folder, "stricter.toml", str(folder / "state" / "audit"), "--since", "1h")["calls"] == 2
    said = fastrpc(folder, "guard", "replay", "stricter.toml", "--until", "2020-01-01", code=2)
    assert "guard replay: the recording has no such calls" in said


def test_scopes_are_those_of_the_callers_newest_token(folder: Path) -> None:
    made = ("token", "create", "--owner", "ada", "--scope", "buy")
    fastrpc(folder, *made)
    token = json.loads(fastrpc(folder, "token", "list", "--json"))[0]
    (folder / "scoped.toml").write_text(
        GUARD + '[[rules]]\nid = "buyers"\nwhen = "!(\'buy\' in caller.scopes)"\nthen = "deny"\n'
    )
    caller = f"ada#{token['id']}"
    write(folder, called("search", caller), called("search", "eve#0"))
    (change,) = replayed(folder, "scoped.toml")["changes"]
    assert (change["caller"], change["by"]) == ("eve#0", "rules.buyers")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("guard.toml", "missing"), "there is no recording missing"),
        (("guard.toml", "a", "b"), "at most one recording"),
        (("guard.toml", "--since", "often"), "--since: expected RFC 3339"),
        (("guard.toml", "shop.py"), "the recording has no such calls"),
        (("missing.toml",), "missing.toml"),
        (("guard.toml", "--as", "agent"), "--as is not an option of this action"),
        ((), "FILE is missing"),
    ],
)
def test_a_mistake_is_an_error_of_its_own_not_a_change(
    folder: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in fastrpc(folder, "guard", "replay", *words, code=2)


def test_names_that_callers_have_chosen_are_printed_without_control_characters(folder: Path) -> None:
    write(folder, called("search", "\x1b[2J\u202eada"))
    said = fastrpc(folder, "guard", "replay", "stricter.toml", code=1)
    assert "rules.no-agents" in said
    assert "\x1b" not in said
    assert "\u202e" not in said
