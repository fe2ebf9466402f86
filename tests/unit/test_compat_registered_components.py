"""Resources, templates and prompts of a FastMCP server, changed by the program that has registered them."""

from __future__ import annotations

import asyncio
from copy import copy, deepcopy
from typing import Any

import pytest
from support.in_memory import ask, with_client

from fastrpc.compat import dialect, fastmcp
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

GETTERS = {"resource": "get_resource", "template": "get_resource_template", "prompt": "get_prompt"}
KEYS = {"resource": "data://one", "template": "data://{name}", "prompt": "ask"}
LISTS = {
    "resource": ("resources/list", "resources"),
    "template": ("resources/templates/list", "resourceTemplates"),
    "prompt": ("prompts/list", "prompts"),
}
every_kind = pytest.mark.parametrize("kind", KEYS)


def server_of() -> fastmcp.FastMCP:
    server = fastmcp.FastMCP("live")

    @server.resource("data://one", tags={"a"})
    def one() -> str:
        """First."""
        return "1"

    @server.resource("data://{name}")
    def named(name: str) -> str:
        """By name."""
        return name

    @server.prompt(tags={"a"}, meta={"own": 1}, icons=[{"src": "https://example.com/i.png"}])
    def ask(question: str) -> str:
        """Ask."""
        return question

    @server.prompt
    def other() -> str:
        return "other"

    return server


def object_of(server: fastmcp.FastMCP, kind: str) -> Any:
    return asyncio.run(getattr(server, GETTERS[kind])(KEYS[kind]))


def listed(server: fastmcp.FastMCP, kind: str) -> dict[str, Any]:
    method, member = LISTS[kind]
    name = {"resource": "uri", "template": "uriTemplate", "prompt": "name"}[kind]
    found = ask(server, method, version=LATEST_SESSION_VERSION)[member]
    return {each[name]: each for each in found}


@every_kind
def test_what_is_set_on_a_component_is_listed(kind: str) -> None:
    server = server_of()
    found = object_of(server, kind)
    assert object_of(server, kind) is found
    listed(server, kind)  # which keeps what it has made
    found.description, found.title, found.meta = "Another", "Title", {"mine": 2}
    found.icons = [{"src": "https://example.com/other.png"}]
    found.tags.add("new")
    entry = listed(server, kind)[KEYS[kind]]
    assert (entry["description"], entry["title"]) == ("Another", "Title")
    assert entry["icons"] == [{"src": "https://example.com/other.png"}]
    assert entry["_meta"]["mine"] == 2
    assert "new" in entry["_meta"]["fastmcp"]["tags"]
    found.tags = {"last"}
    found.tags |= {"more"}
    assert listed(server, kind)[KEYS[kind]]["_meta"]["fastmcp"]["tags"] == ["last", "more"]


@pytest.mark.parametrize("kind", ["resource", "template"])
def test_a_resources_type_name_and_annotations_are_listed(kind: str) -> None:
    server = server_of()
    found = object_of(server, kind)
    found.mime_type, found.name, found.annotations = "text/x", "renamed", {"priority": 0.5}
    entry = listed(server, kind)[KEYS[kind]]
    assert (entry["mimeType"], entry["name"], entry["annotations"]) == (
        "text/x",
        "renamed",
        {"priority": 0.5},
    )


def test_arguments_of_a_prompt_are_described_anew() -> None:
    server = server_of()
    object_of(server, "prompt").arguments[0].description = "What to ask"
    assert listed(server, "prompt")["ask"]["arguments"][0]["description"] == "What to ask"


@every_kind
def test_another_function_is_called_with_the_same_parameters(kind: str) -> None:
    server = server_of()
    found = object_of(server, kind)
    former = found.fn
    found.fn = lambda *values, **named: f"traced {former(*values, **named)}"

    async def conversation(client: Any) -> str:
        if kind == "prompt":
            return str((await client.get_prompt("ask", {"question": "q"})).messages[0]["content"]["text"])
        return str((await client.read_resource("data://one" if kind == "resource" else "data://x")).text)

    expected = {"resource": "traced 1", "template": "traced x", "prompt": "traced q"}
    assert with_client(server, conversation) == expected[kind]
    assert listed(server, kind)[KEYS[kind]]["description"] in ("First.", "By name.", "Ask.")
    assert object_of(server, kind) is found


