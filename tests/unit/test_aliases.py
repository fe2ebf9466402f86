"""Members and parameters with an alias: the name in the schema is the one that is taken, and written."""

from __future__ import annotations

import asyncio
import warnings
from typing import Annotated, Any

import pytest
import typing_extensions
from support.in_memory import ask, with_client

from fastrpc import Context, Server
from fastrpc.errors import DefinitionError
from fastrpc.testing import Client

pydantic = pytest.importorskip("pydantic")
msgspec = pytest.importorskip("msgspec")
Field, AliasChoices = pydantic.Field, pydantic.AliasChoices

Plain = Annotated[int, Field(alias="outer", ge=1)]
Validated = Annotated[int, Field(validation_alias="outer")]
Chosen = Annotated[int, Field(validation_alias=AliasChoices("outer", "other"))]
Written = Annotated[int, Field(serialization_alias="outer")]


def annotated(a: Plain) -> str:
    return repr(a)


def validated(a: Validated, b: int = 2) -> str:
    return f"{a}"


def chosen(a: Chosen) -> str:
    return repr(a)


def by_default(a: int = Field(alias="outer")) -> str:
    return repr(a)


def with_value(b: int = 0, a: int = Field(1, alias="outer")) -> str:
    return repr(a)


def only_by_keyword(*, b: int = 2, a: Plain) -> str:
    return f"{a}"


async def with_context(ctx: Context, a: Plain) -> str:
    return f"{a}"


ALIASED = (annotated, validated, chosen, by_default, with_value, only_by_keyword, with_context)


def called(function: Any, **arguments: Any) -> tuple[dict[str, Any], Any]:
    """The input schema of a function as a tool, and the result of a call."""

    async def conversation(client: Client) -> Any:
        [tool] = await client.list_tools()
        result = [await client.call(function.__name__, **arguments) for _ in range(3)][-1]
        return tool["inputSchema"], result

    app = Server("aliases")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app.tool(function)
        found: tuple[dict[str, Any], Any] = with_client(app, conversation)
    return found


@pytest.mark.parametrize("function", ALIASED)
def test_a_parameter_with_an_alias_is_published_and_taken_by_it(function: Any) -> None:
    schema, result = called(function, outer=5)
    assert "outer" in schema["properties"]
    assert "a" not in schema["properties"]
    assert result.text == "5"
    missing = called(function, a=5)[1]
    assert missing.is_error or function is with_value


def test_an_alias_for_writing_names_no_argument() -> None:
    def written(a: Written) -> str:
        return repr(a)

    schema, result = called(written, a=5)
    assert [*schema["properties"]] == ["a"]
    assert result.text == "5"


def test_two_parameters_of_one_name_are_refused() -> None:
    def twice(outer: int, a: Plain) -> str:
        return ""

    with pytest.raises(DefinitionError, match="two parameters of the same name"):
        called(twice)


def test_prompts_and_templates_take_theirs_by_it() -> None:
    app = Server("others")

    @app.prompt
    def say(a: Annotated[str, Field(alias="style")]) -> str:
        return a

    @app.resource("x://{key}")
    def at(a: Annotated[str, Field(alias="key")]) -> str:
        return a

    got = ask(app, "prompts/get", {"name": "say", "arguments": {"style": "short"}})
    assert got["messages"][0]["content"]["text"] == "short"
    assert ask(app, "prompts/list")["prompts"][0]["arguments"][0]["name"] == "style"
    assert ask(app, "resources/read", {"uri": "x://v"})["contents"][0]["text"] == "v"


class Aliased(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int = Field(alias="A")


class Read(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int = Field(validation_alias="A")


class Both(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int = Field(validation_alias="A", serialization_alias="B")


class Either(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    model_config = pydantic.ConfigDict(populate_by_name=True)

    a: int = Field(alias="A")


class Choices(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int = Field(validation_alias=AliasChoices("A", "C"))


class Nested(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    inner: list[Aliased] = Field(alias="Inner")


class Camel(msgspec.Struct, rename="camel"):  # type: ignore[misc, name-defined, call-arg]
    a_b: int


class Named(msgspec.Struct):  # type: ignore[misc, name-defined]
    a: int = msgspec.field(name="A")


MODELS = {
    Aliased: {"A": 1},
    Read: {"A": 1},
    Both: {"A": 1},
    Either: {"A": 1},
    Choices: {"A": 1},
    Nested: {"Inner": [{"A": 1}]},
    Camel: {"aB": 1},
    Named: {"A": 1},
}


@pytest.mark.parametrize("model", MODELS)
def test_models_are_taken_and_written_as_their_schemas_say(model: Any) -> None:
    def through(m: Any) -> Any:
        return m

    through.__annotations__.update({"m": model, "return": model})

    async def conversation(client: Client) -> None:
        [tool] = await client.list_tools()
        assert [*tool["inputSchema"]["properties"]["m"]["properties"]] == [*MODELS[model]]
        result = await client.call("through", m=MODELS[model])
        assert [*result.structured] == [*tool["outputSchema"]["properties"]]

    app = Server("models")
    app.tool(through)
    asyncio.run(asyncio.wait_for(_with(app, conversation), 60))


class Members(typing_extensions.TypedDict):
    a: Annotated[int, Field(alias="A")]
    rest: typing_extensions.NotRequired[list[Aliased]]


def test_a_typed_dict_goes_through_a_function_and_is_written_by_its_aliases() -> None:
    def through(m: Members) -> Members:
        assert m["a"] == 1
        return m

    async def conversation(client: Client) -> None:
        result = await client.call("through", m={"A": 1, "rest": [{"A": 2}]})
        assert result.structured == {"A": 1, "rest": [{"A": 2}]}

    app = Server("members")
    app.tool(through)
    asyncio.run(asyncio.wait_for(_with(app, conversation), 60))


def test_structured_content_that_a_tool_makes_itself_is_held_against_the_aliases() -> None:
    from fastrpc.engine.output_validation import OutputMismatch, check_structured
    from fastrpc.schema import describe

    def through() -> Members:
        raise NotImplementedError

    signature = describe(through)
    check_structured(signature, {"A": 1})
    with pytest.raises(OutputMismatch, match="A: required, missing"):
        check_structured(signature, {"a": 1})


async def _with(app: Server, conversation: Any) -> None:
    async with Client(app) as client:
        await conversation(client)


def test_a_path_into_another_member_has_no_schema_and_is_refused() -> None:
    class Within(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        a: int = Field(validation_alias=pydantic.AliasPath("x", 0))

    def within(m: Any) -> str:
        return ""

    within.__annotations__["m"] = Within
    with pytest.raises(DefinitionError, match="AliasPath"):
        called(within)
