"""What the values of an annotation look like at a glance, and the plain values of results."""

from collections.abc import Callable, Iterable
from typing import Any

class ValueType:
    """One type, decided by exact types."""

    def load(self, value: Any) -> Any:
        """Return the value of a parameter for a JSON value, or NotImplemented."""
    def plain(self, value: Any) -> Any:
        """Return the JSON value of a result, which the JSON writer has to accept, or NotImplemented."""

class AnyValue(ValueType):
    """Any JSON value."""

class Exact(ValueType):
    """An instance of one class, of no subclass; as a result also of `other`."""

    def __init__(self, kind: type, other: type | None = None) -> None: ...

class Bounded(ValueType):
    """A number, or a text of so many characters, within bounds; `beyond` and `below` are not included."""

    def __init__(
        self,
        inner: Exact,
        *,
        least: float | None = None,
        most: float | None = None,
        beyond: float | None = None,
        below: float | None = None,
    ) -> None: ...

class ChoiceType(ValueType):
    """One of some texts."""

    def __init__(self, texts: Iterable[str]) -> None: ...

class OneOf(ValueType):
    """A value of one of several types, the first that accepts it."""

    def __init__(self, types: Iterable[ValueType]) -> None: ...

class ListOf(ValueType):
    """Converts the items of a list, which all have one type."""

    def __init__(self, items: ValueType) -> None: ...

class TupleOf(ValueType):
    """A tuple of a class with a type for each member, which is an array in JSON."""

    def __init__(self, kind: type, types: Iterable[ValueType]) -> None: ...

class DictOf(ValueType):
    """A dict from texts to values of one type."""

    def __init__(self, values: ValueType) -> None: ...

class Members(ValueType):
    """A dict whose members have types by name, some of them optional, and no others."""

    def __init__(self, types: dict[str, ValueType], required: Iterable[str]) -> None: ...

class RecordType(ValueType):
    """An instance of a class, which is an object of its attributes in JSON. `members`: an attribute, its key
    in JSON and the type of its value, for each. `is_made`: an instance is made by calling the class with its
    attributes by name, of which these keys are required."""

    def __init__(
        self,
        kind: type,
        members: Iterable[tuple[str, str, ValueType]],
        is_made: bool,
        required: Iterable[str] = (),
    ) -> None: ...

class Converted(ValueType):
    """As a result, an instance of a class of which a function makes a plain value."""

    def __init__(self, kind: type, function: Callable[[Any], Any]) -> None: ...

class EnumMember(ValueType):
    """A member of an enum whose values are all texts, or all integers."""

    def __init__(self, kind: type) -> None: ...
