"""The access token of the request that the running call came with, for handlers that read its claims.

A token source may hand one over with its `Admission`; then each task and thread of the call sees it. Requests
with other sources cost one test on the fast path. What an access token is, is left to the source
(`fastrpc.compat.auth`).
"""

from __future__ import annotations

from contextvars import ContextVar

_current: ContextVar[object] = ContextVar("fastrpc_access_token", default=None)


def current_access_token() -> object:
    """Return the access token of the running call's request; None without one, and outside a call."""
    return _current.get()


class Presented:
    """Within ``with``, the access token of the running request is this one."""

    __slots__ = ("_access_token", "_reset")

    def __init__(self, access_token: object) -> None:
        self._access_token = access_token

    def __enter__(self) -> None:
        self._reset = _current.set(self._access_token)

    def __exit__(self, *exception: object) -> None:
        _current.reset(self._reset)
