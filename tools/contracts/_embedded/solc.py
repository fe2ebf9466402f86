"""The Solidity compiler: standard JSON in, standard JSON out.

A native solc runs once for each compilation. npm's solc is WebAssembly: loading it takes 0.6 s, and compiling
a small contract then 0.03 s. It therefore runs in a Node process that stays (`solc_worker.js`), one
compilation at a time, below the reaper, without the server's environment. The process is ended when a
compilation takes too long or is cancelled, and when it has been idle for two minutes; the next request starts
another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex

from fastrpc import processes
from fastrpc.processes.server_process import ServerProcess
from fastrpc.regular_files import replace_file

from .. import _programs
from .._errors import ENGINE_UNAVAILABLE, SOLC_FAILED, EngineError
from .._per_loop import PerLoop
from .compiler_process import (
    HINT,
    MOST_BYTES,
    TIMEOUT_SECONDS,
    clean_environment,
    output_of,
    parsed,
    too_slow,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "solc_worker.js")
IDLE_SECONDS = 120.0
MEMORY_MB = 4096  # of JavaScript; WebAssembly has at most as much in addition
READ_SIZE = 1024 * 1024

FOR_FORGE = """\
#!/bin/sh
# {made_for}
set -- {program} "$@"
[ "$6" = --version ] || exec "$@"
[ -e "$0.version" ] || {{ "$@" >"$0.version.$$" && mv "$0.version.$$" "$0.version"; }} || exit 1
exec cat "$0.version"
"""
"""forge asks for the version at each start, which takes as long as loading the compiler: the answer is stored
until the script is written anew. ``--liftoff-only`` halves the time of a process that compiles once."""


class _Worker(ServerProcess):
    """The Node process, and the pending answer."""

    def __init__(self, soljson: str) -> None:
        node = _programs.find("node")
        command = [node, f"--max-old-space-size={MEMORY_MB}", WORKER, soljson]
        super().__init__(command, cwd="/", env=clean_environment())
        self.path = soljson
        self.idle: asyncio.TimerHandle | None = None
        self._received = bytearray()
        self._to_send = memoryview(b"")
        self._answer: asyncio.Future[bytes] | None = None
        self.reason = ""
        self.loop.add_reader(self.output, self.read_rest)

    async def request(self, body: bytes) -> bytes:
        """Send a request, and return the answer. Raises EngineError if the process ends before."""
        if self.reason:
            raise self._failure()
        self._answer = self.loop.create_future()
        self._to_send = memoryview(b"%d\n" % len(body) + body)
        self.loop.add_writer(self.input, self._write)
        return await self._answer

    def _write(self) -> None:
        try:
            sent = os.write(self.input, self._to_send[:READ_SIZE])
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._to_send)
            self.has_closed("its input")
        self._to_send = self._to_send[sent:]
        if not self._to_send:
            self.loop.remove_writer(self.input)

    def read_rest(self) -> None:
        while self.output >= 0:
            try:
                data = os.read(self.output, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                self.close_output()
                self.has_closed("its output")
                return
            self._received += data
            self._take()

    def _take(self) -> None:
        """Take the answer, once it is complete."""
        head = self._received.find(b"\n", 0, 20)
        if head < 0:
            return
        digits = bytes(self._received[:head])
        size = int(digits) if digits.isdigit() else -1
        if not 0 <= size <= MOST_BYTES:
            self.end(f"it answered {digits!r} bytes")
        elif len(self._received) > head + size:
            answer = bytes(self._received[head + 1 : head + 1 + size])
            self._received.clear()
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(answer)

    def ended(self, reason: str) -> None:
        self.reason = reason
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._failure())

    def _failure(self) -> EngineError:
        return EngineError(SOLC_FAILED, f"solc has ended before its answer, {self.reason}: {HINT}")


class Compiler:
    """The Solidity compiler of one event loop."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        self._turn = asyncio.Lock()
        self._versions: dict[str, str] = {}

    async def compile(self, standard_input: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
        body = json.dumps(standard_input).encode()
        path = _programs.find("solc")
        async with self._turn:
            if path.endswith(".js"):
                answer = await self._by_worker(path, body, timeout_seconds)
            else:
                command = [path, "--standard-json"]
                answer = await output_of(command, body, failure=SOLC_FAILED, timeout_seconds=timeout_seconds)
        return parsed(answer, os.path.basename(path), SOLC_FAILED)

    async def version(self) -> str:
        path = _programs.find("solc")
        if path not in self._versions:
            async with self._turn:
                if path.endswith(".js"):
                    text = (await self._by_worker(path, b"", TIMEOUT_SECONDS)).decode()
                else:
                    written = await output_of([path, "--version"], None, failure=SOLC_FAILED)
                    text = written.decode(errors="replace")
            found = re.search(r"(?<![0-9])[0-9]+\.[0-9]+\.[0-9]+", text)
            self._versions[path] = found[0] if found else text.strip()[:50]
        return self._versions[path]

    async def _by_worker(self, path: str, body: bytes, timeout_seconds: float) -> bytes:
        worker = self._worker
        if worker is None or worker.reason or worker.path != path:
            await self.close()
            try:
                worker = self._worker = _Worker(path)
            except processes.ProgramError as error:
                raise EngineError(ENGINE_UNAVAILABLE, f"Node cannot be started: {error}") from None
        if worker.idle is not None:
            worker.idle.cancel()
        try:
            answer = await asyncio.wait_for(worker.request(body), timeout_seconds)
        except asyncio.TimeoutError:  # before 3.11 it is not the built-in one
            await self.close()
            raise too_slow("solc", timeout_seconds) from None
        except BaseException:
            worker.end("it was ended")
            raise
        worker.idle = worker.loop.call_later(IDLE_SECONDS, worker.end, "it was idle")
        return answer

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            if worker.idle is not None:
                worker.idle.cancel()
            await worker.leave(0.0)


_compilers = PerLoop(Compiler)


async def compile_standard(
    standard_input: dict[str, Any], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """Return solc's standard JSON output for a standard JSON input. Raises EngineError."""
    return await _compilers.current().compile(standard_input, timeout_seconds)


async def version() -> str:
    """The compiler's version, such as 0.8.37. Raises EngineError."""
    return await _compilers.current().version()


async def close() -> None:
    """End the compiler's process of the running loop."""
    compiler = _compilers.taken()
    if compiler is not None:
        await compiler.close()


def solc_for_forge() -> str:
    """Return the path of a program that forge can run as solc: the native one, or a script for Node.

    The script is in the install folder, one for each compiler and Node; written when it is missing.
    """
    path = _programs.find("solc")
    if not path.endswith(".js"):
        return path
    facts = os.stat(path)
    program = (_programs.find("node"), f"--max-old-space-size={MEMORY_MB}", "--liftoff-only", WORKER, path)
    script = FOR_FORGE.format(made_for=f"{facts.st_size} {facts.st_mtime_ns}", program=shlex.join(program))
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]  # another compiler has another script
    folder = _programs.install_folder()
    place = os.path.join(folder, f"solc-for-forge-{digest}")
    if not os.path.exists(place):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        replace_file(place, script.encode(), 0o755)
    return place
