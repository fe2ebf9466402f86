"""Authorization of a compat server: `auth`, `token_verifier`, and `auth` of single components.

Over HTTP tokens are verified before a message is read (`fastrpc.compat.auth.authenticator`). A component with
checks is listed and served only for callers that these allow; for all others it does not exist. A server
without checks has neither a guard nor a filter for them. Over stdio nothing of this has an effect: the client
is the user who has started the server.
"""

from __future__ import annotations

import sys

from fastrpc.compat.errors import NotOffered
from fastrpc.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.compat.auth.checks import ComponentToCheck
    from fastrpc.engine.list_filter import ListItem
    from fastrpc.transports.http.auth import Authenticator

    Key = tuple[str, str]

AUTHORIZATION_SERVER = (
    "fastrpc is no authorization server; name yours: auth=RemoteAuthProvider(token_verifier=…, "
    "authorization_servers=[…], base_url=…), or auth_servers= of docs/http.md; one of FastMCP has get_routes"
)
SERVES_LOGINS = ("authorize", "register_client", "exchange_authorization_code")
"""Methods of an authorization server."""


class Authorization(Server):
    """The methods of a compat server that decide who may use it, and what."""

    if TYPE_CHECKING:  # `Composition` has it

        def _own_addresses(self, uri: str) -> Iterator[str]: ...

    auth: Any = None
    """What verifies tokens; with the official SDK, its `AuthSettings`."""
    _token_verifier: Any = None
    _auth_server: Any = None

    def _take_auth_options(self, options: dict[str, Any]) -> None:
        """Take the options of the constructor that are about authorization.

        Raises NotOffered for an authorization server of FastMCP, ValueError for options that need or exclude
        each other, TypeError for what is no verifier.
        """
        self._checks: dict[Key, list[Any]] = {}
        self._checks_of_all: list[Any] = []
        self._is_guarded = False
        auth, verifier = options.pop("auth", None), options.pop("token_verifier", None)
        provider = options.pop("auth_server_provider", None)
        name = "FastMCP"
        for given in (auth, verifier):
            if not _serves_routes(given) and any(
                callable(getattr(given, method, None)) for method in SERVES_LOGINS
            ):
                raise NotOffered(f"fastrpc.compat: {name}: {type(given).__name__}: {AUTHORIZATION_SERVER}")
        if provider is not None:
            verifier = self._take_provider(name, verifier, provider)
        is_settings = hasattr(auth, "resource_server_url") and not hasattr(auth, "verify_token")
        if is_settings is (verifier is None):
            raise ValueError(
                f"{name}: auth=AuthSettings(…) and token_verifier= or auth_server_provider= need each other"
            )
        if auth is not None:
            from fastrpc.compat.auth.provider import check_verifier

            check_verifier(f"{name}: {'token_verifier' if is_settings else 'auth'}", verifier or auth)
        self.auth, self._token_verifier = auth, verifier

    def _take_provider(self, name: str, verifier: Any, provider: Any) -> Any:
        """Take an authorization server of the official SDK; return what verifies its tokens."""
        from importlib.util import find_spec

        from fastrpc.compat.auth.sdk_provider import ProviderTokenVerifier

        if verifier is not None:
            raise ValueError(f"{name}: auth_server_provider= and token_verifier= exclude each other")
        if find_spec("mcp") is None:
            raise NotOffered(
                "fastrpc.compat: auth_server_provider= is served by the official SDK; pip install mcp"
            )
        self._auth_server = provider
        return ProviderTokenVerifier(provider)

    def _authorization_routes(self, path: str) -> list[Any]:
        """Return the Starlette routes of the authorization server, for the MCP endpoint at `path`."""
        if _serves_routes(self.auth):
            from fastrpc.compat.auth.authenticator import routes_beside

            return routes_beside(self.auth, path)
        if self._auth_server is None:
            return []
        from fastrpc.compat.auth.sdk_provider import official, routes_of

        return routes_of(self._auth_server, official(self.auth))

    def _token_check(self, path: str = "/mcp") -> Authenticator | None:
        """Return what verifies tokens, for ``asgi(token=…)`` of an endpoint at `path`; None if no token is
        needed. Raises UsageError for a key that cannot be used, or a library that is missing."""
        if self.auth is None:
            return None
        from fastrpc.compat.auth.authenticator import authenticator_of, authenticator_with

        if self._auth_server is not None:
            from fastrpc.compat.auth.sdk_provider import official

            return authenticator_with(self._token_verifier, official(self.auth))
        if self._token_verifier is not None:
            return authenticator_with(self._token_verifier, self.auth)
        if _serves_routes(self.auth):
            from fastrpc.compat.auth.authenticator import authenticator_for

            return authenticator_for(self.auth, path)
        return authenticator_of(self.auth, path)

    def _asgi_auth_options(self, path: str = "/mcp") -> dict[str, Any]:
        """Return the options of `Server.asgi` for tokens."""
        check = self._token_check(path)
        return {"auth": None} if check is None else {"token": check}

    # --- checks of components ---------------------------------------------------------------------------

    def _restrict(self, kind: str, key: str, auth: Any) -> None:
        """Have checks decide about a component that takes this place: without `auth` none.

        Raises TypeError for what is no check.
        """
        if auth is None:
            self._checks.pop((kind, key), None)
        else:
            from fastrpc.compat.auth.checks import checks_of

            self._checks[kind, key] = checks_of(auth)
            self._decide()

    def _checks_at(self, kind: str, key: str) -> list[Any] | None:
        """Return the checks of the component in this place, None without any: what its object has as
        ``auth``."""
        return self._checks.get((kind, key))

    def _restrict_all(self, auth: Any) -> None:
        """Have checks decide about all components (`AuthMiddleware`). Raises TypeError."""
        from fastrpc.compat.auth.checks import checks_of

        self._checks_of_all += checks_of(auth)
        self._decide()

    def _decide(self) -> None:
        if not self._is_guarded:
            self._is_guarded = True
            self.guard(self._check_call)
            self.filter_lists(self._shows_item, self._hidden_from)

    def _is_exempt(self) -> bool:
        """Whether the client is the user who has started this process."""
        stdio = sys.modules.get("fastrpc.transports.stdio")
        return stdio is not None and stdio.is_serving() and not self.over_http

    def _check_call(self, call: CallInfo) -> Awaitable[None] | None:
        """The guard: refuse the call of a component that the caller may not use."""
        if self._is_exempt():
            return None
        component = self._called(call)
        if component is None and not self._checks_of_all:
            return None
        from fastrpc.compat.auth.access import get_access_token
        from fastrpc.compat.auth.checks import AuthContext
        from fastrpc.compat.auth.decisions import decision

        key = (call.kind, call.name) if component is None else (component.kind, component.key)
        context = AuthContext(get_access_token(), component)
        return decision(call, context, self._checks.get(key, ()), self._checks_of_all)

    def _called(self, call: CallInfo) -> ComponentToCheck | None:
        """Return what a call is served by."""
        from fastrpc.compat.auth.checks import ComponentToCheck

        if call.kind != "resource":
            kinds = self.registries.tools if call.kind == "tool" else self.registries.prompts
            entry: Any = kinds.get(call.name)
            return None if entry is None else ComponentToCheck(call.kind, entry)
        from fastrpc.methods.resources import bound_at

        addresses = self._own_addresses(call.name)
        found = next((own for uri in addresses if (own := bound_at(self.registries, uri))), None)
        if found is None:
            return None
        reader = found[0]
        for kind, entries in (
            ("resource", self.registries.resources),
            ("template", self.registries.templates),
        ):
            if any(reader is entry for entry in entries):
                return ComponentToCheck(kind, reader)
        return ComponentToCheck("resource", reader)

    def _hidden_from(self, principal: str) -> frozenset[Key]:
        """Return the components that the caller of the running request may not use: its class."""
        if self._is_exempt():
            return frozenset()
        from fastrpc.compat.auth.access import get_access_token
        from fastrpc.compat.auth.checks import AuthContext, ComponentToCheck
        from fastrpc.compat.auth.decisions import is_visible

        token = get_access_token()
        hidden = set()
        registries = self.registries
        for kind, entries in (
            ("tool", registries.tools),
            ("resource", registries.resources),
            ("template", registries.templates),
            ("prompt", registries.prompts),
        ):
            for entry in entries:
                checks = [*self._checks.get((kind, entry.key), ()), *self._checks_of_all]
                if checks and not is_visible(checks, AuthContext(token, ComponentToCheck(kind, entry))):
                    hidden.add((kind, entry.key))
        return frozenset(hidden)

    def _shows_item(self, hidden: frozenset[Key], item: ListItem) -> bool:
        kind = "template" if item.kind == "resource_template" else item.kind
        keys = [item.name] if item.uri is None else self._own_addresses(item.uri)
        return all((kind, key) not in hidden for key in keys)


def _serves_routes(auth: Any) -> bool:
    """Whether this is a FastMCP provider, which has routes and verifies its tokens."""
    return all(callable(getattr(auth, method, None)) for method in ("get_routes", "verify_token"))
