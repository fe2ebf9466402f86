"""The in-memory client: every feature from its side; one test reads the same in each version."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from fastrpc import Context, Server, ToolError
from fastrpc.errors import ConnectionLost, FastrpcError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError

OLDEST, SECOND, THIRD, FOURTH = SESSION_VERSIONS


@dataclass
class Person:
    name: str
    age: int = 1


def everything() -> Server:
    """A server that has one of each feature."""
    app = Server("all", version="3", page_size=2)

    @app.tool
    async def steps(count: int, ctx: Context) -> str:
        for step in range(count):
            await ctx.progress(step + 1, total=count)
        return "done"

    @app.tool
    def noisy(ctx: Context) -> None:
        ctx.debug("quiet")
        ctx.error("loud", logger="tests")

    @app.tool
    async def who(ctx: Context) -> str:
        answer = await ctx.elicit("Who are you?", Person)
        return f"{answer.data.name} is {answer.data.age}" if answer.accepted else answer.action

    @app.tool
    async def think(ctx: Context) -> str:
        return str((await ctx.sample("What now?", max_tokens=9)).text)

    @app.tool
    async def where(ctx: Context) -> list[str]:
        return [root["uri"] for root in await ctx.roots()]

    @app.tool
    async def both(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Person)
        thought = await ctx.sample(f"Think of {answer.data.name}")
        return f"{answer.data.name}: {thought.text}"

    @app.tool
    def grow() -> None:
        app.add_tool(lambda: "new", name="grown")

    @app.tool
    def touch() -> None:
        app.resource_updated("docs://guide")

    @app.resource("docs://guide")
    def guide() -> str:
        return "The guide"

    @app.resource("docs://logo")
    def logo() -> bytes:
        return b"\x89PNG"

    @app.resource("docs://third")
    def third() -> str:
        return "3"

    @app.resource("notes://{id}")
    def note(id: int) -> str:
        return f"note {id}"

    @app.prompt
    def review(language: Literal["python", "rust"], lines: int = 1) -> str:
        return f"Review {lines} lines of {language}"

    return app


def with_client(conversation: Any, app: Server | None = None, **options: Any) -> None:
    async def run() -> None:
        async with Client(app or everything(), **options) as client:
            await conversation(client)

    asyncio.run(asyncio.wait_for(run(), 60))


each_version = pytest.mark.parametrize("version", VERSIONS)


# --- lists and what is behind them --------------------------------------------------------------------


@each_version
def test_lists_are_walked_to_their_end(version: str) -> None:
    async def conversation(client: Client) -> None:
        assert [tool["name"] for tool in await client.tools()][:3] == ["steps", "noisy", "who"]
        assert len(await client.tools()) == 8
        addresses = [resource["uri"] for resource in await client.resources()]
        assert addresses == ["docs://guide", "docs://logo", "docs://third"]
        assert [template["uriTemplate"] for template in await client.templates()] == ["notes://{id}"]
        assert [prompt["name"] for prompt in await client.prompts()] == ["review"]

    with_client(conversation, version=version)


@each_version
def test_resources_are_read(version: str) -> None:
    async def conversation(client: Client) -> None:
        guide = await client.read("docs://guide")
        assert (guide.text, guide.data) == ("The guide", b"")
        assert guide.contents[0]["uri"] == "docs://guide"
        logo = await client.read("docs://logo")
        assert (logo.text, logo.data) == ("", b"\x89PNG")
        assert base64.b64decode(logo.contents[0]["blob"]) == b"\x89PNG"
        assert (await client.read("notes://7")).text == "note 7"
        with pytest.raises(RemoteError) as caught:
            await client.read("docs://nowhere")
        assert caught.value.code == (-32602 if version == STATELESS else -32002)

    with_client(conversation, version=version)


@each_version
def test_prompts_are_filled_in_and_their_arguments_completed(version: str) -> None:
    async def conversation(client: Client) -> None:
        prompt = await client.prompt("review", language="rust", lines=3)
        assert prompt.text == "Review 3 lines of rust"
        assert prompt.messages[0]["role"] == "user"
        completion = await client.complete("review", "language", "p")
        assert completion.values == ["python"]
        assert not completion.has_more
        with pytest.raises(RemoteError):
            await client.prompt("nobody")

    with_client(conversation, version=version)


# --- what a server says by itself ---------------------------------------------------------------------


@each_version
def test_progress_comes_to_the_call_and_to_the_list(version: str) -> None:
    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        await client.call("steps", reports.append, count=1)
        assert [report["progress"] for report in reports] == [1]
        assert client.progress == reports

    with_client(conversation, version=version)


@each_version
def test_logs_come_from_the_level_that_was_set(version: str) -> None:
    async def conversation(client: Client) -> None:
        await client.call("noisy")
        assert [log["data"] for log in client.logs] == ["loud"]
        assert client.logs[0]["logger"] == "tests"
        await client.set_level("debug")
        await client.call("noisy")
        assert [log["data"] for log in client.logs[1:]] == ["quiet", "loud"]

    with_client(conversation, version=version, log_level="warning")


@each_version
def test_a_changed_list_is_heard_of(version: str) -> None:
    async def conversation(client: Client) -> None:
        async with client.listen(tools=True) as changes:
            assert changes.honoured == {"toolsListChanged": True}
            await client.call("grow")
            assert (await changes.next())["method"] == "notifications/tools/list_changed"
            assert "grown" in [tool["name"] for tool in await client.tools()]
            assert len(changes.changes) == 1
            with pytest.raises(TimeoutError):
                await changes.next(0.01)
        assert client.listening == []

    with_client(conversation, version=version)


@each_version
def test_a_changed_resource_is_heard_of_while_subscribed(version: str) -> None:
    async def conversation(client: Client) -> None:
        async with client.listen(uris=["docs://guide"]) as changes:
            await client.call("touch")
            assert (await changes.next())["params"]["uri"] == "docs://guide"
        await client.call("touch")
        await client.subscribe("docs://guide")
        await client.call("touch")
        await client.unsubscribe("docs://guide")
        await client.call("touch")
        updates = [m for m in client.notifications if m["method"] == "notifications/resources/updated"]
        assert len(updates) == 2

    with_client(conversation, version=version)


def test_a_stream_that_the_server_ends_is_at_its_end() -> None:
    app = everything()

    async def conversation(client: Client) -> None:
        async with client.listen(tools=True) as changes:
            for dispatcher in list(app.runtime.dispatchers):
                dispatcher.changes.end_listening()
            assert [change async for change in changes] == []
            assert changes.end is not None
            assert changes.end["resultType"] == "complete"

    with_client(conversation, app, version=STATELESS)


# --- what a server asks -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [THIRD, FOURTH, STATELESS])
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"name": "Ann", "age": 3}, "Ann is 3"),
        (lambda params: {"name": params["message"], "age": 2}, "Who are you? is 2"),
        (False, "decline"),
        (None, "cancel"),
        ("cancel", "cancel"),
    ],
)
def test_a_form_is_filled_in(version: str, answer: Any, text: str) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("who")
        assert result.text == text
        assert [question["method"] for question in client.questions] == ["elicitation/create"]

    on_elicit = answer if answer is not None else (lambda params: None)
    with_client(conversation, version=version, on_elicit=on_elicit)


@each_version
def test_a_model_is_asked(version: str) -> None:
    async def think(params: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        assert params["maxTokens"] == 9
        return "Nothing"

    async def conversation(client: Client) -> None:
        assert (await client.call("think")).text == "Nothing"

    with_client(conversation, version=version, on_sample=think)


@each_version
def test_the_folders_are_asked_for_and_may_change(version: str) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("where")).content[0]["text"].count("file:///a") == 1
        client.set_roots([{"uri": "file:///b", "name": "b"}])
        assert "file:///b" in (await client.call("where")).content[0]["text"]

    with_client(conversation, version=version, roots=["file:///a"])


@pytest.mark.parametrize("version", [FOURTH, STATELESS])
def test_one_question_follows_another(version: str) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("both")).text == "Ann: deep"
        assert [question["method"] for question in client.questions] == [
            "elicitation/create",
            "sampling/createMessage",
        ]

    with_client(conversation, version=version, on_elicit={"name": "Ann"}, on_sample="deep")


def test_a_bare_request_shows_the_question() -> None:
    async def conversation(client: Client) -> None:
        result = await client.request("tools/call", {"name": "who", "arguments": {}})
        assert result["resultType"] == "input_required"
        (question,) = result["inputRequests"].values()
        assert question["method"] == "elicitation/create"
        assert client.questions == []

    with_client(conversation, version=STATELESS, on_elicit={"name": "Ann"})


def test_a_call_that_never_stops_asking_is_given_up() -> None:
    app = Server("endless")
    asked = 0

    @app.tool
    async def endless(ctx: Context) -> str:
        nonlocal asked
        asked += 1
        while True:
            await ctx.elicit("Again?", bool, key=f"{asked}")

    async def conversation(client: Client) -> None:
        with pytest.raises(FastrpcError, match="still requests input"):
            await client.call("endless")

    with_client(conversation, app, version=STATELESS, on_elicit={"value": True})


@pytest.mark.parametrize("version", [FOURTH, STATELESS])
def test_what_a_handler_raises_the_call_raises(version: str) -> None:
    def refuse(params: dict[str, Any]) -> None:
        raise AssertionError("not that question")

    async def conversation(client: Client) -> None:
        with pytest.raises(AssertionError, match="not that question"):
            await client.call("who")

    with_client(conversation, version=version, on_elicit=refuse)


def test_a_remote_error_of_a_handler_is_the_servers_answer() -> None:
    app = Server("t")

    @app.tool
    async def who(ctx: Context) -> str:
        try:
            await ctx.elicit("Who?", str)
        except ToolError as error:
            return f"refused: {error}"
        return "answered"

    def refuse(params: dict[str, Any]) -> None:
        raise RemoteError({"code": -1, "message": "User rejected", "data": 5})

    async def conversation(client: Client) -> None:
        assert "User rejected" in (await client.call("who")).text

    with_client(conversation, app, version=FOURTH, on_elicit=refuse)


# --- what the client says of itself -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (OLDEST, {"roots": {"listChanged": True}, "sampling": {}}),
        (SECOND, {"roots": {"listChanged": True}, "sampling": {}}),
        (THIRD, {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}),
        (
            FOURTH,
            {
                "roots": {"listChanged": True},
                "sampling": {"tools": {}},
                "elicitation": {"form": {}, "url": {}},
            },
        ),
        (STATELESS, {"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}}),
    ],
)
def test_capabilities_follow_from_the_handlers_in_the_versions_words(version: str, expected: Any) -> None:
    app = Server("t")

    @app.tool(structured=True)
    def capabilities(ctx: Context) -> dict[str, Any]:
        return ctx.client_capabilities

    async def conversation(client: Client) -> None:
        assert client.capabilities == expected
        result = await client.call("capabilities")
        if result.structured is not None:
            assert result.structured == expected

    with_client(conversation, app, version=version, on_elicit={}, on_sample="", roots=[])


def test_capabilities_may_be_said_otherwise() -> None:
    async def conversation(client: Client) -> None:
        assert client.capabilities == {}
        assert (await client.call("who")).is_error

    with_client(conversation, capabilities={}, on_elicit={"name": "Ann"})


@each_version
def test_the_server_is_known_by_its_name(version: str) -> None:
    async def conversation(client: Client) -> None:
        assert client.server_info["name"] == "all"
        assert client.version == version
        await client.ping()

    with_client(conversation, version=version)


def test_an_unknown_version_becomes_the_one_that_is_agreed() -> None:
    async def conversation(client: Client) -> None:
        assert client.version == LATEST_SESSION_VERSION

    with_client(conversation, version="1999-01-01")


def test_without_a_block_there_is_no_server() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        Client(Server("t")).notify("notifications/initialized")


def test_what_is_begun_ends_with_the_block() -> None:
    app = Server("t")
    began = asyncio.Event()

    @app.tool
    async def endless() -> None:
        began.set()
        await asyncio.sleep(60)

    async def run() -> None:
        async with Client(app) as client:
            _, future = client.begin("tools/call", {"name": "endless"})
            await began.wait()
        with pytest.raises(ConnectionLost, match="the client is closed"):
            await future

    asyncio.run(asyncio.wait_for(run(), 60))
