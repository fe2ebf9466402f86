"""Checkpoints in another folder, best on another volume or machine: lines of ``checkpoints.jsonl``.

``python verify.py LOG --checkpoint checkpoints.jsonl`` compares a log with them. Several logs may share the
file: a checkpoint is one write at its end, followed by fsync. If a failed write has left an incomplete line,
a newline terminates it before the next line; the reader skips it.
"""

from __future__ import annotations

import errno
import os

from fastrpc.guard.audit import private_folder
from fastrpc.regular_files import open_regular

FILE = "checkpoints.jsonl"


class FolderTarget:
    """A folder, created with mode 0700 unless it exists. Only its owner may have write access."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.name = f"the folder {self.folder}"

    def send(self, line: bytes) -> None:
        """Append a checkpoint. Raises OSError."""
        directory = private_folder.opened(self.folder)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            descriptor = open_regular(FILE, flags, follow=False, dir_fd=directory)
            try:
                size = os.fstat(descriptor).st_size
                is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                data = b"\n" * is_torn + line + b"\n"
                if os.write(descriptor, data) != len(data):
                    raise OSError(errno.ENOSPC, "only a part of the line could be written", FILE)
                os.fsync(descriptor)
                if not size:
                    private_folder.sync(directory)
            finally:
                os.close(descriptor)
        finally:
            os.close(directory)
