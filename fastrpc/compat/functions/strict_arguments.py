"""``strict_input_validation=True``: the arguments of a tool have to fit its input schema as they are; nothing
is converted. Needs jsonschema-rs."""

from __future__ import annotations

from copy import copy

from fastrpc import running_call
from fastrpc.definitions.tool import Tool
from fastrpc.errors import ArgumentError, DefinitionError
from fastrpc.schema.json_schema import Validator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.schema import Signature


class StrictTool(Tool):
    """A tool of a server with that option."""

    __slots__ = ()

    def describe(self) -> Signature:
        return strict(super().describe())


def strict(signature: Signature) -> Signature:
    """Return a signature that refuses arguments which do not fit its schema. Raises DefinitionError if
    jsonschema-rs is not installed."""
    found, validator, bind = copy(signature), validator_of(signature), signature.binder

    def bind_strictly(arguments: dict[str, Any]) -> list[Any] | str:
        try:
            validator.check(arguments)
        except ArgumentError as error:
            return str(error)
        return bind(arguments)

    found._binder = bind_strictly
    found.binds_whole = True  # the compiled binder would convert the members of models
    return found


def refuse_conversions(tool: Tool) -> None:
    """Have a tool with a given schema, such as an operation of an API, refuse arguments that do not fit the
    schema, and arguments that the schema does not name. Raises DefinitionError."""
    signature: Any = copy(tool.signature)
    signature.input_schema = {**signature.input_schema, "additionalProperties": False}
    signature.validator, signature.converts = validator_of(signature), False
    signature.input_schema = tool.signature.input_schema
    tool._signature = signature


def check_strictly(signature: Signature, arguments: dict[str, Any]) -> None:
    """Check arguments that a running call gives to a tool, if the server of the call has that option. Raises
    ArgumentError."""
    context = running_call.current()
    if getattr(getattr(context, "server", None), "refuses_conversions", False):
        validator_of(signature).check(arguments)


def validator_of(signature: Signature) -> Validator:
    """Return what checks arguments by a signature's schema. Raises DefinitionError."""
    try:
        return Validator(signature.input_schema)
    except DefinitionError as error:
        if "jsonschema-rs" not in str(error):
            raise
        raise DefinitionError(
            "strict_input_validation needs jsonschema-rs: install fastrpc-mcp[schema]"
        ) from None
