"""The official MCP client for Python talks to a real server over HTTP: what it does over a pipe, and more.

The sessions are those of `test_official_client`, word for word, over Streamable HTTP and over HTTP+SSE, in
every version and with a token. What only HTTP has is here: tokens, streams that break and are taken up
again. The recorder sees each message and holds it against the schema.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import test_agent_clients as agents
import test_official_client as piped
from support import chromium
from support.features import FEATURES
from support.official_client import ServedHttp, recording_client, serve_http
from support.protocol import SESSION_VERSIONS, STATELESS
from support.waiting import until
from test_official_client import SERVER, connecting, each_version, run
from test_typescript_client import PLAIN

mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
if not hasattr(mcp, "Client"):
    pytest.skip("this version of the official client has no high-level Client", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore:.* as of 2026-07-28")  # what we test is what it deprecates

SECONDS = {"timeout": 60.0}

WALKING = '''
import asyncio

from fastrpc import Context, Server

app = Server("walking")


@app.tool
async def walk(ctx: Context, leave: bool = False) -> str:
    """Say each step; with `leave`, have the client come back for the rest after the second one."""
    for step in range(1, 6):
        ctx.info(f"step {step}")
        if leave and step == 2:
            ctx.close_stream()
        await asyncio.sleep(0.02)
    return "arrived"
'''

TRANSPORTS = ("http", "sse")


# --- the sessions that are led over a pipe too ---

test_the_server_is_described = piped.test_the_server_is_described_with_what_a_version_knows
test_tools_have_the_results_that_a_version_knows = piped.test_tools_have_the_results_that_a_version_knows
test_progress_comes_in_its_order = piped.test_progress_comes_in_its_order
test_resources_are_listed_and_read = piped.test_resources_are_listed_and_read
test_prompts_and_arguments = piped.test_prompts_are_filled_in_and_arguments_completed
test_log_messages_come_from_the_level = piped.test_log_messages_come_from_the_level_that_was_asked_for
test_a_request_without_a_level_brings_none = piped.test_a_request_without_a_level_brings_no_log_messages
test_the_client_is_asked = piped.test_the_client_is_asked
test_prompts_and_resources_ask_too = piped.test_prompts_and_resources_ask_too_and_several_things_at_once
test_lists_come_in_pages = piped.test_lists_come_in_pages_and_say_for_how_long_they_hold
test_a_client_that_cannot_be_asked_is_not = piped.test_a_client_that_cannot_be_asked_is_not
test_changes_are_reported = piped.test_changes_are_reported
test_what_the_newest_version_has_no_more = piped.test_what_the_newest_version_has_no_more_is_refused
test_what_a_server_has_not = piped.test_what_a_server_has_not_is_neither_promised_nor_served
test_the_handshake_lists_and_calls = piped.test_the_handshake_lists_and_calls
test_progress_and_many_calls_at_once = piped.test_progress_and_many_calls_at_once
test_a_call_given_up_leaves_the_session = piped.test_a_call_that_the_client_gives_up_leaves_the_session_usable

ALTERING = ("test_changes_are_reported", "test_prompts_and_resources_ask_too")
"""Tests after which a server is not what it was: each has a separate one."""


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], ServedHttp]]:
    """Returns the server of a source; it serves all tests of this file."""
    with contextlib.ExitStack() as running:
        known: dict[str, ServedHttp] = {}

        def server_of(source: str) -> ServedHttp:
            if source not in known:
                known[source] = running.enter_context(serve_http(source))
            return known[source]

        yield server_of


@pytest.fixture(params=TRANSPORTS)
def transport_to(request: pytest.FixtureRequest, servers: Any, recorder: Any) -> Iterator[Callable[..., Any]]:
    """Returns how to make the client's transport to the server of a source."""
    with contextlib.ExitStack() as own:

        def to(source: str, **options: Any) -> Any:
            altering = request.node.originalname in ALTERING
            server = own.enter_context(serve_http(source)) if altering else servers(source)
            return transport(request.param, server, recorder, **options)

        yield to


