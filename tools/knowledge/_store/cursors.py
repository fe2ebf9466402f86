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

from sqlalchemy import select

from .schema import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database

    from .entries import Reader

CURSORS = "cursors"
CHECKSUM = 16
"""Bytes. A forged cursor only opens a page of the forger's own list, so more would protect nothing."""


def sealed(database: Database, reader: Reader, *numbers: int) -> str:
    """Return a reader's cursor with these numbers."""
    key, plain = _key(database), struct.pack(f">{len(numbers)}Q", *numbers)
    checksum = _checksum(key, reader, plain)
    return urlsafe_b64encode(checksum + _padded(key, checksum, plain)).decode().rstrip("=")


def opened(database: Database, reader: Reader, cursor: str, count: int) -> tuple[int, ...] | None:
    """Return the numbers in a reader's cursor; None for an invalid one, and for another count of numbers."""
    size = CHECKSUM + 8 * count
    if len(cursor) != (size * 8 + 5) // 6:
        return None
    try:
        data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except ValueError:
        return None
    if len(data) != size:
        return None
    key, checksum = _key(database), data[:CHECKSUM]
    plain = _padded(key, checksum, data[CHECKSUM:])
    if not hmac.compare_digest(checksum, _checksum(key, reader, plain)):
        return None
    return struct.unpack(f">{count}Q", plain)


def _key(database: Database) -> bytes:
    with database.reading() as connection:
        return bytes(connection.execute(select(keys.c.key).where(keys.c.name == CURSORS)).scalar_one())


def _checksum(key: bytes, reader: Reader, plain: bytes) -> bytes:
    text = reader.owner.encode("utf-8", "surrogatepass") + b"\0" + plain
    return hashlib.blake2b(text, key=key, digest_size=CHECKSUM, person=b"checksum").digest()


def _padded(key: bytes, checksum: bytes, data: bytes) -> bytes:
    pad = hashlib.blake2b(checksum, key=key, digest_size=len(data), person=b"pad").digest()
    return bytes(one ^ other for one, other in zip(data, pad, strict=True))
