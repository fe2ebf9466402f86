"""The environment of a child process: that of this process, without fastrpc's own secrets.

It is cached until this process's environment or the changes to it change: a repeated call takes two
microseconds, reading forty variables fifty.
"""

from __future__ import annotations

import os

from fastrpc.environment import raw_environment
from fastrpc.processes.reapers import ProgramError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program: this process's, without fastrpc's own secrets (``FASTRPC_…``
    with TOKEN, SECRET, PASSWORD or KEY in the name, or with a URL that contains a password), and with
    `changes`."""
    variables = dict(os.environ)
    for name in [name for name in variables if name.startswith("FASTRPC_")]:
        host = variables[name].partition("://")[2].partition("/")[0]
        if "@" in host or any(word in name for word in ("TOKEN", "SECRET", "PASSWORD", "KEY")):
            del variables[name]
    if changes:
        variables.update(changes)
    return variables


def encoded(strings: Sequence[str]) -> bytes:
    """Return strings in the reaper's format: in the system's encoding, each with a final NUL. Raises
    `ProgramError` for a string that cannot be passed to a program."""
    joined = "\0".join([*strings, ""])
    if joined.count("\0") != len(strings):
        raise ProgramError("The command contains a NUL character, which programs cannot receive.")
    try:
        return os.fsencode(joined)
    except UnicodeEncodeError:
        raise ProgramError("The command contains a lone surrogate, which programs cannot receive.") from None


def encoded_environment(variables: Mapping[str, str]) -> tuple[bytes, int]:
    """Return an environment in the reaper's format, and the number of its variables. Raises
    `ProgramError`."""
    return encoded([f"{name}={value}" for name, value in variables.items()]), len(variables)


def inherited(changes: Mapping[str, str] | None) -> tuple[bytes, int]:
    """Return `environment(changes)` in the reaper's format, and the number of its variables. Raises
    `ProgramError`."""
    global _kept
    variables = raw_environment()
    changed = dict(changes) if changes else {}
    if _kept[:2] != (variables, changed):
        before = dict(variables or ())  # empty: nothing is cached
        _kept = (before, changed, encoded_environment(environment(changes)))
    return _kept[2]


_kept: tuple[dict[bytes, bytes], dict[str, str], tuple[bytes, int]] = ({}, {"": ""}, (b"", 0))
"""The content of `os.environ`, the changes, and the result."""
