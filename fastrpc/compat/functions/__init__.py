"""Adapts functions written for FastMCP or the official SDK.

`adapted` makes the function that the engine calls. Signatures may omit annotations, which then mean Any, and
may use the `Context` of `fastrpc.compat`. A function that needs neither a Context nor a conversion of its
result is called directly; any other through a wrapper. The author's function is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Annotated, Any

from fastrpc.compat.context import Context
from fastrpc.compat.functions.parameters import (
    Made,
    Needs,
    add_descriptions,
    aliases_of,
    defaults_of,
    dependency_of,
    keyword_only_code,
    made_later,
    named_code,
    read_json_texts,
    renamed_code,
    renamed_defaults,
    takes_json_text,
    understood,
)
from fastrpc.compat.values import resource_value
from fastrpc.content import Content, ToolResult
from fastrpc.context import Context as PlainContext
from fastrpc.definitions.handler import docstring_of, is_async, is_unbound_method, name_of
from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import is_literal, is_union, peel, resolve, union_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fastrpc.compat.dialect import Dialect

PLAIN_RESULTS = (str, int, float, bool, None, type(None), dict)
"""Return types that need no conversion."""

_FOREIGN = ("mcp", "mcp_types")

READERS = frozenset(("get_context", "get_server"))
"""Names by which a function reads the running call without a parameter for it."""


def adapted(function: Any, server: Any, convert: Callable[[Any], Any], dialect: Any = None) -> Any:
    """Return what fastrpc can call and describe instead of `function`.

    `convert` turns its result into a type of fastrpc. `dialect` is by default that of the server.
    """
    if isinstance(function, staticmethod):
        function = function.__func__
    if not callable(function):
        return function  # fastrpc reports the error
    if is_unbound_method(function):
        raise DefinitionError(f"{name_of(function)} is a method with a self; add the method of an object")
    _watch(function)
    dialect = getattr(server, "dialect", dialect)
    reads_docstring = dialect is not None and dialect.describes_arguments and convert is not resource_value
    described, needs = _described(function, dialect, reads_docstring)
    direct = isinstance(function, FunctionType) and not hasattr(function, "__wrapped__")
    is_plain = needs.is_plain and not (needs.takes_context or needs.has_factories or needs.json_texts)
    if direct and is_plain and not needs.names_differ:
        return described
    shim = _shim(function, needs, server, None if needs.is_plain else convert)
    shim.__name__ = name_of(function)
    shim.__qualname__ = shim.__name__
    shim.__module__ = getattr(function, "__module__", shim.__module__)
    shim.__doc__ = needs.description if needs.description is not None else docstring_of(function)
    shim.__wrapped__ = described
    return shim


def _shim(function: Any, needs: Needs, server: Any, convert: Callable[[Any], Any] | None) -> Any:
    if needs.dependencies:
        from fastrpc.compat.functions.dependencies import with_dependencies

        return with_dependencies(function, needs, server, convert)

    def outer(value: Any) -> Any:
        if type(value) is Made:
            return value.factory()
        return Context(value, server) if isinstance(value, PlainContext) else value

    def call(values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        values = tuple(map(outer, values))
        named = {name: outer(value) for name, value in named.items()}
        if needs.json_texts:
            values, named = read_json_texts(needs, values, named)
        if needs.names_differ:
            named = {needs.renamed.get(name, name): value for name, value in named.items()}
            given = (*values, *named.values())
            context = next((value for value in given if isinstance(value, Context)), None)
            named.update(dict.fromkeys(needs.contexts, context))
        return function(*values, **named)

    def result(value: Any, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if convert is None:
            return value
        if hasattr(value, "input_requests"):
            _ask(value, (*values, *named.values()))
        return convert(value)

    async def shim_async(*values: Any, **named: Any) -> Any:
        return result(await call(values, named), values, named)

    def shim_sync(*values: Any, **named: Any) -> Any:
        value = call(values, named)
        if convert is not None and hasattr(value, "__await__"):
            return _converted_later(value, convert)
        return result(value, values, named)

    return shim_async if is_async(function) else shim_sync


def _ask(value: Any, given: tuple[Any, ...]) -> None:
    """Raise InputRequired for a result that asks the client for input: of a function with a Context."""
    from fastrpc.compat.sdk2.input_rounds import asked, is_input_required

    context = next((each for each in given if isinstance(each, PlainContext)), None)
    if is_input_required(value) and context is not None and context._channel is not None:
        request: Any = context._reach().request
        raise asked(value, request)


async def _converted_later(value: Awaitable[Any], convert: Callable[[Any], Any]) -> Any:
    return convert(await value)


def _watch(function: Any) -> None:
    """Have the running call stored, if the function, or one that it calls, reads it: they may import what
    reads it in a call only."""
    while hasattr(function, "__wrapped__") or isinstance(function, (partial, MethodType)):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        function = inner or function.__func__
    if not isinstance(function, FunctionType):
        return
    names = function.__code__.co_names
    called = (function.__globals__.get(name) for name in names)
    inner_names = [each.__code__.co_names for each in called if isinstance(each, FunctionType)]
    if any(not READERS.isdisjoint(each) for each in (names, *inner_names)):
        import fastrpc.compat.functions.dependencies  # noqa: F401 - importing it has the calls stored


def _described(
    function: Any, dialect: Any, reads_docstring: bool, bound: int = 0, is_wrapped: bool = False
) -> tuple[Any, Needs]:
    """Return the function with all annotations, and what it needs.

    `bound`: that many of its first parameters have their values already. `is_wrapped`: by a function that is
    called by keyword, as in the originals, since a decorator may look for an argument by its name.
    """
    signature = getattr(function, "__dict__", {}).get("__signature__")
    if hasattr(signature, "parameters"):
        return _signed(function, signature, dialect, reads_docstring)
    if isinstance(function, MethodType):
        inner, needs = _described(function.__func__, dialect, reads_docstring, bound + 1, is_wrapped)
        needs.names = needs.names[1:]
        return MethodType(inner, function.__self__), needs
    if isinstance(function, partial):
        given = bound + len(function.args)
        inner, needs = _described(function.func, dialect, reads_docstring, given, is_wrapped)
        rest = needs.names[len(function.args) :]
        needs.names = tuple(name for name in rest if name not in function.keywords)
        return partial(inner, *function.args, **function.keywords), needs
    if hasattr(function, "__wrapped__"):
        return _described(function.__wrapped__, dialect, reads_docstring, bound, is_wrapped=True)
    if isinstance(function, FunctionType):
        return _annotated(function, dialect, reads_docstring, bound if is_wrapped else None)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted, not whether it is there
    if isinstance(call, FunctionType):
        inner, needs = _described(call, dialect, reads_docstring, bound + 1, is_wrapped)
        needs.names = needs.names[1:]
        return MethodType(inner, function), needs
    return function, Needs()


def _signed(function: Any, signature: Any, dialect: Any, reads_docstring: bool) -> tuple[Any, Needs]:
    """Return a function with the parameters that ``__signature__`` names, to describe the original by; it is
    never called."""
    inner = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    parameters = {
        name: parameter
        for name, parameter in signature.parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    names = tuple(parameters)
    code = _nothing.__code__.replace(co_kwonlyargcount=len(names), co_nlocals=len(names), co_varnames=names)
    stand_in = FunctionType(code, getattr(inner, "__globals__", {}), name_of(function))
    empty = signature.empty
    stand_in.__kwdefaults__ = {
        name: each.default for name, each in parameters.items() if each.default is not empty
    }
    stand_in.__annotations__ = {
        name: each.annotation for name, each in parameters.items() if each.annotation is not empty
    }
    if signature.return_annotation is not empty:
        stand_in.__annotations__["return"] = signature.return_annotation
    stand_in.__doc__ = docstring_of(function)
    stand_in.__module__ = getattr(function, "__module__", stand_in.__module__)
    found, needs = _annotated(stand_in, dialect, reads_docstring)
    needs.is_variable = True
    return found, needs


def _nothing() -> None:
    """Lends its code to `_signed`."""


def _annotated(
    function: FunctionType, dialect: Any, reads_docstring: bool, bound: int | None = None
) -> tuple[Any, Needs]:
    """Return a copy of a function in which each parameter has an annotation that fastrpc understands.
    `bound`: all but that many are given by keyword."""
    namespace = _namespace(function)
    code = named_code(function.__code__, dialect)
    needs = Needs(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    needs.is_variable = code is not function.__code__
    annotations = _annotations(function, needs, namespace)
    if dialect is not None and dialect.reads_json_texts:
        needs.json_texts = [name for name in needs.names if takes_json_text(annotations[name], namespace)]
    needs.is_plain = _returns_plain(annotations.get("return", Any), namespace)
    if not needs.is_plain and "return" in annotations:
        annotations["return"] = _result_type(annotations["return"], namespace, dialect)
    if reads_docstring and function.__doc__:
        needs.description = add_descriptions(function, annotations, needs, namespace)
    for alias, name in needs.renamed.items():
        annotations[alias] = annotations.pop(name)
    values, named = function.__defaults__, function.__kwdefaults__
    if bound is not None:
        code, named = keyword_only_code(code, bound), defaults_of(function)
        positional = code.co_varnames[: code.co_argcount]
        values = tuple(named.pop(name) for name in positional if name in named)
    copy = FunctionType(
        renamed_code(code, needs.renamed),
        function.__globals__,
        function.__name__,
        values and tuple(map(made_later, values)),
        function.__closure__,
    )
    named = renamed_defaults(named, needs.renamed)
    copy.__kwdefaults__ = named and {name: made_later(default) for name, default in named.items()}
    copy.__annotations__ = annotations
    copy.__doc__ = function.__doc__ if needs.description is None else needs.description
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    hidden: dict[str, Any] = dict.fromkeys([*needs.dependencies, *needs.contexts])
    return partial(copy, **hidden) if hidden else copy, needs


def _annotations(function: FunctionType, needs: Needs, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return an annotation for each parameter, and note in `needs` which are not for the client."""
    annotations = dict(function.__annotations__)
    defaults = defaults_of(function)
    for name in needs.names:
        annotation = annotations.setdefault(name, Any)
        needs.has_factories |= made_later(defaults.get(name)) is not defaults.get(name)
        dependency = dependency_of(annotation, defaults.get(name), namespace)
        if dependency is not None:
            needs.dependencies[name] = dependency
        elif not _is_context(annotation, namespace):
            annotations[name] = understood(annotation, namespace)
        elif needs.takes_context:
            needs.contexts.append(name)
        else:
            needs.takes_context = True
            annotations[name] = PlainContext
    needs.renamed = aliases_of(annotations, defaults, needs.names, namespace)
    return annotations


