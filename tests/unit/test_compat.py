"""The import swap: files written for FastMCP and for the official SDK work once their import line is changed.

Each file of tests/fixtures/compat is loaded with that line swapped and driven. Where the official SDK is
installed and can run the same file, both must list the same and answer the same.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.in_memory import with_client
from support.stdio import serve

from fastrpc import compat
from fastrpc.compat import Context, FastMCP, NotOffered
from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS, VERSIONS
from fastrpc.testing import Client

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "compat")
ERAS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
IMPORT = re.compile(r"^from (?:fastmcp|mcp\.server\.fastmcp)(?:\.[\w.]+)? import", re.MULTILINE)
OFFICIAL_IMPORT = re.compile(r"^from mcp\.server\.fastmcp(?P<below>\.[\w.]+)? import", re.MULTILINE)
NEEDS = {
    **dict.fromkeys(["content", "telling", "sampling", "completion", "options"], "mcp"),
    **dict.fromkeys(["structured", "elicitation"], "pydantic"),
}
"""What fixtures import besides the server: types of the official SDK's, pydantic."""


def source_of(name: str) -> str:
    with open(os.path.join(FIXTURES, f"{name}.py"), encoding="utf-8") as file:
        return file.read()


def module_of(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = os.path.join(FIXTURES, f"{name}.py")
    sys.modules[name] = module
    exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
    return module


def swapped(name: str) -> Any:
    """Return the server of a fixture whose import line has been changed, and nothing else."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="the fixture imports it")
    source, count = IMPORT.subn("from fastrpc.compat import", source_of(name))
    assert count
    return module_of(f"swapped_{name}", source).mcp


def official(name: str) -> Any:
    """Return the same file's server on the official SDK, whose class has another name by now."""
    pytest.importorskip("mcp.server.mcpserver", reason="the official SDK is not installed")

    def renamed(match: re.Match[str]) -> str:
        return f"from mcp.server.mcpserver{match['below'] or ''} import"

    source = OFFICIAL_IMPORT.sub(renamed, source_of(name))
    source = re.sub(r"(import .*)\bFastMCP\b", r"\1MCPServer as FastMCP", source, count=1)
    return module_of(f"official_{name}", source).mcp


def call(app: Any, tool: str, version: str = LATEST_SESSION_VERSION, /, **arguments: Any) -> Any:
    return with_client(app, lambda client: client.call(tool, **arguments), version=version)


# ------------------------------------------------------------------------------- the fixtures, swapped


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_server_of_every_guide_works(version: str) -> None:
    async def script(client: Client) -> None:
        assert (await client.call("add", a=1, b=2)).text == "3"
        assert (await client.read("greeting://Ada")).text == "Hello, Ada!"
        assert [template["uriTemplate"] for template in await client.templates()] == ["greeting://{name}"]
        (prompt,) = await client.prompts()
        assert [entry["name"] for entry in prompt["arguments"]] == ["name", "style"]
        asked = await client.prompt("greet_user", name="Ada", style="formal")
        assert asked.text == "Please write a formal greeting for somebody called Ada."

    with_client(swapped("quickstart"), script, version=version)


@ERAS
def test_a_lifespan_is_reached_through_the_request_context(version: str) -> None:
    app = swapped("lifespan")
    database = sys.modules["swapped_lifespan"].database
    assert call(app, "query_db", version, key="answer").text == "42"
    assert database.rows == {"answer": "42"}
    assert not database.open


def test_results_are_structured_as_they_are_annotated() -> None:
    async def script(client: Client) -> None:
        schemas = {tool["name"]: tool.get("outputSchema") for tool in await client.tools()}
        assert schemas["get_weather"]["properties"]["temperature"]["description"] == "In degrees Celsius"
        assert schemas["get_text"] is None
        weather = await client.call("get_weather", city="Paris")
        assert weather.structured["condition"] == "sunny in Paris"
        assert (await client.call("get_location", address="x")).structured["latitude"] == 51.5
        assert (await client.call("get_user", user_id="1")).structured["name"] == "Alice"
        assert (await client.call("list_cities")).structured == {"result": ["London", "Paris"]}
        assert (await client.call("get_temperature", city="x")).structured == {"result": 22.5}
        text = await client.call("get_text", city="Rome")
        assert (text.structured, json.loads(text.text)) == (None, {"city": "Rome"})

    with_client(swapped("structured"), script)


@ERAS
def test_content_goes_out_as_content(version: str) -> None:
    async def script(client: Client) -> None:
        (image,) = (await client.call("create_thumbnail")).content
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        words, picture = (await client.call("picture_with_words")).content
        assert (words["text"], picture["type"]) == ("Here it is:", "image")
        assert (await client.call("block")).content == [{"type": "text", "text": "as it is"}]
        assert (await client.read("pictures://dot")).data.startswith(b"\x89PNG")
        settings = await client.read("config://app")
        assert json.loads(settings.text) == {"theme": "dark", "size": 3}
        assert settings.contents[0]["mimeType"] == "application/json"

    with_client(swapped("content"), script, version=version)


@ERAS
def test_a_context_logs_reports_and_reads(version: str) -> None:
    reports: list[dict[str, Any]] = []

    async def script(client: Client) -> None:
        result = await client.call("long_task", on_progress=reports.append, task_name="x", steps=1)
        assert result.text == "Task 'x' completed"
        assert [(log["level"], log["data"]["msg"]) for log in client.logs] == [
            ("info", "Starting: x"),
            ("debug", "Completed step 1"),
            ("warning", "Nearly done"),
        ]
        assert reports[0]["message"] == "Step 1 of 1"
        assert (await client.call("read_notes", topic="tea")).text == "1: Notes on tea"
        assert (await client.call("who")).text == "str True True"
        properties = {tool["name"]: tool["inputSchema"]["properties"] for tool in await client.tools()}
        assert set(properties["long_task"]) == {"task_name", "steps"}

    with_client(swapped("telling"), script, version=version, log_level="debug")


@ERAS
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"checkAlternative": True, "alternativeDate": "2026-12-27"}, "Booked for 2 on 2026-12-27"),
        ({"checkAlternative": False}, "No booking made"),
        (False, "Booking: decline"),
        (None, "Booking: cancel"),
    ],
)
def test_a_form_is_filled_in(version: str, answer: Any, said: str) -> None:
    async def script(client: Client) -> Any:
        return await client.call("book_table", date="2026-12-25", party_size=2)

    options = {"version": version, "on_elicit": lambda params: answer}
    assert with_client(swapped("elicitation"), script, **options).text == said


