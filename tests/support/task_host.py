"""A server's process with tasks, and its client: request by request, on the wire of 2026-07-28."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.http_client import Serving
from support.stdio import STATELESS_META, Process
from support.task_client import EXTENSION
from support.waiting import eventually

META = {
    **STATELESS_META,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}},
}


class TaskHost:
    """One server's process, and a client of it, whose requests have `meta`."""

    meta: dict[str, Any] = META

    def __init__(self, server: Process | Serving) -> None:
        self.server = server

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        request = {**params, "_meta": self.meta}
        if isinstance(self.server, Serving):
            answer = self.server.stateless_request(method, request).json
        else:
            answer = self.server.request(method, request)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    def begin(self, tool: str, **arguments: Any) -> str:
        """Call a tool that becomes a task; return the task's id."""
        id: str = self.ask("tools/call", name=tool, arguments=arguments)["taskId"]
        return id

    def get(self, id: str) -> dict[str, Any]:
        return self.ask("tasks/get", taskId=id)

    def until(self, id: str, *states: str) -> dict[str, Any]:
        """Wait until a task is in one of these states; return the task."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            found.append(self.get(id))
            return found[-1]["status"] in states

        eventually(is_there)
        return found[-1]

    def ended(self, id: str) -> dict[str, Any]:
        return self.until(id, "completed", "failed", "cancelled")


def begun_in(folder: Path, name: str) -> list[int]:
    """Return the processes in which a server's work was begun, in order: it has noted their ids in a file."""
    path = folder / name
    return [int(line) for line in path.read_text().split()] if path.exists() else []
