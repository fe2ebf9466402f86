"""Access tokens of external authorization servers: signed JWTs (RFC 9068), their keys fetched and kept.

A token is valid if a configured issuer's key has signed it with an asymmetric algorithm, for this server
(RFC 8707), if it has not expired, and has the required scopes. Keys are fetched only from the configured
issuers: `jku`, `x5u` and `jwk` of a token are ignored. They are fetched for the first token, again for an
unknown key id (at most every 30 s), and every hour in the background; if the issuer is down they are used
for a day, then requests are refused (503). PyJWT checks signatures; it and httpx are imported before the
server starts, not by the first request. A result is cached for at most a minute.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from time import monotonic, time

from fastrpc import diagnostics
from fastrpc.errors import UsageError
from fastrpc.transports.http.guard import HOST, Admission, Refused, is_loopback
from fastrpc.transports.http.token_source import InsufficientScope, InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

FAMILIES = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The algorithms for each type of key. Not `none`, and none with a shared secret."""
TYPES = ("at+jwt", "application/at+jwt", "jwt")
LEEWAY_SECONDS = 30
KEPT_SECONDS = 60.0
KEPT = 1024
FETCH_SECONDS = 5.0
ALL_FETCHES_SECONDS = 10.0
LONGEST_DOCUMENT = 256 * 1024
MOST_KEYS = 64
KEYS_SECONDS = 3600.0
LONGEST_KEYS_SECONDS = 24 * 3600.0
AGAIN_SECONDS = 30.0
AFTER_FAILURE = 5.0
LIBRARIES = ("httpx", "jwt", "cryptography.hazmat.primitives.asymmetric.rsa")
"""PyJWT works without the last, but then supports only shared secrets."""


class Unavailable(Exception):
    """The keys of an authorization server cannot be fetched."""


