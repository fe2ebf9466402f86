"""Filters that are enforced: what they hide from a caller does not exist for that caller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.in_memory import ENVELOPE, RawConversation

from fastrpc import Context, ListItem, Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

VERSIONS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])


def server(enforced: bool = True) -> tuple[Server, set[str]]:
    """A server with two tools and two prompts, and the names of those that are hidden."""
    app, hidden = Server("shop"), {"order", "greet"}

    @app.tool(run="inline")
    def search(text: str = "") -> str:
        return f"found {text}"

    @app.tool(run="inline")
    def order(count: int) -> str:
        return f"ordered {count}"

    @app.prompt
    def greet(name: str) -> str:
        return f"Greet {name}"

    @app.prompt
    def thank(name: str) -> str:
        return f"Thank {name}"

    def shows(caller: str, item: ListItem) -> bool:
        return caller == "ada" or item.name not in hidden

    app.filter_lists(shows, enforced=enforced)
    return app, hidden


async def answered(peer: RawConversation, id: int, method: str, **params: Any) -> dict[str, Any]:
    if peer.version == STATELESS:
        params["_meta"] = ENVELOPE
    peer.say({"id": id, "method": method, "params": params})
    answer = await asyncio.wait_for(peer.answer(id), 30)
    return {"error": answer["error"]} if "error" in answer else answer["result"]


@VERSIONS
@pytest.mark.parametrize("arguments", [{"count": 1}, {"count": "many"}, {}])
def test_a_hidden_tool_is_answered_as_an_unknown_one_whatever_its_arguments(
    version: str, arguments: dict[str, Any]
) -> None:
    async def talk() -> None:
        peer = RawConversation(server()[0], version)
        for id in range(3):
            hidden = await answered(peer, 2 * id, "tools/call", name="order", arguments=arguments)
            unknown = await answered(peer, 2 * id + 1, "tools/call", name="ordex", arguments=arguments)
            assert hidden["error"]["code"] == unknown["error"]["code"] == -32602
            shown = unknown["error"]["message"].replace("ordex", "order")
            assert hidden["error"]["message"] == shown
        peer.close()

    asyncio.run(talk())


@VERSIONS
@pytest.mark.parametrize("arguments", [{"name": "x"}, {}])
def test_a_hidden_prompt_is_answered_as_an_unknown_one(version: str, arguments: dict[str, Any]) -> None:
    async def talk() -> None:
        peer = RawConversation(server()[0], version)
        for id in range(3):
            hidden = await answered(peer, 3 * id, "prompts/get", name="greet", arguments=arguments)
            unknown = await answered(peer, 3 * id + 1, "prompts/get", name="greex", arguments=arguments)
            assert hidden["error"]["message"].replace("greet", "greex") == unknown["error"]["message"]
            other = await answered(peer, 3 * id + 2, "prompts/get", name="thank", arguments={"name": "x"})
            assert other["messages"][0]["content"]["text"] == "Thank x"
        peer.close()

    asyncio.run(talk())


@VERSIONS
def test_what_a_filter_shows_again_can_be_called_again_and_what_it_hides_cannot(version: str) -> None:
    async def talk() -> None:
        app, hidden = server()
        peer = RawConversation(app, version)
        for id, now_hidden in enumerate([{"order"}, set(), {"order"}, {"search"}]):
            hidden.clear()
            hidden |= now_hidden
            app.lists_changed()
            for each, name in enumerate(("order", "search", "order", "search")):
                result = await answered(
                    peer, 10 * id + each, "tools/call", name=name, arguments={"count": 1, "text": ""}
                )
                assert ("error" in result) == (name in hidden), (id, name)
        peer.close()

    asyncio.run(talk())


@VERSIONS
def test_a_principal_for_whom_a_tool_exists_calls_it_beside_one_for_whom_it_does_not(version: str) -> None:
    async def talk() -> None:
        app, _ = server()
        ada, eve = RawConversation(app, version), RawConversation(app, version)
        ada.dispatcher.principal = "ada"
        eve.dispatcher.principal = "eve"
        for id in range(3):
            allowed = await answered(ada, id, "tools/call", name="order", arguments={"count": id})
            assert allowed["content"][0]["text"] == f"ordered {id}"
            assert "error" in await answered(eve, id, "tools/call", name="order", arguments={"count": id})
        eve.dispatcher.principal = "ada"  # a connection that another caller uses now
        allowed = await answered(eve, 9, "tools/call", name="order", arguments={"count": 9})
        assert allowed["content"][0]["text"] == "ordered 9"
        ada.close()
        eve.close()

    asyncio.run(talk())


def test_calls_that_exist_for_the_caller_never_reach_the_dispatcher() -> None:
    async def talk() -> None:
        peer = RawConversation(server()[0], STATELESS)
        await answered(peer, 0, "tools/call", name="search", arguments={"text": "a"})
        handed_on = peer.handed_on
        for id in range(1, 9):
            result = await answered(peer, id, "tools/call", name="search", arguments={"text": "a"})
            assert result["content"][0]["text"] == "found a"
        assert peer.handed_on == handed_on
        peer.close()

    asyncio.run(talk())


@VERSIONS
def test_without_enforcement_a_hidden_tool_can_be_called(version: str) -> None:
    async def talk() -> None:
        peer = RawConversation(server(enforced=False)[0], version)
        result = await answered(peer, 0, "tools/call", name="order", arguments={"count": 1})
        assert result["content"][0]["text"] == "ordered 1"
        peer.close()

    asyncio.run(talk())


def test_a_filter_that_fails_hides_all_tools() -> None:
    def fails(caller: str, item: ListItem) -> bool:
        raise OSError("the directory is down")

    async def talk() -> None:
        app, _ = server()
        app.filter_lists(fails, enforced=True)
        peer = RawConversation(app, STATELESS)
        result = await answered(peer, 0, "tools/call", name="search", arguments={})
        assert result["error"]["message"].startswith("Unknown tool: search")
        peer.close()

    asyncio.run(talk())


def test_only_the_clients_that_a_change_concerns_are_notified() -> None:
    async def talk() -> None:
        app, _ = server()
        async with Client(app) as ada:
            (dispatcher,) = app.runtime.dispatchers
            dispatcher.principal = "ada"
            async with Client(app) as eve:
                await eve.tools()
                app.lists_changed(lambda principal: principal != "ada")
                while len(eve.notifications) < 2:
                    await asyncio.sleep(0.002)
                app.lists_changed(lambda principal: principal == "ada")
                while len(ada.notifications) < 2:
                    await asyncio.sleep(0.002)
                assert (len(ada.notifications), len(eve.notifications)) == (2, 2)

    asyncio.run(asyncio.wait_for(talk(), 30))


# --- a caller whose class changes, and no one says so -------------------------------------------------------


def classified() -> tuple[Server, dict[str, str]]:
    """A server with secret entries of every kind and way to run, and the class of each caller."""
    app, teams = Server("shop"), {"ada": "staff"}

    @app.tool(run="inline")
    def secret_plain(text: str = "") -> str:
        return f"found {text}"

    @app.tool(run="inline")
    def secret_context(context: Context) -> str:
        return context.principal

    @app.tool
    async def secret_coroutine() -> str:
        return "awaited"

    @app.tool(run="thread")
    def secret_thread() -> str:
        return "from a thread"

    @app.prompt(run="inline")
    def secret_prompt(name: str) -> str:
        return f"Greet {name}"

    @app.resource("docs://secret", run="inline")
    def secret_page() -> str:
        return "the text"

    app.filter_lists(
        lambda team, item: team == "staff" or "secret" not in (item.uri or item.name),
        lambda principal: teams.get(principal, "guest"),
        enforced=True,
    )
    return app, teams


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain tool": ("tools/call", {"name": "secret_plain", "arguments": {"text": "a"}}),
    "misfit": ("tools/call", {"name": "secret_plain", "arguments": {"text": 1}}),
    "context": ("tools/call", {"name": "secret_context", "arguments": {}}),
    "coroutine": ("tools/call", {"name": "secret_coroutine", "arguments": {}}),
    "thread": ("tools/call", {"name": "secret_thread", "arguments": {}}),
    "prompt": ("prompts/get", {"name": "secret_prompt", "arguments": {"name": "x"}}),
    "resource": ("resources/read", {"uri": "docs://secret"}),
}


@VERSIONS
@pytest.mark.parametrize("what", REQUESTS)
def test_what_a_caller_may_not_see_any_more_is_gone_for_the_next_request(version: str, what: str) -> None:
    method, params = REQUESTS[what]

    async def talk() -> None:
        app, teams = classified()
        peer = RawConversation(app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        peer.dispatcher.principal = "ada"
        id = 0
        for round in range(3):
            for team in ("staff", "guest"):
                teams["ada"] = team
                for _ in range(4):
                    id += 1
                    answer = await answered(peer, id, method, **params)
                    assert ("error" in answer) == (team == "guest"), (round, team, answer)
        peer.close()

    asyncio.run(talk())


def test_calls_of_a_caller_whose_class_stays_never_reach_the_dispatcher() -> None:
    async def talk() -> None:
        app, _ = classified()
        peer = RawConversation(app, STATELESS)
        peer.dispatcher.principal = "ada"
        for id in range(9):
            result = await answered(peer, id, "tools/call", name="secret_plain", arguments={"text": "a"})
            assert result["content"][0]["text"] == "found a"
            if id == 1:
                handed_on = peer.handed_on
        assert peer.handed_on == handed_on
        peer.close()

    asyncio.run(talk())
