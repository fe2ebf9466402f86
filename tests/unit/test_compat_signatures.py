"""Signatures of functions that were written for FastMCP or the official SDK: what they declare works here.

The expected values are those that the same functions gave on FastMCP 2.14 and 4.1 and on the SDK 1.30 and
2.3, unless a test says that they differ.
"""

# ruff: noqa: B008, UP006, UP007, UP035, UP045 - how older files write annotations is what is tested

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Dict, List, NamedTuple, NewType, Optional, Tuple, TypeVar, Union
from uuid import UUID

import pytest
from pydantic import Field
from support.in_memory import ask, with_client

from fastrpc.compat.fastmcp import Context, FastMCP
from fastrpc.compat.mcp import FastMCP as SdkFastMCP
from fastrpc.errors import DefinitionError

UserId = NewType("UserId", int)
Anything = TypeVar("Anything")


class Pair(NamedTuple):
    first: int
    second: str = "z"


def added(function: Callable[..., Any], kind: Any = FastMCP, name: str = "tool") -> Any:
    app = kind("demo")
    app.add_tool(function, name=name)
    return app


def called(function: Callable[..., Any], kind: Any = FastMCP, /, **arguments: Any) -> Any:
    app = added(function, kind)
    return with_client(app, lambda client: client.call("tool", **arguments))


def text_of(function: Callable[..., Any], kind: Any = FastMCP, /, **arguments: Any) -> str:
    result = called(function, kind, **arguments)
    assert not result.is_error, result.text
    return str(result.text)


def schema_of(function: Callable[..., Any], kind: Any = FastMCP) -> dict[str, Any]:
    (tool,) = ask(added(function, kind), "tools/list")["tools"]
    schema: dict[str, Any] = tool["inputSchema"]
    return schema


def property_of(function: Callable[..., Any]) -> dict[str, Any]:
    (found,) = schema_of(function)["properties"].values()
    return dict(found)


def taking(annotation: Any) -> Callable[..., Any]:
    def tool(x: Any) -> str:
        return repr(x)

    tool.__annotations__ = {"x": annotation, "return": str}
    return tool


# ------------------------------------------------------------------------------------ types


@pytest.mark.parametrize("returned", [Dict, List, Tuple, Optional[Dict], Optional[List], Dict[str, Any]])
def test_bare_generic_types_may_be_returned(returned: Any) -> None:
    def tool() -> Any:
        return {"a": 1}

    tool.__annotations__["return"] = returned
    added(tool)


@pytest.mark.parametrize(
    ("annotation", "given", "received"),
    [
        (Dict, {"a": 1}, "{'a': 1}"),
        (List, [1], "[1]"),
        (Optional[List], None, "None"),
        (UUID, "12345678123456781234567812345678", repr(UUID("12345678-1234-5678-1234-567812345678"))),
        (set[str], ["a", "a"], "{'a'}"),
        (tuple[int, ...], [1, 2], "(1, 2)"),
        (UserId, 5, "5"),
        (List[Anything], [1, "a"], "[1, 'a']"),  # type: ignore[valid-type]
        (Dict[str, List[Dict[str, Union[int, str, None]]]], {"a": [{"b": None}]}, "{'a': [{'b': None}]}"),
    ],
)
def test_types_that_need_no_pydantic(annotation: Any, given: Any, received: str) -> None:
    assert text_of(taking(annotation), x=given) == received


