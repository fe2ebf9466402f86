"""A guard decides about each call: what it sees, how it refuses, what waits for it; nothing passes it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from support.in_memory import RawConversation, in_loop, with_client

from fastrpc import CallInfo, Context, Server, ToolError
from fastrpc.errors import InvalidParams
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import RemoteError

WAYS = ("inline", "context", "hooked", "coroutine", "waiting", "thread")


def app_of(way: str, ran: list[str]) -> Server:
    """A server with one tool `act` that notes that it has run."""
    app = Server("t", max_in_flight=2)
    if way == "coroutine":

        @app.tool(effect="write")
        async def act(text: str, times: int = 2) -> str:
            ran.append(text)
            return text
    elif way == "waiting":

        @app.tool(effect="write")
        async def act(text: str, times: int = 2) -> str:
            await asyncio.sleep(0)
            ran.append(text)
            return text
    elif way == "context":

        @app.tool(effect="write", run="inline")
        def act(text: str, ctx: Context, times: int = 2) -> str:
            ran.append(text)
            return text
    else:

        @app.tool(effect="write", run="thread" if way == "thread" else "inline")
        def act(text: str, times: int = 2) -> str:
            ran.append(text)
            return text

    if way == "hooked":
        app.before(lambda call: None)
    return app


async def converse(app: Server, version: str = LATEST_SESSION_VERSION) -> RawConversation:
    peer = RawConversation(app, version)
    peer.dispatcher.loop_runs(asyncio.get_running_loop())
    return peer


def text_of(answer: Any) -> tuple[str, bool]:
    return answer["result"]["content"][0]["text"], answer["result"]["isError"]


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", WAYS)
def test_a_guard_sees_each_call_once_and_refuses_in_its_own_words(way: str, version: str) -> None:
    ran: list[str] = []
    seen: list[Any] = []
    app = app_of(way, ran)

    @app.guard
    def decide(call: CallInfo) -> None:
        seen.append((call.kind, call.name, call.effect, call.principal, dict(call.arguments)))
        if call.arguments["text"] == "no":
            raise ToolError("not you")
        if call.arguments["text"] == "never":
            raise InvalidParams("not in the list", {"rule": 1})
        if call.arguments["text"] == "broken":
            raise ValueError("the guard has failed")

    async def run() -> None:
        peer = await converse(app, version)
        for id, text in enumerate(("yes", "no", "never", "broken", "yes")):
            peer.call(id, "act", {"text": text})
            await peer.answer(id)
        assert text_of(await peer.answer(0)) == ("yes", False)
        assert text_of(await peer.answer(1)) == ("not you", True)
        assert (await peer.answer(2))["error"]["data"] == {"rule": 1}
        assert text_of(await peer.answer(3)) == ("ValueError: the guard has failed", True)
        assert text_of(await peer.answer(4)) == ("yes", False)
        peer.close()

    in_loop(run)
    assert ran == ["yes", "yes"]
    expected = [
        ("tool", "act", "write", "", {"text": text, "times": 2})
        for text in ("yes", "no", "never", "broken", "yes")
    ]
    assert seen == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_call_waits_for_a_guard_that_decides_later(way: str) -> None:
    ran: list[str] = []
    app = app_of(way, ran)
    decisions: dict[str, asyncio.Future[None]] = {}

    @app.guard
    def decide(call: CallInfo) -> Any:
        return decisions.get(call.arguments["text"])

    async def run() -> None:
        peer = await converse(app)
        loop = asyncio.get_running_loop()
        decisions.update(yes=loop.create_future(), no=loop.create_future())
        peer.call(1, "act", {"text": "yes"})
        peer.call(2, "act", {"text": "no"})
        peer.call(3, "act", {"text": "one too many", "times": 1})
        await asyncio.sleep(0.02)
        if way in ("inline", "context", "hooked"):  # which are never in flight, unless their guard is
            assert ran == ["one too many"]
        else:
            assert ran == []
            assert (await peer.answer(3))["error"]["data"] == {"maxInFlight": 2}
        assert app.busy
        decisions["yes"].set_result(None)
        decisions["no"].set_exception(ToolError("somebody said no"))
        assert text_of(await peer.answer(1)) == ("yes", False)
        assert text_of(await peer.answer(2)) == ("somebody said no", True)
        peer.close()

    in_loop(run)
    assert not app.busy
    assert "no" not in ran


@pytest.mark.parametrize("way", WAYS)
def test_the_decision_about_a_call_that_is_not_awaited_is_closed(way: str) -> None:
    ran: list[str] = []
    app = app_of(way, ran)
    decisions: list[Any] = []

    @app.guard
    def decide(call: CallInfo) -> Any:
        decisions.append(asyncio.sleep(10))
        return decisions[-1]

    async def run() -> None:
        peer = await converse(app)
        for id in (1, 2, 3):
            peer.call(id, "act", {"text": "a"})
            if id == 1:  # before the event loop has begun to await its decision
                peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        peer.call(4, "act", {"text": "a"})
        assert (await peer.answer(4))["error"]["data"] == {"maxInFlight": 2}
        peer.close()

    in_loop(run)
    assert [inspect.getcoroutinestate(each) for each in decisions] == [inspect.CORO_CLOSED] * 4
    assert ran == []


def test_a_call_that_is_cancelled_while_its_guard_decides_never_runs() -> None:
    ran: list[str] = []
    app = app_of("inline", ran)
    stopped: list[bool] = []

    @app.guard
    async def decide(call: CallInfo) -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    async def run() -> None:
        peer = await converse(app)
        peer.call(1, "act", {"text": "a"})
        await asyncio.sleep(0.01)
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        while app.busy:
            await asyncio.sleep(0.01)
        assert peer.answers == {}
        peer.close()

    in_loop(run)
    assert (ran, stopped) == ([], [True])


@pytest.mark.parametrize("decision", [False, True, "yes", 0])
@pytest.mark.parametrize("later", [False, True])
def test_only_none_allows(decision: Any, later: bool) -> None:
    ran: list[str] = []
    app = app_of("inline", ran)

    async def decide_later(call: CallInfo) -> Any:
        return decision

    app.guard(decide_later if later else lambda call: decision)
    result = with_client(app, lambda client: client.call("act", text="a"))
    assert result.is_error
    assert "returns None to allow" in result.text
    assert ran == []


def test_a_guard_comes_before_hooks_which_it_does_not_see_change_arguments() -> None:
    ran: list[str] = []
    app = app_of("inline", ran)
    order: list[str] = []
    app.before(lambda call: order.append("hook") or call.arguments.update(text="changed"))

    @app.guard
    def decide(call: CallInfo) -> None:
        order.append(f"guard {call.arguments['text']}")
        if call.arguments["times"] == 0:
            raise ToolError("no")

    assert with_client(app, lambda client: client.call("act", text="a")).text == "changed"
    assert with_client(app, lambda client: client.call("act", text="a", times=0)).text == "no"
    assert order == ["guard a", "hook", "guard a"]


def test_arguments_that_do_not_fit_reach_neither_guard_nor_hooks_of_a_guarded_server() -> None:
    ran: list[str] = []
    app = app_of("inline", ran)
    seen: list[Any] = []
    app.before(lambda call: call.arguments.update(text="mended"))
    app.guard(seen.append)
    result = with_client(app, lambda client: client.call("act"))
    assert result.is_error
    assert "text: required" in result.text
    assert (ran, seen) == ([], [])


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_resources_and_prompts_are_guarded_by_uri_and_name(version: str) -> None:
    app = Server("t")
    app.add_resource("docs://open", "text")
    seen: list[Any] = []

    @app.resource("docs://{id}/page")
    async def page(id: str) -> str:
        return f"page {id}"

    @app.prompt
    def write(about: str) -> str:
        return about

    @app.tool
    async def read(uri: str, ctx: Context) -> str:
        return str((await ctx.read_resource(uri))[0].content)

    @app.guard
    def decide(call: CallInfo) -> None:
        seen.append((call.kind, call.name, dict(call.arguments)))
        if "secret" in str(call.arguments) and call.kind != "tool":
            raise ToolError("secret")

    async def run(client: Any) -> None:
        await client.request("resources/read", {"uri": "docs://open"})
        await client.request("resources/read", {"uri": "docs://7/page"})
        for method, params in (
            ("resources/read", {"uri": "docs://secret/page"}),
            ("prompts/get", {"name": "write", "arguments": {"about": "secret"}}),
        ):
            with pytest.raises(RemoteError, match="secret"):
                await client.request(method, params)
        assert (await client.call("read", uri="docs://8/page")).text == "page 8"
        inside = await client.call("read", uri="docs://secret/page")
        assert (inside.text, inside.is_error) == ("secret", True)

    with_client(app, run, version)
    assert seen == [
        ("resource", "docs://open", {}),
        ("resource", "docs://7/page", {"id": "7"}),
        ("resource", "docs://secret/page", {"id": "secret"}),
        ("prompt", "write", {"about": "secret"}),
        ("tool", "read", {"uri": "docs://8/page"}),
        ("resource", "docs://8/page", {"id": "8"}),
        ("tool", "read", {"uri": "docs://secret/page"}),
        ("resource", "docs://secret/page", {"id": "secret"}),
    ]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32000), (STATELESS, 403)])
def test_a_refused_resource_or_prompt_is_an_error_of_its_own_code(
    version: str, code: int, later: bool
) -> None:
    app = Server("t")
    app.add_resource("docs://a", "text")

    @app.prompt
    def write(about: str) -> str:
        return about

    refusals: list[BaseException] = []

    async def decide_later() -> None:
        raise refusals[-1]

    @app.guard
    def decide(call: CallInfo) -> Any:
        if later:
            return decide_later()
        raise refusals[-1]

    asked: list[tuple[str, dict[str, Any], Any]] = [
        ("resources/read", {"uri": "docs://a"}, {"uri": "docs://a"}),
        ("prompts/get", {"name": "write", "arguments": {"about": "x"}}, None),
    ]

    async def run(client: Any) -> None:
        for method, params, data in asked:
            refusals.append(ToolError("not you"))
            with pytest.raises(RemoteError) as refused:
                await client.request(method, params)
            assert (refused.value.code, refused.value.data) == (code, data)
            assert refused.value.message == "not you"
            refusals.append(InvalidParams("not this"))  # an error of the guard's own choice is sent as it is
            with pytest.raises(RemoteError, match="not this") as refused:
                await client.request(method, params)
            assert refused.value.code == -32602
            refusals.append(ValueError("broken"))  # a guard that fails is the server's fault
            with pytest.raises(RemoteError) as refused:
                await client.request(method, params)
            assert refused.value.code == -32603

    with_client(app, run, version)


@pytest.mark.parametrize("later", [False, True])
def test_the_guards_of_mounted_servers_hold_too_each_by_its_own_name(later: bool) -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "done", name="act")
    outer.mount(inner, "in")
    seen: list[str] = []

    async def wait() -> None:
        await asyncio.sleep(0)

    def note(where: str) -> Any:
        def decide(call: CallInfo) -> Any:
            seen.append(f"{where} {call.name}")
            if where == refuses:
                raise ToolError(f"{where} refuses")
            return wait() if later else None

        return decide

    outer.guard(note("outer"))
    inner.guard(note("inner"))
    refuses = ""
    assert with_client(outer, lambda client: client.call("in_act")).text == "done"
    refuses = "inner"
    assert with_client(outer, lambda client: client.call("in_act")).text == "inner refuses"
    assert with_client(inner, lambda client: client.call("act")).text == "inner refuses"
    assert seen == ["outer in_act", "inner act", "outer in_act", "inner act", "inner act"]


def test_a_guard_that_is_added_late_holds_for_lines_that_are_known() -> None:
    ran: list[str] = []
    app = app_of("inline", ran)

    async def run() -> None:
        peer = await converse(app)
        for id in range(8):
            peer.call(id, "act", {"text": "a"})

        @app.guard
        def decide(call: CallInfo) -> None:
            raise ToolError("no")

        for id in range(8, 16):
            peer.call(id, "act", {"text": "a"})
            assert text_of(await peer.answer(id)) == ("no", True)
        peer.close()

    in_loop(run)
    assert len(ran) == 8


def test_a_call_info_that_is_kept_stays_what_it_was() -> None:
    ran: list[str] = []
    app = app_of("inline", ran)
    kept: list[CallInfo] = []
    app.guard(kept.append)

    async def run() -> None:
        peer = await converse(app)
        for id in range(20):
            peer.call(id, "act", {"text": f"text {id}"})
        peer.close()

    in_loop(run)
    assert [call.arguments for call in kept] == [{"text": f"text {id}", "times": 2} for id in range(20)]
    assert [call.context.request_id for call in kept] == list(range(20))
