"""Finds solc, Vyper, forge, anvil and Node: by their setting, in PATH, in the folders of installers.

The last place is the folder of `fastrpc contracts install`; for Vyper, that of Python's programs. A search
costs some `stat` calls.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys

from . import _settings
from ._errors import ENGINE_UNAVAILABLE, EngineError

SETTINGS = {
    "solc": _settings.SOLC,
    "vyper": _settings.VYPER,
    "forge": _settings.FORGE,
    "anvil": _settings.ANVIL,
    "node": _settings.NODE,
}
CURES = {"node": "install Node 18 or newer", "vyper": 'run `pip install "fastrpc-mcp[vyper]"`'}
SOLJSON = "soljson.js"
"""npm's Solidity compiler: WebAssembly, for Node."""


def install_folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "fastrpc", "contracts")


def find(name: str) -> str:
    """Return the absolute path of a program; of solc, it may be that of `SOLJSON`. Raises EngineError."""
    setting = SETTINGS[name]
    named: str = setting.read()
    if named:
        found = shutil.which(named) or (named if named.endswith(".js") and os.path.isfile(named) else None)
        if found is None:
            raise EngineError(ENGINE_UNAVAILABLE, f"{setting.name} names no program: {named}")
        return os.path.abspath(found)
    for path in _places(name):
        if os.path.isfile(path) and (path.endswith(".js") or os.access(path, os.X_OK)):
            return os.path.abspath(path)
    cure = CURES.get(name, "run `fastrpc contracts install`")
    raise EngineError(ENGINE_UNAVAILABLE, f"{name} is not installed: {cure}, or set {setting.name}")


def _places(name: str) -> list[str]:
    home = os.path.expanduser("~")
    places = [shutil.which(name) or "", os.path.join(home, ".foundry", "bin", name)]
    if name == "solc":
        installed = glob.glob(os.path.join(glob.escape(home), ".svm", "*", "solc-*"))
        newest = sorted(installed, key=_version_of, reverse=True)
        return [*places, *newest, os.path.join(install_folder(), SOLJSON)]
    if name == "vyper":
        return [places[0], os.path.join(os.path.dirname(sys.executable or "/"), name)]
    return [*places, os.path.join(install_folder(), name)]


def _version_of(path: str) -> list[int]:
    return [int(part) for part in os.path.basename(path).removeprefix("solc-").split(".") if part.isdigit()]
