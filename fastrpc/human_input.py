"""Asks a person to choose: with the client's form, else on the server's terminal, else not at all.

        outcome = await ask_person(ctx, [Choice("Which database?", ["PostgreSQL", "SQLite"])])
        if outcome.accepted:
            (database,) = outcome.answers

The first available channel is used. If the client supports forms (MCP: elicitation), it receives one; from
2026-07-28 on the tool then runs again from its start once the answer has arrived (`fastrpc.Context.elicit`).
The terminal is used if ``ASK_TERMINAL=1`` is set and the server runs in the foreground of a terminal:
`fastrpc.terminal.dialog`, imported only then. Otherwise the outcome says that no one was asked, and why;
`listed` writes the questions as text, so that an agent can ask them itself. An answer is never invented.
While the person decides, a client that asked for progress receives it. For coroutines on the server's loop.
"""

from __future__ import annotations

import os

from fastrpc.client_requests.elicitation import Form
from fastrpc.errors import Reworded, ToolError
from fastrpc.protocol.versions import RICH_INPUT_REQUESTS
from fastrpc.settings import ASK_TERMINAL, parse_seconds
from fastrpc.terminal.choices import Choice, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from typing import Any

    from fastrpc.context import Context

    Answer = str | list[str]

__all__ = ["Choice", "Outcome", "ask_person", "listed"]

DEFAULT_SECONDS = 300.0
LONGEST_SECONDS = 590.0
"""Seconds, a little less than the client has for any answer: `fastrpc.client_requests.ANSWER_SECONDS`."""

PROGRESS_SECONDS = 5.0
"""Seconds between two progress notifications; some clients give up on a call without progress."""


class Outcome:
    """The result of `ask_person`.

    `how` is ``client``, ``terminal`` or ``none``. `action` is ``accept``, ``decline``, ``cancel``,
    ``timeout`` or ``unasked``. `answers` holds the answers in the order of the questions if the action is
    ``accept``; otherwise it is empty and `sentence` says what happened. An answer is the chosen option, or
    the text that was given instead ("" for neither); where several may be chosen it is a list.
    """

    __slots__ = ("action", "answers", "how", "sentence")

    def __init__(self, how: str, action: str, answers: Sequence[Answer] = (), sentence: str = "") -> None:
        self.how = how
        self.action = action
        self.answers = list(answers)
        self.sentence = sentence or SENTENCES.get(action, "")

    @property
    def accepted(self) -> bool:
        """Whether the person answered."""
        return self.action == "accept"


SENTENCES = {
    "decline": "The user declined to answer.",
    "cancel": "The user dismissed the question without an answer.",
}


async def ask_person(
    ctx: Context, choices: Sequence[Choice], *, message: str | None = None, key: str | None = None
) -> Outcome:
    """Ask a person several questions at once, and return the outcome.

    `message` is shown above the questions; by default it is made from them. `key` is that of
    `Context.elicit`. The person has ``FASTRPC_ASK_SECONDS`` for all questions, 300 by default; 0 means that
    no one is asked. In 2026-07-28 the client waits for the person, and its own timeout applies.
    """
    seconds = limit_seconds()
    if not seconds:
        return _unasked(["FASTRPC_ASK_SECONDS is 0"])
    obstacles = []
    for how, channel in (("client", _by_client), ("terminal", _on_terminal)):
        try:
            action, answers = await _answer_in_time(ctx, channel(ctx, choices, message, key), seconds)
        except _ChannelUnavailable as obstacle:
            obstacles.append(str(obstacle))
        except TimeoutError:
            return Outcome(how, "timeout", sentence=f"The user did not answer within {seconds:g} s.")
        else:
            return Outcome(how, action, answers)
    return _unasked(obstacles)


def limit_seconds() -> float:
    """Return the seconds that a person has to answer; 0 means that no one is asked."""
    try:
        seconds = parse_seconds(os.environ.get("FASTRPC_ASK_SECONDS", ""))
    except ValueError:
        return DEFAULT_SECONDS
    return min(seconds, LONGEST_SECONDS)


class _ChannelUnavailable(Exception):
    """This channel to the person is not available. The message says why."""


def _unasked(obstacles: list[str]) -> Outcome:
    return Outcome("none", "unasked", sentence=f"The user could not be asked ({'; '.join(obstacles)}).")