@pytest.mark.parametrize(
    ("annotation", "given", "received"),
    [
        (Path, "/a/b", repr(Path("/a/b"))),
        (bytes, "aGVsbG8=", repr(b"aGVsbG8=")),
        (Union[str, bytes], "x", "'x'"),
        (datetime, "2024-01-02", repr(datetime(2024, 1, 2))),
        (datetime, "2024-01-02 03:04", repr(datetime(2024, 1, 2, 3, 4))),
        (Optional[datetime], None, "None"),
        (date, "2024-01-02T00:00:00", repr(date(2024, 1, 2))),
        (timedelta, "01:00:00", repr(timedelta(hours=1))),
        (List[timedelta], ["01:00:00"], repr([timedelta(hours=1)])),
        (Decimal, 1.5, repr(Decimal("1.5"))),
        (Pair, {"first": 1}, repr(Pair(1))),
    ],
)
def test_types_in_the_notations_that_pydantic_reads(annotation: Any, given: Any, received: str) -> None:
    pytest.importorskip("pydantic", reason="it reads them")
    assert text_of(taking(annotation), x=given) == received


def test_a_class_that_pydantic_does_not_know_may_be_in_a_union() -> None:
    pytest.importorskip("pydantic", reason="it reads the union")
    assert text_of(taking(Union[bytes, bytearray]), SdkFastMCP, x="a") == "b'a'"


def test_a_type_that_no_schema_describes_is_refused_where_it_is_declared() -> None:
    with pytest.raises(DefinitionError, match="no JSON Schema can be made of"):
        added(taking(Callable))


# ------------------------------------------------------------------------------------ Field


def test_a_default_made_by_field() -> None:
    pydantic = pytest.importorskip("pydantic")

    def tool(
        x: int = pydantic.Field(default=5, ge=1, le=9, description="how many"),
        y: list[str] = pydantic.Field(default_factory=list),
    ) -> str:
        return repr((x, y))

    assert text_of(tool) == "(5, [])"
    assert called(tool, x=99).is_error
    assert schema_of(tool)["properties"]["x"] == {
        "type": "integer",
        "description": "how many",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
    }


def test_a_field_without_a_default_is_required() -> None:
    pydantic = pytest.importorskip("pydantic")

    def tool(x: str = pydantic.Field(description="needed")) -> str:
        return x

    assert schema_of(tool)["required"] == ["x"]


def test_a_field_in_the_annotation_and_another_as_the_default() -> None:
    pydantic = pytest.importorskip("pydantic")

    def tool(x: Any = pydantic.Field(default="abc", description="outer", max_length=5)) -> str:
        return str(x)

    tool.__annotations__["x"] = Annotated[str, pydantic.Field(description="inner", min_length=2)]
    assert property_of(tool)["description"] == "outer"
    assert text_of(tool) == "abc"
    assert called(tool, x="a").is_error
    assert called(tool, x="aaaaaa").is_error


def test_members_of_a_field_for_the_schema_alone() -> None:
    pydantic = pytest.importorskip("pydantic")

    def tool(x: str = pydantic.Field(..., examples=["ab"], json_schema_extra={"widget": "line"})) -> str:
        return x

    found = property_of(tool)
    assert found["examples"] == ["ab"]
    assert found["widget"] == "line"
    assert schema_of(tool)["required"] == ["x"]


@pytest.mark.parametrize("as_text", [False, True])
def test_an_alias_is_the_name_for_clients(as_text: bool) -> None:
    pydantic = pytest.importorskip("pydantic")
    namespace = {"Annotated": Annotated, "Field": pydantic.Field}
    lines = [
        "from __future__ import annotations" if as_text else "",
        "def tool(a: int, x: Annotated[str, Field(alias='theX')] = 'd', *, y: int = 1) -> str:",
        "    return repr((a, x, y))",
    ]
    exec(compile("\n".join(lines), "tool.py", "exec", dont_inherit=True), namespace)
    tool = namespace["tool"]
    assert list(schema_of(tool)["properties"]) == ["a", "theX", "y"]
    assert text_of(tool, a=1, theX="e", y=2) == "(1, 'e', 2)"
    assert text_of(tool, a=1, x="e") == "(1, 'd', 1)"


# ------------------------------------------------------------------------------------ variable parameters


