"""MCP 2026-07-28 over HTTP: each request is a self-contained POST, answered by a body or a stream.

Headers repeat the values that a router needs. Closing the stream cancels the request. Change notifications
arrive on a separate stream, `subscriptions/listen`, which is opened again when it breaks; everything is then
listed again, because notifications may have been missed.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode

from fastrpc import diagnostics
from fastrpc.errors import ToolError
from fastrpc.json_encoding import to_json
from fastrpc.protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, LOG_KEY, MODERN, SERVER_KEY, VERSION_KEY
from fastrpc.proxy.remote.address import is_header_name
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import PAUSES, SILENT_SECONDS, STEADY_SECONDS, check_answers, parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, Refused, WireError
from fastrpc.proxy.requests import RemoteError
from fastrpc.transports.http.headers import NAMED, parameter_headers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Answer, Wire
    from fastrpc.proxy.requests import PendingRequest

ACKNOWLEDGED_SECONDS = 5.0
"""Seconds to wait for the acknowledgement of a subscription before the lists are read."""

MARK = "x-mcp-header"
PLAIN = ("string", "integer", "boolean")
"""Types of arguments that a header may carry."""
DATA = ("const", "default", "enum", "example", "examples")
"""Keywords of JSON Schema whose values are data, not schemas."""

FROM_CLIENT = ("elicitation", "sampling", "roots")


class StatelessTransport:
    """The transport of 2026-07-28."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._filter: dict[str, Any] = {}
        self._listening: asyncio.Task[None] | None = None
        self._last_stream = 0

    def set_version(self, version: str) -> None:
        """Does nothing: this version has no handshake."""

    async def begin(self, capabilities: dict[str, Any]) -> None:
        """Subscribe to list changes that the server declares, before the lists are read."""
        for name in ("tools", "prompts", "resources"):
            if (capabilities.get(name) or {}).get("listChanged"):
                self._filter[f"{name}ListChanged"] = True
        if self._filter:
            await self._listen()

    # --- requests -------------------------------------------------------------------------------------

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        params = message["params"]
        params["_meta"] = {**params.get("_meta", {}), **self._envelope(pending)}
        pending.task = self._client.spawn(self._send_request(pending, message))

    def withdraw(self, pending: PendingRequest) -> None:
        if pending.task is not None:
            pending.task.cancel()

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        """Does nothing: in this version a client sends no notifications and no responses."""

    def _envelope(self, pending: PendingRequest) -> dict[str, Any]:
        initialize_params = self._client.initialize_params
        capabilities = initialize_params["capabilities"]
        if pending.context is not None:  # each request may come from a different client
            declared = pending.context.client_capabilities
            capabilities = {name: declared[name] for name in FROM_CLIENT if name in declared}
            if "roots" in capabilities:
                capabilities["roots"] = {}
        found = {
            VERSION_KEY: MODERN,
            CAPABILITIES_KEY: capabilities,
            CLIENT_KEY: initialize_params["clientInfo"],
        }
        if pending.context is not None:
            found[LOG_KEY] = "debug"  # levels are filtered for each client here
        return found

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        method, params = message["method"], message["params"]
        headers = {
            "content-type": JSON,
            "accept": f"{JSON}, {STREAM}",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        name = params.get(NAMED.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = encoded(name)
        if method == "tools/call":
            for mark, path in parameter_headers(self._client.schema_of(params["name"])):
                value = _at(params.get("arguments"), path)
                if isinstance(value, str | int):
                    headers[f"Mcp-Param-{mark}"] = encoded(_text_of(value))
        return headers

    async def _send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        try:
            async with self._wire.send("POST", self._headers(message), to_json(message)) as answer:
                await self._read(answer, pending)
            if self._client.is_pending(pending):
                raise WireError("the server behind this one ended its answer before the result")
        except (ToolError, RemoteError) as error:
            self._client.fail(pending, error)
        except Exception as error:  # the caller must not hang
            diagnostics.write("error", f"{pending.method} failed on the way to the server behind", error)
            self._client.fail(pending, WireError(f"the request could not be sent: {error!r:.200}"))

    async def _read(self, answer: Answer, pending: PendingRequest) -> None:
        if not answer.is_stream:
            for message in await answer.messages():
                check_answers(message, answer.status)
                self._client.on_message(_plain(message, pending), pending)
            return
        async for event in answer.events(Events(LONGEST_BODY)):
            self._client.on_message(_plain(parsed(event.data), pending), pending)
            if not self._client.is_pending(pending):
                return

    # --- changes --------------------------------------------------------------------------------------

    async def watch(self, uris: set[str]) -> None:
        """Subscribe to changes of these resources too."""
        self._filter["resourceSubscriptions"] = sorted(uris)
        await self._listen()

    async def _listen(self) -> None:
        """Open a stream with the current filter, and close the previous one once it is acknowledged."""
        before = self._listening
        acknowledged = asyncio.Event()
        self._listening = self._client.spawn(self._keep_listening(dict(self._filter), acknowledged))
        try:
            await asyncio.wait_for(acknowledged.wait(), ACKNOWLEDGED_SECONDS)
        except asyncio.TimeoutError:
            diagnostics.write("warning", "the server behind has not agreed to tell of its changes yet")
        if before is not None:
            before.cancel()

    async def _keep_listening(self, wanted: dict[str, Any], acknowledged: asyncio.Event) -> None:
        attempts = 0
        while True:
            began = self._client.loop.time()
            try:
                await self._read_stream(wanted, acknowledged)
            except RemoteError as error:
                diagnostics.write("info", f"the server behind tells of no changes: {error}")
                acknowledged.set()
                return
            except Refused as error:
                if error.status < 500 and error.status != 429:
                    diagnostics.write("info", f"the server behind tells of no changes: {error}")
                    acknowledged.set()
                    return
            except WireError as error:
                diagnostics.write("info", f"the stream of changes broke: {error}")
            if self._client.loop.time() - began > STEADY_SECONDS:
                attempts = 0
            await asyncio.sleep(PAUSES[min(attempts, len(PAUSES) - 1)])
            attempts += 1

    async def _read_stream(self, wanted: dict[str, Any], acknowledged: asyncio.Event) -> None:
        """Read one `subscriptions/listen` stream to its end. Raises RemoteError and WireError."""
        self._last_stream += 1
        envelope = {
            VERSION_KEY: MODERN,
            CAPABILITIES_KEY: {},
            CLIENT_KEY: self._client.initialize_params["clientInfo"],
        }
        id = f"listen-{self._last_stream}"
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": "subscriptions/listen",
            "params": {"notifications": wanted, "_meta": envelope},
        }
        async with self._wire.send(
            "POST", self._headers(message), to_json(message), silent_seconds=SILENT_SECONDS
        ) as answer:
            if not answer.is_stream:
                for found in await answer.messages():
                    if isinstance(found, dict) and "error" in found:
                        raise RemoteError(found["error"])
                raise WireError("its answer is no stream")
            async for event in answer.events(Events(LONGEST_BODY)):
                found = parsed(event.data)
                if not isinstance(found, dict):
                    continue
                if found.get("id") == id:
                    if "error" in found:
                        raise RemoteError(found["error"])
                    return
                if found.get("method") != "notifications/subscriptions/acknowledged":
                    self._client.on_message(found)
                    continue
                if acknowledged.is_set():  # a reconnection: changes may have been missed
                    self._client.relist()
                acknowledged.set()

    async def leave(self) -> None:
        """Does nothing: cancelling the tasks closes the streams."""


def _plain(message: Any, pending: PendingRequest) -> Any:
    """Return a message without the `serverInfo` in its result's `_meta`: our own results name this server."""
    result = message.get("result") if isinstance(message, dict) else None
    meta = result.get("_meta") if isinstance(result, dict) else None
    if isinstance(meta, dict) and SERVER_KEY in meta and pending.method != "server/discover":
        del meta[SERVER_KEY]
        if not meta:
            del message["result"]["_meta"]
    return message


def check_marks(schema: Any) -> None:
    """Raise ValueError for an input schema with an invalid ``x-mcp-header`` (MCP 2026-07-28).

    A client must leave out a tool with such a schema.
    """
    seen: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(schema, False)]  # each with: can it be an argument
    at_root = True
    while waiting:
        node, reached = waiting.pop()
        if isinstance(node, list):
            waiting += [(member, False) for member in node]
        if not isinstance(node, dict):
            continue
        if MARK in node:
            _check_mark(node, reached, seen)
        for key, member in node.items():
            if key == "properties" and isinstance(member, dict):
                waiting += [(found, reached or at_root) for found in member.values()]
            elif key not in DATA:
                waiting.append((member, False))
        at_root = False


def _check_mark(node: dict[str, Any], reached: bool, seen: set[str]) -> None:
    mark, kinds = node[MARK], node.get("type")
    if not isinstance(mark, str) or not is_header_name(mark):
        raise ValueError(f"{MARK}: {mark!r:.80} is no name of a header")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kinds = [kind for kind in kinds if kind != "null"]
    if not reached or not kinds or not all(kind in PLAIN for kind in kinds):
        raise ValueError(f"{MARK}: {mark:.80} stands at what is no plain argument")
    if mark.lower() in seen:
        raise ValueError(f"{MARK}: {mark:.80} stands there twice")
    seen.add(mark.lower())


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, dict) else None
    return arguments


def _text_of(value: str | int) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def encoded(text: str) -> str:
    """Return a text as a header value: as it is, or as base64 of UTF-8 where it could be misread."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
