"""Providers, transforms, versions of a component and what a session sees, on a server of FastMCP's interface.

The expected values are those of FastMCP 3.4.10 and 4.1.2.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.compat_client import talk

from fastrpc.compat.fastmcp import (
    AppConfig,
    BM25SearchTransform,
    Client,
    Context,
    FastMCP,
    FastMCPProvider,
    FileSystemProvider,
    LocalProvider,
    Middleware,
    Namespace,
    PromptsAsTools,
    Provider,
    RegexSearchTransform,
    Resource,
    ResourcesAsTools,
    SkillsDirectoryProvider,
    TextResource,
    Tool,
    ToolTransform,
    ToolTransformConfig,
    Transform,
    VersionFilter,
    VersionSpec,
    lifespan,
    prompt,
    resource,
    tool,
)
from fastrpc.errors import RemoteError


def names(server: Any) -> list[str]:
    return [each.name for each in talk(server, lambda client: client.list_tools())]


def call(server: Any, name: str, /, **arguments: Any) -> Any:
    return talk(server, lambda client: client.call_tool(name, arguments)).data


def read(server: Any, uri: str) -> Any:
    (part,) = talk(server, lambda client: client.read_resource(uri))
    return part.text


def math() -> FastMCP:
    mcp = FastMCP("math")

    @mcp.tool(tags={"plain"})
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    def server_name(ctx: Context) -> str:
        return str(ctx.fastmcp.name)

    @mcp.resource("data://pi")
    def pi() -> str:
        return "3.14"

    @mcp.resource("data://{name}/value")
    def value(name: str) -> str:
        return f"value of {name}"

    @mcp.prompt
    def explain(topic: str) -> str:
        """Explain a topic."""
        return f"Explain {topic}"

    return mcp


# ------------------------------------------------------------------------------------------------ mounts


def test_resources_of_a_mounted_server_have_its_namespace() -> None:
    host = FastMCP("host")
    host.mount(math(), "m")
    assert [each.uri for each in talk(host, lambda client: client.list_resources())] == ["data://m/pi"]
    assert read(host, "data://m/pi") == "3.14"
    assert read(host, "data://m/x/value") == "value of x"
    with pytest.raises(RemoteError):
        read(host, "data://pi")


def test_a_mounted_server_that_is_composed_is_called_in_its_own_terms() -> None:
    inner = math()
    inner.add_transform(Namespace("n"))
    host = FastMCP("host")
    host.mount(inner, "m")
    assert names(host) == ["m_n_add", "m_n_server_name"]
    assert call(host, "m_n_add", a=1, b=2) == 3
    assert call(host, "m_n_server_name") == "math"
    assert read(host, "data://m/n/pi") == "3.14"
    assert read(host, "data://m/n/x/value") == "value of x"


def test_a_server_that_is_composed_after_it_was_mounted() -> None:
    inner, host = math(), FastMCP("host")
    host.mount(inner, "m")
    inner.add_transform(Namespace("n"))
    assert names(host) == ["m_n_add", "m_n_server_name"]


def test_tools_of_a_mounted_server_have_other_names() -> None:
    host = FastMCP("host")
    host.mount(math(), "m", tool_names={"add": "plus"})
    assert names(host) == ["plus", "m_server_name"]
    assert call(host, "plus", a=1, b=2) == 3


# -------------------------------------------------------------------------------------------- transforms


def test_a_namespace() -> None:
    mcp = math()
    mcp.add_transform(Namespace("n"))
    assert names(mcp) == ["n_add", "n_server_name"]
    assert call(mcp, "n_add", a=1, b=2) == 3
    assert call(mcp, "n_server_name") == "math"
    assert read(mcp, "data://n/pi") == "3.14"
    assert read(mcp, "data://n/x/value") == "value of x"
    found = talk(mcp, lambda client: client.get_prompt("n_explain", {"topic": "x"}))
    assert found.messages[0].content.text == "Explain x"
    assert found.description == "Explain a topic."
    with pytest.raises(RemoteError, match="Unknown tool: add"):
        call(mcp, "add", a=1, b=2)


def test_a_tool_is_transformed_where_it_comes_from_a_server() -> None:
    change = ToolTransformConfig(name="plus", arguments={"b": {"hide": True, "default": 5}})
    mcp = math()
    mcp.add_transform(ToolTransform({"add": change}))
    (plus, _) = talk(mcp, lambda client: client.list_tools())
    assert plus.name == "plus"
    assert list(plus.input_schema["properties"]) == ["a"]
    assert call(mcp, "plus", a=1) == 6


def test_arguments_of_what_a_transform_shows_are_checked() -> None:
    mcp = math()
    mcp.add_transform(Namespace("n"))
    result = talk(mcp, lambda client: client.call_tool("n_add", {"a": "x"}, raise_on_error=False))
    assert result.is_error
    assert "a: expected integer" in result.content[0].text


class Shouting(Transform):
    async def list_tools(self, tools: Any) -> Any:
        return [each.model_copy(update={"description": (each.description or "").upper()}) for each in tools]

    async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
        return await call_next(name.lower(), version=version)


def test_a_transform_of_the_programs_own() -> None:
    mcp = FastMCP("host", transforms=[Shouting()])
    mcp.tool(lambda a: a, name="same", description="returns it")
    assert [each.description for each in talk(mcp, lambda client: client.list_tools())] == ["RETURNS IT"]
    assert call(mcp, "SAME", a="x") == "x"


def test_prompts_and_resources_as_tools() -> None:
    mcp = math()
    mcp.add_transform(PromptsAsTools(mcp))
    mcp.add_transform(ResourcesAsTools(mcp))
    shown = ["add", "server_name", "list_prompts", "get_prompt", "list_resources", "read_resource"]
    assert names(mcp) == shown
    assert '"explain"' in call(mcp, "list_prompts")
    assert "Explain x" in call(mcp, "get_prompt", name="explain", arguments={"topic": "x"})
    assert "data://{name}/value" in call(mcp, "list_resources")
    assert call(mcp, "read_resource", uri="data://pi") == "3.14"
    assert call(mcp, "read_resource", uri="data://x/value") == "value of x"
    for name, arguments in (("read_resource", {"uri": "data://none"}), ("get_prompt", {"name": "none"})):
        asked = partial(Client.call_tool, name=name, arguments=arguments, raise_on_error=False)
        assert talk(mcp, asked).is_error
    with pytest.raises(TypeError):
        PromptsAsTools(LocalProvider())


@pytest.mark.parametrize(
    ("transform", "query"),
    [
        (BM25SearchTransform(always_visible=["server_name"]), {"query": "adding two numbers, add"}),
        (RegexSearchTransform(always_visible=["server_name"]), {"pattern": "ADD|mul"}),
    ],
)
def test_tools_are_found_by_a_search(transform: Any, query: dict[str, str]) -> None:
    mcp = math()
    mcp.add_transform(transform)
    assert names(mcp) == ["server_name", "search_tools", "call_tool"]
    (found,) = call(mcp, "search_tools", **query)
    assert found["name"] == "add"
    assert call(mcp, "call_tool", name="add", arguments={"a": 1, "b": 2}) == 3
    assert call(mcp, "add", a=1, b=2) == 3


def test_a_pattern_that_is_none_finds_nothing() -> None:
    mcp = math()
    mcp.add_transform(RegexSearchTransform())
    for pattern in ("(", "(?=a)", "a" * 1001):
        assert call(mcp, "search_tools", pattern=pattern) == []


def test_a_tool_that_the_client_may_not_see_is_not_called_by_the_search() -> None:
    mcp = math()
    mcp.add_transform(BM25SearchTransform())
    mcp.disable(tags={"plain"})
    result = talk(mcp, lambda client: client.call_tool("call_tool", {"name": "add"}, raise_on_error=False))
    assert result.is_error
    assert "Unknown tool" in result.content[0].text


# ---------------------------------------------------------------------------------------------- versions


def versioned(*transforms: Any) -> FastMCP:
    mcp = FastMCP("versions", transforms=list(transforms))
    for version in ("1.0", "10.0", "2.0"):
        mcp.tool(lambda version=version: f"from {version}", name="which", version=version)
    mcp.tool(lambda: "none", name="other")
    return mcp


def test_the_highest_version_is_listed_and_called() -> None:
    mcp = versioned()
    which, other = talk(mcp, lambda client: client.list_tools())
    assert (which.name, other.name) == ("which", "other")
    assert which.meta["fastmcp"] == {"version": "10.0", "versions": ["10.0", "2.0", "1.0"]}
    assert call(mcp, "which") == "from 10.0"


def test_a_call_asks_for_a_version() -> None:
    def of(version: str) -> Any:
        meta = {"fastmcp": {"version": version}}
        return talk(versioned(), lambda client: client.call_tool("which", {}, meta=meta)).data

    assert of("1.0") == "from 1.0"
    assert of("v2") == "from 2.0"
    with pytest.raises(RemoteError, match="Unknown tool"):
        of("3.0")


def test_versions_are_filtered() -> None:
    below = versioned(VersionFilter(version_lt="3"))
    assert call(below, "which") == "from 2.0"
    assert names(below) == ["which", "other"]
    assert names(versioned(VersionFilter(version_gte="20"))) == ["other"]
    assert names(versioned(VersionFilter(version_lt="3", include_unversioned=False))) == ["which"]
    with pytest.raises(ValueError, match="version_gte"):
        VersionFilter()


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.9", "1.10"), ("1.0a1", "1.0"), ("1.0rc1", "1.0rc2"), ("2.0", "2025-01-15"), ("v1", "2")],
)
def test_the_order_of_versions(lower: str, higher: str) -> None:
    assert VersionSpec(lt=higher).matches(lower)
    assert not VersionSpec(gte=higher).matches(lower)
    assert VersionSpec(eq="1.0").matches("v1")
    assert not VersionSpec(gte="2").intersect(VersionSpec(eq="1")).matches("1")


# --------------------------------------------------------------------------------------------- providers


class Rows(Provider):
    """Tools that may change from request to request."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = ["one"]
        self.is_open = False

    async def _list_tools(self) -> list[Tool]:
        return [Row(name=name, description=f"Row {name}.") for name in self.rows]

    async def _list_resources(self) -> list[Resource]:
        return [TextResource(uri=f"row://{name}", name=name, text=f"row {name}") for name in self.rows]

    @asynccontextmanager
    async def lifespan(self) -> Any:
        self.is_open = True
        yield
        self.is_open = False


