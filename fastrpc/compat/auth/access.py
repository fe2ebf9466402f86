"""`AccessToken`, what a verifier finds out of a token; `get_access_token`, that of the running call.

The token itself is left out of all representations. Over stdio, in memory, and outside a call there is none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fastrpc.compat.field_types import ModelType
from fastrpc.transports.http.access_token import current_access_token


class AccessToken(ModelType):
    """A verified token: `token`, `client_id`, `scopes`, `expires_at` (seconds since 1970), `resource` (RFC
    8707), `subject`, `claims`.

    A subclass may have further annotated members. Raises TypeError for an unknown, missing or wrong member.
    """

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    resource: str | None = None
    subject: str | None = None
    claims: dict[str, Any] | None = None

    def __init__(self, **members: Any) -> None:
        kind: Any = type(self)
        name, known = kind.__name__, _members_of(kind)
        for unknown in members.keys() - set(known):
            raise TypeError(f"{name}: unexpected member {unknown!r:.60}")
        for member in known:
            if member in members:
                setattr(self, member, members[member])
            elif not hasattr(kind, member):
                raise TypeError(f"{name}: {member} is missing")
        if self.claims is None:
            self.claims = {}
        self.scopes = list(self.scopes)
        for member in ("token", "client_id"):
            value = getattr(self, member)
            if not isinstance(value, str):
                raise TypeError(f"{name}: {member}: expected a text, got {type(value).__name__}")

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(client_id={self.client_id!r}, scopes={self.scopes!r}, "
            f"expires_at={self.expires_at!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AccessToken):
            return NotImplemented
        return type(self) is type(other) and self.model_dump() == other.model_dump()

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members as a dict; the options of pydantic have no effect, except `exclude`."""
        kind: Any = type(self)
        excluded = options.get("exclude") or ()
        return {name: getattr(self, name) for name in _members_of(kind) if name not in excluded}

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> AccessToken:
        """Return a copy with some members changed."""
        from copy import deepcopy

        members = self.model_dump()
        return type(self)(**{**(deepcopy(members) if deep else members), **(update or {})})


def get_access_token() -> AccessToken | None:
    """Return the access token of the request that the running call came with; None without authentication,
    and outside a call."""
    found: Any = current_access_token()
    return found  # type: ignore[no-any-return]


def access_token_of(found: Any) -> Any:
    """Return what a verifier has found, with the members of `AccessToken`. Raises TypeError.

    An instance of another class, as that of the official SDK, is accepted as it is, if it has the members.
    """
    if isinstance(found, AccessToken):
        return found
    if not isinstance(getattr(found, "client_id", None), str) or not hasattr(found, "scopes"):
        raise TypeError(f"verify_token: expected an AccessToken or None, got {type(found).__name__}")
    if getattr(found, "claims", False) is None:
        found = found.model_copy(update={"claims": {}})
    return found


@cache
def _members_of(kind: type) -> tuple[str, ...]:
    """Return the names of the annotated members of a class, its bases' first."""
    from inspect import get_annotations

    names: dict[str, None] = {}
    for each in reversed(kind.__mro__):
        names.update(dict.fromkeys(get_annotations(each)))
    return tuple(names)
