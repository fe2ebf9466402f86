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

    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.interfaces import ServedDelegate, ServedDispatcher


UNBOUND = CallerPlans("", {})
"""What a connection is bound to before its first request, and after the tools have changed."""


class SharedConnection:
    """One for the requests of 2026-07-28, or for those in sessions of another `version`.

    Before each call it is bound to the caller's principal, `busy` is set and `declined` cleared; after the
    call `busy` is cleared (`HotPath`).
    """

    def __init__(self, app: HttpApp, loop: AbstractEventLoop, version: str | None) -> None:
        self.dispatcher: ServedDispatcher = app.connect()
        if version is not None:
            self.dispatcher.adopt_version(version)
        self.connection = self.dispatcher.connection
        self._delegate: ServedDelegate = self.connection.delegate
        self.connection.dispatcher = self.connection.delegate = self
        self.connection.call_in_loop = lambda function: function()
        self.connection.notify = lambda line: None  # no client receives notifications here
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
        self.has_current_plans = self._delegate.has_current_plans
        self.call_ended = self._delegate.call_ended
        self.binding_failed = self._delegate.binding_failed
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
            and not self.connection.counted  # a request that is counted may have to wait
        ):
            self.id = message.id
            dispatcher.dispatch(message)
        else:
            self.declined = True

    def call_failed(self, id: bytes, plan: Plan, error: BaseException, stateless: bool) -> str:
        """A call has raised; return its outcome."""
        self.id = id
        return self._delegate.call_failed(id, plan, error, stateless)
