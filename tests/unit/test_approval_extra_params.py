"""What a request says besides its arguments is shown to its approver, and an approved call runs with what was
shown, whatever the request says that uses the approval."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.guarded import caller_of, guarded, policy_of

from fastrpc import Context as OwnContext
from fastrpc import Server
from fastrpc.compat.fastmcp import Context, FastMCP
from fastrpc.compat.lowlevel.own_methods import meta_of
from fastrpc.errors import RemoteError
from fastrpc.guard.approvals.asking import Approvals
from fastrpc.guard.approvals.description import described
from fastrpc.guard.approvals.extra_params import kept, taken
from fastrpc.guard.approvals.store import ApprovalDecision, ApprovalStore
from fastrpc.guard.guard import Guard
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS, VERSIONS
from fastrpc.storage.database import Database
from fastrpc.testing import Client

pytest_plugins = ["support.guard_database"]

HELD = '[expose]\ntools = ["*"]\nresources = ["*"]\nprompts = ["*"]\n[approvals]\nhold_seconds = 0.05\n'
ASKED = """
[[rules]]
id = "ask"
when = "true"
then = "ask"
"""
SECONDS = 60


def telling() -> Server:
    """A server whose tool, resource and prompt return the ``_meta`` that they see."""
    app = Server("telling")

    def said(ctx: OwnContext) -> str:
        params = ctx._channel.request.params  # type: ignore[union-attr]
        return json.dumps([meta_of(ctx), params.get("x-more")])

    @app.tool(effect="exec")
    def tell(ctx: OwnContext) -> str:
        return said(ctx)

    @app.tool(effect="exec")
    async def tell_later(ctx: OwnContext) -> str:
        await asyncio.sleep(0)
        return said(ctx)

    @app.resource("telling://meta")
    def read(ctx: OwnContext) -> str:
        return said(ctx)

    @app.prompt
    def say(ctx: OwnContext) -> str:
        return said(ctx)

    return app


def with_meta(extra: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "tell", "arguments": {}, "_meta": extra, **more}


def own(meta: dict[str, Any]) -> dict[str, Any]:
    """What of a `_meta` is not the connection's."""
    return {key: value for key, value in meta.items() if not key.startswith("io.modelcontextprotocol/")}


async def approved_between(
    app: Server, database: Database, method: str, first: dict[str, Any], then: dict[str, Any], version: str
) -> tuple[dict[str, Any], Any]:
    """Send a request, approve it, and send the other one. Return what approvers see, and the result."""
    store = ApprovalStore(database)
    async with Client(app, version=version) as client:
        with suppress(RemoteError):  # of a resource and a prompt; of a tool it is a result
            await client.request(method, first)
        (waiting,) = store.list()
        store.decide(waiting.id, ApprovalDecision(True, "os:grace", "command line"))
        return described(waiting, store.clock()), await client.request(method, then)


def result_of(result: dict[str, Any]) -> Any:
    """Return what a tool, a resource or a prompt of `telling` has returned."""
    if "contents" in result:
        return json.loads(result["contents"][0]["text"])
    content = result["messages"][0]["content"] if "messages" in result else result["content"][0]
    return json.loads(content["text"])


WAYS = {
    "tool": ("tools/call", {"name": "tell", "arguments": {}}),
    "coroutine": ("tools/call", {"name": "tell_later", "arguments": {}}),
    "resource": ("resources/read", {"uri": "telling://meta"}),
    "prompt": ("prompts/get", {"name": "say", "arguments": {}}),
}


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", WAYS)
def test_an_approved_call_runs_with_what_was_shown(
    tmp_path: Path, database: Database, way: str, version: str
) -> None:
    approvals = Approvals("telling", lambda: database)
    app = guarded(tmp_path, HELD + ASKED, telling(), approve=approvals)[0]
    method, params = WAYS[way]
    trace = {"traceparent": "00-1", "progressToken": 7}
    first = {**params, "_meta": {"a/place": "safe", "a/id": 1, **trace}, "x-more": [1]}
    then = {**params, "_meta": {"a/place": "/", "a/id": 2, "a/new": 3, "traceparent": "00-2"}, "x-more": [2]}

    async def conversation() -> Any:
        return await approved_between(app, database, method, first, then, version)

    seen, result = asyncio.run(asyncio.wait_for(conversation(), SECONDS))
    assert seen["extra_params"] == {"x-more": [1], "_meta": {"a/place": "safe", "a/id": 1}}
    meta, more = result_of(result)
    assert own(meta) == {"a/place": "safe", "a/id": 1, "traceparent": "00-2"}
    assert more == [1]


