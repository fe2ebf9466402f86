"""The signature of a function that takes all arguments as they come: entries of proxies, handlers."""

from __future__ import annotations

from fastrpc.schema.converters import ANY
from fastrpc.schema.signature import Parameter, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PassedSignature(Signature):
    """Accepts any arguments and passes them on as one dict, beside the Context; nothing is validated."""

    __slots__ = ()

    has_vector_form = False

    def __init__(self, parameters: list[Parameter], input_schema: dict[str, Any]) -> None:
        self.parameters = tuple(parameters)
        self.input_schema = input_schema
        self.output_schema = None
        self.context_parameter = "context"
        self.context_index = -1
        self.positional_count = 0
        self.takes_others = True
        self.keywords = ()
        self.vectorizable = False
        self.wraps_result = False
        self.result_converter = ANY

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        return [arguments]

    def named(self, values: list[Any]) -> dict[str, Any]:
        return dict(values[0])

    def call(self, function: Callable[..., Any], values: list[Any], context: object = None) -> Any:
        return function(*values, context=context)
