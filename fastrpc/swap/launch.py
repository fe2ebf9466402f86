"""How a server is started so that its imports of fastmcp and mcp are served by fastrpc: without any edit.

``environment(command)`` returns the variables for the process: `fastrpc.swap.site_folder` on
PYTHONPATH, and ``FASTRPC_SWAP`` for the ``sitecustomize`` in it. They reach every interpreter that the
command starts, through uv, shells and console scripts, and do nothing in one that imports neither package.
Starts nothing itself.
"""

from __future__ import annotations

import os
import sys

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLE = "FASTRPC_SWAP"
ROOT = "FASTRPC_SWAP_ROOT"
"""The id of the process that the command runs in: it says at its end if nothing of it was swapped."""
OBJECTS = "FASTRPC_SWAP_OBJECTS"
"""Whose objects a server has: `OURS`, or `ORIGINAL` (`fastrpc.swap.originals`)."""
OURS, ORIGINAL = "ours", "original"
PACKAGES = ("fastrpc", "orjson", "msgspec", "uvloop", "jsonschema_rs", "openapi_pydantic", "httptools")
"""What ``sitecustomize`` knows too: it is loaded where fastrpc may not be importable."""

LONGEST_SHEBANG = 1024
TAKES_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python that have a separate value, before the name of the script."""


def environment(
    command: Sequence[str], variables: Mapping[str, str] | None = None, *, objects: str = OURS
) -> dict[str, str]:
    """Return the variables for a command; `variables`, by default those of this process, are kept. `objects`:
    `OURS` or `ORIGINAL`. Raises UsageError for an interpreter that would ignore them."""
    from importlib.machinery import EXTENSION_SUFFIXES

    found = dict(os.environ if variables is None else variables)
    _check(command, found)
    site_folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site_folder")
    paths = [site_folder, *(path for path in found.get("PYTHONPATH", "").split(os.pathsep) if path)]
    found["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    found[OBJECTS] = objects
    found[VARIABLE] = os.pathsep.join([EXTENSION_SUFFIXES[0], *_folders()])
    if "UV_PYTHON" not in found and _is_free_to_choose(command):
        found["UV_PYTHON"] = getattr(sys, "_base_executable", None) or sys.executable
    return found


def _folders() -> list[str]:
    """Return the folders that fastrpc and its dependencies are installed in."""
    from importlib.util import find_spec

    found: dict[str, None] = {}
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is not None and spec.origin:
            found[os.path.dirname(os.path.dirname(os.path.abspath(spec.origin)))] = None
    return list(found)


def _is_free_to_choose(command: Sequence[str]) -> bool:
    """Return whether a command lets uv choose the interpreter: uvx, or ``uv run`` outside a project."""
    command = _without_env(command)
    shebang = _shebang(command[0], os.environ)
    if shebang and os.path.basename(shebang[0]) == "uv":
        command = [*shebang, *command]  # a script with its dependencies inside (PEP 723)
    name = os.path.basename(command[0])
    words = [word for word in command[1:] if word not in ("-q", "--quiet", "--offline")]
    if any(word.split("=")[0] in ("--python", "-p") for word in words):
        return False
    if name == "uvx" or (name == "uv" and words[:2] == ["tool", "run"]):
        return True
    return name == "uv" and words[:1] == ["run"] and (_is_own_project(words) or not _is_in_project(words))


def _is_own_project(words: Sequence[str]) -> bool:
    """Return whether ``uv run`` runs a script that has its dependencies inside (PEP 723)."""
    script = next((word for word in words[1:] if word.endswith(".py")), None)
    if script is None:
        return False
    try:
        with open(script, encoding="utf-8", errors="replace") as file:
            return any(line.strip() == "# /// script" for line in file)
    except OSError:
        return False


def _is_in_project(words: Sequence[str]) -> bool:
    if any(word.split("=")[0] in ("--project", "--directory") for word in words):
        return True
    folder = os.getcwd()
    while not os.path.exists(os.path.join(folder, "pyproject.toml")):
        folder, inner = os.path.dirname(folder), folder
        if folder == inner:
            return False
    return True


def _check(command: Sequence[str], variables: Mapping[str, str]) -> None:
    """Refuse an interpreter with an option that ignores PYTHONPATH, and ``env -i``, which removes it. Raises
    UsageError."""
    command = _without_env(command)
    if _ignores_variables(command):
        raise UsageError(f"{command[0]}: leave out -I or -E, with which Python ignores PYTHONPATH")
    shebang = _shebang(command[0], variables)
    if shebang and _ignores_variables(shebang):
        script = " ".join([shebang[0], *command])
        raise UsageError(
            f"{command[0]} starts Python with -I or -E, which ignores PYTHONPATH; "
            f"give the script to Python: {script}"
        )


def _without_env(command: Sequence[str]) -> Sequence[str]:
    """Return what ``env NAME=value command`` starts. Raises UsageError for ``env -i``."""
    if os.path.basename(command[0]) != "env":
        return command
    words = list(command[1:])
    while words and (words[0].startswith("-") or "=" in words[0]):
        word = words.pop(0)
        if word in ("-i", "-", "--ignore-environment"):
            raise UsageError("env: leave out -i, which takes away the variables that swap --run needs")
        if word in ("-u", "-C", "--unset", "--chdir"):
            words = words[1:]
    return words or command


def _ignores_variables(command: Sequence[str]) -> bool:
    """Return whether a command starts Python with ``-I`` or ``-E``."""
    if not os.path.basename(command[0]).startswith(("python", "pypy")):
        return False
    words = iter(command[1:])
    for word in words:
        if word in TAKES_VALUE:
            next(words, None)
        elif not word.startswith("-") or word[1:2] in ("-", "c", "m", ""):
            return False
        elif not word.startswith(("-W", "-X")) and set("IE") & set(word.partition("c")[0].partition("m")[0]):
            return True
    return False


def _shebang(name: str, variables: Mapping[str, str]) -> list[str]:
    """Return the words of a script's first line, [] for any other program."""
    from shutil import which

    path = which(name, path=variables.get("PATH"))
    if path is None:
        return []
    try:
        with open(path, "rb") as file:
            line = file.readline(LONGEST_SHEBANG)
    except OSError:
        return []
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    return words
