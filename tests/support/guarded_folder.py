"""Servers behind a guard in a separate folder, which has their state, and fastrpc's commands about it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.command_line import SECONDS
from support.http_server import FASTRPC


def variables(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a server or command of this folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    return {**kept, "FASTRPC_STATE_DIR": str(folder / "state"), **more}


def fastrpc(folder: Path, *arguments: str, code: int = 0, **more: str) -> str:
    """Run a command of fastrpc that ends with this code, and return what it prints; of one that fails, or
    prints nothing but messages, those."""
    done = subprocess.run(
        [*FASTRPC, *arguments],
        cwd=folder,
        env=variables(folder, **more),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 and done.stdout else done.stdout + done.stderr


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the audit log, the oldest first."""
    return [json.loads(line) for line in fastrpc(folder, "audit", "tail", "--json").splitlines()]