async def _answer_in_time(
    ctx: Context, answering: Awaitable[tuple[str, Sequence[Answer]]], seconds: float
) -> tuple[str, Sequence[Answer]]:
    """Wait for an answer, and report progress. Raises TimeoutError, which cancels the wait."""
    import asyncio

    reporting = asyncio.ensure_future(_report_progress(ctx, seconds)) if ctx.wants_progress else None
    try:
        return await asyncio.wait_for(answering, seconds)
    except asyncio.TimeoutError:  # a separate class in Python 3.10
        raise TimeoutError from None
    finally:
        if reporting is not None:
            reporting.cancel()


async def _report_progress(ctx: Context, seconds: float) -> None:
    import asyncio

    passed = 0.0
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        passed += PROGRESS_SECONDS
        ctx.progress(passed, total=seconds, message=f"waiting for the user's answer, {passed:g} s")


async def _by_client(
    ctx: Context, choices: Sequence[Choice], message: str | None, key: str | None
) -> tuple[str, Sequence[Answer]]:
    if not ctx.protocol_version:
        raise _ChannelUnavailable("there is no client")
    has_lists = ctx.protocol_version in RICH_INPUT_REQUESTS
    schema = _schema(choices, has_lists)
    message = message or _message(choices)
    obstacle = Form(message, schema).obstacle(ctx.protocol_version, ctx.client_capabilities)
    if obstacle is not None:
        raise _ChannelUnavailable(obstacle)
    with Reworded(ToolError, _ChannelUnavailable):
        answer = await ctx.elicit(message, schema, key=key)
    if not answer.accepted:
        return answer.action, ()
    return answer.action, [
        _answer(answer.value, f"question_{number}", choice, has_lists)
        for number, choice in enumerate(choices, 1)
    ]


def _message(choices: Sequence[Choice]) -> str:
    """Return the text above the form, with the questions: some clients show only field names."""
    if len(choices) == 1:
        return choices[0].text
    return "\n".join(f"{number}. {choice.text}" for number, choice in enumerate(choices, 1))


def _schema(choices: Sequence[Choice], has_lists: bool) -> dict[str, Any]:
    """Return the JSON Schema of a form with a field for each question, and one for each free text. Without
    lists in the protocol version, a question with several answers has a boolean field for each option."""
    fields: dict[str, Any] = {}
    required = []
    for number, choice in enumerate(choices, 1):
        name = f"question_{number}"
        if choice.several and not has_lists:
            for option in range(len(choice.options)):
                title = f"{choice.text} {choice.shown(option)}"
                fields[f"{name}_{option + 1}"] = {"type": "boolean", "title": title, "default": False}
        elif choice.options:
            fields[name] = _field(choice)
        if choice.free:
            title = f"{choice.text} (your own answer)" if choice.options else choice.text
            fields[f"{name}_text"] = {"type": "string", "title": title}
        if not choice.free and not choice.several:
            required.append(name)
    return {"type": "object", "properties": fields, "required": required}


def _field(choice: Choice) -> dict[str, Any]:
    titled = [
        {"const": option, "title": choice.shown(number)} for number, option in enumerate(choice.options)
    ]
    has_hints = any(choice.hints)
    if choice.several:
        items = {"anyOf": titled} if has_hints else {"type": "string", "enum": choice.options}
        return {"type": "array", "title": choice.text, "items": items}
    options = {"oneOf": titled} if has_hints else {"enum": choice.options}
    return {"type": "string", "title": choice.text, **options}


def _answer(form: dict[str, Any], name: str, choice: Choice, has_lists: bool) -> Answer:
    text = (form.get(f"{name}_text") or "").strip()
    if not choice.several:
        option: str = form.get(name) or ""
        return text or option
    if has_lists:
        wanted = form.get(name) or []
        chosen = [option for option in choice.options if option in wanted]
    else:
        chosen = [option for number, option in enumerate(choice.options, 1) if form.get(f"{name}_{number}")]
    return [*chosen, text] if text else chosen


async def _on_terminal(
    ctx: Context, choices: Sequence[Choice], message: str | None, key: str | None
) -> tuple[str, Sequence[Answer]]:
    if not ASK_TERMINAL.read():
        raise _ChannelUnavailable("ASK_TERMINAL is not set")
    if any(choice.free for choice in choices):
        raise _ChannelUnavailable("the terminal's menu takes no text")
    try:
        from fastrpc.terminal.device import NoTerminal
        from fastrpc.terminal.dialog import ask
    except ImportError:
        raise _ChannelUnavailable("this system has no terminals") from None
    with Reworded(NoTerminal, _ChannelUnavailable):
        return await ask(choices, message)
