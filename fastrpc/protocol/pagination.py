"""Pages of a list: cursors that name the start of the next page (MCP, utilities: pagination).

A cursor contains the last key of a page and its position. It survives changes of the list and restarts: the
next page begins after the key if it is still in the list, else at the same position. The server keeps no
state.
"""

from __future__ import annotations

from fastrpc.errors import InvalidParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def cursor_of(params: dict[str, object]) -> str | None:
    """Return the cursor of a list request. Raises InvalidParams if it is not a string."""
    cursor = params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidParams("cursor: expected a string")
    return cursor


def page_of(keys: Sequence[str], cursor: str | None, size: int) -> tuple[int, int, str | None]:
    """Return a page's start and end in `keys`, and the next cursor, None at the end. Raises InvalidParams."""
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
    """Return the cursor of the page that begins at `place`, after `key`."""
    from binascii import b2a_base64

    return b2a_base64(f"{place}:{key}".encode(), newline=False).decode("ascii")


def decode_cursor(cursor: str) -> tuple[int, str]:
    """Return the position and the key in a cursor. Raises InvalidParams."""
    from binascii import Error, a2b_base64

    try:
        place, colon, key = a2b_base64(cursor.encode("ascii")).decode().partition(":")
    except (Error, ValueError):
        raise InvalidParams("cursor: unreadable") from None
    if not colon or not place.isascii() or not place.isdigit() or len(place) > 9:
        raise InvalidParams("cursor: unreadable")
    return int(place), key
