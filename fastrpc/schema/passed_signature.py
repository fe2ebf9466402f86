"""The signature of a function that takes all arguments as they come: entries of proxies, handlers."""

from __future__ import annotations

from fastrpc.schema.signature import Parameter, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PassedSignature(Signature):
    """Accepts any arguments and passes them on as one dict, beside the Context; nothing is validated."""

    has_vector_form = False
    context_parameter = "context"
    context_index = -1
    positional_count = 0
    takes_others = True
    keywords = ()
    vectorizable = False

    def __init__(self, parameters: list[Parameter], input_schema: dict[str, Any]) -> None:
        self.parameters = tuple(parameters)
        self.input_schema = input_schema

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        return [arguments]

    def changed(self, values: list[Any], edited: dict[str, Any]) -> list[Any]:
        return [{**values[0], **edited}]

    def named(self, values: list[Any]) -> dict[str, Any]:
        return dict(values[0])

    def call(self, function: Callable[..., Any], values: list[Any], context: object = None) -> Any:
        return function(*values, context=context)