def test_variable_parameters_have_their_own_names_in_the_sdk() -> None:
    def tool(x: int, **kwargs: Any) -> str:
        return repr((x, kwargs))

    assert text_of(tool, SdkFastMCP, x=1, kwargs={"a": 1}) == "(1, {'kwargs': {'a': 1}})"
    with pytest.raises(DefinitionError, match=r"\*\*arguments"):
        added(tool)


# ------------------------------------------------------------------------------------ Context


def with_context(source: str) -> Any:
    namespace: dict[str, Any] = {"Context": Context, "Optional": Optional, "Annotated": Annotated}
    text = f"from __future__ import annotations\ndef tool({source}) -> str:\n    return type(ctx).__name__"
    exec(compile(text, "tool.py", "exec", dont_inherit=True), namespace)
    return namespace["tool"]


@pytest.mark.parametrize(
    "source",
    [
        "x: int, ctx: Context = None",
        "x: int, ctx: Optional[Context] = None",
        "x: int, ctx: Context | None = None",
        "x: int, ctx: Annotated[Context, 'the context']",
        "ctx: Context[ServerSession, AppContext], x: int",
        "x: int, *, ctx: Context",
    ],
)
def test_annotations_that_are_a_context(source: str) -> None:
    tool = with_context(source)
    assert list(schema_of(tool)["properties"]) == ["x"]
    assert text_of(tool, x=1) == "Context"


def test_two_parameters_for_the_context() -> None:
    def tool(ctx: Context, x: int, other: Optional[Context] = None) -> str:
        return f"{x} {ctx is other}"

    assert text_of(tool, x=1) == "1 True"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_context_in_a_function_whose_call_pydantic_validates(is_async: bool) -> None:
    pydantic = pytest.importorskip("pydantic")

    async def later(ctx: Context, x: int) -> str:
        return f"{x} {type(ctx).__name__}"

    def now(ctx: Context, x: int) -> str:
        return f"{x} {type(ctx).__name__}"

    assert text_of(pydantic.validate_call(later if is_async else now), x=1) == "1 Context"


# ------------------------------------------------------------------------------------ awaitable results


async def inner(x: str) -> str:
    return f"got {x}"


def returns_coroutine(x: str) -> Any:
    return inner(x)


def says_it_returns_text(x: str) -> str:
    return inner(x)  # type: ignore[return-value]


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*values: Any, **named: Any) -> Any:
        return function(*values, **named)

    return wrapper


class Later:
    def __await__(self) -> Any:
        return "got q"
        yield


@pytest.mark.parametrize(
    "function",
    [
        returns_coroutine,
        says_it_returns_text,
        decorated(returns_coroutine),
        decorated(inner),
        lambda x: inner(x),
        functools.partial(inner),
        functools.partial(returns_coroutine, "q"),
        lambda x: Later(),
    ],
)
def test_an_awaitable_that_a_plain_function_returns_is_awaited(function: Any) -> None:
    """Not in the SDK, which awaits those of resources and prompts alone."""
    arguments = {} if isinstance(function, functools.partial) and function.args else {"x": "q"}
    assert text_of(function, **arguments) == "got q"


def test_a_function_that_returns_coroutines_is_awaited_in_each_of_many_calls() -> None:
    """A synchronous function that was quick often enough runs inline, where nothing could be awaited."""
    app = added(says_it_returns_text)

    async def converse(client: Any) -> set[str]:
        return {(await client.call("tool", x="q")).text for _ in range(60)}

    assert with_client(app, converse) == {"got q"}


def test_an_awaited_failure_is_the_tools_failure() -> None:
    async def fail() -> str:
        raise ValueError("no such file")

    def tool() -> Any:
        return fail()

    result = called(tool)
    assert result.is_error
    assert "no such file" in result.text


def test_awaitables_of_resources_and_prompts() -> None:
    app = FastMCP("demo")

    @app.resource("r://a")
    def page() -> Any:
        return inner("page")

    @app.prompt()
    def review() -> Any:
        return inner("prompt")

    assert ask(app, "resources/read", {"uri": "r://a"})["contents"][0]["text"] == "got page"
    message = ask(app, "prompts/get", {"name": "review"})["messages"][0]
    assert message["content"]["text"] == "got prompt"


