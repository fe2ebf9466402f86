"""resources/list, read, subscribe and unsubscribe (MCP: resources).

A URI is served by the resource with that URI, else by the most specific template that matches, else by a
provider. The list has the resources first and then the pages of each provider; a cursor holds the position
in either.
"""

from __future__ import annotations

from fastrpc._core.encoder import dumps
from fastrpc.content import Content, Contents, Received
from fastrpc.definitions.resource import ProviderMethod, Resource, entry_of, guessed_type
from fastrpc.engine.call import Exited, complaint_of, contained
from fastrpc.engine.known_answers import keep_plan
from fastrpc.engine.listing import left_out
from fastrpc.engine.outbound_channel import context_of
from fastrpc.errors import (
    FAILURES,
    ArgumentError,
    CallRefused,
    FastrpcError,
    InternalError,
    InvalidParams,
    ResourceNotFound,
    ToolError,
    excerpt,
)
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.protocol.pagination import cursor_of, decode_cursor, encode_cursor, page_of
from fastrpc.protocol.uri_template import LONGEST, normal, valid
from fastrpc.protocol.versions import STATELESS, known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fastrpc.definitions.registry import Registries
    from fastrpc.definitions.resource import Provider, ResourceTemplate
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.list_filter import CallerView
    from fastrpc.engine.outbound_channel import RequestChannel
    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime
    from fastrpc.engine.visibility import VisibilityFilters

    Reader = Resource | ResourceTemplate | ProviderMethod

_MARK = "\0"
"""Begins what a cursor holds of a provider: no URI has this character."""


# ------------------------------------------------------------------------------------------- lists


