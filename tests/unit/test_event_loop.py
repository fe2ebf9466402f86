"""A process that may open no more descriptors learns so from the event loop, whichever of them is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("uvloop")
PROGRAM = """
import os, resource
from fastrpc.transports.loop import run
from fastrpc.transports.uvloop_loop import Loop

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

async def serving():
    pass

os.closerange(3, 256)
outcomes = []
for limit in range(30, 3, -1):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, HARD))
    try:
        run(serving(), lambda: False)
        outcomes.append("ran")
    except OSError as error:
        outcomes.append(error.strerror)
        break  # below that, libuv itself ends the process
print(outcomes)
"""


def test_a_loop_that_may_open_no_descriptors_says_so_and_leaves_no_coroutine_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcomes = done.stdout.strip()[1:-1].replace("'", "").split(", ")
    assert outcomes[0] == "ran"
    assert outcomes[-1] == "Too many open files"
