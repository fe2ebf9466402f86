"""Settings as the tools read them: from the environment, where the server has put all that hold."""

from __future__ import annotations

import os

OFF = ("0", "false", "no", "off")


def flag(name: str, default: bool) -> bool:
    """Return whether a switch is on."""
    value = os.environ.get(name, "").strip().lower()
    return value not in OFF if value else default


def number(name: str, default: float) -> float:
    """Return a number of zero or more; the default where it is missing or is none."""
    try:
        value = float(os.environ.get(name, ""))
    except ValueError:
        return default
    return value if 0 <= value < 1e15 else default


def state_folder() -> str:
    """Return the folder in which state and long outputs are kept."""
    chosen = os.environ.get("FASTRPC_STATE_DIR", "")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):  # the XDG specification: a relative path is to be ignored
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "fastrpc")
