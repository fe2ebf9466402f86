"""`JWTVerifier`: tokens that are JWTs, signed with a key, a shared secret, or a key of a JWKS address.

One algorithm is accepted, the configured one: neither ``none``, nor a public key used as a shared secret. The
key comes from the configuration; what a token's header names (`jku`, `x5u`, `jwk`) is ignored, and ``crit``
refused. Signatures are checked by PyJWT, keys fetched and kept by `fastrpc.transports.http.signing_keys`.
"""

from __future__ import annotations

from math import isfinite
from time import time
from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.access import AccessToken
from fastrpc.compat.auth.provider import Checking, TokenVerifier
from fastrpc.errors import UsageError
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.issuers import is_time, scopes_of
from fastrpc.transports.http.signing_keys import (
    KeySet,
    Unavailable,
    checked_address,
    import_libraries,
    without_query,
)
from fastrpc.transports.http.token_source import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SECRETS = ("HS256", "HS384", "HS512")
ALGORITHMS = (
    *SECRETS,
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"),
    *("EdDSA", "Ed25519", "Ed448"),
)
EDWARDS = ("Ed25519", "Ed448")
"""Names of RFC 9864 for what PyJWT knows as EdDSA."""
LEEWAY_SECONDS = 30
"""By how much the clock of the issuer may be fast: for ``nbf`` alone, an expired token is expired."""


