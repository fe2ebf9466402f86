"""Finds words of a command that name a device, or another file whose reading may never end.

These are ``/dev`` except ``null``, and files of ``/proc`` and ``/sys`` that are generated while they are
read. A word is treated as a path after any prefix (``--file=``, ``-f``) and in every spelling: with ``..``
and ``.``, as a pattern that may match, and as a relative path, since the server or a ``cd`` may be in the
root folder. Targets of links are not resolved.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from fastrpc.guard.shell.lexer import Command, Word
from fastrpc.guard.shell.programs import names

BEGINS = re.compile(r"[=:,]|\A-[A-Za-z0-9]+(?=/)|\A-[A-Za-z0-9]")
"""The positions in a word where a path may begin, besides its first character."""
DEVICES = (
    *("console", "fd", "full", "hpet", "input", "kmsg", "mem", "port", "ptmx", "pts", "random", "rtc", "snd"),
    *("stderr", "stdin", "stdout", "tty", "ttyS0", "uinput", "urandom", "watchdog", "zero"),
)
TOPS = ("dev", "proc", "sys")
ONLY_NAMES = names("basename cd df dirname du echo find ls printf readlink realpath stat tree")
"""Programs that open none of the files that they name."""


def names_device(command: Command) -> bool:
    """Whether a word of a command names a file that may never end, or a folder with such files."""
    program = command[0].text
    return any(_is_device(word, program) for word in command[1:])


def _is_device(word: Word, program: str) -> bool:
    text = word.text
    starts = {0, *(found.end() for found in BEGINS.finditer(text))}
    return any(_leads_to_one(text[start:], word.is_pattern, program) for start in starts)


def _leads_to_one(path: str, is_pattern: bool, program: str) -> bool:
    parts, is_from_top = _resolved(path)

    def may_be(at: int, *names: str) -> bool:
        if not is_pattern:
            return at < len(parts) and parts[at] in names
        return at < len(parts) and any(fnmatchcase(name, parts[at]) for name in names)

    if program == "cd":
        return may_be(0, *TOPS)
    if program not in ONLY_NAMES and is_from_top and (not parts or (len(parts) == 1 and may_be(0, *TOPS))):
        return path != ".."  # grep -r x /
    if may_be(0, "dev") and len(parts) > 1:
        return parts[1:] != ["null"] if is_from_top else may_be(1, *DEVICES)
    if may_be(0, "proc"):
        return len(parts) > 2 or may_be(1, "kmsg")
    return may_be(0, "sys") and may_be(1, "kernel") and may_be(2, "debug", "tracing")


def _resolved(path: str) -> tuple[list[str], bool]:
    """Return the parts of a path without ``.`` and ``..``, and whether it is, or may be, absolute."""
    parts: list[str] = []
    is_from_top = path.startswith("/")
    for part in path.split("/"):
        if part == "..":
            is_from_top = is_from_top or not parts
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return parts, is_from_top
