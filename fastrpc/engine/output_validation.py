"""Judges whether a tool's value keeps the promise of its output schema (MCP, tools: output schema).

Imported by the first result of a tool that has such a schema and whose value the connection does not write
by itself. Plain types are compared, arrays and objects of one plain type without a step of Python for each
element; msgspec and pydantic judge their own types. A value of other types than JSON's is judged by the
JSON that it becomes.
"""

from __future__ import annotations

from fastrpc._core.encode import is_plain
from fastrpc.engine.json_encoding import UnencodableResult, to_json
from fastrpc.errors import FAILURES
from fastrpc.schema.converters import (
    AnyShape,
    ArrayShape,
    BooleanShape,
    ChoiceShape,
    DescribedShape,
    IntegerShape,
    Mismatch,
    NullShape,
    NumberShape,
    ObjectShape,
    StringShape,
    UnionShape,
    expected,
    step_to,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.schema import Signature
    from fastrpc.schema.converters import Shape

_EXACT: dict[str, frozenset[type]] = {
    "str": frozenset((str,)),
    "int": frozenset((int,)),
    "float": frozenset((float, int)),
    "bool": frozenset((bool,)),
}
"""What the elements of an array may be so that none of them has to be looked at."""


_PLAIN = (dict, list, tuple, int, float, bool)


class BrokenPromise(UnencodableResult):
    """A tool returned something else than its output schema says. The message names the member."""


def conforming(signature: Signature, value: Any) -> Any:
    """Return a result as a JSON value that keeps what the output schema says. Raises BrokenPromise."""
    shape = signature.result_shape
    try:
        if hasattr(shape, "adapter"):  # pydantic's: it mends what it can, and instances are made already
            return shape.to_json(shape.accept(value, False))
        if _judged_itself(shape, value):
            return shape.to_json(value)
        return _checked(shape, shape.to_json(value))
    except Mismatch as mismatch:
        raise _broken(mismatch) from None


def check_structured(signature: Signature, structured: Any) -> None:
    """Check structured content that a tool made by itself. Raises BrokenPromise."""
    if signature.wraps_result:
        if not isinstance(structured, dict) or "result" not in structured:
            raise BrokenPromise('structured: expected {"result": …}, as the output schema says')
        structured = structured["result"]
    try:
        if hasattr(signature.result_shape, "adapter"):
            signature.result_shape.accept(structured, False)
        else:
            _checked(signature.result_shape, structured)
    except Mismatch as mismatch:
        raise _broken(mismatch) from None


def _judged_itself(shape: Shape, value: Any) -> bool:
    """Whether a value is of the promised class, and that looks at what it is made of.

    To judge such a value here would be to make another, and to run its ``__post_init__`` again.
    """
    kind = type(value)
    return hasattr(kind, "__post_init__") and getattr(shape, "annotation", None) in kind.__mro__


def plain_check(shape: Shape) -> Callable[[Any], bool]:
    """Return a function that tells whether a value is plainly what was promised; it never raises."""
    check = _CHECKS.get(type(shape))

    def keeps(value: Any) -> bool:
        if type(value) not in _PLAIN:
            return False
        try:
            if check is None:
                shape.accept(value, False)
            else:
                check(shape, value)
        except FAILURES:  # judged again, and said, by `conforming`
            return False
        return True

    return keeps


def _broken(mismatch: Mismatch) -> BrokenPromise:
    problem = mismatch.of("result")
    return BrokenPromise(f"the tool returned something else than its annotation says: {problem}")


def _checked(shape: Shape, value: Any) -> Any:
    try:
        _check(shape, value)
        return value
    except Mismatch:
        if is_plain(value):
            raise
    import json

    value = json.loads(to_json(value))  # a subclass, a set, a model inside: what counts is its JSON
    _check(shape, value)
    return value


def _check(shape: Shape, value: Any) -> None:
    check = _CHECKS.get(type(shape))
    if check is None:
        shape.accept(value, False)
    else:
        check(shape, value)


def _integer(shape: Shape, value: Any) -> None:
    if type(value) is not int and not (type(value) is float and value.is_integer()):
        raise expected("integer", value)


def _number(shape: Shape, value: Any) -> None:
    if type(value) not in (float, int):
        raise expected("number", value)


def _array(shape: Any, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise expected("array", value)
    items = shape.items
    if items.kind == "json" or _EXACT.get(items.kind, frozenset()).issuperset(map(type, value)):
        return
    for index, item in enumerate(value):
        try:
            _check(items, item)
        except Mismatch as mismatch:
            raise mismatch.within(f"[{index}]") from None


def _object(shape: Any, value: Any) -> None:
    if not isinstance(value, dict):
        raise expected("object", value)
    values = shape.values
    if values.kind == "json" or _EXACT.get(values.kind, frozenset()).issuperset(map(type, value.values())):
        return
    for name, item in value.items():
        try:
            _check(values, item)
        except Mismatch as mismatch:
            raise mismatch.within(step_to(str(name))) from None


def _union(shape: Any, value: Any) -> None:
    for member in shape.members:
        try:
            _check(member, value)
        except Mismatch:
            continue
        return
    raise expected(shape.noun, value)


def _exact(shape: Shape, value: Any) -> None:
    shape.accept(value, False)


_CHECKS: dict[type[Shape], Callable[[Any, Any], None]] = {
    AnyShape: _exact,
    NullShape: _exact,
    StringShape: _exact,
    BooleanShape: _exact,
    ChoiceShape: _exact,
    IntegerShape: _integer,
    NumberShape: _number,
    ArrayShape: _array,
    ObjectShape: _object,
    UnionShape: _union,
    DescribedShape: lambda shape, value: _check(shape.inner, value),
}
