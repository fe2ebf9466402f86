"""The environment that a program is given: this process's, without the secrets of fastrpc's own.

It is made once and kept while neither this process's environment nor the changes to it change: asking again
costs two microseconds, where reading forty variables costs fifty.
"""

from __future__ import annotations

import os

from fastrpc.environment import raw_environment
from fastrpc.processes.reapers import ProgramError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program: this process's, without the secrets of fastrpc's own
    (``FASTRPC_…`` with TOKEN, SECRET, PASSWORD or KEY in it, or an address with a password as its value),
    and with `changes`."""
    variables = dict(os.environ)
    for name in [name for name in variables if name.startswith("FASTRPC_")]:
        host = variables[name].partition("://")[2].partition("/")[0]
        if "@" in host or any(word in name for word in ("TOKEN", "SECRET", "PASSWORD", "KEY")):
            del variables[name]
    if changes:
        variables.update(changes)
    return variables


def encoded(strings: Sequence[str]) -> bytes:
    """Return strings as the reaper reads them: in the system's encoding, each ended by a NUL. Raises
    `ProgramError` for one that no program can be given."""
    joined = "\0".join([*strings, ""])
    if joined.count("\0") != len(strings):
        raise ProgramError("The command holds a NUL character, which no program can be given.")
    try:
        return os.fsencode(joined)
    except UnicodeEncodeError:
        raise ProgramError("The command holds a lone surrogate, which no program can be given.") from None


def encoded_environment(variables: Mapping[str, str]) -> tuple[bytes, int]:
    """Return an environment as the reaper reads it, and how many variables it has."""
    return encoded([f"{name}={value}" for name, value in variables.items()]), len(variables)


def inherited(changes: Mapping[str, str] | None) -> tuple[bytes, int]:
    """Return `environment(changes)` as the reaper reads it, and how many variables it has."""
    global _kept
    variables = raw_environment()
    changed = dict(changes) if changes else {}
    if _kept[:2] != (variables, changed):
        before = dict(variables or ())  # without it nothing is kept
        _kept = (before, changed, encoded_environment(environment(changes)))
    return _kept[2]


_kept: tuple[dict[bytes, bytes], dict[str, str], tuple[bytes, int]] = ({}, {"": ""}, (b"", 0))
"""What `os.environ` holds within, the changes, and what came of them."""
