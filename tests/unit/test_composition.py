"""Servers made of servers: names, collisions, what comes later, whose hooks and lifespan apply."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
import types
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.in_memory import with_client

from fastrpc import Context, DefinitionError, Server, ToolError, tool
from fastrpc.protocol.versions import STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError


def run(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 30))


def notes_server(**options: Any) -> Server:
    """A server with one of each kind."""
    notes = Server("notes", **options)

    @notes.tool
    def add(text: str) -> str:
        """Add a note."""
        return f"added {text}"

    @notes.resource("notes://all")
    def everything() -> str:
        return "all notes"

    @notes.resource("notes://{name}/text")
    def one(name: str) -> str:
        return f"note {name}"

    @notes.resources("memo")
    class Memos:
        def list(self, cursor: str | None) -> Any:
            return ["memo:a"]

        def read(self, uri: str) -> str:
            return f"memo {uri}"

    @notes.prompt
    def review(language: str) -> str:
        return f"review {language}"

    @notes.complete("review", "language")
    def languages(value: str) -> list[str]:
        return [name for name in ("python", "perl") if name.startswith(value)]

    @notes.complete("notes://{name}/text", "name")
    def names(value: str) -> list[str]:
        return [value + "1"]

    return notes


# --- include ------------------------------------------------------------------------------------------


def test_include_adds_the_marked_tools_of_a_module() -> None:
    module = types.ModuleType("tools_of_mine")

    @tool
    def echo(text: str) -> str:
        return text

    echo.__module__ = module.__name__
    module.echo = echo  # type: ignore[attr-defined]
    app = Server("t")
    app.include(module)
    assert "echo" in app.tools
    with pytest.raises(DefinitionError, match="echo"):
        app.include(module)


# --- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_shows_under_its_prefix_and_works(version: str) -> None:
    app = Server("t")
    app.mount(notes_server(), "n")

    async def conversation(client: Client) -> None:
        assert [entry["name"] for entry in await client.tools()] == ["n_add"]
        assert (await client.call("n_add", text="a")).text == "added a"
        page = await client.request("resources/list")
        listed = [entry["uri"] for entry in page["resources"]]
        while "nextCursor" in page:
            page = await client.request("resources/list", {"cursor": page["nextCursor"]})
            listed += [entry["uri"] for entry in page["resources"]]
        assert listed == ["notes://all", "memo:a"]
        templates = (await client.request("resources/templates/list"))["resourceTemplates"]
        assert [entry["uriTemplate"] for entry in templates] == ["notes://{name}/text"]
        for uri, text in (
            ("notes://all", "all notes"),
            ("notes://x/text", "note x"),
            ("memo:b", "memo memo:b"),
        ):
            contents = (await client.request("resources/read", {"uri": uri}))["contents"]
            assert contents[0]["text"] == text
        prompts = (await client.request("prompts/list"))["prompts"]
        assert [entry["name"] for entry in prompts] == ["n_review"]
        got = await client.request("prompts/get", {"name": "n_review", "arguments": {"language": "C"}})
        assert got["messages"][0]["content"]["text"] == "review C"
        for reference, argument, values in (
            ({"type": "ref/prompt", "name": "n_review"}, "language", ["perl"]),
            ({"type": "ref/resource", "uri": "notes://{name}/text"}, "name", ["pe1"]),
        ):
            asked = {"ref": reference, "argument": {"name": argument, "value": "pe"}}
            assert (await client.request("completion/complete", asked))["completion"]["values"] == values
        with pytest.raises(RemoteError):
            await client.call("add", text="a")

    with_client(app, conversation, version=version)


def test_without_a_prefix_names_stay_and_one_server_may_be_mounted_twice() -> None:
    other = Server("other")
    other.add_tool(lambda: "x", name="x")
    app = Server("t")
    app.mount(other)
    app.mount(other, "again")
    assert [entry.name for entry in app.tools] == ["x", "again_x"]
    assert [entry.name for entry in other.tools] == ["x"]


def test_a_name_that_is_taken_is_refused_and_nothing_is_mounted() -> None:
    app = Server("t")
    app.add_tool(lambda: "mine", name="n_add")
    with pytest.raises(DefinitionError, match="n_add"):
        app.mount(notes_server(), "n")
    assert len(app.tools) == 1
    assert len(app.registries.prompts) == 0
    assert len(app.registries.resources) == 0
    app.prompt(lambda: "mine", name="p_review")
    with pytest.raises(DefinitionError, match="p_review"):
        app.mount(notes_server(), "p")
    assert len(app.tools) == 1
    app.mount(notes_server(), "m")
    with pytest.raises(DefinitionError, match="notes://"):
        app.mount(notes_server(), "k")
    with pytest.raises(DefinitionError, match="m_add"):
        app.add_tool(lambda: "mine", name="m_add")


@pytest.mark.parametrize("prefix", ["a b", "ä", "x" * 128, 3])
def test_a_prefix_that_makes_no_name_is_refused(prefix: Any) -> None:
    with pytest.raises(DefinitionError):
        Server("t").mount(notes_server(), prefix)


def test_a_server_cannot_hold_itself() -> None:
    a, b, c = Server("a"), Server("b"), Server("c")
    a.mount(b, "b")
    b.mount(c, "c")
    for inner, outer in ((a, a), (c, a), (b, a)):
        with pytest.raises(DefinitionError, match="in itself"):
            inner.mount(outer)
    with pytest.raises(DefinitionError, match="expected a Server"):
        a.mount(object())  # type: ignore[arg-type]


# --- what comes later ---------------------------------------------------------------------------------


def test_what_is_added_and_removed_later_shows_and_clients_are_notified() -> None:
    inner, middle, app = Server("inner"), Server("middle"), Server("t")
    middle.mount(inner, "i")
    app.mount(middle, "m")

    async def conversation(client: Client) -> None:
        assert await client.tools() == []
        inner.add_tool(lambda: "late", name="late")
        await asyncio.sleep(0.01)
        assert [entry["name"] for entry in await client.tools()] == ["m_i_late"]
        assert (await client.call("m_i_late")).text == "late"
        inner.remove_tool("late")
        await asyncio.sleep(0.01)
        assert await client.tools() == []
        told = [message["method"] for message in client.notifications]
        assert told == ["notifications/tools/list_changed"] * 2

    with_client(app, conversation)


def test_a_description_that_is_changed_later_shows_in_every_outer_server() -> None:
    inner, middle, outer = Server("inner"), Server("middle"), Server("outer")

    @inner.tool
    def look() -> str:
        """Before."""
        return "seen"

    middle.mount(inner, "in")
    outer.mount(middle, "out")

    async def conversation(client: Client) -> None:
        assert (await client.tools())[0]["description"] == "Before."
        inner.tools.get("look").description = "Behind."
        inner.tools.changed()
        assert (await client.tools())[0] == {
            "name": "out_in_look",
            "description": "Behind.",
            "inputSchema": {"type": "object", "properties": {}},
        }

    with_client(outer, conversation)


def test_a_late_addition_whose_name_is_taken_is_refused_everywhere() -> None:
    other, app = Server("other"), Server("t")
    app.add_tool(lambda: "mine", name="o_x")
    app.mount(other, "o")
    with pytest.raises(DefinitionError, match="o_x"):
        other.add_tool(lambda: "theirs", name="x")
    assert len(other.tools) == 0
    assert len(app.tools) == 1
    app.remove_tool("o_x")
    other.add_tool(lambda: "theirs", name="x")
    assert "o_x" in app.tools


def test_tools_that_are_loaded_late_show_too() -> None:
    def loaded() -> str:
        return "loaded"

    from fastrpc.definitions.tool import Tool

    other, app = Server("other"), Server("t")
    other.load_tools_later(lambda: [Tool(loaded)])
    app.mount(other, "o")
    assert with_client(app, lambda client: client.call("o_loaded")).text == "loaded"


def test_an_updated_resource_is_sent_to_the_clients_of_the_outer_server() -> None:
    notes, app = notes_server(), Server("t")
    app.mount(notes, "n")

    async def conversation(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "notes://all"})
        notes.resource_updated("notes://all")
        await asyncio.sleep(0.01)
        told = [message for message in client.notifications if "resources/updated" in message["method"]]
        assert [message["params"]["uri"] for message in told] == ["notes://all"]

    with_client(app, conversation)


# --- whose call it is ---------------------------------------------------------------------------------


def test_progress_and_cancellation_are_those_of_the_call() -> None:
    other, app = Server("other"), Server("t")
    ended = []

    @other.tool
    async def work(context: Context) -> str:
        context.progress(1, 2)
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)
        return "done"

    app.mount(other, "o")

    async def conversation(client: Client) -> None:
        params = {"name": "o_work", "arguments": {}, "_meta": {"progressToken": "p"}}
        id, _ = client.begin("tools/call", params)
        while not client.notifications:
            await asyncio.sleep(0.01)
        assert client.notifications[0]["params"] == {"progressToken": "p", "progress": 1, "total": 2}
        client.cancel(id)
        while not ended:
            await asyncio.sleep(0.01)
        assert ended == [True]

    with_client(app, conversation)


def test_hooks_of_each_server_apply_to_its_own_tools_by_the_names_there() -> None:
    inner, middle, app = Server("inner"), Server("middle"), Server("t")
    seen: list[str] = []

    @inner.tool
    def x(text: str = "") -> str:
        return text

    def mine(text: str = "") -> str:
        return text

    app.add_tool(mine, name="mine")
    middle.mount(inner, "i")
    app.mount(middle, "m")
    for server in (app, inner, middle):
        server.before(lambda call, name=server.name: seen.append(f"{name}: {call.tool}"))
    inner.after(lambda call, result: result + " inner", tools="x")
    app.after(lambda call, result: result + " outer", tools="m_*")

    async def conversation(client: Client) -> None:
        assert (await client.call("m_i_x", text="a")).text == "a inner outer"
        assert seen == ["t: m_i_x", "middle: i_x", "inner: x"]
        assert (await client.call("mine", text="a")).text == "a"
        inner.before(refuse)
        assert (await client.call("m_i_x")).is_error

    def refuse(call: Any) -> None:
        raise ToolError("refused")

    with_client(app, conversation)


def test_a_lifespan_belongs_to_its_own_server() -> None:
    events: list[str] = []

    @contextlib.asynccontextmanager
    async def life(server: Server) -> AsyncIterator[str]:
        events.append(f"enter {server.name}")
        await asyncio.sleep(0)
        yield f"state of {server.name}"
        events.append(f"leave {server.name}")

    def state(context: Context) -> str:
        return str(context.state)

    other, app = Server("other", lifespan=life), Server("t", lifespan=life)
    other.add_tool(state, name="theirs", run="inline")
    app.add_tool(state, name="mine", run="inline")
    app.mount(other, "o")

    async def conversation(client: Client) -> None:
        assert (await client.call("mine")).text == "state of t"
        assert events == ["enter t"]
        assert (await client.call("o_theirs")).text == "state of other"
        assert (await client.call("o_theirs")).text == "state of other"
        assert events == ["enter t", "enter other"]

    with_client(app, conversation)
    assert events[:2] == ["enter t", "enter other"]
    assert sorted(events[2:]) == ["leave other", "leave t"]


def test_a_mounted_tool_of_plain_parameters_keeps_its_compiled_plan() -> None:
    other, app = Server("other"), Server("t")

    def plain(text: str) -> str:
        return text

    other.add_tool(plain, name="plain", run="inline")
    app.mount(other, "o")
    plan = app.runtime.plans.tools["o_plain"]
    assert plan.inline
    assert plan.tool is app.tools.get("o_plain")
    assert with_client(app, lambda client: client.call("o_plain", text="a"), version=STATELESS).text == "a"


# --- the examples -------------------------------------------------------------------------------------


def example(name: str) -> Server:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    specification = importlib.util.spec_from_file_location(
        f"example_{name}", os.path.join(folder, "examples", f"{name}.py")
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    app: Server = module.app
    return app


def test_the_example_of_mounted_servers() -> None:
    async def conversation(client: Client) -> None:
        names = [entry["name"] for entry in await client.tools()]
        assert names == ["clock_minutes", "words_count", "words_longest"]
        assert (await client.call("clock_minutes", hours=2, minutes=5)).text == "125"
        assert (await client.call("words_count", text='"two words"')).text == "2"

    with_client(example("mount"), conversation)


def test_the_example_of_a_lifespan() -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("note", text="a")).text == "1"
        assert (await client.call("note", text="b")).text == "2"
        assert (await client.call("notes")).structured == {"result": ["a", "b"]}

    with_client(example("lifespan"), conversation)


def test_the_example_of_hooks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKS_ROOT", str(tmp_path))

    async def conversation(client: Client) -> None:
        assert (await client.call("file_append", path="a", text="line")).text == "written, 5 bytes now"
        assert (await client.call("file_size", path="a")).text == "5"
        assert (await client.call("file_size", path="b")).text == "there is no file b"
        assert (await client.call("file_size", path="../b")).is_error
        counts = (await client.call("calls")).structured
        assert counts == {"file_append": 1, "file_size": 3, "calls": 1}

    with_client(example("hooks"), conversation)


def test_the_example_of_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    async def conversation(client: Client) -> None:
        assert {"front", "clock_minutes", "words_count"} <= {entry["name"] for entry in await client.tools()}
        assert (await client.call("words_count", text="two words")).text == "2"
        assert "10,000" in (await client.call("words_count", text="x" * 10_001)).text

    with_client(example("proxy"), conversation)
