"""What passes a proxy or a gateway, in both directions: every member that is not the connection's own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support import echo_upstream as echo
from support.echo_upstream import ANNOTATIONS, GOT, ICONS, MARK, META, URI
from support.hops import (
    COMMAND,
    HOPS,
    MORE,
    NAMES,
    SECONDS,
    TRACE,
    UPSTREAMS,
    address,
    assert_carried,
    eventually_in,
)
from support.http_server import in_process
from support.in_memory import ENVELOPE, RawConversation, in_loop
from support.stdio import serve

from fastrpc import RemoteError, Server
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    LATEST_SESSION_VERSION,
    STATELESS,
    SUBSCRIPTION_KEY,
    VERSIONS,
)
from fastrpc.proxy import UpstreamServer
from fastrpc.testing import Client

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

HEADERS = {
    "mcp-protocol-version": STATELESS,
    "mcp-method": "tools/call",
    "mcp-name": "act",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


every_way = pytest.mark.parametrize(
    ("hop", "upstream"), [(hop, upstream) for hop in HOPS for upstream in UPSTREAMS]
)
every_version = pytest.mark.parametrize("version", VERSIONS)


def through(hop: str, upstream: str, version: str, conversation: Callable[..., Any], **options: Any) -> None:
    """Run a conversation with a client of a hop. `named` says by which name a tool or a prompt goes there."""

    async def run() -> None:
        async with UPSTREAMS[upstream]() as where:
            app = HOPS[hop](where)
            async with Client(app, version=version, **options) as client:
                await client.list_tools()  # a gateway connects
                prefix = "".join(f"{each}_" for each in NAMES.get(hop, ()))
                await conversation(client, lambda name: prefix + name)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield


async def requested(client: Client, method: str, **params: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send a request with metadata; return its result, and the params that reached the upstream server."""
    result = await client.request(method, {**params, **MORE, "_meta": dict(TRACE)})
    return result, result["_meta"][GOT]


def assert_marked(found: dict[str, Any], meta: dict[str, Any] = META) -> None:
    assert found["x-mark"] == MARK["x-mark"]
    assert {key: found["_meta"][key] for key in meta} == meta


# --- requests and results -----------------------------------------------------------------------------


