"""Registry entries of a proxy: tools, resources, templates, prompts and completions of the upstream server.

Descriptors are forwarded unchanged, but for what belongs to a connection (`fastrpc.proxy.hop`); only an
invalid URI template and content of an unknown type are refused. Each entry's function forwards the arguments,
and converts the result into what the encoders of `fastrpc.methods` write.
"""

from __future__ import annotations

from fastrpc._core.call_result import CallResult
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.forwarding import ToolForwarder, UpstreamRoute
from fastrpc.client.results import CompletionResult, PromptResult, ReadResult
from fastrpc.client_requests.base import InputRequest, InvalidClientResult
from fastrpc.content import KINDS_OF_CONTENT, Block, Contents, Received, ToolResult
from fastrpc.definitions.completion import Completion, Completions, key_of
from fastrpc.definitions.handler import Handler
from fastrpc.definitions.prompt import Prompt
from fastrpc.definitions.resource import Resource, ResourceTemplate
from fastrpc.definitions.tool import Tool
from fastrpc.errors import InvalidAnswer, Reworded, ToolError
from fastrpc.protocol.uri_template import Template
from fastrpc.protocol.versions import SESSION_VERSIONS, known
from fastrpc.proxy.hop import carried_meta, others_of, rest_of, with_carried_meta
from fastrpc.schema import Parameter, Signature
from fastrpc.schema.converters import ANY
from fastrpc.schema.passed_signature import PassedSignature
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, Protocol, TypeVar

    from fastrpc.context import Context
    from fastrpc.definitions.addresses import Addresses

    Read = TypeVar("Read")
    Through = Callable[..., Awaitable[Any]]

    class Upstream(Protocol):
        """The upstream server, as its entries use it."""

        route: UpstreamRoute

        async def request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any]:
            """Send a request for a call, and return the result. Raises ToolError and ProtocolError."""

        async def result_of(self, request: PendingRequest, context: Context) -> dict[str, Any]:
            """Return the result of a request that has been sent for a call. Raises as `request` does."""

        async def read(self, uri: str, context: Context) -> Received | None:
            """Read a resource; None if it does not exist. Raises as `request` does."""


def _named(names: list[Any]) -> list[Parameter]:
    """Return parameters with these names, so that their arguments can be completed."""
    return [Parameter(name, ANY, {}) for name in names if isinstance(name, str)]


def _adopt(handler: Any, function: Through, name: str, raw: dict[str, Any]) -> None:
    """Set the common attributes of a handler from an upstream entry, without validating them."""
    Handler.__init__(handler, function, name=name)
    handler.title = raw.get("title")
    handler.description = raw.get("description")
    handler.icons = raw.get("icons")
    handler.meta = raw.get("_meta")


def _block(raw: dict[str, Any]) -> Block:
    """Return a content block of a result. Raises ToolError for a block that no client could read."""
    kind = raw["type"]
    if kind not in KINDS_OF_CONTENT:
        raise ToolError(f"the upstream server returned content of an unknown type: {kind!r:.100}")
    return Block(raw)


class PassedResult(ToolResult):
    """A result of the upstream server, with all members that go on."""

    __slots__ = ("is_null", "rest")


def tool_result_of(result: dict[str, Any]) -> PassedResult:
    """Return what a tool returns for a result of the upstream server. Raises ToolError."""
    kind = result.get("resultType", "complete")
    if kind != "complete":
        raise ToolError(f"the upstream server returned a result of an unknown type: {kind!r:.100}")
    found = _read(CallResult, result)
    passed = PassedResult(
        [_block(block) for block in found.content], structured=found.structured, is_error=found.is_error
    )
    passed.meta = carried_meta(found.meta)  # its keys are not validated here
    passed.is_null = "structuredContent" in result and passed.structured is None
    passed.rest = others_of(result, ("content", "structuredContent", "isError"))
    return passed


_ENTRY = ("name", "title", "description", "icons", "annotations")
_TOOL = (*_ENTRY, "inputSchema", "outputSchema", "execution")  # the last: tasks belong to a connection
_RESOURCE = (*_ENTRY, "uri", "mimeType", "size")
_TEMPLATE = (*_ENTRY, "uriTemplate", "mimeType")
_PROMPT = (*_ENTRY, "arguments")
"""Members that the descriptor of an entry has from its attributes; all others go on."""


