"""Servers over HTTP for tests: the one way to start a process, and the one way to serve in the test's own.

    with HttpProcess("serve", "tools.py", "--http", "127.0.0.1:0", folder=tmp_path) as server:
        ...                                   # server.port; server.stdout and server.stderr at any time
        assert server.stop() == 0

    with HttpProcess(command=tool_server(TOOLS, hot=False)) as server: ...

    async with in_process(app, token=TOKEN) as server:
        answer = await server.ask("POST", "/mcp", message("ping", id=1))

A process is started as its users start it, by the command line of fastrpc or of another server; or by
`tool_server`, for what no option of that line says: limits, names of modules, the way that requests take. Who
asks a process is a class over it: `http_client.Serving` by Python's own client, `raw_http.Server` and those
over that byte by byte. Nothing waits longer than its `seconds`. No process outlives its block, with all that
it has begun in its session.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from support.waiting import SECONDS, eventually

FASTRPC = (sys.executable, "-m", "fastrpc")
READY = r"serving at (\S+)"  # what fastrpc says when it takes connections


class HttpProcess:
    """A server's process, from the moment at which it takes connections.

    `command` and the arguments behind it are what is run (bare: fastrpc's), `ready` the pattern of what it
    says, on either stream, when it can be reached; its group is the `place`. `environment` is the whole
    environment, this process's unless given; `files` how many the process may open. Raises AssertionError,
    with what it has said, where it ends before that.
    """

    def __init__(
        self,
        *arguments: str,
        command: Sequence[str] = FASTRPC,
        folder: Any = None,
        environment: Mapping[str, str] | None = None,
        ready: str = READY,
        files: int | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=None if files is None else lambda: _may_open(files),
        )
        self.pid = self.process.pid
        self._said: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._said
        ]
        for reader in self._readers:
            reader.start()
        self.place = self._begun(ready)
        match = re.search(r":(\d+)(?:/|$)", self.place)
        self.port = int(match[1]) if match else 0

    def _begun(self, ready: str) -> str:
        """Wait until it says where it is."""
        with contextlib.suppress(AssertionError):
            eventually(lambda: self._is_ready(ready) or self.process.poll() is not None)
        if self.process.poll() is not None:
            self.wait()
        found = self._is_ready(ready)
        if found is None:
            self.close()
            raise AssertionError(f"it did not begin: {self.stdout}{self.stderr}")
        return found[1]

    def _is_ready(self, ready: str) -> re.Match[str] | None:
        return re.search(ready, self.stderr + self.stdout, re.MULTILINE)

    def _read(self, name: str) -> None:
        """Take in what it says: a pipe that no one reads would fill."""
        pipe = getattr(self.process, name)
        for line in pipe:
            self._said[name].append(line.decode())
        pipe.close()

    @property
    def stdout(self) -> str:
        """The lines that it has written to standard output."""
        return "".join(self._said["stdout"])

    @property
    def stderr(self) -> str:
        """The lines that it has written to standard error."""
        return "".join(self._said["stderr"])

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End it and what it has begun, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def kill(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = SECONDS) -> int:
        """Return the exit code, once all that it has said is read."""
        code = self.process.wait(seconds)
        for reader in self._readers:
            reader.join(seconds)
        return code

    def stop(self, number: int = signal.SIGTERM, seconds: float = SECONDS) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.kill(number)
        return self.wait(seconds)

    def memory(self) -> int:
        """Return how much memory the process uses, in bytes (Linux; elsewhere 0)."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except OSError:
            return 0


def _may_open(files: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


# --- tools in a process -----------------------------------------------------------------------------------

BEFORE_TOOLS = r"""
import asyncio, importlib, json, sys
from fastrpc.transports.http.limits import ConnectionLimits
from fastrpc.transports.http.process import run_in_loop, serve_transport
from fastrpc.transports.http.server import HttpServer
from fastrpc.transports.http.sockets import Address, listen

given = json.loads(sys.argv[1])
for name, value in given["patch"].items():
    module, _, attribute = name.rpartition(".")
    setattr(importlib.import_module("fastrpc." + module), attribute, value)
"""
BEHIND_TOOLS = r"""
application = app.asgi(**given["options"])

async def serve_tools():
    sockets = listen(Address("127.0.0.1", 0))[0]
    port = sockets[0].getsockname()[1]
    http = HttpServer(application.here(), sockets, limits=ConnectionLimits(**given["limits"]),
                      hot=given["hot"], front=globals().get("front"),
                      on_ready=lambda: print(f"serving at 127.0.0.1:{port}", flush=True))
    await serve_transport(http, app.runtime, given["drain_seconds"])
    print("ended in order", flush=True)

run_in_loop(serve_tools())
"""


def tool_server(
    tools: str,
    *,
    hot: bool = True,
    drain_seconds: float = 1.0,
    limits: Mapping[str, float] | None = None,
    patch: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> tuple[str, ...]:
    """Return the command of a server whose tools are a Python source that makes `app`, a `fastrpc.Server`.

    `hot` False sends every request on the regular path, through the ASGI application. `limits` are those of
    connections, `patch` sets names in modules of fastrpc (``{"transports.http.streams.SESSION_EVENTS": 1}``),
    `options` are those of `Server.asgi`. The source finds all of this in `given`, with `more` that is its
    own, and may make a `front`, an ASGI application that is before the server's.
    """
    given = {
        "hot": hot,
        "drain_seconds": drain_seconds,
        "limits": limits or {},
        "patch": patch or {},
        "options": options or {},
        **more,
    }
    return (sys.executable, "-c", BEFORE_TOOLS + tools + BEHIND_TOOLS, json.dumps(given))


# --- in the test's own process ----------------------------------------------------------------------------


class InProcess:
    """A server's ASGI application in this loop, asked as a web server asks it: without a socket."""

    def __init__(self, app: Any, **options: Any) -> None:
        self.asgi = app.asgi(**options)
        self.application = self.asgi.here()

    async def ask(self, method: str, path: str, body: Any = b"", **headers: str) -> tuple[int, Any, Any]:
        """Return status, JSON (or None) and headers of an answer; ``_`` in a header's name is ``-``."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"host": "localhost", "content-type": "application/json", "content-length": str(len(sent))}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        given = [(name.encode(), value.encode()) for name, value in named.items()]
        coming = [{"type": "http.request", "body": sent, "more_body": False}]
        came: list[Any] = []

        async def receive() -> Any:
            if coming:
                return coming.pop()
            await asyncio.sleep(SECONDS)
            return {"type": "http.disconnect"}

        async def send(part: Any) -> None:
            came.append(part)

        await self.asgi({"type": "http", "method": method, "path": path, "headers": given}, receive, send)
        text = b"".join(part.get("body", b"") for part in came)
        return came[0]["status"], json.loads(text) if text else None, dict(came[0]["headers"])


@contextlib.asynccontextmanager
async def in_process(app: Any, **options: Any) -> AsyncIterator[InProcess]:
    """Serve a `fastrpc.Server` in this loop; `options` are those of `Server.asgi`. Ends without a grace."""
    server = InProcess(app, **options)
    try:
        yield server
    finally:
        await server.asgi.aclose(0.0)
