"""Signing in at an authorization server: OpenID Connect's authorization code flow with PKCE (RFC 7636).

A browser that begins gets a cookie with a random token, for `LOGIN_SECONDS`. State, nonce and PKCE's verifier
are derived from it, so nothing is stored, and any process can finish a sign-in that another one has begun. A
browser without that cookie cannot finish it. The server exchanges the code for an ID token. PyJWT checks its
signature, issuer, audience, times and nonce (OpenID Connect Core 1.0, 3.1.3.7), with keys that only the
configured issuer's metadata names. Its claims say the role, by rules of the guard's file. The person
is ``ISSUER#SUBJECT``, the owner of the same person's access tokens.
"""

from __future__ import annotations

import asyncio
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest
from threading import BoundedSemaphore
from time import monotonic
from urllib.parse import quote, urlencode

from fastrpc import diagnostics
from fastrpc.errors import FastrpcError, UsageError
from fastrpc.guard.approvals.display import visible_name
from fastrpc.transports.http.guard import is_loopback
from fastrpc.transports.http.issuers import LEEWAY_SECONDS, metadata_addresses
from fastrpc.transports.http.signing_keys import (
    ALL_FETCHES_SECONDS,
    FAMILIES,
    FETCH_SECONDS,
    JSON_HEADERS,
    KeySet,
    Unavailable,
    checked_address,
    document,
    json_of,
)
from fastrpc.transports.http.token_source import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any, TypeVar

    from fastrpc.guard.policy.dashboard_config import DashboardConfig

    Answer = TypeVar("Answer")

CALLBACK = "/enter/callback"
LOGIN_SECONDS = 600
METADATA_SECONDS = 300.0
AT_ONCE = 2
"""How many sign-ins wait for an authorization server at a time: each takes a thread."""
LONGEST_CODE = 4096
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
OTHER_BROWSER = "This sign-in was begun in another browser, or took longer than ten minutes: begin again."
REFUSED = "The authorization server has not signed you in: {reason}"
NOT_THERE = "The authorization server does not answer as it should; see the server's log"
BUSY = "Too many people sign in at this moment: try again."
NO_ROLE = "You are known, but no rule in the guard's file gives you a role here."


FROM_THE_SERVER = (Unavailable, InvalidToken, UsageError, asyncio.TimeoutError)


class SignInFailed(FastrpcError):
    """A sign-in that did not succeed, with the sentence for the person. `values` are for the names in
    braces."""

    def __init__(self, message: str, **values: str) -> None:
        super().__init__(message)
        self.values = values