def test_a_fresh_id_in_each_request_makes_no_approval_useless(tmp_path: Path, database: Database) -> None:
    app = guarded(tmp_path, HELD, telling(), approve=Approvals("telling", lambda: database))[0]
    first, then = with_meta({"vendor/toolUseId": "a"}), with_meta({"vendor/toolUseId": "b"})

    async def conversation() -> Any:
        return await approved_between(app, database, "tools/call", first, then, LATEST_SESSION_VERSION)

    assert result_of(asyncio.run(asyncio.wait_for(conversation(), SECONDS))[1])[0] == {
        "vendor/toolUseId": "a"
    }


def test_a_mounted_tool_and_one_of_compat_run_with_what_was_shown(tmp_path: Path, database: Database) -> None:
    inner = FastMCP("inner")

    @inner.tool
    def tell(ctx: Context) -> str:
        meta: Any = ctx.request_context.meta
        return str(json.dumps([meta.model_dump(exclude_none=True), None]))

    app = Server("host")
    app.mount(inner, "in")
    guarded(tmp_path, HELD, app, approve=Approvals("host", lambda: database))
    first, then = (with_meta({"a/place": place}, name="in_tell") for place in ("safe", "/"))

    async def conversation() -> Any:
        return await approved_between(app, database, "tools/call", first, then, LATEST_SESSION_VERSION)

    assert result_of(asyncio.run(asyncio.wait_for(conversation(), SECONDS))[1])[0] == {"a/place": "safe"}


@pytest.mark.parametrize("has_database", [True, False])
@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= "2025-06-18"])
def test_a_form_shows_it_and_its_answer_is_about_it(
    tmp_path: Path, database: Database, version: str, has_database: bool
) -> None:
    shown: list[str] = []
    approvals = Approvals("telling", (lambda: database) if has_database else None)
    app = guarded(tmp_path, HELD, telling(), approve=approvals)[0]

    def accept(asked: Any) -> dict[str, Any]:
        shown.append(asked["message"])
        return {"action": "accept", "content": {}}

    async def conversation() -> Any:
        async with Client(app, version=version, on_elicit=accept) as client:
            return await client._complete_call("tell", {}, None, None, None, None, {"a/place": "safe"})

    result = asyncio.run(asyncio.wait_for(conversation(), SECONDS))
    assert own(json.loads(result.text)[0]) == {"a/place": "safe"}
    assert len(shown) == 1
    assert '"a/place": "safe"' in shown[0]


@pytest.mark.parametrize("keeps_state", [True, False])
@pytest.mark.parametrize("has_database", [True, False])
def test_the_answer_to_one_question_never_runs_what_another_request_says(
    tmp_path: Path, database: Database, has_database: bool, keeps_state: bool
) -> None:
    approvals = Approvals("telling", (lambda: database) if has_database else None)
    app = guarded(tmp_path, HELD + "timeout_seconds = 1\n", telling(), approve=approvals)[0]

    async def conversation() -> Any:
        async with Client(app, version=STATELESS, capabilities={"elicitation": {"form": {}}}) as client:
            asked = await client.request("tools/call", with_meta({"a/place": "safe"}))
            (key,) = asked["inputRequests"]
            if has_database:
                await asyncio.sleep(1.2)  # the approval is over; the next request is another one's
            answer = {"inputResponses": {key: {"action": "accept", "content": {}}}}
            if keeps_state:
                answer["requestState"] = asked["requestState"]
            return await client.request("tools/call", with_meta({"a/place": "/"}, **answer))

    result = asyncio.run(asyncio.wait_for(conversation(), SECONDS))
    if result["resultType"] == "complete":
        assert own(result_of(result)[0]) == {"a/place": "safe"}
    else:
        assert '"a/place": "/"' in str(result["inputRequests"])
    assert (result["resultType"] == "complete") == (keeps_state and not has_database)