def _read(kind: Callable[[dict[str, Any]], Read], result: dict[str, Any]) -> Read:
    """Return a result as a client reads it. Raises ToolError if that cannot be read."""
    with Reworded(InvalidAnswer, ToolError, "the upstream server's answer is invalid: "):
        return kind(result)


def contents_of(result: dict[str, Any]) -> Received:
    """Return the contents of a resource, with what else the result holds. Raises ToolError."""
    try:
        contents = [Contents.received(part) for part in _read(ReadResult, result).contents]
    except (KeyError, TypeError, ValueError) as error:
        raise ToolError(f"the upstream server's answer is invalid: contents: {error!r:.200}") from None
    return Received(contents, rest_of(result, "contents"))


class PassedTool(Tool):
    """A tool of the upstream server."""

    __slots__ = ("forwarder", "others", "raw")

    def __init__(self, upstream: Upstream, raw: dict[str, Any]) -> None:
        there = raw["name"]

        async def call(arguments: dict[str, Any] | PendingRequest, context: Context) -> ToolResult:
            if isinstance(arguments, PendingRequest):  # the connection has forwarded the call already
                return tool_result_of(await upstream.result_of(arguments, context))
            params = {"name": there, "arguments": arguments}
            return tool_result_of(await upstream.request("tools/call", params, context))

        _adopt(self, call, there, raw)
        self.raw, self.others = raw, others_of(raw, _TOOL)
        self.forwarder = ToolForwarder(upstream.route, there)
        self.effect = self.risk = self.task = None
        self.style = PLAIN
        self.annotations = raw["annotations"] if raw.get("annotations") else {}
        self._input_schema, self._documents, self._structured = raw["inputSchema"], None, False

    def _check_options(self) -> None:
        """Accepts any name: the upstream chose it."""

    def describe(self) -> Signature:
        return PassedSignature([], self.raw["inputSchema"])

    def descriptor(self, version: str) -> dict[str, Any]:
        entry = {**super().descriptor(version), "outputSchema": self.raw.get("outputSchema")}
        return {**self.others, **known("Tool", entry, version)}


def _moved(function: Through, addresses: Addresses) -> Through:
    """Return a function that reads a resource, whose contents have the URIs that `addresses` says."""

    async def read(values: dict[str, Any], context: Context) -> Any:
        found = await function(values, context)
        for part in found or ():
            part.uri = addresses.here(part.uri)
        return found

    return read


class PassedResource(Resource):
    """A resource of the upstream server."""

    __slots__ = ("others",)

    def __init__(self, upstream: Upstream, raw: dict[str, Any]) -> None:
        uri = raw["uri"]

        async def read(values: dict[str, Any], context: Context) -> Any:
            return await upstream.read(uri, context)

        _adopt(self, read, raw["name"], raw)
        _adopt_readable(self, raw)
        self.uri = uri
        self.size = raw.get("size")
        self.others = others_of(raw, _RESOURCE)

    def move(self, addresses: Addresses) -> None:
        super().move(addresses)
        self.function = _moved(self.function, addresses)

    def describe(self) -> Signature:
        return PassedSignature([], {})

    def descriptor(self, version: str) -> dict[str, Any]:
        return {**self.others, **super().descriptor(version)}


class PassedTemplate(ResourceTemplate):
    """A resource template of the upstream server."""

    __slots__ = ("moves", "others")

    def __init__(self, upstream: Upstream, raw: dict[str, Any]) -> None:
        async def read(values: dict[str, Any], context: Context) -> Any:
            return await upstream.read(values["uri"], context)

        _adopt(self, read, raw["name"], raw)
        _adopt_readable(self, raw)
        self.uri_template = raw["uriTemplate"]
        self.template = Template(raw["uriTemplate"])
        self.moves: tuple[Addresses, ...] = ()
        """Where the servers are mounted that this one is in, the outermost first."""
        self.others = others_of(raw, _TEMPLATE)

    def move(self, addresses: Addresses) -> None:
        if addresses.here(self.uri_template) != self.uri_template:
            super().move(addresses)
            self.function = _moved(self.function, addresses)
            self.moves = (addresses, *self.moves)

    def descriptor(self, version: str) -> dict[str, Any]:
        return {**self.others, **super().descriptor(version)}

    def describe(self) -> Signature:
        return PassedSignature(_named([*self.template.variables]), {})

    def match_normal(self, uri: str) -> dict[str, str] | None:
        """Return the URI as the upstream server knows it, which extracts the variables."""
        own: str | None = None if self.template.match_normal(uri) is None else uri
        for addresses in self.moves:
            own = None if own is None else addresses.there(own)
        return None if own is None else {"uri": own}