@ERAS
def test_the_clients_model_is_asked_through_the_session(version: str) -> None:
    async def script(client: Client) -> None:
        assert (await client.call("generate_poem", topic="rain")).text == "Drip."
        params = client.questions[0]["params"]
        assert params["maxTokens"] == 100
        assert params["messages"][0]["content"] == {"type": "text", "text": "A poem about rain"}

    with_client(swapped("sampling"), script, version=version, on_sample="Drip.")


@ERAS
def test_prompts_have_messages_of_both_sides(version: str) -> None:
    async def script(client: Client) -> None:
        titles = {prompt["name"]: prompt["title"] for prompt in await client.prompts()}
        assert titles == {"review_code": "Code Review", "debug": "Debug Assistant"}
        debug = await client.prompt("debug", error="it broke")
        assert [message["role"] for message in debug.messages] == ["user", "user", "assistant"]
        assert debug.messages[1]["content"]["text"] == "it broke"

    with_client(swapped("prompts"), script, version=version)


@ERAS
def test_one_handler_completes_prompts_and_templates(version: str) -> None:
    async def script(client: Client) -> None:
        assert (await client.complete("review_code", "language", "py")).values == ["python"]
        assert (await client.complete("review_code", "code", "x")).values == []
        repositories = await client.complete(
            "github://repos/{owner}/{repo}", "repo", "", {"owner": "modelcontextprotocol"}
        )
        assert repositories.values == ["python-sdk", "typescript-sdk"]

    with_client(swapped("completion"), script, version=version)


def test_names_titles_and_hints_reach_the_client() -> None:
    async def script(client: Client) -> None:
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert tools["delete_all"]["title"] == "Delete Everything"
        assert tools["delete_all"]["description"] == "Delete it all"
        assert tools["delete_all"]["annotations"] == {"destructiveHint": True, "readOnlyHint": False}
        assert client.info["instructions"] == "Use the tools."
        assert (await client.call("untyped", first=7)).text == "7 two"
        assert (await client.call("untyped", first=[1], second=None)).text == "[1] None"
        failed = await client.call("fails", reason="no luck")
        assert failed.is_error
        assert "no luck" in failed.text
        assert [(await client.call("increase", by=by)).text for by in (2, 3)] == ["2", "5"]
        async with client.listen(resources=True) as changes:
            await client.call("change")
            assert (await changes.next(5))["method"] == "notifications/resources/list_changed"

    app = swapped("options")
    app.add_resource("some://thing", "here")
    with_client(app, script)


