"""Packages of npm that tests need: installed once into a folder of the cache, by whoever comes first.

Workers of pytest-xdist may come at the same time: one installs, and the others wait for it. Where Node or the
packages are not to be had a test is skipped; on CI it fails.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess

import pytest

from support.skips import in_ci

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 300


def folder_of(source: str, name: str) -> str:
    """Return a folder that has the packages of the ``package.json`` in the folder `source`, and that file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        if in_ci():
            pytest.fail("CI must have Node and npm")
        pytest.skip("Node and npm are not installed")
    package = os.path.join(source, "package.json")
    with open(package, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    folder = os.path.join(REPOSITORY, ".cache", f"{name}-{digest}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "installed")):
            _install(package, folder, name)
    return folder


def _install(package: str, folder: str, name: str) -> None:
    shutil.copy(package, folder)
    command = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0 and not in_ci():
        pytest.skip(f"npm could not install the packages of {name}")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder, "installed"), "w"):
        pass  # only now: the folders of packages are there before their files
