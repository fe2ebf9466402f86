"""A client in memory that speaks both wires of tasks, request by request, for one principal."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastrpc import Server
from fastrpc.protocol.versions import STATELESS
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

EXTENSION = "io.modelcontextprotocol/tasks"
SESSION = "2025-11-25"


class TaskClient:
    """Sends requests in the running loop. `notified` has what came besides answers."""

    def __init__(
        self,
        app: Server,
        principal: str = "ada",
        version: str = STATELESS,
        declares: bool = True,
        forms: bool = True,
    ) -> None:
        self.version = version
        self.answers = True
        self.notified: list[dict[str, Any]] = []
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._declares = declares
        self._capabilities: dict[str, Any] = {"elicitation": {"form": {}}} if forms else {}
        self._transport = MemoryTransport(self._receive)
        self._transport.connect(Connections(lambda: app.connect().connection), principal)
        if version != STATELESS:
            self.send(
                "initialize",
                {
                    "protocolVersion": version,
                    "capabilities": self._capabilities,
                    "clientInfo": {"name": "test", "version": "1"},
                },
            )
            self._write({"method": "notifications/initialized"})

    def send(self, method: str, params: dict[str, Any] | None = None) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future has the whole answer."""
        id = len(self._answers) + 1
        self._answers[id] = asyncio.get_running_loop().create_future()
        params = dict(params or {})
        if self.version == STATELESS:
            extensions: dict[str, Any] = {EXTENSION: {}} if self._declares else {}
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {
                    **self._capabilities,
                    "extensions": extensions,
                },
                **params.get("_meta", {}),
            }
        self._write({"id": id, "method": method, "params": params})
        return self._answers[id]

    async def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.send(method, params)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    async def error(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.send(method, params)
        assert "error" in answer, answer
        found: dict[str, Any] = answer["error"]
        return found

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; where the client asks for tasks, ask for one."""
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if self.version != STATELESS:
            params["task"] = {}
        return await self.result("tools/call", params)

    async def task(self, name: str, **arguments: Any) -> str:
        """Call a tool that becomes a task; return the task's id."""
        result = await self.call(name, **arguments)
        task = result if self.version == STATELESS else result["task"]
        id: str = task["taskId"]
        return id

    async def get(self, id: str) -> dict[str, Any]:
        return await self.result("tasks/get", {"taskId": id})

    async def until(self, id: str, *states: str) -> dict[str, Any]:
        """Return the task once it is in one of these states."""
        while True:
            found = await self.get(id)
            if found["status"] in states:
                return found
            await asyncio.sleep(0.01)

    async def ended(self, id: str) -> dict[str, Any]:
        return await self.until(id, "completed", "failed", "cancelled")

    async def pushed(self, method: str, state: str) -> dict[str, Any]:
        """Return the params of the first notification of a method that has a task in this state."""
        while True:
            for message in self.notified:
                if message["method"] == method and message["params"].get("status") == state:
                    params: dict[str, Any] = message["params"]
                    return params
            await asyncio.sleep(0.01)

    def cancel_request(self, id: int) -> None:
        self._write({"method": "notifications/cancelled", "params": {"requestId": id}})

    def asked(self, message: dict[str, Any]) -> None:
        """Answer a question of the server's, by its own text."""
        value = message["params"]["message"]
        result = {"action": "accept", "content": {"value": value != "Really?" and value}}
        self._write({"id": message["id"], "result": result} if self.answers else self._refusal(message))

    def _refusal(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"id": message["id"], "error": {"code": -1, "message": "no"}}

    def close(self) -> None:
        self._transport.disconnect()

    def _write(self, message: dict[str, Any]) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _receive(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" in message:
            self.notified.append(message)
            if "id" in message:
                self.asked(message)
        else:
            self._answers[message["id"]].set_result(message)
