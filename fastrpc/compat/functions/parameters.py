"""The parameters of an adapted function, as FastMCP and the official SDK read them through pydantic.

Types that msgspec and pydantic read differently are left to pydantic where it is installed; a ``Field`` that
is a parameter's default is part of its annotation; an ``alias`` is the name for clients. Takes microseconds
for plain types, and imports pydantic only for those named in `_READ_BY_PYDANTIC`.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from fastrpc.compat.functions.docstrings import read_docstring
from fastrpc.definitions.handler import clean_docstring
from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import alias_of, is_any, is_literal, is_union, peel, resolve
from fastrpc.schema.converters import json_from_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, FunctionType

    from fastrpc.compat.dialect import Dialect

_VARIABLE_POSITIONAL, _VARIABLE_KEYWORD = 0x04, 0x08

_READ_BY_PYDANTIC = {"collections", "datetime", "decimal", "ipaddress", "pathlib", "re"}
"""Modules whose types msgspec does not know, or reads in one notation alone: dates in RFC 3339."""

_BUILTINS = (bytes, bytearray, complex)
"""Builtin types of which the same is true: bytes are base64 for msgspec."""


class Needs:
    """What an adapted function needs besides the arguments of a client.

    `takes_context`: its signature has a Context. `is_plain`: its results need no conversion. `names`: all
    parameters, in their order. `contexts`: further parameters for the Context. `dependencies`: parameters
    whose values `functions.dependencies` makes. `renamed`: parameters by the names that clients use.
    `is_variable`: it takes ``*args`` or ``**kwargs``. `has_factories`: some defaults are made in each call.
    `json_texts`: parameters whose texts may be the JSON of an object or array. `description`: its docstring
    without what describes parameters; None: the docstring is the description.
    """

    __slots__ = (
        "contexts",
        "dependencies",
        "description",
        "has_factories",
        "is_plain",
        "is_variable",
        "json_texts",
        "names",
        "renamed",
        "takes_context",
    )

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names
        self.takes_context = self.is_variable = self.has_factories = False
        self.is_plain = True
        self.description: str | None = None
        self.contexts: list[str] = []
        self.json_texts: list[str] = []
        self.dependencies: dict[str, Any] = {}
        self.renamed: dict[str, str] = {}

    @property
    def names_differ(self) -> bool:
        """Whether the function's parameters are others than those of its signature."""
        return bool(self.contexts or self.dependencies or self.renamed or self.is_variable)


def defaults_of(function: FunctionType) -> dict[str, Any]:
    """Return the defaults of a function's parameters, by name."""
    code = function.__code__
    values = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    found = dict(zip(positional[len(positional) - len(values) :], values, strict=True))
    return {**found, **(function.__kwdefaults__ or {})}


class Made:
    """Stands for a default that `factory` makes in each call: ``Field(default_factory=…)``."""

    __slots__ = ("factory",)

    def __init__(self, factory: Any) -> None:
        self.factory = factory

    def __deepcopy__(self, memo: object) -> Made:
        return self  # pydantic copies defaults


def made_later(default: Any) -> Any:
    """Return `Made` for a ``Field`` whose default is made in each call; any other default unchanged."""
    factory = getattr(default, "default_factory", None)
    if type(default).__module__ != "pydantic.fields" or factory is None:
        return default
    if getattr(default, "default_factory_takes_validated_data", False):
        return default
    from copy import copy

    found = copy(default)
    found.default_factory, found.default = None, Made(factory)
    return found


def named_code(code: CodeType, dialect: Dialect | None) -> CodeType:
    """Return the code with ``*args`` and ``**kwargs`` as ordinary parameters, where the original has them so.

    For the description alone: the function itself is called.
    """
    variable = bool(code.co_flags & _VARIABLE_POSITIONAL) + bool(code.co_flags & _VARIABLE_KEYWORD)
    if not variable or dialect is None or not dialect.names_variables:
        return code
    return code.replace(
        co_kwonlyargcount=code.co_kwonlyargcount + variable,
        co_flags=code.co_flags & ~(_VARIABLE_POSITIONAL | _VARIABLE_KEYWORD),
    )


def keyword_only_code(code: CodeType, bound: int) -> CodeType:
    """Return the code with all parameters as keyword-only but the first ones, which are bound, and those that
    are positional-only."""
    kept = min(max(bound, code.co_posonlyargcount), code.co_argcount)
    rest = code.co_argcount + code.co_kwonlyargcount - kept
    return code.replace(co_argcount=kept, co_kwonlyargcount=rest)


class Injected:
    """What declares that a parameter's value is made in each call: as its default or, if `is_metadata`, as an
    element of ``Annotated``. The value is made by `fastrpc.compat.functions.dependencies`."""

    is_metadata = False

    def declared(self, annotation: Any) -> Any:
        """Return the dependency of a parameter with this annotation."""
        return self


def dependency_of(annotation: Any, default: Any, namespace: Mapping[str, Any]) -> Any:
    """Return what makes the value of a parameter in each call; None if the client gives it."""
    if isinstance(default, Injected):
        return default.declared(annotation)
    if isinstance(annotation, str):
        annotation = (
            _resolved(annotation, namespace) if "Annotated" in annotation else namespace.get(annotation)
        )
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, Injected) and item.is_metadata:
            return item.declared(annotation)
    return None


