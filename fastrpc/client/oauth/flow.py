"""Runs the official SDK's OAuth flow by hand, for one refresh or one login.

The SDK's provider is a generator of httpx2 requests: the metadata of the server and of its authorization
server, the registration, the tokens. They are sent here, by httpx2; the request to the MCP server is not:
`run` ends the generator as soon as the tokens are there, since it holds a lock as long as it runs. Each run
makes a new provider of a `LoginRecord`, and leaves all that it has learned in the record.

Requests go to https only, or where the user's own URL goes unencrypted. Redirects are the SDK's decision
(within an origin). Bodies are bounded. Importing this imports the SDK, in half a second or more.
"""

from __future__ import annotations

import json
import logging
import warnings
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from fastrpc.client.oauth import ClientCredentials, OAuth
from fastrpc.client.oauth.login_callback import Redirect, show
from fastrpc.client.oauth.record import life_of
from fastrpc.client.urls import is_local_host, shown
from fastrpc.errors import AuthorizationFailed, ClientError
from fastrpc.time_limit import TimeLimit
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client.oauth.record import AuthorizationRefusal, LoginRecord, LoginTarget

FLOW_SECONDS = 30.0
"""Time limit of each request of a flow, with its whole answer."""
LARGEST_BODY = 1024 * 1024
SECRETS = (
    *("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token"),
    *("code", "code_verifier", "client_assertion"),
)
"""Members of forms and answers that are masked in whatever is written."""
KEPT_HEADERS = ("content-type", "location", "www-authenticate")

_is_ours: ContextVar[bool] = ContextVar("_is_ours", default=False)


async def run(
    auth: OAuth,
    place: LoginTarget,
    record: LoginRecord,
    refusal: AuthorizationRefusal | None,
    version: str | None,
) -> bool:
    """Refresh the tokens in `record`, or get new ones by a login. Return whether there was a login.

    `refusal`: the answer of the server that a login is to follow, if need be; None to refresh only.
    `version`: that of the protocol, if it is known. Raises AuthorizationFailed.
    """
    flow: _Flow | None = None
    token = _is_ours.set(True)
    try:
        flow = _Flow(auth, place, record)
        return await flow.run(refusal, version)
    except ClientError:
        raise
    except (OAuthFlowError, ValueError, httpx2.HTTPError, OSError) as error:
        raise AuthorizationFailed(f"{place.shown}: {place.hide(_words(error))}") from None
    finally:
        _is_ours.reset(token)
        if flow is not None:
            await flow.close()