def test_a_guard_within_asks_about_what_the_one_outside_has_let_through(
    tmp_path: Path, database: Database
) -> None:
    inner, host = telling(), Server("host")
    host.mount(inner, "in")
    asked: list[str] = []

    async def approve(call: Any) -> dict[str, Any]:
        asked.append(call.extra_params())
        if len(asked) == 1:
            call.say_besides('{"_meta": {"a/place": "safe"}}')
        return {}

    for app in (host, inner):
        guard = Guard(policy_of(tmp_path, HELD, app), caller_of, approve=approve)
        guard.install(app)

    async def conversation() -> Any:
        async with Client(host) as client:
            return await client.request("tools/call", with_meta({"a/place": "/"}, name="in_tell"))

    result = asyncio.run(asyncio.wait_for(conversation(), SECONDS))
    assert [json.loads(each) for each in asked] == [
        {"_meta": {"a/place": "/"}},
        {"_meta": {"a/place": "safe"}},
    ]
    assert result_of(result)[0] == {"a/place": "safe"}


# --- the members ------------------------------------------------------------------------------------------


CALL = {"name": "t", "arguments": {"a": 1}}


def run_with(first: dict[str, Any], then: dict[str, Any], method: str = "tools/call") -> dict[str, Any]:
    return taken(kept(method, first), method, then)


@pytest.mark.parametrize(
    "value",
    [1, 1.0, True, None, "\u202e", "a\nb", [{"$x": 1, "y": [2]}], {"$object": [["a", 1]]}, 10**30, {}],
)
def test_what_was_shown_is_the_same_when_it_runs(value: Any) -> None:
    first = {**CALL, "_meta": {"a": value, "$b": value}, "x": value, "$object": value}
    assert json.dumps(run_with(first, CALL), sort_keys=True) == json.dumps(first, sort_keys=True)
    assert run_with(CALL, first) == CALL


def test_what_belongs_to_the_connection_is_the_requests_own() -> None:
    first = {**CALL, "_meta": {"progressToken": 1, "traceparent": "a"}, "requestState": "x"}
    then = {**CALL, "_meta": {"progressToken": 2, "traceparent": "b"}, "inputResponses": {}, "task": {}}
    assert kept("tools/call", first) == ""
    assert run_with(first, then) == then


def test_a_member_of_another_methods_params_is_shown() -> None:
    assert json.loads(kept("tools/call", {**CALL, "uri": "x"})) == {"uri": "x"}
    assert json.loads(kept("resources/read", {"uri": "x", "name": "y", "arguments": 1})) == {
        "name": "y",
        "arguments": 1,
    }


def test_a_secret_is_kept_nowhere_and_the_requests_own_runs_if_it_is_shown_alike() -> None:
    first = {**CALL, "_meta": {"password": "Hunter2-99x", "b": {"api_key": "s3cret-1", "n": 1}, "c": 1}}
    text = kept("tools/call", first)
    assert "Hunter2" not in text
    assert "s3cret" not in text
    assert run_with(first, first) == first
    other = {**CALL, "_meta": {"password": "another-1", "b": {"api_key": "s3cret-1", "n": 1.0}, "c": 2}}
    assert run_with(first, other) == {**CALL, "_meta": {"password": "another-1", "c": 1}}
    assert run_with(first, {**CALL, "_meta": {"password": "$(touch M)"}}) == {**CALL, "_meta": {"c": 1}}


def test_a_secret_in_a_name_is_no_member_that_runs() -> None:
    first = {**CALL, "_meta": {"https://me:s3cret@host": 1}}
    assert "s3cret" not in kept("tools/call", first)
    assert run_with(first, first) == CALL
