"""Every public name of the released originals works on fastrpc, or is known to be missing, with what to
write instead. When a list in tests/fixtures/compat/names is made anew from a new release, this shows what is
new."""

from __future__ import annotations

import asyncio
import inspect
import re

import pytest
from support.compat_table import DOCUMENT, Names, all_names, classed, parts, table

from fastrpc import options as own_options
from fastrpc.compat import fastmcp, mcp, server
from fastrpc.compat.components.objects import TextResource
from fastrpc.compat.components.visibility import CRITERIA
from fastrpc.compat.errors import NotOffered
from fastrpc.compat.highlevel import catalogue, mounting, options
from fastrpc.compat.http.options import RUN_OPTIONS
from fastrpc.server import Server
from fastrpc.swap.missing_names import BY_MODULE, BY_NAME, MEMBERS, OPTIONS

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


@each_original
def test_every_member_of_a_client_works_or_is_refused_in_words(names: Names) -> None:
    made = fastmcp.Client(fastmcp.FastMCP("x"))
    for member in names.members.get("fastmcp:Client", ()):
        if member not in {*dir(type(made)), *vars(made)}:
            with pytest.raises(NotOffered, match=f"Client has no {member}; "):
                getattr(made, member)


SERVER = {*inspect.signature(Server.__init__).parameters, "name", "instructions"}
COMPONENT = {"fn", "name", "name_or_fn", "tool", "uri", *server._TOOL_OPTIONS}
ACCEPTED = {
    "__init__": SERVER | {*options.FastMCPOptions.__annotations__, *options.MCPServerOptions.__annotations__},
    "tool": COMPONENT | {*options.CompatToolOptions.__annotations__},
    "add_tool": COMPONENT | {*options.CompatToolOptions.__annotations__},
    "resource": COMPONENT | {*options.CompatResourceOptions.__annotations__},
    "prompt": COMPONENT | {*options.CompatPromptOptions.__annotations__},
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


INNER = (
    *("call_tool", "get_prompt", "list_prompts", "list_resource_templates", "list_resources", "list_tools"),
    *("read_resource", "render_prompt"),
)
OWN_CHECKS: dict[str, set[str]] = {
    **{call: {*catalogue.INNER_OPTIONS} for call in INNER},
    "enable": {*CRITERIA},
    "disable": {*CRITERIA},
    "enable_components": {*CRITERIA, "match_all"},
    "disable_components": {*CRITERIA, "match_all"},
    "run_stdio_async": {*RUN_OPTIONS},
    "from_openapi": {"validate_output", "timeout"},
    "from_fastapi": {*inspect.signature(fastmcp.FastMCP.from_openapi).parameters},
}
"""The options that methods with ``**options`` look at themselves, by name."""
BY_POSITION = {
    "get_prompt": {"key"},
    "get_resource": {"key"},
    "get_resource_template": {"key"},
    "get_tool": {"key"},
    "remove_tool_transformation": {"_tool_name"},
}
"""Parameters that have another name here: programs give them by position."""
NOT_MADE = ("Context.__init__",)
"""What no program makes by itself."""


def options_taken(cls: type, call: str) -> set[str]:
    """Return the names of the options that a method takes: its parameters, and those of its typed options."""
    taken = ACCEPTED.get(call, set()) | OWN_CHECKS.get(call, set()) | BY_POSITION.get(call, set())
    if call == "__init__" and cls is not fastmcp.Client:
        taken |= {*server._SERVER_OPTIONS, *server._IGNORED, *OPTIONS}
    for parameter in inspect.signature(getattr(cls, call)).parameters.values():
        taken.add(parameter.name)
        typed = re.fullmatch(r"Unpack\[(?:own\.)?(\w+)\]", str(parameter.annotation))
        if typed:
            taken |= {*getattr(options, typed[1], own_options.__dict__.get(typed[1])).__annotations__}
    return taken


@each_original
def test_every_option_of_every_method_is_taken_by_name(names: Names) -> None:
    home = fastmcp if names.package == "fastmcp" else mcp
    unknown, seen = [], 0
    for place, listed in names.options.items():
        owner, _, call = place.partition(":")[2].partition(".")
        cls = getattr(home, owner)
        if owner not in ("FastMCP", "MCPServer", "Context") and cls is not fastmcp.Client:
            continue
        if f"{owner}.{call}" in NOT_MADE or not hasattr(cls, call):
            continue  # a missing method is known by its name
        taken = options_taken(cls, call)
        seen += len(listed)
        unknown += [f"{owner}.{call}: {option}" for option in listed if option not in (*taken, "cls")]
    assert unknown == []
    assert seen > 80


def test_the_document_lists_every_option_without_effect() -> None:
    with open(DOCUMENT, encoding="utf-8") as file:
        listed = file.read().partition("### Options without effect")[2].partition("\n## ")[0]
    options = {*server._IGNORED, *mounting.IGNORED, "task", "show_banner"}
    assert [option for option in sorted(options) if f"`{option}`" not in listed] == []


def test_options_that_work_are_not_listed_as_missing() -> None:
    working = ACCEPTED["__init__"] | server._IGNORED
    assert sorted(working & OPTIONS.keys()) == [], "delete them from fastrpc/swap/missing_names.py"


def test_what_works_is_not_listed_as_missing() -> None:
    offered = {*fastmcp.__all__} & {*mcp.__all__}
    listed = {name for names in ORIGINALS for _, name, answer in classed(names) if answer.missing is not None}
    assert sorted(offered & BY_NAME.keys()) == [], "delete them from fastrpc/swap/missing_names.py"
    assert sorted(BY_NAME.keys() - listed) == [], "no original has them, or all that has them is offered"


def test_every_reason_is_for_a_module_of_an_original() -> None:
    known = {module for names in ORIGINALS for module in names.modules}
    for place in BY_MODULE:
        assert any(module == place or module.startswith(f"{place}.") for module in known), place


def test_the_document_has_the_table() -> None:
    assert parts()[1] == table(), "make it anew: .venv/bin/python tests/support/compat_table.py"


def test_options_of_calls_within_a_server_are_refused_by_name_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = fastmcp.FastMCP("x")
    made.add_tool(fn=lambda: 1, name="one")

    async def calls() -> None:
        assert (await made.call_tool("one", run_middleware=False, version=None)).structured_content is None
        with pytest.raises(NotOffered, match="call_tool has no version"):
            await made.call_tool("one", version="2")
        with pytest.raises(TypeError, match=r"list_tools: there is no option run_midleware .*run_middleware"):
            await made.list_tools(run_midleware=False)
        with pytest.raises(NotOffered, match="read_resource has no task_meta"):
            await made.read_resource("a://b", task_meta={})

    asyncio.run(calls())
    assert "call_tool: run_middleware=False has no effect" in caplog.text
    with pytest.raises(NotOffered, match="remove_tool has no version"):
        made.remove_tool("one", version="1")
    assert isinstance(mcp.MCPServer("x").add_resource(resource=TextResource(uri="a://b", text="")), object)
