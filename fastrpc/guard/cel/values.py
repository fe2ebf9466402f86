"""The operators on values, as in CEL: equality, order, arithmetic, membership, indexing.

Values have JSON's types: str, bool, int, float, None, list (or tuple) and dict. Two ints of any size are
compared exactly, an int and a double as in `widened`; arithmetic whose result has more than 64 bits is an
error. No value is trusted to have its declared type. Each function raises `EvaluationError`, and charges the
frame (`spend`) for work that grows with the values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum
from typing import Any

from fastrpc.guard.cel.errors import EvaluationError, StepsExceeded
from fastrpc.guard.cel.types import NUMBERS, OF_PYTHON, WORDS

MOST_STEPS = 100_000
"""The limit of one evaluation. A step is a node of a macro's body in one iteration, an element that is
compared or copied, 1,000 characters that are compared, 100 that are built, or a part of a search (see
`search_text` and `matches`). It takes about a microsecond, so that no caller's value blocks the server for
long."""
LONGEST_BUILT = 1_000_000
"""The maximum length of a string that an expression builds, in characters."""
SHORT_TEXT = 1000
"""Characters that cost nothing to compare."""
LONG_TEXT = 30_000
"""From this length on, CPython searches a text for any part in linear time."""
TRIES_A_STEP = 2_500
"""Pairs of characters that a search of a text compares in a step."""
LARGEST_INT = 2**63 - 1
SMALLEST_INT = -(2**63)
LARGEST_EXACT = 2**53
"""Up to this number each int is a double."""

Frame = list[Any]
"""The state of one evaluation: the values, the steps left, the trace (or None), then the slots of macros."""
VALUES, STEPS, TRACE, SLOTS = 0, 1, 2, 3

KINDS = {**{each: of.kind for each, of in OF_PYTHON.items()}, list: "list", tuple: "list", dict: "map"}
PLAIN = frozenset((str, int, float, bool))
"""Two values of one of these types are compared as in Python."""


def spend(frame: Frame, steps: int) -> None:
    frame[STEPS] -= steps
    if frame[STEPS] < 0:
        raise StepsExceeded(f"the rule takes more than {MOST_STEPS:,} steps")


def kind_of(value: Any) -> str:
    """Return the kind of a value, which may be of a subclass (an enum of strings)."""
    kind = KINDS.get(type(value))
    if kind is None:
        kind = next((kind for each, kind in KINDS.items() if isinstance(value, each)), None)
        if kind is None:
            raise EvaluationError(f"a value of Python's type {type(value).__name__} is not supported by CEL")
    return kind


def json_value(value: Any) -> Any:
    """Return a bound value in which members of enums, also in lists and maps, are replaced by their values,
    as they were sent. Other objects remain, which no rule can read."""
    kind = type(value)
    if kind in PLAIN or value is None:
        return value
    if isinstance(value, Enum):
        return json_value(value.value)
    if kind is list or kind is tuple:
        return [json_value(each) for each in value]
    if kind is dict:
        return {json_value(key): json_value(each) for key, each in value.items()}
    return value


def words_of(value: Any) -> str:
    """Return how an error names the value."""
    return WORDS[kind_of(value)]


def text_of(value: Any, doing: str) -> str:
    """Return a value that must be a string."""
    if isinstance(value, str):
        return value
    raise EvaluationError(f"{doing}: expected a string, not {words_of(value)}")


def read_text(frame: Frame, text: str) -> None:
    """Charge for a string that is compared."""
    if len(text) > SHORT_TEXT:
        spend(frame, len(text) // 1000)


def search_text(frame: Frame, text: str, part: str) -> None:
    """Charge for searching a string for another one, at the worst case for their lengths.

    In a text that is not long, and for a part of less than about 100 characters, CPython compares up to the
    whole part at each character; otherwise each character costs at most 12 comparisons."""
    tries = len(text) * min(len(part), 12 if len(text) >= LONG_TEXT else 100)
    if tries >= TRIES_A_STEP:
        spend(frame, tries // TRIES_A_STEP)


# --- comparing --------------------------------------------------------------------------------------------


def equal(frame: Frame, left: Any, right: Any) -> bool:
    """``==``: values of different kinds are unequal, except ints and doubles, which are compared by value."""
    if type(left) is type(right) and type(left) in PLAIN:
        if type(left) is str and len(left) > SHORT_TEXT:
            read_text(frame, left)
        return bool(left == right)
    mine, theirs = kind_of(left), kind_of(right)
    if mine != theirs:
        return mine in NUMBERS and theirs in NUMBERS and widened(left) == widened(right)
    if mine == "list":
        if len(left) != len(right):
            return False
        spend(frame, len(left))
        return all(equal(frame, one, other) for one, other in zip(left, right, strict=True))
    if mine == "map":
        if len(left) != len(right):
            return False
        spend(frame, len(left))
        return all(key in right and equal(frame, value, right[key]) for key, value in left.items())
    return bool(left == right)


def widened(number: int | float) -> int | float:
    """Return an int as it is compared with a double: as a double, like the engines of CEL and its conformance
    tests do. So 2**63 - 1 equals 2.0**63. An int beyond 64 bits, which CEL does not have, remains."""
    return float(number) if SMALLEST_INT <= number <= LARGEST_INT else number


ORDERED = ({"int"}, {"double"}, {"int", "double"}, {"string"}, {"bool"})
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def ordering(symbol: str) -> Callable[[Frame, Any, Any], bool]:
    """Return what ``<``, ``<=``, ``>`` or ``>=`` does. Strings are ordered by their code points."""
    compare = ORDER[symbol]

    def ordered(frame: Frame, left: Any, right: Any) -> bool:
        if type(left) is type(right) and type(left) in PLAIN:
            if type(left) is str and len(left) > SHORT_TEXT:
                read_text(frame, left)
            return bool(compare(left, right))
        kinds = {kind_of(left), kind_of(right)}
        if kinds not in ORDERED:
            raise EvaluationError(f"{words_of(left)} {symbol} {words_of(right)}: they have no order")
        if len(kinds) == 2:
            left, right = widened(left), widened(right)
        return bool(compare(left, right))

    return ordered


def contained(frame: Frame, item: Any, container: Any) -> bool:
    """``in``: an element of a list, a key of a map."""
    kind = kind_of(container)
    if kind == "map":
        return has_key(container, item)
    if kind != "list":
        raise EvaluationError(f"in: expected a list or a map, not {WORDS[kind]}")
    spend(frame, len(container))
    return any(equal(frame, item, each) for each in container)


# --- members and elements ---------------------------------------------------------------------------------


def has_key(container: dict[Any, Any], key: Any) -> bool:
    """Whether a map has a key: a string or a number, but not a bool, which is a number in Python."""
    return kind_of(key) in ("string", *NUMBERS) and key in container


def element(frame: Frame, container: Any, index: Any) -> Any:
    kind = kind_of(container)
    if kind == "map":
        if has_key(container, index):
            return container[index]
        shown = index if isinstance(index, str) and len(index) <= 60 else words_of(index)
        raise EvaluationError(f"{shown}: the map has no such key")
    if kind != "list":
        raise EvaluationError(f"{WORDS[kind]} has no elements")
    if kind_of(index) == "double" and index.is_integer():
        index = int(index)  # JSON may write 1 as 1.0
    if kind_of(index) != "int":
        raise EvaluationError(f"the index of a list is an int, not {words_of(index)}")
    if not 0 <= index < len(container):
        raise EvaluationError(f"the list has {len(container)} elements, none with this index")
    return container[index]


# --- calculating ------------------------------------------------------------------------------------------


def limited(value: int) -> int:
    """Return the result of an operation on ints."""
    if SMALLEST_INT <= value <= LARGEST_INT:
        return value
    raise EvaluationError("the result has more than 64 bits")


def as_double(value: Any) -> Any:
    """Return a value that is declared as a double: an int is converted, since JSON may write 1.0 as 1."""
    return double_of(value) if type(value) is int else value


def double_of(value: int | float | str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise EvaluationError("the int is beyond any double") from None


def add(frame: Frame, left: Any, right: Any) -> Any:
    kind = _common_kind("+", left, right, ("int", "double", "string", "list"))
    if kind == "int":
        return limited(left + right)
    if kind == "double":
        return left + right
    if kind == "string":
        if len(left) + len(right) > LONGEST_BUILT:
            raise EvaluationError(f"+: the string has more than {LONGEST_BUILT:,} characters")
        spend(frame, (len(left) + len(right)) // 100)
        return left + right
    spend(frame, len(left) + len(right))
    return [*left, *right]


def subtract(frame: Frame, left: Any, right: Any) -> Any:
    kind = _common_kind("-", left, right, NUMBERS)
    return limited(left - right) if kind == "int" else left - right


def multiply(frame: Frame, left: Any, right: Any) -> Any:
    kind = _common_kind("*", left, right, NUMBERS)
    return limited(left * right) if kind == "int" else left * right


def divide(frame: Frame, left: Any, right: Any) -> Any:
    """``/``: for ints the quotient towards zero; for doubles as in IEEE 754, infinity included."""
    if _common_kind("/", left, right, NUMBERS) == "int":
        return limited(_quotient("/", left, right))
    if right != 0:
        return left / right
    if left == 0 or left != left:
        return float("nan")
    is_negative = (left < 0) != (str(right)[0] == "-")
    return float("-inf" if is_negative else "inf")


def remainder(frame: Frame, left: Any, right: Any) -> Any:
    """``%``: the result has the sign of the dividend."""
    _common_kind("%", left, right, ("int",))
    limited(_quotient("%", left, right))
    return limited(left - right * _quotient("%", left, right))


def _quotient(symbol: str, left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError(f"{symbol}: division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _common_kind(symbol: str, left: Any, right: Any, kinds: tuple[str, ...]) -> str:
    mine, theirs = kind_of(left), kind_of(right)
    if mine != theirs or mine not in kinds:
        raise EvaluationError(f"{WORDS[mine]} {symbol} {WORDS[theirs]}: there is no such operation")
    return mine


def negative(frame: Frame, value: Any) -> Any:
    kind = kind_of(value)
    if kind not in NUMBERS:
        raise EvaluationError(f"-: expected a number, not {WORDS[kind]}")
    return limited(-value) if kind == "int" else -value


def as_bool(value: Any, doing: str) -> bool:
    """Return a value that must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"{doing}: expected a bool, not {words_of(value)}")


UNARY: dict[str, Callable[[Frame, Any], Any]] = {
    "-": negative,
    "!": lambda frame, value: not as_bool(value, "!"),
}
BINARY: dict[str, Callable[[Frame, Any, Any], Any]] = {
    "==": equal,
    "!=": lambda frame, left, right: not equal(frame, left, right),
    **{symbol: ordering(symbol) for symbol in ORDER},
    "in": contained,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}
