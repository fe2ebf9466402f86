"""A call that has not been answered, and the base class of its `fastrpc.Context`."""

from asyncio import AbstractEventLoop
from typing import Any

from fastrpc._core.plan import Plan
from fastrpc._core.task import CallTask
from fastrpc.context import Context
from fastrpc.engine.ports import OutboundChannel
from fastrpc.engine.request import Request

class InFlightCall:
    """A call; or, without a subclass, one that runs now and has read its Context. `state` is one of those in
    `fastrpc.engine.request`; `request` is None until one is needed."""

    context: Context | None
    request: Request
    task: CallTask | None
    state: str
    @property
    def plan(self) -> Plan: ...
    def take(self, plan: Plan, context: Context | None, request: Request, state: str) -> None:
        """Take the request that the call answers."""
    def leave(self) -> bool:
        """End the call for its client, and take it out of the queue that it waits in; False if it has ended
        before."""
    def left(self) -> None:
        """The function has returned or raised, on the thread that answers now."""
    def send_rest(self) -> None:
        """Send what other threads have posted, and a progress report that is held back, before the answer."""
    def limit(self, loop: AbstractEventLoop, passed: float) -> None:
        """Have the call end at its time limit; so many seconds have passed."""
    def expire(self) -> None:
        """The time limit has passed: answer now, and stop the work as far as it can be stopped."""
    def break_off(self, error: BaseException) -> None:
        """Answer with an error now, and stop the work as far as it can be stopped."""
    def cancel(self, said: dict[str, Any] | None = None) -> None:
        """The client has cancelled, or is gone: stop the work and answer nothing. `said`: the
        params of the client's notification, such as its reason."""
    def end(self, result: Any, error: BaseException | None) -> None:
        """Answer with a result, or with an error that is not None; unless the call has ended."""
    def drop(self) -> None:
        """End the call without an answer, unless it has ended."""
    def stop(self) -> None:
        """Stop the work: it sends nothing more to the client."""

class CallContext:
    """One call. `cancelled`: the client has cancelled it or gone away; `ended`: its function has returned;
    `asks_no_progress`: the request has no progress token."""

    cancelled: bool
    @property
    def ended(self) -> bool:
        """Whether the function of the call has returned."""
    @property
    def asks_no_progress(self) -> bool:
        """Whether the request has no progress token."""
    @property
    def request_id(self) -> str | int:
        """The JSON-RPC id of the request."""
    @property
    def protocol_version(self) -> str:
        """The version that the client speaks."""
    @property
    def client_info(self) -> dict[str, Any]:
        """The clientInfo of the client: its name and version (MCP: Implementation)."""
    @property
    def _tool(self) -> Any:
        """The tool that is called; None once the request has been looked at, and for one made by hand."""
    @property
    def _is_recorded(self) -> bool:
        """Whether a budget may count what the call spends: reading it parses nothing."""
    @property
    def _channel(self) -> OutboundChannel | None: ...
    def _call_for(self, request: Request) -> InFlightCall:
        """Return the call that the request of this Context belongs to."""
    def fill(
        self,
        request_id: str | int,
        protocol_version: str,
        client_info: dict[str, Any],
        link: OutboundChannel | None,
    ) -> None:
        """Set the attributes, once; `link` is the channel to the client, or None."""
