"""2026-07-28 over HTTP: each request a POST that says all of itself, its answer a body or a stream.

What a router may want to know stands in headers. To stop waiting is to cancel: the stream is closed. Changes
come on a stream of their own, `subscriptions/listen`, opened again when it breaks; what may have been missed
meanwhile is listed anew.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode

from fastrpc import log
from fastrpc.errors import ToolError
from fastrpc.proxy.remote.address import is_header_name
from fastrpc.proxy.remote.events import Events
from fastrpc.proxy.remote.transport import PAUSES, SILENT_SECONDS, STEADY_SECONDS, check_answers, parsed
from fastrpc.proxy.remote.wire import JSON, LONGEST_BODY, STREAM, Refused, WireError
from fastrpc.proxy.requests import RemoteError
from fastrpc.results import to_json
from fastrpc.transports.http.headers import NAMED, parameter_headers
from fastrpc.versions import CAPABILITIES_KEY, CLIENT_KEY, LOG_KEY, MODERN, SERVER_KEY, VERSION_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.proxy.remote.transport import Client
    from fastrpc.proxy.remote.wire import Answer, Wire
    from fastrpc.proxy.requests import Asked

ACKNOWLEDGED_SECONDS = 5.0
"""How long the lists wait until the server has agreed to tell of their changes."""

MARK = "x-mcp-header"
PLAIN = ("string", "integer", "boolean")
"""Types of arguments that may stand in a header, if they are there."""
DATA = ("const", "default", "enum", "example", "examples")
"""Members of a schema that hold no schemas."""

FROM_CLIENT = ("elicitation", "sampling", "roots")


class StatelessTransport:
    """The transport of 2026-07-28."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._filter: dict[str, Any] = {}
        self._listening: asyncio.Task[None] | None = None
        self._last_stream = 0

    def agreed(self, version: str) -> None:
        """There is nothing to agree on."""

    async def begin(self, capabilities: dict[str, Any]) -> None:
        """The server has said what it can do: hear of its changes before the lists are read."""
        for name in ("tools", "prompts", "resources"):
            if (capabilities.get(name) or {}).get("listChanged"):
                self._filter[f"{name}ListChanged"] = True
        if self._filter:
            await self._listen()

    # --- requests -------------------------------------------------------------------------------------

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        params = message["params"]
        params["_meta"] = {**params.get("_meta", {}), **self._envelope(asked)}
        asked.task = self._client.spawn(self._ask(asked, message))

    def withdraw(self, asked: Asked) -> None:
        if asked.task is not None:
            asked.task.cancel()

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        """There is nothing that a client tells a server in this version."""

    def _envelope(self, asked: Asked) -> dict[str, Any]:
        told = self._client.told
        capabilities = told["capabilities"]
        if asked.context is not None:  # each request may be another client's
            said = asked.context.client_capabilities
            capabilities = {name: said[name] for name in FROM_CLIENT if name in said}
            if "roots" in capabilities:
                capabilities["roots"] = {}
        found = {VERSION_KEY: MODERN, CAPABILITIES_KEY: capabilities, CLIENT_KEY: told["clientInfo"]}
        if asked.context is not None:
            found[LOG_KEY] = "debug"  # each client's own level is judged here
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

    async def _ask(self, asked: Asked, message: dict[str, Any]) -> None:
        try:
            async with self._wire.send("POST", self._headers(message), to_json(message)) as answer:
                await self._read(answer, asked)
            if self._client.waits_for(asked):
                raise WireError("the server behind this one ended its answer before the result")
        except (ToolError, RemoteError) as error:
            self._client.fail(asked, error)
        except Exception as error:  # the caller must not wait for ever
            log.write("error", f"{asked.method} failed on the way to the server behind", error)
            self._client.fail(asked, WireError(f"the request could not be sent: {error!r:.200}"))

    async def _read(self, answer: Answer, asked: Asked) -> None:
        if not answer.is_stream:
            for message in await answer.messages():
                check_answers(message, answer.status)
                self._client.take(_plain(message, asked), asked)
            return
        async for event in answer.events(Events(LONGEST_BODY)):
            self._client.take(_plain(parsed(event.data), asked), asked)
            if not self._client.waits_for(asked):
                return

    # --- changes --------------------------------------------------------------------------------------

    async def watch(self, uris: set[str]) -> None:
        """Hear of changes of these resources too."""
        self._filter["resourceSubscriptions"] = sorted(uris)
        await self._listen()

    async def _listen(self) -> None:
        """Open a stream with the filter as it is now; the one before is left when it stands."""
        before = self._listening
        acknowledged = asyncio.Event()
        self._listening = self._client.spawn(self._keep_listening(dict(self._filter), acknowledged))
        try:
            await asyncio.wait_for(acknowledged.wait(), ACKNOWLEDGED_SECONDS)
        except asyncio.TimeoutError:
            log.write("warning", "the server behind has not agreed to tell of its changes yet")
        if before is not None:
            before.cancel()

    async def _keep_listening(self, wanted: dict[str, Any], acknowledged: asyncio.Event) -> None:
        attempts = 0
        while True:
            began = self._client.loop.time()
            try:
                await self._hear(wanted, acknowledged)
            except RemoteError as error:
                log.write("info", f"the server behind tells of no changes: {error}")
                acknowledged.set()
                return
            except Refused as error:
                if error.status < 500 and error.status != 429:
                    log.write("info", f"the server behind tells of no changes: {error}")
                    acknowledged.set()
                    return
            except WireError as error:
                log.write("info", f"the stream of changes broke: {error}")
            if self._client.loop.time() - began > STEADY_SECONDS:
                attempts = 0
            await asyncio.sleep(PAUSES[min(attempts, len(PAUSES) - 1)])
            attempts += 1

    async def _hear(self, wanted: dict[str, Any], acknowledged: asyncio.Event) -> None:
        """Read one stream to its end."""
        self._last_stream += 1
        envelope = {
            VERSION_KEY: MODERN,
            CAPABILITIES_KEY: {},
            CLIENT_KEY: self._client.told["clientInfo"],
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
                    self._client.take(found)
                    continue
                if acknowledged.is_set():  # it was not the first: who knows what has changed in between
                    self._client.list_anew()
                acknowledged.set()

    async def leave(self) -> None:
        """A stream that is closed is ended."""


def _plain(message: Any, asked: Asked) -> Any:
    """Return a message whose result does not say anew whose it is: our own results say that of us."""
    result = message.get("result") if isinstance(message, dict) else None
    meta = result.get("_meta") if isinstance(result, dict) else None
    if isinstance(meta, dict) and SERVER_KEY in meta and asked.method != "server/discover":
        del meta[SERVER_KEY]
        if not meta:
            del message["result"]["_meta"]
    return message


def check_marks(schema: Any) -> None:
    """Raise ValueError for an input schema that asks for headers as none may (MCP 2026-07-28, x-mcp-header).

    A client must leave out a tool that has one.
    """
    seen: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(schema, False)]  # and whether it is an argument that can be reached
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
    """Return a text as a header's value: plain, or base64 of UTF-8 where it could be misread."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
