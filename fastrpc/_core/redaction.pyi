"""Says quickly of most texts that there is no secret to take out of them."""

from typing import Any

def may_match(text: str) -> bool:
    """Say whether one of `fastrpc.masking.PATTERNS` may be found in a text; False is certain."""

class Snapshot:
    """What a dict held when it was looked at: its keys and values, by identity and in order."""

    def __init__(self, current: dict[Any, Any]) -> None: ...
    def is_of(self, current: dict[Any, Any]) -> bool:
        """Say whether a dict holds the same now."""
