"""The `Signature` of a function: its parameters as clients see them. `FunctionFacts`: what it is made from.

A `Signature` binds the arguments of a call to the parameters. `FunctionFacts` reads the code object without
``inspect`` (14 ms to import). `fastrpc.schema.describe` decides which annotation becomes which schema.
"""

from __future__ import annotations

import sys

from fastrpc.errors import ArgumentError, DefinitionError, Reworded, suggest
from fastrpc.schema import converters
from fastrpc.schema.annotations import UnresolvedName, peel, plain_converter
from fastrpc.schema.converters import ANY, Converter, Mismatch, expected, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType
    from typing import Any

    from fastrpc.schema.annotations import Peeled
    from fastrpc.schema.converters import Schema

VECTOR_LIMIT = 16  # parameters of a call that the compiled core can make without a dict
_VARIABLE_POSITIONAL, _VARIABLE_KEYWORD, _GENERATOR, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x200


class Parameter:
    """One parameter of a tool, as clients see it.

    `kind` says who can validate a value: ``str``, ``int``, ``float``, ``bool`` are exactly these JSON types,
    ``object`` and ``array`` may contain anything, ``json`` accepts any value unchanged, ``checked`` needs
    `Signature.bind`. `nullable`: an explicit null means `default`; otherwise `bind` handles null too.
    """

    def __init__(
        self,
        name: str,
        converter: Converter,
        schema: Schema,
        *,
        required: bool = True,
        default: Any = None,
        allows_null: bool = False,
        keyword: str | None = None,
    ) -> None:
        self.name = name
        self.keyword = keyword or name
        self.converter = converter
        self.kind = converter.kind
        self.schema = schema
        self.required = required
        self.default = default
        self.allows_null = allows_null
        self.nullable = not required and converter.kind != "json" and (default is None or not allows_null)

    def accept(self, value: Any) -> Any:
        """Return the converted value for the function. Raises `Mismatch`."""
        if value is None and self.kind != "json":
            if self.nullable:
                return self.default
            if not self.allows_null:
                raise expected(self.converter.noun, None)
            return None
        return self.converter.accept(value)


