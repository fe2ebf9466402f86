"""What the guard hides is answered as what there is not, byte for byte, to whoever tries out names.

Each attack is sent twice: about something that is hidden, and about something of the same length that does
not exist. The answers may differ in that name alone; nothing may have run, and the audit says the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, policy_of
from support.http_server import in_process
from support.in_memory import ENVELOPE, RawConversation, in_loop

from fastrpc import Server
from fastrpc.errors import RemoteError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

VERSIONS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
POLICY = """
[expose]
tools = ["search", "wipe", "travel"]
resources = ["documents/*", "secrets/*", "hidden/*"]
prompts = ["greet", "betray"]
rate = "1000/hour"
[classes.guest]
tools = ["search"]
resources = ["documents/*"]
prompts = ["greet"]
[approvals]
from = "low"
"""
ATTACKS: dict[str, tuple[str, Any, str, str]] = {
    "a tool, a fit": ("tools/call", {"name": "%", "arguments": {"count": 1}}, "wipe", "wipx"),
    "a tool, a misfit": ("tools/call", {"name": "%", "arguments": {"count": "x"}}, "wipe", "wipx"),
    "a tool, none": ("tools/call", {"name": "%"}, "wipe", "wipx"),
    "a tool, no object": ("tools/call", {"name": "%", "arguments": [1]}, "wipe", "wipx"),
    "a tool, one like another": ("tools/call", {"name": "%", "arguments": {}}, "searcx", "searcy"),
    "a prompt, a fit": (
        "prompts/get",
        {"name": "%", "arguments": {"who": "x"}},
        "betray",
        "betrax",
    ),
    "a prompt, a misfit": ("prompts/get", {"name": "%", "arguments": {"whom": "x"}}, "betray", "betrax"),
    "a prompt, none": ("prompts/get", {"name": "%"}, "betray", "betrax"),
    "a prompt, no object": ("prompts/get", {"name": "%", "arguments": 1}, "betray", "betrax"),
    "a resource": ("resources/read", {"uri": "%"}, "shop://secrets/key", "shop://secrets/kex"),
    "a template, a value that fits": ("resources/read", {"uri": "%"}, "shop://hidden/42", "shop://absent/42"),
    "a template, a misfit": ("resources/read", {"uri": "%"}, "shop://hidden/no", "shop://absent/no"),
    "a template, one value a misfit": (
        "resources/read",
        {"uri": "%"},
        "shop://secrets/a/b",
        "shop://sacrets/a/b",
    ),
    "a provider": ("resources/read", {"uri": "%"}, "vault://secrets/a", "vaulx://secrets/a"),
    "a subscription": ("resources/subscribe", {"uri": "%"}, "shop://secrets/key", "shop://secrets/kex"),
    "a subscription, a template": (
        "resources/subscribe",
        {"uri": "%"},
        "shop://hidden/42",
        "shop://absent/42",
    ),
    "a subscription, a misfit": ("resources/subscribe", {"uri": "%"}, "shop://hidden/no", "shop://absent/no"),
    "the completion of a prompt": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "%"}, "argument": {"name": "who", "value": ""}},
        "betray",
        "betrax",
    ),
    "the completion of a template": (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "%"}, "argument": {"name": "number", "value": "4"}},
        "shop://hidden/{number}",
        "shop://absent/{number}",
    ),
    "the completion of no argument": (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "%"}, "argument": {"name": "none", "value": ""}},
        "shop://hidden/{number}",
        "shop://absent/{number}",
    ),
}

REAL = [
    (name, version)
    for name in ATTACKS
    for version in (LATEST_SESSION_VERSION, STATELESS)
    if not name.endswith(("no object", "like another"))  # refused before; seen by neither caller
    and not (name.startswith("a subscription") and version == STATELESS)  # which has streams instead
]


def shop(ran: list[str]) -> Server:
    """A server with something to hide of each kind; `ran` gets what was called."""
    app = Server("shop")

    def note(name: str) -> str:
        ran.append(name)
        return name

    @app.tool(effect="read", run="inline")
    def search(text: str = "") -> str:
        return note("search")

    @app.tool(effect="exec", run="inline")
    def wipe(count: int) -> str:
        return note("wipe")

    @app.tool(effect="read", run="inline", name="searcx")
    def other(text: str = "") -> str:
        return note("searcx")

    @app.resource("shop://documents/guide")
    def guide() -> str:
        return note("guide")

    @app.resource("shop://secrets/key")
    def key() -> str:
        return note("key")

    @app.resource("shop://hidden/{number}")
    def hidden(number: int) -> str:
        return note("hidden")

    @app.resource("shop://secrets/{a}/{b}")
    def pair(a: str, b: int) -> str:
        return note("pair")

    @app.prompt
    def greet(who: str) -> str:
        return note("greet")

    @app.prompt
    def betray(who: str) -> str:
        return note("betray")

    @app.complete(betray, "who")
    def whom(value: str) -> list[str]:
        ran.append("completed")
        return ["ada"]

    @app.complete(hidden, "number")
    def numbers(value: str) -> list[str]:
        ran.append("completed")
        return ["42"]

    @app.resources("vault")
    class Vault:
        def read(self, uri: str) -> str:
            return note("vault")

    schema = {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}}

    @app.tool(effect="read", run="inline", input_schema=schema)
    def travel(**arguments: Any) -> str:
        return note("travel")

    return app


async def answers(app: Server, principal: str, version: str, method: str, params: Any) -> tuple[bytes, ...]:
    """Return what three requests in a row are answered on a separate connection: what is kept of the first
    may answer the others."""
    peer = RawConversation(app, version)
    peer.dispatcher.principal = principal
    if version == STATELESS:
        params = {**params, "_meta": ENVELOPE}
    found = []
    for id in range(3):
        peer.say({"id": id, "method": method, "params": params})
        await asyncio.wait_for(peer.answer(id), 30)
        found.append(peer.answers[id])
    peer.close()
    return tuple(found)


def about(params: Any, name: str) -> Any:
    return json.loads(json.dumps(params).replace('"%"', json.dumps(name)))


@VERSIONS
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_hidden_is_answered_as_what_there_is_not(tmp_path: Path, attack: str, version: str) -> None:
    method, params, hidden, unknown = ATTACKS[attack]
    ran: list[str] = []
    refused: list[Any] = []
    records: list[Any] = []
    app, _ = guarded(tmp_path, POLICY, shop(ran), on_refusal=lambda *facts: refused.append(facts))
    app.observe(records.extend)

    async def attacked() -> None:
        first = await answers(app, "eve", version, method, about(params, hidden))
        second = await answers(app, "eve", version, method, about(params, unknown))
        assert b'"error"' in first[0]
        assert first == tuple(line.replace(unknown.encode(), hidden.encode()) for line in second)

    asyncio.run(attacked())
    assert (ran, refused) == ([], [])
    app.drain_observers(at_end=True)
    facts = [(each.kind, each.outcome, each.name.replace(unknown, hidden)) for each in records]
    assert facts[:3] == facts[3:]


@pytest.mark.parametrize(("attack", "version"), REAL)
def test_for_whom_it_exists_the_answer_is_another_one(tmp_path: Path, attack: str, version: str) -> None:
    """The attacks are real: whoever sees what the other does not is answered otherwise."""
    method, params, hidden, unknown = ATTACKS[attack]
    app, _ = guarded(tmp_path, POLICY, shop([]))

    async def asked() -> None:
        first = await answers(app, "ada", version, method, about(params, hidden))
        second = await answers(app, "ada", version, method, about(params, unknown))
        assert first[0] != second[0].replace(unknown.encode(), hidden.encode())

    asyncio.run(asked())


@VERSIONS
def test_what_is_hidden_counts_as_little_in_rates_as_what_there_is_not(tmp_path: Path, version: str) -> None:
    app, _ = guarded(tmp_path, POLICY.replace("1000/hour", "3/hour"), shop([]))

    async def attacked() -> None:
        for attack in ("a tool, a fit", "a prompt, a fit", "a resource", "a template, a value that fits"):
            method, params, hidden, _ = ATTACKS[attack]
            await answers(app, "eve", version, method, about(params, hidden))
        found = await answers(app, "eve", version, "tools/call", {"name": "search", "arguments": {}})
        assert all(b'"error"' not in each for each in found)

    asyncio.run(attacked())


@VERSIONS
def test_lists_hints_and_pages_name_nothing_that_is_hidden(tmp_path: Path, version: str) -> None:
    app, _ = guarded(tmp_path, POLICY, shop([]))

    async def listed() -> bytes:
        found = b""
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            found += b"".join(await answers(app, "eve", version, method, {}))
        for kind, name, near in (("tools/call", "name", "wip"), ("prompts/get", "name", "betra")):
            found += b"".join(await answers(app, "eve", version, kind, {name: near}))
        return found + b"".join(
            await answers(app, "eve", version, "resources/read", {"uri": "shop://secrets/ke"})
        )

    found = asyncio.run(listed())
    assert b"search" in found
    for name in (b'"wipe"', b"wipe?", b"betray", b"secrets/key", b"hidden", b"searcx", b"travel"):
        assert name not in found, name


@VERSIONS
def test_a_change_of_what_is_hidden_is_not_sent_to_those_for_whom_it_does_not_exist(
    tmp_path: Path, version: str
) -> None:
    app, _ = guarded(tmp_path, POLICY, shop([]))
    uris = ["shop://secrets/key", "shop://hidden/42", "shop://absent/42", "shop://documents/guide"]

    async def told(principal: str) -> list[str]:
        async with Client(app, version=version) as client:
            for dispatcher in app.runtime.dispatchers:
                dispatcher.principal = principal
            if version == STATELESS:
                wanted = {"notifications": {"resourceSubscriptions": uris}}
                listening = asyncio.ensure_future(client.request("subscriptions/listen", wanted))
                await heard(client, "acknowledged")
                acknowledged = client.notifications[0]["params"]["notifications"]
                assert acknowledged["resourceSubscriptions"] == uris, "which exist is not said"
            else:
                for uri in uris:
                    with contextlib.suppress(RemoteError):
                        await client.request("resources/subscribe", {"uri": uri})
            for uri in uris:
                app.resource_updated(uri)
            await heard(client, "guide")
            if version == STATELESS:
                listening.cancel()
        return [each["params"]["uri"] for each in client.notifications if "uri" in each["params"]]

    absent = uris[2:3] if version == STATELESS else []  # no name of anything: streams take it as it is
    assert in_loop(lambda: told("ada")) == [*uris[:2], *absent, uris[3]]
    assert in_loop(lambda: told("eve")) == [*absent, uris[3]]


async def heard(client: Client, word: str) -> None:
    while not any(word in json.dumps(each) for each in client.notifications):
        await asyncio.sleep(0.002)


def test_a_subscription_tells_nothing_more_once_its_resource_is_hidden(tmp_path: Path) -> None:
    app, guard = guarded(tmp_path, POLICY, shop([]))

    async def watched() -> list[str]:
        async with Client(app, version=LATEST_SESSION_VERSION) as client:
            (dispatcher,) = app.runtime.dispatchers
            dispatcher.principal = "ada"
            for uri in ("shop://secrets/key", "shop://documents/guide"):
                await client.request("resources/subscribe", {"uri": uri})
            app.resource_updated("shop://secrets/key")
            await heard(client, "key")
            guard.use(policy_of(tmp_path, POLICY.replace('"secrets/*", ', ""), app))
            app.resource_updated("shop://secrets/key")
            app.resource_updated("shop://documents/guide")
            await heard(client, "guide")
        return [each["params"]["uri"] for each in client.notifications if each["method"].endswith("/updated")]

    assert in_loop(watched) == ["shop://secrets/key", "shop://documents/guide"]


NOT_HIDDEN = """
[[rules]]
id = "sealed"
when = 'tool.name == "shop://secrets/a/1"'
then = "deny"
[defaults]
hide = false
"""


@VERSIONS
@pytest.mark.parametrize("uri", ["shop://secrets/key", "shop://hidden/42", "shop://secrets/a/1"])
def test_what_is_not_allowed_cannot_be_subscribed_to_where_it_is_not_hidden(
    tmp_path: Path, version: str, uri: str
) -> None:
    app, guard = guarded(tmp_path, POLICY + NOT_HIDDEN, shop([]))

    async def told(policy: str) -> tuple[list[int], list[str]]:
        guard.use(policy_of(tmp_path, policy, app))
        codes = []
        async with Client(app, version=version) as client:
            (dispatcher,) = app.runtime.dispatchers
            dispatcher.principal = "eve"
            waiting = []
            for each in (uri, "shop://documents/guide"):
                try:
                    if version == STATELESS:
                        wanted = {"notifications": {"resourceSubscriptions": [each]}}
                        request = asyncio.ensure_future(client.request("subscriptions/listen", wanted))
                        waiting.append(request)
                        heard_of = asyncio.ensure_future(heard(client, f'"{each}"'))
                        await asyncio.wait({request, heard_of}, return_when=asyncio.FIRST_COMPLETED)
                        heard_of.cancel()
                        if request.done():
                            await request
                    else:
                        await client.request("resources/subscribe", {"uri": each})
                except RemoteError as error:
                    codes.append(error.code)
            client.notifications.clear()
            app.resource_updated(uri)
            app.resource_updated("shop://documents/guide")
            await heard(client, "guide")
            for request in waiting:
                request.cancel()
        return codes, [each["params"]["uri"] for each in client.notifications if "uri" in each["params"]]

    code = 403 if version == STATELESS else -32000
    assert in_loop(lambda: told(POLICY + NOT_HIDDEN)) == ([code], ["shop://documents/guide"])
    allowed = '[expose]\nresources = ["*"]\ntools = ["*"]\nprompts = ["*"]\n[defaults]\nhide = false\n'
    codes, uris = in_loop(lambda: told(allowed))
    assert codes == []
    assert uris[-1] == "shop://documents/guide"
    assert len(uris) >= 1


@pytest.mark.parametrize("more", [{}, {"mcp_param_place": "x"}])
def test_over_http_a_hidden_tool_whose_arguments_are_in_headers_is_answered_as_an_unknown_one(
    tmp_path: Path, more: dict[str, str]
) -> None:
    app, _ = guarded(tmp_path, POLICY, shop([]))

    async def asked() -> list[Any]:
        async with in_process(app, token=lambda token: token.partition("-")[0]) as server:
            found = []
            for name in ("travel", "travex"):
                params = {"name": name, "arguments": {"place": "y"}, "_meta": ENVELOPE}
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                status, answer, _ = await server.ask(
                    "POST",
                    "/mcp",
                    body,
                    accept="application/json, text/event-stream",
                    authorization="Bearer eve-0123456789abcdef",
                    mcp_protocol_version=STATELESS,
                    mcp_method="tools/call",
                    mcp_name=name,
                    **more,
                )
                found.append((status, json.dumps(answer).replace("travex", "travel")))
            return found

    hidden, unknown = asyncio.run(asyncio.wait_for(asked(), 30))
    assert hidden == unknown
