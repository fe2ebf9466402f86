"""Validates the results of tools against their output schemas, as clients should (MCP 2025-06-18, tools).

jsonschema-rs (extra ``schema``) does it; without it, only the presence of structured content is checked. A
schema is compiled with the first result.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.errors import InvalidAnswer

MOST_EVALUATED = 1_000_000
"""Schemas that are evaluated for one result, which takes some 20 ms."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_result import CallResult


class OutputSchemas(dict[str, "Any"]):
    """The output schemas of a server's tools, by name; a dict, because every call looks its tool up."""

    def __init__(self) -> None:
        super().__init__()
        self._validators: dict[str, Any] = {}

    def learn(self, tool: dict[str, Any]) -> None:
        """Remember the schema in a tool's descriptor, if it has one."""
        name, schema = tool.get("name"), tool.get("outputSchema")
        if not isinstance(name, str) or self.get(name) == schema:
            return
        self._validators.pop(name, None)
        self.pop(name, None)
        if isinstance(schema, dict):
            self[name] = schema

    def check(self, name: str, result: CallResult) -> None:
        """Raise InvalidAnswer if a result does not match its schema. Error results are not validated."""
        if result.is_error or name not in self:
            return
        value = result.structured
        if value is None and "structuredContent" not in result.raw:
            raise InvalidAnswer(
                f"tools/call: {name:.80}: structuredContent: missing, but the tool has an output schema"
            )
        if name not in self._validators:
            self._validators[name] = _validator_of(name, self[name])
        validator = self._validators[name]
        if validator is None or validator.is_valid(value):
            return
        error = next(validator.iter_errors(value))
        place = "".join(f"[{step!r}]" for step in error.instance_path)
        raise InvalidAnswer(f"tools/call: {name:.80}: structuredContent{place}: {error.message:.200}")


def _validator_of(name: str, schema: dict[str, Any]) -> Any:
    """Return a compiled schema; None without the library, and for one that is invalid or takes too long."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    from fastrpc.client.schema_costs import evaluations

    count = evaluations(schema, MOST_EVALUATED)
    if count is None or count > MOST_EVALUATED:
        why = "has references that are not followed" if count is None else "refers too often to its own parts"
        diagnostics.write("warning", f"results of the tool {name:.80} are not validated: its schema {why}")
        return None
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=False)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        shown = f"the output schema of the tool {name:.80} is invalid: {error!s:.200}"
        diagnostics.write("warning", shown)
        return None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri:.200} is not fetched")
