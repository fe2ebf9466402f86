"""What is harmless by `fastrpc.guard.shell` changes no file: the lines are run, in a separate folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.shell_lines import HARMLESS, MULTILINE

PREPARE = """
mkdir src tests; touch x y a b c e f package.json src/a.py src/b.py tests/test_1.py
git init -q . && git add . && git -c user.name=ada -c user.email=ada@example.org commit -qm first
"""


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files but git's cache of what it has seen of the others."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "index")
    return {str(path): path.read_bytes() for path in paths}


def test_lines_that_are_harmless_change_no_file(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def run(script: str) -> None:
        done = subprocess.run(
            ["bash", "-c", f"{script}\necho the end"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
        assert done.stdout.endswith(b"the end\n"), "bash has read all of it"

    run(PREPARE)
    before = contents(tmp_path)
    assert len(before) > 20
    run("\n".join(f"(\n{line}\n)" for line in [*HARMLESS, *MULTILINE]))
    assert contents(tmp_path) == before
