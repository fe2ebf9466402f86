"""`sealed` and `opened`: cursors of lists that reveal nothing to their owner.

A page continues after the number of a row, so new and deleted entries do not shift it. These numbers count
the rows of all owners, therefore a cursor encrypts them with the store's key. The pad is derived from a
checksum of the owner and the numbers (a synthetic initialization vector, the construction of RFC 5297, with
keyed BLAKE2b, RFC 7693). Every server of the store can decrypt it, but only for its owner.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cached_property

from sqlalchemy import select

from .schema import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database

    from .entries import Reader

KEY = "cursors"
CHECKSUM = 16
"""Bytes. Who forges a cursor gets a page of their own list, so more would protect nothing."""


class Cursors:
    """The cursors of one reader. The store's key is read once, when the first cursor is sealed or opened."""

    def __init__(self, database: Database, reader: Reader) -> None:
        self._database = database
        self._owner = reader.owner.encode("utf-8", "surrogatepass")

    def sealed(self, *numbers: int) -> str:
        """Return the cursor of these numbers."""
        plain = struct.pack(f">{len(numbers)}Q", *numbers)
        checksum = self._checksum(plain)
        return urlsafe_b64encode(checksum + self._padded(checksum, plain)).decode().rstrip("=")

    def opened(self, cursor: str, count: int) -> tuple[int, ...] | None:
        """Return the numbers of a cursor; None for a text that is not the reader's cursor of so many
        numbers."""
        size = CHECKSUM + 8 * count
        if len(cursor) != (size * 8 + 5) // 6:
            return None
        try:
            data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        except ValueError:
            return None
        if len(data) != size:
            return None
        checksum = data[:CHECKSUM]
        plain = self._padded(checksum, data[CHECKSUM:])
        if not hmac.compare_digest(checksum, self._checksum(plain)):
            return None
        return struct.unpack(f">{count}Q", plain)

    @cached_property
    def _key(self) -> bytes:
        with self._database.reading() as connection:
            return bytes(connection.execute(select(keys.c.key).where(keys.c.name == KEY)).scalar_one())

    def _checksum(self, plain: bytes) -> bytes:
        text = self._owner + b"\0" + plain
        return hashlib.blake2b(text, key=self._key, digest_size=CHECKSUM, person=b"checksum").digest()

    def _padded(self, checksum: bytes, data: bytes) -> bytes:
        pad = hashlib.blake2b(checksum, key=self._key, digest_size=len(data), person=b"pad").digest()
        return bytes(one ^ other for one, other in zip(data, pad, strict=True))
