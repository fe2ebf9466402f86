"""Says quickly of most texts that there is no secret to take out of them."""

from typing import Any

def may_match(text: str) -> bool:
    """Say whether one of `fastrpc.redaction.PATTERNS` may be found in a text; False is certain."""

class Secrets:
    """Values that are secret: of the environment, as it was when it was read, and what was hidden by hand."""

    @property
    def values(self) -> list[str]: ...
    def __init__(self, hidden: dict[str, None]) -> None: ...
    def take(self, variables: dict[Any, Any], before: dict[Any, Any], values: list[str]) -> None:
        """Keep `values`, the secrets among `variables`, which is what ``os.environ`` holds within. `before`
        is a copy of it, made before they were read.
        """
    def are_current(self) -> bool:
        """Is the environment as it was?"""
    def none_in(self, text: str) -> bool:
        """Is a text surely without a secret?"""