def understood(annotation: Any, namespace: Mapping[str, Any]) -> Any:
    """Return the annotation of a parameter for fastrpc."""
    resolved = _resolved(annotation, namespace)
    try:
        if not _is_read_by_pydantic(resolved, namespace):
            return annotation
    except (DefinitionError, RecursionError):
        return annotation
    marker = _pydantic_marker()
    return annotation if marker is None else Annotated[resolved, marker]


def _resolved(annotation: Any, namespace: Mapping[str, Any]) -> Any:
    """Return what an annotation names; an undefined name unchanged: fastrpc reports it."""
    try:
        return resolve(annotation, namespace) if isinstance(annotation, str) else annotation
    except DefinitionError:
        return annotation


def _is_read_by_pydantic(annotation: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a type is, or contains, one that pydantic reads in its own way."""
    base = peel(annotation, namespace).base
    kind = getattr(base, "__origin__", base)
    if isinstance(kind, type) and kind.__module__ != "collections.abc":
        if kind in _BUILTINS or kind.__module__.partition(".")[0] in _READ_BY_PYDANTIC:
            return True
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return True
    arguments = getattr(base, "__args__", ())
    if type(arguments) is not tuple or is_literal(base):
        return False
    return any(
        _is_read_by_pydantic(argument, namespace) for argument in arguments if argument is not Ellipsis
    )


def takes_json_text(annotation: Any, namespace: Mapping[str, Any]) -> bool:
    """Whether a parameter takes texts as well as objects and arrays of any kind: the official SDK hands it
    the object or array where a client sends one as JSON text, which models do where a schema is open."""
    try:
        base = peel(annotation, namespace).base
    except DefinitionError:
        return False
    if base is object or is_any(base):
        return True
    kinds = {getattr(member, "__origin__", member) for member in getattr(base, "__args__", ())}
    return is_union(base) and str in kinds and kinds <= {str, dict, list} and kinds != {str}


def read_json_texts(
    needs: Needs, values: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with the objects and arrays that texts of them are the JSON of."""

    def read(name: str, value: Any) -> Any:
        if type(value) is not str or name not in needs.json_texts:
            return value
        return json_from_text(value, "[" if value.lstrip()[:1] == "[" else "{")

    positional = tuple(read(name, value) for name, value in zip(needs.names, values, strict=False))
    return positional, {name: read(name, value) for name, value in named.items()}


def _pydantic_marker() -> Any:
    """Return metadata without another meaning, by which `fastrpc.schema.rich_types` leaves the type to
    pydantic; None if that is not installed."""
    try:
        import pydantic  # noqa: F401 - only whether it is there
        from annotated_types import BaseMetadata
    except ImportError:
        return None
    return BaseMetadata()


def add_descriptions(
    function: FunctionType, annotations: dict[str, Any], needs: Needs, namespace: Mapping[str, Any]
) -> str | None:
    """Add the descriptions in the docstring to the annotations of parameters, and return what is left of it;
    None if it has none."""
    text, found = read_docstring(function.__doc__)
    if not found and text == clean_docstring(function.__doc__):
        return None
    for name in needs.names:
        if found.get(name) and name not in needs.dependencies and name not in needs.contexts:
            annotation = _resolved(annotations[name], namespace)
            metadata = getattr(annotation, "__metadata__", ())  # after the docstring's: it counts for more
            form: Any = Annotated
            parts = (annotation.__origin__ if metadata else annotation, found[name], *metadata)
            annotations[name] = form[parts]
    return text or ""


# ----------------------------------------------------------------------------------------- aliases


def aliases_of(
    annotations: Mapping[str, Any],
    defaults: Mapping[str, Any],
    names: tuple[str, ...],
    namespace: Mapping[str, Any],
) -> dict[str, str]:
    """Return the parameters that have another name for clients, by that name."""
    if "pydantic.fields" not in sys.modules:
        return {}
    found = {}
    for name in names:
        annotation = annotations[name]
        if isinstance(annotation, str) and "Annotated" in annotation:
            annotation = _resolved(annotation, namespace)
        metadata = getattr(annotation, "__metadata__", ())
        for item in (*metadata, defaults.get(name)):
            alias = alias_of(item)
            if alias:
                found[alias] = name
    return found


def renamed_code(code: CodeType, renamed: Mapping[str, str]) -> CodeType:
    """Return the code with the names that clients use."""
    if not renamed:
        return code
    aliases = {name: alias for alias, name in renamed.items()}
    return code.replace(co_varnames=tuple(aliases.get(name, name) for name in code.co_varnames))


def renamed_defaults(defaults: dict[str, Any] | None, renamed: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the defaults of keyword-only parameters, by the names that clients use."""
    if not defaults or not renamed:
        return defaults
    aliases = {name: alias for alias, name in renamed.items()}
    return {aliases.get(name, name): value for name, value in defaults.items()}
