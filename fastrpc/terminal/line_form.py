"""Asks a person for the fields of a form on a terminal, line by line (MCP, client features: elicitation).

Each answer is checked against the field's schema before the next question. The terminal keeps its mode, with
echo and whole lines. The event loop continues while the person types. Texts of the server are escaped.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
from typing import Any

from fastrpc.errors import DefinitionError
from fastrpc.terminal.device import NoTerminal, Terminal, drop_input
from fastrpc.terminal.text import plain, wrapped

ABSENT = "there is no terminal to ask on"
POLL_SECONDS = 0.05  # seconds between two polls of the terminal
LONGEST_LINE = 4096
COLUMNS = 100
DECLINE, CANCEL = "!decline", "!cancel"
HELP = f"({DECLINE}, {CANCEL} or Ctrl-D instead of an answer; Ctrl-C ends the call)"
YES, NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}


class FormDeclined(Exception):
    """The person declines or cancels: `action` is ``decline`` or ``cancel``."""

    def __init__(self, action: Any) -> None:
        super().__init__(action)
        self.action: Any = action


class Unfit(Exception):
    """An answer does not fit its field. The message states why."""


class LineTerminal(Terminal):
    """A terminal on which a person answers in lines. Raises NoTerminal, also if neither standard input nor
    standard error is a terminal."""

    def __init__(self) -> None:
        if not any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
            raise NoTerminal(ABSENT)
        super().__init__("this program", ABSENT)
        drop_input(self.descriptor)

    def write(self, text: str) -> None:
        os.write(self.descriptor, text.encode("utf-8", "replace"))

    async def read_line(self, prompt: str) -> str:
        """Return the line that the person types. Raises FormDeclined for `DECLINE`, `CANCEL` and Ctrl-D."""
        self.write(prompt)
        while not select.select([self.descriptor], [], [], 0)[0]:
            await asyncio.sleep(POLL_SECONDS)
        line = os.read(self.descriptor, LONGEST_LINE).decode("utf-8", "replace")
        if not line:
            self.write("\n")
            raise FormDeclined("cancel")
        line = line.strip()
        if line in (DECLINE, CANCEL):
            raise FormDeclined(line[1:])
        return line


async def fill_in(terminal: LineTerminal, params: dict[str, Any]) -> dict[str, Any] | bool:
    """Return the answer to an elicitation request with these params. Raises FormDeclined."""
    for line in wrapped(f"The server asks: {params.get('message', '')}", COLUMNS):
        terminal.write(f"{line}\n")
    terminal.write(f"{HELP}\n")
    if params.get("mode") == "url":
        terminal.write(f"Open this page: {plain(str(params.get('url', '')))}\n")
        return await _ask_consent(terminal, "Have you opened it? yes or no: ")
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict) or not properties:
        return await _ask_consent(terminal, "Accept? yes or no: ")
    required = schema.get("required")
    required = required if isinstance(required, list) else ()
    content = {}
    for name, field in properties.items():
        rules = field if isinstance(field, dict) else {}
        value = await _ask_field(terminal, name, rules, name in required)
        if value is not None:
            content[name] = value
    return content


async def _ask_consent(terminal: LineTerminal, question: str) -> bool:
    while True:
        answer = (await terminal.read_line(question)).lower()
        if answer in YES or answer in NO:
            return answer in YES


async def _ask_field(terminal: LineTerminal, name: str, field: dict[str, Any], is_required: bool) -> Any:
    """Ask for one field until the answer fits. Return None if an optional field is left out."""
    offered = choices_of(field)
    description = field.get("description")
    if description:
        for line in wrapped(str(description), COLUMNS - 2):
            terminal.write(f"  {line}\n")
    for number, (_, title) in enumerate(offered, 1):
        terminal.write(f"  {number}. {plain(title)}\n")
    prompt = prompt_of(name, field, offered, is_required)
    while True:
        text = await terminal.read_line(prompt)
        if not text and "default" in field:
            return field["default"]
        if not text and not is_required:
            return None
        try:
            return value_of(name, field, offered, text)
        except Unfit as unfit:
            terminal.write(f"  {plain(str(unfit))}\n")


def prompt_of(name: str, field: dict[str, Any], offered: list[tuple[Any, str]], is_required: bool) -> str:
    """Return the question for a field: its title, what is expected, and its default."""
    kind = KINDS.get(str(field.get("type")), "text")
    if offered:
        kind = f"1 to {len(offered)}" + (", several with commas" if field.get("type") == "array" else "")
    if not is_required and "default" not in field:
        kind += ", optional"
    default = ""
    if "default" in field:
        value = field["default"]
        shown = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
        shown = ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
        default = f" [{plain(shown)}]"
    return f"{plain(str(field.get('title') or name))} ({kind}){default}: "


def choices_of(field: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return the values that a field offers, each with the text to show; an empty list if it takes any."""
    items = field.get("items")
    where = items if field.get("type") == "array" and isinstance(items, dict) else field
    if isinstance(where.get("enum"), list):
        names = where.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(where["enum"]) else where["enum"]
        return [(value, str(title)) for value, title in zip(where["enum"], titles, strict=True)]
    titled = where.get("oneOf") or where.get("anyOf") or ()
    return [
        (choice["const"], str(choice.get("title", choice["const"])))
        for choice in titled
        if isinstance(choice, dict) and "const" in choice
    ]


def value_of(name: str, field: dict[str, Any], offered: list[tuple[Any, str]], text: str) -> Any:
    """Return an answer as the value of its field. Raises Unfit."""
    value: Any = text
    if offered and field.get("type") == "array":
        value = [_choice(offered, part.strip()) for part in text.split(",") if part.strip()]
    elif offered:
        value = _choice(offered, text)
    elif field.get("type") == "boolean":
        if text.lower() not in (*YES, *NO):
            raise Unfit("expected yes or no")
        value = text.lower() in YES
    elif field.get("type") in ("integer", "number"):
        value = _number(text, field["type"])
    _check(name, field, value)
    return value


def _number(text: str, kind: str) -> int | float:
    """Return a number that JSON can represent. Raises Unfit."""
    from math import isfinite

    try:
        number = int(text) if kind == "integer" or text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise Unfit(f"expected a {KINDS[kind]}")
    return number


def _choice(offered: list[tuple[Any, str]], text: str) -> Any:
    """Return the value that a number, a value or a title names. Raises Unfit."""
    if text.isdecimal() and 1 <= int(text) <= len(offered):
        return offered[int(text) - 1][0]
    for value, title in offered:
        if text.lower() in (str(value).lower(), title.lower()):
            return value
    raise Unfit(f"expected a number from 1 to {len(offered)}, or one of the choices")


def _check(name: str, field: dict[str, Any], value: Any) -> None:
    """Check a value as a server of fastrpc does. Schemas that fastrpc does not send are left to the server,
    as is `pattern`: some regular expressions of a server would never end here. Raises Unfit."""
    from fastrpc.client_requests.forms import fields_of
    from fastrpc.schema.converters import Mismatch

    try:
        checked = {key: rule for key, rule in field.items() if key != "pattern"}
        fields_of({"type": "object", "properties": {name: checked}}).read({name: value})
    except Mismatch as mismatch:
        raise Unfit(mismatch.problem) from None
    except DefinitionError:
        pass
