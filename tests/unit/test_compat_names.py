"""Every public name of the released originals works on fastrpc, or is known to be missing, with what to
write instead. When a list in tests/fixtures/compat/names is made anew from a new release, this shows what is
new."""

from __future__ import annotations

import inspect

import pytest
from support.compat_table import DOCUMENT, Names, all_names, classed, parts, table

from fastrpc.compat import composition, fastmcp, mcp, options, server
from fastrpc.compat.swap.missing_names import BY_MODULE, BY_NAME, MEMBERS, OPTIONS
from fastrpc.server import Server

ORIGINALS = all_names()
each_original = pytest.mark.parametrize("names", ORIGINALS, ids=lambda names: str(names.title))


@each_original
def test_every_name_works_or_has_an_alternative(names: Names) -> None:
    found = list(classed(names))
    assert len(found) > 80
    assert [f"{module}.{name}" for module, name, answer in found if answer.missing == ""] == []


@each_original
def test_a_name_that_is_served_is_there(names: Names) -> None:
    homes = {home.__name__: home for home in (fastmcp, mcp)}
    for _, name, answer in classed(names):
        if answer.missing is None and answer.module in homes and answer.member:
            assert hasattr(homes[answer.module], name)


@each_original
def test_every_member_of_a_server_works_or_has_an_alternative(names: Names) -> None:
    for place, members in names.members.items():
        name = place.partition(":")[2]
        if name not in ("FastMCP", "MCPServer"):
            continue
        made = getattr(fastmcp if names.package == "fastmcp" else mcp, name)("x")
        known = {*server._ALTERNATIVES, *MEMBERS}
        there = {*dir(type(made)), *vars(made)}
        lacking = [each for each in members if each not in known and each not in there]
        assert lacking == [], place


SERVER = {*inspect.signature(Server.__init__).parameters, "name", "instructions"}
COMPONENT = {"fn", "name", "name_or_fn", "tool", "uri", *server._TOOL_OPTIONS}
ACCEPTED = {
    "__init__": SERVER | {*options.FastMCPOptions.__annotations__, *options.MCPServerOptions.__annotations__},
    "tool": COMPONENT | {*options.ToolOptions.__annotations__},
    "add_tool": COMPONENT | {*options.ToolOptions.__annotations__},
    "resource": COMPONENT | {*options.ResourceOptions.__annotations__},
    "prompt": COMPONENT | {*options.PromptOptions.__annotations__},
}
"""The options of a server and of what it declares, by the call that takes them."""


@each_original
def test_every_option_of_a_server_works_or_has_an_alternative(names: Names) -> None:
    known = {*server._SERVER_OPTIONS, *server._IGNORED, *OPTIONS}
    for place, listed in names.options.items():
        owner, _, call = place.partition(":")[2].partition(".")
        if owner in ("FastMCP", "MCPServer") and call in ACCEPTED:
            accepted = ACCEPTED[call] | (known if call == "__init__" else set())
            assert [option for option in listed if option not in accepted] == [], place


def test_the_document_lists_every_option_without_effect() -> None:
    with open(DOCUMENT, encoding="utf-8") as file:
        listed = file.read().partition("### Options without effect")[2].partition("\n## ")[0]
    options = {*server._IGNORED, *composition.IGNORED, "task", "show_banner"}
    assert [option for option in sorted(options) if f"`{option}`" not in listed] == []


def test_options_that_work_are_not_listed_as_missing() -> None:
    working = ACCEPTED["__init__"] | server._IGNORED
    assert sorted(working & OPTIONS.keys()) == [], "delete them from fastrpc/compat/swap/missing_names.py"


def test_what_works_is_not_listed_as_missing() -> None:
    offered = {*fastmcp.__all__} & {*mcp.__all__}
    listed = {name for names in ORIGINALS for _, name, answer in classed(names) if answer.missing is not None}
    assert sorted(offered & BY_NAME.keys()) == [], "delete them from fastrpc/compat/swap/missing_names.py"
    assert sorted(BY_NAME.keys() - listed) == [], "no original has them, or all that has them is offered"


def test_every_reason_is_for_a_module_of_an_original() -> None:
    known = {module for names in ORIGINALS for module in names.modules}
    for place in BY_MODULE:
        assert any(module == place or module.startswith(f"{place}.") for module in known), place


def test_the_document_has_the_table() -> None:
    assert parts()[1] == table(), "make it anew: .venv/bin/python tests/support/compat_table.py"
