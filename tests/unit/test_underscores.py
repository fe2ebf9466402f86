"""Tools that are published with underscores for the dots of their names: listed so, called by either name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastrpc import CallInfo, DefinitionError, Server, ToolError
from fastrpc.testing import Client


def saying(text: str) -> Callable[[], str]:
    def say() -> str:
        return text

    return say


def picky(needed: int) -> int:
    return needed


def dotted() -> Server:
    app = Server("dotted")
    for name in ("memory.read", "plain", "taken.name", "taken_name", "a.b_c", "a_b.c"):
        app.add_tool(saying(name), name=name)
    app.add_tool(picky, name="picky.one")
    app.tools.use_underscores()
    return app


def names_in(client: Any) -> list[str]:
    return [tool.name for tool in client.list_tools()]


def test_a_list_has_underscores_but_where_two_tools_would_have_one_name() -> None:
    with Client.sync(dotted()) as client:
        listed = ["memory_read", "plain", "taken.name", "taken_name", "a_b_c", "a_b.c", "picky_one"]
        assert names_in(client) == listed


@pytest.mark.parametrize(
    ("called", "own"),
    [
        ("memory_read", "memory.read"),
        ("memory.read", "memory.read"),
        ("taken.name", "taken.name"),
        ("taken_name", "taken_name"),
        ("a_b_c", "a.b_c"),
        ("a_b.c", "a_b.c"),
    ],
)
def test_a_tool_is_called_by_either_name(called: str, own: str) -> None:
    with Client.sync(dotted()) as client:
        for _ in range(3):
            assert client.call_tool(called).text == own


def test_what_decides_about_a_call_sees_the_tools_own_name() -> None:
    app = dotted()
    seen: list[str] = []

    @app.guard
    def decide(call: CallInfo) -> None:
        seen.append(call.name)
        raise ToolError("no")

    with Client.sync(app) as client:
        assert client.call_tool("memory_read").is_error
    assert seen == ["memory.read"]


@pytest.mark.parametrize("hooked", [False, True])
def test_hooks_and_records_have_the_tools_own_name(hooked: bool) -> None:
    app = dotted()
    seen: list[str] = []
    recorded: list[str] = []
    if hooked:
        app.before(lambda call: seen.append(call.name))
    app.observe(lambda records: recorded.extend(record.name for record in records))
    with Client.sync(app) as client:
        for _ in range(3):
            client.call_tool("memory_read")
        client.call_tool("taken_name", {"unknown": 1})
        client.call_tool("picky_one", {})
    app.drain_observers(at_end=True)
    assert recorded == [*["memory.read"] * 3, "taken_name", "picky.one"]
    assert seen == (recorded if hooked else [])


def test_a_tool_that_is_hidden_is_unknown_by_either_name() -> None:
    app = dotted()
    app.filter_lists(lambda _, item: item.name != "memory.read", enforced=True)
    with Client.sync(app) as client:
        assert "memory_read" not in names_in(client)
        for name in ("memory.read", "memory_read"):
            with pytest.raises(Exception, match="Unknown tool"):
                client.call_tool(name)


def test_tools_that_come_and_go_later_are_published_so_too() -> None:
    app = dotted()
    with Client.sync(app) as client:
        app.add_tool(saying("new"), name="x.y")
        assert "x_y" in names_in(client)
        assert client.call_tool("x_y").text == "new"
        app.remove_tool("x.y")
        assert "x_y" not in names_in(client)
    with pytest.raises(DefinitionError, match="there is a tool of this name already"):
        app.add_tool(saying(""), name="memory_read")
