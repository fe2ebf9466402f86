"""Results that JSON has no form for, lists that say nothing of their items, and results that break their own
schema: each as the original that is installed has it."""

from __future__ import annotations

import collections
import enum
import ipaddress
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, List, Tuple  # noqa: UP035  (what servers write)

import pytest
from pydantic import BaseModel
from support.dialects import ALL, FASTMCP, SDKS, tool_and_result
from support.in_memory import texts_of, with_client

from fastrpc.compat.dialect import LATEST_KNOWN, follow_release


class Shown:
    """An object of a class that no encoder knows."""

    def __iter__(self) -> Iterator[int]:
        return iter([1])

    def __str__(self) -> str:
        return "shown"


class Model(BaseModel):
    a: int


@contextmanager
def beside(release: str) -> Iterator[None]:
    """Have the servers of FastMCP behave as beside this release."""
    follow_release("fastmcp", release)
    try:
        yield
    finally:
        follow_release("fastmcp", LATEST_KNOWN["fastmcp"])


def giving(value: Any, annotation: Any = None) -> Any:
    def give():
        return value

    give.__annotations__ = {} if annotation is None else {"return": annotation}
    return give


UTC = datetime(2026, 1, 2, tzinfo=timezone.utc)
FORMS = [
    (pathlib.Path("/a"), "/a"),
    (ipaddress.IPv4Address("127.0.0.1"), "127.0.0.1"),
    (b"ab", "ab"),
    (bytearray(b"ab"), "ab"),
    (1j, "1j"),
    (collections.deque([1]), [1]),
    (UTC, "2026-01-02T00:00:00Z"),
    (timedelta(seconds=5), "PT5S"),
    ({1}, [1]),
]


@ALL
@pytest.mark.parametrize(("value", "form"), FORMS, ids=lambda each: type(each).__name__)
def test_what_json_has_no_form_for_is_sent_as_the_originals_do_wherever_it_is(
    kind: Any, value: Any, form: Any
) -> None:
    _, result = tool_and_result(kind, giving({"a": value, "b": [{"c": value}]}, dict[str, Any]))
    assert result["structuredContent"] == {"a": form, "b": [{"c": form}]}
    assert json.loads(texts_of(result)[0]) == result["structuredContent"]


class Letter(str, enum.Enum):
    A = "a"


class Digit(enum.Enum):
    ONE = 1
    PAIR = (1, "x")


KEYS = [
    ((1, 2), tuple[int, int], "1,2"),
    ((), tuple[()], ""),
    (("a", 1.5, None, True, (Letter.A, Digit.ONE)), tuple[Any, ...], "a,1.5,None,true,a,1"),
    (True, bool, "true"),
    (None, None, "None"),
    (b"ab", bytes, "ab"),
    (pathlib.PurePosixPath("/a"), pathlib.PurePosixPath, "/a"),
    (UTC, datetime, "2026-01-02T00:00:00Z"),
    (Decimal("1.50"), Decimal, "1.50"),
    (timedelta(seconds=5), timedelta, "PT5S"),
    (Letter.A, Letter, "a"),
    (Digit.ONE, Digit, "1"),
    (Digit.PAIR, Any, "1,x"),
    (7, int, "7"),
    (1.5, float, "1.5"),
]


@ALL
@pytest.mark.parametrize(("key", "of", "text"), KEYS, ids=[repr(key) for key, _, _ in KEYS])
def test_keys_that_are_no_texts_are_the_texts_that_the_originals_make_of_them(
    kind: Any, key: Any, of: Any, text: str
) -> None:
    wanted = {text: {"x": 1}}
    for annotation in (None, dict, dict[of, Any], dict[of, dict[str, int]]):
        _, result = tool_and_result(kind, giving({key: {"x": 1}}, annotation))
        assert not result.get("isError"), texts_of(result)
        assert json.loads(texts_of(result)[0]) == wanted
        if kind is not FASTMCP and annotation not in (None, dict):
            assert result["structuredContent"] == {"result": wanted}
    _, result = tool_and_result(kind, giving({"a": [{key: 1}]}, dict[str, list[dict[of, int]]]))
    assert result["structuredContent"] == {"a": [{text: 1}]}


@ALL
def test_an_object_of_an_unknown_class_is_its_text_where_no_schema_promises_something(kind: Any) -> None:
    _, result = tool_and_result(kind, giving({"a": [Shown()]}))
    assert json.loads(texts_of(result)[0]) == {"a": ["shown"]}
    assert not result.get("isError")
    _, result = tool_and_result(kind, giving({"a": Shown()}, dict[str, Any]))
    assert result["isError"]


class Whole:
    """A number as NumPy and gmpy2 have them."""

    def __index__(self) -> int:
        return 6


class Real:
    def __float__(self) -> float:
        return 2.5


class Array(Whole):
    def __index__(self) -> int:
        raise TypeError("only of one element")


@ALL
@pytest.mark.parametrize(
    ("value", "annotation", "form"),
    [
        (Whole(), int, 6),
        (Whole(), float, 6),
        (Whole(), int | None, 6),
        (Real(), float, 2.5),
        ([Whole(), 1], list[int], [6, 1]),
        ((Whole(), Real()), tuple[int, float], [6, 2.5]),
        ([Real()], list[float], [2.5]),
    ],
    ids=["int", "float", "optional", "real", "integers", "pair", "reals"],
)
def test_objects_that_are_numbers_are_sent_as_such_where_numbers_are_promised(
    kind: Any, value: Any, annotation: Any, form: Any
) -> None:
    _, result = tool_and_result(kind, giving(value, annotation))
    assert result["structuredContent"] == {"result": form}
    _, result = tool_and_result(kind, giving({"a": value}, dict[str, annotation]))
    assert result["structuredContent"] == {"a": form}


