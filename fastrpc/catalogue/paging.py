"""Pages of a list: cursors that say where the next one begins (MCP, utilities: pagination).

A cursor holds the last key shown and its place. It outlives changes and restarts: while the key is in the
list the next page begins behind it, else at the same place. Nothing is kept for a client that pages.
"""

from __future__ import annotations

from fastrpc.errors import InvalidParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def cursor_of(params: dict[str, object]) -> str | None:
    """Return a list request's cursor. Raises InvalidParams if it is no string."""
    cursor = params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidParams("cursor: expected a string")
    return cursor


def page_of(keys: Sequence[str], cursor: str | None, size: int) -> tuple[int, int, str | None]:
    """Return where a page begins and ends among the keys, and the next page's cursor, None at the end."""
    start = 0 if cursor is None else _start_of(keys, cursor)
    end = min(start + size, len(keys))
    return start, end, encode_cursor(end, keys[end - 1]) if end < len(keys) else None


def _start_of(keys: Sequence[str], cursor: str) -> int:
    place, key = decode_cursor(cursor)
    if 0 < place <= len(keys) and keys[place - 1] == key:
        return place
    try:
        return keys.index(key) + 1
    except ValueError:
        return min(place, len(keys))


def encode_cursor(place: int, key: str) -> str:
    """Return the cursor of a page that begins at `place`, behind `key`."""
    from binascii import b2a_base64

    return b2a_base64(f"{place}:{key}".encode(), newline=False).decode("ascii")


def decode_cursor(cursor: str) -> tuple[int, str]:
    """Return the place and the key in a cursor. Raises InvalidParams."""
    from binascii import Error, a2b_base64

    try:
        place, colon, key = a2b_base64(cursor.encode("ascii")).decode().partition(":")
    except (Error, ValueError):
        raise InvalidParams("cursor: unreadable") from None
    if not colon or not place.isascii() or not place.isdigit() or len(place) > 9:
        raise InvalidParams("cursor: unreadable")
    return int(place), key