class OpenIdSignIn:
    """Signs people in. `config` returns the table of the guard's file, which may change; `prefix` is the path
    of the pages. Methods block, for seconds if the authorization server is slow; they raise SignInFailed."""

    def __init__(self, config: Callable[[], DashboardConfig], prefix: str) -> None:
        self._config = config
        self._prefix = prefix
        self._waiting = BoundedSemaphore(AT_ONCE)
        self._metadata: tuple[str, float, dict[str, str]] = ("", 0.0, {})

    @property
    def server(self) -> str:
        """The name of the authorization server, "" if the guard's file has none."""
        return self._config().issuer.partition("://")[2].partition("/")[0]

    def begin(self) -> tuple[str, str]:
        """Return the address to which the browser goes, and the token for its cookie."""
        config, token = self._config(), secrets.token_urlsafe(32)
        if not config.issuer:
            raise SignInFailed(NO_ROLE)
        verifier = derived(token, "verifier")
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": config.client_id,
            "redirect_uri": self._redirect_uri(config),
            "scope": " ".join(["openid", *config.scopes]),
            "state": derived(token, "state"),
            "nonce": derived(token, "nonce"),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        place = self._run(lambda client: self._endpoints(client, config.issuer))["authorization_endpoint"]
        return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}", token

    def finish(self, token: str, answer: Mapping[str, str]) -> tuple[str, str]:
        """Return the person and the role. `token` is that of the browser's cookie, `answer` the query with
        which the authorization server has sent it back."""
        config = self._config()
        if not token or not _is_same(answer.get("state"), derived(token, "state")):
            raise SignInFailed(OTHER_BROWSER)
        if answer.get("iss", config.issuer) != config.issuer:  # RFC 9207
            raise SignInFailed(REFUSED, reason="it is another issuer")
        if "error" in answer:
            raise SignInFailed(REFUSED, reason=visible_name(answer["error"][:100]))
        code = answer.get("code", "")
        if not code or len(code) > LONGEST_CODE:
            raise SignInFailed(REFUSED, reason="it has sent no code")
        claims = self._run(lambda client: self._claims(client, config, code, token))
        role = config.role_of(claims)
        if role is None:
            raise SignInFailed(NO_ROLE)
        return f"{config.issuer}#{claims['sub']}", role

    def _redirect_uri(self, config: DashboardConfig) -> str:
        return f"{config.url}{self._prefix}{CALLBACK}"

    def _run(self, work: Callable[[Any], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return what the authorization server answers."""
        import httpx

        from fastrpc.regular_files import check_certificates

        async def working() -> Answer:
            # No proxies and no `.netrc` from the environment, no redirects: only the configured address.
            context = httpx.create_ssl_context()
            async with httpx.AsyncClient(timeout=FETCH_SECONDS, trust_env=False, verify=context) as client:
                return await asyncio.wait_for(work(client), ALL_FETCHES_SECONDS)

        if not self._waiting.acquire(blocking=False):
            raise SignInFailed(BUSY)
        try:
            check_certificates()
            return asyncio.run(working())
        except (*FROM_THE_SERVER, httpx.HTTPError, OSError) as error:
            words = str(error) if isinstance(error, (Unavailable, InvalidToken)) else type(error).__name__
            diagnostics.write("error", f"dashboard: a sign-in has failed: {words:.200}")
            raise SignInFailed(NOT_THERE) from None
        finally:
            self._waiting.release()

    async def _endpoints(self, client: Any, issuer: str) -> dict[str, str]:
        """Return the addresses in the issuer's metadata, which are kept for some minutes."""
        kept, until, endpoints = self._metadata
        if kept == issuer and monotonic() < until:
            return endpoints
        is_here = is_loopback(checked_address(issuer))
        for address in metadata_addresses(issuer):
            metadata = await document(client, address)
            if metadata is None:
                continue
            if metadata.get("issuer") != issuer:
                raise Unavailable("its metadata names another issuer")
            endpoints = {name: str(metadata.get(name, "")) for name in ENDPOINTS}
            for each in endpoints.values():
                checked_address(each.partition("?")[0], loopback=is_here)
            methods = metadata.get("token_endpoint_auth_methods_supported")
            if isinstance(methods, list) and "client_secret_basic" not in methods:
                endpoints["is_in_form"] = "yes"
            self._metadata = (issuer, monotonic() + METADATA_SECONDS, endpoints)
            return endpoints
        raise Unavailable("it has no metadata")

    async def _claims(self, client: Any, config: DashboardConfig, code: str, token: str) -> dict[str, Any]:
        """Exchange a code for an ID token, and return its claims."""
        endpoints = await self._endpoints(client, config.issuer)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri(config),
            "client_id": config.client_id,
            "code_verifier": derived(token, "verifier"),
        }
        options: dict[str, Any] = {}
        if config.client_secret and "is_in_form" in endpoints:
            form["client_secret"] = config.client_secret
        elif config.client_secret:  # RFC 6749, 2.3.1
            options["auth"] = (quote(config.client_id, safe=""), quote(config.client_secret, safe=""))
        place = endpoints["token_endpoint"]
        async with client.stream("POST", place, data=form, headers=JSON_HEADERS, **options) as response:
            if response.status_code != 200:
                raise Unavailable(f"its answer to the code has status {response.status_code}")
            found = await json_of(response)
        id_token = found.get("id_token") if isinstance(found, dict) else None
        if not isinstance(id_token, str):
            raise Unavailable("its answer to the code has no ID token")
        return await verified(id_token, config, endpoints["jwks_uri"], derived(token, "nonce"))


async def verified(id_token: str, config: DashboardConfig, jwks_uri: str, nonce: str) -> dict[str, Any]:
    """Return the claims of an ID token, after checking all that OpenID Connect demands. Raises InvalidToken
    and Unavailable."""
    import jwt

    try:
        header = jwt.get_unverified_header(id_token)
        algorithm = header.get("alg")
        if algorithm not in [name for names in FAMILIES.values() for name in names] or "crit" in header:
            raise InvalidToken("the ID token is signed in a way that is not accepted")
        key = await KeySet(jwks_uri).key(header.get("kid"), algorithm)
        claims: dict[str, Any] = jwt.decode(
            id_token,
            key,
            algorithms=[algorithm],
            issuer=config.issuer,
            audience=config.client_id,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud", "sub", "nonce"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise InvalidToken(f"the ID token is not valid ({type(error).__name__})") from None
    audience, subject = claims["aud"], claims["sub"]
    is_for_others = isinstance(audience, list) and len(audience) > 1
    if claims.get("azp", None if is_for_others else config.client_id) != config.client_id:
        raise InvalidToken("the ID token is for another client")
    if not _is_same(claims["nonce"], nonce):
        raise InvalidToken("the ID token is of another sign-in")
    if not isinstance(subject, str) or not subject.isprintable() or not 0 < len(subject) <= 255:
        raise InvalidToken("the ID token names no person")
    return claims


def derived(token: str, use: str) -> str:
    """Return the state, nonce or verifier of a sign-in. None gives the token or another one away."""
    return sha256(f"{use} of the sign-in {token}".encode("utf-8", "surrogatepass")).hexdigest()


def _is_same(given: object, wanted: str) -> bool:
    return isinstance(given, str) and compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())
