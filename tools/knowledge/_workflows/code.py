"""Runs Python code of a workflow, in a process with limits (`code_worker`). That takes 0.1 s.

The process gets no environment of this one, no descriptors but two pipes, and no writable folder. It ends
with the call, and with the server.
"""

from __future__ import annotations

import json
import os
import sys

from fastrpc import ToolError, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MEMORY = 512 * 1024 * 1024
SECONDS = 10
LONGEST_CODE = 64 * 1024
LARGEST_ANSWER = 2 * 1024 * 1024
HERE = os.path.dirname(os.path.abspath(__file__))
BOOTSTRAP = "import sys; sys.path += sys.argv[3:]; import code_worker; code_worker.main()"


async def run(code: str, given: Any) -> Any:
    """Return the output of the code for an input. Raises ToolError."""
    if len(code) > LONGEST_CODE:
        raise ToolError(f"code: expected at most {LONGEST_CODE:,} characters, got {len(code):,}.")
    done = await processes.run(
        [
            *(sys.executable, "-I", "-S", "-c", BOOTSTRAP, str(MEMORY), str(SECONDS)),
            *(HERE, os.path.dirname(os.path.dirname(HERE))),
        ],
        cwd="/",
        stdin=json.dumps({"code": code, "input": given}).encode(),
        timeout_ms=SECONDS * 1000,
        output=processes.Output(LARGEST_ANSWER),
        env={},
    )
    if done.timed_out or done.signal == "SIGXCPU":
        raise ToolError(f"code: it takes more than {SECONDS} s.")
    try:
        said: dict[str, Any] = json.loads(done.output.head)
    except ValueError:
        ending = done.signal or f"exit code {done.exit_code}"
        raise ToolError(f"code: its process ended with {ending}.") from None
    if "error" in said:
        raise ToolError(f"code: {said['error']}")
    return said["output"]
