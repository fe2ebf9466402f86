"""Holds the answer of each call back until it is recorded, for an observer that wants that.

`Recorder.holder` is called with the record of a call before its answer leaves, and with what lets the answer
go: it may be called from any thread, at any time. The call is in flight until then; nothing else waits for
it. All calls of such a server come to the dispatcher (`CallPlans._is_ready`): the connection answers none by
itself. Costs some microseconds a call besides what the observer takes. Imported only where an observer holds
answers; the observer stores the record.
"""

from __future__ import annotations

from functools import partial
from threading import Lock

from fastrpc._core.recorder import Recorder
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.engine.messages import RECORDED
from fastrpc.engine.recorded_content import RecordedRequest, RecordedResponses
from fastrpc.engine.requests_in_flight import RequestsInFlight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Self

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.message import Message
    from fastrpc._core.recorder import CallRecord
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.requests_in_flight import TrackedRequest
    from fastrpc.errors import ProtocolError

    LetGo = Callable[["Callable[[str], ProtocolError] | None"], object]
    """Sends the answer with None; with a function, the error that this returns for a protocol version."""

_lock = Lock()
_scratch = Recorder(1)
"""Makes records of calls whose answers wait."""


class HeldRequest(RecordedRequest):
    """A request whose answer may be held. `note` is what a guard has noted of its call."""

    __slots__ = ("is_held", "note")
    is_held: bool
    note: Any

    @classmethod
    def of(cls, dispatcher: Any, message: Message, batch: Batch | None) -> Self:
        found = super().of(dispatcher, message, batch)
        found.is_held = False
        found.note = None
        return found


class HeldRequests(RequestsInFlight):
    """Requests in flight, some of which have an answer that is held."""

    __slots__ = ()

    def forget(self, request: TrackedRequest) -> None:
        """Take a request out, unless its answer is held, or that was done already."""
        if self.in_flight.get(request.key) is request and not getattr(request, "is_held", False):
            super().forget(request)


class HeldResponses(RecordedResponses):
    """Responses that are held if they answer calls."""

    __slots__ = ()

    def answer(self, request: Any, result: bytes) -> None:
        request.answered = result
        self._hold(request, partial(super().answer, request, result))

    def refuse(self, request: Any, error: ProtocolError) -> None:
        self._keep_error(request, error)
        request.outcome = request.outcome or error.outcome
        self._hold(request, partial(super().refuse, request, error))

    def _hold(self, request: HeldRequest, send: Callable[[], object]) -> None:
        recorder = self.runtime.recorder
        if recorder is None or recorder.holder is None or request.method not in RECORDED:
            send()
            return
        in_flight = self.requests.in_flight
        if in_flight.get(request.key) is not request:
            if request.key in in_flight:  # another request has its id: it gets a unique key
                request.key = b"%b again %d" % (request.key, id(request))
            self.requests.put(request)
            request.dispatcher.outbound.begin_loop()
        request.is_held = True
        post = request.dispatcher.outbound.post  # from whatever thread

        def let_go(instead: Callable[[str], ProtocolError] | None) -> None:
            post(partial(self._release, request, send, instead))

        recorder.holder(self._record_now(request), request.note, let_go)

    def _release(
        self,
        request: HeldRequest,
        send: Callable[[], object],
        instead: Callable[[str], ProtocolError] | None,
    ) -> None:
        request.is_held = False
        if instead is None:
            send()
        else:
            error = instead(request.version)
            request.outcome = error.outcome
            super().refuse(request, error)
        self.requests.forget(request)

    def _record_now(self, request: HeldRequest) -> CallRecord:
        """Return the record of a call whose answer is there."""
        size = len(request.answered or b"")
        with _lock:
            _scratch.write(*request.record(self.connection.principal, request.returned, size))
            return _scratch.drain()[0]


class HoldingDispatcher(Dispatcher):
    """A dispatcher that holds the answers of calls."""

    request_type = HeldRequest
    requests_type = HeldRequests
    responses_type = HeldResponses


def note(call: CallInfo, value: object) -> None:
    """Note something of a guarded call: the holder of its answer is handed what was noted first."""
    channel: Any = call.context._channel
    if getattr(channel.request, "note", value) is None:  # what is called from inside may have no such request
        channel.request.note = value
