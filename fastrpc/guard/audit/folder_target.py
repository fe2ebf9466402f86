"""Checkpoints in another folder, best on another volume or machine: lines of ``checkpoints.jsonl``.

``python verify.py LOG --checkpoint checkpoints.jsonl`` compares a log with them. Several logs may share the
file: a checkpoint is one write at its end, followed by fsync. If a failed write has left an incomplete line,
a newline terminates it before the next line; the reader skips it.
"""

from __future__ import annotations

import errno
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
            size = os.fstat(descriptor).st_size
            is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            data = b"\n" * is_torn + line + b"\n"
            if os.write(descriptor, data) != len(data):
                raise OSError(errno.ENOSPC, "only a part of the line could be written", FILE)
            os.fsync(descriptor)
            if not size:
                private_folder.sync(directory)