def _adopt_readable(readable: Any, raw: dict[str, Any]) -> None:
    readable.mime_type = raw.get("mimeType")
    readable.annotations = raw.get("annotations") or {}
    readable.ttl = readable.cache_scope = None


class PassedPrompt(Prompt):
    """A prompt of the upstream server."""

    __slots__ = ("others", "raw")

    def __init__(self, upstream: Upstream, raw: dict[str, Any]) -> None:
        there = raw["name"]

        async def get(arguments: dict[str, str], context: Context) -> Any:
            result = await upstream.request("prompts/get", {"name": there, "arguments": arguments}, context)
            rest = {"description": None, **rest_of(result, "messages")}
            return Received(_read(PromptResult, result).messages, rest)

        _adopt(self, get, there, raw)
        self.raw, self.others = raw, others_of(raw, _PROMPT)

    def describe(self) -> Signature:
        return PassedSignature(_named([argument.get("name") for argument in self._arguments]), {})

    @property
    def _arguments(self) -> list[dict[str, Any]]:
        found = self.raw.get("arguments")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def descriptor(self, version: str) -> dict[str, Any]:
        return {**self.others, **super().descriptor(version)}

    def arguments(self, version: str) -> list[dict[str, Any]]:
        return [known("PromptArgument", argument, version) for argument in self._arguments]


class PassedCompletion(Completion):
    """The completion of one argument by the upstream server."""

    __slots__ = ()

    def __init__(self, upstream: Upstream, reference: dict[str, str], argument: str) -> None:
        target = reference.get("name") or reference["uri"]

        async def complete(value: str, others: dict[str, str], context: Context) -> Completions:
            params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
            if others:
                params["context"] = {"arguments": others}
            result = await upstream.request("completion/complete", params, context)
            found = _read(CompletionResult, result)
            passed = Completions(found.values, found.total, result["completion"].get("hasMore"))
            passed.rest = rest_of(result)
            return passed

        Handler.__init__(self, complete, name=key_of(target, argument))
        self.target = target
        self.argument = argument

    def describe(self) -> Signature:
        return PassedSignature(_named(["value", "others"]), {})


INPUT_REQUESTS = ("elicitation/create", "sampling/createMessage", "roots/list")
"""Methods of the client requests that the upstream may send."""


class PassedInputRequest(InputRequest["dict[str, Any]"]):
    """A client request of the upstream: its params and the client's result are forwarded unchanged."""

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.capability = {"elicitation/create": "elicitation", "roots/list": "roots"}.get(method, "sampling")
        if method == "elicitation/create":
            self.mode = params.get("mode", "form")
        elif "tools" in params:
            self.mode = "tools"
        self._params = {name: value for name, value in with_carried_meta(params).items() if name != "task"}

    def params(self, version: str) -> dict[str, Any]:
        if version in SESSION_VERSIONS or "elicitationId" not in self._params:
            return self._params
        return {name: value for name, value in self._params.items() if name != "elicitationId"}

    def read(self, result: Any, request: Any) -> dict[str, Any]:
        if not isinstance(result, dict):
            raise InvalidClientResult("expected an object")
        return result


async def ask(context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of the client of a call for a request of the upstream. Raises ToolError and
    ProtocolError."""
    if method not in INPUT_REQUESTS:
        raise ToolError(f"{method}: the proxy does not support this input request")
    found: dict[str, Any] = (await context.ask(**{"": PassedInputRequest(method, params)}))[""]
    return found