class _Flow:
    """One run."""

    def __init__(self, auth: OAuth, place: LoginTarget, record: LoginRecord) -> None:
        self._auth = auth
        self._place = place
        self._record = record
        self._redirect: Redirect | None = None
        self._clients: dict[bool, httpx2.AsyncClient] = {}
        self._provider = self._new_provider()

    async def close(self) -> None:
        if self._redirect is not None:
            await self._redirect.close()
        for client in self._clients.values():
            await client.aclose()

    # --- the provider ---------------------------------------------------------------------------------

    def _new_provider(self) -> OAuthClientProvider:
        auth, record = self._auth, self._record
        scope = " ".join(auth.scopes) or None
        if isinstance(auth, ClientCredentials):
            provider = self._machine_provider(auth, scope)
        else:
            metadata = OAuthClientMetadata(
                redirect_uris=[AnyUrl("http://127.0.0.1/callback")],  # its port is known when it is needed
                client_name=auth.client_name,
                scope=scope,
            )
            provider = OAuthClientProvider(
                self._place.url, metadata, self, self._show, self._wait, auth.client_metadata_url
            )
        context = provider.context
        context.token_expiry_time = record.expires_at
        context.auth_server_url = record.authorization_server
        if record.resource is not None:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(record.resource)
        if record.metadata is not None:
            context.oauth_metadata = OAuthMetadata.model_validate(record.metadata)
        return provider

    def _machine_provider(self, auth: ClientCredentials, scope: str | None) -> OAuthClientProvider:
        url, name = self._place.url, auth.client_id
        assert name is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an issuer that is left out: said in the manual
            if auth.client_secret is not None:
                return ClientCredentialsOAuthProvider(
                    url,
                    self,
                    name,
                    auth.client_secret,
                    "client_secret_post" if auth.in_body else "client_secret_basic",
                    scope,
                    auth.issuer,
                )
            assert auth.private_key is not None
            signed = SignedJWTParameters(
                issuer=name,
                subject=name,
                signing_key=auth.private_key,
                signing_algorithm=auth.algorithm,
            )
            sign = signed.create_assertion_provider()
            return PrivateKeyJWTOAuthProvider(url, self, name, sign, scope, auth.issuer)

    # What the provider reads and stores (`mcp.client.auth.TokenStorage`): the record is filled in at the end.

    async def get_tokens(self) -> OAuthToken | None:
        tokens = self._record.tokens
        return OAuthToken.model_validate(tokens) if tokens is not None else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        pass

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        auth = self._auth
        if auth.client_id is not None:
            return OAuthClientInformationFull(
                client_id=auth.client_id,
                client_secret=auth.client_secret,
                token_endpoint_auth_method=self._method(),
                issuer=auth.issuer,
            )
        client = self._record.client
        return OAuthClientInformationFull.model_validate(client) if client is not None else None

    def _method(self) -> str:
        """Return how a client that is known beforehand authenticates itself: as the server wants, else by
        HTTP basic authentication (RFC 8414: client_secret_basic is the default)."""
        if self._auth.client_secret is None:
            return "none"
        metadata = self._provider.context.oauth_metadata
        offered = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
        if offered and "client_secret_basic" not in offered and "client_secret_post" in offered:
            return "client_secret_post"
        return "client_secret_basic"

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass

    # --- the run --------------------------------------------------------------------------------------

    async def run(self, refusal: AuthorizationRefusal | None, version: str | None) -> bool:
        provider, context = self._provider, self._provider.context
        headers = {} if version is None else {"MCP-Protocol-Version": version}
        request = httpx2.Request("POST", self._place.url, headers=headers)
        if refusal is None or refusal.may_refresh:
            context.token_expiry_time = 1.0  # expired, so that it is refreshed, where that is possible
        flow = provider.async_auth_flow(request)
        try:
            outgoing = await flow.__anext__()
            is_refresh = outgoing is not request
            is_forgotten = False
            while outgoing is not request:
                answer = await self._send(outgoing)
                if answer.status_code >= 500 or answer.status_code == 429:
                    where = _shown(answer.request.url)  # the refresh token may still be good
                    raise AuthorizationFailed(f"{where} answers a refresh with status {answer.status_code}")
                is_forgotten = _members_of(answer.content).get("error") == "invalid_client"
                outgoing = await flow.asend(answer)
            if is_forgotten:
                context.client_info = None  # its page of a login would never lead back
            self._take()
            if refusal is None or (is_refresh and context.current_tokens is not None):
                return False
            await self._prepare_login(refusal)
            outgoing = await flow.asend(refusal_response(refusal, self._auth.scopes, request))
            while outgoing is not request:
                self._check_client()
                self._check_pkce(self._provider.context.oauth_metadata)
                outgoing = await flow.asend(await self._send(outgoing))
            self._take()
            return True
        finally:
            await flow.aclose()

    async def _prepare_login(self, refusal: AuthorizationRefusal) -> None:
        context = self._provider.context
        if refusal.status == 401:  # what was known of the servers is found out anew
            context.protected_resource_metadata = None
            context.oauth_metadata = None
            context.auth_server_url = None
        if not self._auth.needs_person:
            return
        self._redirect = redirect = Redirect()
        registered = self._record.redirect_port
        try:
            await redirect.listen(self._auth.redirect_port or registered)
        except OSError as error:
            if self._auth.redirect_port:
                raise AuthorizationFailed(
                    f"redirect_port: {self._auth.redirect_port}: cannot listen at this port: {error.strerror}"
                ) from None
            await redirect.listen(0)
        if redirect.port != registered and self._auth.client_id is None:
            context.client_info = None  # the client was registered with another address to come back to
        context.client_metadata.redirect_uris = [AnyUrl(redirect.uri)]

    def _check_client(self) -> None:
        """Raise AuthorizationFailed where the SDK has dropped a client that is known beforehand, since the
        MCP server names another authorization server: none must be registered in the place of it."""
        context = self._provider.context
        if self._auth.client_id is None:
            return
        if context.client_info is None:
            raise AuthorizationFailed(
                f"{self._place.shown} names the authorization server "
                f"{_shown(context.auth_server_url or self._place.url)}, "
                f"but client_id belongs to {_shown(self._auth.issuer or '')}"
            )
        if self._auth.needs_person:
            context.client_info.token_endpoint_auth_method = self._method()

    def _check_pkce(self, metadata: OAuthMetadata | None) -> None:
        """Raise AuthorizationFailed for metadata without PKCE by S256 (MCP, authorization: authorization code
        protection). None: it is not known yet."""
        if metadata is None or not self._auth.needs_person:
            return
        offered = getattr(metadata, "code_challenge_methods_supported", None)
        if not offered or "S256" not in offered:
            raise AuthorizationFailed(
                f"{_shown(self._provider.context.auth_server_url or self._place.url)}: the authorization "
                "server does not offer PKCE: code_challenge_methods_supported: expected S256, got "
                f"{', '.join(offered)[:200] if offered else 'nothing'}"
            )

    def _take(self) -> None:
        context, record = self._provider.context, self._record
        tokens = context.current_tokens
        record.tokens = None if tokens is None else tokens.model_dump(mode="json", exclude_none=True)
        record.expires_at = context.token_expiry_time if tokens is not None else None
        record.authorization_server = context.auth_server_url
        resource, metadata = context.protected_resource_metadata, context.oauth_metadata
        record.resource = None if resource is None else resource.model_dump(mode="json", exclude_none=True)
        record.metadata = None if metadata is None else metadata.model_dump(mode="json", exclude_none=True)
        if self._auth.client_id is None:
            client = context.client_info
            record.client = None if client is None else client.model_dump(mode="json", exclude_none=True)
        if self._redirect is not None:
            record.redirect_port = self._redirect.port

    async def _show(self, url: str) -> None:
        self._check_place(url)
        self._check_client()
        context = self._provider.context
        if context.protected_resource_metadata is not None:  # one of 2025-03-26 may have none
            self._check_pkce(context.oauth_metadata or OAuthMetadata.model_construct())
        assert self._redirect is not None
        self._record.was_shown = True
        self._redirect.expect(url)
        await show(url, self._auth.open_browser)

    async def _wait(self) -> AuthorizationCodeResult:
        assert self._redirect is not None
        found = await self._redirect.result(self._auth.login_seconds)
        code = found.get("code", "")
        self._place.add_secret(code)
        return AuthorizationCodeResult(code=code, state=found.get("state"), iss=found.get("iss"))

    # --- requests -------------------------------------------------------------------------------------

    def _check_place(self, url: object) -> None:
        """Raise AuthorizationFailed for an address to which no secret may go in the clear."""
        parts, own = urlsplit(str(url)), urlsplit(self._place.url)
        if parts.scheme == "https":
            return
        is_local = self._place.is_local and is_local_host(parts.hostname or "")
        if parts.scheme != "http" or not (is_local or (own.scheme, own.hostname) == ("http", parts.hostname)):
            raise AuthorizationFailed(
                f"expected an https address of the authorization server, got {_shown(url)}"
            )

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request of the flow; return its answer, read. Raises AuthorizationFailed."""
        self._check_place(request.url)
        form = parse_qs(request.content.decode(errors="replace"))
        for name in SECRETS:
            if name in form:
                self._place.add_secret(form[name][0])
        client = self._client(is_local_host(request.url.host or ""))
        request.headers["user-agent"] = f"fastrpc/{__version__}"
        request.headers["accept"] = "application/json"  # some token endpoints answer with a form otherwise
        try:
            with TimeLimit(FLOW_SECONDS):
                response = await client.send(request, stream=True)
                body = await _body_of(response)
        except (TimeoutError, httpx2.TimeoutException):
            words = f"{_shown(request.url)} has not answered within {FLOW_SECONDS:g} s"
            raise AuthorizationFailed(words) from None
        except (httpx2.HTTPError, OSError) as error:
            why = self._place.hide(str(error))[:200] or type(error).__name__
            raise AuthorizationFailed(f"{_shown(request.url)} cannot be reached: {why}") from None
        members = _members_of(body)
        for name in SECRETS:
            if isinstance(secret := members.get(name), str):
                self._place.add_secret(secret)
        content = body
        if "access_token" in members and "expires_in" in members:  # which the SDK has to be able to use
            content = json.dumps({**members, "expires_in": life_of(members["expires_in"])}).encode()
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        found = httpx2.Response(response.status_code, headers=headers, content=content, request=request)
        found.next_request = response.next_request
        return found

    def _client(self, is_local: bool) -> httpx2.AsyncClient:
        """Return the client for this machine's addresses, which no proxy leads to, or for all others."""
        if is_local not in self._clients:
            self._clients[is_local] = httpx2.AsyncClient(
                verify=self._place.tls_for_all() or True,
                timeout=FLOW_SECONDS,
                trust_env=not is_local,
                follow_redirects=False,
            )
        return self._clients[is_local]


