"""Adapts functions written for FastMCP or the official SDK.

Their signatures may omit annotations, which then mean Any, and may use the `Context` of `fastrpc.compat`. A
function that needs neither a Context nor a conversion of its result is called directly; any other through a
wrapper. The author's function is not changed.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType
from typing import Any

from fastrpc.compat.context import Context
from fastrpc.content import Content, ToolResult
from fastrpc.context import Context as PlainContext
from fastrpc.definitions.handler import docstring_of, is_async, is_unbound_method, name_of
from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import peel, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_RESULTS = (str, int, float, bool, None, type(None), dict)
"""Return types that need no conversion."""

_FOREIGN = ("mcp", "mcp_types")


def adapted(function: Any, server: Any, convert: Callable[[Any], Any]) -> Any:
    """Return what fastrpc can call and describe instead of `function`.

    `convert` turns its result into a type of fastrpc.
    """
    if isinstance(function, staticmethod):
        function = function.__func__
    if not callable(function):
        return function  # fastrpc reports the error
    if is_unbound_method(function):
        raise DefinitionError(f"{name_of(function)} is a method with a self; add the method of an object")
    described, takes_context, is_plain = _described(function)
    direct = isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")
    if direct and is_plain and not takes_context:
        return described
    return _shim(function, described, server, None if is_plain else convert)


def _shim(function: Any, described: Any, server: Any, convert: Callable[[Any], Any] | None) -> Any:
    def outer(value: Any) -> Any:
        return Context(value, server) if isinstance(value, PlainContext) else value

    def call(values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return function(*map(outer, values), **{name: outer(value) for name, value in named.items()})

    async def shim_async(*values: Any, **named: Any) -> Any:
        value = await call(values, named)
        return value if convert is None else convert(value)

    def shim_sync(*values: Any, **named: Any) -> Any:
        value = call(values, named)
        return value if convert is None else convert(value)

    shim: Any = shim_async if is_async(function) else shim_sync
    shim.__name__ = name_of(function)
    shim.__qualname__ = shim.__name__
    shim.__module__ = getattr(function, "__module__", shim.__module__)
    shim.__doc__ = docstring_of(function)
    shim.__wrapped__ = described
    return shim


def _described(function: Any) -> tuple[Any, bool, bool]:
    """Return the function with all annotations, whether it takes a Context, and whether its results need no
    conversion."""
    if isinstance(function, MethodType):
        inner, takes_context, is_plain = _described(function.__func__)
        return MethodType(inner, function.__self__), takes_context, is_plain
    if isinstance(function, partial):
        inner, takes_context, is_plain = _described(function.func)
        return partial(inner, *function.args, **function.keywords), takes_context, is_plain
    if hasattr(function, "__wrapped__"):
        return _described(function.__wrapped__)
    if isinstance(function, FunctionType):
        return _annotated(function)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted, not whether it is there
    if isinstance(call, FunctionType):
        inner, takes_context, is_plain = _described(call)
        return MethodType(inner, function), takes_context, is_plain
    return function, False, True


def _annotated(function: FunctionType) -> tuple[Any, bool, bool]:
    """Return a copy of a function in which each parameter has an annotation that fastrpc understands."""
    namespace = _namespace(function)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations = dict(function.__annotations__)
    takes_context = False
    for name in names:
        if name not in annotations:
            annotations[name] = Any
        elif _is_context(annotations[name], namespace):
            annotations[name] = PlainContext
            takes_context = True
    is_plain = _returns_plain(annotations.get("return", Any), namespace)
    if not is_plain and "return" in annotations:
        annotations["return"] = _result_type(annotations["return"], namespace)
    copy = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = annotations
    copy.__doc__ = function.__doc__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy, takes_context, is_plain


def _namespace(function: FunctionType) -> dict[str, Any]:
    namespace = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            namespace[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return namespace


def _is_context(annotation: Any, namespace: dict[str, Any]) -> bool:
    if isinstance(annotation, str):
        if "Context" not in annotation:
            return False
        annotation = annotation.strip("'\" ")
        name, bracket, _ = annotation.partition("[")
        if bracket and name.replace(".", "").isidentifier():
            annotation = name  # the type in the brackets may exist for type checkers only
    try:
        base = peel(annotation, namespace).base
    except DefinitionError:
        return False
    return isinstance(base, type) and issubclass(base, Context)


def _returns_plain(annotation: Any, namespace: dict[str, Any]) -> bool:
    """Return whether the return annotation is a type that needs no conversion."""
    try:
        annotation = resolve(annotation, namespace) if isinstance(annotation, str) else annotation
    except DefinitionError:
        return False
    return annotation in PLAIN_RESULTS or (
        getattr(annotation, "__origin__", None) is dict
        and all(argument in (*PLAIN_RESULTS, Any) for argument in annotation.__args__)
    )


def _result_type(annotation: Any, namespace: dict[str, Any]) -> Any:
    """Return the type for the output schema: Any for content, which has none."""
    try:
        if isinstance(annotation, str):
            annotation = resolve(annotation, namespace)
    except DefinitionError:
        return annotation  # fastrpc reports what is wrong with it
    for model in getattr(annotation, "__metadata__", ()):
        if isinstance(model, type) and _is_foreign(annotation.__origin__):
            return model  # in Annotated[CallToolResult, Model], Model is the structured content
    if annotation in (list, tuple) or getattr(annotation, "__args__", None) == (Any,):
        return Any  # any of the elements may be content
    return Any if _contains_content(annotation) else annotation


def _contains_content(annotation: Any) -> bool:
    if _is_foreign(annotation):
        return True
    if isinstance(annotation, type) and issubclass(annotation, (Content, ToolResult)):
        return True
    return any(_contains_content(argument) for argument in getattr(annotation, "__args__", ()))


def _is_foreign(annotation: Any) -> bool:
    return getattr(annotation, "__module__", "").partition(".")[0] in _FOREIGN
