"""A state folder and a project of its own for each test, and servers that use it as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.agent import _instances, _state


def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What a fixture is to yield from: the state folder. The working directory is a project."""
    folder = tmp_path / "state"
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder))
    yield folder
    forget()


def forget() -> None:
    """Be as a server that has just started."""
    _state.close()
    _state._checked.clear()
    for _, descriptor in _instances._own.values():
        os.close(descriptor)
    _instances._own.clear()


def write(path: str) -> None:
    with _state.changing() as db:
        db.execute("INSERT INTO projects (path) VALUES (?)", (path,))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def in_a_process(code: str, **popen: Any) -> subprocess.Popen[str]:
    """Run code with the modules imported; it says what it has done on its stdout."""
    head = (
        "import os, sys, time, resource, signal, subprocess\n"
        "from fastrpc.tools.agent import _state, _instances\n"
        "def say(text): print(text, flush=True)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", head + code], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, **popen
    )


def output_of(code: str, **popen: Any) -> str:
    process = in_a_process(code, **popen)
    return process.communicate(timeout=30)[0]