@ALL
def test_an_object_that_is_not_a_number_after_all_is_an_error_where_one_is_promised(kind: Any) -> None:
    assert tool_and_result(kind, giving([Array()], list[int]))[1]["isError"]


@SDKS
def test_nan_is_null_within_a_result_and_its_name_as_the_whole_of_one(kind: Any) -> None:
    _, result = tool_and_result(kind, giving({"a": float("nan"), "b": [float("-inf")]}, dict[str, Any]))
    assert result["structuredContent"] == {"a": None, "b": [None]}
    _, result = tool_and_result(kind, giving(float("-inf")))
    assert texts_of(result) == ["-Infinity"]


def test_nan_is_refused_since_fastmcp_4_2() -> None:
    function = giving({"a": float("nan")})
    with beside("4.1.2"):
        assert tool_and_result(FASTMCP, function)[1]["structuredContent"] == {"a": None}
    _, result = tool_and_result(FASTMCP, function)
    assert result["isError"]
    assert "result.a: nan cannot be written as JSON" in texts_of(result)[0]


# --- lists ------------------------------------------------------------------------------------------------

OF_ANYTHING = [list, List, list[Any], tuple, tuple[Any, ...], Sequence, Sequence[Any]]  # noqa: UP006
WRAPPED = {"result": [1]}


@pytest.mark.parametrize("annotation", OF_ANYTHING, ids=str)
@pytest.mark.parametrize(("release", "has_schema"), [("2.14.7", True), ("3.4.11", True), ("4.2.3", False)])
def test_a_list_of_anything_has_an_output_schema_up_to_fastmcp_3(
    annotation: Any, release: str, has_schema: bool
) -> None:
    with beside(release):
        tool, result = tool_and_result(FASTMCP, giving([1], annotation))
    assert ("outputSchema" in tool) is has_schema
    assert result.get("structuredContent") == (WRAPPED if has_schema else None)


@pytest.mark.parametrize("annotation", [tuple[Any, Any], set, object, collections.deque], ids=str)
def test_what_says_more_than_a_list_of_anything_has_one_in_all_of_fastmcp(annotation: Any) -> None:
    value = {set: {1}, collections.deque: collections.deque([1])}.get(annotation, [1, 2])
    for release in ("2.14.7", "4.2.3"):
        with beside(release):
            tool, result = tool_and_result(FASTMCP, giving(value, annotation))
        assert tool["outputSchema"]["required"] == ["result"]
        assert result["structuredContent"] == {"result": list(value)}


@SDKS
@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (list, [1], None),
        (List, [1], {"result": [1]}),  # noqa: UP006
        (Tuple, (1,), {"result": [1]}),  # noqa: UP006
        (set, {1}, None),
        (collections.deque, collections.deque([1]), None),
        (collections.OrderedDict, collections.OrderedDict(a=1), None),
        (Mapping[str, Any], {"a": 1}, {"result": {"a": 1}}),
        (dict[str, Any], {"a": 1}, {"a": 1}),
    ],
    ids=str,
)
def test_the_sdk_structures_generic_types_and_no_classes_without_members(
    kind: Any, annotation: Any, value: Any, structured: Any
) -> None:
    tool, result = tool_and_result(kind, giving(value, annotation))
    assert ("outputSchema" in tool) is (structured is not None)
    assert result.get("structuredContent") == structured


@SDKS
def test_each_item_of_a_list_in_a_list_is_a_block_and_a_set_is_one(kind: Any) -> None:
    _, result = tool_and_result(kind, giving([[1, 2], [["a"]], [None]], list[list[Any]]))
    assert texts_of(result) == ["1", "2", "a"]
    _, result = tool_and_result(kind, giving([[1], (2,)]))
    assert texts_of(result) == ["1", "2"]
    _, result = tool_and_result(kind, giving({1}, set[int]))
    assert texts_of(result) == ["[1]"]
    assert result["structuredContent"] == {"result": [1]}


# --- results that break their schema ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value", "refused_by"),
    [
        (int, "x", ("2.14.7",)),
        (list[int], ["x"], ("2.14.7",)),
        (Model, {"a": "x"}, ("2.14.7", "3.4.11")),
        (dict[str, int], {"a": "x"}, ("2.14.7", "3.4.11")),
        (Model, None, ("2.14.7", "3.4.11")),
    ],
    ids=str,
)
def test_a_result_that_breaks_its_schema_is_refused_by_the_releases_that_refuse_it(
    annotation: Any, value: Any, refused_by: tuple[str, ...]
) -> None:
    for release in ("2.14.7", "3.4.11", "4.2.3"):
        with beside(release):
            _, result = tool_and_result(FASTMCP, giving(value, annotation))
        assert result.get("isError", False) is (release in refused_by), release


# --- a second tool of a name ------------------------------------------------------------------------------


def test_a_tool_that_replaces_another_takes_its_place_in_the_list() -> None:
    server = FASTMCP("demo")
    for name in ("a", "b", "c", "a", "d"):
        server.tool(giving(1), name=name)

    async def names(client: Any) -> list[str]:
        return [tool["name"] for tool in (await client.request("tools/list", {}))["tools"]]

    assert with_client(server, names) == ["a", "b", "c", "d"]
    server.remove_tool("b")
    server.tool(giving(1), name="b")
    assert with_client(server, names) == ["a", "c", "d", "b"]