@ERAS
def test_the_other_frameworks_habits_work(version: str) -> None:
    def fill(params: dict[str, Any]) -> dict[str, Any]:
        fields = params["requestedSchema"]["properties"]
        return {name: "large" if "enum" in field else "Ada" for name, field in fields.items()}

    async def script(client: Client) -> None:
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert set(tools) >= {"greet", "renamed", "remember", "weather_forecast"}
        assert tools["renamed"]["annotations"] == {"readOnlyHint": True}
        assert tools["renamed"]["_meta"] == {"unit": "cm", "fastmcp": {"tags": ["maths", "public"]}}
        assert tools["greet"]["inputSchema"]["properties"]["name"]["description"] == "Whom"
        assert client.server_info["version"] == "2.1"
        assert (await client.call("greet", name="Ada")).text == "Hello, Ada!"
        assert (await client.call("renamed", width=2, height=3)).structured == {"result": 6.0}
        assert [(await client.call("remember", value=value)).text for value in ("a", "b")] == ["None", "a"]
        assert (await client.call("ask")).text == "Ada large accept"
        assert (await client.call("summarise", text="long")).text == "short"
        asked = next(question for question in client.questions if question["method"] != "elicitation/create")
        assert asked["params"]["systemPrompt"] == "Be brief."
        assert asked["params"]["maxTokens"] == 50
        assert (await client.call("weather_forecast", city="Rome")).structured["sky"] == "blue"
        await client.call("log_twice")
        assert [(log["level"], log["data"]) for log in client.logs] == [
            ("warning", {"msg": "the text first", "extra": None}),
            ("info", {"msg": "with facts", "extra": {"count": 2}}),
        ]
        assert json.loads((await client.read("data://config")).text) == {"theme": "dark"}
        assert (await client.read("files://a/b.txt")).text == "a/b.txt for True"
        assert (await client.prompt("explain", topic="tea")).text == "Explain tea"

    with_client(swapped("bare"), script, version=version, on_elicit=fill, on_sample="short", log_level="info")


# ------------------------------------------------------------------------- beside the official SDK

COMPARED = {
    "quickstart": [("add", {"a": 1, "b": 2})],
    "structured": [
        ("get_weather", {"city": "Paris"}),
        ("get_location", {"address": "x"}),
        ("get_user", {"user_id": "1"}),
        ("get_statistics", {"kind": "x"}),
        ("list_cities", {}),
        ("get_temperature", {"city": "x"}),
        ("get_text", {"city": "x"}),
        ("get_anything", {"city": "x"}),
    ],
    "content": [("create_thumbnail", {}), ("picture_with_words", {}), ("block", {})],
    "telling": [("long_task", {"task_name": "x"}), ("read_notes", {"topic": "tea"}), ("who", {})],
    "prompts": [],
    "completion": [],
    "elicitation": [("book_table", {"date": "2026-12-24", "party_size": 2})],
    "lifespan": [("query_db", {"key": "answer"})],
    "options": [("delete_all", {"target": "x"}), ("untyped", {"first": "1"}), ("fails", {"reason": "x"})],
}


def facts(value: Any) -> Any:
    """Return what both must agree on: not the titles that a schema generator invents."""
    if isinstance(value, dict):
        return {name: facts(member) for name, member in value.items() if name != "title"}
    if isinstance(value, list):
        return [facts(item) for item in value]
    return value


def same_text(blocks: list[dict[str, Any]]) -> list[Any]:
    """Return content with texts read as JSON where they are that; lists may come as a block an element."""
    found: list[Any] = []
    for block in blocks:
        if block["type"] != "text":
            found.append(block)
            continue
        try:
            value = json.loads(block["text"])
        except ValueError:
            value = block["text"]
        found += value if isinstance(value, list) else [value]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMPARED)
