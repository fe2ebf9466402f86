"""The tool `echo` in the forms in which people write parameters, results and failures: what W12b measures.

`python forms.py FORM` serves one of `FORMS` over stdio. Each says what a call passes for a text, and what has
to come of it.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import attrs
import msgspec
import pydantic

from fastrpc import Context, Image, Meta, Server, Text, ToolError, ToolResult

Answer = dict[str, Any]
Maker = Callable[[str], Any]


class Form(NamedTuple):
    """One way to write `echo`, and what is asked of it: at least `bar` times the calls a second of `twin`."""

    function: Callable[..., Any]
    want: Callable[[str], Answer]
    arguments: Callable[[str], dict[str, Any]]
    bar: float | None
    twin: str

    @property
    def title(self) -> str:
        """What the form is, in the words of its function."""
        return (self.function.__doc__ or "").rstrip(".")


FORMS: dict[str, Form] = {}


def form(
    want: Callable[[str], Answer],
    *,
    bar: float | None = 0.1,
    twin: str = "plain",
    arguments: Callable[[str], dict[str, Any]] = lambda text: {"text": text},
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to `FORMS`, as its name says."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        FORMS[function.__name__.removesuffix("_")] = Form(function, want, arguments, bar, twin)
        return function

    return add


# --------------------------------------------------------------------------------------- what is answered


def texts(*make: Maker, is_error: bool = False) -> Callable[[str], Answer]:
    """A text block for each function."""
    return lambda text: {
        "content": [{"type": "text", "text": each(text)} for each in make],
        "isError": is_error,
    }


def value(make: Maker, *, structured: bool = True, wrapped: bool = False) -> Callable[[str], Answer]:
    """The JSON of a value as a text and, by the output schema, as structured content."""

    def want(text: str) -> Answer:
        made = make(text)
        shown = json.dumps(made, separators=(",", ":"), ensure_ascii=False)
        answer = texts(lambda _: shown)(text)
        return (
            {**answer, "structuredContent": {"result": made} if wrapped else made} if structured else answer
        )

    return want


def blocks_of_value(text: str) -> Answer:
    """Two texts of a tool whose schema promises a list: its members are the blocks."""
    answer = texts(same, same)(text)
    return {**answer, "structuredContent": {"result": answer["content"]}}


def failing(make: Maker) -> Callable[[str], Answer]:
    return texts(make, is_error=True)


def same(text: str) -> str:
    return text


def record(text: str) -> dict[str, Any]:
    return {"text": text}


PLAIN = texts(same)
BLOCKS = 0.2
RECORDS = 0.25


# ------------------------------------------------------------------------------ plain, and what is near


@form(PLAIN, bar=None)
def plain(text: str) -> str:
    """Str to str."""
    return text


@form(PLAIN, bar=0.65)
def context_last(text: str, ctx: Context) -> str:
    """A Context behind the others, not used."""
    return text


@form(PLAIN, bar=0.65)
def context_first(ctx: Context, text: str) -> str:
    """A Context before the others, not used."""
    return text


@form(PLAIN, bar=0.5)
async def coroutine(text: str) -> str:
    """Async def that does not wait."""
    return text


@form(texts(), bar=0.5)
def none(text: str) -> None:
    """-> None."""


@form(texts(), bar=0.5)
def none_unannotated(text: str):  # type: ignore[no-untyped-def]
    """Without annotation, None."""


@form(failing(same), bar=0.3)
def tool_error(text: str) -> str:
    """Raises ToolError."""
    raise ToolError(text)


@form(failing(lambda text: "ValueError: " + text), bar=0.15)
def value_error(text: str) -> str:
    """Raises ValueError."""
    raise ValueError(text)


@form(failing(same), bar=0.5, twin="tool_error")
async def coroutine_tool_error(text: str) -> str:
    """Async def that raises ToolError."""
    raise ToolError(text)


@form(failing(lambda text: "ValueError: " + text), bar=0.5, twin="value_error")
async def coroutine_value_error(text: str) -> str:
    """Async def that raises ValueError."""
    raise ValueError(text)


# --------------------------------------------------------------------------------------- results: blocks


@form(texts(same, same), bar=BLOCKS)
def blocks_typed(text: str) -> list[Text]:
    """-> list[Text]."""
    return [Text(text), Text(text)]


@form(blocks_of_value, bar=BLOCKS)
def blocks_bare(text: str) -> list:  # type: ignore[type-arg]
    """-> list, of blocks."""
    return [Text(text), Text(text)]


@form(texts(same, same), bar=BLOCKS)
def blocks_any(text: str) -> Any:
    """-> Any, a list of blocks."""
    return [Text(text), Text(text)]


@form(blocks_of_value, bar=BLOCKS)
def blocks_list_any(text: str) -> list[Any]:
    """-> list[Any], of blocks."""
    return [Text(text), Text(text)]


@form(texts(same, same), bar=BLOCKS)
def blocks_unannotated(text: str):  # type: ignore[no-untyped-def]
    """Without annotation, a list of blocks."""
    return [Text(text), Text(text)]


@form(texts(same, same), bar=BLOCKS)
def blocks_union(text: str) -> list[Text | Image]:
    """-> list[Text | Image]."""
    return [Text(text), Text(text)]


@form(texts(same, same), bar=BLOCKS)
def blocks_mixed(text: str) -> list[Union[str, Text]]:  # noqa: UP007
    """-> list[Union[str, Text]]."""
    return [text, Text(text)]


@form(texts(same, same), bar=BLOCKS)
def blocks_tuple(text: str) -> tuple[Text, Text]:
    """-> tuple[Text, Text]."""
    return Text(text), Text(text)


@form(texts(same), bar=BLOCKS)
def block(text: str) -> Text:
    """-> Text."""
    return Text(text)


@form(texts(same), bar=BLOCKS)
def block_any(text: str) -> Any:
    """-> Any, a block."""
    return Text(text)


PIXEL = b"\x89PNG\r\n\x1a\n"
PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


@form(lambda text: {"content": [PICTURE], "isError": False}, bar=BLOCKS)
def image(text: str) -> Image:
    """-> Image."""
    return Image(PIXEL, "image/png")


@form(lambda text: {"content": [{"type": "text", "text": text}, PICTURE], "isError": False}, bar=BLOCKS)
def blocks_image(text: str) -> list[Text | Image]:
    """-> list of a Text and an Image."""
    return [Text(text), Image(PIXEL, "image/png")]


@form(PLAIN, bar=BLOCKS)
def result(text: str) -> ToolResult:
    """-> ToolResult, a text."""
    return ToolResult(text)


@form(value(record), bar=BLOCKS)
def result_structured(text: str) -> ToolResult:
    """-> ToolResult, structured."""
    return ToolResult(structured={"text": text})


# --------------------------------------------------------------------------------------- results: values


class Typed(TypedDict):
    text: str


class Mixed(TypedDict, total=False):
    text: str
    size: float | None
    tags: list[str]


class Pair(NamedTuple):
    text: str
    size: int


@dataclasses.dataclass
class Data:
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    text: str


@dataclasses.dataclass
class Nested:
    text: str
    size: int
    inner: Data
    tags: list[str]


@attrs.define
class Attrs:
    text: str


class Structure(msgspec.Struct):
    text: str


class Model(pydantic.BaseModel):
    text: str


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@form(value(record, structured=False))
def unannotated_dict(text: str):  # type: ignore[no-untyped-def]
    """Without annotation, a dict."""
    return {"text": text}


@form(PLAIN)
def unannotated(text: str):  # type: ignore[no-untyped-def]
    """Without annotation, a str."""
    return text


@form(value(record, structured=False))
def any_dict(text: str) -> Any:
    """-> Any, a dict."""
    return {"text": text}


@form(value(record))
def dict_typed(text: str) -> dict[str, str]:
    """-> dict[str, str]."""
    return {"text": text}


@form(value(record))
def dict_any(text: str) -> dict[str, Any]:
    """-> dict[str, Any]."""
    return {"text": text}


@form(value(record))
def dict_bare(text: str) -> dict:  # type: ignore[type-arg]
    """-> dict."""
    return {"text": text}


@form(value(lambda text: [text, text], wrapped=True))
def list_typed(text: str) -> list[str]:
    """-> list[str]."""
    return [text, text]


@form(value(lambda text: [text, text], wrapped=True))
def list_bare(text: str) -> list:  # type: ignore[type-arg]
    """-> list, of texts."""
    return [text, text]


@form(value(lambda text: [{"text": text}], wrapped=True))
def list_dicts(text: str) -> list[dict[str, Any]]:
    """-> list[dict[str, Any]]."""
    return [{"text": text}]


@form(value(lambda text: [{"text": text}], wrapped=True))
def list_data(text: str) -> list[Data]:
    """-> list of a dataclass."""
    return [Data(text)]


@form(value(lambda text: [{"text": text}], wrapped=True))
def list_models(text: str) -> list[Model]:
    """-> list of a pydantic model."""
    return [Model(text=text)]


@form(value(lambda text: [text, len(text)], wrapped=True))
def tuple_(text: str) -> tuple[str, int]:
    """-> tuple[str, int]."""
    return text, len(text)


@form(value(lambda text: [text, len(text)], wrapped=True))
def named_tuple(text: str) -> Pair:
    """-> a NamedTuple."""
    return Pair(text, len(text))


@form(value(record), bar=RECORDS)
def typed_dict(text: str) -> Typed:
    """-> a TypedDict."""
    return {"text": text}


@form(value(lambda text: {"text": text, "size": 1.5, "tags": ["a"]}), bar=RECORDS)
def typed_dict_partly(text: str) -> Mixed:
    """-> a TypedDict, not total, of several types."""
    return {"text": text, "size": 1.5, "tags": ["a"]}


@form(value(record), bar=RECORDS)
def dataclass(text: str) -> Data:
    """-> a dataclass."""
    return Data(text)


@form(value(record), bar=RECORDS)
def dataclass_slots(text: str) -> Slotted:
    """-> a dataclass, frozen, with slots."""
    return Slotted(text)


@form(value(lambda text: {"text": text, "size": 1, "inner": {"text": text}, "tags": ["a"]}))
def dataclass_nested(text: str) -> Nested:
    """-> a dataclass that holds another, and a list."""
    return Nested(text, 1, Data(text), ["a"])


@form(value(record), bar=RECORDS)
def struct(text: str) -> Structure:
    """-> a msgspec Struct."""
    return Structure(text)


@form(value(record), bar=RECORDS)
def attrs_class(text: str) -> Attrs:
    """-> an attrs class."""
    return Attrs(text)


@form(value(record))
def model(text: str) -> Model:
    """-> a pydantic model."""
    return Model(text=text)


@form(PLAIN)
def optional(text: str) -> Optional[str]:  # noqa: UP045
    """-> Optional[str]."""
    return text


@form(PLAIN)
def union(text: str) -> str | int:
    """-> str | int."""
    return text


@form(value(record, structured=False))
def optional_data(text: str) -> Data | None:
    """-> a dataclass or None."""
    return Data(text)


@form(value(record, structured=False))
def union_data(text: str) -> Data | str:
    """-> a dataclass or str."""
    return Data(text)


@form(value(lambda text: [text, text], wrapped=True))
def generated(text: str) -> list[str]:
    """-> list[str], made by a generator."""

    def parts() -> Iterator[str]:
        yield text
        yield text

    return list(parts())


@form(value(lambda text: len(text), wrapped=True))
def integer(text: str) -> int:
    """-> int."""
    return len(text)


@form(value(lambda text: len(text) / 2, wrapped=True))
def real(text: str) -> float:
    """-> float."""
    return len(text) / 2


@form(value(lambda text: bool(text), wrapped=True))
def boolean(text: str) -> bool:
    """-> bool."""
    return bool(text)


@form(value(lambda text: "cG5n", wrapped=True))
def bytes_(text: str) -> bytes:
    """-> bytes."""
    return b"png"


@form(value(lambda text: "2026-07-28T12:00:00", wrapped=True))
def moment(text: str) -> datetime.datetime:
    """-> datetime."""
    return datetime.datetime(2026, 7, 28, 12)


@form(value(lambda text: "red", wrapped=True))
def enumeration(text: str) -> Color:
    """-> an Enum."""
    return Color.RED


@form(value(lambda text: "1.50", wrapped=True))
def decimal_(text: str) -> decimal.Decimal:
    """-> Decimal."""
    return decimal.Decimal("1.50")


# --------------------------------------------------------------------------------------- parameters


def passing(name: str, make: Maker) -> Callable[[str], dict[str, Any]]:
    return lambda text: {name: make(text)}


@form(PLAIN, bar=0.5)
def parameter_none(text: str = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
    """Str = None."""
    return text


@form(PLAIN, bar=0.5)
def parameter_defaults(text: str, size: int = 1, exact: bool = False, ratio: float = 0.5) -> str:
    """Parameters with defaults, not passed."""
    return text


@form(PLAIN, bar=0.3, arguments=lambda text: {"text": text, "size": 7, "exact": True, "ratio": 1.5})
def parameter_four(text: str, size: int = 1, exact: bool = False, ratio: float = 0.5) -> str:
    """Parameters with defaults, all passed."""
    return text


@form(PLAIN, bar=0.5)
def parameter_optional(text: str | None = None) -> str:
    """Optional[str] = None."""
    return text or ""


@form(PLAIN, bar=0.3)
def parameter_union(text: str | int) -> str:
    """Str | int."""
    return str(text)


@form(PLAIN, bar=0.2, arguments=lambda text: {"text": text, "mode": "fast"})
def parameter_literal(text: str, mode: Literal["fast", "slow"]) -> str:
    """A Literal."""
    return text


@form(PLAIN, bar=0.2, arguments=lambda text: {"text": text, "color": "red"})
def parameter_enum(text: str, color: Color) -> str:
    """An Enum."""
    return text


@form(PLAIN, arguments=lambda text: {"items": [text, text]})
def parameter_list(items: list[str]) -> str:
    """A list[str]."""
    return items[0]


@form(PLAIN, arguments=lambda text: {"items": {"text": text}})
def parameter_dict(items: dict[str, str]) -> str:
    """A dict[str, str]."""
    return items["text"]


@form(PLAIN, arguments=lambda text: {"items": {"text": text}})
def parameter_dict_any(items: dict[str, Any]) -> str:
    """A dict[str, Any]."""
    return str(items["text"])


@form(PLAIN, arguments=lambda text: {"record": {"text": text}})
def parameter_dataclass(record: Data) -> str:
    """A dataclass."""
    return record.text


@form(
    PLAIN,
    arguments=lambda text: {"record": {"text": text, "size": 1, "inner": {"text": text}, "tags": ["a"]}},
)
def parameter_nested(record: Nested) -> str:
    """A dataclass that holds another, and a list."""
    return record.text


@form(PLAIN, arguments=lambda text: {"record": {"text": text}})
def parameter_typed_dict(record: Typed) -> str:
    """A TypedDict."""
    return record["text"]


@form(PLAIN, arguments=lambda text: {"record": {"text": text}})
def parameter_struct(record: Structure) -> str:
    """A msgspec Struct."""
    return record.text


@form(PLAIN, arguments=lambda text: {"record": {"text": text}})
def parameter_model(record: Model) -> str:
    """A pydantic model."""
    return record.text


@form(PLAIN, bar=0.5)
def parameter_described(text: Annotated[str, "The text to return"]) -> str:
    """Annotated with a description."""
    return text


@form(PLAIN, bar=0.2)
def parameter_meta(text: Annotated[str, Meta(min_length=1, max_length=10_000)]) -> str:
    """Annotated[str, Meta(min_length=…)]."""
    return text


@form(PLAIN, bar=0.2)
def parameter_field(text: Annotated[str, pydantic.Field(min_length=1)]) -> str:
    """Annotated[str, Field(min_length=…)]."""
    return text


@form(PLAIN, bar=0.2, arguments=lambda text: {"text": text, "size": 7})
def parameter_bounds(text: str, size: Annotated[int, Meta(ge=1, le=10)] = 5) -> str:
    """Annotated[int, Meta(ge=…, le=…)]."""
    return text


@form(PLAIN, bar=0.2, arguments=lambda text: {"text": text, "size": 7})
def parameter_field_bounds(text: str, size: Annotated[int, pydantic.Field(ge=1, le=10)] = 5) -> str:
    """Annotated[int, Field(ge=…, le=…)]."""
    return text


@form(PLAIN, bar=0.3)
def parameter_keyword(*, text: str) -> str:
    """Keyword-only."""
    return text


def app_of(name: str) -> Server:
    """Return a server whose `echo` has this form."""
    app = Server("bench")
    app.tool(name="echo")(FORMS[name].function)
    return app


if __name__ == "__main__":
    app = app_of(sys.argv[1])
    app.run()
