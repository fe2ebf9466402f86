"""Checks of what a caller may see and call: `require_scopes`, `restrict_tag`, `require_roles`.

A check is a function of an `AuthContext` that returns True or False, or an awaitable of that. One that raises
refuses; what else than `AuthorizationError` it raises is logged. Where they are called is left to
`fastrpc.compat.highlevel.authorization`.
"""

from __future__ import annotations

from typing import Any

from fastrpc import tracebacks
from fastrpc.compat.field_types import FieldType
from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    AuthCheck = Callable[["AuthContext"], bool | Awaitable[bool]]
    """A function that decides from an `AuthContext` whether a caller may use a component."""
else:
    AuthCheck = Any


class AuthorizationError(ToolError):
    """The caller is not authorized. The message is sent to the client."""


class InsufficientScopeError(AuthorizationError):
    """A caller's token lacks `required_scopes`."""

    def __init__(self, required_scopes: Iterable[str] = (), message: str | None = None) -> None:
        self.required_scopes = list(required_scopes)
        super().__init__(message or f"insufficient scope (required: {', '.join(self.required_scopes)})")


class ComponentToCheck:
    """A tool, a resource, a template or a prompt, as a check sees it: `kind`, `name`, `title`, `description`,
    `tags`, `meta`, and `uri` or `uri_template`."""

    __slots__ = ("description", "key", "kind", "meta", "name", "tags", "title", "uri", "uri_template")

    def __init__(self, kind: str, entry: Any) -> None:
        self.kind = kind
        self.key: str = entry.key
        self.name: str = getattr(entry, "name", entry.key)
        self.title: str | None = getattr(entry, "title", None)
        self.description: str | None = getattr(entry, "description", None)
        self.meta: dict[str, Any] = getattr(entry, "meta", None) or {}
        self.tags = set((self.meta.get("fastmcp") or {}).get("tags") or ())
        self.uri = entry.key if kind == "resource" else None
        self.uri_template = entry.key if kind == "template" else None


class AuthContext(FieldType):
    """What a check is given: the caller's access `token`, None without one, and the `component`."""

    __slots__ = ("component", "token")

    def __init__(self, token: Any, component: Any) -> None:
        self.token = token
        self.component = component

    @property
    def tool(self) -> Any:
        """The component, if it is a tool, else None."""
        return self.component if self.component.kind == "tool" else None


class _Scopes:
    """Requires scopes, where `tag` is given of components with this tag."""

    __slots__ = ("required_scopes", "tag")

    def __init__(self, scopes: Iterable[str], tag: str | None = None) -> None:
        self.required_scopes = frozenset(scopes)
        self.tag = tag

    def __call__(self, context: AuthContext) -> bool:
        return self._is_free(context) or (context.token is not None and not self.missing(context))

    def missing(self, context: AuthContext) -> set[str]:
        """Return the scopes that the token lacks; none without a token."""
        if context.token is None or self._is_free(context):
            return set()
        return set(self.required_scopes.difference(context.token.scopes))

    def _is_free(self, context: AuthContext) -> bool:
        return self.tag is not None and self.tag not in context.component.tags


class _Roles:
    """Requires roles, which `extract` reads from the claims."""

    __slots__ = ("extract", "required_roles")

    def __init__(self, roles: Iterable[str], extract: Callable[[dict[str, Any]], Any]) -> None:
        self.required_roles = frozenset(roles)
        self.extract = extract

    def __call__(self, context: AuthContext) -> bool:
        if context.token is None:
            return False
        try:
            found = self.extract(context.token.claims)
            roles = {found} if isinstance(found, str) else set(found)
        except (KeyError, IndexError, TypeError):
            return False
        return self.required_roles <= roles


def require_scopes(*scopes: str) -> AuthCheck:
    """Return a check that the token has all these scopes."""
    return _Scopes(scopes)


def restrict_tag(tag: str, *, scopes: list[str]) -> AuthCheck:
    """Return a check that the token has all these scopes, for components with a tag."""
    return _Scopes(scopes, tag)


def require_roles(*roles: str, extract: Callable[[dict[str, Any]], Iterable[str]]) -> AuthCheck:
    """Return a check that the token has all these roles, which `extract` reads from its claims.

    Raises ValueError without roles.
    """
    if not roles:
        raise ValueError("require_roles: expected at least one role")
    return _Roles(roles, extract)


class AuthMiddleware:
    """Checks for all components of a server: ``FastMCP(middleware=[AuthMiddleware(auth=…)])``."""

    def __init__(self, auth: AuthCheck | list[AuthCheck]) -> None:
        self.auth = auth

    def attach(self, server: Any) -> None:
        """Have the checks decide about all components of a compat server."""
        server._restrict_all(self.auth)


def checks_of(auth: Any) -> list[AuthCheck]:
    """Return the checks of the option ``auth`` of a component. Raises TypeError for anything else."""
    checks = list(auth) if isinstance(auth, (list, tuple)) else [auth]
    for check in checks:
        if not callable(check):
            raise TypeError(f"auth: expected a check, or a list of them; got {type(check).__name__}")
    return checks


async def run_auth_checks(checks: AuthCheck | list[AuthCheck], ctx: AuthContext) -> bool:
    """Return whether all checks allow it. Raises AuthorizationError."""
    for check in checks_of(checks):
        allowed = outcome_of(check, ctx)
        if not (await settled(allowed) if hasattr(allowed, "__await__") else allowed):
            return False
    return True


def outcome_of(check: Any, context: AuthContext) -> Any:
    """Return True, False, or an awaitable. Raises AuthorizationError; a check that fails refuses."""
    try:
        found = check(context)
        return found if hasattr(found, "__await__") else bool(found)
    except AuthorizationError:
        raise
    except Exception as error:
        tracebacks.report("an authorization check failed", error)
        return False


async def settled(outcome: Any) -> bool:
    """Await what a check has returned. Raises AuthorizationError; a check that fails refuses."""
    try:
        return bool(await outcome)
    except AuthorizationError:
        raise
    except Exception as error:
        tracebacks.report("an authorization check failed", error)
        return False


def missing_scopes(checks: list[AuthCheck], context: AuthContext) -> list[str]:
    """Return the scopes that a refused caller's token lacks; none if another check may have refused."""
    missing: set[str] = set()
    for check in checks:
        if not isinstance(check, _Scopes):
            return []
        missing |= check.missing(context)
    return sorted(missing)