class Row(Tool):
    async def run(self, arguments: dict[str, Any]) -> str:
        return f"{self.name} is run"


def test_a_provider_of_the_programs_own_is_asked_for_each_request() -> None:
    rows = Rows()
    mcp = FastMCP("rows", providers=[rows])

    async def conversation(client: Any) -> None:
        assert [each.name for each in await client.list_tools()] == ["one"]
        rows.rows.append("two")
        assert [each.name for each in await client.list_tools()] == ["one", "two"]
        assert (await client.call_tool("two", {})).data == "two is run"
        assert rows.is_open
        assert (await client.read_resource("row://two"))[0].text == "row two"

    talk(mcp, conversation)
    assert not rows.is_open


def test_what_a_server_has_itself_comes_before_its_providers() -> None:
    mcp = FastMCP("rows", providers=[Rows()])
    mcp.tool(lambda: "mine", name="one")
    assert names(mcp) == ["one"]
    assert call(mcp, "one") == "mine"


def test_a_provider_that_fails_leaves_the_others() -> None:
    class Failing(Rows):
        async def _list_tools(self) -> list[Tool]:
            raise OSError("the database is gone")

    mcp = FastMCP("rows", providers=[Failing(), Rows()])
    assert names(mcp) == ["one"]


def test_what_no_provider_is_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a Provider, got int"):
        FastMCP("x").add_provider(1)


