"""Counts and records the requests that are not calls: lists, subscriptions, the handshake, `ping`.

A guard decides about calls, through their plans. If a policy has ``requests = "all"``, as Sophon's does, each
other request also counts against its caller's rate and has a record: its method, the hash of its parameters,
and whether it was answered. A call of an unknown name counts too: it has no plan, so it does not reach the
guard; the audit log records it in any case. A request then takes some 10 µs more.
"""

from __future__ import annotations

from contextlib import suppress

from fastrpc.engine.messages import RECORDED
from fastrpc.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.guard.audit.calls import CallAudit
    from fastrpc.guard.guard import Guard

UNKNOWN = "unknown"
"""The outcome of a call of an unknown name."""


class EveryRequest:
    """The `Runtime.counter` of a server with such a policy. `audit`: None if nothing is recorded."""

    def __init__(self, guard: Guard, audit: CallAudit | None) -> None:
        self._guard = guard
        self._audit = audit

    def serve(self, request: Any, serve: Callable[[Any], bytes | None]) -> bytes | None:
        """Serve a request within its caller's rate. Raises RateExceeded, and what `serve` raises."""
        if request.method in RECORDED:
            return self._call(request, serve)
        try:
            self._count(request)
            result = serve(request)
        except ProtocolError as error:
            self._record(request, error.outcome, dumped(error))
            raise
        self._record(request, "ok" if result is not None else "begun", result)
        return result

    def _call(self, request: Any, serve: Callable[[Any], bytes | None]) -> bytes | None:
        try:
            return serve(request)
        except ProtocolError as error:
            if error.outcome != UNKNOWN:
                raise
            try:
                self._count(request)
            except ProtocolError as refusal:
                self._record(request, refusal.outcome, dumped(refusal))
                raise
            raise

    def _count(self, request: Any) -> None:
        dispatcher = request.dispatcher
        if not request.version:
            with suppress(ProtocolError):  # which `serve` raises again
                request.version = dispatcher.session.version_of(request.method, request.params)
        self._guard.count_request(dispatcher.principal, request.version)

    def _record(self, request: Any, outcome: str, answer: bytes | None) -> None:
        if self._audit is not None:
            self._audit.request(request, request.dispatcher.principal, outcome, answer)


def dumped(error: ProtocolError) -> bytes:
    """Return an error in the form in which the client receives it."""
    from fastrpc._core.encoder import dumps

    return dumps({"code": error.code, "message": error.message, "data": error.data})
