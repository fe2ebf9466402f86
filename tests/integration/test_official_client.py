"""The official MCP client for Python talks to a real server: every feature, in every version it speaks.

The server writes a trace, and at the end of a test the recorder holds each of its lines against the
schema: the official client forgives what a schema does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from support.features import FEATURES
from support.protocol import SESSION_VERSIONS, STATELESS
from support.waiting import until

mcp = pytest.importorskip("mcp", reason="the official client is not installed: pip install mcp")
pytestmark = pytest.mark.filterwarnings("ignore:.* as of 2026-07-28")  # what we test is what it deprecates

SERVER = '''
import asyncio
from typing import Annotated

from fastrpc import Context, Image, Server

app = Server("official", version="1.0", instructions="Be brief.")


@app.tool(effect="read")
def echo(text: Annotated[str, "What to say"]) -> str:
    """Say it again."""
    return text


@app.tool
def add(a: int, b: int) -> int:
    return a + b


@app.tool
async def steps(count: int, ctx: Context) -> str:
    for step in range(count):
        await ctx.progress(step + 1, total=count, message=f"step {step + 1}")
    return "done"


@app.tool
async def endless() -> str:
    await asyncio.sleep(60)
    return "never"


@app.tool
def picture() -> Image:
    return Image(b"\\x89PNG", "image/png")


@app.tool
def fail() -> str:
    raise ValueError("too blue")
'''


ASKING = """
from fastrpc import Context, Server
from fastrpc.client_requests import Form, Roots

app = Server("asking", page_size=2, ttl_ms=7000, cache_scope="public")
orders = []


@app.prompt
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", {"type": "object", "properties": {"x": {"type": "integer"}}})
    return f"Greet number {answer.data['x']}"


@app.resource("own://name")
async def own(ctx: Context) -> str:
    return (await ctx.sample("Name yourself")).text


@app.tool
async def both(ctx: Context) -> str:
    ctx.once("order", lambda: orders.append(1))
    answers = await ctx.ask(form=Form("How many?", int), folders=Roots())
    return f"{answers['form'].action} {len(answers['folders'])} {len(orders)}"


@app.tool
def second() -> str:
    return "2"


@app.tool
def third() -> str:
    return "3"
"""


@pytest.fixture
def start(tmp_path: Any, recorder: Any) -> Iterator[Callable[[str], Any]]:
    """Returns how to start a server from its source."""
    from mcp import StdioServerParameters

    trace = tmp_path / "trace"

    def parameters_for(source: str) -> Any:
        (tmp_path / "server.py").write_text(source)
        serve = ["-m", "fastrpc", "serve", "--trace", str(trace), str(tmp_path / "server.py")]
        return StdioServerParameters(command=sys.executable, args=serve, env=dict(os.environ))

    yield parameters_for
    before = recorder.lines
    recorder.replay(str(trace))
    assert recorder.lines > before


@pytest.fixture
def parameters(start: Any) -> Any:
    return start(SERVER)


def in_session(parameters: Any, conversation: Any) -> None:
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async def run() -> None:
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await conversation(session)

    asyncio.run(asyncio.wait_for(run(), 90))


def field(model: Any, snake: str, camel: str) -> Any:
    """A field by the name that this version of the client gives it."""
    return getattr(model, snake) if hasattr(model, snake) else getattr(model, camel)


def test_the_handshake_lists_and_calls(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        welcome = await session.initialize()
        assert field(welcome, "server_info", "serverInfo").name == "official"
        assert welcome.instructions == "Be brief."
        await session.send_ping()
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == ["echo", "add", "steps", "endless", "picture", "fail"]
        assert tools[0].description == "Say it again."
        schema = field(tools[0], "input_schema", "inputSchema")
        assert schema["properties"]["text"] == {"type": "string", "description": "What to say"}
        result = await session.call_tool("echo", {"text": "héllo 漢 🎉"})
        assert result.content[0].text == "héllo 漢 🎉"
        result = await session.call_tool("add", {"a": 2, "b": 3})
        assert field(result, "structured_content", "structuredContent") == {"result": 5}
        result = await session.call_tool("picture", {})
        assert result.content[0].type == "image"
        result = await session.call_tool("fail", {})
        assert field(result, "is_error", "isError")
        assert "too blue" in result.content[0].text

    in_session(parameters, conversation)


def test_progress_and_many_calls_at_once(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        await session.initialize()
        reports: list[tuple[float, float | None, str | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total, message))

        await session.call_tool("steps", {"count": 3}, progress_callback=on_progress)
        await until(lambda: len(reports) == 3)
        assert reports == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        texts = [f"call {number}" for number in range(100)]
        results = await asyncio.gather(*(session.call_tool("echo", {"text": text}) for text in texts))
        assert [result.content[0].text for result in results] == texts

    in_session(parameters, conversation)


def test_a_call_that_the_client_gives_up_leaves_the_session_usable(parameters: Any) -> None:
    async def conversation(session: Any) -> None:
        await session.initialize()
        task = asyncio.ensure_future(session.call_tool("endless", {}))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await session.call_tool("echo", {"text": "still here"})).content[0].text == "still here"

    in_session(parameters, conversation)


def test_the_high_level_client_negotiates_the_newest_version(parameters: Any) -> None:
    """From its second major version on, the client probes server/discover and speaks 2026-07-28."""
    Client = getattr(mcp, "Client", None)
    if Client is None:
        pytest.skip("this version of the official client has no high-level Client")

    async def run() -> None:
        async with Client(parameters) as client:
            tools = (await client.list_tools()).tools
            assert tools[0].name == "echo"
            result = await client.call_tool("echo", {"text": "modern"})
            assert result.content[0].text == "modern"
            assert client.protocol_version == "2026-07-28"

    asyncio.run(asyncio.wait_for(run(), 90))


# --- every feature in every version ---

each_version = pytest.mark.parametrize("version", [*SESSION_VERSIONS, STATELESS])
FORMS = SESSION_VERSIONS[
    2:
]  # versions with a handshake in which forms, structured content and titles are known
MODES = SESSION_VERSIONS[3:]


@pytest.fixture
def connect(start: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns how to connect to the server of all features, in one version."""
    if not hasattr(mcp, "Client"):
        pytest.skip("this version of the official client has no high-level Client")
    return connecting(start, monkeypatch)


