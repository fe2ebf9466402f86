"""Decompresses bodies in gzip or deflate (RFC 9110, 8.4.1), which some servers send unasked. No I/O.

The output of each piece is bounded: a small body may expand to gigabytes. Other encodings are refused.
zlib is imported by the first body that needs it, and does the work.

Why not the decoders of httpx: they return the whole output of a piece at once, without a bound, and need 83
more modules.
"""

from __future__ import annotations

from collections.abc import Iterator

LARGEST_PIECE = 256 * 1024

GZIP, ZLIB, RAW = 31, 15, -15
"""What zlib calls the formats."""


class BadEncoding(ValueError):
    """A body is in an encoding that is not known, or is not what its encoding says."""


class Decompressor:
    """Decompresses one body. `encoding`: the value of its header Content-Encoding. Raises BadEncoding."""

    def __init__(self, encoding: str) -> None:
        import zlib

        name = encoding.strip().lower()
        if name not in ("gzip", "x-gzip", "deflate"):
            raise BadEncoding(f"its body is encoded as {encoding[:40]!r}, which was not requested")
        self._name = name
        self._error = zlib.error
        self._new = zlib.decompressobj
        self._state = zlib.decompressobj(ZLIB if name == "deflate" else GZIP)
        self._may_be_raw = name == "deflate"  # some servers leave out zlib's head

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed content of a piece of the body, in pieces. Raises BadEncoding."""
        found = b""
        while data or len(found) == LARGEST_PIECE:
            try:
                found = self._state.decompress(data, LARGEST_PIECE)
            except self._error as error:
                if not self._may_be_raw:
                    raise BadEncoding(f"its body is not valid {self._name}: {error}") from None
                self._state = self._new(RAW)
                self._may_be_raw = False
                continue
            self._may_be_raw = False
            data = self._state.unconsumed_tail
            if found:
                yield found

    def end(self) -> None:
        """Raise BadEncoding if the body is not complete."""
        if not self._state.eof:
            raise BadEncoding(f"its body in {self._name} is cut off")
