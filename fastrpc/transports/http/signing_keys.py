"""The keys with which an authorization server signs access tokens: fetched, bounded, kept.

They are fetched for the first token, again for an unknown key id (at most every 30 s), and every hour in the
background; if the server is down they are used for a day. Nothing that a token names is fetched. Where they
are is left to `_locate`: `issuers` reads an issuer's metadata, `KeySet` has a fixed address. PyJWT and httpx
are imported by `import_libraries`, before the server starts, not by the first request.
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from time import monotonic

from fastrpc import diagnostics
from fastrpc.errors import UsageError
from fastrpc.transports.http.guard import HOST, is_loopback
from fastrpc.transports.http.token_source import InvalidToken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAMILIES = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The algorithms for each type of key. Not `none`, and none with a shared secret."""
FETCH_SECONDS = 5.0
ALL_FETCHES_SECONDS = 10.0
LONGEST_DOCUMENT = 256 * 1024
JSON_HEADERS = {"accept": "application/json", "accept-encoding": "identity"}
"""Of a request for a document: uncompressed, so that a small response cannot expand to a large one."""
MOST_KEYS = 64
KEYS_SECONDS = 3600.0
LONGEST_KEYS_SECONDS = 24 * 3600.0
AGAIN_SECONDS = 30.0
AFTER_FAILURE = 5.0
LIBRARIES = ("httpx", "jwt", "cryptography.hazmat.primitives.asymmetric.rsa")
"""PyJWT works without the last, but then supports only shared secrets."""


class Unavailable(Exception):
    """An authorization server has sent nothing of use. The message has nothing secret."""


class SigningKeys:
    """The keys of one authorization server, `name` in the log; `_locate` finds them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.again_seconds: float | None = None
        """Seconds between two fetches; None: `AGAIN_SECONDS`, `AFTER_FAILURE` if the last one has failed."""
        self._keys: list[dict[str, Any]] = []
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._trouble = False
        """Whether the last fetch has failed."""

    async def key(self, id: Any, algorithm: str) -> Any:
        """Return the key for a key id. Raises InvalidToken, and Unavailable."""
        found = self._find(id, algorithm)
        age = monotonic() - self._fetched
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
            raise InvalidToken("the token is signed with a key that the issuer does not publish")
        return found

    def _fetch_again(self) -> None:
        """Begin to fetch the keys, unless just tried: forged tokens must not cause a request each."""
        now = monotonic()
        pause = self.again_seconds
        if pause is None:
            pause = AFTER_FAILURE if self._trouble else AGAIN_SECONDS
        if now - self._tried >= pause:
            self._tried = now
            self._fetching = asyncio.ensure_future(self._fetch())

    async def _fetch(self) -> None:
        """Fetch the keys; note and log a failure."""
        import httpx

        from fastrpc.regular_files import check_certificates

        try:
            # No proxies and no `.netrc` from the environment, no redirects: only the configured address.
            check_certificates()
            context = httpx.create_ssl_context()
            async with httpx.AsyncClient(timeout=FETCH_SECONDS, trust_env=False, verify=context) as client:
                keys = await asyncio.wait_for(self._locate(client), ALL_FETCHES_SECONDS)
        except Exception as error:  # whatever another server sends
            words = str(error) if isinstance(error, Unavailable) else f"({type(error).__name__})"
            diagnostics.write("error", f"{self._name}: its keys cannot be fetched: {words}")
            self._trouble = True
        else:
            self._keys = [key for key in keys[:MOST_KEYS] if isinstance(key, dict)]
            self._fetched = monotonic()
            self._trouble = False

    async def _locate(self, client: Any) -> list[Any]:
        """Return the JSON Web Keys, by an httpx client. Raises Unavailable."""
        raise NotImplementedError


class KeySet(SigningKeys):
    """The keys at a fixed address (RFC 7517, 5). With `client`, an httpx client, that fetches them.

    `again_seconds`: how often at most they are fetched for unknown key ids.
    """

    def __init__(self, address: str, *, client: Any = None, again_seconds: float | None = None) -> None:
        super().__init__(without_query(address))
        self._address = address
        self._client = client
        self.again_seconds = again_seconds

    async def _locate(self, client: Any) -> list[Any]:
        return await keys_at(self._client or client, self._address, "there is no key set at its address")


def import_libraries(option: str = "--auth-server") -> None:
    """Import the libraries before a request waits for them. Raises UsageError, with the `option`'s name."""
    for name in LIBRARIES:
        try:
            import_module(name)
        except ImportError as error:
            words = f'{option}: {error.name} is not installed; pip install "fastrpc-mcp[http]"'
            raise UsageError(words) from None


def without_query(address: str) -> str:
    """Return an address as it may be logged: without credentials, query and fragment."""
    scheme, _, rest = address.partition("://")
    rest = rest.partition("?")[0].partition("#")[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def checked_address(address: str, *, loopback: bool = True) -> str:
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


async def keys_at(client: Any, address: str, trouble: str) -> list[Any]:
    """Return the keys of a key set. Raises Unavailable, with `trouble` where there is none."""
    keys = (await document(client, address) or {}).get("keys")
    if not isinstance(keys, list):
        raise Unavailable(trouble)
    return keys


async def document(client: Any, address: str) -> dict[str, Any] | None:
    """Return a JSON object, None where there is none. Raises Unavailable."""
    async with client.stream("GET", address, headers=JSON_HEADERS) as response:
        if response.status_code != 200:
            return None
        found = await json_of(response)
    return found if isinstance(found, dict) else None


async def json_of(response: Any) -> Any:
    """Return the JSON of a response that is being read, by httpx. Raises Unavailable."""
    data = b""
    async for part in response.aiter_raw():
        data += part
        if len(data) > LONGEST_DOCUMENT:
            raise Unavailable("its response is too long")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise Unavailable("its response is not JSON") from None
