"""Makes lines of the audit log in compiled code: records of calls, their ids, the links of a chain."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.recorder import CallRecord

ALPHABET: str
"""Crockford's base 32, which sorts as the numbers do."""

def sha256_of(first: bytes, second: bytes, *, is_plain: bool = False) -> bytes:
    """Return the SHA-256 of two texts behind each other, the first of at most 64 bytes. `is_plain`: without
    the processor's own instructions. Raises ValueError."""

def identifiers(head: str, first: int, count: int) -> list[str]:
    """Return ids: `head` and 8 characters that count from `first`, in base 32 (Crockford). Raises
    ValueError."""

class CallLines:
    """The fields of calls, as JSON."""

    @property
    def common(self) -> dict[tuple[str, str, str, str], bytes]:
        """The fields that calls have in common, as JSON without braces, by principal, kind, name, outcome."""
    def __init__(self, otherwise: Callable[[CallRecord], Any]) -> None:
        """`otherwise` makes what is not likely, and what has no common fields."""
    def lines(self, records: list[CallRecord]) -> list[Any]:
        """Return the fields of each call: as JSON without the brace that opens them, or what `otherwise`
        returns."""

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
    def record(self, identifier: str, time: str, fields: bytes) -> bytes:
        """Return a record as the next line: of its id, its time, and further fields."""
    def head(self) -> bytes:
        """Return the beginning of a line that `seal` ends."""
    def seal(self, line: bytes) -> None:
        """Have a line be the next one, after which a new tree begins; it ends without a newline."""
