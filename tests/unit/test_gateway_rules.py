"""The names of tools behind a gateway, and which of them allow and deny let through."""

from __future__ import annotations

from typing import Literal
from unicodedata import normalize

import pytest

from fastrpc.definitions.tool import Tool
from fastrpc.errors import InvalidConfig
from fastrpc.gateway.names import LONGEST, is_listable, listed_name, prefix_of
from fastrpc.gateway.rules import Rules, patterns_of

# --- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "style", "listed"),
    [
        ("shop", "prefix", "shop_price"),
        ("shop", "mcp", "mcp__shop__price"),
        ("my shop/2.0 é", "prefix", "my_shop_2_0___price"),
        ("", "prefix", "_price"),
    ],
)
def test_a_name_is_the_servers_and_the_tools(server: str, style: str, listed: str) -> None:
    assert listed_name(prefix_of(server, style), "price") == listed
    Tool.of(lambda: 1, {"name": listed})  # a name that MCP allows


def test_long_names_are_shortened_and_stay_different() -> None:
    prefix = prefix_of("shop", "prefix")
    names = [listed_name(prefix, "x" * 80 + end) for end in ("1", "2")]
    assert [len(name) for name in names] == [LONGEST, LONGEST]
    assert len({*names}) == 2
    assert all(name.startswith("shop_xxx") for name in names)
    assert listed_name(prefix, "x" * 80 + "1") == names[0]
    prefixes = {prefix_of("s" * 100 + end, "prefix") for end in ("1", "2")}
    assert len(prefixes) == 2
    assert all(len(found) <= LONGEST // 2 + 1 for found in prefixes)


def test_a_shortened_name_is_not_shortened_again() -> None:
    assert is_listable("x" * 80)
    assert not is_listable(listed_name("shop_", "x" * 80))


# --- rules --------------------------------------------------------------------------------------------


def read(text: str, *servers: str, both: bool = False) -> list[tuple[str, str]]:
    return [(each.server, each.glob) for each in patterns_of(text, servers, both=both)]


def test_the_form_of_scorpiox_is_read() -> None:
    assert read("devkit:mail_*,git_*;fs:*", "devkit", "fs") == [
        ("devkit", "mail_*"),
        ("devkit", "git_*"),
        ("fs", "*"),
    ]
    assert read(" *delete* , get_* ;; : x ;") == [("", "*delete*"), ("", "get_*"), ("", "x")]
    assert read("") == []


@pytest.mark.parametrize(
    ("text", "servers", "patterns"),
    [
        ("db:drop", ["shop"], [("", "db:drop")]),
        ("db:drop", ["db"], [("db", "drop")]),
        ("shop:db:drop", ["shop"], [("shop", "db:drop")]),
        ("shop:db:drop", ["shop", "shop:db"], [("shop:db", "drop")]),
        ("*:db:drop", ["shop"], [("*", "db:drop")]),
        ("shop:get_*,db:drop", ["shop", "db"], [("shop", "get_*"), ("db", "drop")]),
        ("shop:get_*,db:drop", ["shop"], [("shop", "get_*"), ("shop", "db:drop")]),
        ("sh?p:db:*", ["shop"], [("sh?p", "db:*")]),
        ("shop:*;db:drop", ["shop"], [("shop", "*"), ("", "db:drop")]),
    ],
)
def test_what_comes_before_a_colon_is_a_server_where_there_is_one(
    text: str, servers: list[str], patterns: list[tuple[str, str]]
) -> None:
    assert read(text, *servers) == patterns


def test_what_can_be_read_in_several_ways_is_denied_in_each_and_allowed_in_one() -> None:
    tools = [("db", "drop"), ("shop", "db:drop"), ("shop", "drop")]

    def shown(rules: Rules) -> list[tuple[str, str]]:
        rules.know(["db", "shop"])
        return [(server, tool) for server, tool in tools if rules.shows(server, tool, f"{server}_{tool}")]

    assert shown(Rules([], ["db:drop"])) == [("shop", "drop")]
    assert shown(Rules(["db:drop"])) == [("db", "drop")]
    assert shown(Rules([], ["shop:db:drop"])) == [("db", "drop"), ("shop", "drop")]


def test_a_misspelt_server_allows_nothing_and_what_is_denied_with_it_is_denied_everywhere() -> None:
    def shown(rules: Rules) -> list[str]:
        rules.know(["files", "shop"])
        tools = [("files", "read"), ("files", "list"), ("shop", "list"), ("shop", "db:list")]
        return [f"{of}.{tool}" for of, tool in tools if rules.shows(of, tool, f"{of}_{tool}")]

    rules = Rules(["fiels:read,list"])
    assert shown(rules) == []
    assert rules.unused() == ["fiels:read", "fiels:list"]
    assert rules.hint("fiels:list") == "; there is no server fiels (did you mean files?)"
    assert rules.hint("files:lisd") == rules.hint("list") == rules.hint("f*:lisd") == ""
    assert shown(Rules(["files:read,list"])) == ["files.read", "files.list"]
    assert shown(Rules(["fiels:read,:list"])) == ["files.list", "shop.list"]
    assert shown(Rules(["db:drop,list"])) == ["shop.db:list"]
    assert shown(Rules([], ["fiels:read,list"])) == ["files.read", "shop.db:list"]
    assert shown(Rules([], ["db:drop,list"])) == ["files.read"]


@pytest.mark.parametrize("name", ["a*", "?b", "*", "x[1]"])
def test_a_server_whose_name_looks_like_a_glob_is_allowed_alone_and_denied_with_all_that_match(
    name: str,
) -> None:
    def shown(rules: Rules) -> list[str]:
        rules.know([name, "ab"])
        return [server for server in (name, "ab") if rules.shows(server, "get", f"{server}_get")]

    assert shown(Rules([f"{name}:get"])) == [name]
    assert shown(Rules([], [f"{name}:get"])) == (["ab"] if name == "x[1]" else [])
    rules = Rules([f"{name}:get"])
    rules.know([name, "ab"])
    assert [rules.uses(server, f"{server}_") for server in (name, "ab")] == [True, False]


@pytest.mark.parametrize("written", ["NFC", "NFD"])
@pytest.mark.parametrize("given", ["NFC", "NFD"])
def test_normal_forms_of_unicode_do_not_differ(
    written: Literal["NFC", "NFD"], given: Literal["NFC", "NFD"]
) -> None:
    server, tool = normalize(given, "café"), normalize(given, "löschen")
    for text in ("café:löschen", "löschen", "c?fé:*", "café:l?schen"):
        text = normalize(written, text)
        rules = Rules([], [text])
        rules.know([server])
        assert not rules.shows(server, tool, f"caf_{tool}")
        rules = Rules([text])
        rules.know([server])
        assert rules.shows(server, tool, f"caf_{tool}")
        assert not rules.shows("other", "x", "other_x")
        assert rules.unused() == []


@pytest.mark.parametrize("name", ["x[1]", "x[!a]", "[", "a]b", "x[1", "*", "?"])
def test_in_globs_only_two_characters_are_special(name: str) -> None:
    rules = Rules([], [f"srv:{name}"])
    assert not rules.shows("srv", name, f"srv_{name}")
    if name not in "*?":
        assert rules.shows("srv", "x1", "srv_x1")
        assert not Rules([f"srv:{name}"]).shows("srv", "x1", "srv_x1")


def test_what_has_matched_nothing_is_known() -> None:
    rules = Rules(["shop:get_*;nobody:*"], ["db:drop", "shop:*delete*,get_x"])
    rules.know(["shop"])
    assert rules.shows("shop", "get_a", "shop_get_a")
    assert not rules.shows("shop", "delete_all", "shop_delete_all")
    assert rules.unused() == ["nobody:*", "db:drop", "shop:get_x"]
    rules.know(["shop", "db"])  # what was used stays used
    assert not rules.shows("db", "drop", "db_drop")
    assert rules.unused() == ["nobody:*", "shop:get_x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("srv:", "'srv:' names no tool"),
        ("shop:get_*; srv: ,fs:*", "'srv:' names no tool"),
        (":", "':' names no tool"),
        (" ; ,", "expected globs of tools, got ' ; ,'"),
    ],
)
def test_a_text_that_names_no_tool_is_refused_for_it_would_allow_everything(text: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^allow: {words}"):
        Rules([text])
    with pytest.raises(InvalidConfig, match=f"^deny: {words}"):
        Rules([], [text])
    assert Rules([" "]).shows("srv", "x1", "srv_x1")


@pytest.mark.parametrize(
    ("allow", "deny", "shown"),
    [
        ("", "", ["devkit.mail_send", "devkit.shutdown", "fs.read", "fs.delete"]),
        ("devkit:mail_*;fs:*", "", ["devkit.mail_send", "fs.read", "fs.delete"]),
        ("devkit:*", "devkit:*shutdown*,*delete*", ["devkit.mail_send"]),
        ("", "delete", ["devkit.mail_send", "devkit.shutdown", "fs.read"]),
        ("fs_*", "fs_delete", ["fs.read"]),
        ("mcp__fs__*", "", ["fs.read", "fs.delete"]),
        ("*:*e*", "f?:read", ["devkit.mail_send", "fs.delete"]),
        ("fs:*", "fs:*", []),
        ("FS:*", "", []),
    ],
)
def test_what_is_denied_is_not_shown_and_what_is_allowed_is(allow: str, deny: str, shown: list[str]) -> None:
    rules = Rules([allow], [deny])
    tools = [("devkit", "mail_send"), ("devkit", "shutdown"), ("fs", "read"), ("fs", "delete")]
    found = [f"{server}.{tool}" for server, tool in tools if rules.shows(server, tool, f"{server}_{tool}")]
    assert found == shown


@pytest.mark.parametrize(
    ("allow", "deny", "used"),
    [
        ("", "", ["devkit", "fs"]),
        ("fs:read", "", ["fs"]),
        ("fs:read;get_*", "", ["devkit", "fs"]),
        ("", "fs:*", ["devkit"]),
        ("", "fs_*", ["devkit"]),
        ("", "mcp__fs__*", ["devkit"]),
        ("", "*", []),
        ("", "fs:r*", ["devkit", "fs"]),
    ],
)
def test_a_server_without_a_tool_to_show_is_not_used(allow: str, deny: str, used: list[str]) -> None:
    rules = Rules([allow], [deny])
    rules.know(("devkit", "fs"))
    assert [name for name in ("devkit", "fs") if rules.uses(name, f"{name}_")] == used


def test_a_glob_that_matches_nothing_is_named_with_the_server_of_its_group() -> None:
    rules = Rules([], ["db:list,drop;shop:get,drop"])
    rules.know(["shop", "db"])
    for server, tool in (("shop", "get"), ("shop", "drop"), ("db", "list")):
        assert not rules.shows(server, tool, f"{server}_{tool}")
    assert rules.unused() == ["db:drop"]
