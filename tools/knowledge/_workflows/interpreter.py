"""Executes a run: visits one node after the other and takes the edges that their outcomes select.

A run depends only on its definition, its trigger, and the records of its steps, so after a crash its replay
comes to the same place. `Durable` provides everything else. If it is unknown whether a step was done, the
step is repeated only if its tool declares that this does no harm.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone

from . import definition, templates
from .following import following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, Protocol

    from .definition import Node, Workflow

    Record = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]

    class Durable(Protocol):
        """The persistent records and operations that a run needs."""

        id: str
        """The id of the run."""
        process: str
        """The id of the process; it differs after a crash."""

        def record(self, name: str) -> Record:
            """Return the next record: a function that calls its argument and returns the result. If the
            record exists already, it returns the recorded result without a call."""

        async def sleep(self, seconds: float) -> None:
            """Wait; time that passed before a crash counts."""

        async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
            """Return the output of a tool. Raises StepFailed."""

        async def may_repeat(self, tool: str, arguments: dict[str, Any]) -> bool:
            """Whether repeating a call of a tool does no harm."""

        async def ask(self, shown: dict[str, Any], risk: str, seconds: float) -> str:
            """Ask a person to decide about what is shown; return the argument for `decision`. The same
            question is asked once. Raises StepFailed."""

        async def decision(self, asked: str) -> dict[str, Any]:
            """Wait for the decision and return it: `approved`, `by`, `comment`. Raises StepFailed."""


LONGEST_GATE = 7 * 86_400
"""Seconds that a gate waits by default."""
MOST_STEPS = 2000
"""Steps of a run, so that every run ends."""


class StepFailed(Exception):
    """A step has failed, and the run with it."""


class RunFailed(Exception):
    """A run has failed; the message begins with the node."""


async def run(found: dict[str, Any], trigger: dict[str, Any], durable: Durable) -> Any:
    """Run a workflow; return the output of its last step. Raises RunFailed, and exceptions of the engine."""
    workflow = definition.read(found)
    data = {"node": {}, "vars": workflow.variables, "trigger": trigger, "item": None, "index": None}
    running = _Run(workflow, data, durable)
    try:
        return await running.part("", "")
    except StepFailed as failed:
        raise RunFailed(f"{running.at}: {failed}") from None


class _Run:
    """A run in progress. `at` is its current node, with the turns of the enclosing loops."""

    def __init__(self, workflow: Workflow, data: dict[str, Any], durable: Durable) -> None:
        self.at = ""
        self._workflow = workflow
        self._data = data
        self._durable = durable
        self._steps = 0

    async def part(self, loop: str, prefix: str) -> Any:
        """Execute the nodes outside of loops, or those of one loop's body; return the last one's output."""
        outcomes: dict[str, str] = {}
        output = None
        for id in self._workflow.order[loop]:
            edges = self._workflow.edges_to[id]
            taken = (each.source in outcomes and each.when in ("", outcomes[each.source]) for each in edges)
            if edges and not any(taken):
                continue
            self.at = prefix + id
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise StepFailed(f"a run has at most {MOST_STEPS:,} steps")
            output = await self._step(self._workflow.nodes[id], self.at)
            self._data["node"][id] = {"output": output}
            outcomes[id] = self._outcome(id, output)
        return output

    def _outcome(self, id: str, output: Any) -> str:
        """Return the outcome that selects the edges from a node: for a switch the value of one of the edges,
        or `default`."""
        if isinstance(output, bool):
            return str(output).lower()
        if self._workflow.nodes[id].kind == "approval.gate":
            return str(output["approved"]).lower()
        if self._workflow.nodes[id].kind != "logic.switch":
            return ""
        return str(output) if str(output) in self._workflow.choices_of(id) else "default"

    async def _step(self, node: Node, path: str) -> Any:
        if node.is_action:
            return await self._action(node, path)
        if node.kind == "approval.gate":
            return await self._gate(node, path)
        if node.kind == "logic.loop":
            return await self._loop(node, path)
        if node.kind == "logic.parallel":
            return await self._parallel(node, path)
        if node.kind == "logic.wait":
            return await self._wait(node, path)
        return _output(await self._durable.record(f"{path}:end")(lambda: self._pure(node)))

    async def _pure(self, node: Node) -> Any:
        """Return the record of a node that has no effect."""
        try:
            if node.kind == "logic.if_else":
                condition = node.config["condition"]
                return {"input": condition, "output": templates.holds(condition, self._data)}
            template = node.config["value" if node.kind == "logic.switch" else "template"]
            return {"input": template, "output": templates.rendered(template, self._data)}
        except templates.BadTemplate as error:
            return {"input": node.config, "error": str(error)}

    async def _action(self, node: Node, path: str) -> Any:
        return await self._call(
            node, self._durable.record(f"{path}:begin"), self._durable.record(f"{path}:end")
        )

    async def _parallel(self, node: Node, path: str) -> Any:
        """Call the tools of a body at the same time. All run to their end, even if one fails."""
        import asyncio

        self._steps += len(node.body)
        steps = [
            (id, self._durable.record(f"{path}.{id}:begin"), self._durable.record(f"{path}.{id}:end"))
            for id in self._workflow.order[node.id]
        ]  # creates the records here, in an order that a replay repeats
        calls = [self._call(self._workflow.nodes[id], begin, end) for id, begin, end in steps]
        outputs = {}
        for (id, _, _), output in zip(
            steps, await asyncio.gather(*calls, return_exceptions=True), strict=True
        ):
            if isinstance(output, BaseException):
                self.at = f"{path}.{id}" if isinstance(output, StepFailed) else path
                raise output
            outputs[id] = output
            self._data["node"][id] = {"output": output}
        return outputs

    async def _call(self, node: Node, begin_record: Record, end_record: Record) -> Any:
        tool, durable = node.tool, self._durable

        async def begin() -> Any:
            try:
                arguments = self._rendered(node)
            except templates.BadTemplate as error:
                return {"input": node.config, "error": str(error)}
            return {"input": arguments, "process": durable.process}

        begun = await begin_record(begin)
        _output({"output": None, **begun})

        async def call() -> Any:
            if begun["process"] != durable.process and not await durable.may_repeat(tool, begun["input"]):
                return {
                    "error": f"whether {tool} was done is not known: the server has ended meanwhile. It may "
                    "not be repeated: look, and trigger the workflow again"
                }
            try:
                output = await durable.call(tool, begun["input"])
                _check_size(output)
            except StepFailed as failed:
                return {"error": str(failed)}
            return {"output": output}

        return _output(await end_record(call))

    def _rendered(self, node: Node) -> dict[str, Any]:
        """Return an action's arguments with their values. Raises BadTemplate."""
        literal = {name: node.arguments[name] for name in node.literal}
        found: dict[str, Any] = templates.rendered({**node.arguments, **dict.fromkeys(literal)}, self._data)
        return {**found, **literal}

    async def _gate(self, node: Node, path: str) -> Any:
        """Wait until a person has decided. If the person does not approve, and no edge leads on for that
        outcome, the run has failed."""

        async def begin() -> Any:
            risk, seconds = node.config.get("risk"), node.config.get("seconds")
            try:
                shown = {
                    "title": templates.rendered(node.config["title"], self._data),
                    "workflow": self._workflow.id,
                    "run": self._durable.id,
                    "node": path,
                    "steps": following(self._workflow, node.id, self._data),
                }
                asked = await self._durable.ask(shown, risk or "high", seconds or LONGEST_GATE)
            except (templates.BadTemplate, StepFailed) as error:
                return {"input": node.config, "error": str(error)}
            return {"input": shown, "output": asked, "waits": True}

        asked = _output(await self._durable.record(f"{path}:begin")(begin))

        async def end() -> Any:
            try:
                decision = await self._durable.decision(asked)
            except StepFailed as failed:
                return {"error": str(failed)}
            if not decision["approved"] and "false" not in self._workflow.choices_of(node.id):
                by, comment = decision["by"], decision["comment"]
                who = f"not approved by {by}" if by else "not approved"
                return {"error": f"{who}: {comment}" if comment else who}
            return {"output": decision}

        return _output(await self._durable.record(f"{path}:end")(end))

    async def _loop(self, node: Node, path: str) -> Any:
        outer = self._data["item"], self._data["index"]

        async def begin() -> Any:
            given = node.config.get("items")
            try:
                items = (
                    list(range(node.config["times"]))
                    if given is None
                    else templates.rendered(given, self._data)
                )
            except templates.BadTemplate as error:
                return {"input": given, "error": str(error)}
            if not isinstance(items, list) or len(items) > definition.MOST_TURNS:
                expected = f"items: expected a list of at most {definition.MOST_TURNS:,}"
                return {"input": given, "error": f"{expected}, got {type(items).__name__}"}
            return {"input": items, "output": items}

        outputs = []
        for index, item in enumerate(_output(await self._durable.record(f"{path}:begin")(begin))):
            self._data["item"], self._data["index"] = item, index
            outputs.append(await self.part(node.id, f"{path}[{index}]."))
        self._data["item"], self._data["index"] = outer
        self.at = path

        async def end() -> Any:
            try:
                _check_size(outputs)
            except StepFailed as failed:
                return {"error": str(failed)}
            return {"output": {"items": outputs}}

        return _output(await self._durable.record(f"{path}:end")(end))

    async def _wait(self, node: Node, path: str) -> Any:
        async def begin() -> Any:
            try:
                seconds = self._seconds(node)
            except (templates.BadTemplate, StepFailed) as error:
                return {"input": node.config, "error": str(error)}
            return {"input": node.config, "output": seconds, "waits": True}

        async def end() -> Any:
            return {"output": {"seconds": seconds}}

        seconds = _output(await self._durable.record(f"{path}:begin")(begin))
        await self._durable.sleep(seconds)
        return _output(await self._durable.record(f"{path}:end")(end))

    def _seconds(self, node: Node) -> float:
        """Return how long to wait. Raises BadTemplate and StepFailed."""
        if (until := node.config.get("until")) is None:
            return float(node.config["seconds"])
        text = templates.rendered(until, self._data)
        try:
            time = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except (AttributeError, ValueError):
            raise StepFailed(
                f"until: expected a time such as 2026-05-01T09:00:00Z, got {text!r:.80}"
            ) from None
        if time.tzinfo is None:
            raise StepFailed(f"until: expected a time with its zone, got {text!r:.80}")
        seconds = (time - datetime.now(timezone.utc)).total_seconds()
        if seconds > definition.LONGEST_WAIT:
            raise StepFailed(f"until: expected a time within 30 days, got {text!r:.80}")
        return max(seconds, 0.0)


def _output(record: dict[str, Any]) -> Any:
    """Return the output in a record. Raises StepFailed."""
    if "error" in record:
        raise StepFailed(record["error"])
    return record["output"]


def _check_size(output: Any) -> None:
    if len(json.dumps(output, ensure_ascii=False)) > templates.LARGEST_VALUE:
        raise StepFailed(f"output: expected at most {templates.LARGEST_VALUE:,} characters")
