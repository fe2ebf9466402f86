"""prompts/get (MCP: prompts).

A prompt's function may return a text, a `Message`, a content helper or block, a dict with ``role`` and
``content``, or a list of these; the default role is ``user``.
"""

from __future__ import annotations

from fastrpc import tracebacks
from fastrpc.content import Content, Received, block_of
from fastrpc.definitions.prompt import ROLES, Message
from fastrpc.engine.known_answers import keep_plan
from fastrpc.errors import (
    ArgumentError,
    CallRefused,
    InternalError,
    InvalidParams,
    ProtocolError,
    Reworded,
    ToolError,
    UnknownName,
    excerpt,
)
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.protocol.versions import STATELESS
from fastrpc.redaction import masked
from fastrpc.schema.converters import quote, shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.prompt import Prompt
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request


def get_prompt(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Call a prompt's function with the arguments of the request."""
    params = request.params
    name = text_member(params, "name", "name")
    arguments = texts_member(params, "arguments", "arguments")
    prompts = dispatcher.runtime.registries.prompts
    prompt = prompts.get(name)
    if prompt is None or not dispatcher.runtime.filters.has_for(dispatcher.principal, "prompt", prompt):
        hint = dispatcher.runtime.filters.hint_for(dispatcher.principal, prompts, name)
        raise UnknownName(f"Unknown prompt: {excerpt(name)}{hint}")
    try:
        bound = prompt.signature.bind(arguments)
    except ArgumentError as error:
        raise unbound(prompt, arguments, error) from None
    plan = dispatcher.runtime.plans.of_handler(prompt, PromptEncoder)
    keep_plan(dispatcher, request, plan)
    return dispatcher.begin(request, plan, bound)


def unbound(prompt: Prompt, arguments: Mapping[str, Any], error: ArgumentError) -> InvalidParams:
    """Return the error for arguments that a prompt does not take."""
    if prompt.missing_prefix is not None:
        needed = (each.name for each in prompt.signature.parameters if each.required)
        missing = ", ".join(repr(name) for name in needed if name not in arguments)
        if missing:
            return InvalidParams(f"{prompt.missing_prefix}{{{missing}}}")
    return InvalidParams(f"arguments: {error}")


def text_member(holder: dict[str, Any], name: str, path: str) -> str:
    """Return a member that must be a string. Raises InvalidParams."""
    value = holder.get(name)
    if not isinstance(value, str):
        got = f"expected a string, got {shorten(value)}" if name in holder else "missing, expected a string"
        raise InvalidParams(f"{path}: {got}")
    return value


def texts_member(holder: dict[str, Any], name: str, path: str) -> dict[str, str]:
    """Return a member that may be left out and else is an object of strings. Raises InvalidParams."""
    value = holder.get(name, {})
    if not isinstance(value, dict):
        raise InvalidParams(f"{path}: expected an object of strings, got {shorten(value)}")
    for key, text in value.items():
        if not isinstance(text, str):
            raise InvalidParams(f"{path}: {quote(key)}: expected a string, got {shorten(text)}")
    return value


# ------------------------------------------------------------------------------------------ messages


def messages_of(value: Any, version: str) -> list[dict[str, Any]]:
    """Return the messages for a prompt's return value. Raises UnencodableResult."""
    if isinstance(value, (list, tuple)):
        return [message_of(part, version) for part in value]
    return [message_of(value, version)]


def message_of(value: Any, version: str) -> dict[str, Any]:
    if isinstance(value, Message):
        return {"role": value.role, "content": content_of(value.content, version)}
    if isinstance(value, dict) and "role" in value and "content" in value:
        if value["role"] not in ROLES:
            raise UnencodableResult(f"role: expected user or assistant, got {shorten(value['role'])}")
        return {**value, "content": content_of(value["content"], version)}
    if isinstance(value, (str, Content)) or (isinstance(value, dict) and "type" in value):
        return {"role": "user", "content": content_of(value, version)}
    raise UnencodableResult(
        f"a prompt returns str, Message, content or a list of these, this one {shorten(value)}"
    )


def content_of(content: Any, version: str) -> dict[str, Any]:
    """Return a message's content as the block that a version knows. Raises UnencodableResult."""
    with Reworded(TypeError, UnencodableResult):
        return block_of(content, version)


class PromptEncoder:
    """Encodes the value of a prompt, or its failure."""

    is_text = False

    @staticmethod
    def encode(request: Request, prompt: Prompt, value: Any) -> bytes:
        result: dict[str, Any] = {"messages": messages_of(value, request.version)}
        rest = value.rest if isinstance(value, Received) else {}
        result = {"description": prompt.description, **rest, **result}
        if result["description"] is None:  # a result may say that it has none
            del result["description"]
        return encoded(request, result)

    @staticmethod
    def failure(request: Request, prompt: Prompt, error: BaseException) -> bytes:
        if request.outcome == "refused" and isinstance(error, ToolError):
            raise CallRefused(str(error), legacy=request.version != STATELESS)
        raise refusal(prompt, error)


def encoded(request: Request, result: dict[str, Any]) -> bytes:
    """Return a result's JSON with the ending of its version. Raises UnencodableResult."""
    meta = result.pop("_meta", None)
    try:
        text = to_json(result)
    except UnicodeEncodeError:
        raise UnencodableResult("the result holds half a surrogate pair, which is not text") from None
    return text[:-1] + request.dispatcher.runtime.results.ending(request.version, meta)


def refusal(handler: Handler, error: BaseException) -> ProtocolError:
    """Return the error that answers a request whose handler has raised: for an ArgumentError, InvalidParams
    with its message; for a ToolError, InternalError with its message. The message of any other exception is
    only logged: it may contain what clients must not see."""
    if isinstance(error, ArgumentError):
        return InvalidParams(str(error))
    if isinstance(error, ToolError):
        return InternalError(str(error))
    if isinstance(error, UnencodableResult):
        return InternalError(f"{handler.kind} {handler.name}: {error}")
    tracebacks.report(handler, error)
    return InternalError(failure_text(handler, error))


def failure_text(handler: Handler, error: BaseException) -> str:
    """Return the error text that clients receive for an exception."""
    prefix = getattr(handler, "failure_prefix", None)
    if prefix is None:
        return f"{handler.kind} {handler.name} failed; see the server's log"
    return f"{prefix}{masked(str(error))}"
