"""Reads settings files, and decides which files, lines and keys are refused, with a warning for each.

`fastrpc.settings` defines the settings, and imports this module when one of the files exists, which is rare.
A file is read once, at most 256 KiB of it, without blocking.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class SettingDefinition(Protocol):
        """The definition of a setting (`fastrpc.settings.Setting`)."""

        name: str
        kind: str

    class SettingsReceiver(Protocol):
        """Receives the lines of files (`fastrpc.settings.Configuration`)."""

        lines_read: int

        files_read: set[tuple[int, int]]
        held_off: set[str]

        def warn(self, warning: str, line: int) -> None: ...
        def take_line(self, line: tuple[int, str, str, str, bool]) -> None: ...
        def origin(self, name: str) -> str: ...
        def __getitem__(self, name: str) -> Any: ...


KEY_LIMIT = 64
VALUE_LIMIT = 512
FILE_LIMIT = 256 * 1024

# Settings that a file in the working directory may not set: each names something that is executed, read,
# written, called or trusted.
HELD_BACK = {
    "module": "code",
    "program": "a program",
    "file": "a file",
    "folder": "a folder",
    "folders": "folders",
    "address": "an address",
    "reach": "which addresses may be reached",
    "secret": "a secret",
    "patterns": "which tools may be called",
}


def take_file(configuration: SettingsReceiver, path: str, shown: str, trusted: bool) -> None:
    """Read one file and pass its lines on. A file in the working directory is not trusted."""
    from fastrpc.regular_files import open_regular

    try:
        descriptor = open_regular(path)
        try:
            text = _read(descriptor, configuration.files_read)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        configuration.lines_read += 1
        why = error.strerror if isinstance(error, OSError) else error
        configuration.warn(f"{shown}: {why}", configuration.lines_read)
        return
    for number, line in enumerate(text.split("\n"), 1):
        configuration.lines_read += 1
        line = line.strip()
        if line and not line.startswith("#"):
            _take_line(configuration, line, f"{shown}:{number}", trusted)


def _read(descriptor: int, files_read: set[tuple[int, int]]) -> str:
    """Return the text of a file; "" if it was read before. (The home folder may be the working directory; its
    files are then trusted.)"""
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in files_read:
        return ""
    files_read.add((status.st_dev, status.st_ino))
    if status.st_size > FILE_LIMIT:
        raise ValueError(f"larger than {FILE_LIMIT // 1024} KiB")
    return os.read(descriptor, FILE_LIMIT).decode("utf-8-sig", "replace")


def _take_line(configuration: SettingsReceiver, line: str, origin: str, trusted: bool) -> None:
    key, equals, text = line.partition("=")
    key = key.strip()
    text = _without_comment(text)
    wrong = ""
    if not equals or not key:
        wrong = "expected KEY=VALUE"
    elif len(key) > KEY_LIMIT:
        wrong = f"the key is longer than {KEY_LIMIT} characters"
    elif len(text) > VALUE_LIMIT:
        wrong = f"the value is longer than {VALUE_LIMIT} characters"
    elif "\0" in text:
        wrong = "the value contains a NUL character"
    if wrong:
        configuration.warn(f"{origin}: {wrong}", configuration.lines_read)
    else:
        configuration.take_line((configuration.lines_read, origin, key, text, trusted))


def _without_comment(text: str) -> str:
    """Remove a comment: a ``#`` after white space. (A URL may contain one without white space.)"""
    end = text.find("#")
    while end > 0 and not text[end - 1].isspace():
        end = text.find("#", end + 1)
    return (text if end < 0 else text[:end]).strip()


def refusal(configuration: SettingsReceiver, setting: SettingDefinition, value: Any) -> str:
    """Return why an untrusted file may not set this, or "" if it may."""
    if setting.kind in HELD_BACK:
        return f"is ignored here: a file in the working directory may not name {HELD_BACK[setting.kind]}"
    if value is True and setting.name in configuration.held_off:
        return f"stays off: {configuration.origin(setting.name)} switched it off"
    if setting.kind == "permission" and value is True and not configuration[setting.name]:
        return "stays off: a file in the working directory may not give a permission"
    if setting.kind == "guard" and value is False and configuration[setting.name]:
        return "stays on: a file in the working directory may not lower a guard"
    return ""
