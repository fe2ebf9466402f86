"""What a run does: it comes to one node after the other and takes the edges that their outcomes choose.

A run is only made of its definition, what triggered it, and what its steps have recorded: gone through again
behind a crash it comes to the same place. Whatever else it needs it has from `Durable`. A step of which is
not known whether it was done is repeated only if its tool says that this does no harm.
"""

from __future__ import annotations

import json

from . import definition, templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, Protocol

    from .definition import Node, Workflow

    class Durable(Protocol):
        """What a run needs: records that outlast the process."""

        process: str
        """Another one after a crash."""

        async def record(self, name: str, function: Callable[[], Awaitable[Any]]) -> Any:
            """Return what the function gives, from the record if it has been called before."""

        async def sleep(self, seconds: float) -> None:
            """Wait; what has been waited before a crash counts."""

        async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
            """Return the output of a tool. Raises StepFailed."""

        async def may_repeat(self, tool: str) -> bool:
            """Whether calling a tool once more does no harm."""


MOST_STEPS = 2000
"""Of a run: no run is without an end."""


class StepFailed(Exception):
    """A step has failed, and the run with it."""


async def run(found: dict[str, Any], trigger: dict[str, Any], durable: Durable) -> dict[str, Any]:
    """Run a workflow; return its state, and the node and the error if it has failed. Raises nothing but
    cancellation and what the engine raises."""
    workflow = definition.read(found)
    data = {"node": {}, "vars": workflow.variables, "trigger": trigger, "item": None, "index": None}
    running = _Run(workflow, data, durable)
    try:
        output = await running.part("", "")
    except StepFailed as failed:
        return {"state": "failed", "node": running.at, "error": str(failed)}
    return {"state": "completed", "output": output}


class _Run:
    """A run in progress. `at` is the node that it has come to, with the turns of the loops around it."""

    def __init__(self, workflow: Workflow, data: dict[str, Any], durable: Durable) -> None:
        self.at = ""
        self._workflow = workflow
        self._data = data
        self._durable = durable
        self._steps = 0

    async def part(self, loop: str, prefix: str) -> Any:
        """Go through the nodes outside of loops, or those of one's body; return the last one's output."""
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
            outcomes[id] = str(output).lower() if isinstance(output, bool) else ""
        return output

    async def _step(self, node: Node, path: str) -> Any:
        if node.kind == "action.skill":
            return await self._skill(node, path)
        if node.kind == "logic.loop":
            return await self._loop(node, path)
        if node.kind == "logic.wait":
            return await self._wait(node, path)
        return _output(await self._durable.record(f"{path}:end", lambda: self._pure(node)))

    async def _pure(self, node: Node) -> Any:
        """Return the record of a node that has no effect."""
        try:
            if node.kind == "logic.if_else":
                condition = node.config["condition"]
                return {"input": condition, "output": templates.holds(condition, self._data)}
            template = node.config["template"]
            return {"input": template, "output": templates.rendered(template, self._data)}
        except templates.BadTemplate as error:
            return {"input": node.config, "error": str(error)}

    async def _skill(self, node: Node, path: str) -> Any:
        tool, durable = node.config["tool"], self._durable

        async def begin() -> Any:
            try:
                arguments = templates.rendered(node.config.get("arguments") or {}, self._data)
            except templates.BadTemplate as error:
                return {"input": node.config, "error": str(error)}
            return {"input": arguments, "process": durable.process}

        begun = await durable.record(f"{path}:begin", begin)
        _output({"output": None, **begun})

        async def call() -> Any:
            if begun["process"] != durable.process and not await durable.may_repeat(tool):
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

        return _output(await durable.record(f"{path}:end", call))

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
        for index, item in enumerate(_output(await self._durable.record(f"{path}:begin", begin))):
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

        return _output(await self._durable.record(f"{path}:end", end))

    async def _wait(self, node: Node, path: str) -> Any:
        seconds = node.config["seconds"]

        async def begin() -> Any:
            return {"input": {"seconds": seconds}, "waits": True}

        async def end() -> Any:
            return {"output": {"seconds": seconds}}

        await self._durable.record(f"{path}:begin", begin)
        await self._durable.sleep(seconds)
        return _output(await self._durable.record(f"{path}:end", end))


def _output(record: dict[str, Any]) -> Any:
    """Return the output in a record. Raises StepFailed."""
    if "error" in record:
        raise StepFailed(record["error"])
    return record["output"]


def _check_size(output: Any) -> None:
    if len(json.dumps(output, ensure_ascii=False)) > templates.LARGEST_VALUE:
        raise StepFailed(f"output: expected at most {templates.LARGEST_VALUE:,} characters")
