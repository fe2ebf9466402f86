"""The text of a token: ``frpc_ID_SECRET``, an id of 12 characters and 256 random bits in base64url.

The id is not secret: lists, logs and commands identify a token by it. Only the SHA-256 of the whole text is
stored; a salt or a slow hash would add nothing to 256 random bits.
"""

from __future__ import annotations

import secrets
from hashlib import sha256

PREFIX = "frpc_"
ID_LENGTH = 12
ID_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"
SECRET_BYTES = 32

_BEGIN = PREFIX.encode()
_ID_END = len(PREFIX) + ID_LENGTH
_LENGTH = _ID_END + 1 + 43
_UNDERSCORE = ord("_")


def new_token() -> tuple[str, str]:
    """Return the id and the text of a new token."""
    token_id = "".join(secrets.choice(ID_CHARACTERS) for _ in range(ID_LENGTH))
    return token_id, f"{PREFIX}{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def id_of(token: bytes) -> str | None:
    """Return the id in the text of a token, None if the text is not a token of this kind."""
    if len(token) != _LENGTH or token[_ID_END] != _UNDERSCORE or not token.startswith(_BEGIN):
        return None
    return token[len(_BEGIN) : _ID_END].decode("latin-1")


def digest_of(token: bytes) -> bytes:
    """Return the digest of a token, which is stored."""
    return sha256(token).digest()
