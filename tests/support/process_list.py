"""The processes of this machine, as /proc shows them: Linux only."""

from __future__ import annotations

import os


def read(path: str) -> bytes:
    """Return a file's bytes; none of a process that has ended."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def below(pid: int) -> list[int]:
    """Return all descendants of a process."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        fields = read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if fields:
            children.setdefault(int(fields[1]), []).append(int(name))
    found = list(children.get(pid, []))
    for one in found:
        found += children.get(one, [])
    return found
