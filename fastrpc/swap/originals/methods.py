"""The table of methods of an original's low-level server: each is handed to the original, except the
handshake.

Results are sent as the original has made them, errors with its codes. Calls of tools that have a call plan
are made by the compiled connection (`fastrpc.swap.originals.serving`); the others are handed over, too.
"""

from __future__ import annotations

from fastrpc import methods, tracebacks
from fastrpc.compat.lowlevel.own_methods import MethodHandler
from fastrpc.json_encoding import to_json
from fastrpc.methods import Method, lifecycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.definitions.handler import Handler
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.swap.originals.interfaces import Original


class HandedResult:
    """Encodes what the original has returned: the result itself, as a dict."""

    is_text = False

    @staticmethod
    def encode(request: Request, handler: Handler, value: dict[str, Any]) -> bytes:
        return to_json(value)

    @staticmethod
    def failure(request: Request, handler: Handler, error: BaseException) -> bytes:
        if isinstance(error, Exception):
            runtime: Any = request.dispatcher.runtime
            raise runtime.server.original.error_of(error, request.version)
        raise error


class Handed:
    """The result of a tool that the original has called after all, as it is sent."""

    __slots__ = ("result",)

    def __init__(self, result: dict[str, Any]) -> None:
        self.result = result


class ToolResults(methods.TOOL_RESULTS):
    """Encodes results of tools: those of planned calls, and `Handed` ones."""

    @staticmethod
    def encode(request: Request, tool: Any, value: Any) -> bytes:
        if type(value) is Handed:
            return to_json(value.result)
        return methods.TOOL_RESULTS.encode(request, tool, value)


class OriginalMethods:
    """The methods and notifications of one original, for the engine; the rest is that of
    `fastrpc.methods`."""

    TOOL_RESULTS = ToolResults

    def __init__(self, original: Original) -> None:
        self._original = original
        self._tasks: set[Any] = set()
        self.METHODS = {name: self._handed(name, versions) for name, versions in original.methods.items()}
        self._initialize_handed = self._handed("initialize", original.session_versions)
        self.METHODS["initialize"] = Method(original.session_versions, self._initialize)
        if "tools/call" in self.METHODS:
            self._call_handed = self.METHODS["tools/call"]
            self.METHODS["tools/call"] = Method(self._call_handed.versions, self._call_tool)
        self.NOTIFICATIONS = {
            name: self._taken(name) for name in {*methods.NOTIFICATIONS, *original.notifications}
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(methods, name)

    def _handed(self, name: str, versions: tuple[str, ...]) -> Method:
        original = self._original

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            return await original.answer(name, params)

        handler = MethodHandler(name, answer)

        def serve(dispatcher: Dispatcher, request: Request) -> bytes | None:
            plan = dispatcher.runtime.plans.of_handler(handler, HandedResult)
            return dispatcher.begin(request, plan, [request.params])

        return Method(versions, serve)

    def _initialize(self, dispatcher: Dispatcher, request: Request) -> bytes | None:
        """Agree on a version that the original has, its latest in place of one that it does not have. Where
        the original keeps the handshake itself, the result is its own."""
        requested, offered = request.params.get("protocolVersion"), self._original.session_versions
        if isinstance(requested, str) and requested not in offered:
            request.params = {**request.params, "protocolVersion": offered[-1]}
        result = lifecycle.initialize(dispatcher, request)
        if not self._original.hands_initialize:
            return result
        request.version = dispatcher.session.version or ""
        return self._initialize_handed.serve(dispatcher, request)

    def _call_tool(self, dispatcher: Dispatcher, request: Request) -> bytes | None:
        params = request.params
        name, arguments = params.get("name"), params.get("arguments")
        plans = dispatcher.take_plans()
        if name not in plans and self._original.find_plain_tools():
            plans = dispatcher.take_plans()
        if isinstance(name, str) and name in plans and isinstance(arguments, dict) and "task" not in params:
            return methods.METHODS["tools/call"].serve(dispatcher, request)
        return self._call_handed.serve(dispatcher, request)

    def _taken(self, name: str) -> Any:
        """Return what takes a notification: the engine's part of it, then that of the original, in a task."""
        before = methods.NOTIFICATIONS.get(name)
        handed = name in self._original.notifications

        def take(dispatcher: Dispatcher, params: dict[str, Any]) -> None:
            if before is not None:
                before(dispatcher, params)
            if handed:
                dispatcher.connection.call_in_loop(lambda: self._begin(dispatcher, name, params))

        return take

    def _begin(self, dispatcher: Dispatcher, name: str, params: dict[str, Any]) -> None:
        import asyncio

        task = asyncio.ensure_future(self._notify(dispatcher, name, params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self, dispatcher: Dispatcher, name: str, params: dict[str, Any]) -> None:
        try:
            await self._original.take(name, params, dispatcher)
        except Exception as error:
            tracebacks.report(f"the handler of {name} failed", error)
