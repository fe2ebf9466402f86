"""A connection that plain calls of all callers share: of tools that run inline and take no Context.

It answers at once or not at all. It takes the dispatcher's place behind its connection, so that it hears of
every message that the connection does not answer by itself; nothing has happened to those.
"""

from __future__ import annotations

from fastrpc import forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from fastrpc._core.message import Message
    from fastrpc._core.plan import Plan
    from fastrpc.errors import ProtocolError
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.interfaces import Dispatcher


class SharedConnection:
    """One for the requests of 2026-07-28, or for those in sessions of another `version`.

    Before each call `busy` is set and `missed` cleared, behind it `busy` is cleared; see `HotPath`.
    """

    __slots__ = ("busy", "connection", "dispatcher", "id", "left", "missed")

    def __init__(self, app: HttpApp, loop: AbstractEventLoop, version: str | None) -> None:
        self.dispatcher: Dispatcher = app.connect()
        if version is not None:
            self.dispatcher.assume(version)
        self.connection = self.dispatcher.connection
        self.connection.dispatcher = self
        self.connection.call_in_loop = lambda function: function()
        self.connection.tell = _ignore  # no client hears of changes here
        self.dispatcher.loop_runs(loop)
        self.connection.shared = True
        self.connection.generation = forks.generation
        self.busy = False
        """Whether a tool is being called: it may run the loop."""
        self.missed = False
        """Whether the message was not for this connection."""
        self.left = False
        """Whether this is a child process, which answers nothing."""
        self.id: bytes | None = None
        """Of a request that Python has answered: that may be an error."""
        app.at_end.append(self.dispatcher.close)  # the server waits for its last connection to end

    def let_go(self) -> None:
        """Answer nothing any more, in a child process that the tool may have forked which is being called."""
        self.left = self.missed = True

    # --- what the connection calls, in a dispatcher's place -----------------------------------------------

    def dispatch(self, message: Message) -> None:
        """The connection did not answer by itself: a list that is not ready, or a call that is not likely."""
        dispatcher = self.dispatcher
        if (
            message.method == "tools/list"
            and not dispatcher.runtime.has_upstreams
            and not dispatcher.runtime.is_filtered  # this connection serves callers of all classes
            and not dispatcher.session.version
        ):
            self.id = message.id
            dispatcher.dispatch(message)
        else:
            self.missed = True

    def call_ended(self, id: bytes, plan: Plan, result: Any, modern: bool) -> str:
        """A call has returned more than a plain value; return its outcome."""
        return self.dispatcher.call_ended(id, plan, result, modern)

    def call_failed(self, id: bytes, plan: Plan, error: BaseException, modern: bool) -> str:
        """A call has raised; return its outcome."""
        self.id = id
        return self.dispatcher.call_failed(id, plan, error, modern)

    def binding_failed(self, error: BaseException) -> ProtocolError:
        """A type's own reading of an argument has failed; return what the client is told."""
        return self.dispatcher.binding_failed(error)


def _ignore(line: bytes) -> None:
    """Drop a notification that belongs to no request: this connection has no client of its own."""
