"""JSON according to RFC 8259: Python's parser also accepts NaN and infinities, which are invalid there.

Integers keep every digit, which orjson's do not.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


_decoder: Any = json.JSONDecoder(parse_constant=_refuse)
_scan = _decoder.scan_once


def decode(text: str) -> Any:
    """Return the value of a text. Raises ValueError, and RecursionError for one that is nested too deeply."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1  # leading white space, or invalid JSON
    if end != len(text):
        value = _decoder.decode(text)
    return value
