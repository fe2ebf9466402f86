"""Checks that a tool's value conforms to its output schema (MCP, tools: output schema).

Imported by the first result of a tool that has such a schema and whose value the connection does not write
by itself. Plain types are compared, arrays and objects of one plain type without a step of Python for each
element; msgspec and pydantic check their own types. Of a value of other types than JSON's, the JSON is
checked that it becomes.
"""

from __future__ import annotations

from fastrpc._core.encoder import is_plain
from fastrpc.errors import FAILURES
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.schema.converters import (
    ArrayConverter,
    DescribedConverter,
    IntegerConverter,
    Mismatch,
    NumberConverter,
    ObjectConverter,
    UnionConverter,
    expected,
    step_to,
    validates_itself,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc.schema import Signature
    from fastrpc.schema.converters import Converter

_EXACT: dict[str, frozenset[type]] = {
    "str": frozenset((str,)),
    "int": frozenset((int,)),
    "float": frozenset((float, int)),
    "bool": frozenset((bool,)),
}
"""What the elements of an array may be so that none of them has to be looked at."""


_PLAIN = (dict, list, tuple, int, float, bool)


class OutputMismatch(UnencodableResult):
    """A tool returned a value that does not conform to its output schema. The message names the member."""


def conforming(signature: Signature, value: Any, *, is_strict: bool = True) -> Any:
    """Return a result as a JSON value that conforms to the output schema. Raises OutputMismatch; unless
    `is_strict`, for a result that has to be an object and is none alone."""
    converter = signature.result_converter
    try:
        if hasattr(converter, "accept_result"):  # pydantic's: it coerces, and instances are validated already
            return converter.to_json(converter.accept_result(value))
        if validates_itself(converter, value):
            return converter.to_json(value)
        return _checked(converter, converter.to_json(value))
    except Mismatch as mismatch:
        if not is_strict and (signature.wraps_result or isinstance(value, dict)):
            return value
        raise _error_of(mismatch) from None


def check_structured(signature: Signature, structured: Any) -> None:
    """Check structured content that a tool made by itself. Raises OutputMismatch."""
    if signature.wraps_result:
        if not isinstance(structured, dict) or "result" not in structured:
            raise OutputMismatch('structured: expected {"result": …}, as the output schema says')
        structured = structured["result"]
    try:
        if hasattr(signature.result_converter, "adapter"):
            signature.result_converter.accept(structured, False)
        else:
            _checked(signature.result_converter, structured)
    except Mismatch as mismatch:
        raise _error_of(mismatch) from None


def plain_check(converter: Converter, *, texts: bool = False) -> Callable[[Any], bool]:
    """Return a function that returns whether a value conforms to the schema as it is; it never raises.
    Without `texts` it does not do so for a str."""
    kinds = (*_PLAIN, str) if texts else _PLAIN

    def conforms(value: Any) -> bool:
        if type(value) not in kinds:
            return False
        try:
            _check(converter, value)
        except FAILURES:  # checked again, and reported, by `conforming`
            return False
        return True

    return conforms


def _error_of(mismatch: Mismatch) -> OutputMismatch:
    problem = mismatch.of("result")
    return OutputMismatch(f"the tool returned a value that its annotation does not allow: {problem}")


def _checked(converter: Converter, value: Any) -> Any:
    try:
        _check(converter, value)
        return value
    except Mismatch:
        if is_plain(value):
            raise
    import json

    value = json.loads(to_json(value))  # a subclass, a set, a model inside: what counts is its JSON
    _check(converter, value)
    return value


def _check(converter: Converter, value: Any) -> None:
    check = _CHECKS.get(type(converter))
    if check is None:
        converter.accept(value, False)
    else:
        check(converter, value)


def _integer(converter: Converter, value: Any) -> None:
    if type(value) is not int and not (type(value) is float and value.is_integer()):
        raise expected("integer", value)


def _number(converter: Converter, value: Any) -> None:
    if type(value) not in (float, int):
        raise expected("number", value)


def _array(converter: Any, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise expected("array", value)
    _check_members(converter.items, value, enumerate(value), "[{}]".format)


def _object(converter: Any, value: Any) -> None:
    if not isinstance(value, dict):
        raise expected("object", value)
    _check_members(converter.values, value.values(), value.items(), lambda name: step_to(str(name)))


def _check_members(
    converter: Converter, values: Iterable[Any], members: Iterable[Any], step_of: Callable[[Any], str]
) -> None:
    if converter.kind == "json" or _EXACT.get(converter.kind, frozenset()).issuperset(map(type, values)):
        return
    for place, item in members:
        try:
            _check(converter, item)
        except Mismatch as mismatch:
            raise mismatch.within(step_of(place)) from None


def _union(converter: Any, value: Any) -> None:
    for member in converter.members:
        try:
            _check(member, value)
        except Mismatch:
            continue
        return
    raise expected(converter.noun, value)


_CHECKS: dict[type[Converter], Callable[[Any, Any], None]] = {
    IntegerConverter: _integer,
    NumberConverter: _number,
    ArrayConverter: _array,
    ObjectConverter: _object,
    UnionConverter: _union,
    DescribedConverter: lambda converter, value: _check(converter.inner, value),
}
