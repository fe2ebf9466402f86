"""The caller over stdio: the owner of the token in FASTRPC_TOKEN, or else the user of the operating system.

The token is removed from the environment, so that no child process of the server inherits it. The user is the
owner of the process; USER is not used. A token may be revoked during the session: call
``directory.caller_with(caller.token_id)`` for each call.
"""

from __future__ import annotations

from fastrpc.callers import Caller, current_user, user_name
from fastrpc.errors import UsageError
from fastrpc.transports.http.auth import VARIABLE, token_from_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from fastrpc.guard.callers.directory import TokenDirectory

USER_CLASS = "local"
"""The class of the operating system's user, unless the policy sets another."""


def stdio_caller(
    environment: MutableMapping[str, str] | None = None,
    directory: TokenDirectory | None = None,
    *,
    user_class: str = USER_CLASS,
) -> Caller:
    """Return the caller, and remove FASTRPC_TOKEN from the environment, by default that of this process.

    Raises UsageError for an invalid token: a caller with a token is never treated as the user.
    """
    token = token_from_environment(environment)
    if token is None:
        return Caller(current_user(), user_class, owner=user_name())
    if directory is None:
        raise UsageError(f"{VARIABLE}: there is no database of tokens to check it against")
    found = directory.verify(token.encode("ascii"))
    if found is None:
        reason = "the token is not known, expired or revoked"
        if not directory.is_available:
            reason = "the tokens cannot be read"
        raise UsageError(f"{VARIABLE}: {reason}")
    return found[0]
