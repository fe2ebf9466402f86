"""One call of a tool, a resource or a prompt, between the engine and middleware: its message, what the last
`call_next` does, and the result."""

from __future__ import annotations

from json import loads

from fastrpc import tracebacks
from fastrpc.compat import errors
from fastrpc.compat.interception.messages import call_params
from fastrpc.compat.interception.results import (
    SeenPromptResult,
    SeenResourceResult,
    SeenToolResult,
    seen_prompt_result,
    seen_resource_result,
    seen_tool_result,
)
from fastrpc.errors import (
    FAILURES,
    ArgumentError,
    FastrpcError,
    ResourceNotFound,
    UnknownName,
    excerpt,
)
from fastrpc.json_encoding import UnencodableResult
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.plan import Plan
    from fastrpc.compat.middleware.base import MiddlewareContext
    from fastrpc.engine.request import Request
    from fastrpc.engine.wrappers import WrappedCall


class SeenCall:
    """One call. `within` makes it; None: there is no such handler, or the arguments do not fit, and `proceed`
    raises what is wrong."""

    __slots__ = ("_name", "_proceed", "_server", "call", "message", "request", "within")

    kind = method = params = ""
    seen: Any

    def __init__(
        self,
        server: Any,
        call: CallInfo,
        within: WrappedCall | None,
        request: Request | None = None,
        proceed: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        self._server = server
        self._proceed = proceed
        self.call = call
        self.within = within
        self.request = request
        self._name: str = request.params[self.target] if request is not None else self._own_name()
        self.message = self._message()

    target = "name"
    """The member of the params that says what is called."""

    @property
    def is_outermost(self) -> bool:
        return self.within is None or self.within.outermost

    def _own_name(self) -> str:
        assert self.within is not None
        return self.within.name

    def _message(self) -> Any:
        return call_params(self.params, {self.target: self._name}, self._arguments)

    def _arguments(self) -> dict[str, Any] | None:
        """Return the arguments as the client has sent them; in a mounted server, as they have come there."""
        if self.is_outermost:
            request = self.request or self._wire_request()
            if request.method == self.method:
                found: dict[str, Any] | None = request.params.get("arguments")
                return dict(found or {}) if self.kind == "tool" else found
        return self.call.arguments

    def _wire_request(self) -> Any:
        return self.call.context._reach().request

    async def end(self, context: MiddlewareContext[Any]) -> Any:
        """Do what the last `call_next` does: make the call that the message asks for."""
        message = context.message
        name = str(getattr(message, self.target))
        call = self.call
        if name != self._name or (self.within is None and not self._is_untouched(message)):
            return await self._call_other(name, message)
        if self.within is None:
            assert self._proceed is not None
            return await self._proceed()
        if not self._is_untouched(message):
            self._bind(message.arguments)
        if self.kind != "resource":
            call.name = name
        handler = self.within.handler
        try:
            value = await self.within.proceed(call)
        except FAILURES as error:
            if self._is_expected(error):
                raise
            raise self._seen_error(handler, name, error) from error
        return self._result(handler, name, value)

    @staticmethod
    def _is_untouched(message: Any) -> bool:
        return getattr(message, "are_arguments_untouched", False) is True

    def _bind(self, arguments: dict[str, Any] | None) -> None:
        self.call.arguments = arguments or {}

    async def _call_other(self, name: str, message: Any) -> Any:
        """Call another handler than the client has, or the same one with arguments that fit now."""
        from fastrpc.engine.wrappers import call_within

        plan, bound = self._plan_of(name, message)
        try:
            value = await call_within(self.call, plan, name, bound)
        except FAILURES as error:
            if self._is_expected(error):
                raise
            raise self._seen_error(plan.tool, name, error) from error
        return self._result(plan.tool, name, value)

    def _plan_of(self, name: str, message: Any) -> tuple[Plan, list[Any]]:
        """Return the plan for a name of this server, and the bound arguments. Raises UnknownName, and others
        of that kind."""
        raise NotImplementedError

    def _result(self, handler: Any, name: str, value: Any) -> Any:
        """Return what middleware sees of a value."""
        raise NotImplementedError

    def _is_of_another(self, handler: Any, value: Any) -> bool:
        """Whether a value has to be read before another handler than its own is answered with it. A result of
        another server (`rest`) is whole, and goes on as it is."""
        is_own = self.within is not None and handler is self.within.handler
        return not is_own and getattr(value, "rest", None) is None

    @staticmethod
    def _is_expected(error: BaseException) -> bool:
        """Whether an error is a refusal, which middleware sees as it is."""
        code = getattr(getattr(error, "error", None), "code", None)
        return isinstance(error, (FastrpcError, UnencodableResult)) or isinstance(code, int)

    def _seen_error(self, handler: Any, name: str, error: BaseException) -> BaseException:
        """Return the ToolError that middleware sees in the place of an unexpected error, and log that."""
        tracebacks.report(handler, error)
        return errors.tool_error(self._complaint(handler, name, error))

    def _complaint(self, handler: Any, name: str, error: BaseException) -> str:
        raise NotImplementedError

    @property
    def version(self) -> str:
        return str(self.call.context.protocol_version)


class SeenToolCall(SeenCall):
    """The call of a tool."""

    __slots__ = ()
    kind = "tool"
    method = "tools/call"
    params = "CallToolRequestParams"
    seen = staticmethod(seen_tool_result)

    def _plan_of(self, name: str, message: Any) -> tuple[Plan, list[Any]]:
        plan = self._server.runtime.plans.tools.get(name)
        if plan is None:
            raise UnknownName(f"Unknown tool: {excerpt(name)}")
        return plan, plan.tool.signature.bind(message.arguments or {})

    def _result(self, handler: Any, name: str, value: Any) -> Any:
        runtime = self._server.runtime
        seen = SeenToolResult(
            value, lambda value: loads(runtime.results.of(handler, value, self._shown_version()))
        )
        if self._is_of_another(handler, value):
            seen._fill()  # its value is encoded for the tool that the client has called
        return seen

    def _shown_version(self) -> str:
        from fastrpc.protocol.versions import LATEST_SESSION_VERSION

        return LATEST_SESSION_VERSION  # without what 2026-07-28 has around each result

    def _complaint(self, handler: Any, name: str, error: BaseException) -> str:
        from fastrpc.redaction import masked

        style = getattr(self._server, "_style", None)
        text = masked(str(error))
        return text if style is None else str(style.failure_text(name, error, text))


class ResourceRead(SeenCall):
    """The read of a resource."""

    __slots__ = ()
    kind = "resource"
    method = "resources/read"
    params = "ReadResourceRequestParams"
    target = "uri"
    seen = staticmethod(seen_resource_result)

    def _own_name(self) -> str:
        request = self._wire_request()
        uri: str = request.params["uri"] if request.method == self.method else self.call.name
        assert self.within is not None
        own = self.within.handler.origin
        if any(server is self._server for server, _ in own):  # which may know it by another address
            from fastrpc.methods.resources import bound_at

            for address in self._server._own_addresses(uri):
                if bound_at(self._server.registries, address) is not None:
                    return str(address)
        return uri

    def _message(self) -> Any:
        return call_params(self.params, {"uri": self._name}, None)

    def _bind(self, arguments: dict[str, Any] | None) -> None:
        """A resource has no arguments but its URI."""

    @staticmethod
    def _is_untouched(message: Any) -> bool:
        return True

    def _plan_of(self, name: str, message: Any) -> tuple[Plan, list[Any]]:
        from fastrpc.methods import resources

        runtime = self._server.runtime
        found = resources.bound_at(runtime.registries, name)
        if found is None:
            raise ResourceNotFound(name, legacy=self.version != STATELESS)
        return runtime.plans.of_handler(found[0], resources.ContentsEncoder), found[1]

    def _result(self, handler: Any, name: str, value: Any) -> Any:
        if value is None:
            raise ResourceNotFound(name, legacy=self.version != STATELESS)
        from fastrpc.methods.resources import contents_of

        seen = SeenResourceResult(value, lambda value: contents_of(value, name, handler.mime_type))
        if self._is_of_another(handler, value):
            seen.contents = contents_of(value, name, handler.mime_type)
        return seen

    def _complaint(self, handler: Any, name: str, error: BaseException) -> str:
        from fastrpc.redaction import masked
        from fastrpc.tool_style import PLAIN

        return str(getattr(handler, "style", PLAIN).failure_text(name, error, masked(str(error))))


class PromptCall(SeenCall):
    """The rendering of a prompt."""

    __slots__ = ()
    kind = "prompt"
    method = "prompts/get"
    params = "GetPromptRequestParams"
    seen = staticmethod(seen_prompt_result)

    def _plan_of(self, name: str, message: Any) -> tuple[Plan, list[Any]]:
        from fastrpc.methods.prompts import PromptEncoder, unbound

        runtime = self._server.runtime
        prompt = runtime.registries.prompts.get(name)
        if prompt is None:
            raise UnknownName(f"Unknown prompt: {excerpt(name)}")
        arguments = message.arguments or {}
        try:
            bound = prompt.signature.bind(arguments)
        except ArgumentError as error:
            raise unbound(prompt, arguments, error) from None
        return runtime.plans.of_handler(prompt, PromptEncoder), bound

    def _result(self, handler: Any, name: str, value: Any) -> Any:
        from fastrpc.methods.prompts import messages_of

        seen = SeenPromptResult(value, lambda value: messages_of(value, self.version), handler.description)
        if self._is_of_another(handler, value):
            seen.messages  # noqa: B018 - reads them
        return seen

    def _complaint(self, handler: Any, name: str, error: BaseException) -> str:
        from fastrpc.methods.prompts import failure_text

        return failure_text(handler, error)


KINDS: dict[str, type[SeenCall]] = {kind.kind: kind for kind in (SeenToolCall, ResourceRead, PromptCall)}
CALL_OF: dict[str, type[SeenCall]] = {kind.method: kind for kind in KINDS.values()}