def local() -> LocalProvider:
    shared = LocalProvider()

    @shared.tool(tags={"admin"})
    def close(ctx: Context) -> str:
        return f"closed by {ctx.fastmcp.name}"

    @shared.resource("shop://hours")
    def hours() -> str:
        return "9 to 5"

    @shared.prompt
    def greet(name: str) -> str:
        return f"Greet {name}"

    return shared


def test_a_local_provider_is_shared_by_servers() -> None:
    shared = local()
    one, two = FastMCP("one", providers=[shared]), FastMCP("two")
    two.add_provider(shared, namespace="s")
    assert call(one, "close") == "closed by one"
    assert call(two, "s_close") == "closed by two"
    assert read(two, "shop://s/hours") == "9 to 5"
    (greet,) = talk(two, lambda client: client.list_prompts())
    assert (greet.name, greet.arguments[0].name) == ("s_greet", "name")
    with pytest.raises(ValueError, match="close: there is a tool"):
        shared.tool(lambda: "", name="close")


def test_what_a_provider_hides_a_server_may_show() -> None:
    mcp = FastMCP("one", providers=[local().disable(tags={"admin"})])
    assert names(mcp) == []
    mcp.enable(names={"close"})
    assert names(mcp) == ["close"]


def test_a_server_as_a_provider_is_called_within_its_middleware() -> None:
    class Recorder(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            seen.append(context.message.name)
            return await call_next(context)

    seen: list[str] = []
    inner = math()
    inner.add_middleware(Recorder())
    mcp = FastMCP("host", providers=[FastMCPProvider(inner).wrap_transform(Namespace("m"))])
    assert call(mcp, "m_add", a=1, b=2) == 3
    assert seen == ["add"]


def test_prompts_and_resources_of_a_server_as_a_provider_are_called_within_its_middleware() -> None:
    class Recorder(Middleware):
        async def on_request(self, context: Any, call_next: Any) -> Any:
            if not context.method.endswith("/list"):
                seen.append(context.method)
            return await call_next(context)

    seen: list[str] = []
    inner = FastMCP("inner", middleware=[Recorder()])
    inner.prompt(lambda person, tone="kind": f"{tone} {person}", name="greet")
    inner.resource("data://one")(lambda: "1")
    inner.resource("data://{name}/text")(lambda name: name)
    mcp = FastMCP("host", providers=[FastMCPProvider(inner).wrap_transform(Namespace("m"))])

    async def greeted(client: Any) -> str:
        (listed,) = await client.list_prompts()
        arguments = [(each.name, each.required) for each in listed.arguments]
        assert arguments == [("person", True), ("tone", False)]
        return str((await client.get_prompt("m_greet", {"person": "Ada"})).messages[0].content.text)

    assert talk(mcp, greeted) == "kind Ada"
    assert seen == ["prompts/get"]
    assert (read(mcp, "data://m/one"), read(mcp, "data://m/a/text")) == ("1", "a")
    assert seen[1:] == ["resources/read", "resources/read"]


def test_files_of_a_folder_are_components(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "tools.py").write_text(
        "from fastrpc.compat.fastmcp import tool, resource\n"
        "@tool(name='half')\n"
        "def halved(n: float) -> float:\n"
        "    '''Halve it.\n\n    Args:\n        n: The number.\n    '''\n"
        "    return n / 2\n"
        "@resource('file://{name}/text')\n"
        "def text(name: str) -> str:\n"
        "    return name\n"
    )
    (tmp_path / "broken.py").write_text("raise ValueError('no')")
    found = FileSystemProvider(tmp_path, reload=True)
    mcp = FastMCP("files", providers=[found])
    (half,) = talk(mcp, lambda client: client.list_tools())
    assert (half.name, half.description) == ("half", "Halve it.")
    assert half.input_schema["properties"]["n"]["description"] == "The number."
    assert call(mcp, "half", n=3) == 1.5
    assert read(mcp, "file://a/text") == "a"
    assert found.failed_files == {tmp_path / "broken.py": "ValueError: no"}
    (tmp_path / "new.py").write_text(
        "from fastrpc.compat.fastmcp import tool\n@tool\ndef fresh() -> str:\n    return 'new'\n"
    )
    assert names(mcp) == ["half", "fresh"]


def test_skills_are_resources(tmp_path: Path) -> None:
    skill = tmp_path / "review"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\ndescription: Reviews code\n---\n# Review\n")
    (skill / "notes.txt").write_text("notes")
    (tmp_path / "secret.txt").write_text("secret")
    mcp = FastMCP("skills", providers=[SkillsDirectoryProvider(tmp_path)])
    main, manifest = talk(mcp, lambda client: client.list_resources())
    assert (main.uri, main.description) == ("skill://review/SKILL.md", "Reviews code")
    assert read(mcp, main.uri).endswith("# Review\n")
    assert '"notes.txt"' in read(mcp, manifest.uri)
    assert read(mcp, "skill://review/notes.txt") == "notes"
    for outside in ("../secret.txt", "..%2Fsecret.txt", "%2Fetc%2Fpasswd"):
        with pytest.raises(RemoteError):
            read(mcp, f"skill://review/{outside}")


# ------------------------------------------------------------------------------------------------ sessions


def test_a_session_sees_what_was_enabled_for_it() -> None:
    mcp = FastMCP("shop")

    @mcp.tool(tags={"admin"})
    def close() -> str:
        return "closed"

    @mcp.tool
    async def unlock(ctx: Context) -> str:
        await ctx.enable_components(tags={"admin"})
        return "unlocked"

    @mcp.tool
    async def lock(ctx: Context) -> str:
        await ctx.reset_visibility()
        return "locked"

    mcp.disable(tags={"admin"})

    async def conversation(client: Any) -> None:
        async def shown() -> set[str]:
            return {each.name for each in await client.list_tools()}

        assert await shown() == {"unlock", "lock"}
        await client.call_tool("unlock", {})
        assert await shown() == {"unlock", "lock", "close"}
        assert (await client.call_tool("close", {})).data == "closed"
        async with Client(mcp) as other:
            assert {each.name for each in await other.list_tools()} == {"unlock", "lock"}
            with pytest.raises(RemoteError, match="Unknown tool"):
                await other.call_tool("close", {})
        await client.call_tool("lock", {})
        assert await shown() == {"unlock", "lock"}

    talk(mcp, conversation)


# ----------------------------------------------------------------------------------- smaller conveniences


def test_marked_functions_are_added_later() -> None:
    @tool("double", description="Double it.")
    def twice(n: int) -> int:
        return n * 2

    @prompt
    def ask(topic: str) -> str:
        return topic

    @resource("x://{a}")
    def at(a: str) -> str:
        return a

    mcp = FastMCP("marked")
    mcp.add_tool(twice)
    mcp.add_prompt(ask)
    mcp.add_resource(at)
    assert twice(2) == 4
    assert call(mcp, "double", n=3) == 6
    assert read(mcp, "x://y") == "y"
    assert [each.name for each in talk(mcp, lambda client: client.list_prompts())] == ["ask"]


def test_lifespans_are_put_together() -> None:
    left: list[str] = []

    @lifespan
    async def one(server: Any) -> Any:
        yield {"a": 1, "b": 1}
        left.append("one")

    @lifespan
    async def two(server: Any) -> Any:
        yield {"b": 2}
        left.append("two")

    mcp: FastMCP = FastMCP("both", lifespan=one | two)

    @mcp.tool
    def state(ctx: Context) -> dict[str, int]:
        return dict(ctx.lifespan_context)

    assert call(mcp, "state") == {"a": 1, "b": 2}
    assert left == ["two", "one"]


def test_a_tool_with_a_task_or_an_app_is_a_tool() -> None:
    mcp = FastMCP("x", tasks=True)
    mcp.tool(lambda: "done", name="work", task=True)
    mcp.tool(lambda: "shown", name="show", app=AppConfig(resource_uri="ui://show", prefers_border=True))
    work, show = talk(mcp, lambda client: client.list_tools())
    assert call(mcp, work.name) == "done"
    assert show.meta == {"ui": {"resourceUri": "ui://show", "prefersBorder": True}}


def test_a_server_without_any_of_it_has_nothing_around_its_requests() -> None:
    mcp = math()
    mcp.mount(FastMCP("plain"), "p")
    assert mcp._wrapper is None
