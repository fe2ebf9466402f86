"""The `Context` of a call, which a handler receives besides its arguments.

A parameter annotated with `Context` receives it and is not part of the schema. A tool without such a
parameter costs nothing more. Messages are sent to the client through `fastrpc.engine.outbound_channel`.
"""

from __future__ import annotations

from fastrpc._core.context import CallContext
from fastrpc.errors import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from typing import Any, TypeVar, _SpecialForm, overload

    from typing_extensions import TypeForm, Unpack

    from fastrpc.callers import Caller
    from fastrpc.client_requests.base import InputRequest
    from fastrpc.client_requests.elicitation import ElicitResult
    from fastrpc.client_requests.sampling import Said, Sample
    from fastrpc.content import Contents
    from fastrpc.engine.ports import OutboundChannel, TaskOfCall
    from fastrpc.options import LogLevel, Root, SamplingOptions

    Value = TypeVar("Value")


class Done:
    """The result of a method that has completed, for handlers that ``await`` it."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE = Done()


class Context(CallContext):
    """One call of a tool, or of another handler.

    `request_id` is the JSON-RPC id; `protocol_version` the version that the client speaks; `client_info` the
    client's Implementation (MCP). `cancelled` is True once the client has cancelled the call or disconnected:
    a tool that runs on a thread checks it from time to time and returns; an async tool gets
    asyncio.CancelledError instead. A test that calls a tool's function may create a Context without an
    outbound channel, which sends nothing.
    """

    __slots__ = ()

    def __init__(
        self,
        request_id: str | int = 0,
        protocol_version: str = "",
        client_info: dict[str, Any] | None = None,
        outbound_channel: OutboundChannel | None = None,
        *,
        link: OutboundChannel | None = None,
    ) -> None:
        if link is not None:
            from warnings import warn

            warn("Context: link= is called outbound_channel= now", DeprecationWarning, stacklevel=2)
            outbound_channel = link
        self.fill(request_id, protocol_version, client_info or {}, outbound_channel)

    @property
    def state(self) -> Any:
        """The value of the server's ``lifespan``: a connection pool, a client, anything that calls share."""
        return None if self._channel is None else self._channel.state

    @property
    def server(self) -> Any:
        """The `Server` that the handler belongs to; None for a context that a test has created."""
        return None if self._channel is None else self._channel.server

    @property
    def principal(self) -> str:
        """The authenticated principal: the same text for all calls with the same token, or with JWTs of the
        same issuer and subject (and, where a guard gives them classes by their claims, of the same class and
        scopes); "" over stdio, and over HTTP without authentication. A tool that stores data between calls
        must store it by principal.
        """
        return "" if self._channel is None else self._channel.principal

    @property
    def caller(self) -> Caller:
        """Who calls: `owner`, `caller_class` and `scopes` of the principal, as the server's guard knows them.
        Without a guard the owner is the principal, or the user of the operating system if there is no
        principal. A tool that stores data for a person, whichever token they use, stores it by owner.
        """
        if self._channel is None:
            from fastrpc.callers import unguarded

            return unguarded("")
        return self._channel.caller

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client has declared (MCP: ClientCapabilities)."""
        return {} if self._channel is None else self._channel.capabilities

    @property
    def task(self) -> TaskOfCall | None:
        """The task that this call is, or becomes if it lasts: its `id`, whether it `exists` by now, and
        whether it `is_cancelled`. None if the client gets no task of this call (docs/tasks.md).
        """
        return None if self._channel is None else self._channel.task

    # --- notifications --------------------------------------------------------------------------------

    @property
    def wants_progress(self) -> bool:
        """Whether the request carried a progress token (MCP, utilities: progress)."""
        return not self.asks_no_progress and self._channel is not None and self._channel.token is not None

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Done:
        """Report progress, if the client has asked for it. Thread-safe.

        `progress` must increase from report to report; others are dropped. At most 20 reports a second are
        sent, the last one always. The returned value may be awaited, and need not be. Raises TypeError and
        ValueError for values that are not finite numbers.
        """
        if not self.asks_no_progress and self._channel is not None and not self.cancelled:
            report: dict[str, Any] = {"progress": progress}
            if total is not None:
                report["total"] = total
            if message is not None:
                report["message"] = message
            self._channel.progress(report)
        return DONE

    def log(self, data: object, level: LogLevel = "info", logger: str | None = None) -> Done:
        """Send the client a log message, if it has asked for this level (MCP, utilities: logging).

        `data` is any JSON value, usually a text; `level` one of debug, info, notice, warning, error,
        critical, alert, emergency. Thread-safe. Raises ValueError for any other level.
        """
        if self._channel is not None and not self.cancelled:
            self._channel.log(level, data, logger)
        return DONE

    def debug(self, data: object, logger: str | None = None) -> Done:
        """Send a log message of the level `debug`; see `log`."""
        return self.log(data, "debug", logger)

    def info(self, data: object, logger: str | None = None) -> Done:
        """Send a log message of the level `info`; see `log`."""
        return self.log(data, "info", logger)

    def warning(self, data: object, logger: str | None = None) -> Done:
        """Send a log message of the level `warning`; see `log`."""
        return self.log(data, "warning", logger)

    def error(self, data: object, logger: str | None = None) -> Done:
        """Send a log message of the level `error`; see `log`."""
        return self.log(data, "error", logger)

    def spend(self, amount: float, unit: str) -> None:
        """Count an amount that this call costs, in a unit that the tool declares: ``costs={"tokens": 0}``.

        For budgets of a guard (docs/guard.md). The amount is counted at once and replaces the declared one;
        several amounts of a unit are added. This call is neither refused nor undone if it exceeds a budget;
        the next one is refused. Does nothing on a server without budgets. Thread-safe. Raises ValueError for
        an amount that is not a number from 0 on, and for a unit that the tool does not declare.
        """
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < float("inf"):
            raise ValueError(f"spend: expected a number from 0 on, got {amount!r:.40}")
        tool = self._tool
        if tool is not None and unit not in (getattr(tool, "costs", None) or ()):
            raise ValueError(undeclared(tool.name, unit))
        if self._is_recorded and self._channel is not None:
            self._channel.spend(unit, amount)

    def close_stream(self) -> Done:
        """Close the stream of a long call; the client reconnects later for the rest, result included (MCP
        2025-11-25, Streamable HTTP: polling).

        Does nothing if the client cannot reconnect: over stdio, and in the other versions.
        """
        if self._channel is not None and not self.cancelled:
            self._channel.pause()
        return DONE

    # --- requests to the client -----------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        async def elicit(
            self, message: str, form: None = None, *, key: str | None = None
        ) -> ElicitResult[None]: ...
        @overload
        async def elicit(
            self, message: str, form: type[Value], *, key: str | None = None
        ) -> ElicitResult[Value]: ...
        @overload
        async def elicit(
            self, message: str, form: list[str] | tuple[str, ...], *, key: str | None = None
        ) -> ElicitResult[str]: ...
        @overload
        async def elicit(
            self, message: str, form: TypeForm[Value], *, key: str | None = None
        ) -> ElicitResult[Value]: ...
        @overload
        async def elicit(
            self, message: str, form: dict[str, Any] | _SpecialForm, *, key: str | None = None
        ) -> ElicitResult[Any]: ...

    async def elicit(self, message: str, form: Any = None, *, key: str | None = None) -> ElicitResult[Any]:
        """Ask the person at the client to fill in a form (MCP, client features: elicitation).

        `form` is a dataclass, msgspec Struct, TypedDict or pydantic model of plain members, a plain type
        (``str``, ``int``, ``bool``, a Literal …), a list of texts to choose from, or a JSON Schema; None asks
        only for consent. Returns a `fastrpc.client_requests.ElicitResult`: `action` is accept, decline or
        cancel, and `accepted` is True for accept. `data` is the form's value or None; `value` is the form's
        value, or raises ToolError. Raises ToolError if the client cannot be asked, DefinitionError for an
        invalid form.

        From 2026-07-28 on the function runs again from its start once the answer has arrived: the code before
        this call is executed twice, unless `once` calls it. `key` identifies the question (by default its
        number).
        """
        from fastrpc.client_requests.elicitation import Form

        return await self._ask_one(Form(message, form), key)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> ElicitResult[None]:
        """Ask the person to visit a web page, for data that must not pass through the client: a secret.

        Raises ToolError if the client cannot be asked.
        """
        from fastrpc.client_requests.elicitation import Visit

        return await self._ask_one(Visit(message, url), key)

    async def sample(
        self,
        messages: Said | Sequence[Said],
        *,
        max_tokens: int = 1024,
        key: str | None = None,
        **options: Unpack[SamplingOptions],
    ) -> Sample:
        """Have the client's model continue `messages` (MCP, client features: sampling).

        `messages` is a text or a list of messages; the other members of the request may be given by their
        names in snake case (`system_prompt`, `temperature`, `tools`, `tool_choice` …). Returns an
        `fastrpc.client_requests.Sample` with `text`, `content`, `model` and `stop_reason`. Raises TypeError
        for an unknown option, ToolError if the client cannot be asked.
        """
        from fastrpc.client_requests.sampling import Sampling

        return await self._ask_one(Sampling(messages, max_tokens, options), key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Return the folders that the client works in, a list of ``{"uri", "name"}`` (MCP: roots).

        Raises ToolError if the client cannot be asked.
        """
        from fastrpc.client_requests.roots import Roots

        return await self._ask_one(Roots(), key)

    async def ask(self, **input_requests: InputRequest[Any]) -> dict[str, Any]:
        """Send several input requests at once, by key: `Form`, `Visit`, `Sampling`, `Roots` of
        `fastrpc.client_requests`.

        Returns the answers by key; None for a request that the client does not support. Raises ToolError if
        it supports none of them.
        """
        return await self._reach().ask(input_requests)

    async def _ask_one(self, input_request: InputRequest[Value], key: str | None) -> Value:
        key = key or ""
        answer: Value = (await self._reach().ask({key: input_request}))[key]
        return answer

    def once(self, key: str, function: Callable[[], Value]) -> Value:
        """Call `function` and return its value; when the handler runs again, return the stored value.

        For actions that must happen once although the handler runs again after an answer (`elicit`). The
        value is sent to the client and back, signed: it must be JSON, and not secret. A coroutine function is
        awaited: ``await ctx.once("order", place_order)``. Raises TypeError for a value that is not JSON.
        """
        if self._channel is None:
            return function()
        value: Value = self._channel.once(key, function)
        return value

    def read_resource(self, uri: str) -> Awaitable[list[Contents]]:
        """Read a resource of this server; return its contents. Raises ToolError if it does not exist."""
        return self._reach().read_resource(uri)

    def _reach(self) -> OutboundChannel:
        if self._channel is None:
            raise ToolError("this Context was made without a client: there is no client to ask")
        return self._channel


def undeclared(tool: str, unit: object) -> str:
    """Return the error message for a unit that a tool spends and does not declare."""
    return f"spend: {tool} does not declare {unit!r:.40}: @tool(costs={{{unit!r:.40}: 0}})"
