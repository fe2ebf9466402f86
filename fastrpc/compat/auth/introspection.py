"""`IntrospectionTokenVerifier`: asks an authorization server about each token (RFC 7662).

A request takes at most `timeout_seconds`, its response has at most 256 KiB; it goes to the configured address
only, without redirects. Results are kept only if `cache_ttl_seconds` says so, by the token's digest. If the
server does not answer, requests are refused with 503.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import sha256
from time import monotonic, time
from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.access import AccessToken
from fastrpc.compat.auth.key_pair import Secret
from fastrpc.compat.auth.provider import Checking, TokenVerifier
from fastrpc.errors import UsageError
from fastrpc.redaction import hide
from fastrpc.transports.http.guard import Refused
from fastrpc.transports.http.issuers import is_time, scopes_of
from fastrpc.transports.http.signing_keys import JSON_HEADERS, Unavailable, json_of, without_query
from fastrpc.transports.http.token_source import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

METHODS = ("client_secret_basic", "client_secret_post")
MOST_KEPT = 10_000


class IntrospectionTokenVerifier(Checking, TokenVerifier):
    """Verifies tokens by the endpoint `introspection_url`, as the client `client_id` with its secret.

    `http_client` is an `httpx.AsyncClient` to be used. Raises ValueError.
    """

    def __init__(
        self,
        *,
        introspection_url: str,
        client_id: str,
        client_secret: Any,
        client_auth_method: str = "client_secret_basic",
        timeout_seconds: float = 10,
        required_scopes: Iterable[str] | str | None = None,
        base_url: Any = None,
        cache_ttl_seconds: float | None = None,
        max_cache_size: int | None = None,
        http_client: Any = None,
    ) -> None:
        super().__init__(base_url, required_scopes)
        if client_auth_method not in METHODS:
            raise ValueError(
                f"IntrospectionTokenVerifier: client_auth_method: expected {' or '.join(METHODS)}, "
                f"got {client_auth_method!r:.60}"
            )
        self.introspection_url = str(introspection_url)
        self.client_id = client_id
        self.client_secret = (
            client_secret if hasattr(client_secret, "get_secret_value") else Secret(client_secret)
        )
        self.client_auth_method = client_auth_method
        self.timeout_seconds = timeout_seconds
        self._http_client = http_client
        self._seconds = cache_ttl_seconds or 0
        self._most = MOST_KEPT if max_cache_size is None else max_cache_size
        self._kept: OrderedDict[bytes, tuple[float, AccessToken]] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(introspection_url={without_query(self.introspection_url)!r})"

    def prepare(self) -> None:
        hide(self._secret)
        try:
            __import__("httpx")
        except ImportError:
            raise UsageError(
                'IntrospectionTokenVerifier: httpx is not installed; pip install "fastrpc-mcp[http]"'
            ) from None

    @property
    def _secret(self) -> str:
        secret: str = self.client_secret.get_secret_value()
        return secret

    async def check(self, token: str) -> AccessToken | None:
        """Return what the server says of a token. Raises InvalidToken, InsufficientScope, and Refused (503)
        if it does not answer."""
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        kept = self._kept.get(digest)
        if kept is not None and monotonic() < kept[0]:
            return kept[1]
        found = self._read(token, await self._ask(token))
        if self._seconds > 0 and self._most > 0:
            seconds = self._seconds
            if found.expires_at is not None:
                seconds = min(seconds, found.expires_at - time())
            self._kept[digest] = (monotonic() + seconds, found)
            self._kept.move_to_end(digest)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found

    def _read(self, token: str, answer: dict[str, Any]) -> AccessToken:
        """Return what an answer says. Raises InvalidToken and InsufficientScope."""
        if answer.get("active") is not True:
            raise InvalidToken("the token is not active")
        expires, begins, subject = answer.get("exp"), answer.get("nbf"), answer.get("sub")
        if not all(each is None or is_time(each) for each in (expires, begins)):
            raise InvalidToken("the token's claims are malformed")
        if expires is not None and expires <= time():
            raise InvalidToken("the token has expired")
        scopes = scopes_of(answer)
        self.check_scopes(scopes)
        return AccessToken(
            token=token,
            client_id=str(answer.get("client_id") or subject or "unknown"),
            scopes=scopes,
            expires_at=None if expires is None else int(expires),
            subject=subject if isinstance(subject, str) else None,
            claims=answer,
        )

    async def _ask(self, token: str) -> dict[str, Any]:
        """Return the server's answer. Raises Refused."""
        try:
            return await asyncio.wait_for(self._answer(token), self.timeout_seconds)
        except Exception as error:  # whatever another server sends; the words may contain the token
            words = str(error) if isinstance(error, Unavailable) else f"({type(error).__name__})"
            where = without_query(self.introspection_url)
            diagnostics.write("error", f"{where:.200}: the token cannot be checked: {words}")
            raise Refused(
                503, "The token cannot be checked now", -32603, headers=[(b"retry-after", b"10")]
            ) from None

    async def _answer(self, token: str) -> dict[str, Any]:
        import httpx

        from fastrpc.regular_files import check_certificates

        if self._http_client is not None:
            return await self._post(self._http_client, token)
        check_certificates()
        async with httpx.AsyncClient(
            timeout=self.timeout_seconds, trust_env=False, verify=httpx.create_ssl_context()
        ) as client:
            return await self._post(client, token)

    async def _post(self, client: Any, token: str) -> dict[str, Any]:
        form = {"token": token, "token_type_hint": "access_token"}
        headers = dict(JSON_HEADERS)
        if self.client_auth_method == "client_secret_basic":
            headers["authorization"] = self._credentials()
        else:
            form |= {"client_id": self.client_id, "client_secret": self._secret}
        async with client.stream("POST", self.introspection_url, data=form, headers=headers) as response:
            if response.status_code != 200:
                raise Unavailable(f"it answers {response.status_code}")
            answer = await json_of(response)
        if not isinstance(answer, dict):
            raise Unavailable("what it sends is no object")
        return answer

    def _credentials(self) -> str:
        from base64 import b64encode

        return "Basic " + b64encode(f"{self.client_id}:{self._secret}".encode()).decode()
