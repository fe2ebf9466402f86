"""Answers a server's questions on the terminal (MCP, client features: elicitation): forms and web pages.

A form is asked field by field; each answer is checked against the field's schema before the next question.
Uses the terminal of this process, and only while the process is in its foreground; otherwise the question is
declined. The event loop continues while the person types. Texts of the server are escaped for the terminal.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys

from fastrpc.cli._catalogue import required_of
from fastrpc.errors import DefinitionError
from fastrpc.human_input.screen import plain, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.handlers import Elicited

TERMINAL = "/dev/tty"
LOOK_SECONDS = 0.05  # seconds between two polls of the terminal
LONGEST_LINE = 4096
COLUMNS = 100
DECLINE, CANCEL = "!decline", "!cancel"
HELP = f"({DECLINE}, {CANCEL} or Ctrl-D instead of an answer; Ctrl-C ends the call)"
YES, NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "yes or no"}


class NotInteractive(Exception):
    """No person can be asked. The message states why."""


class FormDeclined(Exception):
    """The person declines or cancels: `action` is ``decline`` or ``cancel``."""

    def __init__(self, action: Any) -> None:
        super().__init__(action)
        self.action: Any = action


class Unfit(Exception):
    """An answer does not fit its field. The message states why."""


class TerminalForm:
    """Answers elicitation requests by asking the person at the terminal; `ask` is a client's `on_elicit`."""

    def __init__(self, feedback: Feedback) -> None:
        self._feedback = feedback
        self._lock: asyncio.Lock | None = None

    async def ask(self, params: dict[str, Any]) -> Elicited:
        """Return the filled-in form, or the action with which the person refused."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:  # one question at a time
            self._feedback.wipe()
            try:
                terminal = Terminal()
            except NotInteractive as obstacle:
                asked = plain(str(params.get("message", "")))
                self._feedback.write(
                    f"fastrpc: the server asks {asked!r}: {obstacle}; the question is declined"
                )
                return "decline"
            try:
                return await _asked(terminal, params)
            except FormDeclined as refused:
                action: Elicited = refused.action
                return action
            finally:
                terminal.close()


class Terminal:
    """This process's terminal in its default mode, with echo and whole lines. Raises NotInteractive."""

    def __init__(self) -> None:
        if not any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
            raise NotInteractive("there is no terminal to ask on")
        try:
            self._descriptor = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            raise NotInteractive("there is no terminal to ask on") from None
        try:
            is_ours = os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            is_ours = False
        if not is_ours:
            os.close(self._descriptor)
            raise NotInteractive("this program is not in the foreground of its terminal")
        self._drop_input()

    def _drop_input(self) -> None:
        """Drop what was typed before the question was shown."""
        import termios

        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode("utf-8", "replace"))

    async def read_line(self, prompt: str) -> str:
        """Return the line that the person types. Raises FormDeclined for `DECLINE`, `CANCEL` and Ctrl-D."""
        self.write(prompt)
        while not select.select([self._descriptor], [], [], 0)[0]:
            await asyncio.sleep(LOOK_SECONDS)
        line = os.read(self._descriptor, LONGEST_LINE).decode("utf-8", "replace")
        if not line:
            self.write("\n")
            raise FormDeclined("cancel")
        line = line.strip()
        if line in (DECLINE, CANCEL):
            raise FormDeclined(line[1:])
        return line

    def close(self) -> None:
        os.close(self._descriptor)


async def _asked(terminal: Terminal, params: dict[str, Any]) -> Elicited:
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
    content = {}
    for name, field in properties.items():
        is_required = name in required_of(schema)
        value = await _ask_field(terminal, name, field if isinstance(field, dict) else {}, is_required)
        if value is not None:
            content[name] = value
    return content


async def _ask_consent(terminal: Terminal, question: str) -> bool:
    while True:
        answer = (await terminal.read_line(question)).lower()
        if answer in YES or answer in NO:
            return answer in YES


async def _ask_field(terminal: Terminal, name: str, field: dict[str, Any], is_required: bool) -> Any:
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
