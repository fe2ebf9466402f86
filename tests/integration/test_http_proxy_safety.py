"""The proxy of a URL keeps what opens the server to itself, and is not led astray by what it speaks to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support import certificates
from support.remote_server import TOKEN
from support.remote_server import Remote as Process
from support.scripted_plays import Stateless
from support.scripted_server import Asked, Saying, Scripted
from support.waiting import SECONDS

from fastrpc import DefinitionError, Server
from fastrpc.client.http import dialing, stateless, wire
from fastrpc.client.http.address import Remote
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client, RemoteError

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")


stateless_play = Stateless()


def run(coroutine: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 30))


async def failure_of(app: Server) -> str:
    """Return why an upstream server cannot be used, as the client sees it; the proxy itself must go on."""
    async with Client(app) as client:
        with pytest.raises(RemoteError) as failure:
            await client.tools()
        assert (await client.request("ping")) == {}
        return failure.value.message


# --- the token ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "requires a token; none was sent (status 401 Unauthorized)"),
        ({"token": "tok-of-somebody-else"}, "refuses the token (status 401 Unauthorized)"),
        ({"headers": {"Authorization": "Bearer tok-of-somebody-else"}}, "refuses the token"),
    ],
)
@pytest.mark.parametrize("protocol_version", [None, "2025-11-25"])
def test_a_token_that_is_missing_or_wrong_is_reported_without_it(
    shared_remote: Process,
    options: dict[str, Any],
    said: str,
    protocol_version: str | None,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    message = run(failure_of(Server.proxy(shared_remote.url, protocol_version=protocol_version, **options)))
    assert said in message
    for text in (message, caplog.text, *capfd.readouterr()):
        assert "somebody-else" not in text


def test_a_token_may_come_from_a_function_that_is_asked_each_time(shared_remote: Process) -> None:
    given = []

    def token() -> str:
        given.append(TOKEN)
        return TOKEN

    async def conversation() -> None:
        async with Client(Server.proxy(shared_remote.url, token=token)) as client:
            before = len(given)
            assert (await client.call("add", a=1)).text == "3"
            assert len(given) > before > 0

    run(conversation())


def test_what_the_server_says_of_the_token_is_masked() -> None:
    async def play(asked: Asked, say: Saying) -> None:
        error = {"code": -32600, "message": f"no such token: {asked.headers['authorization']}"}
        await say.answer(403, {"jsonrpc": "2.0", "id": None, "error": error})

    async def conversation() -> None:
        async with Scripted(play) as server:
            message = await failure_of(Server.proxy(server.url, token=TOKEN))
            assert "forbids the request (status 403 Said): no such token" in message
            assert TOKEN not in message

    run(conversation())

    async def later(asked: Asked, say: Saying) -> None:
        if asked.rpc == "tools/call":
            await say.error(asked, 400, -32602, f"{asked.headers['x-key']} {asked.headers['authorization']}")
        else:
            await stateless_play(asked, say)

    async def call() -> None:
        async with Scripted(later) as server:
            app = Server.proxy(server.url, token=TOKEN, headers={"X-Key": "key-of-somebody"})
            async with Client(app) as client:
                with pytest.raises(RemoteError) as error:
                    await client.call("one")
                assert error.value.message == "**** Bearer ****"

    run(call())


def test_an_address_is_shown_without_its_query(shared_remote: Process) -> None:
    async def conversation() -> None:
        message = await failure_of(Server.proxy(f"{shared_remote.url}?key=in-the-query", token="other"))
        assert shared_remote.url in message
        assert "in-the-query" not in message

    run(conversation())


def test_a_token_in_the_clear_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def conversation() -> None:
        for token, warned in ((None, False), (TOKEN, True)):
            caplog.clear()
            app = Server.proxy("http://mcp.invalid/mcp", token=token, start_seconds=5)
            assert "cannot be reached" in await failure_of(app)
            assert ("unencrypted" in caplog.text) is warned
            assert TOKEN not in caplog.text

    run(conversation())


@pytest.mark.parametrize(
    ("url", "options", "complaint"),
    [
        ("ftp://host/", {}, "http URL"),
        ("behind.py", {}, "http URL"),
        ("http://", {}, "with a host"),
        ("http://host:99999/", {}, "invalid"),
        ("http://name:secret-word@host/", {}, "a user name or a password"),
        ("http://host/a b", {}, "characters"),
        ("http://host/", {"token": "two secret-words"}, "printable ASCII without spaces"),
        ("http://host/", {"token": "secret-word\r\nX: y"}, "printable ASCII"),
        ("http://host/", {"token": 5}, "expected a str"),
        ("http://host/", {"headers": {"X Y": "z"}}, "not a valid header name"),
        ("http://host/", {"headers": {"X": "secret-word\r\n"}}, "printable ASCII"),
        ("http://host/", {"headers": {"Mcp-Session-Id": "z"}}, "is set by the protocol"),
        ("http://host/", {"headers": {"Content-Type": "z"}}, "is set by the protocol"),
        ("http://host/", {"headers": {"authorization": "z"}, "token": "t"}, "exclude each other"),
        ("http://host/", {"tls_ca": "/no/such/file"}, "/no/such/file': No such file"),
        ("http://host/", {"tls_ca": __file__}, "contains no certificate"),
        ("http://host/", {"protocol_version": "2020-01-01"}, "expected one of 2024-11-05"),
    ],
)
def test_a_mistake_is_reported_at_once_and_without_secrets(
    url: str, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(DefinitionError, match=complaint) as error:
        Server.proxy(url, **options)
    assert "secret-word" not in str(error.value)


def test_an_environments_proxy_is_used_but_not_for_servers_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def conversation() -> None:
        async with Scripted(stateless_play) as way_out, Scripted(stateless_play) as local:
            for name in ("http_proxy", "HTTP_PROXY"):
                monkeypatch.setenv(name, f"http://localhost:{way_out.port}")
            for name in ("no_proxy", "NO_PROXY"):
                monkeypatch.delenv(name, raising=False)
            async with Client(Server.proxy(local.url)) as client:
                assert (await client.call("one")).text == "said"
            assert way_out.requests == []
            async with Client(Server.proxy("http://mcp.invalid/mcp")) as client:
                assert (await client.call("one")).text == "said"
            assert {asked.path for asked in way_out.requests} == {"http://mcp.invalid/mcp"}

    run(conversation())


# --- where it leads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("protocol_version", [None, "2025-11-25"])
def test_no_one_else_is_shown_the_token_by_a_redirect(status: int, protocol_version: str | None) -> None:
    async def conversation() -> None:
        async with Scripted(stateless_play) as other:

            async def play(asked: Asked, say: Saying) -> None:
                await say.answer(status, location=f"http://127.0.0.1:{other.port}/mcp?a=b")

            async with Scripted(play) as server:
                message = await failure_of(
                    Server.proxy(server.url, token=TOKEN, protocol_version=protocol_version)
                )
                assert f"redirects to http://127.0.0.1:{other.port}/mcp, which is another origin" in message
                assert other.requests == []

    run(conversation())


def test_a_redirect_within_the_server_is_followed_and_remembered() -> None:
    async def play(asked: Asked, say: Saying) -> None:
        if asked.path == "/mcp":
            await say.answer(307, location="/mcp/")
        else:
            assert asked.headers["authorization"] == f"Bearer {TOKEN}"
            await stateless_play(asked, say)

    async def conversation() -> None:
        async with Scripted(play) as server, Client(Server.proxy(server.url, token=TOKEN)) as client:
            assert (await client.call("one")).text == "said"
            assert [asked.path for asked in server.requests] == ["/mcp", "/mcp/", "/mcp/", "/mcp/"]

    run(conversation())


def test_an_endpoint_of_another_origin_is_not_posted_to() -> None:
    async def conversation() -> None:
        async with Scripted(stateless_play) as other:

            async def play(asked: Asked, say: Saying) -> None:
                if asked.method == "GET":
                    await say.stream()
                    await say.send(f"event: endpoint\ndata: http://127.0.0.1:{other.port}/m\n\n".encode())
                else:
                    await say.answer(405)

            async with Scripted(play) as server:
                assert "status 405" in await failure_of(Server.proxy(server.url, token=TOKEN))
                assert other.requests == []

    run(conversation())


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    pytest.importorskip("cryptography.x509")
    return certificates.for_localhost(tmp_path_factory.mktemp("tls"), "127.0.0.2")


def test_a_certificate_without_a_known_issuer_is_refused_unless_it_is_trusted(
    certificate: tuple[str, str],
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    async def conversation() -> None:
        async with Scripted(stateless_play, context) as server:
            message = await failure_of(Server.proxy(server.url, token=TOKEN))
            assert "cannot be reached: its certificate is not trusted" in message
            assert server.requests == []
            async with Client(Server.proxy(server.url, token=TOKEN, tls_ca=certificate[0])) as client:
                assert (await client.call("one")).text == "said"
            wrong_name = server.url.replace("localhost", "127.0.0.1")
            message = await failure_of(Server.proxy(wrong_name, token=TOKEN, tls_ca=certificate[0]))
            assert "its certificate is not trusted" in message

    run(conversation())


# --- the other end ------------------------------------------------------------------------------------


def test_a_machine_that_is_switched_off_is_noticed_by_the_system() -> None:
    async def conversation() -> None:
        async with Scripted(stateless_play) as server:
            way = dialing.Route(Remote(server.url))
            connection = await way.dial(lambda _: None, lambda _: None)
            opened = connection.transport.get_extra_info("socket")
            assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 10
            connection.close()

    run(conversation())


# --- headers that tools ask for -----------------------------------------------------------------------

STRING = {"type": "string", "x-mcp-header": "Place"}
WRONG_MARKS: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": 5}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "My Place"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "Place:\r\nX"}}},
    {"properties": {"a": {"type": "string", "x-mcp-header": "Plätze"}}},
    {"properties": {"a": {"type": "number", "x-mcp-header": "Place"}}},
    {"properties": {"a": {"type": "null", "x-mcp-header": "Place"}}},
    {"properties": {"a": {"x-mcp-header": "Place"}}},
    {"properties": {"a": STRING, "b": {**STRING, "x-mcp-header": "pLACE"}}},
    {"properties": {"a": {"type": "array", "items": STRING}}},
    {"properties": {"a": {"anyOf": [STRING]}}},
    {"$defs": {"a": STRING}},
    {"x-mcp-header": "Place"},
]
RIGHT_MARKS: list[dict[str, Any]] = [
    {"properties": {"a": STRING, "b": {"type": ["integer", "null"], "x-mcp-header": "B"}}},
    {"properties": {"a": {"type": "object", "properties": {"b": STRING}}}},
    {"properties": {"x-mcp-header": {"type": "number"}}},
    {"properties": {"a": {"type": "object", "default": {"x-mcp-header": "5 6"}}}},
]


def test_a_tool_that_asks_for_headers_as_none_may_is_left_out_and_the_others_stay() -> None:
    """MCP 2026-07-28: a client MUST exclude such tools, and MUST keep the valid ones."""
    tools = [
        {"name": f"{kind}{number}", "inputSchema": {"type": "object", **schema}}
        for kind, schemas in (("wrong", WRONG_MARKS), ("right", RIGHT_MARKS))
        for number, schema in enumerate(schemas)
    ]

    async def play(asked: Asked, say: Saying) -> None:
        if asked.rpc == "tools/list":
            await say.result(asked, {"tools": tools})
        else:
            await stateless_play(asked, say)

    async def conversation() -> None:
        async with Scripted(play) as server, Client(Server.proxy(server.url)) as client:
            assert [entry["name"] for entry in await client.tools()] == [
                "right0",
                "right1",
                "right2",
                "right3",
            ]

    run(conversation())


# --- too much -----------------------------------------------------------------------------------------


async def _long_body(asked: Asked, say: Saying) -> None:
    await say.answer(200, b'{"x":"' + b"x" * 50_000 + b'"}', content_type="application/json")


async def _long_line(asked: Asked, say: Saying) -> None:
    await say.stream()
    for _ in range(50):
        await say.send(b"data: " + b"x" * 1000 if _ == 0 else b"x" * 1000)


async def _long_event(asked: Asked, say: Saying) -> None:
    await say.stream()
    for _ in range(50):
        await say.send(b"data: " + b"x" * 1000 + b"\n")


@pytest.mark.parametrize("play", [_long_body, _long_line, _long_event])
def test_what_has_no_end_is_not_kept(
    play: Callable[[Asked, Saying], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LONGEST_BODY", 20_000)
    monkeypatch.setattr(stateless, "LONGEST_BODY", 20_000)

    async def whole(asked: Asked, say: Saying) -> None:
        await (play if asked.rpc == "tools/call" else stateless_play)(asked, say)

    async def conversation() -> None:
        async with Scripted(whole) as server, Client(Server.proxy(server.url)) as client:
            result = await client.call("one")
            assert result.is_error
            assert "longer than 20000 bytes" in result.text

    run(conversation())


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_a_key_may_name_another_question_in_the_next_round(version: str) -> None:
    async def play(asked: Asked, say: Saying) -> None:
        if asked.rpc != "tools/call":
            await stateless_play(asked, say)
            return
        params = asked.message["params"]
        answers = [*params.get("requestState", "").split(), *_named(params.get("inputResponses", {}))]
        if len(answers) == 3:
            text = {"type": "text", "text": " ".join(answers)}
            await say.result(asked, {"content": [text], "resultType": "complete"})
            return
        form = {"type": "object", "properties": {"word": {"type": "string"}}}
        question = {"message": f"word {len(answers)}", "requestedSchema": form}
        requests = {"self": {"method": "elicitation/create", "params": question}}
        state = {"requestState": " ".join(answers)} if answers else {}
        await say.result(asked, {"resultType": "input_required", "inputRequests": requests, **state})

    def _named(responses: dict[str, Any]) -> list[str]:
        return [responses[key]["content"]["word"] for key in ("self",) if key in responses]

    async def conversation() -> None:
        words = iter(("one", "two", "three"))
        async with (
            Scripted(play) as server,
            Client(
                Server.proxy(server.url), version=version, on_elicit=lambda params: {"word": next(words)}
            ) as client,
        ):
            assert (await client.call("one")).text == "one two three"
            asked = [question["params"]["message"] for question in client.questions]
            assert asked == ["word 0", "word 1", "word 2"]

    run(conversation())


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "nonsense"}], "resultType": "complete"},
        {"content": "text", "resultType": "complete"},
        {"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call"}}},
        {"resultType": "input_required", "inputRequests": {"a": {}}},
        {"resultType": "input_required", "inputRequests": []},
        {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", "params": 5}}},
    ],
)
def test_a_result_without_sense_fails_its_call_alone(result: dict[str, Any]) -> None:
    async def play(asked: Asked, say: Saying) -> None:
        if asked.rpc == "tools/call" and "odd" in asked.message["params"]["arguments"]:
            await say.result(asked, result)
        else:
            await stateless_play(asked, say)

    async def conversation() -> None:
        async with Scripted(play) as server, Client(Server.proxy(server.url), roots=["file:///x"]) as client:
            for _ in range(2):
                try:
                    await asyncio.wait_for(client.call("one", odd=1), SECONDS)
                except RemoteError:
                    pass
                assert (await client.call("one")).text == "said"

    run(conversation())
