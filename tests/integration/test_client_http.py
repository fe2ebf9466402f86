"""The client of a server at a URL, in each version: the client finds out the version and the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from support.remote_server import TOKEN, Remote
from support.waiting import SECONDS, until

from fastrpc.client import Client
from fastrpc.errors import ConnectionLost, HttpStatusError, RemoteError, RequestTimeout
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

SPOKEN = [None, "2025-11-25", "2025-06-18", "2025-03-26", "sse"]
"""The latest version, each of Streamable HTTP with sessions, and HTTP+SSE."""
each_version = pytest.mark.parametrize("spoken", SPOKEN)
each_transport = pytest.mark.parametrize("spoken", [None, "2025-11-25", "sse"])


def client_of(remote: Remote, spoken: str | None = None, **options: Any) -> Client:
    url = remote.url
    if spoken == "sse":
        url, spoken = url.replace("/mcp", "/sse"), None
    return Client(url, version=spoken, **{"token": TOKEN, **options})


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, SECONDS))


# --- what passes ----------------------------------------------------------------------------------------


@each_version
def test_every_feature_works_in_each_version(shared_remote: Remote, spoken: str | None) -> None:
    async def conversation() -> None:
        logs: list[Any] = []
        async with client_of(shared_remote, spoken, on_log=logs.append, log_level="info") as client:
            assert client.version == {None: STATELESS, "sse": LATEST_SESSION_VERSION}.get(spoken, spoken)
            assert client.server_info["name"] == "behind"
            assert client.instructions == "use it well"
            await client.ping()
            assert {"add", "work"} <= {tool.name for tool in await client.list_tools()}
            assert (await client.call_tool("add", {"a": 1})).text == "3"
            assert await client.call_tool("add", {"a": 1}, as_type=int) == 3
            assert (await client.call_tool("fail")).is_error
            assert [each.uri for each in await client.list_resources()] == ["docs://guide"]
            assert (await client.read_resource("docs://guide")).text == "# read me"
            assert (await client.read_resource("docs://7/raw?page=3")).data == b"7 3"
            assert [each.uriTemplate for each in await client.list_resource_templates()]
            with pytest.raises(RemoteError):
                await client.read_resource("docs://nothing")
            assert {"review", "höflich"} <= {prompt.name for prompt in await client.list_prompts()}
            got = await client.get_prompt("höflich")  # its name is in a header
            assert got.messages[0]["content"]["text"] == "bitte"
            assert (await client.complete("review", "language", "pe")).values == ["perl"]
            reports: list[Any] = []
            await client.call_tool("work", on_progress=reports.append)
            assert [report["progress"] for report in reports] == [1, 2]
            assert [entry["data"] for entry in logs] == ["careful"]

    run(conversation())


@pytest.mark.parametrize("spoken", [None, "2025-11-25", "2025-06-18"])
def test_the_servers_questions_are_answered(shared_remote: Remote, spoken: str | None) -> None:
    async def conversation() -> None:
        asked: list[Any] = []

        async def elicit(params: dict[str, Any]) -> dict[str, Any]:
            asked.append(params["message"])
            await asyncio.sleep(0)
            return {"value": "Bob"}

        options = {"on_elicit": elicit, "on_sample": "hello", "roots": ["file:///work"]}
        async with client_of(shared_remote, spoken, **options) as client:
            assert (await client.call_tool("ask")).text == "accept Bob, hello"
            assert (await client.call_tool("folders")).text == "file:///work"
            assert asked == ["your name?"]

    run(conversation())


@each_transport
def test_cancelling_the_await_cancels_the_call(
    shared_remote: Remote, spoken: str | None, tmp_path: Any
) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation() -> None:
        async with client_of(shared_remote, spoken) as client:
            call = asyncio.ensure_future(client.call_tool("sleep", {"path": str(path)}))
            await until(begun.exists)
            assert not path.exists()
            call.cancel()
            await until(path.exists)
            assert (await client.call_tool("add", {"a": 1})).text == "3"

    run(conversation())


@each_transport
def test_a_call_whose_time_is_up_is_cancelled(
    shared_remote: Remote, spoken: str | None, tmp_path: Any
) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation() -> None:
        async with client_of(shared_remote, spoken) as client:
            for limit in (0.5, 5.0, 30.0):  # it must begin, which takes long on a busy machine
                with pytest.raises(RequestTimeout):
                    await client.call_tool("sleep", {"path": str(path)}, timeout_seconds=limit)
                if begun.exists():
                    break
            await until(path.exists)
            assert (await client.call_tool("add", {"a": 1})).text == "3"

    run(conversation())


@each_transport
def test_changes_are_heard(own_remote: Remote, spoken: str | None) -> None:
    async def conversation() -> None:
        async with client_of(own_remote, spoken) as client:
            async with client.listen(tools=True, uris=["docs://guide"]) as changes:
                await client.call_tool("grow", {"name": "late"})
                assert (await changes.next())["method"] == "notifications/tools/list_changed"
                await client.call_tool("touch")
                assert (await changes.next())["params"]["uri"] == "docs://guide"
            assert "late" in {tool.name for tool in await client.list_tools()}
            assert (await client.call_tool("late")).text == "I am late"

    run(conversation())


@each_transport
def test_calls_run_at_the_same_time_and_each_gets_its_answer(
    shared_remote: Remote, spoken: str | None
) -> None:
    async def conversation() -> None:
        async with client_of(shared_remote, spoken) as client:
            results = await asyncio.gather(*(client.call_tool("add", {"a": n}) for n in range(100)))
            assert [result.text for result in results] == [str(n + 2) for n in range(100)]

    run(conversation())


def test_a_stream_that_the_server_lets_go_is_resumed(shared_remote: Remote) -> None:
    async def conversation() -> None:
        logs: list[Any] = []
        async with client_of(shared_remote, "2025-11-25", on_log=logs.append, log_level="info") as client:
            assert (await client.call_tool("part")).text == "whole"
            assert [entry["data"] for entry in logs] == ["before", "after"]

    run(conversation())


@pytest.mark.parametrize("lists", [True, False])
def test_arguments_that_a_tool_wants_in_headers_are_sent_there(shared_remote: Remote, lists: bool) -> None:
    """The server refuses a call whose headers differ from its arguments; then the tools are listed."""

    async def conversation() -> None:
        async with client_of(shared_remote) as client:
            if lists:
                await client.list_tools()
            for region in ("eu", " eu", "München", "=?base64?eu?=", "", "a\nb"):
                arguments = {"region": region, "count": -3, "fast": False}
                result = await client.call_tool("marked", arguments)
                assert result.text == repr(sorted(arguments.items()))

    run(conversation())


@pytest.mark.parametrize("spoken", [None, "2025-11-25"])
def test_the_form_without_a_loop_does_the_same(shared_remote: Remote, spoken: str | None) -> None:
    options: dict[str, Any] = {"on_elicit": {"value": "Bob"}, "on_sample": "hello"}
    with Client.sync(shared_remote.url, token=TOKEN, version=spoken, **options) as client:
        assert client.call_tool("add", {"a": 1}).text == "3"
        assert client.call_tool("ask").text == "accept Bob, hello"
        assert "add" in {tool.name for tool in client.iter_tools()}
        assert client.call_tool("marked", {"count": 1}).text == "[('count', 1)]"
        reports: list[Any] = []
        client.call_tool("work", on_progress=reports.append)
        assert [report["progress"] for report in reports] == [1, 2]
        with pytest.raises(RequestTimeout):
            client.call_tool("wait", {"ms": 100_000}, timeout_seconds=0.2)
        assert client.call_tool("add", {"a": 2}).text == "4"


# --- the server goes away and comes back ----------------------------------------------------------------


@each_transport
@pytest.mark.parametrize("restart", [True, False])
def test_a_server_that_was_away_is_reached_again(
    own_remote: Remote, spoken: str | None, restart: bool
) -> None:
    async def conversation() -> None:
        async with client_of(own_remote, spoken, restart=restart) as client:
            with pytest.raises(ConnectionLost) as crash:
                await client.call_tool("crash")
            assert TOKEN not in str(crash.value)
            own_remote.stop()
            with pytest.raises(ConnectionLost):
                await client.call_tool("add", {"a": 1})
            await asyncio.get_running_loop().run_in_executor(None, own_remote.start)
            if restart or spoken is None:  # a session of its own is gone with the server
                assert (await client.call_tool("add", {"a": 1})).text == "3"
                assert (await client.read_resource("docs://guide")).text == "# read me"
            else:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("add", {"a": 1})

    run(conversation())


@each_transport
def test_calls_in_flight_fail_when_the_client_is_closed(
    shared_remote: Remote, spoken: str | None, tmp_path: Any
) -> None:
    async def conversation() -> None:
        client = client_of(shared_remote, spoken)
        await client.connect()
        call = asyncio.ensure_future(client.call_tool("sleep", {"path": str(tmp_path / "note")}))
        await until((tmp_path / "note.begun").exists)
        await client.close()
        with pytest.raises(ConnectionLost):
            await call
        await client.close()

    run(conversation())


# --- the token, and what is wrong at once ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"token": None}, "requires a token; none was sent (status 401"),
        ({"token": "tok-of-somebody-else"}, "refuses the token (status 401"),
        ({"token": None, "headers": {"Authorization": "Bearer tok-of-somebody-else"}}, "refuses the token"),
    ],
)
@each_version
def test_a_token_that_is_missing_or_wrong_is_reported_without_it(
    shared_remote: Remote, spoken: str | None, options: dict[str, Any], said: str
) -> None:
    async def conversation() -> None:
        with pytest.raises(HttpStatusError) as refusal:
            await client_of(shared_remote, spoken, **options).connect()
        assert said in str(refusal.value)
        assert refusal.value.status == 401
        assert "somebody-else" not in str(refusal.value)

    run(conversation())


def test_a_token_may_come_from_a_function_that_is_asked_each_time(shared_remote: Remote) -> None:
    given = []

    def token() -> str:
        given.append(TOKEN)
        return TOKEN

    async def conversation() -> None:
        async with client_of(shared_remote, token=token) as client:
            before = len(given)
            assert (await client.call_tool("add", {"a": 1})).text == "3"
            assert len(given) == before + 1

    run(conversation())


@pytest.mark.parametrize(
    ("url", "options", "error", "complaint"),
    [
        ("ftp://host/", {}, TypeError, "expected a command"),
        ("http://", {}, ValueError, "with a host"),
        ("http://name:secret-word@host/", {}, ValueError, "a user name or a password"),
        ("http://host/", {"token": "two secret-words"}, ValueError, "without spaces"),
        ("http://host/", {"headers": {"Mcp-Session-Id": "z"}}, ValueError, "is set by the protocol"),
        ("http://host/", {"headers": {"X": "secret-word\r\n"}}, ValueError, "printable ASCII"),
        ("http://host/", {"tls_ca": "/no/such/file"}, ValueError, "No such file"),
        ("http://host/", {"cwd": "/"}, TypeError, "those of a URL are auth, headers, tls_ca, token"),
        (["python"], {"token": "secret-word"}, TypeError, "those of a command are"),
        (["python", 1], {}, ValueError, r"expected a command, a list of str, got \['python', 1\]"),
        ([["python"], "x"], {}, ValueError, "expected a command, a list of str, got"),
        ((None,), {}, ValueError, "expected a command, a list of str, got"),
        ([], {}, ValueError, r"expected a command, a list of str, got \[\]"),
    ],
)
def test_a_mistake_is_reported_at_once_and_without_secrets(
    url: Any, options: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint) as told:
        Client(url, **options)
    assert "secret-word" not in str(told.value)
