"""Makes lines of the audit log in compiled code: records of calls, their ids, the links of a chain."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.recorder import CallRecord, RecordBatch

ALPHABET: str
"""Crockford's base 32, which sorts as the numbers do."""

def sha256_of(first: bytes, second: bytes, *, is_plain: bool = False) -> bytes:
    """Return the SHA-256 of two concatenated texts, the first of at most 64 bytes. `is_plain`: without
    the processor's own instructions. Raises ValueError."""

def identifier(head: str, number: int) -> str:
    """Return an id: `head`, of at most 48 characters, and 8 that count, in base 32 (Crockford). Raises
    ValueError."""

class CallFields:
    """The fields of calls, as JSON without the brace that opens them. `CallLines` makes them."""

    first: int
    """The number of the next call in its id, for who makes a line of it."""
    @property
    def count(self) -> int:
        """How many calls are no lines yet."""
    @property
    def memory(self) -> int:
        """The bytes that they take in memory."""
    def texts(self) -> list[bytes]:
        """Return the fields of each call that is no line yet."""

class CallLines:
    """Makes the fields of calls."""

    @property
    def common(self) -> dict[tuple[str, str, str, str], bytes]:
        """The fields that calls have in common, as JSON without braces, by principal, kind, name, outcome."""
    def __init__(self, otherwise: Callable[[CallRecord], Any]) -> None:
        """`otherwise` makes what is not likely, and what has no common fields."""
    def fields(self, batch: RecordBatch) -> list[Any]:
        """Return the fields of each call that the guard has not refused, in order: `CallFields` of those that
        are adjacent, and what `otherwise` returns."""

class MerkleTree:
    """The root over leaves that come one by one (RFC 6962, section 2.1): keeps one node for each bit of their
    number."""

    @property
    def count(self) -> int: ...
    def add(self, data: bytes) -> None:
        """Add a leaf."""
    def root(self) -> bytes:
        """Return the root; of no leaves, the hash of nothing."""

class ChainLines:
    """The lines of a chain."""

    sequence: int
    """The number of the last line."""
    @property
    def tree(self) -> MerkleTree:
        """Over the lines since the last checkpoint."""
    def line(self, fields: bytes) -> bytes:
        """Return the next line: of fields as JSON without the brace that opens them."""
    def calls(self, calls: CallFields, head: str, time: str, most: int, most_bytes: int) -> bytes:
        """Return at most `most` calls as the next lines, and no more once `most_bytes` are there. Ids begin
        with `head`, and they are all of one time. Raises ValueError."""
    def head(self) -> bytes:
        """Return the beginning of a line that `seal` ends."""
    def seal(self, line: bytes) -> None:
        """Have a line be the next one, after which a new tree begins; it ends without a newline."""