def transport(kind: str, server: ServedHttp, recorder: Any, **options: Any) -> Any:
    """Return one transport of the official client's; `options` are the HTTP client's."""
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    options = {"headers": server.headers, **options}

    @contextlib.asynccontextmanager
    async def streamable() -> AsyncIterator[Any]:
        async with (
            recording_client(recorder, "streamable HTTP", **SECONDS, **options) as http,
            streamable_http_client(server.url, http_client=http) as streams,
        ):
            yield streams

    if kind == "http":
        return streamable()

    def factory(**given: Any) -> Any:
        return recording_client(recorder, "HTTP+SSE", **given, **options)

    make: Any = factory
    return sse_client(server.sse_url, headers=options.pop("headers"), httpx_client_factory=make)


@pytest.fixture
def connect(transport_to: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns how to connect to the server of all features, in one version."""
    return connecting(transport_to, monkeypatch)


@pytest.fixture
def parameters(transport_to: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the sessions without a version connect to; they are led over HTTP."""

    def in_session(parameters: Any, conversation: Any) -> None:
        async def run() -> None:
            async with parameters as streams, mcp.ClientSession(*streams) as session:
                await conversation(session)

        asyncio.run(asyncio.wait_for(run(), 90))

    monkeypatch.setattr(piped, "in_session", in_session)
    return transport_to(SERVER)


# --- several workers ---


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_two_workers_serve_as_one(kind: str, recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections go to either of them, whichever keeps the session; it is all there."""
    with serve_http(FEATURES, "--workers", "2") as server:
        connect = connecting(lambda source: transport(kind, server, recorder), monkeypatch)
        for version in (SESSION_VERSIONS[0], SESSION_VERSIONS[-1], STATELESS):
            piped.test_progress_comes_in_its_order(connect, version)
            piped.test_log_messages_come_from_the_level_that_was_asked_for(connect, version)
            piped.test_the_client_is_asked(connect, version)
            piped.test_prompts_are_filled_in_and_arguments_completed(connect, version)


# --- what ends ---


@each_version
def test_a_call_that_is_given_up_ends_on_the_server_too(connect: Any, version: str) -> None:
    async def conversation() -> None:
        async with connect(version, PLAIN) as client:

            async def count(tool: str) -> int:
                return int((await client.call_tool(tool, {})).content[0].text)

            async def reached(tool: str, number: int) -> None:
                while await count(tool) != number:
                    await asyncio.sleep(0.01)

            before = await count("begun"), await count("cancelled")
            call = asyncio.ensure_future(client.call_tool("endless", {}))
            await reached("begun", before[0] + 1)
            assert await count("cancelled") == before[1]
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await reached("cancelled", before[1] + 1)
            assert (await client.call_tool("echo", {"text": "still here"})).content[0].text == "still here"

    run(conversation())


@each_version
def test_a_subscription_holds_until_it_is_ended(connect: Any, version: str) -> None:
    told: list[str] = []

    async def on_message(message: Any) -> None:
        told.append(type(message).__name__)

    async def conversation() -> None:
        async with connect(version, PLAIN, message_handler=on_message) as client:
            await client.call_tool("touch", {})
            if version == STATELESS:
                async with client.listen(resource_subscriptions=["docs://guide"]) as changes:
                    await client.call_tool("touch", {})
                    assert (await anext(changes)).uri == "docs://guide"
                for _ in range(2):  # over HTTP+SSE the client sends the first before the subscription's end
                    await client.call_tool("echo", {"text": "between"})
            else:
                await client.subscribe_resource("docs://guide")
                await client.call_tool("touch", {})
                await until(lambda: told == ["ResourceUpdatedNotification"])
                await client.unsubscribe_resource("docs://guide")
            await client.call_tool("touch", {})
            await client.call_tool("echo", {"text": "after"})
            await asyncio.sleep(0.05)
            assert told == ["ResourceUpdatedNotification"]

    run(conversation())


def test_a_session_that_the_client_has_ended_is_gone(servers: Any, recorder: Any) -> None:
    """The client sends DELETE when it closes; what was its session is then unknown."""
    import httpx2

    seen: list[tuple[str, str, int]] = []

    async def on_response(response: Any) -> None:
        session = response.request.headers.get("mcp-session-id", "")
        seen.append((response.request.method, session, response.status_code))

    async def conversation() -> None:
        server = servers(SERVER)
        hooks = {"response": [on_response]}
        streams = transport("http", server, recorder, event_hooks=hooks)
        async with mcp.Client(streams, mode="legacy", cache=None) as client:
            await client.list_tools()
        method, session, status = seen[-1]
        assert (method, status) == ("DELETE", 200)
        headers = {**server.headers, "mcp-session-id": session, "accept": "text/event-stream"}
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(server.url, headers=headers)).status_code == 404

    run(conversation())


# --- who may come in ---


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer another"}], ids=["none", "another"])
def test_without_the_token_there_is_no_session(kind: str, headers: Any, servers: Any, recorder: Any) -> None:
    statuses: list[int] = []

    async def on_response(response: Any) -> None:
        statuses.append(response.status_code)

    async def conversation() -> None:
        hooks = {"response": [on_response]}
        streams = transport(kind, servers(SERVER), recorder, headers=headers, event_hooks=hooks)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - HTTP+SSE: a group of errors
            async with mcp.Client(streams, mode="legacy", cache=None):
                raise AssertionError("it came in")
        assert not isinstance(caught.value, AssertionError)
        assert statuses == [401]

    run(conversation())


class Storage:
    """Keeps what an authorization server hands out; there is none."""

    async def get_tokens(self) -> None:
        return None

    async def get_client_info(self) -> None:
        return None


def test_a_client_that_signs_in_by_itself_learns_what_is_needed(servers: Any) -> None:
    """It finds no metadata, tries to register at this server, and shows what that has answered."""
    import httpx2
    from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
    from mcp.shared.auth import OAuthClientMetadata

    async def conversation() -> None:
        server = servers(SERVER)
        metadata = OAuthClientMetadata.model_validate({"redirect_uris": ["http://localhost:1/back"]})
        provider = OAuthClientProvider(server.url, metadata, Storage())  # type: ignore[arg-type]
        async with httpx2.AsyncClient(trust_env=False, auth=provider) as http:
            with pytest.raises(OAuthRegistrationError, match=r"404.*a token that its operator gives out"):
                await http.post(server.url, json={})

    run(conversation())


# --- streams that break ---


def cutting(http: Any, steps: list[int]) -> None:
    """Have an answer's stream break behind the event that tells of one of `steps`, once for each.

    The first breaks with an error, a later one just ends: at an error the client forgets what it had got of a
    stream that it had taken up before.
    """
    import httpx2

    inner = http._transport
    most = len(steps)

    class Cut(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._stream:
                found = re.search(rb"step %d.*?\n\n" % steps[0], part, re.DOTALL) if steps else None
                yield part[: found.end()] if found else part
                if found and len(steps) < most:
                    steps.pop(0)
                    return
                if found:
                    steps.pop(0)
                    raise httpx2.ReadError("cut by the test")

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Cutting(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            response = await inner.handle_async_request(request)
            response.stream = Cut(response.stream)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

    http._transport = Cutting()


@pytest.fixture
def walk(servers: Any, recorder: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns how to call `walk` in a version: what is heard, the result's text, how often it was resumed."""
    from mcp.client import session
    from mcp.client.streamable_http import streamable_http_client

    async def walked(version: str, cuts: list[int], **arguments: Any) -> tuple[list[str], Any, int]:
        monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", version)
        server = servers(WALKING)
        heard: list[str] = []
        resumed: list[str] = []

        async def on_log(params: Any) -> None:
            heard.append(params.data)

        async def on_request(request: Any) -> None:
            resumed.extend(request.headers.get_list("last-event-id"))

        options = {"headers": server.headers, "event_hooks": {"request": [on_request]}, **SECONDS}
        async with recording_client(recorder, "walk", **options) as http:
            cutting(http, cuts)
            streams = streamable_http_client(server.url, http_client=http)
            async with mcp.Client(streams, mode="legacy", cache=None, logging_callback=on_log) as client:
                await client.set_logging_level("info")
                result = await client.call_tool("walk", arguments)
                await until(lambda: len(heard) >= 5)
                await client.send_ping()
        return heard, result.content[0].text, len(resumed)

    return walked


STEPS = [f"step {number}" for number in range(1, 6)]
RESUMING = SESSION_VERSIONS[1:]


@pytest.mark.parametrize("version", RESUMING)
def test_a_stream_that_breaks_is_taken_up_where_it_broke(walk: Any, version: str) -> None:
    """Twice: the POST's own stream, and the one that takes its place. Nothing is lost or told twice."""

    async def conversation() -> None:
        cuts = [2, 4]
        assert await walk(version, cuts) == (STEPS, "arrived", 2)
        assert cuts == []

    run(conversation())


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_client_that_is_sent_away_comes_back_for_the_rest(walk: Any, version: str) -> None:
    """Only 2025-11-25 has that; for the others the stream goes on."""

    async def conversation() -> None:
        resumed = 1 if version == SESSION_VERSIONS[-1] else 0
        assert await walk(version, [], leave=True) == (STEPS, "arrived", resumed)

    run(conversation())


def test_a_request_is_resumed_by_its_token(servers: Any, recorder: Any) -> None:
    """The client's own interface for that: a new request in the session takes up the old one's stream."""
    from mcp import types
    from mcp.shared.message import ClientMessageMetadata

    async def conversation() -> None:
        heard: list[str] = []
        tokens: list[str] = []
        two = asyncio.Event()

        async def on_log(params: Any) -> None:
            heard.append(params.data)
            if params.data == "step 2":
                two.set()

        async def on_token(token: str) -> None:
            tokens.append(token)

        options = {"mode": "legacy", "cache": None, "logging_callback": on_log}
        async with mcp.Client(transport("http", servers(WALKING), recorder), **options) as client:
            await client.set_logging_level("info")
            request = types.CallToolRequest(params=types.CallToolRequestParams(name="walk", arguments={}))

            def send(**metadata: Any) -> Any:
                data = ClientMessageMetadata(on_resumption_token_update=on_token, **metadata)
                return client.session.send_request(request, types.CallToolResult, metadata=data)

            first = asyncio.ensure_future(send())
            await two.wait()
            token = tokens[heard.index("step 2") - len(heard)]
            heard.clear()
            again = await send(resumption_token=token)
            assert again.content[0].text == "arrived"
            first.cancel()
            assert "step 5" in heard

    run(conversation())


# --- the agent's tools ---

agent_session = agents.session


@pytest.mark.parametrize("version", [SESSION_VERSIONS[-1]])
def test_the_agents_tools_are_served_over_http(
    version: str, agent_session: dict[str, Any], recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp.client import session

    chromium.need(whole=True)
    came: dict[str, Any] = {"asked": [], "logs": [], "results": []}
    plain = agents.plain

    async def on_elicit(context: Any, params: Any) -> Any:
        came["asked"].append(plain(params))
        return mcp.types.ElicitResult(action="accept", content=agent_session["answer"])

    async def on_log(params: Any) -> None:
        came["logs"].append(plain(params))

    async def conversation(server: ServedHttp) -> None:
        options = {"elicitation_callback": on_elicit, "logging_callback": on_log, "cache": None}
        async with mcp.Client(transport("http", server, recorder), mode="legacy", **options) as client:
            assert client.protocol_version == version
            await client.set_logging_level("info")
            came["tools"] = [plain(tool) for tool in (await client.list_tools()).tools]
            for step in agent_session["calls"]:
                came["results"].append(await agents.result_of(client, step))

    monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", version)
    # Over HTTP the tools may fetch public addresses only; the test's pages are on the loopback address.
    # Chromium has no sandbox for root, which tests in a container run as; only here is that let pass.
    allowed = {"FASTRPC_REACH": "127.0.0.0/8", "FASTRPC_BROWSER_SANDBOX": "0"}
    environment = {**agent_session["environment"], **allowed}
    with serve_http(None, environment=environment, folder=agent_session["cwd"]) as server:
        asyncio.run(asyncio.wait_for(conversation(server), 90))
    agents.check(agent_session, came, version)


def test_no_session_that_is_led_over_a_pipe_is_left_out() -> None:
    led = {value for name, value in globals().items() if name.startswith("test_")}
    there = {value for name, value in vars(piped).items() if name.startswith("test_")}
    # Its negotiation is what `connect` does here, in each session of the newest version.
    assert there - led == {piped.test_the_high_level_client_negotiates_the_newest_version}
