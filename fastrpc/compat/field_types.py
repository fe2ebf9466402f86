"""What the classes have in common that are pydantic models in the originals: they are types of fields there.

``class Config(BaseModel): server: StdioServerParameters`` takes an instance, or an object with the members
that the constructor has, which are validated by the constructor's annotations; ``model_validate``,
``model_dump`` and the like work. Imports neither pydantic nor anything else by itself: pydantic calls
`FieldType.__get_pydantic_core_schema__` where it makes a schema. Construction itself validates nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

_VARIABLE_KEYWORD = 0x08


class FieldType:
    """Base of a class that pydantic takes as the type of a field."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def instance(value: Any, make: Any) -> Any:
            return value if isinstance(value, cls) else _made(cls, make(value))

        return core_schema.no_info_wrap_validator_function(
            instance,
            handler.generate_schema(_shape(cls)),
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped),
        )


class ModelType(FieldType):
    """Base of a class that is a model in the originals: it has the usual methods of one."""

    __slots__ = ()

    @classmethod
    def model_validate(cls, value: Any, **options: Any) -> Self:
        """Return an instance with these members. Raises pydantic's ValidationError."""
        found: Self = _adapter(cls).validate_python(value)
        return found

    @classmethod
    def model_validate_json(cls, text: str | bytes, **options: Any) -> Self:
        """Return an instance with the members of this JSON. Raises pydantic's ValidationError."""
        found: Self = _adapter(cls).validate_json(text)
        return found

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        """Return the JSON Schema of the members. Raises pydantic's errors."""
        found: dict[str, Any] = _adapter(cls).json_schema()
        return {**found, "title": cls.__name__}

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members as a dict. Of pydantic's options `exclude` and `exclude_none` have an effect."""
        excluded = options.get("exclude") or ()
        found = {name: value for name, value in members_of(self).items() if name not in excluded}
        if options.get("exclude_none"):
            found = {name: value for name, value in found.items() if value is not None}
        return {name: _dumped(value) for name, value in found.items()}

    def model_dump_json(self, **options: Any) -> str:
        """Return the members as JSON."""
        from fastrpc.json_encoding import to_json

        return to_json(self.model_dump(**options)).decode()

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """Return a copy with other values of some members."""
        from copy import copy, deepcopy

        found = deepcopy(self) if deep else copy(self)
        for name, value in (update or {}).items():
            setattr(found, name, value)
        return found


def members_of(thing: Any) -> dict[str, Any]:
    """Return the members of an instance: those that its class declares, and its own attributes."""
    names = [name for name in _declared(type(thing)) if hasattr(thing, name)]
    others = [name for name in getattr(thing, "__dict__", ()) if not name.startswith("_")]
    return {name: getattr(thing, name) for name in dict.fromkeys([*names, *others])}


def _declared(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the members that a class declares, as parameters of its constructor or as annotated attributes:
    the annotation of each, and whether it is required."""
    from inspect import get_annotations

    found = {}
    for each in reversed(kind.__mro__):
        for name, annotation in get_annotations(each).items():
            if name.islower() and not name.startswith("_"):
                found[name] = annotation, not hasattr(kind, name)
    return {**found, **_parameters(kind)}


def _parameters(kind: Any) -> dict[str, tuple[Any, bool]]:
    function = kind.__init__
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    count = code.co_argcount
    names = code.co_varnames[1 : count + code.co_kwonlyargcount]
    defaults = {*code.co_varnames[count - len(function.__defaults__ or ()) : count]}
    defaults.update(function.__kwdefaults__ or ())
    return {name: (function.__annotations__.get(name, "Any"), name not in defaults) for name in names}


def _takes_others(kind: Any) -> bool:
    code = getattr(kind.__init__, "__code__", None)
    return code is not None and bool(code.co_flags & _VARIABLE_KEYWORD)


def _shape(kind: Any) -> Any:
    """Return the type of an object with the members of a class."""
    from typing_extensions import NotRequired, TypedDict

    members: dict[str, Any] = {}
    for name, (annotation, is_required) in _declared(kind).items():
        found = _evaluated(annotation, kind)
        members[name] = found if is_required else NotRequired[found]
    form: Any = TypedDict  # not the form for mypy: the members are known at run time only
    shape = form(kind.__name__, members)
    shape.__pydantic_config__ = {
        "arbitrary_types_allowed": True,
        "extra": "allow" if _takes_others(kind) else "ignore",
    }
    return shape


def _made(kind: Any, members: dict[str, Any]) -> Any:
    """Return an instance with these members; those that its constructor does not take are its own already."""
    if not _takes_others(kind):
        known = _parameters(kind)
        members = {name: value for name, value in members.items() if name in known}
    return kind(**members)


def _evaluated(annotation: Any, kind: Any) -> Any:
    """Return what an annotation names; Any for what is known to type checkers alone."""
    import sys
    import typing
    from collections import abc
    from pathlib import Path

    if not isinstance(annotation, str):
        return annotation
    names = {**vars(abc), **vars(typing), "Path": Path, **vars(sys.modules[kind.__module__])}
    try:
        return eval(annotation, names)
    except (NameError, TypeError, AttributeError):
        return typing.Any


def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _dumped(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, (list, tuple)):
        return [_dumped(part) for part in value]
    return value