@every_kind
def test_a_component_that_is_disabled_is_gone_until_it_is_enabled(kind: str) -> None:
    server = server_of()
    found = object_of(server, kind)
    found.disable()
    assert object_of(server, kind) is None
    found.enable()
    assert KEYS[kind] in listed(server, kind)


@every_kind
@pytest.mark.parametrize("copied", [copy, deepcopy, lambda each: each.copy(update={"title": "T"})])
def test_a_copy_is_a_component_by_itself(copied: Any, kind: str) -> None:
    server = server_of()
    before = listed(server, kind)
    found = copied(object_of(server, kind))
    found.description = "Another"
    found.tags.add("new")
    assert listed(server, kind) == before


def test_a_changed_copy_is_added_by_its_own_name() -> None:
    server = server_of()
    server.add_prompt(object_of(server, "prompt").model_copy(update={"name": "again", "title": "Again"}))
    found = listed(server, "prompt")
    assert found["again"]["title"] == "Again"
    assert "title" not in found["ask"]


def test_components_of_a_server_that_is_mounted_show_what_was_changed() -> None:
    server, host = server_of(), fastmcp.FastMCP("host")
    host.mount(server, "up")
    found = object_of(server, "prompt")
    found.title, found.meta = "Title", {"mine": 2}
    entry = listed(host, "prompt")["up_ask"]
    assert (entry["title"], entry["_meta"]["mine"]) == ("Title", 2)


def test_a_tools_tags_are_changed_in_place() -> None:
    server = server_of()

    @server.tool(tags={"a"})
    def act() -> str:
        return ""

    tool = asyncio.run(server.get_tool("act"))
    tool.tags.add("b")
    tool.copy(update={"tags": {"c"}}).tags.add("d")
    [entry] = ask(server, "tools/list", version=LATEST_SESSION_VERSION)["tools"]
    assert entry["_meta"]["fastmcp"]["tags"] == ["a", "b"]


# --- what a prompt's result has ---------------------------------------------------------------------------


@pytest.fixture
def fastmcp_release() -> Any:
    yield lambda release: dialect.follow_release("fastmcp", release)
    dialect.follow_release("fastmcp", dialect.LATEST_KNOWN["fastmcp"])


def result_of(server: fastmcp.FastMCP, name: str, **arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(
        server, "prompts/get", {"name": name, "arguments": arguments}, LATEST_SESSION_VERSION
    )
    return found


def test_a_prompts_meta_is_sent_with_its_messages(fastmcp_release: Any) -> None:
    server = server_of()
    found = result_of(server, "ask", question="q")
    assert (found["_meta"], found["description"]) == ({"own": 1}, "Ask.")
    assert "_meta" not in result_of(server, "other")
    object_of(server, "prompt").meta = {"own": 2}
    assert result_of(server, "ask", question="q")["_meta"] == {"own": 2}
    fastmcp_release("2.14.0")
    assert "_meta" not in result_of(server_of(), "ask", question="q")


def test_a_prompts_result_has_its_own_description_and_meta() -> None:
    server = fastmcp.FastMCP("results")

    @server.prompt(description="of the prompt", meta={"prompt": 1})
    def own() -> Any:
        return fastmcp.PromptResult(
            [fastmcp.Message("hello")], description="of the result", meta={"result": 1}
        )

    @server.prompt(description="of the prompt", meta={"prompt": 1})
    def none() -> Any:
        return fastmcp.PromptResult("hello")

    found = result_of(server, "own")
    assert (found["_meta"], found["description"]) == ({"result": 1}, "of the result")
    assert result_of(server, "none").keys() == {"messages"}
