"""Access tokens of external authorization servers: signed JWTs (RFC 9068), their keys fetched and kept.

A token is valid if a configured issuer's key has signed it with an asymmetric algorithm, for this server
(RFC 8707), if it has not expired, and has the required scopes. Its principal is ``ISSUER#SUBJECT``, unless
`principal_of` names it otherwise. Keys are fetched only from the configured
issuers (`signing_keys`): `jku`, `x5u` and `jwk` of a token are ignored. While an issuer is down and its keys
are too old, requests are refused (503). PyJWT checks signatures. A result is cached for at most a minute.
"""

from __future__ import annotations

from hashlib import sha256
from time import monotonic, time

from fastrpc.errors import UsageError
from fastrpc.transports.http.guard import Admission, Refused, is_loopback
from fastrpc.transports.http.signing_keys import (
    FAMILIES,
    SigningKeys,
    Unavailable,
    checked_address,
    document,
    import_libraries,
    keys_at,
)
from fastrpc.transports.http.token_source import InsufficientScope, InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    PrincipalOf = Callable[[str, Mapping[str, Any], Iterable[str]], str]
    """Names the principal of a verified token: of its issuer, its claims and its scopes."""

TYPES = ("at+jwt", "application/at+jwt", "jwt")
LEEWAY_SECONDS = 30
KEPT_SECONDS = 60.0
KEPT = 1024


class Issuers:
    """Checks the tokens of authorization servers. `audience` is their identifier of this server."""

    def __init__(
        self,
        issuers: Iterable[str],
        audience: str,
        *,
        scopes: Iterable[str] = (),
        principal_of: PrincipalOf | None = None,
    ) -> None:
        import_libraries()
        self._issuers = {issuer: Issuer(issuer) for issuer in issuers}
        self._audience = audience
        self._scopes = frozenset(scopes)
        self._principal_of = principal_of or _subject_of
        self._kept: dict[bytes, Admission] = {}

    def known(self, token: bytes) -> Admission | None:
        admission = self._kept.get(sha256(token).digest())
        if admission is None or admission.until is None or monotonic() >= admission.until:
            return None
        return admission

    async def find(self, token: bytes) -> Admission | None:
        """Return the principal of a token. Raises InvalidToken, InsufficientScope, and Refused (503)."""
        if token.count(b".") != 2:
            return None
        header, issuer = self._read(token)
        try:
            key = await issuer.key(header.get("kid"), header["alg"])
        except Unavailable:  # logged, once for each attempt
            raise Refused(
                503, "The authorization server does not answer", -32603, headers=[(b"retry-after", b"10")]
            ) from None
        claims = self._verified(token, key, header["alg"], issuer.address)
        admission = self._check_claims(claims, issuer.address)
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[sha256(token).digest()] = admission
        return admission

    def _read(self, token: bytes) -> tuple[dict[str, Any], Issuer]:
        """Return the header of an unverified token, and the configured issuer that it names."""
        import jwt

        try:
            unproven = jwt.api_jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise InvalidToken("not an access token") from None
        header, claims = unproven["header"], unproven["payload"]
        given = claims.get("iss")
        issuer = self._issuers.get(given) if isinstance(given, str) else None
        if issuer is None:
            raise InvalidToken("the token is from another issuer")
        algorithms = [name for names in FAMILIES.values() for name in names]
        if header.get("alg") not in algorithms or "crit" in header:
            raise InvalidToken("the token is signed in a way that is not accepted")
        if str(header.get("typ", "JWT")).lower() not in TYPES:
            raise InvalidToken("not an access token")
        return header, issuer

    def _verified(self, token: bytes, key: Any, algorithm: str, issuer: str) -> dict[str, Any]:
        """Return the claims of a token, after checking signature, issuer and audience."""
        import jwt

        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=issuer,
                audience=self._audience,
                options={
                    "require": ["exp", "iss", "aud", "sub"],
                    "verify_exp": False,  # below, by our own clock
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidAudienceError:
            raise InvalidToken("the token is for another audience") from None
        except jwt.MissingRequiredClaimError as error:
            raise InvalidToken(f"the token has no {error.claim}") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise InvalidToken("the token's signature is wrong") from None
        return claims

    def _check_claims(self, claims: dict[str, Any], issuer: str) -> Admission:
        """Check expiry and scopes of a verified token."""
        now = time()
        expires, begins, subject = claims["exp"], claims.get("nbf", 0), claims["sub"]
        if not is_time(expires) or not is_time(begins) or not isinstance(subject, str) or not subject:
            raise InvalidToken("the token's claims are malformed")
        if now >= expires + LEEWAY_SECONDS:
            raise InvalidToken("the token has expired")
        if now < begins - LEEWAY_SECONDS:
            raise InvalidToken("the token is not valid yet")
        scopes = scopes_of(claims)
        if not self._scopes.issubset(scopes):
            raise InsufficientScope
        left = min(KEPT_SECONDS, expires + LEEWAY_SECONDS - now)
        return Admission(self._principal_of(issuer, claims, scopes), monotonic() + left)


class Issuer(SigningKeys):
    """One authorization server, and its keys."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address
        self._authority = checked_address(address)

    async def _locate(self, client: Any) -> list[Any]:
        for address in metadata_addresses(self.address):
            metadata = await document(client, address)
            if metadata is None:
                continue
            if metadata.get("issuer") != self.address:
                raise Unavailable(f"its metadata names the issuer {metadata.get('issuer')!r:.200}")
            found = metadata.get("jwks_uri")
            if not isinstance(found, str):
                raise Unavailable("its metadata has no jwks_uri")
            try:
                # Some issuers tell their keys apart by the query.
                checked_address(found.partition("?")[0], loopback=is_loopback(self._authority))
            except UsageError:
                raise Unavailable("its jwks_uri is not an https address") from None
            return await keys_at(client, found, "its jwks_uri shows no keys")
        raise Unavailable("it has no metadata")


def metadata_addresses(issuer: str) -> list[str]:
    """Return the possible URLs of an issuer's metadata, in order (MCP 2025-11-25, authorization)."""
    scheme, _, rest = issuer.rstrip("/").partition("://")
    authority, slash, path = rest.partition("/")
    root, path = f"{scheme}://{authority}", slash + path
    names = ("oauth-authorization-server", "openid-configuration")
    addresses = [f"{root}/.well-known/{name}{path}" for name in names]
    return [*addresses, f"{root}{path}/.well-known/openid-configuration"] if path else addresses


def _subject_of(issuer: str, claims: Mapping[str, Any], scopes: Iterable[str]) -> str:
    # An issuer's address has no fragment, so no two pairs make the same text.
    return f"{issuer}#{claims['sub']}"


def scopes_of(claims: dict[str, Any]) -> list[str]:
    """Return a token's scopes: `scope`, or `scp` as some servers write it."""
    given = claims.get("scope", claims.get("scp", ""))
    if isinstance(given, str):
        return given.split()
    return [scope for scope in given if isinstance(scope, str)] if isinstance(given, list) else []


def is_time(value: Any) -> bool:
    """Whether a claim is a time in seconds (RFC 7519, 2: NumericDate)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