class Issuers:
    """Checks the tokens of authorization servers. `audience` is their identifier of this server."""

    def __init__(
        self,
        issuers: Iterable[str],
        audience: str,
        *,
        scopes: Iterable[str] = (),
        now: Callable[[], float] = time,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        _import_libraries()
        self._issuers = {issuer: Issuer(issuer, clock) for issuer in issuers}
        self._audience = audience
        self._scopes = frozenset(scopes)
        self._now = now
        self._clock = clock
        self._kept: dict[bytes, Admission] = {}

    def known(self, token: bytes) -> Admission | None:
        admission = self._kept.get(sha256(token).digest())
        if admission is None or admission.until is None or self._clock() >= admission.until:
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
            raise InvalidToken("this is no access token") from None
        header, claims = unproven["header"], unproven["payload"]
        given = claims.get("iss")
        issuer = self._issuers.get(given) if isinstance(given, str) else None
        if issuer is None:
            raise InvalidToken("the token is from another issuer")
        algorithms = [name for names in FAMILIES.values() for name in names]
        if header.get("alg") not in algorithms or "crit" in header:
            raise InvalidToken("the token is signed in a way that is not taken")
        if str(header.get("typ", "JWT")).lower() not in TYPES:
            raise InvalidToken("this is no access token")
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
            raise InvalidToken("the token's signature is not right") from None
        return claims

    def _check_claims(self, claims: dict[str, Any], issuer: str) -> Admission:
        """Check expiry and scopes of a verified token."""
        now = self._now()
        expires, begins, subject = claims["exp"], claims.get("nbf", 0), claims["sub"]
        if not _is_time(expires) or not _is_time(begins) or not isinstance(subject, str) or not subject:
            raise InvalidToken("the token's claims are malformed")
        if now >= expires + LEEWAY_SECONDS:
            raise InvalidToken("the token has expired")
        if now < begins - LEEWAY_SECONDS:
            raise InvalidToken("the token is not valid yet")
        if not self._scopes <= _scopes_of(claims):
            raise InsufficientScope
        # An issuer's address has no fragment, so no two pairs make the same text.
        left = min(KEPT_SECONDS, expires + LEEWAY_SECONDS - now)
        return Admission(f"{issuer}#{subject}", self._clock() + left)


class Issuer:
    """One authorization server, and its keys."""

    def __init__(self, address: str, clock: Callable[[], float]) -> None:
        self.address = address
        self._authority = _checked(address)
        self._clock = clock
        self._keys: list[dict[str, Any]] = []
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._trouble = False
        """Whether the last fetch has failed."""

    async def key(self, id: Any, algorithm: str) -> Any:
        """Return the key for a key id. Raises InvalidToken, and Unavailable."""
        found = self._find(id, algorithm)
        age = self._clock() - self._fetched
        if found is None or age > KEYS_SECONDS:
            self._fetch_again()
            if found is None or age > LONGEST_KEYS_SECONDS:
                found = await self._find_fetched(id, algorithm)
        import jwt

        try:
            return jwt.PyJWK(found, algorithm=algorithm)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            raise InvalidToken("the issuer's key cannot be used") from None

    def _find(self, id: Any, algorithm: str) -> dict[str, Any] | None:
        """Return the only key that matches; without a key id several may match, and None is returned."""
        fitting = [
            key
            for key in self._keys
            if (id is None or key.get("kid") == id)
            and algorithm in FAMILIES.get(str(key.get("kty")), ())
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
        ]
        return fitting[0] if len(fitting) == 1 else None

    async def _find_fetched(self, id: Any, algorithm: str) -> dict[str, Any]:
        """Return a key after fetching the keys, unless that is under way or has just been done."""
        if self._fetching is not None:
            await asyncio.shield(self._fetching)
        if self._trouble:
            raise Unavailable
        found = self._find(id, algorithm)
        if found is None:
            raise InvalidToken("the token is signed with a key that the issuer does not show")
        return found

    def _fetch_again(self) -> None:
        """Begin to fetch the keys, unless that was tried a moment ago: forged tokens must not cause a request
        to the issuer each.
        """
        now = self._clock()
        if now - self._tried >= (AFTER_FAILURE if self._trouble else AGAIN_SECONDS):
            self._tried = now
            self._fetching = asyncio.ensure_future(self._fetch())

    async def _fetch(self) -> None:
        """Fetch the keys by way of the server's metadata (RFC 8414, OpenID Discovery)."""
        import httpx

        from fastrpc.regular_files import check_certificates

        try:
            # No proxies and no `.netrc` from the environment, no redirects: only the configured address.
            check_certificates()
            context = httpx.create_ssl_context()
            async with httpx.AsyncClient(timeout=FETCH_SECONDS, trust_env=False, verify=context) as client:
                keys = await asyncio.wait_for(self._keys_from(client), ALL_FETCHES_SECONDS)
        except Exception as error:  # whatever another server sends
            words = str(error) if isinstance(error, Unavailable) else f"({type(error).__name__})"
            diagnostics.write("error", f"{self.address}: its keys cannot be fetched: {words}")
            self._trouble = True
        else:
            self._keys = [key for key in keys[:MOST_KEYS] if isinstance(key, dict)]
            self._fetched = self._clock()
            self._trouble = False

    async def _keys_from(self, client: Any) -> list[Any]:
        for address in _metadata_addresses(self.address):
            metadata = await _document(client, address)
            if metadata is None:
                continue
            if metadata.get("issuer") != self.address:
                raise Unavailable(f"its metadata names the issuer {metadata.get('issuer')!r:.200}")
            found = metadata.get("jwks_uri")
            if not isinstance(found, str):
                raise Unavailable("its metadata has no jwks_uri")
            try:
                # Some issuers tell their keys apart by the query.
                _checked(found.partition("?")[0], loopback=is_loopback(self._authority))
            except UsageError:
                raise Unavailable("its jwks_uri is no https address") from None
            keys = (await _document(client, found) or {}).get("keys")
            if not isinstance(keys, list):
                raise Unavailable("its jwks_uri shows no keys")
            return keys
        raise Unavailable("it has no metadata")


def _import_libraries() -> None:
    """Import the libraries now, so that no request waits for it. Raises UsageError if one is missing."""
    from importlib import import_module

    for name in LIBRARIES:
        try:
            import_module(name)
        except ImportError as error:
            words = f'--auth-server: {error.name} is not installed; pip install "fastrpc-mcp[http]"'
            raise UsageError(words) from None


def _checked(address: str, *, loopback: bool = True) -> str:
    """Return the name in an address. Raises UsageError unless it is https, or http to this machine."""
    scheme, _, rest = address.partition("://")
    match = HOST.match(rest.partition("/")[0].lower())
    if (
        match is None
        or "#" in address
        or "?" in address
        or not (scheme == "https" or (scheme == "http" and loopback and is_loopback(match[1])))
    ):
        raise UsageError(
            f"--auth-server: expected an https address; got {address.partition('@')[2] or address:.200}"
        )
    return match[1]


def _metadata_addresses(issuer: str) -> list[str]:
    """Return the possible URLs of an issuer's metadata, in order (MCP 2025-11-25, authorization)."""
    scheme, _, rest = issuer.partition("://")
    authority, _, path = rest.partition("/")
    path = path.rstrip("/")
    root = f"{scheme}://{authority}"
    if not path:
        return [
            f"{root}/.well-known/{name}" for name in ("oauth-authorization-server", "openid-configuration")
        ]
    return [
        f"{root}/.well-known/oauth-authorization-server/{path}",
        f"{root}/.well-known/openid-configuration/{path}",
        f"{root}/{path}/.well-known/openid-configuration",
    ]


async def _document(client: Any, address: str) -> dict[str, Any] | None:
    """Return a JSON object, None where there is none. Raises Unavailable."""
    from json import loads

    # Uncompressed, so that a small response cannot expand to a large one.
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    async with client.stream("GET", address, headers=headers) as response:
        if response.status_code != 200:
            return None
        data = b""
        async for part in response.aiter_raw():
            data += part
            if len(data) > LONGEST_DOCUMENT:
                raise Unavailable("what it sends is too long")
    try:
        document = loads(data)
    except (ValueError, RecursionError):
        raise Unavailable("what it sends is not JSON") from None
    return document if isinstance(document, dict) else None


def _scopes_of(claims: dict[str, Any]) -> frozenset[str]:
    """Return a token's scopes: `scope`, or `scp` as some servers write it."""
    given = claims.get("scope", claims.get("scp", ""))
    if isinstance(given, str):
        return frozenset(given.split())
    return (
        frozenset(scope for scope in given if isinstance(scope, str))
        if isinstance(given, list)
        else frozenset()
    )


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