def test_time_zones_are_read() -> None:
    pytest.importorskip("pydantic", reason="it reads dates")

    def tool(x: datetime) -> bool:
        return x == datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)

    assert text_of(tool, x="2024-01-02T03:04:05Z") == "true"


# ------------------------------------------------------------------------------------ docstrings


GOOGLE = """Do a thing.

More words.

Args:
    a: The first
        which goes on
    b (str, optional): The second: a text.
    ctx: the context

Returns:
    str: The result.
"""
NUMPY = """Do a thing.

More words.

Parameters
----------
a : int
    The first
    which goes on
b : str, optional
    The second: a text.

Returns
-------
str
    The result.
"""
SPHINX = """Do a thing.

More words.

:param a: The first
    which goes on
:param str b: The second: a text.
:returns: The result
"""


def documented(document: str) -> Callable[..., Any]:
    def tool(a: int, ctx: Context, b: str = "x") -> str:
        return ""

    tool.__doc__ = document
    return tool


def described_by(document: str, kind: Any = FastMCP) -> tuple[Any, list[Any]]:
    (tool,) = ask(added(documented(document), kind), "tools/list")["tools"]
    properties = tool["inputSchema"]["properties"]
    return tool.get("description"), [member.get("description") for member in properties.values()]


@pytest.mark.parametrize("document", [GOOGLE, NUMPY, SPHINX])
def test_docstrings_describe_parameters(document: str) -> None:
    """FastMCP 2 leaves the docstring as it is."""
    assert described_by(document) == (
        "Do a thing.\n\nMore words.",
        ["The first\nwhich goes on", "The second: a text."],
    )


def test_a_docstring_without_a_section_stays_as_it_is() -> None:
    document = "Do.\nArgs:\n    a: not a section"
    assert described_by(document) == (document, [None, None])


def test_the_sdk_leaves_docstrings_as_they_are() -> None:
    description, members = described_by(GOOGLE, SdkFastMCP)
    assert "which goes on" in description
    assert members == [None, None]


def test_a_description_in_the_annotation_counts_for_more_than_the_docstring() -> None:
    def tool(a: Annotated[int, "mine"], b: "str" = "x") -> str:  # noqa: UP037
        """Do.

        Args:
            a: the docstring's
            b: quoted
        """
        return ""

    tool.__annotations__["a"] = Annotated[int, "mine"]
    assert [member["description"] for member in schema_of(tool)["properties"].values()] == ["mine", "quoted"]


def test_a_given_description_and_the_docstrings_parameters() -> None:
    app = FastMCP("demo")
    app.add_tool(documented(GOOGLE), name="tool", description="Given")
    (tool,) = ask(app, "tools/list")["tools"]
    assert tool["description"] == "Given"
    assert tool["inputSchema"]["properties"]["b"]["description"] == "The second: a text."


def test_resources_keep_their_docstring() -> None:
    app = FastMCP("demo")

    @app.resource("r://{a}")
    def page(a: str) -> str:
        """Read.

        Args:
            a: which
        """
        return a

    (template,) = ask(app, "resources/templates/list")["resourceTemplates"]
    assert template["description"] == "Read.\n\nArgs:\n    a: which"


@pytest.mark.parametrize(
    ("annotation", "description"),
    [
        (Annotated[int, Field(description="field"), "text"], "field"),
        (Annotated[int, "text", Field(description="field")], "field"),
        (Annotated[int, Field(ge=1), "text"], "text"),
        (Annotated[int, "text", Field(ge=1), Field(description="field")], "field"),
        (Annotated[int, "one", "two"], "two"),
    ],
    ids=str,
)
def test_a_field_describes_a_parameter_better_than_a_text_beside_it(
    annotation: Any, description: str
) -> None:
    assert property_of(taking(annotation))["description"] == description
