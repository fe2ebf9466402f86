"""Results of values: what the compiled writer takes, what goes another way, and what is refused."""

from __future__ import annotations

import asyncio
import datetime
import enum
import json
import math
import subprocess
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, PlainSerializer

from fastrpc import Server
from fastrpc._core.encoder import (
    OBJECT_FORM,
    TEXT_FORM,
    WRAPPED_FORM,
    OutputBuffer,
    dumps,
    plain_json,
    result_of,
)
from fastrpc.content import ToolResult
from fastrpc.engine import output_validation
from fastrpc.engine.output_validation import OutputMismatch, conforming, plain_check
from fastrpc.engine.results import Results, form_of, keeps_plain_values
from fastrpc.json_encoding import UnencodableResult
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, SERVER_KEY, STATELESS, STRUCTURED, VERSIONS
from fastrpc.schema import Signature, describe
from fastrpc.schema.value_types import value_type_of
from fastrpc.testing import Client
from fastrpc.tool_style import PLAIN

RESULTS = Results({"name": "t", "version": "1"})
TAIL = b'"}],"isError":false}}\n'
MEGABYTE = 2**20


class Text(str):
    pass


class Number(int):
    pass


class Share(float):
    pass


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    left: int


class Row(TypedDict):
    x: int


class Model(BaseModel):
    x: int


@dataclass
class Checked:
    """Made by its own rules: to make another of its JSON would break them."""

    x: int

    def __post_init__(self) -> None:
        if self.x != 1:
            raise ValueError("made twice")
        self.x = 2


def signature(annotation: Any) -> Signature:
    def give():  # type: ignore[no-untyped-def]
        pass

    give.__annotations__["return"] = annotation
    return describe(give)


class Tool:
    """As much of a tool as its results need."""

    def __init__(self, annotation: Any) -> None:
        self.signature = signature(annotation)
        self.style = PLAIN


def result(value: Any, annotation: Any = Any, version: str = LATEST_SESSION_VERSION) -> Any:
    return json.loads(RESULTS.of(Tool(annotation), value, version))  # type: ignore[arg-type]


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        Text("t"), Number(1), Share(0.5), OrderedDict(a=1), Pair(1), Point(1), Model(x=1), Level.HIGH,
        Colour.RED, datetime.date(2026, 1, 2), {1, 2}, b"bytes", {1: 2}, {Text("key"): 1}, {None: 1},
        math.nan, -math.inf, "\ud800", {"\udfff": 1}, "x" * 3000 + "\ud800", object(), 10**5000, nested(201),
    ],
    ids=lambda value: f"{type(value).__name__} {str(value)[:12]!a}" if type(value) is not int else "long",
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_other_way(value: Any) -> None:
    output = OutputBuffer()
    assert output.value(b"1", {"a": 1}, OBJECT_FORM, TAIL)
    before = output.end
    for holder in ([value], {"long": "x" * 100_000, "a": value}, (1, value)):
        assert not output.value(b"2", holder, OBJECT_FORM, TAIL)
        assert output.end == before
        assert plain_json(holder) is None
        assert result_of(holder, TEXT_FORM, b'"}]}') is None
    assert json.loads(output.take())["result"]["structuredContent"] == {"a": 1}
    assert plain_json([1]) == b"[1]"


def test_none_is_no_value_and_a_text_none_beside_an_object_s_schema() -> None:
    output = OutputBuffer()
    for form in (TEXT_FORM, OBJECT_FORM, WRAPPED_FORM):
        assert not output.value(b"1", None, form, TAIL)
    assert not output.value(b"1", "text", OBJECT_FORM, TAIL)
    assert not output.value(b"1", "half \ud800", WRAPPED_FORM, TAIL)
    assert output.take() == b""


