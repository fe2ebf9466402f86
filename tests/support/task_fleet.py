"""A server over HTTP and its workers, any of which can be killed and started anew; requests to it."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.http_client import Serving, ask, environment, stateless_request
from support.task_client import EXTENSION

META = {
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "extensions": {EXTENSION: {}}}
}


class NoAnswer(Exception):
    """The server that was asked has been killed meanwhile: what it did is unknown."""


class Host:
    """A server of `server.py` on a port, and workers of it. A process that was killed is None until its maker
    has started its successor; `makers` has the server's first. `environ` is what they are started with."""

    def __init__(self, folder: Path, environ: dict[str, str], workers: int) -> None:
        self._folder = folder
        self.environ = environ
        self.server: Serving | None = None
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * workers
        self.makers: list[Callable[[], None]] = [self._serve]
        self.makers += [lambda at=at: self._work(at) for at in range(workers)]  # type: ignore[misc]

    def _serve(self) -> None:
        self.server = Serving(
            "serve", "server.py", "--http", "127.0.0.1:0", folder=self._folder, **self.environ
        )

    def _work(self, at: int) -> None:
        with open(self._folder / "workers.log", "ab") as log:
            self.workers[at] = subprocess.Popen(
                [sys.executable, "-m", "fastrpc", "worker", "server.py"],
                cwd=self._folder,
                env=environment(**self.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, at: int) -> bool:
        """Kill one of the processes, 0 for the server. False: it is not there."""
        if at == 0:
            server, self.server = self.server, None
            if server is not None:
                os.kill(server.pid, signal.SIGKILL)
                server.close()
            return server is not None
        worker, self.workers[at - 1] = self.workers[at - 1], None
        if worker is not None:
            worker.kill()
            worker.wait()
        return worker is not None

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request to the server; return the whole answer. Raises NoAnswer."""
        server = self.server
        if server is None:
            raise NoAnswer
        message, more = stateless_request(method, {**params, "_meta": META})
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            answer = ask(connection, "POST", "/mcp", message, server.headers(**more))
            found: dict[str, Any] = answer.json
            return found
        except (OSError, http.client.HTTPException):
            raise NoAnswer from None
        finally:
            connection.close()
