"""`RSAKeyPair`: a key pair for tests, which signs tokens. Its private key is left out of representations."""

from __future__ import annotations

from time import time
from typing import Any

from fastrpc.compat.field_types import FieldType


class Secret:
    """A text that does not show in representations: `get_secret_value` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret('**********')"

    def __str__(self) -> str:
        return "**********"


class RSAKeyPair(FieldType):
    """An RSA key pair: `private_key` and `public_key` in PEM."""

    __slots__ = ("private_key", "public_key")

    def __init__(self, *, private_key: Any, public_key: str) -> None:
        self.private_key = Secret(private_key) if isinstance(private_key, str) else private_key
        self.public_key = public_key

    def __repr__(self) -> str:
        return "RSAKeyPair()"

    @classmethod
    def generate(cls) -> RSAKeyPair:
        """Return a new pair of 2,048 bits."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric import rsa

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        return cls(private_key=private.decode(), public_key=public.decode())

    def create_token(
        self,
        subject: str = "fastmcp-user",
        issuer: str = "https://fastmcp.example.com",
        audience: str | list[str] | None = None,
        scopes: list[str] | None = None,
        expires_in_seconds: int = 3600,
        additional_claims: dict[str, Any] | None = None,
        kid: str | None = None,
    ) -> str:
        """Return a token that is signed with RS256."""
        import jwt

        now = int(time())
        claims: dict[str, Any] = {
            "sub": subject,
            "iss": issuer,
            "iat": now,
            "exp": now + expires_in_seconds,
        }
        if audience:
            claims["aud"] = audience
        if scopes:
            claims["scope"] = " ".join(scopes)
        claims.update(additional_claims or {})
        # PyJWT refuses some claims of the wrong type, which a test may want to send.
        return jwt.api_jws.encode(
            _json(claims), self.private_key.get_secret_value(), "RS256", {"kid": kid} if kid else None
        )


def _json(claims: dict[str, Any]) -> bytes:
    from json import dumps

    return dumps(claims, separators=(",", ":")).encode()
