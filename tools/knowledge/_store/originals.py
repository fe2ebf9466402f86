"""`Originals`: the files of documents as they came, each by the hash of its content, in a folder beside the
database (mode 0700, files 0600).

A file is there once, however many documents are made of it. Who adds and who removes one holds the lock of
its hash until the end of the transaction (`lock`), so none is removed that another has just added. It is
there before its first document, and goes after its last: a process that is killed may leave a file of no
document, which `sweep` removes, and never a document without its file.
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

    def remove_unused(self, digest: str) -> None:
        """Remove an original that no document is made of, and what was left of writing it. Raises
        StorageError."""
        self._remove_unused(digest, [name for name in self.names() if name.startswith(digest)])

    def _remove_unused(self, digest: str, names: Iterable[str]) -> None:
        """Remove these files, which are named after an original, but for the original if it is used."""
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
        """Remove what a process that was killed has left. Not for PostgreSQL: there other databases may have
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
        """Whether an original is there, and what was added."""
        try:
            return hashlib.sha256(self.read(digest, size)).hexdigest() == digest
        except StorageError:
            return False

    def names(self) -> set[str]:
        """Return the names of all files that are there."""
        try:
            return set(os.listdir(self.folder))
        except FileNotFoundError:
            return set()

    def _place(self, digest: str) -> str:
        return os.path.join(self.folder, digest)


def _away(what: str, error: OSError) -> StorageError:
    return StorageError(f"the original {what}: {error.strerror or error}")
