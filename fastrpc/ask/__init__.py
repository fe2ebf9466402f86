"""Has a person choose: by the client's form, else on their own terminal, else not at all.

    outcome = await ask_person(ctx, [Choice("Which database?", ["PostgreSQL", "SQLite"])])
    if outcome.accepted:
        (database,) = outcome.answers

The first way that works is taken. The client is asked where it offers forms (MCP: elicitation), in its
version's manner: from 2026-07-28 on the caller runs again from its start once the answer is there
(`fastrpc.Context.elicit`). The terminal is asked where the person wants that (``ASK_TERMINAL=1``) and the
server runs in its foreground: `fastrpc.ask.terminal`, imported only then. Else the outcome is that
nobody was asked, and why; `listed` writes the questions for an agent to put them itself. No answer is
ever made up. While a person thinks, a client that wants progress hears of it. For coroutines on the
server's loop.
"""

from __future__ import annotations

import os

from fastrpc.ask.choices import Choice, listed
from fastrpc.errors import ToolError
from fastrpc.questions import Form
from fastrpc.settings import ASK_TERMINAL, parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from typing import Any

    from fastrpc.context import Context

__all__ = ["Choice", "Outcome", "ask_person", "listed"]

DEFAULT_SECONDS = 300.0
LONGEST_SECONDS = 590.0
"""A little less than the client has for any question, `fastrpc.asking.ANSWER_SECONDS`."""

PULSE_SECONDS = 5.0
"""Between two reports to a client that wants progress; some give up on a call that is silent."""

CLIENT = "client"
TERMINAL = "terminal"
NONE = "none"


class Outcome:
    """What came of asking.

    `how` is ``client``, ``terminal`` or ``none``. `action` is ``accept``, ``decline``, ``cancel``,
    ``timeout`` or ``unasked``. `answers` holds the chosen options in the questions' order, if accepted, and
    is empty otherwise; `sentence` then says plainly what happened.
    """

    __slots__ = ("action", "answers", "how", "sentence")

    def __init__(self, how: str, action: str, answers: Sequence[str] = (), sentence: str = "") -> None:
        self.how = how
        self.action = action
        self.answers = list(answers)
        self.sentence = sentence or SENTENCES.get(action, "")

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


SENTENCES = {
    "decline": "The user declined to answer.",
    "cancel": "The user dismissed the question without an answer.",
}


async def ask_person(
    ctx: Context, choices: Sequence[Choice], *, message: str | None = None, key: str | None = None
) -> Outcome:
    """Put questions to a person, all at once, and return what came of it.

    `message` stands above them (made of the questions otherwise). `key` is as with `Context.elicit`. The
    person has ``FASTRPC_ASK_SECONDS`` for all of it, 300 unless set; 0 asks nobody. In 2026-07-28 it is
    the client that waits, and its limit that counts.
    """
    seconds = limit_seconds()
    if not seconds:
        return _unasked(["FASTRPC_ASK_SECONDS is 0"])
    obstacles = []
    for how, way in ((CLIENT, _by_client), (TERMINAL, _on_terminal)):
        try:
            action, answers = await _in_time(ctx, way(ctx, choices, message, key), seconds)
        except _NoWay as obstacle:
            obstacles.append(str(obstacle))
        except TimeoutError:
            return Outcome(how, "timeout", sentence=f"Nobody answered within {seconds:g} s.")
        else:
            return Outcome(how, action, answers)
    return _unasked(obstacles)


def limit_seconds() -> float:
    """Return for how long a person may think; 0: nobody is to be asked."""
    try:
        seconds = parse_seconds(os.environ.get("FASTRPC_ASK_SECONDS", ""))
    except ValueError:
        return DEFAULT_SECONDS
    return min(seconds, LONGEST_SECONDS)


class _NoWay(Exception):
    """The person cannot be asked in this way. The message says why."""


def _unasked(obstacles: list[str]) -> Outcome:
    return Outcome(NONE, "unasked", sentence=f"Nobody could be asked ({'; '.join(obstacles)}).")


# ----------------------------------------------------------------------------------------- waiting


async def _in_time(
    ctx: Context, answering: Awaitable[tuple[str, Sequence[str]]], seconds: float
) -> tuple[str, Sequence[str]]:
    """Wait for an answer, telling of it. Raises TimeoutError; what then still waits is cancelled."""
    import asyncio

    pulse = asyncio.ensure_future(_pulse(ctx, seconds)) if ctx.wants_progress else None
    try:
        return await asyncio.wait_for(answering, seconds)
    except asyncio.TimeoutError:  # a class of its own in 3.10
        raise TimeoutError from None
    finally:
        if pulse is not None:
            pulse.cancel()


async def _pulse(ctx: Context, seconds: float) -> None:
    import asyncio

    passed = 0.0
    while True:
        await asyncio.sleep(PULSE_SECONDS)
        passed += PULSE_SECONDS
        ctx.progress(passed, total=seconds, message=f"waiting for the user's answer, {passed:g} s")


# -------------------------------------------------------------------------------------- the client


async def _by_client(
    ctx: Context, choices: Sequence[Choice], message: str | None, key: str | None
) -> tuple[str, Sequence[str]]:
    if not ctx.protocol_version:
        raise _NoWay("there is no client")
    schema = _schema(choices)
    message = message or _message(choices)
    obstacle = Form(message, schema).obstacle(ctx.protocol_version, ctx.client_capabilities)
    if obstacle is not None:
        raise _NoWay(obstacle)
    try:
        answer = await ctx.elicit(message, schema, key=key)
    except ToolError as problem:
        raise _NoWay(str(problem)) from None
    if not answer.accepted:
        return answer.action, ()
    return answer.action, [answer.value[name] for name in schema["properties"]]


def _message(choices: Sequence[Choice]) -> str:
    """Clients show a field's title, or only its name: so the questions stand above the form as well."""
    if len(choices) == 1:
        return choices[0].text
    return "\n".join(f"{number}. {choice.text}" for number, choice in enumerate(choices, 1))


def _schema(choices: Sequence[Choice]) -> dict[str, Any]:
    """Return a form with a field for each question, one of its options to be chosen."""
    fields = {f"question_{number}": _field(choice) for number, choice in enumerate(choices, 1)}
    return {"type": "object", "properties": fields, "required": list(fields)}


def _field(choice: Choice) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": choice.text}
    if any(choice.hints):
        titled = enumerate(choice.options)
        field["oneOf"] = [{"const": option, "title": choice.shown(number)} for number, option in titled]
    else:
        field["enum"] = choice.options
    return field


# ------------------------------------------------------------------------------------ the terminal


async def _on_terminal(
    ctx: Context, choices: Sequence[Choice], message: str | None, key: str | None
) -> tuple[str, Sequence[str]]:
    if not ASK_TERMINAL.read():
        raise _NoWay("ASK_TERMINAL is not set")
    try:
        from fastrpc.ask import terminal
    except ImportError:
        raise _NoWay("this system has no terminals") from None
    try:
        return await terminal.ask(choices, message)
    except terminal.NoTerminal as obstacle:
        raise _NoWay(str(obstacle)) from None
