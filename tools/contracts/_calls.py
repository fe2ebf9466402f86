"""A call of one of the nine tools: it reads the arguments, has the engine run the verb within its time, and
puts the outcome into an envelope. Imported by the first call.

If the call asks for progress, its phase and time are sent each second while the verb runs. Besides its verb,
a call costs the reading of its arguments: some three microseconds.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import ToolResult
from fastrpc.time_limit import TimeLimit

from . import _engines, _failures, _requests, _resources
from ._verbs import PREFIX, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Context

    from ._engines import Engine
    from ._errors import EngineError

REPORT_SECONDS = 1.0


async def outcome(verb: str, ctx: Context, arguments: dict[str, Any]) -> Any:
    """Return the envelope of a call, as a ToolResult if the verb fails."""
    try:
        parameters = _requests.read(verb, arguments)
        engine = _engines.current()
        with TimeLimit(VERBS[verb].seconds + engine.grace_seconds):
            if ctx.wants_progress:
                data = await _with_reports(engine, verb, ctx, parameters)
            else:
                data = await engine.request(verb, parameters, _unheard)
        if verb == "compile":
            data["artifacts"] = _resources.shortened(data["project_id"], data["artifacts"])
    except Exception as error:
        seconds = VERBS[verb].seconds
        return _failure(verb, _failures.engine_error_of(error, verb, seconds, "the server's log"))
    return {"ok": True, "data": data}


async def _with_reports(
    engine: Engine, verb: str, ctx: Context, parameters: dict[str, Any]
) -> dict[str, Any]:
    phases = [verb.replace("_", " ")]
    reports = asyncio.ensure_future(_report(ctx, phases))
    try:
        return await engine.request(verb, parameters, phases.append)
    finally:
        reports.cancel()


async def _report(ctx: Context, phases: list[str]) -> None:
    seconds = 0
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        seconds += 1
        ctx.progress(seconds, message=f"{phases[-1]}, {seconds} s")


def _unheard(phase: str) -> None:
    """A call that has not asked for progress."""


def _failure(verb: str, error: EngineError) -> ToolResult:
    envelope = {"ok": False, "tool": PREFIX + verb, "error": _failures.shown(error)}
    return ToolResult(json.dumps(envelope, ensure_ascii=False), is_error=True)
