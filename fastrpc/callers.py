"""`Caller`: who calls, as tools, policies, quotas and audits see it; and how its principal is named.

The principal is the name by which quotas, sessions, approvals and audits identify a caller:

* ``OWNER#FAMILY`` for a token. The family is the id of the first token in a chain of rotations, so a rotated
  token is the same caller, with the same sessions and quotas. Two tokens that were created separately are two
  callers, even for the same owner.
* ``os:USER`` over stdio without a token.
* ``CLASS@ISSUER#SUBJECT`` for an authorization server's token, where claims determine the class (`claims`).

An owner contains neither ``:`` nor ``#``. So no name has two of these forms, and none equals an authorization
server's ``ISSUER#SUBJECT``, whose issuer is a URL.
"""

from __future__ import annotations

import os
import re
from dataclasses import KW_ONLY, dataclass

SCOPE = re.compile(r"[!#-\[\]-~]+\Z")
"""A scope (RFC 6749, 3.3)."""
CLAIMED = re.compile(r'([^":]+)(?:"([^"]*)")?@(https?://[^#]*#.*)\Z', re.DOTALL)
"""The principal of an authorization server's token: class, scopes, and the owner."""


@dataclass(slots=True, repr=False)
class Caller:
    """Who calls. `token_id` is the id of the presented token, "" without one. `counted_as` is the name under
    which rate limits count: callers that are one subject with several tokens share it."""

    principal: str
    caller_class: str
    _: KW_ONLY
    owner: str = ""
    scopes: tuple[str, ...] = ()
    token_id: str = ""
    counted_as: str = ""

    def __post_init__(self) -> None:
        self.owner = self.owner or self.principal
        self.counted_as = self.counted_as or self.principal

    def __hash__(self) -> int:
        return hash(self.principal)

    def __repr__(self) -> str:
        return f"Caller({self.principal!r}, {self.caller_class!r})"


def token_principal(owner: str, family: str) -> str:
    """Return the principal of a token."""
    return f"{owner}#{family}"


def owner_of(principal: str) -> str:
    """Return an authenticated principal's owner: that in a token's name, or the principal itself."""
    if claimed := CLAIMED.match(principal):
        return claimed[3]
    return principal if ":" in principal else principal.partition("#")[0]


def user_principal(name: str) -> str:
    """Return the principal of a user of this machine."""
    return f"os:{name}"


def current_user() -> str:
    """Return the principal of the user of this process."""
    return user_principal(user_name())


def unguarded(principal: str) -> Caller:
    """Return the caller on a server without a guard: without authentication, the user of the process."""
    return Caller(principal, "") if principal else Caller(current_user(), "", owner=user_name())


def user_name() -> str:
    """Return the name of the user of this process, or the numeric id if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
