"""The contract of token sources: `auth` calls each `TokenSource`, and turns its exceptions into responses.

The sources are tokens of the configuration, a file, a function (`auth`), and authorization servers
(`issuers`). The two exceptions are the errors of RFC 6750, 3.1, for which `auth` makes challenge and status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fastrpc.transports.http.guard import Admission


class InvalidToken(Exception):
    """An invalid token. The message says why, and does not contain the token."""


class InsufficientScope(Exception):
    """A valid token without a scope that is needed."""


class TokenSource(Protocol):
    """Checks tokens."""

    def known(self, token: bytes) -> Admission | None:
        """Return the principal of a token if it is known without I/O, else None."""
        return None

    async def find(self, token: bytes) -> Admission | None:
        """Return the principal of a token, None if this source does not know it.

        Raises InvalidToken, InsufficientScope, and Refused if the source is not available.
        """
        return None
