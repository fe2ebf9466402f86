"""`Originals`: the unchanged files of documents, each named by the hash of its content, in a folder beside
the database (mode 0700, files 0600).

A file is stored once, however many documents use it. A process that adds or removes one holds the lock of its
hash until the end of the transaction (`lock`), so it cannot remove a file that another has just added. A file
is stored before its first document, and removed after its last. A killed process may therefore leave a file
without a document, which `sweep` removes, but never a document without its file.
"""

from __future__ import annotations

import hashlib
import os
import re

from sqlalchemy import select, text

from fastrpc import regular_files
from fastrpc.storage import StorageError

from .kind import KNOWLEDGE
from .schema import documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

LOCKS = 0x66727064_00000000
"""The first of PostgreSQL's advisory locks for originals."""


DIGEST = re.compile("[0-9a-f]{64}")


class Originals:
    """The originals of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        path = database.path
        elsewhere = os.path.join(os.path.dirname(KNOWLEDGE.default_path), "knowledge.postgresql")
        self.folder = f"{path or elsewhere}.originals"

    def lock(self, connection: Connection, digest: str) -> None:
        """Wait until no other process adds or removes this original. SQLite has one writer at a time
        anyway."""
        if connection.dialect.name == "postgresql":
            key = LOCKS | int(digest[:8], 16)
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})

    def add(self, digest: str, data: bytes) -> None:
        """Store an original, unless it is stored completely. Raises StorageError."""
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

    def remove_unused(self, digest: str) -> None:
        """Remove an original that no document uses, and its partly written files. Raises StorageError."""
        self._remove_unused(digest, [name for name in self.names() if name.startswith(digest)])

    def _remove_unused(self, digest: str, names: Iterable[str]) -> None:
        """Remove these files, which are named after an original, but not the original itself if it is
        used."""
        with self._database.changing() as connection:
            self.lock(connection, digest)
            wanted = select(documents.c.number).where(documents.c.digest == digest).limit(1)
            is_used = connection.execute(wanted).first() is not None
            for name in names:
                if not (is_used and name == digest):
                    try:
                        os.unlink(self._place(name))
                    except FileNotFoundError:  # another process was faster
                        pass
                    except OSError as error:
                        raise _away("cannot be removed", error) from None

    def sweep(self) -> None:
        """Remove the left-over files of killed processes. Not for PostgreSQL, where other databases may have
        their files in this folder. Raises StorageError."""
        if not self._database.path:
            return
        with self._database.reading() as connection:
            used = set(connection.execute(select(documents.c.digest).distinct()).scalars())
        unused: dict[str, list[str]] = {}
        for name in self.names():
            if name not in used and DIGEST.match(name):
                unused.setdefault(name[:64], []).append(name)
        for digest, names in unused.items():
            self._remove_unused(digest, names)

    def is_whole(self, digest: str, size: int) -> bool:
        """Whether an original is stored, complete and unchanged."""
        try:
            return hashlib.sha256(self.read(digest, size)).hexdigest() == digest
        except StorageError:
            return False

    def names(self) -> set[str]:
        """Return the names of all stored files."""
        try:
            return set(os.listdir(self.folder))
        except FileNotFoundError:
            return set()

    def _place(self, digest: str) -> str:
        return os.path.join(self.folder, digest)


def _away(what: str, error: OSError) -> StorageError:
    return StorageError(f"the original {what}: {error.strerror or error}")
