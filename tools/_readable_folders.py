"""Which files a process that reads untrusted input may open (Linux 5.13 and newer, Landlock): those below a
few folders, for reading. From then on, opening any other file and writing to any file fail with EACCES.

The kernel confines the calling thread and the threads that it starts later, so the call must precede any
library that starts threads. Files that are open stay open, and the process can still see whether a file
exists. Imports the standard library alone, for programs that import nothing of fastrpc. `_system_calls` is
the other half.
"""

from __future__ import annotations

import os
import struct
import sys

try:
    import ctypes
except ImportError:  # built without libffi
    ctypes = None  # type: ignore[assignment]

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""The numbers of the system calls, the same on every processor for which Linux has Landlock."""
VERSION, BELOW_PATH, NO_NEW_PRIVILEGES = 1, 1, 38
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16))
"""The number of rights by version of Landlock, of <linux/landlock.h>."""


def version() -> int:
    """Return the kernel's version of Landlock. Raises OSError if it has none."""
    return call(CREATE_RULESET, ctypes.c_void_p(None), ctypes.c_ulong(0), ctypes.c_ulong(VERSION))


def confine(folders: list[str]) -> None:
    """Have the kernel refuse every file to this thread and those that it starts, except files below the
    folders and the targets of links in the folders. Does nothing on systems other than Linux. Raises OSError
    if the kernel has no Landlock, and for a folder that cannot be opened."""
    if sys.platform != "linux":
        return
    if ctypes is None:
        raise OSError("this Python has no ctypes")
    known = version()
    rights = (1 << max(count for since, count in RIGHTS if since <= known)) - 1
    rules = call(CREATE_RULESET, struct.pack("=Q", rights), ctypes.c_ulong(8), ctypes.c_ulong(0))
    try:
        for folder in folders:
            allow(rules, folder, READ_FILE | READ_FOLDER)
            for each in os.scandir(folder):
                if each.is_symlink() and each.is_file():
                    allow(rules, each.path, READ_FILE)
        checked(
            ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0)))
        )
        call(RESTRICT_SELF, ctypes.c_long(rules), ctypes.c_ulong(0))
    finally:
        os.close(rules)


def allow(rules: int, path: str, rights: int) -> None:
    """Add a rule: the file, or what is below the path, has these rights. Raises OSError."""
    below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, below)
        call(ADD_RULE, ctypes.c_long(rules), ctypes.c_long(BELOW_PATH), rule, ctypes.c_ulong(0))
    finally:
        os.close(below)


def call(number: int, *arguments: object) -> int:
    """Make a system call. Raises OSError if it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    return checked(library.syscall(ctypes.c_long(number), *arguments))


def checked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer


def confine_if_possible(folders: list[str]) -> None:
    """Do the same, for a process whose other limits must suffice where the kernel has no Landlock."""
    try:
        confine(folders)
    except OSError:
        pass