@pytest.mark.parametrize(
    "text", ["", "a", 'a "quote" and \n', "\x00\x1f", "é", "日本" * 9, "x" * 70_000, "é" * 70_000]
)
def test_a_text_is_wrapped_with_the_escapes_of_its_block(text: str) -> None:
    output = OutputBuffer()
    assert output.value(b"7", 5, TEXT_FORM, TAIL)  # the answer before it stays
    assert output.value(b"8", text, WRAPPED_FORM, TAIL)
    assert output.value(b"9", text, TEXT_FORM, TAIL)
    _, wrapped, plain = (json.loads(line)["result"] for line in output.take().splitlines())
    assert wrapped["content"] == plain["content"] == [{"type": "text", "text": text}]
    assert wrapped["structuredContent"] == {"result": text}
    assert "structuredContent" not in plain
    assert plain["isError"] is wrapped["isError"] is False


def test_a_value_may_be_two_hundred_levels_deep() -> None:
    assert plain_json(nested(200)) == b"[" * 200 + b"]" * 200
    assert result(nested(201))["content"][0]["text"] == "[" * 201 + "]" * 201
    ring: list[Any] = []
    ring += [ring, ring]
    assert plain_json(ring) is None
    with pytest.raises(UnencodableResult):
        result(ring)


def test_integers_beyond_64_bits_are_exact() -> None:
    for number in (2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**4299):
        assert plain_json([number, -number]) == f"[{number},{-number}]".encode()


def test_values_of_megabytes_go_out_whole_and_leave_little_behind() -> None:
    output = OutputBuffer()
    value = {"plain": "x" * (3 * MEGABYTE), "quotes": '"' * MEGABYTE, "wide": ["é漢\n"] * 100_000}
    assert output.value(b"1", value, OBJECT_FORM, TAIL)
    assert json.loads(output.take())["result"]["structuredContent"] == value
    assert plain_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_memory_for_a_large_value_is_given_back() -> None:
    script = (
        "import resource\n"
        "from fastrpc._core.encoder import OutputBuffer\n"
        "def resident():\n"
        "    with open('/proc/self/statm') as file:\n"
        "        return int(file.read().split()[1]) * resource.getpagesize()\n"
        "output = OutputBuffer()\n"
        "before = resident()\n"
        "assert output.value(b'1', ['x' * 2**25], 0, b'\"}]}}\\n')\n"
        "output.take()\n"
        "for _ in range(64):\n"
        "    output.value(b'1', [], 0, b'\"}]}}\\n')\n"
        "    output.take()\n"
        "print(resident() - before)\n"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("/proc is Linux's")
    grown = int(
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=30).stdout
    )
    assert grown < 8 * MEGABYTE


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"rows": [{"score": math.nan}]}, "result.rows[0].score: nan cannot be written as JSON"),
        ([1.5, -math.inf], "result[1]: -inf cannot be written as JSON"),
        (["\ud800"], "the result holds half a surrogate pair, which is not text"),
        ({"\udfff": 1}, "the result holds half a surrogate pair, which is not text"),
        ([object()], "the result cannot be written as JSON"),
        ([10**5000], "the result cannot be written as JSON: Exceeds the limit"),
    ],
)
def test_refusals_say_what_and_where(value: Any, words: str) -> None:
    with pytest.raises(UnencodableResult) as caught:
        result(value)
    assert str(caught.value).startswith(words)


