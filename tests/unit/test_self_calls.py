"""Calls that a server makes of itself for a principal: guards and tools see them as that one's."""

from __future__ import annotations

import asyncio

import pytest

from fastrpc import CallInfo, Context, Server, ToolError
from fastrpc.callers import current_user
from fastrpc.self_calls import caller_of, client_for, gates_of, tools_of


def server_with_a_guard() -> Server:
    app = Server("app")

    @app.tool
    def who(ctx: Context) -> str:
        return ctx.principal

    @app.before
    def only_ada(call: CallInfo) -> None:
        if call.principal != "ada":
            raise ToolError(f"not for {call.principal or 'nobody'}")

    return app


@pytest.mark.parametrize(
    ("principal", "answer"), [("ada", "ada"), ("bob", "not for bob"), ("", "not for nobody")]
)
def test_a_call_of_the_server_itself_is_the_principals(principal: str, answer: str) -> None:
    app = server_with_a_guard()

    async def main() -> str:
        async with client_for(app, principal) as client:
            return (await client.call_tool("who")).text

    assert asyncio.run(main()) == answer


def test_of_a_mounted_server_the_one_it_is_mounted_in_is_called() -> None:
    host, inner = server_with_a_guard(), Server("inner")

    @inner.tool
    def look() -> str:
        return "seen"

    host.mount(inner, "in")

    async def main(principal: str) -> str:
        async with client_for(inner, principal) as client:
            return (await client.call_tool("in_look")).text

    assert asyncio.run(main("ada")) == "seen"
    assert asyncio.run(main("bob")) == "not for bob"


def test_tools_that_no_list_shows_are_there_for_who_may_call_them() -> None:
    app = server_with_a_guard()
    app.filter_lists(lambda principal, item: False)
    assert list(tools_of(app, "bob")) == ["who"]
    app.filter_lists(lambda principal, item: principal == "ada", enforced=True)
    assert (list(tools_of(app, "ada")), list(tools_of(app, "bob"))) == (["who"], [])


def test_without_a_guard_no_one_can_be_asked() -> None:
    assert gates_of(server_with_a_guard()) is None


def test_without_a_guard_a_principal_is_its_own_owner() -> None:
    assert caller_of(Server("app"), "ada").owner == "ada"
    assert caller_of(Server("app"), "").principal == current_user()
