"""FastMCP's ``ctx.sample(tools=…, result_type=…)``: the client's model calls functions until it has answered.

Each of the model's tool calls is executed here, in order, and its result sent back; a value of a type is what
the model gives to the tool `FINAL`. Costs a request for each turn of the model.
"""

from __future__ import annotations

from fastrpc.compat.calls import Sampled
from fastrpc.definitions.tool import Tool
from fastrpc.errors import ArgumentError, ToolError
from fastrpc.json_encoding import to_json
from fastrpc.schema.annotations import peel
from fastrpc.schema.rich_types import rich_converter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fastrpc.client_requests.sampling import Sample
    from fastrpc.context import Context as PlainContext

FINAL = "final_response"
"""The tool that the model calls with its answer."""

MOST_TURNS = 100


class _Final:
    """The tool `FINAL` for a type; one that is no object is its argument ``value``."""

    def __init__(self, result_type: Any) -> None:
        self._converter = rich_converter(peel(result_type, {}), {})
        self._is_object = self._converter.schema.get("type") == "object"

    def descriptor(self) -> dict[str, Any]:
        schema: dict[str, Any] = self._converter.schema
        if not self._is_object:
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        if self._converter.definitions:
            schema = {**schema, "$defs": self._converter.definitions}
        return {"name": FINAL, "description": "Call this with the final answer.", "inputSchema": schema}

    def value_of(self, arguments: dict[str, Any]) -> Any:
        """Return the value. Raises Mismatch."""
        return self._converter.accept(arguments if self._is_object else arguments.get("value"))


async def sampled_with_tools(
    context: PlainContext,
    messages: Any,
    options: dict[str, Any],
    tools: Iterable[Any] | None,
    result_type: Any,
    hides_errors: bool,
) -> Sampled:
    """Return the model's answer; what it called has been executed. Raises ToolError."""
    functions = {tool.name: tool for tool in map(_tool_of, tools or ())}
    final = None if result_type in (None, str) else _Final(result_type)
    descriptors = [tool.descriptor(context.protocol_version) for tool in functions.values()]
    if final is not None:
        descriptors.append(final.descriptor())
        options = {**options, "tool_choice": "required"}
    history = list(messages) if isinstance(messages, (list, tuple)) else [messages]
    for _ in range(MOST_TURNS):
        sample = await context.sample(history, **{**options, "tools": descriptors})
        history.append({"role": "assistant", "content": sample.content})
        if not sample.tool_uses:
            if final is not None:
                raise ToolError(f"the client's model gave no {FINAL}")
            return Sampled(sample, history=history)
        results = []
        for use in sample.tool_uses:
            if final is not None and use["name"] == FINAL:
                try:
                    return _final_answer(sample, final.value_of(use["input"]), history)
                except Exception as error:  # the model gets the error, and may give another
                    results.append(_result(use, f"invalid: {error}", is_error=True))
            else:
                results.append(await _executed(functions, use, hides_errors))
        history.append({"role": "user", "content": results})
    raise ToolError(f"the client's model has called tools {MOST_TURNS} times without an answer")


def _final_answer(sample: Sample, value: Any, history: list[Any]) -> Sampled:
    answer = Sampled(sample, value, history)
    answer.text = value if isinstance(value, str) else to_json(_plain(value)).decode()
    return answer


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value


def _tool_of(tool: Any) -> Tool:
    """Return the tool of a function, or of an object that has one."""
    function = getattr(tool, "fn", tool)
    name = None if function is tool else tool.name
    return Tool(function, name=name, description=getattr(tool, "description", None))


async def _executed(tools: dict[str, Tool], use: dict[str, Any], hides_errors: bool) -> dict[str, Any]:
    tool = tools.get(use["name"])
    if tool is None:
        return _result(use, f"Unknown tool: {use['name']}", is_error=True)
    try:
        value = tool.signature.call(tool.function, tool.signature.bind(use["input"]))
        if hasattr(value, "__await__"):
            value = await value
    except (ToolError, ArgumentError) as error:
        return _result(use, str(error), is_error=True)
    except Exception as error:
        text = f"Error calling tool '{use['name']}'"
        return _result(use, text if hides_errors else f"{text}: {error}", is_error=True)
    return _result(use, value if isinstance(value, str) else to_json(_plain(value)).decode())


def _result(use: dict[str, Any], text: str, *, is_error: bool = False) -> dict[str, Any]:
    result = {
        "type": "tool_result",
        "toolUseId": use["id"],
        "content": [{"type": "text", "text": text}],
    }
    return {**result, "isError": True} if is_error else result
