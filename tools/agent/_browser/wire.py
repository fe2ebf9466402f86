"""The frames that the server and its browser's process exchange: JSON, followed by bytes.

Eight bytes give the two lengths. fastrpc writes both ends, so the bound on a length only catches mistakes.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LENGTHS = struct.Struct("!II")
LONGEST = 256 * 1024**2


def encode(head: dict[str, Any], body: bytes = b"") -> bytes:
    import json

    data = json.dumps(head).encode()
    return LENGTHS.pack(len(data), len(body)) + data + body


class Reader:
    """Takes in bytes as they arrive and returns whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Return the frames that are complete now. Raises ValueError for an invalid frame."""
        import json

        self._data += data
        frames = []
        while len(self._data) >= LENGTHS.size:
            head, body = LENGTHS.unpack_from(self._data)
            if head + body > LONGEST:
                raise ValueError(f"a frame of {head + body} bytes")
            start, end = LENGTHS.size + head, LENGTHS.size + head + body
            if len(self._data) < end:
                break
            frames.append((json.loads(self._data[LENGTHS.size : start]), bytes(self._data[start:end])))
            del self._data[:end]
        return frames