@pytest.mark.filterwarnings("error")
def test_a_call_that_was_not_awaited_and_a_generator_are_named() -> None:
    async def later() -> str:
        return "a"

    async def later_ones() -> AsyncIterator[str]:
        yield "a"

    made = later()
    for value, words in (
        (made, "the result is a coroutine; await the call of "),
        ((each for each in "ab"), "the result is a generator, "),
        (later_ones(), "the result is a generator, "),
    ):
        with pytest.raises(UnencodableResult, match=words):
            result(value)
    assert made.cr_frame is None  # closed: Python has nothing to warn of


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("annotation", "value", "text", "structure"),
    [
        (dict, {"a": [1, 0.5, None]}, '{"a":[1,0.5,null]}', {"a": [1, 0.5, None]}),
        (list, [1, True], "[1,true]", {"result": [1, True]}),
        (int, 5, "5", {"result": 5}),
        (Any, {"a": 1}, '{"a":1}', None),
        (Point, Point(1), '{"x":1}', {"x": 1}),
        (Row, {"x": 1}, '{"x":1}', {"x": 1}),
        (Model, Model(x=1), '{"x":1}', {"x": 1}),
        (Level, Level.HIGH, "3", {"result": 3}),
        (Colour, Colour.RED, '"red"', {"result": "red"}),
        (datetime.date, datetime.date(2026, 1, 2), '"2026-01-02"', {"result": "2026-01-02"}),
        (dict, OrderedDict(a=Text("t")), '{"a":"t"}', {"a": "t"}),
        (list, (1, {2}), "[1,[2]]", {"result": [1, [2]]}),
        (list, {2}, "[2]", {"result": [2]}),
        (dict, Point(1), '{"x":1}', {"x": 1}),
        (dict[str, int], {"x": Number(1)}, '{"x":1}', {"x": 1}),
        (list[float], [1, Share(0.5)], "[1,0.5]", {"result": [1, 0.5]}),
        (int, 5.0, "5.0", {"result": 5.0}),
        (list[int | Literal["all"]], ["all", 5], '["all",5]', {"result": ["all", 5]}),
        (list[Annotated[str, "a name"]], ["a"], '["a"]', {"result": ["a"]}),
        (datetime.date, "2026-01-02", '"2026-01-02"', {"result": "2026-01-02"}),
        (Row, OrderedDict(x=1), '{"x":1}', {"x": 1}),
        (Model, {"x": 1}, '{"x":1}', {"x": 1}),
        (list[Point], [], "[]", {"result": []}),
        (Checked, Checked(1), '{"x":2}', {"x": 2}),
    ],
)
def test_each_value_has_its_form(
    version: str, annotation: Any, value: Any, text: str, structure: Any
) -> None:
    got = result(value, annotation, version)
    assert got["content"] == [{"type": "text", "text": text}]
    known = structure is not None and version in STRUCTURED
    assert got.get("structuredContent") == (structure if known else None)
    wrapped = known and signature(annotation).wraps_result
    assert got.get("_meta", {}).get("fastmcp") == ({"wrap_result": True} if wrapped else None)
    assert ("resultType" in got) == (version == STATELESS)


@pytest.mark.parametrize("version", VERSIONS)
def test_endings_are_what_follows_the_text_of_each_form(version: str) -> None:
    endings = RESULTS.endings(version)
    for form, annotation in ((TEXT_FORM, Any), (OBJECT_FORM, dict), (WRAPPED_FORM, list)):
        value: Any = {"a": 1} if form == OBJECT_FORM else [1]
        output = OutputBuffer()
        shown = form if version in STRUCTURED else TEXT_FORM
        assert output.value(b"1", value, shown, endings[form])
        of = RESULTS.of(Tool(annotation), value, version)  # type: ignore[arg-type]
        assert output.take() == b'{"jsonrpc":"2.0","id":1,"result":' + of + b"}\n"
        assert form_of(signature(annotation)) == form
    output = OutputBuffer()
    output.text(b"1", "no", endings[3])
    assert output.take() == b'{"jsonrpc":"2.0","id":1,"result":' + RESULTS.failure("no", version) + b"}\n"


