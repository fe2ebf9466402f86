"""`Originals`: the files of documents as they came, each by the hash of its content, in a folder beside the
database (mode 0700, files 0600).

A file is there once, however many documents are made of it. Who adds and who removes one holds the lock of
its hash until the end of the transaction (`lock`), so none is removed that another has just added.
"""

from __future__ import annotations

import hashlib
import os

from sqlalchemy import text

from fastrpc import regular_files
from fastrpc.storage import StorageError

from .kind import KNOWLEDGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

LOCKS = 0x66727064_00000000
"""The first of PostgreSQL's advisory locks for originals."""


class Originals:
    """The originals of a store."""

    def __init__(self, database: Database) -> None:
        path = database.path
        self.folder = f"{path}.originals" if path else f"{KNOWLEDGE.default_path}.originals"

    def lock(self, connection: Connection, digest: str) -> None:
        """Wait until nobody else adds or removes this original. SQLite has one writer at a time anyway."""
        if connection.dialect.name == "postgresql":
            key = LOCKS | int(digest[:8], 16)
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    def add(self, digest: str, data: bytes) -> None:
        """Store an original, unless it is there and whole. Raises StorageError."""
        if self.is_whole(digest, len(data)):
            return
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            regular_files.replace_file(self._place(digest), data)
        except OSError as error:
            raise _away("cannot be stored", error) from None

    def read(self, digest: str, size: int) -> bytes:
        """Return an original. Raises StorageError."""
        try:
            return regular_files.read_regular(self._place(digest), size, follow=False)
        except OSError as error:
            raise _away("cannot be read", error) from None

    def remove(self, digest: str) -> None:
        """Remove an original, if it is there. Raises StorageError."""
        try:
            os.unlink(self._place(digest))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _away("cannot be removed", error) from None

    def is_whole(self, digest: str, size: int) -> bool:
        """Whether an original is there, and what was added."""
        try:
            return hashlib.sha256(self.read(digest, size)).hexdigest() == digest
        except StorageError:
            return False

    def digests(self) -> set[str]:
        """Return the names of all files that are there."""
        try:
            return set(os.listdir(self.folder))
        except FileNotFoundError:
            return set()

    def _place(self, digest: str) -> str:
        return os.path.join(self.folder, digest)


def _away(what: str, error: OSError) -> StorageError:
    return StorageError(f"the original {what}: {error.strerror or error}")
