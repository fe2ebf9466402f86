"""Runs a compiler once, with its input and output bounded in time, memory and size.

It runs below the reaper, without the server's environment, in an empty folder: a native solc reads imports
from its working directory, whatever its input says. Costs the start of the program, and its output in memory.
The caller interprets the output.
"""

from __future__ import annotations

import json
import os

from fastrpc import processes

from .. import _programs
from .._errors import ENGINE_TIMEOUT, ENGINE_UNAVAILABLE, INTERNAL_ERROR, EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT_SECONDS = 170.0  # a little less than a call may take
MOST_BYTES = 64 * 1024 * 1024
"""Of an answer. The server uses some three times as much memory while it parses it."""
HINT = "is a source very large, or nested very deeply?"

# A process may have 4 GiB of data, a file of it half a gigabyte; a crash leaves no file. Its messages on
# standard error are not read: both outputs use one pipe.
SHELL = (
    "/bin/sh",
    "-c",
    '{ ulimit -c 0; ulimit -f 1048576; ulimit -d 4194304; } 2>/dev/null; exec "$0" "$@" 2>/dev/null',
)


def clean_environment() -> dict[str, str]:
    """Return the environment of a compiler: PATH and LANG only, nothing of the server's."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}


async def output_of(
    command: list[str], stdin: bytes | None, *, failure: str, timeout_seconds: float = TIMEOUT_SECONDS
) -> bytes:
    """The output of the program. Raises EngineError: ENGINE_TIMEOUT, ENGINE_UNAVAILABLE if it cannot be
    started, and `failure` if the output is too large."""
    name = os.path.basename(command[0])
    written = bytearray()

    def take(data: bytes) -> None:
        if len(written) <= MOST_BYTES:
            written.extend(data)
            if len(written) > MOST_BYTES:
                process.terminate_soon()

    try:
        process = await processes.start(
            [*SHELL, *command],
            cwd=_empty_folder(),
            env=clean_environment(),
            stdin=stdin,
            timeout_ms=max(1, int(timeout_seconds * 1000)),
            output=processes.Output(0),
            on_output=take,
            confirmed=False,
        )
        try:
            await process.wait()
        finally:
            process.terminate_soon()
    except processes.ProgramError as error:
        raise EngineError(ENGINE_UNAVAILABLE, f"{name} cannot be started: {error}") from None
    if process.timed_out:
        raise too_slow(name, timeout_seconds)
    if len(written) > MOST_BYTES:
        raise EngineError(failure, f"{name} wrote more than {MOST_BYTES} bytes")
    return bytes(written)


def _empty_folder() -> str:
    """An empty folder, which is never removed."""
    folder = os.path.join(_programs.install_folder(), "empty")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        raise EngineError(INTERNAL_ERROR, f"the folder of programs cannot be used: {reason}") from None
    return folder


def parsed(output: bytes, name: str, failure: str) -> dict[str, Any]:
    """The standard JSON in a compiler's output. Raises EngineError(`failure`)."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EngineError(failure, f"{name} has written no JSON: {HINT}")
    return found


def too_slow(name: str, seconds: float) -> EngineError:
    return EngineError(ENGINE_TIMEOUT, f"{name} was not done after {seconds:.3g} s and was ended: {HINT}")