def return_annotation_of(function: Any) -> tuple[Any, dict[str, Any]]:
    """Return the return annotation of what `adapted` returns, and the namespace of its names."""
    while not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        function = inner or getattr(function, "func", None)
        if function is None:
            return Any, {}
    return function.__annotations__.get("return", Any), _namespace(function)


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
        if bracket and name.endswith("Context") and name.replace(".", "").isidentifier():
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
        and all(argument in (*PLAIN_RESULTS, Any) for argument in _arguments(annotation))
        and not any(map(_is_text_in_json, _arguments(annotation)[:1]))
    )


def _result_type(annotation: Any, namespace: dict[str, Any], dialect: Dialect | None) -> Any:
    """Return the type for the output schema: Any for content, which has none."""
    try:
        if isinstance(annotation, str):
            annotation = resolve(annotation, namespace)
    except DefinitionError:
        return annotation  # fastrpc reports what is wrong with it
    for model in getattr(annotation, "__metadata__", ()):
        if isinstance(model, type) and _is_foreign(annotation.__origin__):
            return model  # in Annotated[CallToolResult, Model], Model is the structured content
    if annotation in (bytes, bytearray):
        return str if annotation is bytes and dialect is not None and dialect.wraps_generics else Any
    if (dialect is None or not dialect.structures_lists) and _is_list_of_anything(annotation):
        return Any  # any of the elements may be content
    return Any if _contains_content(annotation) else _with_text_keys(annotation)


