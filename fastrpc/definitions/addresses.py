"""Where the resources of a mounted server are, for the server that it is mounted in.

`Addresses` translates between the URIs of both. Where none are given, both have the same.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Addresses:
    """The addresses of a server that is mounted without a prefix before them: its own."""

    __slots__ = ()

    def here(self, uri: str) -> str:
        """Return what a URI, or a template of URIs, of the mounted server is in the other one."""
        return uri

    def there(self, uri: str) -> str | None:
        """Return what a URI of the other server is in the mounted one; None if it is not a URI of that."""
        return uri


class AddressesInTurn(Addresses):
    """Several translations, the mounted server's own first."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Sequence[Addresses]) -> None:
        self._steps = steps

    def here(self, uri: str) -> str:
        for step in self._steps:
            uri = step.here(uri)
        return uri

    def there(self, uri: str) -> str | None:
        own: str | None = uri
        for step in reversed(self._steps):
            own = None if own is None else step.there(own)
        return own


UNCHANGED = Addresses()
