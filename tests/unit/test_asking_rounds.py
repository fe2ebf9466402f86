"""How questions travel: requests to the client up to 2025-11-25, rounds with a signed state from then on."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import pytest
from support.in_memory import with_client
from support.server_requests import (
    Booking,
    Raw,
    accepted,
    cancelled,
    one_question,
    questions_of,
    retry,
    text_of,
    with_raw,
    with_stateless_client,
)

from fastrpc import Context, Server, ToolError, signed_texts
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.session import Session
from fastrpc.client_requests import Form, Sampling, pending
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS, SERVER_KEY, STATELESS
from fastrpc.testing import Client, RemoteError

BOTH = "{'a': ElicitResult('accept', 'A'), 'b': ElicitResult('accept', 'B')}"

# --- up to 2025-11-25: requests to the client ---------------------------------------------------------


def test_answers_find_their_questions_in_whatever_order_they_come() -> None:
    app = one_question(lambda ctx: ctx.ask(a=Form("a", str), b=Form("b", str)))

    async def conversation(client: Raw) -> None:
        _, future = client.begin("tools/call", {"name": "ask"})
        first, second = await client.question(1), await client.question(2)
        assert first["id"] != second["id"]
        client.answer(second["id"], result={"action": "accept", "content": {"value": "B"}})
        client.answer(second["id"], result={"action": "accept", "content": {"value": "again"}})
        for strange in ("01x", True, 1.5, None, [1], 999):
            client.answer(strange, result={"action": "cancel"})
        await asyncio.sleep(0.02)
        assert not future.done()
        client.answer(first["id"], result={"action": "accept", "content": {"value": "A"}})
        result = await future
        assert result["content"][0]["text"] == BOTH
        assert len(questions_of(app)) == 0
        assert not cancelled(client)

    with_raw(app, conversation)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"error": {"code": -1, "message": "User said no"}}, "refused elicitation/create: User said no (-1)"),
        ({"error": 5}, "its answer has no result"),
        ({"result": 5}, "its answer has no result"),
        ({"result": {}}, "cannot be used: action: expected one of accept, decline, cancel, got null"),
        ({"result": {"action": "accept"}}, "$.content.name: required, missing"),
        ({"result": {"action": "accept", "content": []}}, "content: expected an object"),
        ({"result": {"action": "accept", "content": {"name": 5}}}, "$.content.name: expected string, got 5"),
    ],
)
def test_an_answer_that_is_none_fails_the_tool_in_words(members: Any, complaint: str) -> None:
    app = one_question(lambda ctx: ctx.elicit("x", Booking))

    async def conversation(client: Raw) -> None:
        _, future = client.begin("tools/call", {"name": "ask"})
        client.answer((await client.question())["id"], **members)
        result = await future
        assert result["isError"]
        assert complaint in result["content"][0]["text"]

    with_raw(app, conversation)


@pytest.mark.parametrize(
    ("ask", "result"),
    [
        (lambda ctx: ctx.sample("x"), {"content": {"type": "text"}}),
        (lambda ctx: ctx.sample("x"), {"role": "assistant"}),
        (lambda ctx: ctx.roots(), {"roots": None}),
        (lambda ctx: ctx.roots(), {"roots": [{"name": "x"}]}),
        (lambda ctx: ctx.elicit_url("x", "https://x"), {"action": "maybe"}),
    ],
)
@pytest.mark.parametrize("version", RICH_INPUT_REQUESTS)
def test_a_wrongly_typed_answer_fails_once_its_reason_was_shown_where_a_person_reads_it(
    ask: Any, result: Any, version: str
) -> None:
    async def conversation(client: Raw) -> None:
        _, future = client.begin("tools/call", {"name": "ask"})
        if version != STATELESS:
            client.answer((await client.question())["id"], result=result)
            assert (await future)["isError"]
            return
        first = await future
        assert first["resultType"] == "input_required"
        for wrong in (result, 5, None):
            second = await retry(client, first, {"1": wrong})
            [asked] = first["inputRequests"].values()
            if asked["method"] == "elicitation/create":
                message = second["inputRequests"]["1"]["params"]["message"]
                assert message.startswith("x\n\nThe last answer could not be used: action: expected one of")
                second = await retry(client, second, {"1": wrong})
            assert second["isError"]
            assert "used: " in second["content"][0]["text"]
        third = await retry(client, first, {})  # without an answer it is asked as before
        assert third["inputRequests"] == first["inputRequests"]

    with_raw(one_question(ask), conversation, version=version)


def test_one_refusal_ends_the_others_questions() -> None:
    app = one_question(lambda ctx: ctx.ask(a=Form("a"), b=Sampling("b")))

    async def conversation(client: Raw) -> None:
        _, future = client.begin("tools/call", {"name": "ask"})
        first, second = await client.question(1), await client.question(2)
        client.answer(first["id"], error={"code": -1, "message": "no"})
        assert (await future)["isError"]
        assert cancelled(client) == [second["id"]]
        assert len(questions_of(app)) == 0

    with_raw(app, conversation)


def test_a_question_is_given_up_after_its_time_and_the_client_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "ANSWER_SECONDS", 0.05)
    app = one_question(lambda ctx: ctx.elicit("x"))

    async def conversation(client: Raw) -> None:
        result = await client.request("tools/call", {"name": "ask"})
        assert result["content"][0]["text"] == "the client did not answer within 0.05 s"
        assert cancelled(client) == [client.asked[0]["id"]]
        client.answer(client.asked[0]["id"], result={"action": "accept"})
        assert len(questions_of(app)) == 0

    with_raw(app, conversation)


def test_a_cancelled_call_withdraws_its_questions() -> None:
    app = one_question(lambda ctx: ctx.ask(a=Form("a"), b=Form("b")))

    async def conversation(client: Raw) -> None:
        id, _ = client.begin("tools/call", {"name": "ask"})
        await client.question(2)
        client.cancel(id)
        while len(cancelled(client)) < 2:
            await asyncio.sleep(0)
        assert sorted(cancelled(client)) == sorted(message["id"] for message in client.asked)
        assert len(questions_of(app)) == 0

    with_raw(app, conversation)


def test_questions_end_with_the_connection() -> None:
    app = one_question(lambda ctx: ctx.elicit("x"))

    async def conversation(client: Raw) -> Any:
        client.begin("tools/call", {"name": "ask"})
        await client.question()
        questions = questions_of(app)
        (dispatcher,) = app.runtime.dispatchers
        waiting = asyncio.ensure_future(questions.put(dispatcher, {"a": {"method": "roots/list"}}))
        await client.question(2)
        dispatcher.close()
        with pytest.raises(ToolError, match="the client is gone"):
            await waiting
        with pytest.raises(ToolError, match="the client is gone"):
            await questions.put(dispatcher, {"a": {"method": "roots/list"}})
        assert len(questions) == 0
        assert not cancelled(client)

    with_raw(app, conversation)


def test_nothing_is_asked_before_the_client_is_ready() -> None:
    app = one_question(lambda ctx: ctx.elicit("x"))

    class Early(Raw):
        def _new_session(self, stream: ClientStream) -> Session:
            session = super()._new_session(stream)
            session.notify = lambda method, params=None: None  # type: ignore[method-assign]
            return session

    async def run() -> None:
        async with Early(app) as client:
            result = await client.request("tools/call", {"name": "ask"})
            assert "before it has sent notifications/initialized" in result["content"][0]["text"]
            assert not client.asked

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_tool_on_a_thread_may_ask_from_its_own_loop() -> None:
    app = Server("t")

    @app.tool(run="thread")
    def ask(ctx: Context) -> str:
        return str(asyncio.run(ctx.elicit("x", str)).data)

    for version in ELICITATION:
        assert text_of(app, "ask", version=version, on_elicit={"value": "v"}) == "v"


def test_waiting_for_a_person_delays_no_other_call() -> None:
    app = one_question(lambda ctx: ctx.elicit("x"))
    app.add_tool(lambda: "quick", name="quick")

    async def conversation(client: Raw) -> None:
        _, future = client.begin("tools/call", {"name": "ask"})
        question = await client.question()
        assert (await client.call("quick")).text == "quick"
        client.answer(question["id"], result={"action": "decline"})
        await future

    with_raw(app, conversation)


# --- from 2026-07-28 on: input required ---------------------------------------------------------------


def test_a_result_says_what_is_missing_and_no_request_is_sent() -> None:
    async def conversation(client: Raw) -> None:
        result = await client.request("tools/call", {"name": "ask"})
        assert result["resultType"] == "input_required"
        assert list(result["inputRequests"]) == ["who"]
        assert result["inputRequests"]["who"]["method"] == "elicitation/create"
        assert result["_meta"][SERVER_KEY]["name"] == "t"
        assert not {"ttlMs", "cacheScope", "content"} & set(result)
        final = await retry(client, result, {"who": accepted("Ada"), "extra": 5})
        assert final["resultType"] == "complete"
        assert final["content"][0]["text"] == "ElicitResult('accept', 'Ada')"
        assert not client.asked

    with_stateless_client(one_question(lambda ctx: ctx.elicit("Who?", str, key="who")), conversation)


def test_what_is_not_answered_is_asked_again_and_what_is_stays_answered() -> None:
    async def conversation(client: Raw) -> None:
        first = await client.request("tools/call", {"name": "ask"})
        assert set(first["inputRequests"]) == {"a", "b"}
        second = await retry(client, first, {"a": accepted("A"), "wrong": accepted("x")})
        assert set(second["inputRequests"]) == {"b"}
        third = await retry(client, second, {"b": accepted(5)})
        assert set(third["inputRequests"]) == {"b"}
        fourth = await retry(client, third, {"b": accepted("B")})
        assert fourth["content"][0]["text"] == BOTH

    with_stateless_client(one_question(lambda ctx: ctx.ask(a=Form("a", str), b=Form("b", str))), conversation)


def test_each_round_has_another_state() -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        return f"{(await ctx.elicit('1', str)).data}{(await ctx.elicit('2', str)).data}"

    async def conversation(client: Raw) -> None:
        first = await client.request("tools/call", {"name": "ask"})
        second = await retry(client, first, {"1": accepted("a")})
        assert set(first["inputRequests"]) == {"1"}
        assert set(second["inputRequests"]) == {"2"}
        assert first["requestState"] != second["requestState"]
        assert (await retry(client, second, {"2": accepted("b")}))["content"][0]["text"] == "ab"

    with_stateless_client(app, conversation)


def test_an_answer_to_another_question_in_the_same_place_does_not_count() -> None:
    app = Server("t")
    files = ["old.txt"]

    @app.tool
    async def ask(ctx: Context, key: str | None = None) -> str:
        name = files[-1]
        return f"{name} {(await ctx.elicit(f'Delete {name}?', key=key)).action}"

    async def conversation(client: Raw) -> None:
        first = await client.request("tools/call", {"name": "ask"})
        files.append("new.txt")
        second = await retry(client, first, {"1": {"action": "accept"}})
        assert second["inputRequests"]["1"]["params"]["message"] == "Delete new.txt?"
        third = await retry(client, second, {"1": {"action": "accept"}})
        assert third["content"][0]["text"] == "new.txt accept"
        named = await client.request("tools/call", {"name": "ask", "arguments": {"key": "k"}})
        files.append("last.txt")
        final = await retry(client, named, {"k": {"action": "accept"}}, arguments={"key": "k"})
        assert final["content"][0]["text"] == "last.txt accept"

    with_stateless_client(app, conversation)


def changed(state: str, place: int) -> str:
    return state[:place] + ("A" if state[place] != "A" else "B") + state[place + 1 :]


def test_a_state_that_was_changed_is_refused_and_nothing_runs() -> None:
    app = Server("t")
    runs = []

    @app.tool
    async def ask(ctx: Context) -> str:
        runs.append(1)
        try:
            return (await ctx.elicit("x")).action
        except Exception:
            return "swallowed"

    async def conversation(client: Raw) -> None:
        result = await client.request("tools/call", {"name": "ask"})
        state = result["requestState"]
        forged = base64.urlsafe_b64encode(json.dumps({"until": 9e9}).encode()).decode() + "." + "0" * 64
        wrong = [state + "-TAMPERED", changed(state, 5), changed(state, len(state) - 1), state[:-1], "", "."]
        for bad in [*wrong, forged, "é.é", 5, None, {}]:
            with pytest.raises(RemoteError) as caught:
                await retry(client, {"requestState": bad}, {"1": {"action": "accept"}})
            assert caught.value.code == -32602, bad
            assert "requestState" in caught.value.message
        with pytest.raises(RemoteError, match="inputResponses"):
            await retry(client, result, [])
        assert len(runs) == 1
        final = await retry(client, result, {"1": {"action": "accept"}})
        assert final["content"][0]["text"] == "accept"

    with_stateless_client(app, conversation)


def test_a_state_is_good_for_its_own_request_only() -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context, a: int = 1, b: str = "x") -> str:
        return (await ctx.elicit("x")).action

    app.add_tool(ask, name="other")

    async def conversation(client: Raw) -> None:
        arguments = {"a": 2, "b": "y"}
        result = await client.request("tools/call", {"name": "ask", "arguments": arguments})
        yes = {"1": {"action": "accept"}}
        for params in ({"name": "other", "arguments": arguments}, {"arguments": {"a": 3, "b": "y"}}, {}):
            with pytest.raises(RemoteError, match="another request") as caught:
                await retry(client, result, yes, **params)
            assert caught.value.code == -32602
        final = await retry(client, result, yes, arguments={"b": "y", "a": 2})
        assert final["content"][0]["text"] == "accept"
        return result["requestState"]

    state = with_stateless_client(app, conversation)
    (key,) = app.runtime.signing_keys._keys
    assert key.hex() not in base64.urlsafe_b64decode(state.partition(".")[0]).hex()

    async def elsewhere(client: Raw) -> None:
        with pytest.raises(RemoteError, match="not from this server"):
            await retry(client, {"requestState": state}, {}, arguments={"a": 2, "b": "y"})

    stranger = Server("t")
    stranger.add_tool(ask)
    with_stateless_client(stranger, elsewhere)


def test_a_state_is_good_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation(client: Raw) -> None:
        now = float(int(time.time()))
        monkeypatch.setattr(time, "time", lambda: now)
        result = await client.request("tools/call", {"name": "ask"})
        monkeypatch.setattr(time, "time", lambda: now + 3600)
        assert (await retry(client, result, {}))["resultType"] == "input_required"
        monkeypatch.setattr(time, "time", lambda: now + 3600.001)
        with pytest.raises(RemoteError, match="too old"):
            await retry(client, result, {"1": {"action": "accept"}})

    with_stateless_client(one_question(lambda ctx: ctx.elicit("x")), conversation)


def test_servers_that_share_a_secret_take_each_others_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(signed_texts.SECRET_VARIABLE, "shared")

    async def first(client: Raw) -> dict[str, Any]:
        return await client.request("tools/call", {"name": "ask"})

    result = with_stateless_client(one_question(lambda ctx: ctx.elicit("x")), first)

    async def second(client: Raw) -> None:
        final = await retry(client, result, {"1": {"action": "accept"}})
        assert final["content"][0]["text"] == "ElicitResult('accept', None)"

    with_stateless_client(one_question(lambda ctx: ctx.elicit("x")), second)


def test_prompts_and_resources_ask_too_and_other_methods_do_not() -> None:
    app = Server("t")

    @app.prompt
    async def greet(ctx: Context) -> str:
        return str((await ctx.elicit("Name?", str)).data)

    @app.resource("docs://me")
    async def me(ctx: Context) -> str:
        return str((await ctx.elicit("Name?", str)).data)

    async def conversation(client: Client) -> None:
        assert (await client.prompt("greet")).raw["messages"][0]["content"]["text"] == "Ada"
        assert (await client.read("docs://me")).raw["contents"][0]["text"] == "Ada"

    for version in ELICITATION:
        with_client(app, conversation, version=version, on_elicit={"value": "Ada"})