def list_resources(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Return a page of the resources that the principal sees; those of the providers come last."""
    runtime, principal = dispatcher.runtime, dispatcher.principal
    cursor = cursor_of(request.params)
    registries = runtime.registries
    providers = [provider for provider in registries.providers if provider.lister is not None]
    if not providers:
        return runtime.pages.of_registry(
            "resources", registries.resources, request.version, cursor, principal
        )
    resources = runtime.filters.entries_for(principal, registries.resources)
    key = _MARK + providers[0].scheme if cursor is None and not resources else ""
    if cursor is not None:
        key = decode_cursor(cursor)[1]
    if key.startswith(_MARK):
        return _ask_provider(dispatcher, request, providers, key[len(_MARK) :])
    start, end, following = page_of([entry.key for entry in resources], cursor, runtime.pages.size)
    if following is None:
        following = _cursor_at(providers[0])
    return _list_result(request, resources[start:end], following)


def _ask_provider(
    dispatcher: Dispatcher, request: Request, providers: list[Provider], place: str
) -> bytes | None:
    """Have a provider list its next page: `place` is its scheme and, but for the first page, its cursor."""
    scheme, mark, cursor = place.partition(_MARK)
    lister = next((provider.lister for provider in providers if provider.scheme == scheme), None)
    if lister is None:
        raise InvalidParams("cursor: the list has changed; list again from the start")
    plan = dispatcher.runtime.plans.of_handler(lister, PageEncoder)
    return dispatcher.begin(request, plan, lister.bind(cursor if mark else None))


def _cursor_at(provider: Provider, cursor: str | None = None) -> str:
    return encode_cursor(0, _MARK + provider.scheme + ("" if cursor is None else _MARK + cursor))


def _list_result(request: Request, entries: Sequence[Any], following: str | None) -> bytes:
    return request.dispatcher.runtime.pages.result("resources", entries, following, request.version)


def page_entries(value: Any) -> tuple[Sequence[Any], str | None]:
    """Return the entries of a provider's page, and the next cursor. Raises UnencodableResult."""
    entries, cursor = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not isinstance(entries, (list, tuple)) or not (cursor is None or isinstance(cursor, str)):
        raise UnencodableResult("expected a list of entries and the next cursor, a str or None")
    return entries, cursor


def _listed(lister: ProviderMethod, entries: Sequence[Any]) -> list[Any]:
    """Return the entries of a page; those that are none are left out, and logged."""
    found = []
    for entry in entries:
        try:
            found.append(entry_of(entry))
        except (FastrpcError, TypeError, ValueError) as error:
            left_out(f"an entry of {lister.name}", f"{error}")
    return found


class PageEncoder:
    """Encodes a page that a provider has listed. One that fails is left out: the next one follows."""

    is_text = False

    @staticmethod
    def encode(request: Request, lister: ProviderMethod, value: Any) -> bytes:
        entries, cursor = page_entries(value)
        following = _cursor_after(request, lister) if cursor is None else _cursor_at(lister.provider, cursor)
        listed = _listed(lister, entries)
        view = request.dispatcher.runtime.filters.view_of(request.dispatcher.principal)
        if view is not None:
            listed = view.listed(listed, lister.origin)
        return _list_result(request, listed, following)

    @staticmethod
    def failure(request: Request, lister: ProviderMethod, error: BaseException) -> bytes:
        if isinstance(error, InvalidParams):  # it does not know the cursor
            raise error
        left_out(f"what {lister.name} lists", complaint_of(lister, error))
        return _list_result(request, [], _cursor_after(request, lister))


def _cursor_after(request: Request, lister: ProviderMethod) -> str | None:
    """Return the cursor of the provider that comes after one, None if it is the last."""
    providers = [found for found in request.dispatcher.runtime.registries.providers if found.lister]
    after = providers[providers.index(lister.provider) + 1 :] if lister.provider in providers else []
    return _cursor_at(after[0]) if after else None


async def listed_resources(request: Request) -> list[Any]:
    """Return the resources that the principal sees, those of all pages of the providers last."""
    runtime, principal = request.dispatcher.runtime, request.dispatcher.principal
    found = [*runtime.filters.entries_for(principal, runtime.registries.resources)]
    view = runtime.filters.view_of(principal)
    for provider in runtime.registries.providers:
        lister, cursor = provider.lister, None
        while lister is not None:
            channel: Any = context_of(request)._channel
            value = await _called(channel, lister, provider.scheme, lister.bind(cursor))
            entries, cursor = page_entries(value)
            listed = _listed(lister, entries)
            found += listed if view is None else view.listed(listed, lister.origin)
            if cursor is None:
                break
    return found


# ------------------------------------------------------------------------------------------ reading


def read_resource(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Read what is at a URI."""
    uri = uri_of(request.params)
    reader, arguments = _reader_of(request, uri)
    plan = dispatcher.runtime.plans.of_handler(reader, ContentsEncoder)
    if isinstance(reader, Resource) and uri == reader.uri == normal(uri):  # what a guard is shown
        keep_plan(dispatcher, request, plan)
    return dispatcher.begin(request, plan, arguments)


def uri_of(params: dict[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str):
        raise InvalidParams("uri: expected a string" if "uri" in params else "uri: missing")
    _check_length(uri)
    return uri


def _check_length(uri: str) -> None:
    """Raise InvalidParams for a URI that is too long, before it is matched."""
    if len(uri) > LONGEST:
        raise InvalidParams(f"uri: expected at most {LONGEST} characters, got {len(uri)}")


def _reader_of(request: Request, uri: str) -> tuple[Reader, list[Any]]:
    """Return the handler of a URI, and the arguments to call it with. Raises ResourceNotFound, and
    InvalidParams if some template matches but for a value."""
    runtime, principal = request.dispatcher.runtime, request.dispatcher.principal
    try:
        found = bound_at(runtime.registries, uri, _enforced_view(runtime.filters, principal))
    except ResourceNotFound:  # a template that fits refuses the values
        found = None
    if found is None:
        hint = runtime.filters.hint_for(principal, runtime.registries.resources, uri)
        raise ResourceNotFound(uri, hint, legacy=request.version != STATELESS)
    return found


def _enforced_view(filters: VisibilityFilters, principal: str) -> CallerView | None:
    """Return the view that says what exists for a principal; None: everything. Raises InternalError."""
    return filters.view_of(principal) if filters.enforces_filters else None


def bound_at(
    registries: Registries, uri: str, view: CallerView | None = None
) -> tuple[Reader, list[Any]] | None:
    """Return the handler of a URI, and the arguments to call it with; None if there is none, or none that
    exists in a view: no value is bound for what does not, since its misfit would tell of it.

    Of equally specific templates the one with the most variables in the URI is chosen, then the first. One
    whose parameters do not accept the values is skipped. Raises InvalidParams if some template matches but
    for a value, and ResourceNotFound if one matches that is not to be read with such values.
    """
    meant = normal(uri)
    reader = _provider_at(registries, meant)
    if reader is not None and reader.provider.is_exclusive:
        return (reader, reader.bind(meant)) if view is None or view.has_at(reader, meant) else None
    resource = registries.resources.get(meant)
    if resource is not None and (view is None or view.has_at(resource, meant)):
        return resource, resource.signature.bind({})
    refusal = None
    for template, values in _templates_at(registries, meant):
        if view is not None and not view.has_at(template, meant):
            continue
        try:
            return template, template.signature.bind(values)
        except ArgumentError as error:
            refusal = refusal or error
    if reader is not None and (view is None or view.has_at(reader, meant)):
        return reader, reader.bind(meant)
    if refusal is not None:
        raise InvalidParams(f"{excerpt(uri)}: {refusal}", {"uri": excerpt(uri)})
    return None


def hides_at(runtime: Runtime, principal: str, uri: str) -> bool:
    """Whether something is at a URI, but nothing that exists for the principal."""
    try:
        view = _enforced_view(runtime.filters, principal)
        if view is None:
            return False
        meant = normal(uri)
        states = [view.has_at(each, meant) for each in _readers_at(runtime.registries, meant)]
    except InternalError:  # the log tells of the filter
        return True
    return bool(states) and not any(states)


def check_watched(runtime: Runtime, principal: str, uri: str, version: str) -> None:
    """Raise a guard's refusal to notify of changes at a URI; InternalError if a filter fails."""
    view = runtime.filters.view_of(principal) if runtime.filters.is_filtered else None
    if view is None:
        return
    meant = normal(uri)
    found = [view.refusal_at(each, meant, version) for each in _readers_at(runtime.registries, meant)]
    if found and found[0] is not None and None not in found:
        raise found[0]


def _readers_at(registries: Registries, meant: str) -> list[Reader | ProviderMethod]:
    """Return all that may read a URI in its normal form."""
    templates = [template for template, _ in _templates_at(registries, meant)]
    found = [registries.resources.get(meant), *templates, _provider_at(registries, meant)]
    return [each for each in found if each is not None]


def _templates_at(registries: Registries, meant: str) -> list[tuple[ResourceTemplate, dict[str, Any]]]:
    """Return the templates that fit a URI in its normal form, the best one first, with the variables."""
    matches = [
        (found, values) for found in registries.templates if (values := found.match_normal(meant)) is not None
    ]
    matches.sort(key=lambda match: (match[0].template.rank, len(match[1])), reverse=True)
    return matches


def _provider_at(registries: Registries, meant: str) -> ProviderMethod | None:
    """Return what reads the URIs of the longest prefix that fits one."""
    readers = [
        (len(found.prefix), found.reader)
        for found in registries.providers
        if found.reader is not None and meant.startswith(found.prefix)
    ]
    return max(readers, key=lambda entry: entry[0])[1] if readers else None


def handler_at(registries: Registries, uri: str) -> Reader | None:
    """Return what a read of a URI calls, or would if its variables had other values; None: nothing.

    Values are bound only where templates of several servers fit: that may call what users write.
    """
    meant = normal(uri)
    found: list[Reader] = [template for template, _ in _templates_at(registries, meant)]
    resource, provider = registries.resources.get(meant), _provider_at(registries, meant)
    if provider is not None and provider.provider.is_exclusive:
        return provider
    if resource is not None:
        return resource
    if provider is not None:
        found.append(provider)
    if len({handler.origin for handler in found}) > 1:
        try:
            bound = bound_at(registries, uri)
        except FAILURES:  # the values fit nowhere, or a type that users write has failed
            bound = None
        if bound is not None:
            return bound[0]
    return found[0] if found else None


class ContentsEncoder:
    """Encodes the contents that were read. A failure is a JSON-RPC error: this result has no form for it."""

    is_text = False

    @staticmethod
    def encode(request: Request, reader: Reader, value: Any) -> bytes:
        runtime, version = request.dispatcher.runtime, request.version
        uri = request.params["uri"]
        if value is None:
            raise ResourceNotFound(uri, legacy=version != STATELESS)
        result: dict[str, Any] = {
            "contents": [_block(part, version) for part in contents_of(value, uri, reader.mime_type)]
        }
        if version == STATELESS:
            result["ttlMs"] = 0 if reader.ttl is None else round(reader.ttl * 1000)
            result["cacheScope"] = reader.cache_scope or runtime.pages.cache_scope
        meta = _add_rest(result, value.rest) if isinstance(value, Received) else None
        try:
            return dumps(result)[:-1] + runtime.results.ending(version, meta)
        except UnicodeEncodeError:
            raise UnencodableResult("the text holds half a surrogate pair, which is not text") from None

    @staticmethod
    def failure(request: Request, reader: Reader, error: BaseException) -> bytes:
        uri = excerpt(request.params["uri"])
        if request.outcome == "refused" and isinstance(error, ToolError):
            raise CallRefused(str(error), {"uri": uri}, legacy=request.version != STATELESS)
        raise InternalError(f"Error reading {uri}: {complaint_of(reader, error)}", {"uri": uri})


def _add_rest(result: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any] | None:
    """Add the other members of an upstream result, and return its ``_meta``. The upstream server decides how
    long a result may be cached; both decide for whom (MCP 2026-07-28: caching)."""
    for name, value in rest.items():
        if name == "ttlMs" and name in result:
            result[name] = value
        elif name == "cacheScope" and name in result:
            result[name] = "private" if value == "private" else result[name]
        elif name not in ("_meta", "ttlMs", "cacheScope"):
            result[name] = value
    return rest.get("_meta")


def contents_of(value: Any, uri: str, mime_type: str | None) -> list[Contents]:
    """Return a function's value as contents, each with its URI and MIME type. Raises UnencodableResult."""
    uri = valid(uri)
    several = isinstance(value, (list, tuple)) and any(isinstance(part, Contents) for part in value)
    several = several or isinstance(value, Received)
    return [_contents(part, uri, mime_type) for part in (value if several else (value,))]


def _contents(value: Any, uri: str, mime_type: str | None) -> Contents:
    meta = others = None
    if isinstance(value, Contents):
        uri, meta, others = value.uri or uri, value.meta, value.others
        mime_type = value.mime_type or mime_type
        value = value.content
    elif isinstance(value, Content):
        return _contents(_of_block(value), uri, mime_type)
    if isinstance(value, str):
        mime_type = mime_type or guessed_type(uri, text=True) or "text/plain"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)
        mime_type = mime_type or guessed_type(uri, text=False) or "application/octet-stream"
    else:
        value = to_json(value).decode()
        mime_type = mime_type or "application/json"
    contents = Contents(value, mime_type, uri=uri, meta=meta)
    contents.others = others
    return contents


def _of_block(block: Content) -> Contents:
    """Return the contents of a content helper: a text, an image, audio or an embedded resource."""
    content = getattr(block, "text", None)
    if content is None:
        content = getattr(block, "data", None)
    if content is None:
        raise UnencodableResult(
            f"a {type(block).__name__} has no content; return the content of the resource"
        )
    mime_type, uri = getattr(block, "mime_type", None), getattr(block, "uri", None)
    return Contents(content, mime_type, uri=uri, meta=block.meta)


def _block(part: Contents, version: str) -> dict[str, Any]:
    """Return contents in their wire format (MCP: TextResourceContents, BlobResourceContents)."""
    block = {**(part.others or {}), "uri": part.uri, "mimeType": part.mime_type, "_meta": part.meta or None}
    if isinstance(part.content, str):
        block["text"] = part.content
    else:
        from binascii import b2a_base64

        block["blob"] = b2a_base64(part.content, newline=False).decode("ascii")
    return known("ResourceContents", block, version)


# ---------------------------------------------------------------------------------- from a handler


async def read_inside(channel: RequestChannel, uri: str) -> list[Contents]:
    """Read a resource for a handler that is being called. Raises ToolError if there is none at the URI.

    What the function raises is raised here. It shares the call's context, and so its client.
    """
    request = channel.request
    try:
        _check_length(uri)
        reader, arguments = _reader_of(request, uri)
    except (ResourceNotFound, InvalidParams) as error:
        raise ToolError(error.message) from None
    value = await _called(channel, reader, uri, arguments)
    if value is None:
        raise ToolError(f"Resource not found: {excerpt(uri)}")
    return contents_of(value, uri, reader.mime_type)


async def _called(channel: RequestChannel, reader: Reader, uri: str, arguments: list[Any]) -> Any:
    """Call a reader's function as for a client: inline or on a thread, with its guard and time limit."""
    import asyncio

    from fastrpc._core.call_info import CallInfo
    from fastrpc.context import Context
    from fastrpc.engine.guards import allow
    from fastrpc.engine.messages import id_value

    request = channel.request
    runtime = request.dispatcher.runtime
    if runtime.pending_lifespan(reader) is not None:
        raise ToolError(
            f"{reader.name} belongs to a server whose lifespan has not begun: call one of its handlers first"
        )
    own = _channel_for(channel, reader)
    context = request.call.context if own is channel and request.call is not None else None
    if context is None:
        context = Context(id_value(request.id), request.version, request.client_info, own)
    plan = runtime.plans.of_handler(reader, ContentsEncoder)
    info = CallInfo(plan, normal(uri), channel.principal, arguments, context)
    await allow(plan.guard, info)

    def call() -> Any:
        if plan.around is not None:
            return plan.around(info)
        return reader.signature.call(reader.function, arguments, context)

    if not plan.is_async and plan.inline:
        return call()
    waiting = contained(call) if plan.is_async else channel.in_thread(call)
    try:
        return await asyncio.wait_for(waiting, reader.timeout_seconds)
    except Exited as exited:
        raise exited.error from None
    except asyncio.TimeoutError:
        if reader.timeout_seconds is None:
            raise
        raise ToolError(f"{reader.name} did not end within {reader.timeout_seconds:g} s") from None


def _channel_for(channel: RequestChannel, reader: Reader) -> RequestChannel:
    """Return the caller's own channel, or one with the state of the server whose reader it is."""
    server = reader.origin[-1][0] if reader.origin else channel.request.dispatcher.runtime.server
    if server is channel.server:
        return channel
    from copy import copy

    inner = copy(channel)
    inner.server = server
    inner.token = None  # progress is the caller's to report
    return inner


# ----------------------------------------------------------------------------------- subscriptions


def subscribe(dispatcher: Dispatcher, request: Request) -> bytes:
    """Subscribe the client to a resource. Raises ResourceNotFound, and the refusal of a guard."""
    _reader_of(request, uri_of(request.params))
    return subscribe_to_found(dispatcher, request)


def subscribe_to_found(dispatcher: Dispatcher, request: Request) -> bytes:
    """Subscribe the client to an existing resource. Raises the refusal of a guard."""
    uri = uri_of(request.params)
    check_watched(dispatcher.runtime, dispatcher.principal, uri, request.version)
    dispatcher.session.subscribe(normal(uri), uri)
    dispatcher.changes.watch_resources([uri])
    return b"{}"


def unsubscribe(dispatcher: Dispatcher, request: Request) -> bytes:
    """Unsubscribe the client; without a subscription this does nothing."""
    uri = uri_of(request.params)
    dispatcher.session.unsubscribe(normal(uri))
    dispatcher.changes.unwatch([uri])
    return b"{}"
