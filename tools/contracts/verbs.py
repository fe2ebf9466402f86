"""The nine tools: each reads its arguments, has the engine do its verb, and puts the outcome into an
envelope.

Success is ``{"ok": true, "data": …}``, as JSON text and as structuredContent; failure is ``isError`` with
``{"ok": false, "tool": …, "error": {code, message, retry, details}}``. While a verb runs, its phase and time
are sent as progress each second, if the call asks. What a call costs besides its verb is the reading of its
arguments: some ten microseconds.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import Context, ToolResult, tool

from ._verbs import PREFIX, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ._errors import EngineError

REPORT_SECONDS = 1.0
ANYTHING = {"type": "object"}


class Envelope(TypedDict):
    """What a verb that has succeeded returns."""

    ok: bool
    data: dict[str, Any]


def _tool_of(verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The tool of a verb. Its schema is for clients; arguments are judged by `_requests`, in its own
    words."""
    facts = VERBS[verb]

    @tool(
        name=PREFIX + verb,
        title=facts.title,
        description=facts.description,
        effect=facts.effect,
        annotations=facts.annotations,
        input_schema=ANYTHING,
        json_schema_extra=facts.schema(),
    )
    async def call(ctx: Context, **arguments: Any) -> Envelope:
        envelope: Envelope = await _outcome(verb, ctx, arguments)
        return envelope

    call.__name__ = call.__qualname__ = PREFIX + verb
    return call


async def _outcome(verb: str, ctx: Context, arguments: dict[str, Any]) -> Any:
    from . import _failures, _requests

    try:
        data = await _done(verb, ctx, _requests.read(verb, arguments))
    except Exception as error:
        seconds = VERBS[verb].seconds
        return _failure(verb, _failures.engine_error_of(error, verb, seconds, "the server's log"))
    return {"ok": True, "data": data}


async def _done(verb: str, ctx: Context, parameters: dict[str, Any]) -> dict[str, Any]:
    import asyncio

    from fastrpc.time_limit import TimeLimit

    from . import _engines, _resources

    phases = [verb.replace("_", " ")]
    reports = asyncio.ensure_future(_report(ctx, phases)) if ctx.wants_progress else None
    try:
        engine = _engines.current()
        async with TimeLimit(VERBS[verb].seconds + engine.grace_seconds):
            data = await engine.request(verb, parameters, phases.append)
    finally:
        if reports is not None:
            reports.cancel()
    if verb == "compile":
        data["artifacts"] = _resources.shortened(data["project_id"], data["artifacts"])
    return data


async def _report(ctx: Context, phases: list[str]) -> None:
    import asyncio

    seconds = 0
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        seconds += 1
        ctx.progress(seconds, message=f"{phases[-1]}, {seconds} s")


def _failure(verb: str, error: EngineError) -> ToolResult:
    import json

    from ._failures import shown

    envelope = {"ok": False, "tool": PREFIX + verb, "error": shown(error)}
    return ToolResult(json.dumps(envelope, ensure_ascii=False), is_error=True)


compile = _tool_of("compile")
test = _tool_of("test")
simulate = _tool_of("simulate")
deploy = _tool_of("deploy")
call = _tool_of("call")
chain_list = _tool_of("chain_list")
chain_register = _tool_of("chain_register")
artifact_get = _tool_of("artifact_get")
registry_lookup = _tool_of("registry_lookup")
