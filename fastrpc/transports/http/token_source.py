"""The contract of what knows bearer tokens: `auth` asks each `TokenSource`, and answers for what it raises.

Sources are given tokens, a file of tokens and a function (`auth`), and authorization servers (`issuers`).
The two exceptions are the errors of RFC 6750, 3.1; `auth` makes the challenge and the status of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fastrpc.transports.http.guard import Admission


class InvalidToken(Exception):
    """A token that is known to be wrong; the text says why, without a word of the token."""


class InsufficientScope(Exception):
    """A right token, but not for what is asked."""


class TokenSource(Protocol):
    """Where tokens are known."""

    def known(self, token: bytes) -> Admission | None:
        """Return whose a token is, if that can be told at once."""

    async def find(self, token: bytes) -> Admission | None:
        """Return whose a token is, None for one that is unknown here.

        Raises InvalidToken, InsufficientScope, and Refused where it cannot be told.
        """
