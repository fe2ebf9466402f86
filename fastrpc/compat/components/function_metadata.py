"""What the official SDK knows of a tool's function, for files that use it: a pydantic model of the arguments.

``func_metadata(function)``, ``tool.fn_metadata``, and a tool made of both. A server of ours needs none of it:
its tools are bound and validated by their signatures. Needs pydantic, as the original does.
"""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from fastrpc.compat.components.tools import definition_of
from fastrpc.compat.context import Context
from fastrpc.compat.errors import tool_error
from fastrpc.definitions.handler import is_async, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class ArgModelBase(BaseModel):
    """The arguments of a function; members keep the values that were given."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def model_dump_one_level(self) -> dict[str, Any]:
        """Return the values by the names of the parameters; models among them stay models."""
        fields = type(self).model_fields
        return {field.alias or name: getattr(self, name) for name, field in fields.items()}


class FuncMetadata:
    """The model of a function's arguments, `arg_model`, and the schema of its results."""

    output_model: Any = None
    context_parameter: str | None = None
    """The parameter that receives the Context, if the function has one."""
    on_change: Callable[[FuncMetadata], object] | None = None
    """Called when `arg_model` is replaced."""

    def __init__(
        self,
        arg_model: Any,
        output_schema: dict[str, Any] | None = None,
        wrap_output: bool = False,
    ) -> None:
        self._arg_model = arg_model
        self.output_schema = output_schema
        self.wrap_output = wrap_output

    @property
    def arg_model(self) -> Any:
        return self._arg_model

    @arg_model.setter
    def arg_model(self, model: Any) -> None:
        self._arg_model = model
        if self.on_change is not None:
            self.on_change(self)

    def validate_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that the function is called with. Raises ToolError."""
        try:
            found: dict[str, Any] = self._arg_model.model_validate(arguments).model_dump_one_level()
        except ValidationError as error:
            raise tool_error(str(error)) from error
        return found

    async def call_fn(
        self,
        fn: Callable[..., Any],
        fn_is_async: bool,
        arguments: dict[str, Any],
        arguments_to_pass_directly: dict[str, Any] | None = None,
    ) -> Any:
        """Call a function with validated arguments, on a thread unless it is a coroutine function."""
        call = partial(fn, **arguments, **(arguments_to_pass_directly or {}))
        value = call() if fn_is_async else await asyncio.to_thread(call)
        return await value if hasattr(value, "__await__") else value

    async def call_fn_with_arg_validation(
        self,
        fn: Callable[..., Any],
        fn_is_async: bool,
        arguments_to_validate: dict[str, Any],
        arguments_to_pass_directly: dict[str, Any] | None = None,
    ) -> Any:
        """Validate arguments, and call a function with them. Raises ToolError, and what it raises."""
        given = self.validate_arguments(arguments_to_validate)
        return await self.call_fn(fn, fn_is_async, given, arguments_to_pass_directly)

    def calling(self, fn: Callable[..., Any], *, runs_inline: bool) -> Callable[..., Any]:
        """Return what calls a function with the arguments that the model makes of those that it is given."""
        is_awaited = runs_inline or is_async(fn)

        async def call(arguments: dict[str, Any], **direct: Any) -> Any:
            return await self.call_fn_with_arg_validation(fn, is_awaited, arguments, direct)

        return call

    def convert_result(self, result: Any) -> Any:
        """Return the result: the server encodes it."""
        return result


def func_metadata(
    func: Callable[..., Any], skip_names: Iterable[str] = (), structured_output: bool | None = None
) -> FuncMetadata:
    """Return what the SDK knows of a function, without the parameters of these names and the Context.

    Raises DefinitionError.
    """
    inspected = inspect.signature(func, eval_str=True)
    returned = inspected.return_annotation

    def result() -> None: ...

    result.__annotations__ = {} if returned is inspect.Signature.empty else {"return": returned}
    signature = definition_of(result, {}).signature
    output_schema = None if structured_output is False else signature.output_schema
    found = FuncMetadata(arguments_model(func, skip_names), output_schema, signature.wraps_result)
    parameters = inspected.parameters.values()
    found.context_parameter = next((each.name for each in parameters if _is_context(each.annotation)), None)
    return found


def arguments_model(function: Callable[..., Any], skip_names: Iterable[str] = ()) -> type[ArgModelBase]:
    """Return the pydantic model of a function's parameters, but for those of these names and the Context."""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        name, annotation = parameter.name, parameter.annotation
        if name in skip_names or _is_context(annotation):
            continue
        is_required = parameter.default is parameter.empty
        default: Any = ... if is_required else parameter.default
        kind: Any = Any if annotation is parameter.empty else annotation
        if hasattr(BaseModel, name):  # a method of each model
            fields[f"field_{name}"] = kind, Field(default, alias=name)
        else:
            fields[name] = kind, default
    return create_model(f"{name_of(function)}Arguments", __base__=ArgModelBase, **fields)


def _is_context(annotation: Any) -> bool:
    kind = getattr(annotation, "__origin__", annotation)
    return isinstance(kind, type) and issubclass(kind, Context)
