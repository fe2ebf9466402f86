"""The responses of one connection: results, errors, what calls end with, and the records of calls.

A response is written at once, or kept by the batch that its request came in. What a call returns or raises
is encoded here, once for the calls of the compiled connection and for those of Python.
"""

from __future__ import annotations

from fastrpc._core.encoder import TEXT_FORM
from fastrpc._core.recorder import ticks
from fastrpc.engine.call import BecomesTask, input_requests_of, outcome_of, own_fault
from fastrpc.engine.messages import RECORDED
from fastrpc.engine.results import error_object
from fastrpc.errors import FastrpcError, ParseError, ProtocolError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.connection import Connection
    from fastrpc._core.plan import Plan
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.call import Call
    from fastrpc.engine.request import Request
    from fastrpc.engine.requests_in_flight import RequestsInFlight
    from fastrpc.engine.runtime import Runtime


class ResponseWriter:
    """Writes the responses to a connection's requests."""

    __slots__ = ("connection", "last_outcome", "requests", "runtime")

    def __init__(self, runtime: Runtime, connection: Connection, requests: RequestsInFlight) -> None:
        self.runtime = runtime
        self.connection = connection
        self.requests = requests
        self.last_outcome: str | None = None
        """The outcome of the last request that was not ok; a reader of it sets it to None before each."""

    # --- requests -------------------------------------------------------------------------------------

    def answer(self, request: Request, result: bytes) -> None:
        """Answer a request with its result, as JSON text."""
        before = self._written(request.batch)
        if request.outcome and request.outcome != "ok":
            self.last_outcome = request.outcome
        self.put_result(request.id, result, request.batch)
        self._record(request, before)

    def refuse(self, request: Request, error: ProtocolError) -> None:
        """Answer a request with an error."""
        before = self._written(request.batch)
        self.last_outcome = request.outcome = request.outcome or error.outcome
        self.put_error(request.id, error, request.batch)
        self._record(request, before)

    def _record(self, request: Request, before: int) -> None:
        """Record a call that is over for its client; so many bytes had been written before its response."""
        recorder = self.runtime.recorder
        if recorder is not None and request.method in RECORDED:
            returned = request.returned or (ticks() if request.allowed else 0)
            size = self._written(request.batch) - before
            recorder.write(*request.record(self.connection.principal, returned, size))

    def _written(self, batch: Batch | None) -> int:
        """Return how many bytes of responses have been written so far, or are kept by a batch."""
        if batch is None or self.runtime.recorder is None:
            return self.connection.output.total
        return sum(map(len, batch.answers))

    # --- responses by id ------------------------------------------------------------------------------

    def put_result(self, id: bytes, result: bytes, batch: Batch | None) -> None:
        """Write a result, or have the batch keep it."""
        if batch is not None:
            batch.answers.append(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result))
            return
        self.connection.output.answer(id, result)
        self.connection.wrote()

    def put_error(self, id: bytes, error: ProtocolError, batch: Batch | None = None) -> None:
        """Write an error, or have the batch keep it."""
        body = error_object(error.code, error.message, error.data)
        if batch is not None:
            batch.answers.append(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, body))
            return
        self.connection.output.error(id, body)
        self.connection.wrote()

    def line_too_long(self) -> None:
        """Answer a line over the limit, which was not read."""
        self.put_error(b"null", ParseError("Parse error: a line longer than the limit"))

    def line_failed(self, line: bytes, before: int, error: BaseException, batch: Batch | None = None) -> None:
        """Answer a line whose handling has raised, which nothing is meant to: see `failed_lines.answer`."""
        from fastrpc.engine import failed_lines

        failed_lines.answer(self, line, before, error, batch)

    # --- the ends of calls ----------------------------------------------------------------------------

    def call_returned(self, call: Call, result: Any) -> None:
        """Answer a call in flight with what its function has returned."""
        request, plan = call.request, call.plan
        if self.runtime.recorder is not None:
            request.returned = ticks()
        if type(result) is str and request.batch is None and plan.encoder.is_text and plan.form == TEXT_FORM:
            try:
                before = self._written(None)
                self.connection.answer_text(request.id, result, request.version == STATELESS)
            except UnicodeEncodeError:
                pass  # `answer_encoded` answers with the error
            else:
                self._record(request, before)
                self.requests.forget(request)
                return
        self.answer_encoded(call, result)

    def answer_encoded(self, call: Call, result: Any) -> None:
        """Answer a call in flight with what its encoder makes of a result."""
        request, plan = call.request, call.plan
        try:
            encoded = plan.encoder.encode(request, plan.tool, result)
        except BaseException as error:
            self.call_raised(call, error)
        else:
            self.call_encoded(call, encoded)

    def call_encoded(self, call: Call, result: bytes) -> None:
        """Answer a call in flight with its result, as JSON text."""
        self.answer(call.request, result)
        self.requests.forget(call.request)

    def call_raised(self, call: Call, error: BaseException) -> None:
        """Answer a call in flight whose function has raised, or that was refused."""
        request = call.request
        if isinstance(error, BecomesTask):
            self.requests.take_back(request)
            self.runtime.features.call_as_task(request.dispatcher, request, call.plan.tool)
            return
        try:
            result = self.failure(request, call.plan, error)
        except BaseException as problem:
            response_error = problem if isinstance(problem, ProtocolError) else None
            self.refuse(request, response_error or own_fault(request.method, problem))
        else:
            self.answer(request, result)
        self.requests.forget(request)

    def call_dropped(self, call: Call) -> None:
        """A cancelled call is not answered; its batch does not wait for it."""
        request = call.request
        self.last_outcome = request.outcome = request.outcome or "cancelled"
        self._record(request, self._written(request.batch))
        self.requests.forget(request)
        self.requests.dropped()

    def failure(self, request: Request, plan: Plan, error: BaseException) -> bytes:
        """Return the result that describes the error of a call. Raises ProtocolError if it needs an error."""
        if isinstance(error, FastrpcError):
            error = error.answering(plan.tool.kind, self.runtime.server_of(plan.tool))
        request.outcome = request.outcome or outcome_of(error)
        if isinstance(error, ProtocolError):
            raise error
        input_requests = input_requests_of(error)
        if input_requests is not None:
            return self.runtime.features.input_required(request, input_requests)
        result: bytes = plan.encoder.failure(request, plan.tool, error)
        return result