class JWTVerifier(Checking, TokenVerifier):
    """Verifies JWTs, with either `public_key` (PEM, or the shared secret of HS256, HS384, HS512) or
    `jwks_uri`.

    `issuer` and `audience`: one or several that are accepted, None: any. `algorithm`: by default RS256. Keys
    are fetched by `http_client`, an `httpx.AsyncClient`, if there is one, and at most every
    `jwks_refresh_interval` seconds. Raises ValueError.
    """

    def __init__(
        self,
        *,
        public_key: str | bytes | None = None,
        jwks_uri: str | None = None,
        issuer: str | list[str] | None = None,
        audience: str | list[str] | None = None,
        algorithm: str | None = None,
        required_scopes: Iterable[str] | str | None = None,
        base_url: Any = None,
        ssrf_safe: bool = False,
        http_client: Any = None,
        jwks_refresh_interval: float = 30.0,
    ) -> None:
        super().__init__(base_url, required_scopes)
        self.algorithm = algorithm or "RS256"
        self.public_key = public_key
        self.jwks_uri = None if jwks_uri is None else str(jwks_uri)
        self.issuer = issuer
        self.audience = audience
        self._name = "EdDSA" if self.algorithm in EDWARDS else self.algorithm
        self._signatures: Any = None
        self._key: Any = None
        self._keys: KeySet | None = None
        self._check_options(ssrf_safe, jwks_refresh_interval)
        if self.jwks_uri:
            pause = None if jwks_refresh_interval == 30.0 else jwks_refresh_interval
            self._keys = KeySet(self.jwks_uri, client=http_client, again_seconds=pause)

    def _check_options(self, ssrf_safe: bool, interval: float) -> None:
        if bool(self.public_key) is bool(self.jwks_uri):
            raise ValueError("JWTVerifier: expected public_key or jwks_uri, one of them")
        if self.algorithm not in ALGORITHMS:
            raise ValueError(
                f"JWTVerifier: algorithm: expected one of {', '.join(ALGORITHMS)}; got {self.algorithm!r:.60}"
            )
        if ssrf_safe:
            raise ValueError("JWTVerifier: ssrf_safe is not offered: jwks_uri is the operator's own address")
        if not isfinite(interval) or interval < 0:
            raise ValueError("JWTVerifier: jwks_refresh_interval: expected seconds, 0 or more")
        if self.algorithm in SECRETS:
            if self.jwks_uri:
                raise ValueError(f"JWTVerifier: {self.algorithm} needs a shared secret, not a jwks_uri")
            if b"-----BEGIN" in _bytes_of(self.public_key or b""):
                raise ValueError(f"JWTVerifier: {self.algorithm} needs a shared secret, not a key in PEM")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(algorithm={self.algorithm!r}, issuer={self.issuer!r})"

    def prepare(self) -> None:
        import_libraries("JWTVerifier")
        import jwt

        self._signatures = jwt.PyJWS(algorithms=[self._name])
        if self.algorithm in EDWARDS:
            self._signatures.register_algorithm(self.algorithm, jwt.algorithms.OKPAlgorithm())
        if self._keys is None:
            try:
                self._key = self._signatures.get_algorithm_by_name(self._name).prepare_key(self.public_key)
            except (jwt.PyJWTError, ValueError, TypeError):
                raise UsageError(
                    f"JWTVerifier: public_key cannot be used with {self.algorithm}: expected "
                    f"{'a shared secret' if self.algorithm in SECRETS else 'a public key in PEM'}"
                ) from None
        elif self.jwks_uri is not None:
            try:
                checked_address(self.jwks_uri.partition("?")[0])
            except UsageError:
                where = without_query(self.jwks_uri)
                diagnostics.write("warning", f"JWTVerifier: keys come over plain HTTP: {where:.200}")

    async def check(self, token: str) -> AccessToken | None:
        """Return the claims of a token. Raises InvalidToken, InsufficientScope, and Refused (503) if the keys
        cannot be fetched."""
        if self._signatures is None:
            self.prepare()
        import jwt

        text = token.encode("utf-8", "surrogateescape")
        try:
            header = jwt.get_unverified_header(text)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken("not an access token") from None
        if header.get("alg") != self.algorithm or "crit" in header:
            raise InvalidToken("the token is signed in a way that is not taken")
        claims = self._claims(text, await self._key_for(header))
        self._check_claims(claims)
        scopes = scopes_of(claims)
        self.check_scopes(scopes)
        expires, subject = claims.get("exp"), claims.get("sub")
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject or "unknown"),
            scopes=scopes,
            expires_at=None if expires is None else int(expires),
            subject=subject if isinstance(subject, str) else None,
            claims=claims,
        )

    async def _key_for(self, header: dict[str, Any]) -> Any:
        if self._keys is None:
            return self._key
        try:
            return (await self._keys.key(header.get("kid"), self._name)).key
        except Unavailable:  # logged, once for each attempt
            raise Refused(
                503, "The keys of the tokens cannot be fetched", -32603, headers=[(b"retry-after", b"10")]
            ) from None

    def _claims(self, token: bytes, key: Any) -> dict[str, Any]:
        """Return the claims of a token whose signature is right. Raises InvalidToken."""
        from json import loads

        import jwt

        try:
            claims = loads(self._signatures.decode(token, key, algorithms=[self.algorithm]))
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken("the token's signature is not right") from None
        if not isinstance(claims, dict):
            raise InvalidToken("the token's claims are malformed")
        return claims

    def _check_claims(self, claims: dict[str, Any]) -> None:
        """Check times, issuer and audience. Raises InvalidToken."""
        now, expires, begins = time(), claims.get("exp"), claims.get("nbf")
        if not all(each is None or is_time(each) for each in (expires, begins)):
            raise InvalidToken("the token's claims are malformed")
        if expires is not None and now >= expires:
            raise InvalidToken("the token has expired")
        if begins is not None and now < begins - LEEWAY_SECONDS:
            raise InvalidToken("the token is not valid yet")
        if self.issuer and not self._validate_issuer(claims.get("iss")):
            raise InvalidToken("the token is from another issuer")
        if self.audience and not _listed(claims.get("aud")) & _listed(self.audience):
            raise InvalidToken("the token is for another audience")

    def _validate_issuer(self, issuer: Any) -> bool:
        """Whether an issuer is accepted: a subclass may have another rule."""
        return isinstance(issuer, str) and issuer in _listed(self.issuer)


class BearerAuthProvider(JWTVerifier):
    """`JWTVerifier` by its name in early versions of FastMCP 2."""


def _listed(given: Any) -> set[str]:
    """Return texts that may be one or a list."""
    if isinstance(given, str):
        return {given}
    return {each for each in given if isinstance(each, str)} if isinstance(given, (list, tuple)) else set()


def _bytes_of(key: str | bytes) -> bytes:
    return key.encode("utf-8", "replace") if isinstance(key, str) else key
