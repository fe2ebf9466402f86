"""Finds quickly that a text contains no secret to redact, for most texts."""

from typing import Any

def may_match(text: str) -> bool:
    """Say whether one of `fastrpc.redaction.PATTERNS` may be found in a text; False is certain."""

def changes_of(variables: dict[Any, Any]) -> int:
    """Return a number that is another one once the dict has changed; 0 where that cannot be said."""

class Secrets:
    """Values that are secret: of the environment, as it was when it was read, and what was hidden by hand."""

    @property
    def values(self) -> list[str]: ...
    def __init__(self, hidden: dict[str, None]) -> None: ...
    def take(self, environ: object, variables: dict[Any, Any], changes: int, values: list[str]) -> None:
        """Keep `values`, the secrets in `environ`, which is ``os.environ`` and holds `variables` within;
        `changes` is what changes_of() these was before they were read, 0 if they are not what it holds.
        """
    def are_current(self) -> bool:
        """Is the environment as it was?"""
    def none_in(self, text: str) -> bool:
        """Is a text surely without a secret?"""
