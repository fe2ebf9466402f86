"""The tool SetCallback: messages to the agent that come due later, once or repeatedly.

`_callbacks` defines what happens when one is due, and what survives a restart.
"""

from __future__ import annotations

from fastrpc import Context, ToolError, ToolResult, tool

from . import _callbacks
from ._callbacks import FOR_EVER, SLOTS
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from fastrpc import Server

    from ._callbacks import Callback
else:
    from fastrpc.typing_forms import Annotated, Literal

PROCESS_STATE = "callbacks"
LONGEST_SECONDS = 3600
REPEATS = 20
REPEATS_AT_MOST = 1_000_000_000
MESSAGE_CHARACTERS = 2048
PREVIEW_CHARACTERS = 60


@tool(
    name="SetCallback",
    effect="write",
    json_schema_extra={"properties": {"delay_seconds": {"minimum": 1, "maximum": LONGEST_SECONDS}}},
)
async def set_callback(
    action: Annotated[Literal["set", "list", "cancel"], "Action: set, list, cancel"],
    ctx: Context,
    message: Annotated[str | None, "Callback message"] = None,
    delay_seconds: Annotated[int | None, "Seconds to wait (1-3600)"] = None,
    repeat_count: Annotated[int | None, "Times to fire before cancel"] = None,
    callback_id: Annotated[int | None, "Callback slot ID"] = None,
) -> ToolResult:
    """Manage scheduled callback messages with repeats"""
    if ctx.server is None:
        raise ToolError("Callbacks need a server.")
    if callback_id is not None and not 0 <= callback_id < SLOTS:
        raise ToolError(f"callback_id: expected 0 to {SLOTS - 1}, got {_short(callback_id)}.")
    callbacks = _callbacks.of(ctx.server)
    if action == "cancel":
        return _cancelled(await callbacks.cancel(callback_id), callback_id)
    if action == "list":
        await callbacks.ready()
        return _listed(callbacks.active)
    repeats = _repeats(repeat_count)
    callback = await callbacks.add(_message(message), _delay(delay_seconds), repeats, callback_id)
    return _scheduled(callback, repeats)


# --- arguments --------------------------------------------------------------------------------------------


def _message(message: str | None) -> str:
    if not message:
        raise ToolError("message: required for set, the text to come back with.")
    if len(message) > MESSAGE_CHARACTERS:
        raise ToolError(f"message: expected at most {MESSAGE_CHARACTERS:,} characters, got {len(message):,}.")
    return message


def _delay(seconds: int | None) -> int:
    if seconds is None:
        raise ToolError(f"delay_seconds: required for set, 1 to {LONGEST_SECONDS}.")
    if not 1 <= seconds <= LONGEST_SECONDS:
        raise ToolError(f"delay_seconds: expected 1 to {LONGEST_SECONDS}, got {_short(seconds)}.")
    return seconds


def _repeats(count: int | None) -> int:
    """Return how often to fire, or `FOR_EVER`."""
    if count is None:
        return REPEATS
    if not FOR_EVER <= count <= REPEATS_AT_MOST:
        raise ToolError(
            f"repeat_count: expected 0 to {REPEATS_AT_MOST:,}, or {FOR_EVER} for ever, got {_short(count)}."
        )
    return count or 1


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 20 else text[:20] + "…"


# --- answers ----------------------------------------------------------------------------------------------


def _scheduled(callback: Callback, repeats: int) -> ToolResult:
    delay = callback.delay_seconds
    if repeats == 1:
        text = f"Callback scheduled: fires once in {delay}s."
    elif repeats == FOR_EVER:
        text = f"Callback scheduled: fires every {delay}s, repeats infinitely."
    else:
        text = f"Callback scheduled: fires every {delay}s, repeats {repeats} times."
    return result(text, {"callback_id": callback.slot, "delay_seconds": delay, "repeat_count": repeats})


def _listed(active: dict[int, Callback]) -> ToolResult:
    import asyncio

    now = asyncio.get_running_loop().time()
    lines = [f"Active callbacks ({len(active)}/{SLOTS}):"]
    facts = []
    for slot in sorted(active):
        callback = active[slot]
        seconds = max(0, round(callback.due - now))
        left = "infinite" if callback.left == FOR_EVER else f"{callback.left} left"
        lines.append(
            f'  [{slot}] "{_preview(callback.message)}" - fires in {seconds // 60}m{seconds % 60}s ({left})'
        )
        facts.append(
            {
                "callback_id": slot,
                "message": callback.message,
                "delay_seconds": callback.delay_seconds,
                "fires_in_seconds": seconds,
                "left": callback.left,
            }
        )
    return result("\n".join(lines) if active else "No active callbacks.", {"callbacks": facts})


def _preview(message: str) -> str:
    """Return a message on one line, cut, but not within a grapheme."""
    line = " ".join(message.split())
    if len(line) <= PREVIEW_CHARACTERS:
        return line
    end = PREVIEW_CHARACTERS - 1
    while end > PREVIEW_CHARACTERS // 2 and (_joins(line[end]) or line[end - 1] == JOINER):
        end -= 1
    return line[:end].rstrip() + "…"


JOINER = "\u200d"


def _joins(character: str) -> bool:
    from unicodedata import category

    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return character == JOINER or skin_tone or category(character).startswith("M")


def _cancelled(callbacks: list[Callback], asked: int | None) -> ToolResult:
    facts: dict[str, Any] = {"cancelled": [callback.slot for callback in callbacks]}
    if asked is None:
        return result(f"Cancelled {len(callbacks)} callbacks.", facts)
    return result(f'Cancelled callback slot {asked}: "{callbacks[0].message}"', facts)


# --- the server -------------------------------------------------------------------------------------------


def attach(server: Server) -> None:
    """Resume the callbacks of a dead server."""
    _callbacks.attach(server)