class Signature:
    """What `describe` returns for a function.

    `parameters` are in positional order, keyword-only ones last, without the one that receives the `Context`
    (`context_parameter`, at `context_index` among the positional ones, or -1). `output_schema` is None if
    results are not structured: text, content, None, Any. `wraps_result`: results are sent as ``{"result":
    …}``. `vectorizable`: the function can be called with the bound values in order, the last ones by the
    names in `keywords`.
    """

    binds_whole = False
    """Whether arguments are validated together: none may be bound without the others."""
    has_vector_form = True
    """Whether `positional` may replace a function that is not `vectorizable`."""
    output_schema: Schema | None = None
    wraps_result = False
    result_converter: Converter = ANY
    _binder: Callable[[dict[str, Any]], list[Any] | str] | None = None

    def __init__(self, facts: FunctionFacts, parameters: list[Parameter], input_schema: Schema) -> None:
        self.parameters = tuple(parameters)
        self.context_parameter: str | None = facts.context
        positional = [name for name in facts.positional if name != facts.context]
        self.context_index = (
            facts.positional.index(facts.context) if facts.context in facts.positional else -1
        )
        self.positional_count = len(positional)
        self.keywords = tuple(name for name in facts.keyword_only if name != facts.context)
        self.takes_others = facts.takes_others
        self.vectorizable = (
            len(facts.positional) + len(facts.keyword_only) <= VECTOR_LIMIT
            and facts.context not in facts.keyword_only
            and not facts.takes_others
        )
        self.input_schema = input_schema

    @property
    def binder(self) -> Callable[[dict[str, Any]], list[Any] | str]:
        """What binds arguments: it returns the values of all parameters in order, with defaults, or, as a
        str, what is wrong. Unknown arguments are ignored: the schema does not forbid them."""
        if self._binder is None:
            from fastrpc._core.convert import Binder

            self._binder = Binder(self.parameters, self._missing, converters).bind
        return self._binder

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        """Return what `binder` returns. Raises `ArgumentError` where something is wrong."""
        bound = self.binder(arguments)
        if isinstance(bound, str):
            raise ArgumentError(bound)
        return bound

    def changed(self, values: list[Any], edited: dict[str, Any]) -> list[Any]:
        """Return the values of `bind` with some arguments bound anew. The others stay the objects that they
        are: binding them again could make other ones of them. Raises `ArgumentError`."""
        if self.binds_whole:
            return self.bind({**self.named(values), **edited})
        found = list(values)
        others = dict(edited)
        for at, parameter in enumerate(self.parameters):
            if parameter.name in edited:
                try:
                    found[at] = parameter.accept(others.pop(parameter.name))
                except Mismatch as mismatch:
                    raise ArgumentError(mismatch.of(parameter.name)) from None
        if self.takes_others:
            found[-1] = {**found[-1], **others}
        return found

    def _missing(self, name: str, arguments: dict[str, Any]) -> str:
        """Say that an argument is missing, with a hint at an unknown one that was probably meant: models
        misspell names, or use camelCase."""
        known = {parameter.name for parameter in self.parameters}
        unknown = [key for key in arguments if key not in known and len(key) <= 128]
        close = suggest(name, unknown, 1) if unknown else ()
        hint = f" (the unknown argument {quote(close[0])} looks like it)" if close else ""
        return f"{name}: required, missing{hint}"

    def call(self, function: Callable[..., Any], values: list[Any], context: object = None) -> Any:
        """Call `function` with the values of `bind`, and with its context if it takes one."""
        count = self.positional_count
        positional = values[:count]
        if self.context_index >= 0:
            positional.insert(self.context_index, context)
        if not self.keywords and self.vectorizable:
            return function(*positional)
        keywords = {p.keyword: v for p, v in zip(self.parameters[count:], values[count:], strict=False)}
        if self.context_parameter is not None and self.context_index < 0:
            keywords[self.context_parameter] = context
        if self.takes_others:
            keywords.update(values[-1])
        return function(*positional, **keywords)

    def positional(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `function` as `call` does; it takes positional arguments alone: the
        context, if there is one, followed by the values of `bind`."""
        call = self.call
        if self.context_parameter is None:
            return lambda *values: call(function, list(values))
        return lambda context, *values: call(function, list(values), context)

    def named(self, values: list[Any]) -> dict[str, Any]:
        """Return the values of `bind` as a new dict by parameter name."""
        found = {parameter.name: value for parameter, value in zip(self.parameters, values, strict=False)}
        if self.takes_others:
            found.update(values[-1])
        return found

    def to_json(self, value: Any) -> Any:
        """Return a result as a JSON value: dataclasses, models, enums and so on become plain values."""
        return self.result_converter.to_json(value)


# -------------------------------------------------------------------------- facts about a function


class FunctionFacts:
    """The facts about a function, read without ``inspect``."""

    def __init__(self, function: Any, explicit_nulls: bool = False, aliases_results: bool = True) -> None:
        self.outer = function
        self.explicit_nulls = explicit_nulls
        self.aliases_results = aliases_results
        taken = 0  # parameters that a method's object or a partial supplies
        given: set[str] = set()
        while True:
            if hasattr(function, "__func__"):  # a method: bound or static
                taken += getattr(function, "__self__", None) is not None
                function = function.__func__
            elif hasattr(function, "__wrapped__"):
                function = function.__wrapped__
            elif type(function).__name__ == "partial":
                taken += len(function.args)
                given.update(function.keywords)
                function = function.func
            elif hasattr(function, "__code__"):
                break
            elif hasattr(type(function).__call__, "__code__") and not isinstance(function, type):
                function = function.__call__
            else:
                self.name, self.place = getattr(function, "__name__", type(function).__name__), ""
                raise self.error("is not a Python function; wrap it in a def with annotated parameters")
        self.function = function
        self.code: CodeType = function.__code__
        self.name = getattr(self.outer, "__name__", function.__name__)
        self.place = f"{self.code.co_filename.rpartition('/')[2]}, line {self.code.co_firstlineno}"
        self._read_parameters(self.code, taken, given)

    def _read_parameters(self, code: CodeType, taken: int, given: set[str]) -> None:
        count = code.co_argcount
        names = code.co_varnames
        positional = names[:count]
        defaults = self.function.__defaults__ or ()
        self.defaults = dict(zip(positional[count - len(defaults) :], defaults, strict=True))
        self.defaults.update(self.function.__kwdefaults__ or {})
        keyword_only = names[count : count + code.co_kwonlyargcount]
        behind_given = next((at for at, name in enumerate(positional) if name in given), count)
        self.positional = [name for name in positional[taken:behind_given] if name not in given]
        self.keyword_only = [
            name for name in (*positional[max(taken, behind_given) :], *keyword_only) if name not in given
        ]
        self.takes_others = bool(code.co_flags & _VARIABLE_KEYWORD)
        if code.co_flags & _VARIABLE_POSITIONAL:
            cure = "write the parameters out"
            if "<locals>" in self.function.__qualname__:  # a decorator's, most likely
                cure += ", or let the decorator that made it use functools.wraps"
            raise self.error(f"takes *args, which a client cannot name; {cure}")
        if code.co_flags & (_GENERATOR | _ASYNC_GENERATOR):
            raise self.error("is a generator; return a list, or report progress through a Context")
        with Reworded(NameError, lambda problem: UnresolvedName(self._sentence(problem))):
            self.annotations = self.function.__annotations__  # CPython 3.14 evaluates annotations here
        self.namespace = self._namespace(code)
        self.context = self._find_context()

    def _namespace(self, code: CodeType) -> Mapping[str, Any]:
        closure = self.function.__closure__
        if not closure:
            return self.function.__globals__  # type: ignore[no-any-return]
        namespace = dict(self.function.__globals__)
        for name, cell in zip(code.co_freevars, closure, strict=True):
            try:
                namespace[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return namespace

    def _find_context(self) -> str | None:
        """Return the name of the parameter annotated with `fastrpc.Context`, if there is one."""
        module = sys.modules.get("fastrpc.context")
        if module is None:
            return None
        found = []
        for name in (*self.positional, *self.keyword_only):
            annotation = self.annotations.get(name)
            if isinstance(annotation, str) and "Context" not in annotation:
                continue
            try:
                if annotation is not None and peel(annotation, self.namespace).base is module.Context:
                    found.append(name)
            except DefinitionError:
                continue  # reported when the parameter is read
        if len(found) > 1:
            raise self.error(
                f"has two parameters of the type Context, {found[0]!r} and {found[1]!r}; keep one"
            )
        return found[0] if found else None

    def _sentence(self, problem: str) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.name}{place}: {problem}"

    def error(self, problem: str) -> DefinitionError:
        """Return an error whose message begins with the function's name and place."""
        return DefinitionError(self._sentence(problem))

    def peel(self, what: str, annotation: Any) -> Peeled:
        """Peel an annotation. Errors name the function and `what` is annotated. Raises `DefinitionError`."""
        try:
            return peel(annotation, self.namespace)
        except UnresolvedName as error:
            problem = f"{what}: the annotation {error}; define or import it at the top of the module"
            raise UnresolvedName(self._sentence(problem)) from None
        except DefinitionError as error:
            raise self.error(f"{what}: the annotation {error}") from None

    def converter(self, what: str, peeled: Peeled, *, output: bool = False) -> Converter:
        """Return the converter of a peeled annotation, from msgspec or pydantic if it is not plain. Raises
        `DefinitionError`."""
        converter = None
        try:
            if not peeled.metadata:
                converter = plain_converter(peeled.base, self.namespace)
            if converter is None:
                from fastrpc.schema.rich_types import rich_converter

                converter = rich_converter(
                    peeled,
                    self.namespace,
                    output=output,
                    explicit_nulls=self.explicit_nulls,
                    aliases=self.aliases_results or not output,
                )
        except UnresolvedName as error:
            problem = f"{what}: the annotation {error}; define or import it at the top of the module"
            raise UnresolvedName(self._sentence(problem)) from None
        except DefinitionError as error:
            raise self.error(f"{what}: {error}") from None
        return converter
