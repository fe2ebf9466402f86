"""How the state that clients carry between the rounds of a call is protected: names of the official SDK 2.x.

fastrpc signs that state itself (docs/compat.md). `RequestStateSecurity(keys=[…])` says with which key, so
that several processes of a server accept what another of them has signed.
"""

from __future__ import annotations

import os

from fastrpc.signed_texts import SHORTEST_KEY, TextKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class InvalidRequestState(Exception):
    """A state that a client has sent back is none that the server gave it."""


class RequestStateSecurity:
    """The first of `keys`, each at least 32 bytes, signs and all verify; without keys they are those of
    FASTRPC_SECRET, or one is random.

    `codec`, `ttl`, `bind_principal` and `audience` have no effect: the signature is fastrpc's, it holds for
    the principal and the call it was made for, and for as long as fastrpc says. Raises ValueError.
    """

    def __init__(
        self,
        *,
        keys: Sequence[bytes | bytearray | str] | None = None,
        codec: Any = None,
        ttl: float = 600.0,
        bind_principal: Callable[[Any], str | None] | None = None,
        audience: str | None = None,
    ) -> None:
        if (keys is None) == (codec is None):
            raise ValueError("RequestStateSecurity: expected either keys or codec")
        if not 0 < ttl < float("inf"):
            raise ValueError(f"ttl: expected a number of seconds, got {ttl!r:.80}")
        self.signing_keys = None if keys is None else _signing_keys(keys)
        self.codec = codec
        self.ttl = ttl
        self.bind_principal = bind_principal
        self.audience = audience

    @classmethod
    def ephemeral(cls, *, ttl: float = 600.0, audience: str | None = None) -> RequestStateSecurity:
        """Return one with a random key, for a server of one process."""
        return cls(keys=[os.urandom(SHORTEST_KEY)], ttl=ttl, audience=audience)


def _signing_keys(keys: Sequence[Any]) -> TextKeys:
    if not keys:
        raise ValueError("keys: expected at least one")
    found = [key.encode() if isinstance(key, str) else bytes(key) for key in keys]
    if any(len(key) < SHORTEST_KEY for key in found):
        raise ValueError(f"keys: expected at least {SHORTEST_KEY} bytes each")
    return TextKeys(tuple(found), are_shared=False)
