"""Checkpoints in another folder, best on another volume or machine: lines of ``checkpoints.jsonl``.

``python verify.py LOG --checkpoint checkpoints.jsonl`` compares a log with them. Several logs may share the
file: a checkpoint is one write at its end, followed by fsync. If a failed write has left an incomplete line,
a newline terminates it before the next line; the reader skips it.
"""

from __future__ import annotations

import os

from fastrpc.guard.audit import private_folder

FILE = "checkpoints.jsonl"


class FolderTarget:
    """A folder, created with mode 0700 unless it exists. Only its owner may have write access."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.name = f"the folder {self.folder}"

    def send(self, line: bytes) -> None:
        """Append a checkpoint. Raises OSError."""
        with private_folder.log_in(self.folder, FILE) as (directory, descriptor):
            if private_folder.append(line, descriptor, FILE):
                private_folder.sync(directory)
