"""One bad entry does not take the others with it: what cannot be read is named when serving begins, what
cannot be written is left out of its list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.in_memory import ask, with_client

from fastrpc import Server, diagnostics
from fastrpc.content import ToolResult
from fastrpc.engine import listing
from fastrpc.errors import DefinitionError
from fastrpc.testing import Client

if TYPE_CHECKING:
    from decimal import Decimal as Money


def a_tool(app: Server) -> None:
    @app.tool
    def bad(amount: Money) -> str:
        return str(amount)


def a_result(app: Server) -> None:
    @app.tool
    def bad(amount: int) -> Money:
        return amount  # type: ignore[return-value]


def a_misspelt_type(app: Server) -> None:
    @app.tool
    def bad(words: list[strr]) -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""


class Shop:
    def bad(self, amount: int) -> str:
        return str(amount)

    def list(self, cursor: Money) -> Any:  # type: ignore[override]
        return []


def a_method(app: Server) -> None:
    app.tool(Shop.bad)


def a_template(app: Server) -> None:
    @app.resource("shop://{amount}")
    def bad(amount: Money) -> str:
        return str(amount)


def a_prompt(app: Server) -> None:
    @app.prompt
    def bad(amount: Money) -> str:
        return str(amount)


def a_completion(app: Server) -> None:
    @app.complete("greet", "name")
    def bad(value: Money) -> list[str]:
        return []


def a_provider(app: Server) -> None:
    app.resources("shop")(Shop)


BAD = [a_tool, a_result, a_misspelt_type, a_method, a_template, a_prompt, a_completion, a_provider]


def with_good_entries() -> Server:
    app = Server("good")

    @app.tool
    def echo(text: str) -> str:
        return text

    @app.prompt
    def greet(name: str) -> str:
        return name

    @app.resource("docs://one")
    def one() -> str:
        return "1"

    @app.resource("docs://all/{name}")
    def each(name: str) -> str:
        return name

    return app


@pytest.mark.parametrize("add", BAD)
def test_an_entry_that_cannot_be_read_is_named_when_serving_begins(add: Any) -> None:
    app = with_good_entries()
    add(app)
    for begin in (app.connect, lambda: app.asgi(auth=None)):
        with pytest.raises(DefinitionError, match=r"\(test_bad_entries.py, line ") as caught:
            begin()
        assert any(word in str(caught.value) for word in ("'Money'", "'strr'", "'self'"))


def test_every_entry_that_cannot_be_read_is_named() -> None:
    app = with_good_entries()
    a_tool(app)
    a_prompt(app)
    with pytest.raises(DefinitionError, match=r"bad \(test_bad.*; bad \(test_bad"):
        app.connect()


@pytest.mark.parametrize("add", BAD)
def test_a_server_that_mounts_one_names_the_entry_too(add: Any) -> None:
    inner = with_good_entries()
    add(inner)
    app = Server("host")
    app.mount(inner, "shop")
    with pytest.raises(DefinitionError, match="test_bad_entries"):
        app.connect()


@pytest.mark.parametrize("add", [a_tool, a_prompt, a_template, a_provider])
def test_what_is_added_while_serving_is_refused_where_it_is_added(add: Any) -> None:
    app = with_good_entries()

    async def conversation(client: Client) -> None:
        with pytest.raises(DefinitionError, match="'Money' is not defined"):
            add(app)
        assert [tool.name for tool in await client.list_tools()] == ["echo"]
        assert (await client.call_tool("echo", {"text": "a"})).text == "a"
        assert (await client.read_resource("docs://all/b")).text == "b"
        assert (await client.get_prompt("greet", {"name": "c"})).text == "c"
        assert (await client.list_resources())[0].uri == "docs://one"

    with_client(app, conversation)


def test_a_name_that_is_defined_before_serving_begins_is_none() -> None:
    app = Server("late")
    names: dict[str, Any] = {"app": app}
    exec(
        "from __future__ import annotations\n"
        "@app.tool\n"
        "def add(first: Later) -> str:\n"
        "    return str(first)\n"
        "Later = int\n",
        names,
    )
    schema = ask(app, "tools/list")["tools"][0]["inputSchema"]
    assert schema["properties"]["first"] == {"type": "integer"}


# --- what cannot be written ---------------------------------------------------------------------------------

HALF = "\ud800"


def test_an_entry_that_is_not_json_is_left_out_of_its_list_and_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "log", diagnostics.Once("error"))
    app = with_good_entries()

    def handler(text: str = HALF) -> ToolResult:
        return ToolResult(text)

    def plain() -> str:
        return ""

    app.add_tool(handler, name="half_default")
    app.add_tool(plain, name="half_text", description=HALF)
    app.add_tool(plain, name="an_object", meta={"a/b": object()})
    app.add_tool(plain, name="no_number", json_schema_extra={"default": float("nan")})
    app.registries.prompts.add(plain, name="half_prompt", description=HALF)
    app.resource("docs://half", description=HALF)(plain)
    app.resource("docs://half/{text}", title=HALF)(handler)

    async def conversation(client: Client) -> None:
        for _ in range(2):
            assert [each.name for each in await client.list_tools()] == ["echo"]
            assert [each.name for each in await client.list_prompts()] == ["greet"]
            assert [each.name for each in await client.list_resources()] == ["one"]
            assert [each.name for each in await client.list_resource_templates()] == ["each"]
        assert (await client.call_tool("echo", {"text": "a"})).text == "a"

    with_client(app, conversation)
    logged = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert len(logged) == len(set(logged)) == 7
    assert any("tool 'an_object' is left out of its list" in each for each in logged)
