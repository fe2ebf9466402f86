"""What the tools say beside the protocol never gets on the wire."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SAID = b"fastrpc: something is amiss\n"


@pytest.mark.parametrize(("closed", "heard"), [(False, SAID), (True, b"")])
def test_a_line_for_stderr_never_goes_to_stdout_even_where_stderr_is_closed(closed, heard):
    program = "from fastrpc.tools.agent._stderr import write_line; write_line('something is amiss')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        preexec_fn=(lambda: os.close(2)) if closed else None,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", heard)
