"""Packages of npm in a folder of the repository's cache, for tests that run programs with Node.

All processes of pytest share the folder, and start at the same time: one of them installs while the others
wait, and a file there is never read half written. Linux and macOS.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess

import pytest

from support.skips import not_installed

CACHE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ".cache")
COMMAND = ("npm", "install", "--no-audit", "--no-fund", "--silent")
SECONDS = 300


def folder_with(package: str, name: str) -> str:
    """Return the folder with what a ``package.json`` asks for; `name` begins the folder's. Skips the test
    where Node is missing, or npm cannot install."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip(not_installed("Node"))
    with open(package, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    folder = os.path.join(CACHE, f"{name}-{digest}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        put(package, folder)
        if not os.path.exists(os.path.join(folder, "node_modules", ".package-lock.json")):  # npm's last file
            done = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
            if done.returncode != 0:
                said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
                pytest.skip(f"npm could not install the packages of {package}: {said}")
    return folder


def put(path: str, folder: str) -> None:
    """Copy a file into the folder, in one step: another process may be reading it there."""
    whole = os.path.join(folder, os.path.basename(path))
    part = f"{whole}.{os.getpid()}"
    shutil.copy(path, part)
    os.replace(part, whole)
