"""A connection shared by the plain calls of all callers: those of tools that run inline and take no Context.

It is bound to one principal at a time: it calls the tools that exist for that one, as far as the guard's gate
allows it without a Context (`fastrpc._core.call_gate`), and records calls as that one's. It answers at once
or not at all. It replaces the dispatcher and the delegate of its connection, and so receives every message
that the connection does not answer by itself, before that has had any effect.
"""

from __future__ import annotations

from fastrpc import forks
from fastrpc.transports.http.remembered import CallerPlans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.errors import ProtocolError
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.interfaces import ServedDelegate, ServedDispatcher


UNBOUND = CallerPlans("", {})
"""What a connection is bound to before its first request, and after the tools have changed."""


class SharedConnection:
    """One for the requests of 2026-07-28, or for those in sessions of another `version`.

    Before each call it is bound to the caller's principal, `busy` is set and `declined` cleared; after the
    call `busy` is cleared (`HotPath`).
    """

    __slots__ = ("_delegate", "busy", "connection", "declined", "dispatcher", "id", "is_forked_child")

    def __init__(self, app: HttpApp, loop: AbstractEventLoop, version: str | None) -> None:
        self.dispatcher: ServedDispatcher = app.connect()
        if version is not None:
            self.dispatcher.adopt_version(version)
        self.connection = self.dispatcher.connection
        self._delegate: ServedDelegate = self.connection.delegate
        self.connection.dispatcher = self.connection.delegate = self
        self.connection.call_in_loop = lambda function: function()
        self.connection.notify = _ignore  # no client receives notifications here
        self.dispatcher.loop_runs(loop)
        self.connection.shared = True
        self.connection.generation = forks.generation
        self.busy = False
        """Whether a tool is being called: it may run the loop."""
        self.declined = False
        """Whether the message was not answered here."""
        self.is_forked_child = False
        """Whether this is a child process, which answers nothing."""
        self.id: bytes | None = None
        """The id of a request that Python code has answered, perhaps with an error."""
        app.at_end.append(self.dispatcher.close)  # the server waits for its last connection to end

    def take_plans(self) -> None:
        """Make the plans anew, after the tools have changed; the connection is then bound to no principal."""
        self._delegate.on_client_idle()
        self.connection.bound_plans = UNBOUND

    def bind_to_principal(self, caller: CallerPlans) -> None:
        """Have the next calls be those of a principal. It ends with `Connection.bound_plans`, which the
        connection clears when the tools change."""
        connection = self.connection
        connection.principal = caller.principal
        if connection.plans is not caller.plans:
            connection.take_plans(caller.plans)
        connection.bound_plans = caller

    def let_go(self) -> None:
        """Stop answering, in a child process that the running tool may have forked."""
        self.is_forked_child = self.declined = True

    # --- called by the connection, as methods of a dispatcher and of a delegate ---------------------------

    def dispatch(self, message: Message) -> None:
        """Handle a message that the connection did not answer: a list that is not ready, or another call."""
        dispatcher = self.dispatcher
        if (
            message.method == "tools/list"
            and not dispatcher.runtime.has_upstreams
            and not dispatcher.runtime.filters.is_filtered  # this connection serves callers of all classes
            and not dispatcher.session.version
        ):
            self.id = message.id
            dispatcher.dispatch(message)
        else:
            self.declined = True

    def has_current_plans(self) -> bool:
        """Whether the connection calls what exists now for the principal to which it is bound."""
        return self._delegate.has_current_plans()

    def call_ended(self, id: bytes, plan: Plan, result: Any, stateless: bool) -> str:
        """A call has returned more than a plain value; return its outcome."""
        return self._delegate.call_ended(id, plan, result, stateless)

    def call_failed(self, id: bytes, plan: Plan, error: BaseException, stateless: bool) -> str:
        """A call has raised; return its outcome."""
        self.id = id
        return self._delegate.call_failed(id, plan, error, stateless)

    def binding_failed(self, error: BaseException) -> ProtocolError:
        """A type's own conversion of an argument has failed; return the error for the client."""
        return self._delegate.binding_failed(error)


def _ignore(line: bytes) -> None:
    """Drop a notification that belongs to no request: the connection belongs to no client."""