async def _body_of(response: httpx2.Response) -> bytes:
    """Return the body of an answer, and close that. Raises AuthorizationFailed for one that is too large."""
    body = bytearray()
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > LARGEST_BODY:
                raise AuthorizationFailed(
                    f"{_shown(response.request.url)} answers with over {LARGEST_BODY} bytes"
                )
    finally:
        await response.aclose()
    return bytes(body)


def refusal_response(
    refusal: AuthorizationRefusal, scopes: tuple[str, ...], request: httpx2.Request
) -> httpx2.Response:
    """Return the answer that begins a login, for the SDK. It asks for the scopes of the challenge alone, to
    which those of the user are added here."""
    challenge = refusal.challenge
    if scopes:
        wanted = union_scopes(" ".join(scopes), " ".join(refusal.scopes))
        others = [part for part in refusal.parameters if not part.startswith("scope=")]
        challenge = "Bearer " + ", ".join([*others, f'scope="{wanted}"'])
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    return httpx2.Response(refusal.status, headers=headers, request=request)


def _members_of(body: bytes) -> dict[str, Any]:
    """Return the members of a JSON object; none for anything else."""
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _shown(url: object) -> str:
    return shown(str(url))[:200]


def _words(error: BaseException) -> str:
    """Describe an error of the SDK. Those of pydantic quote the document, which may hold tokens."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ValidationError):
            faults = cause.errors(include_url=False, include_context=False, include_input=False)
            return f"{cause.title}: " + "; ".join(
                ".".join(map(str, fault["loc"])) + f": {fault['msg']}" for fault in faults[:3]
            )
        cause = cause.__cause__ or cause.__context__
    return " ".join(str(error).split())[:300] or type(error).__name__


# Drops what the SDK logs about a login that fastrpc runs: the caller gets the error instead.
logging.getLogger("mcp.client.auth.oauth2").addFilter(lambda record: not _is_ours.get())
