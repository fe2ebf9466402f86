"""Calls on a server that is composed: what is called is what the server's transforms and providers find.

A component of the server's own registries that no transform has changed is called as on any other server.
"""

from __future__ import annotations

from fastrpc import running_call
from fastrpc.compat.components.definitions import definition_of
from fastrpc.compat.components.versions import VersionSpec
from fastrpc.compat.composition.nested_calls import call_plan, tool_plan
from fastrpc.compat.interception.calls import PromptCall, ResourceRead, SeenCall, SeenToolCall
from fastrpc.definitions.resource import ProviderMethod
from fastrpc.engine.wrapped_requests import WrappedRequest
from fastrpc.errors import FAILURES, ArgumentError, InvalidParams, ResourceNotFound, UnknownName, excerpt
from fastrpc.protocol.uri_template import normal
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.middleware.base import MiddlewareContext


class ComposedCall(SeenCall):
    """A call: `chain` finds the component that it is made to."""

    __slots__ = ()
    chain: Any

    async def end(self, context: MiddlewareContext[Any]) -> Any:
        """Do what the last `call_next` does: call what is found by the message's name."""
        message = context.message
        key = str(getattr(message, self.target))
        with running_call.running(self.call.context):
            kind, found = await self.chain.find_called(self.kind, key, self._version())
            within = self.within
            if within is not None and self._is_own(found, within.handler):
                return await super().end(context)
            if found is None:
                raise self._unknown(key)
            return await self._call(kind, found, key, message)

    @staticmethod
    def _is_own(found: Any, handler: Any) -> bool:
        if found is None:
            return isinstance(handler, ProviderMethod)
        return getattr(found, "entry", None) is handler

    def _version(self) -> VersionSpec | None:
        """Return the version that the client asks for, in the request's ``_meta``."""
        channel: Any = self.call.context._channel
        own = {} if channel is None else (channel.request.meta or {}).get("fastmcp")
        version = own.get("version") if isinstance(own, dict) else None
        return VersionSpec(eq=str(version)) if version is not None and self.is_outermost else None

    def _unknown(self, key: str) -> Exception:
        return UnknownName(f"Unknown {self.kind}: {excerpt(key)}")

    async def _call(self, kind: str, found: Any, key: str, message: Any) -> Any:
        server: Any = self._server
        runtime = server.runtime
        handler = getattr(found, "entry", None) or definition_of(kind, found, server)
        if kind == "tool":
            plan = tool_plan(server, handler)
        else:
            plan = runtime.plans.make_for_handler(handler, runtime.features.encoder_of(self.method))
        try:
            bound = self._bound(kind, found, handler, key, message)
            name = key if self.kind == "resource" else handler.name
            value = await call_plan(self.call.context, plan, server, name, bound)
        except FAILURES as error:
            if self._is_expected(error):
                raise
            raise self._seen_error(handler, key, error) from error
        return self._result(handler, key, value)

    def _bound(self, kind: str, found: Any, handler: Any, key: str, message: Any) -> Any:
        """Return the bound arguments. Raises ArgumentError and InvalidParams."""
        return handler.signature.bind(message.arguments or {})


class ComposedToolCall(ComposedCall, SeenToolCall):
    """The call of a tool."""

    __slots__ = ("chain",)

    async def _call(self, kind: str, found: Any, key: str, message: Any) -> Any:
        result = await super()._call(kind, found, key, message)
        payload = getattr(result, "payload", None)
        if isinstance(payload, dict) and "_meta" in payload:
            await self._rename_tools(payload)
        return result

    async def _rename_tools(self, payload: dict[str, Any]) -> None:
        """Give the tools that an interface calls the names that they have here."""
        from fastrpc.compat.apps.payload import addresses_in, rename_tools

        if addresses_in(payload):
            tools = await self.chain.tools_by_hash()
            rename_tools(payload, lambda found: tools[found].name if found in tools else None)


class ComposedPromptCall(ComposedCall, PromptCall):
    """The rendering of a prompt."""

    __slots__ = ("chain",)

    def _bound(self, kind: str, found: Any, handler: Any, key: str, message: Any) -> Any:
        try:
            return super()._bound(kind, found, handler, key, message)
        except ArgumentError as error:
            raise InvalidParams(f"arguments: {error}") from None

    async def _call(self, kind: str, found: Any, key: str, message: Any) -> Any:
        result = await super()._call(kind, found, key, message)
        call = getattr(self.request, "call", None)
        if call is not None and isinstance(call.plan.tool, WrappedRequest):
            call.plan.tool.description = result.description
        return result


class ComposedResourceRead(ComposedCall, ResourceRead):
    """The read of a resource."""

    __slots__ = ("chain",)

    def _unknown(self, key: str) -> Exception:
        return ResourceNotFound(key, legacy=self.version != STATELESS)

    def _bound(self, kind: str, found: Any, handler: Any, key: str, message: Any) -> Any:
        if kind == "resource":
            return handler.signature.bind({})
        entry = found.__dict__.get("entry")
        is_own = entry is not None and entry.uri_template == found.uri_template
        # An entry knows what it is called with: one of another server with the URI.
        values = (entry.match_normal(normal(key)) if is_own else found.matches(key)) or {}
        try:
            if entry is None:  # whose definition was made for any server
                self._screen(found, values)
            return handler.signature.bind(values)
        except ResourceNotFound:
            raise self._unknown(key) from None
        except ArgumentError as error:
            raise InvalidParams(f"{excerpt(key)}: {error}", {"uri": excerpt(key)}) from None

    def _screen(self, template: Any, values: dict[str, Any]) -> None:
        """Raise ResourceNotFound for values that the rules of a template, or of this server, refuse."""
        from fastrpc.compat.components.resource_security import screen

        rules_of = getattr(self._server, "_screening", None)
        if rules_of is not None:
            screen(values, rules_of(template.security))


COMPOSED: dict[str, Any] = {
    "tool": ComposedToolCall,
    "resource": ComposedResourceRead,
    "prompt": ComposedPromptCall,
}
