"""A run's steps: recorded by DBOS, called of the server by whoever has started the run, and shown.

A step that calls has two records: ``NODE:begin`` with its input and the process that began it, and
``NODE:end`` with its output or its error. If the process is another one then, the server has ended between.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import redaction

from . import sampling, web_request
from .interpreter import StepFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, TypeVar

    from dbos import StepInfo

    from fastrpc import Client, Server

    from .interpreter import Record

    Value = TypeVar("Value")

LONGEST_SHOWN = 4000
"""Characters of an input or an output where a run is shown."""
CLIENT_INFO = {"name": "fastrpc.workflow", "version": "1"}
"""By which a tool knows that a step calls it."""
GATE = "approval.gate"
NO_GUARD = "approval.gate needs a guard, which has approvers: start the server with --guard FILE"


REPEATABLE: dict[str, Callable[[dict[str, Any]], bool]] = {
    "action.api_call": lambda arguments: (arguments.get("method") or "GET") in web_request.REPEATABLE,
    "action.execute_code": lambda arguments: True,  # it reaches nothing
    "action.llm_prompt": lambda arguments: True,
    "action.send_message": lambda arguments: (arguments.get("to") or "log") == "log",
}
"""Whether a call of one of the toolset's own tools for steps does no harm the second time."""


def action_tool(server: Server, principal: str, tool: str) -> str:
    """Return the name by which a principal calls one of the toolset's tools for steps; "" if it may not."""
    from fastrpc.self_calls import tools_of

    names = tools_of(server, principal)
    return next((name for name in names if name == tool or name.endswith(tool)), "")


class Steps:
    """The steps of a run (`interpreter.Durable`)."""

    def __init__(
        self, server: Server, loop: asyncio.AbstractEventLoop, id: str, process: str, starter: dict[str, Any]
    ) -> None:
        self.id = id
        self.process = process
        self._server = server
        self._loop = loop
        self._starter = starter

    def record(self, name: str) -> Record:
        """Return the next record's place."""
        from dbos import DBOS

        place = DBOS.reserve_step()

        async def recorded(function: Callable[[], Awaitable[Any]]) -> Any:
            async def step() -> Any:
                return await function()

            return await place.run_async({"name": name, "preemptible": True}, step)

        return recorded

    async def sleep(self, seconds: float) -> None:
        """Wait; what has been waited before a crash counts."""
        from dbos import DBOS

        await DBOS.sleep_async(seconds)

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return the output of a tool: its structured content, else its text as the member `text`. Raises
        StepFailed."""

        async def ask(client: Client) -> Any:
            result = await client.call_tool(self._called(tool), arguments)
            if result.is_error:
                raise StepFailed(result.text[:1000])
            return {"text": result.text} if result.structured is None else result.structured

        return await self._as_starter(ask)

    async def ask(self, shown: dict[str, Any], risk: str, seconds: float) -> str:
        """Have a person decide about what is shown. Raises StepFailed."""

        async def ask(gates: Any) -> str:
            principal = self._starter["principal"]
            return str(await gates.ask(principal, GATE, shown, risk=risk, seconds=seconds))

        return await self._of_gates(ask)

    async def decision(self, asked: str) -> dict[str, Any]:
        """Return what was decided. Raises StepFailed."""

        async def wait(gates: Any) -> dict[str, Any]:
            approved, by, comment = await gates.decision(asked)
            return {"approved": approved, "by": by, "comment": comment}

        return await self._of_gates(wait)

    async def _of_gates(self, ask: Callable[[Any], Coroutine[Any, Any, Value]]) -> Value:
        """Return what is asked of the guard, in the server's loop."""
        from fastrpc import FastrpcError
        from fastrpc.self_calls import gates_of

        async def asked() -> Value:
            gates = gates_of(self._server)
            if gates is None:
                raise StepFailed(NO_GUARD)
            self._check_starter()
            try:
                return await ask(gates)
            except FastrpcError as error:
                raise StepFailed(str(error)[:1000]) from None

        return await self._in_loop(asked())

    def _called(self, tool: str) -> str:
        """Return a tool's name for a client: where the toolset is mounted, one for a type of nodes has
        another. Raises StepFailed if the caller has none."""
        if tool not in REPEATABLE:
            return tool
        name = action_tool(self._server, self._starter["principal"], tool)
        if not name:
            raise StepFailed(f"there is no tool {tool} for the caller who started this run")
        return name

    async def may_repeat(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether calling a tool once more does no harm."""

        if tool in REPEATABLE:
            return REPEATABLE[tool](arguments)

        async def ask(client: Client) -> bool:
            for each in await client.list_tools():
                if each.name == tool:
                    hints = each.annotations or {}
                    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
            return False

        return bool(await self._as_starter(ask))

    async def _as_starter(self, ask: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
        """Return what is asked of the server, in its loop, by whoever has started the run."""
        from fastrpc import ClientError
        from fastrpc.self_calls import client_for

        async def connected() -> Any:
            self._check_starter()
            asker = sampling.asker_of(self.id)
            try:
                async with client_for(
                    self._server,
                    self._starter["principal"],
                    client_info=CLIENT_INFO,
                    on_sample=None if asker is None else asker.ask,
                ) as client:
                    return await ask(client)
            except ClientError as error:
                raise StepFailed(str(error)[:1000]) from None

        return await self._in_loop(connected())

    def _check_starter(self) -> None:
        """Raise StepFailed if whoever has started the run is not who they were."""
        from fastrpc.self_calls import caller_of

        caller = caller_of(self._server, self._starter["principal"])
        was = self._starter["caller_owner"], self._starter["caller_class"]
        if (caller.owner, caller.caller_class) != was:
            raise StepFailed("whoever started this run has no valid token any more, or other rights")

    async def _in_loop(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))


def shown(records: list[StepInfo], run_state: str) -> list[dict[str, Any]]:
    """Return the steps of a run as clients see them, in order."""
    steps: dict[str, dict[str, Any]] = {}
    for record in records:
        node, _, part = record["function_name"].rpartition(":")
        if part not in ("begin", "end") or not isinstance(record["output"], dict):
            continue
        output = record["output"]
        step = steps.setdefault(node, {"node": node, "input": None, "output": None, "error": ""})
        step.setdefault("started_at", (record["started_at_epoch_ms"] or 0) / 1000)
        step["ended_at"] = 0.0
        if "input" in output:
            step["input"] = _cut(redaction.masked_data(output["input"]))
        if part == "end" or "error" in output:
            step["output"], step["error"] = _cut(output.get("output")), output.get("error", "")
            step["ended_at"] = (record["completed_at_epoch_ms"] or 0) / 1000
            step["state"] = "failed" if step["error"] else "completed"
        elif run_state not in ("running", "waiting", "queued"):
            step["state"] = "cancelled"
        else:
            step["state"] = "waiting" if output.get("waits") else "running"
    return list(steps.values())


def _cut(value: Any) -> Any:
    """Return a value, or the beginning of its JSON where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text):,} characters)"