@every_version
@every_way
def test_a_call_carries_its_metadata_and_its_unknown_members(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        for _ in range(3):  # what is like the last one may go another way
            result, got = await requested(client, "tools/call", name=named("act"), arguments={"a": 1})
            assert got["name"] == "act"
            assert got["arguments"] == {"a": 1}
            assert_carried(got)
            assert_marked(result)
            block = result["content"][0]
            assert block["x-mark"] == MARK["x-mark"]
            assert block["annotations"] == ANNOTATIONS
            if version >= "2025-06-18":
                assert block["_meta"] == META

    through(hop, upstream, version, conversation)


@pytest.mark.long
@every_version
@every_way
def test_reads_and_prompts_carry_theirs(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        for uri in (URI, URI, "echo://at/1"):
            there = address(hop, uri)
            result, got = await requested(client, "resources/read", uri=there)
            assert got["uri"] == uri
            assert_carried(got)
            assert_marked(result)
            assert result["contents"][0]["x-mark"] == MARK["x-mark"]
            if version >= "2025-06-18":
                assert result["contents"][0]["_meta"] == META
        result, got = await requested(client, "prompts/get", name=named("say"), arguments={"style": "s"})
        assert_carried(got)
        assert_marked(result)
        assert result["description"] == "of this result"
        assert result["messages"][0]["x-mark"] == MARK["x-mark"]
        assert result["messages"][0]["content"]["annotations"] == ANNOTATIONS

    through(hop, upstream, version, conversation)


@pytest.mark.long
@every_version
@every_way
def test_completions_carry_theirs(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        for ref in (
            {"type": "ref/prompt", "name": named("say")},
            {"type": "ref/resource", "uri": address(hop, "echo://at/{x}")},
        ):
            argument = {"name": "style" if "name" in ref else "x", "value": "v", "x-more": 1}
            result, got = await requested(
                client, "completion/complete", ref={**ref, "x-more": 2}, argument=argument
            )
            assert got["argument"] == argument
            assert got["ref"]["x-more"] == 2
            assert got["ref"].get("name", "say") == "say"
            assert got["ref"].get("uri", "echo://at/{x}") == "echo://at/{x}"
            assert_carried(got)
            assert_marked(result)
            assert result["completion"]["x-mark"] == MARK["x-mark"]

    through(hop, upstream, version, conversation)


@every_version
@every_way
def test_entries_are_listed_with_all_their_members(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        for method, (member, sent) in echo.LISTS.items():
            [entry] = [
                each
                for each in (await client.request(method))[member]
                if "gateway" not in str(each.get("uri"))
            ]
            assert entry["x-mark"] == MARK["x-mark"]
            if version >= "2025-06-18":
                assert (entry["title"], entry["_meta"]) == ("Titled", META)
            if version >= LATEST_SESSION_VERSION:
                assert entry["icons"] == ICONS
            if "annotations" in sent and (member != "tools" or version >= "2025-03-26"):
                expected = {**sent["annotations"]}
                if member == "tools" and version < "2025-06-18":
                    expected["title"] = "Titled"  # where a version without titles has it
                if (
                    hop in ("provider", "nested") and member == "tools"
                ):  # a class of the SDK, which may know no others
                    expected.pop("x-hint")
                    entry["annotations"].pop("x-hint", None)
                assert entry["annotations"] == expected
            if member == "prompts":
                assert entry["arguments"][0]["x-mark"] == MARK["x-mark"]
            if member == "tools":
                assert entry["inputSchema"] == sent["inputSchema"]

    through(hop, upstream, version, conversation)


@every_way
def test_a_structure_that_is_null_is_not_missing(hop: str, upstream: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        result = await client.request("tools/call", {"name": named("act"), "arguments": {"null": True}})
        assert result["structuredContent"] is None

    through(hop, upstream, STATELESS, conversation)


# --- what belongs to a connection ---------------------------------------------------------------------


@pytest.mark.long
@every_version
@every_way
def test_the_progress_token_and_the_envelope_are_the_connections_own(
    hop: str, upstream: str, version: str
) -> None:
    async def conversation(client: Client, named: Any) -> None:
        meta = {**TRACE, "progressToken": "the client's"}
        result = await client.request(
            "tools/call", {"name": named("act"), "arguments": {}, "task": {"ttl": 1}, "_meta": meta}
        )
        got = result["_meta"][GOT]
        assert got["_meta"]["progressToken"] != "the client's"
        assert got["_meta"]["traceparent"] == TRACE["traceparent"]
        assert "task" not in got
        assert (CAPABILITIES_KEY in got["_meta"]) is (upstream == "stateless")
        [progress] = client.progress
        assert (progress["progressToken"], progress["progress"], progress["total"]) == ("the client's", 1, 2)
        assert_marked(progress)

    through(hop, upstream, version, conversation)


def test_keys_with_escapes_and_white_space_mean_what_they_say() -> None:
    meta = (
        '{ "\\u0061":1,"progress\\u0054oken":"t" , "b" : "v" ,"io.modelcontextprotocol\\/logLevel":"debug"}'
    )
    plain = '{"io.modelcontextprotocol/logLevel":"x","a":{"b":"}"}, "c":[1,",{"]}'

    async def conversation() -> None:
        app = Server.proxy(COMMAND)
        async with Client(app) as client:
            await client.list_tools()
            talk = RawConversation(app, LATEST_SESSION_VERSION)
            for id, (text, expected) in enumerate(
                ((meta, {"a": 1, "b": "v"}), (plain, {"a": {"b": "}"}, "c": [1, ",{"]}), ("{}", None))
            ):
                line = f'{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":'
                talk.send(f'{line}{{"name":"act","arguments":{{}},"_meta":{text}}}}}'.encode())
                got = (await talk.answer(id))["result"]["_meta"][GOT]
                found = {key: value for key, value in got.get("_meta", {}).items() if key != "progressToken"}
                assert (found or None) == expected
            talk.close()

    in_loop(conversation)


def test_a_body_with_newlines_goes_on_as_one_line() -> None:
    async def conversation() -> None:
        async with in_process(Server.proxy(COMMAND), auth=None) as server:
            for text in ({"a": 1, "b": [1, 2]}, {}):
                for meta in (TRACE, {}):
                    params = {"name": "act", "arguments": text, "_meta": {**ENVELOPE, **meta}}
                    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                    status, body, _ = await server.ask(
                        "POST", "/mcp", json.dumps(message, indent=1).encode(), **HEADERS
                    )
                    assert status == 200, body
                    got = body["result"]["_meta"][GOT]
                    assert got["arguments"] == text
                    assert got.get("_meta", {}) == meta

    in_loop(conversation)


def test_calls_with_metadata_are_forwarded_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*arguments: Any) -> Any:
        raise AssertionError("the call was parsed")

    async def conversation(client: Client, named: Any) -> None:
        await client.request("tools/call", {"name": "act", "arguments": {}})
        monkeypatch.setattr(UpstreamServer, "request", refused)
        for number in range(3):
            meta = {**TRACE, "traceparent": f"00-{number}"}
            result = await client.request("tools/call", {"name": "act", "arguments": {}, "_meta": meta})
            assert result["_meta"][GOT]["_meta"] == meta
        result = await client.request("tools/call", {"name": "act", "arguments": {}})
        assert "_meta" not in result["_meta"][GOT]

    for version in VERSIONS:
        through("proxy", "stdio", version, conversation)
        monkeypatch.undo()


# --- what the server sends ----------------------------------------------------------------------------


@pytest.mark.long
@every_version
@every_way
def test_log_messages_carry_theirs(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        await client.request("tools/call", {"name": named("act"), "arguments": {"log": True}})
        [log] = client.logs
        assert (log["level"], log["data"], log["logger"]) == ("warning", "careful", "echo")
        assert_marked(log)

    through(hop, upstream, version, conversation, log_level="warning")


@every_version
@pytest.mark.parametrize("hop", HOPS)
def test_updates_of_resources_carry_theirs(hop: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        uri = address(hop, URI)
        async with client.listen(uris=[uri]) if version == STATELESS else nothing():
            if version != STATELESS:
                await client.subscribe(uri)
            await client.request("tools/call", {"name": named("act"), "arguments": {"touch": True}})
            found = await eventually_in(client.notifications, "notifications/resources/updated")
        assert found["params"]["uri"] == uri
        assert_marked(found["params"])
        assert (SUBSCRIPTION_KEY in found["params"]["_meta"]) is (version == STATELESS)

    through(hop, "stdio", version, conversation)


@pytest.mark.parametrize("version", ["2025-06-18", LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize(
    ("hop", "upstream"), [(hop, each) for hop in HOPS for each in ("stdio", "stateless")]
)
def test_requests_of_the_server_and_their_answers_carry_theirs(hop: str, upstream: str, version: str) -> None:
    answer = {"action": "accept", "content": {}, "_meta": {"example.com/back": 1}, "x-answer": 2}

    async def conversation(client: Client, named: Any) -> None:
        async def reply(method: str, params: dict[str, Any]) -> dict[str, Any]:
            client.questions.append({"method": method, "params": params})
            return answer

        client._handlers.answer = reply  # type: ignore[method-assign]
        params = {"name": named("act"), "arguments": {"ask": True}, "_meta": TRACE}
        result = await client.request("tools/call", params)
        if version == STATELESS:
            [key] = result["inputRequests"]
            asked = result["inputRequests"][key]["params"]
            again = {"requestState": result["requestState"], "inputResponses": {key: answer}}
            result = await client.request("tools/call", {**params, **again})
        else:
            asked = client.questions[0]["params"]
        assert_marked(asked)
        assert "progressToken" not in asked["_meta"]
        got = result["_meta"][GOT]
        if upstream == "stateless":
            assert got["inputResponses"]["q"] == answer
            assert got["requestState"] == "s"
        else:
            assert result["_meta"]["example.com/answer"] == answer
        assert got["_meta"]["traceparent"] == TRACE["traceparent"]

    through(hop, upstream, version, conversation, on_elicit={})


# --- notifications ------------------------------------------------------------------------------------


@pytest.mark.long
@every_version
@every_way
def test_notifications_that_mcp_does_not_know_pass_in_both_directions(
    hop: str, upstream: str, version: str
) -> None:
    async def conversation(client: Client, named: Any) -> None:
        for method in ("notifications/x-vendor/hello", "notifications/progress"):
            client.notify(method, {"progressToken": 1, "progress": 1, "n": {"a": None}, "_meta": dict(TRACE)})
        await client.flush()
        while True:
            call = {"name": named("act"), "arguments": {"vendor": True, "heard": True}}
            heard = (await client.request("tools/call", call))["_meta"][echo.HEARD]
            if heard or hop == "guarded":
                break
        assert_marked((await eventually_in(client.notifications, echo.VENDOR))["params"])
        if hop == "guarded":
            assert not heard  # a guard is not asked about notifications
            return
        assert [each["method"] for each in heard] == ["notifications/x-vendor/hello"]
        params = heard[0]["params"]
        assert (params["n"], params["progress"]) == ({"a": None}, 1)
        assert TRACE.items() <= params["_meta"].items()

    echo.heard.clear()
    through(hop, upstream, version, conversation)


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != STATELESS])
@pytest.mark.parametrize("hop", ["proxy", "gateway", "mounted"])
def test_a_notification_outside_of_calls_reaches_the_sessions(hop: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        client.notify(echo.ECHO, {"n": 1, "_meta": dict(TRACE)})
        found = await eventually_in(client.notifications, f"{echo.ECHO}ed")
        assert (found["params"]["n"], found["params"]["_meta"]) == (1, TRACE)

    through(hop, "stdio", version, conversation)


def test_a_notification_without_a_session_over_http_passes_too() -> None:
    async def conversation() -> None:
        async with in_process(Server.proxy(COMMAND), auth=None) as server:

            async def heard() -> Any:
                params = {"name": "act", "arguments": {"heard": True}, "_meta": ENVELOPE}
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                _, body, _ = await server.ask("POST", "/mcp", json.dumps(message).encode(), **HEADERS)
                return body["result"]["_meta"][echo.HEARD]

            assert await heard() == []
            params = {"_meta": {**ENVELOPE, **TRACE}, **MARK}
            said = {"jsonrpc": "2.0", "method": echo.VENDOR, "params": params}
            headers = {**HEADERS, "mcp-method": echo.VENDOR}
            status, _, _ = await server.ask("POST", "/mcp", json.dumps(said).encode(), **headers)
            assert status == 202
            [found] = await heard()
            assert (found["method"], found["params"]) == (echo.VENDOR, {"_meta": TRACE, **MARK})

    in_loop(conversation)


def test_a_notification_outside_of_calls_reaches_no_one_where_principals_share_a_server() -> None:
    async def conversation() -> None:
        app = Server("shared")
        async with (
            Client(app, version=LATEST_SESSION_VERSION) as one,
            Client(app, version=LATEST_SESSION_VERSION) as other,
        ):
            for principal, expected in (("", 1), ("somebody else", 1)):
                next(iter(app.runtime.dispatchers)).principal = principal
                app.runtime.announcements.notify(echo.VENDOR, {}, is_heard_by_all=False)
                for client in (one, other):
                    await client.ping()
                    assert [each["method"] for each in client.notifications] == [echo.VENDOR] * expected

    in_loop(conversation)


@every_version
@pytest.mark.parametrize(("hop", "upstream"), [(hop, each) for hop in HOPS for each in ("stdio", "http")])
def test_a_cancellation_carries_its_reason(hop: str, upstream: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        async def heard() -> list[dict[str, Any]]:
            call = {"name": named("act"), "arguments": {"heard": True}}
            found: list[dict[str, Any]] = (await client.request("tools/call", call))["_meta"][echo.HEARD]
            return found

        call = {"name": named("act"), "arguments": {"wait": True}}
        waiting = asyncio.ensure_future(client.request("tools/call", call))
        await asyncio.sleep(0)
        [id] = client._stream.pending
        await heard()  # the call has come there
        said = {"reason": "changed my mind", "_meta": dict(TRACE), **MARK}
        client.notify(echo.CANCELLED, {"requestId": id, **said})
        while not (found := await heard()):
            pass
        waiting.cancel()
        params = found[0]["params"]
        assert found[0]["method"] == echo.CANCELLED
        assert type(params.pop("requestId")) is int
        assert params == said

    echo.heard.clear()
    through(hop, upstream, version, conversation)


@pytest.mark.parametrize("version", ["2025-06-18", LATEST_SESSION_VERSION])
@pytest.mark.parametrize("hop", HOPS)
def test_a_question_that_the_server_takes_back_is_cancelled_with_its_reason(hop: str, version: str) -> None:
    async def conversation(client: Client, named: Any) -> None:
        asked = asyncio.Event()

        async def never(params: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        client._handlers.answer = lambda method, params: never(params)  # type: ignore[method-assign]
        arguments = {"ask": True, "unask": True}
        call = {"name": named("act"), "arguments": arguments}
        waiting = asyncio.ensure_future(client.request("tools/call", call))
        await asked.wait()
        client.notify("notifications/x-vendor/go-on")
        cancelled = await eventually_in(client.notifications, echo.CANCELLED)
        assert cancelled["params"]["reason"] == "not needed"
        assert_marked(cancelled["params"])
        waiting.cancel()

    through("proxy" if hop == "guarded" else hop, "stdio", version, conversation, on_elicit={})


def test_an_error_with_which_a_client_answers_a_question_goes_on_unchanged() -> None:
    refusal = {"code": -1, "message": "rejected by the user", "data": {"x": 1}}

    async def conversation(client: Client, named: Any) -> None:
        async def refuse(method: str, params: dict[str, Any]) -> dict[str, Any]:
            raise RemoteError(refusal)

        client._handlers.answer = refuse  # type: ignore[method-assign]
        result = await client.request("tools/call", {"name": "act", "arguments": {"ask": True}})
        assert result["_meta"]["example.com/answer"] == refusal

    through("proxy", "stdio", LATEST_SESSION_VERSION, conversation, on_elicit={})


# --- processes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [VERSIONS[0], LATEST_SESSION_VERSION])
@pytest.mark.parametrize("upstream", ["http", "stateless"])
def test_a_bridge_carries_it_all(upstream: str, version: str) -> None:
    def conversation(url: str) -> None:
        with serve(command=[sys.executable, "-m", "fastrpc", "bridge", url]) as server:
            server.initialize(version)
            for name in ("tools/call", "prompts/get", "resources/read"):
                key = {"tools/call": "act", "prompts/get": "say"}.get(name)
                target = {"uri": URI} if key is None else {"name": key, "arguments": {}}
                result = server.request(name, {**target, **MORE, "_meta": TRACE})["result"]
                assert_carried(result["_meta"][GOT])
                assert_marked(result)

    async def run() -> None:
        async with UPSTREAMS[upstream]() as url:
            await asyncio.to_thread(conversation, url)

    asyncio.run(asyncio.wait_for(run(), SECONDS))