def test_the_official_sdk_answers_the_same(name: str) -> None:
    mcp = pytest.importorskip("mcp", reason="the official SDK is not installed")
    theirs_app, ours_app = official(name), swapped(name)

    async def theirs() -> Any:
        async with mcp.Client(theirs_app, mode="legacy") as client:
            tools = [
                tool.model_dump(by_alias=True, exclude_none=True)
                for tool in (await client.list_tools()).tools
            ]
            prompts = (await client.list_prompts()).prompts
            resources = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            answers = []
            for tool, arguments in COMPARED[name]:
                result = await client.call_tool(tool, arguments)
                answers.append(result.model_dump(by_alias=True, exclude_none=True))
            listed = [
                [entry.model_dump(by_alias=True, exclude_none=True) for entry in kind]
                for kind in (prompts, resources, templates)
            ]
            return tools, listed, answers

    async def ours(client: Client) -> Any:
        tools = await client.tools()
        listed = []
        capabilities = client.info["capabilities"]
        listed.append(await client.prompts() if "prompts" in capabilities else [])
        listed.append(await client.resources() if "resources" in capabilities else [])
        listed.append(await client.templates() if "resources" in capabilities else [])
        answers = [(await client.call(tool, **arguments)).raw for tool, arguments in COMPARED[name]]
        return tools, listed, answers

    their_tools, their_lists, their_answers = asyncio.run(asyncio.wait_for(theirs(), 30))
    our_tools, our_lists, our_answers = with_client(ours_app, ours)
    for their, our in zip(their_tools, our_tools, strict=True):
        for member in ("name", "title", "description", "annotations"):
            assert our.get(member) == their.get(member), member
        assert set(our["inputSchema"]["properties"]) == set(their["inputSchema"]["properties"])
        assert our["inputSchema"].get("required", []) == their["inputSchema"].get("required", [])
        wrapped = their.get("outputSchema", {}).get("properties", {}).get("result", {})
        if wrapped.get("type") != "string":  # here a text is a text, and no structured content
            assert ("outputSchema" in our) == ("outputSchema" in their), our["name"]
    for their_list, our_list in zip(their_lists, our_lists, strict=True):
        for their, our in zip(their_list, our_list, strict=True):
            for member in ("name", "title", "description", "uri", "uriTemplate", "mimeType"):
                assert our.get(member) == their.get(member), member
            assert facts(our.get("arguments")) == facts(their.get("arguments"))
    for their, our, (tool, _) in zip(their_answers, our_answers, COMPARED[name], strict=True):
        assert our["isError"] == their.get("isError", False), tool
        if our["isError"]:
            continue
        assert same_text(our["content"]) == same_text(their["content"]), tool
        if "structuredContent" in our:
            assert our["structuredContent"] == their["structuredContent"], tool


# ------------------------------------------------------------------------------ what is not offered


@pytest.mark.parametrize(
    ("act", "alternative"),
    [
        (lambda: FastMCP("x", auth=SimpleNamespace(authorize=print)), "RemoteAuthProvider"),
        (lambda: FastMCP("x", nonsense=1), "nonsense"),
        (lambda: FastMCP("x").add_tool(object()), "function"),
        (lambda: FastMCP("x").add_resource(object()), "address"),
    ],
)
def test_what_is_not_offered_names_the_alternative(act: Callable[[], Any], alternative: str) -> None:
    with pytest.raises((NotOffered, AttributeError), match=alternative):
        act()


def test_a_context_says_what_to_use_instead() -> None:
    app = FastMCP("x")

    @app.tool
    async def answers(ctx: Context) -> str:
        return str(ctx.sample_step)

    assert "ctx.sample" in call(app, "answers").text
    assert not hasattr(compat, "nothing_like_it")


# ------------------------------------------------------------------------------------ functions


def test_the_swapped_file_runs_as_a_program(tmp_path: Any) -> None:
    program = tmp_path / "quickstart.py"
    program.write_text(IMPORT.sub("from fastrpc.compat import", source_of("quickstart")))
    environment = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    with serve(command=[sys.executable, str(program)], environment=environment) as server:
        assert server.initialize()["serverInfo"]["name"] == "Demo"
        assert server.call("add", a=2, b=3)["structuredContent"] == {"result": 5}
        server.close_stdin()
        assert server.wait() == 0


def test_a_decorated_function_stays_as_it_is() -> None:
    app = FastMCP("x")

    @app.tool()
    def plain(first: int, second: "int" = 2) -> int:  # noqa: UP037
        return first + second

    assert plain(1) == 3
    assert plain.__annotations__ == {"first": "int", "second": "'int'", "return": "int"}
    assert call(app, "plain", first=1).structured == {"result": 3}


def test_wrapped_bound_partial_and_callable_objects_are_tools() -> None:
    app = FastMCP("x")

    def doubled(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*values: Any, **named: Any) -> Any:
            return function(*values, **named) * 2

        return wrapper

    @app.tool
    @doubled
    def word(text, ctx: Context) -> str:  # type: ignore[no-untyped-def]
        return text + ctx.transport[0]

    class Thing:
        def method(self, value) -> str:  # type: ignore[no-untyped-def]
            return f"method {value}"

        def __call__(self, value) -> str:  # type: ignore[no-untyped-def]
            return f"object {value}"

    app.tool(Thing().method)
    app.tool(Thing(), name="thing")
    app.tool(functools.partial(lambda value, more: f"{value} {more}", more="bound"), name="part")
    assert call(app, "word", text="a").text == "asas"
    assert call(app, "method", value=1).text == "method 1"
    assert call(app, "thing", value=2).text == "object 2"
    assert call(app, "part", value=3).text == "3 bound"
    with pytest.raises(DefinitionError, match="self"):
        app.tool(Thing.method, name="unbound")