def connecting(transport_to: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return how to connect to a server in one version; `transport_to` says what leads to its source."""
    from mcp.client import session

    @contextlib.asynccontextmanager
    async def connected(version: str, source: str = FEATURES, **options: Any) -> AsyncIterator[Any]:
        if version != STATELESS:
            monkeypatch.setattr(session, "LATEST_HANDSHAKE_VERSION", version)
        mode = "auto" if version == STATELESS else "legacy"
        async with mcp.Client(transport_to(source), mode=mode, cache=None, **options) as client:
            assert client.protocol_version == version
            yield client

    return connected


def run(conversation: Any) -> None:
    asyncio.run(asyncio.wait_for(conversation, 90))


async def refused(request: Any) -> int:
    """Return the code with which the server refuses a request."""
    with pytest.raises(mcp.MCPError) as caught:
        await request
    code: int = caught.value.error.code
    return code


@each_version
def test_the_server_is_described_with_what_a_version_knows(connect: Any, version: str) -> None:
    async def conversation() -> None:
        async with connect(version) as client:
            assert client.instructions == "Try everything."
            info = client.server_info
            assert (info.name, info.version) == ("features", "2.0")
            assert info.title == ("All features" if version in (*FORMS, STATELESS) else None)
            known = version in (*MODES, STATELESS)
            assert info.description == ("One of each" if known else None)
            assert info.website_url == ("https://example.com" if known else None)
            assert bool(info.icons) == known
            can = client.server_capabilities
            assert can.tools.list_changed
            assert can.prompts.list_changed
            assert can.resources.list_changed
            assert can.resources.subscribe
            assert can.logging is not None
            assert (can.completions is not None) == (version != SESSION_VERSIONS[0])

    run(conversation())


@each_version
def test_tools_have_the_results_that_a_version_knows(connect: Any, version: str) -> None:
    async def conversation() -> None:
        async with connect(version) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            structured = version in (*FORMS, STATELESS)
            assert (tools["point"].output_schema is not None) == structured
            assert tools["point"].title == ("Make a point" if structured else None)
            assert (tools["point"].annotations is not None) == (version != SESSION_VERSIONS[0])
            result = await client.call_tool("point", {"x": 3})
            assert result.structured_content == ({"x": 3, "y": 0} if structured else None)
            assert '"x":3' in result.content[0].text.replace(" ", "")
            blocks = [block.type for block in (await client.call_tool("mixed", {})).content]
            assert blocks[:2] == ["text", "image"]
            assert len(blocks) == 5
            assert ("audio" in blocks) == (version != SESSION_VERSIONS[0])
            assert ("resource_link" in blocks) == structured
            assert (await client.call_tool("point", {"x": "three"})).is_error
            assert await refused(client.call_tool("nobody", {})) == -32602

    run(conversation())


@each_version
def test_progress_comes_in_its_order(connect: Any, version: str) -> None:
    async def conversation() -> None:
        reports: list[tuple[float, float | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            reports.append((progress, total))

        async with connect(version) as client:
            await client.call_tool("steps", {"count": 3}, progress_callback=on_progress)
            await until(lambda: (3, 3) in reports)
            assert reports == sorted(reports)

    run(conversation())


@each_version
def test_resources_are_listed_and_read(connect: Any, version: str) -> None:
    async def conversation() -> None:
        async with connect(version) as client:
            guide, logo = (await client.list_resources()).resources
            assert (str(guide.uri), guide.mime_type) == ("docs://guide", "text/markdown")
            assert guide.title == ("The guide" if version in (*FORMS, STATELESS) else None)
            assert logo.mime_type == "image/png"
            (template,) = (await client.list_resource_templates()).resource_templates
            assert template.uri_template == "notes://{name}/{part*}"
            assert (await client.read_resource("docs://guide")).contents[0].text == "Begin"
            assert (await client.read_resource("docs://logo")).contents[0].blob == "cG5n"
            note = (await client.read_resource("notes://ann/a%20b")).contents[0]
            assert note.mime_type == "application/json"
            assert '"part":"a b"' in note.text.replace('": ', '":')
            nowhere = await refused(client.read_resource("docs://nowhere"))
            assert nowhere == (-32602 if version == STATELESS else -32002)

    run(conversation())


@each_version
def test_prompts_are_filled_in_and_arguments_completed(connect: Any, version: str) -> None:
    from mcp.types import PromptReference, ResourceTemplateReference

    async def conversation() -> None:
        async with connect(version) as client:
            (prompt,) = (await client.list_prompts()).prompts
            assert (prompt.name, prompt.description) == ("review", "Have code reviewed.")
            assert prompt.title == ("Review code" if version in (*FORMS, STATELESS) else None)
            assert [(one.name, bool(one.required)) for one in prompt.arguments] == [
                ("code", True),
                ("language", False),
            ]
            filled = await client.get_prompt("review", {"code": "x = 1", "language": "rust"})
            assert filled.messages[0].content.text == "Review this rust: x = 1"
            assert await refused(client.get_prompt("review", {})) == -32602
            assert await refused(client.get_prompt("nobody", {})) == -32602
            review = PromptReference(name="review")
            found = await client.complete(review, {"name": "language", "value": "r"})
            assert found.completion.values == ["rust"]
            others = {"language": "rust"} if version in (*FORMS, STATELESS) else None
            found = await client.complete(review, {"name": "code", "value": "x"}, others)
            assert found.completion.values == ["x in rust" if others else "x in any"]
            note = ResourceTemplateReference(uri="notes://{name}/{part*}")
            found = await client.complete(note, {"name": "name", "value": "an"})
            assert found.completion.values == ["ann", "anton"]

    run(conversation())


@each_version
def test_log_messages_come_from_the_level_that_was_asked_for(connect: Any, version: str) -> None:
    logs: list[Any] = []

    async def on_log(params: Any) -> None:
        logs.append(params)

    async def conversation() -> None:
        async with connect(version, logging_callback=on_log, log_level="info") as client:
            if version != STATELESS:
                await client.set_logging_level("info")
            await client.call_tool("noisy", {})
            await until(lambda: len(logs) == 2)
            assert [log.data for log in logs] == [{"any": ["value"]}, "loud"]
            assert [(log.level, log.logger) for log in logs] == [("info", "tests"), ("error", None)]

    run(conversation())


def test_a_request_without_a_level_brings_no_log_messages(connect: Any) -> None:
    logs: list[Any] = []

    async def on_log(params: Any) -> None:
        logs.append(params)

    async def conversation() -> None:
        async with connect(STATELESS, logging_callback=on_log) as client:
            await client.call_tool("noisy", {})
            await client.call_tool("point", {"x": 1})
            assert logs == []

    run(conversation())


def handlers() -> dict[str, Any]:
    """A client that can be asked everything; what it was asked is in the list `asked`."""
    from mcp import types

    asked: list[Any] = []

    async def on_elicit(context: Any, params: Any) -> Any:
        asked.append(params)
        if params.message == "How many?":
            return types.ElicitResult(action="decline")
        content = None if params.mode == "url" else {"x": 7}
        return types.ElicitResult(action="accept", content=content)

    async def on_sample(context: Any, params: Any) -> Any:
        asked.append(params)
        said = types.TextContent(type="text", text="seven")
        return types.CreateMessageResult(role="assistant", content=said, model="m1")

    async def on_roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])

    return {
        "elicitation_callback": on_elicit,
        "sampling_callback": on_sample,
        "list_roots_callback": on_roots,
        "asked": asked,
    }


@each_version
def test_the_client_is_asked(connect: Any, version: str) -> None:
    async def conversation() -> None:
        options = handlers()
        asked = options.pop("asked")
        async with connect(version, **options) as client:
            assert (await client.call_tool("think", {})).content[0].text == "m1: seven"
            assert (asked[0].max_tokens, asked[0].system_prompt) == (9, "Be brief")
            assert (await client.call_tool("where", {})).content[0].text == "file:///work"
            form = await client.call_tool("who", {})
            page = await client.call_tool("visit", {})
            if version in (*FORMS, STATELESS):
                assert form.content[0].text == "7,0"
                assert asked[1].message == "Where?"
                everything = await client.call_tool("everything", {})
                assert everything.content[0].text == "7 is seven in 1"
            else:
                assert form.is_error
            if version in (*MODES, STATELESS):
                assert page.content[0].text == "accept"
            else:
                assert page.is_error

    run(conversation())


@pytest.mark.parametrize("version", [*FORMS, STATELESS])
def test_prompts_and_resources_ask_too_and_several_things_at_once(connect: Any, version: str) -> None:
    async def conversation() -> None:
        options = handlers()
        asked = options.pop("asked")
        async with connect(version, ASKING, **options) as client:
            prompt = await client.get_prompt("greet")
            assert prompt.messages[0].content.text == "Greet number 7"
            assert (await client.read_resource("own://name")).contents[0].text == "seven"
            asked.clear()
            both = (await client.call_tool("both", {})).content[0].text
            assert both == "decline 1 1"  # what was to happen once, has, though it ran twice in 2026-07-28
            assert [question.message for question in asked] == ["How many?"]

    run(conversation())


@each_version
def test_lists_come_in_pages_and_say_for_how_long_they_hold(connect: Any, version: str) -> None:
    async def conversation() -> None:
        async with connect(version, ASKING) as client:
            first = await client.list_tools()
            assert [tool.name for tool in first.tools] == ["both", "second"]
            rest = await client.list_tools(cursor=first.next_cursor)
            assert [tool.name for tool in rest.tools] == ["third"]
            assert rest.next_cursor is None
            assert await refused(client.list_tools(cursor="?")) == -32602
            hints = (first.ttl_ms, first.cache_scope)
            assert (hints == (7000, "public")) == (version == STATELESS)

    run(conversation())


@each_version
def test_a_client_that_cannot_be_asked_is_not(connect: Any, version: str) -> None:
    """Where it has not said that it can, the call fails in words; in no version is it asked in vain."""

    async def conversation() -> None:
        async with connect(version) as client:
            for tool in ("who", "visit", "think", "where"):
                with contextlib.suppress(mcp.MCPError):
                    result = await client.call_tool(tool, {})
                    assert result.is_error
                    assert result.content[0].text
                    continue
                assert version == STATELESS
                assert await refused(client.call_tool(tool, {})) == -32021

    run(conversation())


@each_version
def test_changes_are_reported(connect: Any, version: str) -> None:
    told: list[str] = []

    async def on_message(message: Any) -> None:
        told.append(type(message).__name__.removesuffix("Notification"))

    async def conversation() -> None:
        async with connect(version, message_handler=on_message) as client:
            if version == STATELESS:
                everything = {f"{kind}_list_changed": True for kind in ("tools", "prompts", "resources")}
                async with client.listen(resource_subscriptions=["docs://guide"], **everything) as changes:
                    assert changes.honored.tools_list_changed
                    await client.call_tool("change", {})
                    heard = {type(await anext(changes)).__name__ for _ in range(4)}
                assert heard == {
                    "ToolsListChanged",
                    "PromptsListChanged",
                    "ResourcesListChanged",
                    "ResourceUpdated",
                }
            else:
                await client.subscribe_resource("docs://guide")
                await client.call_tool("change", {})
                expected = {"ToolListChanged", "PromptListChanged", "ResourceListChanged", "ResourceUpdated"}
                await until(lambda: expected <= set(told))
                await client.unsubscribe_resource("docs://guide")
            assert "added" in [tool.name for tool in (await client.list_tools()).tools]
            assert "added" in [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert len((await client.list_resources()).resources) == 3

    run(conversation())


def test_what_the_newest_version_has_no_more_is_refused(connect: Any) -> None:
    async def conversation() -> None:
        async with connect(STATELESS) as client:
            for request in (
                client.session.send_ping(),
                client.session.set_logging_level("info"),
                client.subscribe_resource("docs://guide"),
                client.unsubscribe_resource("docs://guide"),
            ):
                assert await refused(request) == -32601

    run(conversation())


@each_version
def test_what_a_server_has_not_is_neither_promised_nor_served(connect: Any, version: str) -> None:
    from mcp.types import PromptReference

    async def conversation() -> None:
        async with connect(version, "from fastrpc import Server\napp = Server('bare')\n") as client:
            can = client.server_capabilities
            assert (can.prompts, can.resources, can.completions) == (None, None, None)
            assert (await client.list_tools()).tools == []
            for request in (
                client.list_prompts(),
                client.list_resources(),
                client.list_resource_templates(),
                client.read_resource("docs://guide"),
                client.get_prompt("review"),
                client.complete(PromptReference(name="review"), {"name": "code", "value": ""}),
            ):
                assert await refused(request) == -32601

    run(conversation())
