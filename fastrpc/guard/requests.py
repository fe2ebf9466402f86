"""Counts and records the requests that are not calls: lists, subscriptions, the handshake, `ping`.

A guard decides about calls, through their plans. If a policy has ``requests = "all"``, as Sophon's does, each
other request also counts against its caller's rate and has a record: its method, the hash of its parameters,
and whether it was answered. A call of an unknown name counts too: it has no plan, so it does not reach the
guard; the audit log records it in any case. A request then takes some 10 µs more. If its rate has to be
leased first, as servers that share rates do, it is served when that is done.
"""

from __future__ import annotations

from contextlib import suppress

from fastrpc.engine.call import own_fault
from fastrpc.engine.messages import RECORDED
from fastrpc.engine.requests_in_flight import DeferredRequest
from fastrpc.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Coroutine
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
        self._waiting: set[Task[None]] = set()

    def serve(self, request: Any, serve: Callable[[Any], bytes | None]) -> bytes | None:
        """Serve a request within its caller's rate. Return None if it is answered later. Raises RateExceeded,
        RateUnavailable and Overloaded, and what `serve` raises."""
        if request.method in RECORDED:
            return self._call(request, serve)
        try:
            if not self._is_counted(request):
                return None
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
                if not self._is_counted(request):
                    return None
            except ProtocolError as refusal:
                self._record(request, refusal.outcome, dumped(refusal))
                raise
            raise

    def _is_counted(self, request: Any) -> bool:
        """Count a request, once; return False if it is served again, by its dispatcher, when a rate has been
        leased. Raises RateExceeded, RateUnavailable and Overloaded."""
        if isinstance(request.counted, ProtocolError):
            raise request.counted
        if request.counted:
            return True
        dispatcher = request.dispatcher
        if not request.version:
            with suppress(ProtocolError):  # which `serve` raises again
                request.version = dispatcher.session.version_of(request.method, request.params)
        waiting = self._guard.count_request(dispatcher.principal, request.version)
        if waiting is not None:
            return self._put_off(request, waiting)
        request.counted = True
        return True

    def _put_off(self, request: Any, waiting: Coroutine[Any, Any, None]) -> bool:
        """Have a request served once it is counted; return True if it is to be refused now: another one has
        its id. Raises Overloaded."""
        dispatcher = request.dispatcher
        try:
            if request.key in dispatcher.requests.in_flight or request.key in dispatcher.changes.listening:
                waiting.close()
                return True
            dispatcher.runtime.admission.count_in()
        except ProtocolError:
            waiting.close()
            raise
        if request.method == "initialize":
            # Messages that follow are checked against this version, though this request is not answered yet.
            with suppress(ProtocolError):  # which `serve` raises again
                dispatcher.session.agree(request.params)
        deferred = DeferredRequest(dispatcher, request)
        dispatcher.requests.defer(request, deferred)
        dispatcher.connection.call_in_loop(lambda: self._begin(deferred, waiting))
        return False

    def _begin(self, deferred: DeferredRequest, waiting: Coroutine[Any, Any, None]) -> None:
        import asyncio

        task = asyncio.get_running_loop().create_task(self._count_later(deferred, waiting))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _count_later(self, deferred: DeferredRequest, waiting: Coroutine[Any, Any, None]) -> None:
        request = deferred.request
        try:
            await waiting
            request.counted = True
        except ProtocolError as error:
            request.counted = error
        except Exception as error:
            request.counted = own_fault(request.method, error)
        finally:
            deferred.dispatcher.runtime.calls.count -= 1
        deferred.resume()

    def _record(self, request: Any, outcome: str, answer: bytes | None) -> None:
        if self._audit is not None:
            self._audit.request(request, request.dispatcher.principal, outcome, answer)


def dumped(error: ProtocolError) -> bytes:
    """Return an error in the form in which the client receives it."""
    from fastrpc._core.encoder import dumps

    return dumps({"code": error.code, "message": error.message, "data": error.data})
