"""Reads the file of a guard's configuration: ``guard.toml``, ``fastrpc.toml`` or ``mcp-server.json``.

A regular file of at most `LONGEST_FILE` bytes; only the secrets that it names are looked up.
"""

from __future__ import annotations

import os
from hashlib import sha256

from fastrpc.errors import Reworded
from fastrpc.guard.policy import sophon, toml_file
from fastrpc.guard.policy.config import GuardConfig
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import GuardConfigError, Section
from fastrpc.regular_files import open_regular

LONGEST_FILE = 1024 * 1024
SHARED_FILE, TABLE = "fastrpc.toml", "guard"
"""A file that has other tables, too, and the name of the guard's table."""


def read(path: str) -> GuardConfig:
    """Return the configuration of a file. Raises GuardConfigError."""
    return config_of(path, content_of(path), References(os.path.dirname(os.path.abspath(path))))


def content_of(path: str) -> bytes:
    """Return the content of a file. Raises GuardConfigError."""
    with Reworded(OSError, GuardConfigError, f"{path}: "), open(open_regular(path), "rb") as file:
        return file.read(LONGEST_FILE + 1)


def config_of(path: str, data: bytes, references: References) -> GuardConfig:
    """Return the configuration that `data`, as the content of a file, is. Raises GuardConfigError."""
    shown = os.path.basename(path)
    if len(data) > LONGEST_FILE:
        raise GuardConfigError(f"{path}: longer than {LONGEST_FILE} bytes")
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GuardConfigError(f"{path}: not UTF-8") from None
    version = version_of(data)
    if path.endswith(".json"):
        return sophon.config_of(shown, source, version, references)
    table, lines = toml_file.parse(shown, source)
    root = Section(shown, table, lines)
    if shown == SHARED_FILE:
        inner = root.section(TABLE)
        if inner is None:
            raise GuardConfigError(f"{path}: there is no table [{TABLE}]")
        root = inner
    return GuardConfig(root, version, references)


def version_of(data: bytes) -> str:
    """Return what identifies the content of a policy's file."""
    return sha256(data).hexdigest()[:16]
