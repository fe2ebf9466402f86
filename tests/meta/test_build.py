"""What building says where it cannot work."""

from __future__ import annotations

import os
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ON_WINDOWS = """
import runpy, sys
import setuptools.command.build_ext, Cython.Build
sys.platform = "win32"
runpy.run_path("setup.py")
"""


def test_windows_gets_a_clear_message() -> None:
    built = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert built.returncode == 1
    assert "setup.py: fastrpc runs on Linux and macOS; on Windows, use it inside WSL" in built.stderr
    assert "Traceback" not in built.stderr
