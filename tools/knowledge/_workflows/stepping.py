"""The steps of a run: DBOS records them, the server calls them in the name of the run's starter, and a tool
shows them.

A step that calls a tool has two records: ``NODE:begin`` with its input and the process that began it, and
``NODE:end`` with its output or its error. If the process of the second differs, the server has ended in
between.
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
"""Characters of an input or an output in the display of a run."""
CLIENT_INFO = {"name": "fastrpc.workflow", "version": "1"}
"""This tells a tool that a step calls it."""
GATE = "approval.gate"
NO_GUARD = "approval.gate needs a guard, which has approvers: start the server with --guard FILE"


REPEATABLE: dict[str, Callable[[dict[str, Any]], bool]] = {
    "action.api_call": lambda arguments: (arguments.get("method") or "GET") in web_request.REPEATABLE,
    "action.execute_code": lambda arguments: True,  # it has no effect outside
    "action.llm_prompt": lambda arguments: True,
    "action.send_message": lambda arguments: (arguments.get("to") or "log") == "log",
}
"""Whether repeating a call of one of the toolset's own tools for steps does no harm."""


def action_tool(server: Server, principal: str, tool: str) -> str:
    """Return the name under which a principal calls one of the toolset's tools for steps; "" if it may
    not."""
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
        """Return the next record."""
        from dbos import DBOS

        place = DBOS.reserve_step()

        async def recorded(function: Callable[[], Awaitable[Any]]) -> Any:
            async def step() -> Any:
                return await function()

            return await place.run_async({"name": name, "preemptible": True}, step)

        return recorded

    async def sleep(self, seconds: float) -> None:
        """Wait; time that passed before a crash counts."""
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
        """Ask a person to decide about what is shown. Raises StepFailed."""

        async def ask(gates: Any) -> str:
            principal = self._starter["principal"]
            return str(await gates.ask(principal, GATE, shown, risk=risk, seconds=seconds))

        return await self._of_gates(ask)

    async def decision(self, asked: str) -> dict[str, Any]:
        """Return the decision. Raises StepFailed."""

        async def wait(gates: Any) -> dict[str, Any]:
            approved, by, comment = await gates.decision(asked)
            return {"approved": approved, "by": by, "comment": comment}

        return await self._of_gates(wait)

    async def _of_gates(self, ask: Callable[[Any], Coroutine[Any, Any, Value]]) -> Value:
        """Return the result of a request to the guard, in the server's loop."""
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
        """Return a tool's name for a client: where the toolset is mounted, a tool for a type of nodes has
        another name. Raises StepFailed if the caller does not have it."""
        if tool not in REPEATABLE:
            return tool
        name = action_tool(self._server, self._starter["principal"], tool)
        if not name:
            raise StepFailed(f"there is no tool {tool} for the caller who started this run")
        return name

    async def may_repeat(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether repeating a call of a tool does no harm."""

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
        """Return the result of a request to the server, in its loop, in the name of the run's starter."""
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
        """Raise StepFailed if the starter's identity has changed since the run began."""
        from fastrpc.self_calls import caller_of

        caller = caller_of(self._server, self._starter["principal"])
        was = self._starter["caller_owner"], self._starter["caller_class"]
        if (caller.owner, caller.caller_class) != was:
            raise StepFailed("whoever started this run has no valid token any more, or other rights")

    async def _in_loop(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))


def shown(records: list[StepInfo], run_state: str) -> list[dict[str, Any]]:
    """Return the steps of a run in the form for clients, in order."""
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
    """Return a value, or the beginning of its JSON if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}… ({len(text):,} characters)"