@pytest.mark.parametrize(
    ("annotation", "keeps"),
    [
        (Any, True), (str, True), (None, True), (dict, True), (list, True), (int | str, True), (int, True),
        (dict[str, Any], True), (Annotated[dict, "a dict"], True), (float, True), (bool, True),
        (list[dict[str, int]], True), (Literal[1, 2], True), (Point, True), (Row, True), (Colour, True),
        (list[datetime.date], True), (Model, False),
        (Annotated[int, PlainSerializer(lambda number: -number)], False),
    ],
)  # fmt: skip
def test_only_pydantic_may_change_plain_values(annotation: Any, keeps: bool) -> None:
    described = signature(annotation)
    assert keeps_plain_values(described) == keeps
    if keeps:
        for value in ({"x": [1, 2.5, "t", None, True, 2**70]}, [1, {"a": []}], 5):
            assert described.to_json(value) == value
            assert plain_json(described.to_json(value)) == plain_json(value)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("annotation", "value", "problem"),
    [
        (dict, [1], "result: expected object, got an array"),
        (dict, None, "result: expected object, got null"),
        (int, "five", 'result: expected integer, got "five"'),
        (int, True, "result: expected integer, got true"),
        (int, 0.5, "result: expected integer, got 0.5"),
        (float, False, "result: expected number, got false"),
        (list[int], [1, "2"], '$.result[1]: expected integer, got "2"'),
        (list[float], [0.5, None], "$.result[1]: expected number, got null"),
        (dict[str, list[int]], {"a": [], "b b": [[]]}, '$.result["b b"][0]: expected integer, got an empty'),
        (Literal[1, 2], 3, "result: expected one of 1, 2, got 3"),
        (list[int | Literal["all"]], ["no"], '$.result[0]: expected integer or "all", got "no"'),
        (Row, {"x": "1"}, '$.result.x: expected integer, got "1"'),
        (Row, {}, "$.result.x: required, missing"),
        (list[Row], [{"x": 1}, {"y": 1}], "$.result[1].x: required, missing"),
        (Point, Point("1"), '$.result.x: expected integer, got "1"'),  # type: ignore[arg-type]
        (Colour, "blue", 'result: expected "red", got "blue"'),
        (Model, {"x": "one"}, "$.result.x: expected a valid integer"),
        (list[Model], [Model(x=1), {}], "$.result[1].x: required, missing"),
        (list[int], {"1", 2}, "$.result["),
        (bool, "true", 'result: expected boolean, got "true"'),
        (Literal[1, 2], "1", 'result: expected one of 1, 2, got "1"'),
        (Model, '{"x": 1}', "result: expected a valid"),
        (Annotated[int, msgspec.Meta(ge=3)], "5", "result: expected"),
    ],
)  # fmt: skip
def test_a_result_that_breaks_its_schema_is_refused_and_the_member_named(
    version: str, annotation: Any, value: Any, problem: str
) -> None:
    with pytest.raises(OutputMismatch) as caught:
        result(value, annotation, version)
    words = "the tool returned a value that its annotation does not allow: "
    assert str(caught.value).startswith(words + problem)


class Envelope(TypedDict):
    ok: bool
    data: dict[str, Any]


class Partial(TypedDict, total=False):
    x: int


class Bounded(TypedDict):
    x: Annotated[int, msgspec.Meta(ge=3)]


@pytest.mark.parametrize("annotation", [Row, Envelope, Partial, Bounded])
@pytest.mark.parametrize(
    "value",
    [
        {},
        {"x": 1},
        {"x": 5},
        {"x": True},
        {"x": 1.0},
        {"x": "1"},
        {"x": 5, "y": 1},
        {"ok": True, "data": {}},
        {"ok": True, "data": {"a": [1]}, "more": 1},
        {"ok": 1, "data": {}},
        {"ok": True, "data": []},
        {"ok": True},
        [],
        None,
    ],
)
def test_the_quick_check_of_a_typed_dict_says_what_the_whole_one_does(annotation: Any, value: Any) -> None:
    described = signature(annotation)
    conforms = plain_check(described.result_converter)(value)
    try:
        conforming(described, value)
    except UnencodableResult:
        assert not conforms
    else:
        assert conforms


def test_a_text_is_a_plain_value_only_where_texts_are() -> None:
    converter = signature(Literal["a", "b"]).result_converter
    assert not plain_check(converter)("a")
    assert plain_check(converter, texts=True)("a")


@pytest.mark.parametrize(
    ("annotation", "value"), [(Row, {"x": 1}), (Envelope, {"ok": True, "data": {"a": 1}})]
)
def test_msgspec_is_not_asked_for_a_typed_dict_of_plain_members(annotation: Any, value: Any) -> None:
    found = value_type_of(signature(annotation).result_converter)
    assert found is not None
    assert found.plain(value) == value