def _with_text_keys(annotation: Any) -> Any:
    """Return a type whose dicts have ``str`` for keys in place of the types that `json_form` writes as
    texts."""
    arguments = _arguments(annotation)
    if not arguments or is_literal(annotation) or hasattr(annotation, "__metadata__"):
        return annotation
    found = [*map(_with_text_keys, arguments)]
    origin = getattr(annotation, "__origin__", None)
    if isinstance(origin, type) and issubclass(origin, Mapping) and _is_text_in_json(found[0]):
        found[0] = Annotated[str, _text_key]
    if tuple(found) == arguments:
        return annotation
    return union_of(found) if is_union(annotation) else origin[tuple(found)]  # type: ignore[index]


_text_key = object()
"""Marks such keys: for ``dict[str, …]`` the official SDK writes a result in another form."""


def _is_text_in_json(kind: Any) -> bool:
    kind = getattr(kind, "__origin__", kind)
    if kind in (None, type(None), bool, bytes):
        return True
    return isinstance(kind, type) and (issubclass(kind, tuple) or kind.__module__.startswith("pathlib"))


def _is_list_of_anything(annotation: Any) -> bool:
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    origin, arguments = getattr(annotation, "__origin__", annotation), _arguments(annotation)
    if origin is tuple:
        return arguments in ((), (Any, ...))
    return origin in (list, Sequence) and arguments in ((), (Any,))


def _contains_content(annotation: Any) -> bool:
    if _is_foreign(annotation):
        return True
    if isinstance(annotation, type) and issubclass(annotation, (Content, ToolResult)):
        return True
    return any(_contains_content(argument) for argument in _arguments(annotation))


def _arguments(annotation: Any) -> tuple[Any, ...]:
    """Return the arguments of a generic type; none of ``typing.List`` alone, which has no such attribute."""
    return getattr(annotation, "__args__", ())


def _is_foreign(annotation: Any) -> bool:
    return getattr(annotation, "__module__", "").partition(".")[0] in _FOREIGN
