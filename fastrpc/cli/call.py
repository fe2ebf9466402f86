"""``fastrpc call``: calls one tool in a real session with a server process.

The result's text goes to stdout, the server's log to stderr. Exit code 0; 1 if the result is an error or the
session fails; 2 if the command is wrong. A ``key=value`` is parsed by the tool's schema; the server validates
the arguments.
"""

from __future__ import annotations

import sys

from fastrpc.cli import parser, toolset_examples
from fastrpc.command_line import suggestion
from fastrpc.diagnostics import write_line
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
  fastrpc call word_count text='to be or not' --target my_tools.py
"""


def main(arguments: list[str]) -> int:
    """Call a tool and print its result; return the exit code."""
    shown = toolset_examples("call") if {"--help", "-h"}.intersection(arguments) else ""
    options = parser("call", "TOOL [key=value… | --json JSON] [--target TARGET]", shown + EXAMPLES)
    options.add_argument("tool", metavar="TOOL", nargs="?", help="the tool's name, see 'fastrpc tools'")
    options.add_argument("pairs", metavar="key=value", nargs="*", help="arguments, typed by the schema")
    options.add_argument("--json", help="all arguments as one JSON object; - reads it from stdin")
    options.add_argument("--target", action="append", default=[], help="not the agent's tools but these")
    options.add_argument("--time-limit", type=float, default=600.0, metavar="SECONDS", help="give up (600)")
    chosen = options.parse(arguments)
    if chosen.tool is None:
        raise UsageError("a tool's name is needed (see 'fastrpc tools')")
    given = _whole(chosen.json, chosen.pairs)
    from fastrpc.cli._client import Client, ConversationFailed

    try:
        with Client(chosen.target) as client:
            return _converse(client, chosen.tool, given, chosen.pairs, chosen.time_limit)
    except ConversationFailed as error:
        if error.exit_code == 2:  # a wrong target: the server has written why to stderr
            return 2
        write_line(f"fastrpc: {error}")
        return 1


def _converse(client: Any, tool: str, given: dict[str, Any] | None, pairs: list[str], limit: float) -> int:
    client.initialize()
    descriptors = {descriptor["name"]: descriptor for descriptor in client.list_tools()}
    if tool not in descriptors:
        hint = suggestion(tool, descriptors) or f"; there is {', '.join(descriptors) or 'none'}"
        raise UsageError(f"no tool {tool!r}{hint}")
    if given is None:
        given = typed(pairs, tool, descriptors[tool].get("inputSchema", {}))
    request = client.begin("tools/call", {"name": tool, "arguments": given})
    import time

    try:
        answer = client.wait_for(request, time.perf_counter(), limit)
    except KeyboardInterrupt:
        client.notify("notifications/cancelled", {"requestId": request, "reason": "interrupted"})
        raise
    if answer.error is not None:
        write_line(f"fastrpc: {answer.error.get('message')}")
        return 1
    text = answer.text()
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    return 1 if answer.is_error else 0


def _whole(text: str | None, pairs: list[str]) -> dict[str, Any] | None:
    """Return the arguments given with ``--json``, or None. Raises UsageError."""
    if text is None:
        return None
    if pairs:
        raise UsageError(f"give either --json or key=value, not both ({pairs[0]!r})")
    import json

    try:
        value = json.loads(sys.stdin.read() if text == "-" else text, parse_constant=_refuse)
    except ValueError as error:
        raise UsageError(f"--json: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"--json: expected an object, got {type(value).__name__}")
    return value


def typed(pairs: list[str], tool: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return ``key=value`` words as arguments, each value parsed by its schema. Raises UsageError."""
    properties: dict[str, Any] = schema.get("properties", {})
    is_open = schema.get("additionalProperties", False) is not False
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"expected key=value, got {pair!r}")
        if key in arguments:
            raise UsageError(f"{key!r} is given twice")
        if key not in properties and not is_open:
            hint = suggestion(key, properties) or f"; it has {', '.join(properties) or 'none'}"
            raise UsageError(f"{tool} has no argument {key!r}{hint}")
        arguments[key] = value_of(key, text, kinds_of(properties.get(key, {})))
    return arguments


def kinds_of(schema: Any) -> list[str]:
    """Return the JSON types that a property's schema allows; an empty list allows any."""
    if not isinstance(schema, dict):
        return []
    kinds = schema.get("type", [])
    found = [kinds] if isinstance(kinds, str) else list(kinds)
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found += kinds_of(branch)
    if not found and "enum" in schema and all(isinstance(member, str) for member in schema["enum"]):
        return ["string"]
    return found


def value_of(key: str, text: str, kinds: list[str]) -> Any:
    """Return the value of one argument: JSON of an allowed type, else a string if that is allowed. Raises
    UsageError."""
    import json

    if kinds == ["string"]:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        value = text
    if not kinds or json_type(value) in kinds or (json_type(value) == "integer" and "number" in kinds):
        return value
    if "string" in kinds:
        return text
    raise UsageError(f"{key}: expected {' or '.join(kinds)}, got {text!r}")


def _refuse(name: str) -> None:
    """Refuse NaN and Infinity, which Python accepts but JSON does not have. Raises ValueError."""
    raise ValueError(name)


def json_type(value: Any) -> str:
    """Return the JSON Schema name of a value's type."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    names = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
    return names[type(value)]
