"""Makes the compiled `ValueType` of a converter: which types its values have.

None for a type that cannot be decided by looking at the types of its values: one with a pattern or a hook,
one of pydantic's, one that refers to itself. Those are read by their converter, which this must never
contradict.
"""

from __future__ import annotations

from fastrpc._core.value_types import (
    AnyValue,
    Bounded,
    ChoiceType,
    Converted,
    DictOf,
    EnumMember,
    Exact,
    ListOf,
    Members,
    OneOf,
    RecordType,
    TupleOf,
    ValueType,
)
from fastrpc.schema.converters import (
    AnyConverter,
    ArrayConverter,
    BooleanConverter,
    ChoiceConverter,
    Converter,
    DescribedConverter,
    IntegerConverter,
    NullConverter,
    NumberConverter,
    ObjectConverter,
    StringConverter,
    UnionConverter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_TEXT, _INTEGER, _BOOLEAN, _NULL = Exact(str), Exact(int), Exact(bool), Exact(type(None))
_NUMBER = Exact(float, int)
_ANY = AnyValue()
_BY_NAME = {"AnyType": _ANY, "NoneType": _NULL, "BoolType": _BOOLEAN}
_WRITTEN = {  # by `msgspec.to_builtins`
    "DateTimeType": ("datetime", "datetime"),
    "DateType": ("datetime", "date"),
    "DecimalType": ("decimal", "Decimal"),
    "UUIDType": ("uuid", "UUID"),
}
_BY_CONVERTER: dict[type[Converter], ValueType] = {
    AnyConverter: _ANY,
    NullConverter: _NULL,
    StringConverter: _TEXT,
    IntegerConverter: _INTEGER,
    NumberConverter: _NUMBER,
    BooleanConverter: _BOOLEAN,
}


def value_type_of(converter: Converter) -> ValueType | None:
    """Return the type of a converter's values, None if it has to look at each of them itself."""
    kind = type(converter)
    plain = _BY_CONVERTER.get(kind)
    if plain is not None:
        return plain
    found: Any = converter
    if kind is DescribedConverter:
        return value_type_of(found.inner)
    if kind is ArrayConverter:
        return _around(ListOf, value_type_of(found.items))
    if kind is ObjectConverter:
        return _around(DictOf, value_type_of(found.values))
    if kind is ChoiceConverter:
        return _choice(found.choices)
    if kind is UnionConverter:
        return _one_of(map(value_type_of, found.members))
    described = getattr(found, "msgspec_type", None)
    return None if described is None else _TypeReader().read(described)


def _around(kind: Callable[[ValueType], ValueType], inner: ValueType | None) -> ValueType | None:
    return None if inner is None else kind(inner)


def _choice(values: Iterable[Any]) -> ValueType | None:
    """Texts alone: ``1`` and ``True`` are different values, and equal."""
    values = list(values)
    return ChoiceType(values) if all(type(value) is str for value in values) else None


def _one_of(types: Iterable[ValueType | None]) -> ValueType | None:
    found = list(types)
    return None if None in found else OneOf([each for each in found if each is not None])


class _TypeReader:
    """Reads a type as `msgspec.inspect` describes it."""

    def __init__(self) -> None:
        self._open: set[type] = set()

    def read(self, described: Any) -> ValueType | None:
        name = type(described).__name__
        if name in _BY_NAME:
            return _BY_NAME[name]
        if name in _WRITTEN and getattr(described, "tz", None) is None:
            module, kind = _WRITTEN[name]
            return _converted(getattr(__import__(module), kind))
        read = getattr(self, "_" + name, None)
        found: ValueType | None = None if read is None else read(described)
        return found

    def _IntType(self, described: Any) -> ValueType | None:
        return self._number(_INTEGER, described)

    def _FloatType(self, described: Any) -> ValueType | None:
        return self._number(_NUMBER, described)

    def _number(self, inner: Exact, described: Any) -> ValueType | None:
        bounds = {"least": described.ge, "most": described.le, "beyond": described.gt, "below": described.lt}
        if described.multiple_of is not None:
            return None
        return Bounded(inner, **bounds) if any(each is not None for each in bounds.values()) else inner

    def _StrType(self, described: Any) -> ValueType | None:
        least, most = described.min_length, described.max_length
        if described.pattern is not None:
            return None
        return _TEXT if least is None and most is None else Bounded(_TEXT, least=least, most=most)

    def _LiteralType(self, described: Any) -> ValueType | None:
        return _choice(described.values)

    def _UnionType(self, described: Any) -> ValueType | None:
        return _one_of(map(self.read, described.types))

    def _ListType(self, described: Any) -> ValueType | None:
        return None if _is_bounded(described) else _around(ListOf, self.read(described.item_type))

    def _DictType(self, described: Any) -> ValueType | None:
        if _is_bounded(described) or self.read(described.key_type) not in (_TEXT, _ANY):
            return None
        return _around(DictOf, self.read(described.value_type))

    def _TupleType(self, described: Any) -> ValueType | None:
        return self._tuple(tuple, described.item_types)

    def _NamedTupleType(self, described: Any) -> ValueType | None:
        return self._tuple(_class_of(described), [field.type for field in described.fields])

    def _tuple(self, kind: type, described: Iterable[Any]) -> ValueType | None:
        types = list(map(self.read, described))
        return None if None in types else TupleOf(kind, [each for each in types if each is not None])

    def _TypedDictType(self, described: Any) -> ValueType | None:
        types = self._members(described)
        if types is None:
            return None
        required = [field.encode_name for field in described.fields if field.required]
        return Members({key: each for _, key, each in types}, required)

    def _DataclassType(self, described: Any) -> ValueType | None:
        """A dataclass, or a class of attrs, which msgspec describes alike."""
        kind = _class_of(described)
        if not _sets_all_fields(kind, len(described.fields)):
            return None
        new: Any = object.__new__
        is_made = type(kind) is type and kind.__new__ is new
        return self._record(described, is_made and not hasattr(kind, "__attrs_attrs__"))

    def _StructType(self, described: Any) -> ValueType | None:
        kind = _class_of(described)
        config = kind.__struct_config__
        if described.tag is not None or described.array_like or config.omit_defaults:
            return None
        return self._record(described, type(kind).__name__ == "StructMeta")

    def _record(self, described: Any, is_made: bool) -> ValueType | None:
        """A record of public attributes: msgspec leaves the others out. The compiled binder runs no
        code of its author: instances of a class that has some are made by its converter."""
        members = self._members(described)
        if members is None or any(attribute.startswith("_") for attribute, _, _ in members):
            return None
        kind = _class_of(described)
        if hasattr(kind, "__post_init__") or not all(map(_has_plain_default, described.fields)):
            is_made = False
        required = [field.encode_name for field in described.fields if field.required]
        return RecordType(kind, members, is_made, required)

    def _members(self, described: Any) -> list[tuple[str, str, ValueType]] | None:
        kind = described.cls
        if kind in self._open:
            return None  # it refers to itself
        self._open.add(kind)
        try:
            found = []
            for field in described.fields:
                value = self.read(field.type)
                if value is None:
                    return None
                found.append((field.name, field.encode_name, value))
            return found
        finally:
            self._open.remove(kind)

    def _EnumType(self, described: Any) -> ValueType | None:
        kinds = {type(member.value) for member in described.cls}
        return EnumMember(described.cls) if kinds in ({str}, {int}) else None

    def _BytesType(self, described: Any) -> ValueType | None:
        return None if _is_bounded(described) else _converted(bytes)


def _class_of(described: Any) -> Any:
    """The class of a record; of one that is generic, without its parameters, which has no marks."""
    return getattr(described.cls, "__origin__", described.cls)


def _has_plain_default(field: Any) -> bool:
    from msgspec import NODEFAULT

    return field.default_factory in (NODEFAULT, list, dict, set)


def _sets_all_fields(kind: Any, count: int) -> bool:
    """Whether making an instance sets each field, and the library has written what does so: an author's own
    may leave a default where it is, in the class, and msgspec leaves those out."""
    code = getattr(kind.__init__, "__code__", None)
    generated = code is not None and code.co_filename.startswith(("<string>", "<attrs generated"))
    fields = getattr(kind, "__attrs_attrs__", None) or kind.__dataclass_fields__.values()
    return generated and len(fields) == count and all(field.init for field in fields)


def _converted(kind: type) -> ValueType:
    from msgspec import to_builtins

    return Converted(kind, to_builtins)


def _is_bounded(described: Any) -> bool:
    return described.min_length is not None or described.max_length is not None