def test_a_large_array_is_handed_on_as_it_is_and_a_wrong_element_found() -> None:
    numbers = list(range(200_000))
    described = signature(list[int])
    assert conforming(described, numbers) is numbers
    with pytest.raises(OutputMismatch, match=r"\$\.result\[200000\]"):
        conforming(described, [*numbers, "x"])


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int], [5] * 1000),
        (list[Any], [5] * 1000),
        (dict[str, int], {str(number): number for number in range(1000)}),
        (dict[str, Any], {str(number): number for number in range(1000)}),
    ],
)
def test_elements_of_one_plain_type_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, annotation: Any, value: Any
) -> None:
    looks: list[Any] = []
    check = output_validation._check
    monkeypatch.setattr(output_validation, "_check", lambda *each: (looks.append(each), check(*each)))
    assert conforming(signature(annotation), value) is value
    assert len(looks) == 1


def test_what_is_not_strict_refuses_only_what_has_to_be_an_object_and_is_none() -> None:
    for annotation, value in ((list[int], ["x"]), (Row, {"x": "1"})):
        assert conforming(signature(annotation), value, is_strict=False) == value
        with pytest.raises(OutputMismatch):
            conforming(signature(annotation), value)
    with pytest.raises(OutputMismatch, match="result: expected object, got an array"):
        conforming(signature(Row), [1], is_strict=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_structured_content_that_is_not_an_object_is_wrapped_where_it_must_be(version: str) -> None:
    got = result(ToolResult("rows", structured=[1, 2], meta={"k": 1}), Any, version)
    assert got["content"] == [{"type": "text", "text": "rows"}]
    if version not in STRUCTURED:
        assert "structuredContent" not in got
    elif version == STATELESS:
        assert got["structuredContent"] == [1, 2]
        assert "fastmcp" not in got["_meta"]
    else:
        assert got["structuredContent"] == {"result": [1, 2]}
        assert got["_meta"]["fastmcp"] == {"wrap_result": True}
    assert got["_meta"]["k"] == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_structured_content_without_a_text_is_said_in_a_text_too(version: str) -> None:
    got = result(ToolResult(structured={"a": "\u00fc"}), Any, version)
    assert got["content"] == [{"type": "text", "text": '{"a":"\u00fc"}'}]
    assert result(ToolResult([], structured={"a": 1}), Any, version)["content"] == []
    assert result(ToolResult(), Any, version)["content"] == []


@pytest.mark.parametrize(
    ("annotation", "structured", "problem"),
    [
        (Row, {"x": 1}, None),
        (Row, {"x": "1"}, '$.result.x: expected integer, got "1"'),
        (Row, None, "result: expected object, got null"),
        (list[int], {"result": [1]}, None),
        (list[int], {"result": (1, 2)}, None),
        (list[int], {"result": ["1"]}, '$.result[0]: expected integer, got "1"'),
        (list[int], [1], 'structured: expected {"result": …}'),
        (list[int], {"rows": [1]}, 'structured: expected {"result": …}'),
        (bool, {"result": "true"}, 'result: expected boolean, got "true"'),
        (Model, '{"x": 1}', "result: expected a valid"),
        (Model, {"x": 1}, None),
        (Model, {}, "$.result.x: required, missing"),
    ],
)
def test_a_full_result_keeps_the_promise_too(annotation: Any, structured: Any, problem: str | None) -> None:
    full = ToolResult("t", structured=structured)
    if problem is None:
        assert result(full, annotation)["structuredContent"] == json.loads(json.dumps(structured))
        return
    with pytest.raises(OutputMismatch) as caught:
        result(full, annotation)
    assert problem in str(caught.value)
    failed = ToolResult("t", structured=structured, is_error=True)
    assert result(failed, annotation)["isError"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_results_name_their_server_and_say_no_more_of_it(version: str) -> None:
    info = {"name": "t", "version": "1", "title": "T", "description": "long", "icons": [{"src": "x:y"}]}
    results = Results(info)
    got = json.loads(results.of(Tool(Any), "t", version))  # type: ignore[arg-type]
    said = got.get("_meta", {}).get(SERVER_KEY)
    assert said == ({"name": "t", "version": "1", "title": "T"} if version == STATELESS else None)


def test_what_a_tool_says_in_meta_does_not_hide_the_server() -> None:
    got = result(ToolResult("t", meta={SERVER_KEY: "me", "example.org/k": 1}), Any, STATELESS)
    assert got["_meta"] == {SERVER_KEY: {"name": "t", "version": "1"}, "example.org/k": 1}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("run", ["inline", "thread", "async"])
def test_a_broken_promise_fails_the_call_and_kept_ones_go_out(version: str, run: str) -> None:
    cases: list[tuple[str, Any, Any, str]] = [
        ("kept", Row, {"x": 1}, ""),
        ("kept_too", list[int], [1], ""),
        ("text", dict, "text", "result: expected object"),
        ("none", dict, None, "result: expected object"),
        ("array", dict, [1], "result: expected object"),
        ("number", int, "5", "result: expected integer"),
        ("member", Row, {"x": "1"}, "$.result.x: expected integer"),
        ("element", list[int], ["1"], "$.result[0]: expected integer"),
        ("alone", list[int], "1", "result: expected array"),
    ]
    app = Server("t")
    for name, annotation, value, _ in cases:
        app.add_tool(giver(annotation, value, run), name=name, **({} if run == "async" else {"run": run}))

    async def scenario() -> None:
        async with Client(app, version=version) as client:
            for name, _, value, problem in cases * 2:
                got = await client.call(name)
                assert got.is_error == bool(problem), name
                assert problem in got.text
                if not problem and version in STRUCTURED:
                    assert got.structured == (value if isinstance(value, dict) else {"result": value})

    asyncio.run(scenario())


def giver(annotation: Any, value: Any, run: str) -> Any:
    """A function that returns a value, whatever its annotation says."""

    def give():  # type: ignore[no-untyped-def]
        return value

    async def give_async():  # type: ignore[no-untyped-def]
        return value

    made: Any = give_async if run == "async" else give
    made.__annotations__["return"] = annotation
    return made


def test_content_that_is_none_is_refused() -> None:
    with pytest.raises(UnencodableResult, match="content: expected str or a helper, got int"):
        result(ToolResult(["a", 5]))  # type: ignore[list-item]


def test_a_serializer_of_pydantic_is_heard() -> None:
    negative = Annotated[int, PlainSerializer(lambda number: -number)]
    assert result(5, negative)["structuredContent"] == {"result": -5}


def test_plain_results_import_nothing() -> None:
    script = (
        "import sys\n"
        "from fastrpc.engine.results import Results\n"
        "from fastrpc.schema import describe\n"
        "def give() -> dict: ...\n"
        "from fastrpc.tool_style import PLAIN\n"
        "class Tool: signature = describe(give); style = PLAIN\n"
        "Results({'name': 't'}).of(Tool, {'a': [1.5, {'b': 2**70}]}, '2025-11-25')\n"
        "print({'orjson', 'msgspec', 'json', 'enum', 're'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{script}"],
        capture_output=True, check=True, timeout=30, text=True,
    )  # fmt: skip
    assert done.stdout == "set()\n"


def test_dumps_takes_subclasses_too() -> None:
    value = OrderedDict(a=Text("t"), b=Number(1), c=Share(-0.0), d=Level.HIGH)
    assert dumps([value, Pair(1)]) == b'[{"a":"t","b":1,"c":-0.0,"d":3},[1]]'
    with pytest.raises(TypeError):
        dumps(nested(201))
    with pytest.raises(UnicodeEncodeError):
        dumps({"a": "\ud800"})


def test_an_error_that_json_cannot_hold_is_sent_as_far_as_it_can() -> None:
    from fastrpc.engine.results import error_object

    assert json.loads(error_object(-1, "half \ud800", {"a": 1})) == {"code": -1, "message": "half \\ud800"}
    assert json.loads(error_object(-1, "no", {"a": object()})) == {"code": -1, "message": "no"}
    assert json.loads(error_object(-1, "no", {"a": 1})) == {"code": -1, "message": "no", "data": {"a": 1}}
