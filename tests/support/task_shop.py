"""A server whose calls become tasks, in memory, over stdio and over HTTP, for the tests of clients.

    python -m support.task_shop                          # over stdio
    python -m support.task_shop 127.0.0.1:8000 TOKEN 5   # over HTTP; at its end, calls have 5 s

Tools that wait end when a file appears. `Shop` starts it, with one state folder for all of its processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastrpc import Client, Context, ProtocolError, Server, ToolError, processes
from fastrpc.client_requests import Form
from support.http_server import HttpProcess
from support.ports import free_port

TESTS = Path(__file__).resolve().parent.parent
TOKEN = "tok-12345-of-the-shop"
EXTENSION = "io.modelcontextprotocol/tasks"


def shop() -> Server:
    app = Server("shop", version="1")

    @app.tool(effect="write", task="allowed", after_seconds=0, annotations={"idempotentHint": True})
    async def build(ctx: Context, go: str, what: str = "ship") -> str:
        """Build something, until the file is there."""
        with open(go + ".runs", "a") as file:
            file.write(f"{os.getpid()}\n")
        ctx.progress(1, 2, "half of it")
        while not os.path.exists(go):
            await asyncio.sleep(0.01)
        return f"built {what}"

    @app.tool(effect="exec", task="allowed", after_seconds=0)
    async def child(pid_file: str) -> str:
        """Run a program that does not end, with a child."""
        await processes.run(["sh", "-c", 'sleep 600 & echo $! > "$0.new"; mv "$0.new" "$0"; wait', pid_file])
        return "ended"

    @app.tool(effect="read", task="allowed", after_seconds=0)
    async def ask(ctx: Context) -> str:
        """Ask for three names, two of them at once."""
        await asyncio.sleep(0.001)
        answers = await ctx.ask(first=Form("First?", str), last=Form("Last?", str))
        again = await ctx.elicit("Again?", str, key="again")
        return f"{answers['first'].value} {answers['last'].value} {again.value}"

    @app.tool(effect="read", task="allowed", after_seconds=60)
    async def ask_first(ctx: Context) -> str:
        """Ask before it could become a task."""
        answer = await ctx.elicit("First?", str, key="first")
        return str(answer.value)

    @app.tool(effect="read", task="required")
    def price(fails: bool = False) -> int:
        """Return a number, or fail."""
        if fails:
            raise ToolError("sold out")
        return 7

    @app.tool(effect="read", task="allowed", after_seconds=0)
    async def broken() -> str:
        """Fail with an error of the protocol."""
        await asyncio.sleep(0.001)
        raise ProtocolError("broken", {"why": "asked for"})

    @app.tool(effect="read")
    def plain() -> str:
        """No task."""
        return "plain"

    return app


class Shop:
    """Processes of the server that share one database, in `folder`; `kind` is memory, stdio or http."""

    def __init__(self, folder: Path, kind: str, stack: ExitStack) -> None:
        self.folder = folder
        self.kind = kind
        self.go = str(folder / "go")
        self.app = shop()
        self._stack = stack
        self.port = 0
        self._process: HttpProcess | None = None
        if kind == "http":
            self.port = free_port()
            self.start()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FASTRPC_STATE_DIR": str(self.folder / "state"),
            "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent))),
        }

    @property
    def target(self) -> Any:
        command = [sys.executable, "-m", "support.task_shop"]
        return {"memory": self.app, "stdio": command, "http": f"http://127.0.0.1:{self.port}/mcp"}[self.kind]

    @property
    def options(self) -> dict[str, Any]:
        """The options of a client of this target."""
        by_kind = {
            "memory": {},
            "stdio": {"env": self.environment, "stderr": False},
            "http": {"token": TOKEN},
        }
        return by_kind[self.kind]

    def client(self, version: str | None = None, **options: Any) -> Client:
        return Client(self.target, version=version, **{**self.options, **options})

    def let_go(self) -> None:
        Path(self.go).touch()

    @property
    def runs(self) -> list[int]:
        """The processes in which `build` has begun, in order."""
        path = Path(self.go + ".runs")
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def start(self, drain_seconds: float = 0.2) -> None:
        """Start the server over HTTP, at the same address each time."""
        self._process = self._stack.enter_context(
            HttpProcess(
                f"127.0.0.1:{self.port}",
                TOKEN,
                str(drain_seconds),
                command=(sys.executable, "-m", "support.task_shop"),
                environment={**os.environ, **self.environment},
            )
        )

    def kill(self) -> None:
        """Kill the server over HTTP."""
        assert self._process is not None
        self._process.stop(signal.SIGKILL)

    def terminate(self) -> subprocess.Popen[bytes]:
        """Send SIGTERM to the server over HTTP, and return its process."""
        assert self._process is not None
        self._process.process.send_signal(signal.SIGTERM)
        return self._process.process


if __name__ == "__main__":
    if sys.argv[1:]:
        shop().run(http=sys.argv[1], token=sys.argv[2], drain_seconds=float(sys.argv[3]))
    else:
        shop().run()
