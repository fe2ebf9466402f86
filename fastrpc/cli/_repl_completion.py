"""Completion with Tab in ``fastrpc repl``: commands, names, arguments, enum values, the server's completions.

The server completes the arguments of prompts and the variables of resource templates (MCP:
completion/complete); the values of a tool's arguments are read from its schema. Errors of the server are
ignored: nothing is completed then.
"""

from __future__ import annotations

import re

from fastrpc.cli._catalogue import arguments_of, schema_of
from fastrpc.errors import ClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.cli._catalogue import Catalogue
    from fastrpc.client.sync import SyncClient

VARIABLE = re.compile(r"\{([A-Za-z0-9_]+)\}")
COMMANDS = ("tools", "resources", "prompts", "list", "call", "read", "prompt", "help", "quit")


class ReplCompleter:
    """Completes the names of a server, which it asks over one session. readline calls `complete`."""

    def __init__(self, client: SyncClient, catalogue: Callable[[], Catalogue]) -> None:
        self._client = client
        self._catalogue = catalogue
        self._found: list[str] = []

    def complete(self, word: str, state: int) -> str | None:
        """Return completion number `state` of the word at the cursor, or None."""
        if state == 0:
            import readline

            before = readline.get_line_buffer()[: readline.get_begidx()]
            self._found = self.candidates(before, word)
        return self._found[state] if state < len(self._found) else None

    def candidates(self, before: str, word: str) -> list[str]:
        """Return the completions of a word after the text `before` in a line."""
        try:
            return [found for found in self._all(before.split(), word) if found.startswith(word)]
        except ClientError:
            return []

    def _all(self, words: list[str], word: str) -> list[str]:
        if not words:
            return [
                f"{command} " if command in ("call", "read", "prompt") else command for command in COMMANDS
            ]
        catalogue = self._catalogue()
        if words[0] == "call":
            return self._of_tool(catalogue["tools"], words[1:], word)
        if words[0] == "prompt":
            return self._of_prompt(catalogue["prompts"], words[1:], word)
        if words[0] == "read" and len(words) == 1:
            uris = [str(entry.get("uri")) for entry in catalogue["resources"]]
            templates = [str(entry.get("uriTemplate")) for entry in catalogue["resourceTemplates"]]
            return uris + [uri for template in templates for uri in self._of_template(template, word)]
        return []

    def _of_tool(self, tools: list[dict[str, Any]], words: list[str], word: str) -> list[str]:
        if not words:
            return [f"{tool.get('name')} " for tool in tools]
        properties = schema_of(_named(tools, words[0])).get("properties")
        if not isinstance(properties, dict):
            return []
        name, equals, _ = word.partition("=")
        if not equals:
            return _unused(properties, words[1:])
        field = properties.get(name)
        return [f"{name}={value} " for value in _values(field if isinstance(field, dict) else {})]

    def _of_prompt(self, prompts: list[dict[str, Any]], words: list[str], word: str) -> list[str]:
        if not words:
            return [f"{prompt.get('name')} " for prompt in prompts]
        arguments = [name for name, *_ in arguments_of(_named(prompts, words[0]))]
        name, equals, value = word.partition("=")
        if not equals:
            return _unused(arguments, words[1:])
        known = dict(pair.split("=", 1) for pair in words[1:] if "=" in pair)
        return [f"{name}={found} " for found in self._ask(words[0], name, value, known)]

    def _of_template(self, template: str, word: str) -> list[str]:
        """Return URIs of a template with the variable at the end of `word` completed, or the part of the
        template before its first variable."""
        pattern, begin = "", 0
        for variable in VARIABLE.finditer(template):
            pattern += re.escape(template[begin : variable.start()])
            begin = variable.end()
            reached = re.fullmatch(f"({pattern})([^/]*)", word)
            if reached is not None:
                rest = template[begin:].partition("{")[0]
                values = self._ask(template, variable[1], reached[2], {})
                return [f"{reached[1]}{value}{rest}" for value in values]
            pattern += "[^/]*"
        return [template.partition("{")[0]]

    def _ask(self, ref: str, argument: str, value: str, known: dict[str, str]) -> list[str]:
        """Return the server's completions of an argument. Raises ClientError."""
        if "completions" not in self._client.server_capabilities:
            return []
        return self._client.complete(ref, argument, value, known or None).values


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((entry for entry in entries if entry.get("name") == name), {})


def _unused(names: Any, words: list[str]) -> list[str]:
    """Return the arguments that are not in the line yet, each followed by ``=``."""
    used = {word.partition("=")[0] for word in words}
    return [f"{name}=" for name in names if name not in used]


def _values(field: dict[str, Any]) -> list[str]:
    """Return the values that a property's schema allows."""
    if field.get("type") == "boolean":
        return ["true", "false"]
    offered = field.get("enum")
    return [str(value) for value in offered] if isinstance(offered, list) else []