def test_a_context_is_found_by_name_in_brackets_and_as_an_option() -> None:
    app = FastMCP("x")

    @app.tool
    def bracketed(ctx: "Context[Unknown, None]") -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
        return ctx.request_id

    @app.tool
    def optional(text: str, ctx: Context | None = None) -> str:
        return f"{text} {ctx is not None}"

    assert call(app, "bracketed").text
    assert call(app, "optional", text="given").text == "given True"


def test_an_object_that_no_schema_describes_is_text_and_structured_in_fastmcp() -> None:
    app = FastMCP("x")

    class Odd:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            return {"odd": True}

    @app.tool
    def strange() -> Odd:
        return Odd()

    pytest.importorskip("pydantic")
    result = call(app, "strange")
    assert (result.text, result.structured) == ('{"odd":true}', {"odd": True})


def test_a_plain_function_takes_no_detour() -> None:
    app = FastMCP("x")

    @app.tool
    def echo(text: str) -> str:
        return text

    (tool,) = app.tools
    assert tool.function.__code__ is echo.__code__


def test_whole_results_may_be_returned() -> None:
    types = pytest.importorskip("mcp.types")
    app = FastMCP("x")

    @app.tool
    def whole() -> types.CallToolResult:  # type: ignore[name-defined]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text="said")],
            structuredContent={"fact": 1},
            isError=False,
            _meta={"private": True},
        )

    @app.tool
    def of_the_other() -> compat.ToolResult:
        return compat.ToolResult(content="said", structured_content={"fact": 2})

    @app.tool
    def mixed() -> list[Any]:
        return [types.TextContent(type="text", text="a block"), compat.Image(data=b"x"), {"fact": 3}]

    assert [block.get("text") for block in call(app, "mixed").content] == ["a block", None, '{"fact":3}']
    result = call(app, "whole")
    assert (result.text, result.structured) == ("said", {"fact": 1})
    assert result.meta == {"private": True}
    result = call(app, "of_the_other")
    assert (result.text, result.structured) == ("said", {"fact": 2})


def test_files_become_images_and_resources(tmp_path: Any) -> None:
    picture = tmp_path / "dot.jpeg"
    picture.write_bytes(b"\xff\xd8\xff")
    notes = tmp_path / "notes.txt"
    notes.write_text("some notes")
    assert compat.Image(path=picture).mime_type == "image/jpeg"
    assert compat.Image(data=b"x", format="webp").mime_type == "image/webp"
    assert compat.Audio(data=b"x").mime_type == "audio/wav"
    embedded = compat.File(path=notes)
    assert (embedded.text, embedded.mime_type) == ("some notes", "text/plain")
    with pytest.raises(ValueError, match="either path= or data="):
        compat.Image()


def test_a_proxy_represents_a_server_object_a_client_and_a_script(tmp_path: Any) -> None:
    from fastrpc.compat.fastmcp import Client as FastMCPClient
    from fastrpc.compat.fastmcp import FastMCP as Other
    from fastrpc.compat.fastmcp import create_proxy

    source = (
        "from fastrpc.compat.fastmcp import FastMCP\n"
        "mcp = FastMCP('inner')\n"
        "@mcp.tool\n"
        "def add_two(number: int) -> int:\n"
        "    return number + 2\n"
        "if __name__ == '__main__':\n"
        "    mcp.run()\n"
    )
    script = tmp_path / "inner.py"
    script.write_text(source)
    names: dict[str, Any] = {"__name__": "inner"}
    exec(source, names)
    inner = names["mcp"]
    assert isinstance(inner, Other)

    async def run(target: Any) -> None:
        async with FastMCPClient(create_proxy(target, name="front")) as client:
            assert client.server_info.name == "front"
            assert [tool.name for tool in await client.list_tools()] == ["add_two"]
            assert (await client.call_tool("add_two", {"number": 1})).data == 3

    config = {"mcpServers": {"a": {"command": sys.executable, "args": [str(script)]}}}
    for target in (inner, FastMCPClient(inner), script, config):
        asyncio.run(asyncio.wait_for(run(target), 60))
