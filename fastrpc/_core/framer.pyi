"""Cuts a byte stream into lines. The compiled methods are for the transports; these are for tests."""

class Framer:
    """Lines of at most `max_line` bytes (without the newline) out of chunks of any size.

    Raises ValueError for a `max_line` below 1.
    """

    @property
    def max_line(self) -> int: ...
    def __new__(cls, max_line: int = 16_777_216) -> Framer: ...
    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that `chunk` completes; None marks a line over the limit."""
    def finish(self) -> list[bytes]:
        """Return the last line if it had no newline."""
