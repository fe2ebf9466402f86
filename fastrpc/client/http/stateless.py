"""MCP 2026-07-28 over HTTP: each request is a self-contained POST, answered by a body or a stream.

Headers repeat values of the body for routers; the results of tools/list say which arguments of a tool are
repeated. Closing the stream cancels the request. A client sends no responses, and no notifications but those
that MCP does not know.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

from fastrpc import diagnostics
from fastrpc._core.client_request import PendingRequest
from fastrpc.client.http.address import is_header_name
from fastrpc.client.http.carrier import SILENT_SECONDS, Carrier, Link
from fastrpc.client.http.connection import JSON, Response
from fastrpc.client.http.events import Events
from fastrpc.client.http.wire import LONGEST_BODY, STREAM, Wire, header_lines
from fastrpc.errors import ClientError, ConnectionLost
from fastrpc.protocol.versions import STATELESS
from fastrpc.transports.http.headers import NAMED, parameter_headers, value_at

ParameterHeaders = list[tuple[str, tuple[str, ...]]]
"""Headers of a tool, each with the path to its argument."""

MOST_LINES, LONGEST_LINES = 1024, 1024
"""Header lines that are kept, by method and name, and bytes of those of one."""

MARK = "x-mcp-header"
PLAIN = ("string", "integer", "boolean")
"""Types of arguments that a header may carry."""
DATA = ("const", "default", "enum", "example", "examples")
"""Keywords of JSON Schema whose values are data, not schemas."""


class StatelessCarrier(Carrier):
    """The transport of 2026-07-28."""

    def __init__(self, link: Link, wire: Wire) -> None:
        super().__init__(link, wire)
        self._parameters: dict[str, ParameterHeaders] = {}
        """By tool; tools without headers have no entry."""
        self._lines: dict[tuple[str, str | None], bytes] = {}

    def lines_at_once(self, request: PendingRequest, params: dict[str, Any]) -> bytes | None:
        method = request.method
        if method == "subscriptions/listen":
            return None  # is to be watched for silence
        name = params.get(NAMED[method]) if method in NAMED else None
        if not isinstance(name, str):
            name = None
        if name in self._parameters:
            return header_lines(self._headers(method, params))
        lines = self._lines.get((method, name))
        if lines is None:
            lines = header_lines(self._headers(method, params))
            if len(self._lines) == MOST_LINES:
                self._lines.clear()
            if len(lines) <= LONGEST_LINES:
                self._lines[method, name] = lines
        return lines

    async def exchange(
        self, request: PendingRequest, params: dict[str, Any], line: bytes, begun: Response | None
    ) -> None:
        silent_seconds = SILENT_SECONDS if request.method == "subscriptions/listen" else None
        sending = self.wire.send(
            "POST",
            self._headers(request.method, params),
            line,
            silent_seconds=silent_seconds,
            waits=silent_seconds is None,
            begun=begun,
        )
        async with sending as answer:
            if not answer.is_stream:
                await self.receive_body(answer, request)
            else:
                async for event in answer.events(Events(LONGEST_BODY)):
                    self.receive(event.data.encode(), request)
                    if request.done:
                        break
        if not request.done:
            raise ConnectionLost("the server closed the stream before the response")

    def receive(self, text: bytes, of: PendingRequest | None = None) -> None:
        super().receive(text, of)
        if of is not None and of.method == "tools/list" and of.done:
            self._learn(of)  # before its caller continues

    async def post(self, line: bytes) -> None:
        """Send a notification; the version has no other such messages."""
        method = json.loads(line).get("method")
        if method is not None:
            async with self.wire.send("POST", self._headers(method, {}), line) as answer:
                if answer.status >= 300:
                    raise answer.refusal()

    def withdraw(self, request: asyncio.Task[None] | Response | None, line: bytes) -> None:
        if request is not None:
            request.cancel()

    def _headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        headers = {
            "content-type": JSON,
            "accept": f"{JSON}, {STREAM}",
            "MCP-Protocol-Version": STATELESS,
            "Mcp-Method": method,
        }
        name = params.get(NAMED.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = encoded(name)
            if method == "tools/call":
                for mark, path in self._parameters.get(name, ()):
                    value = value_at(params.get("arguments"), path)
                    if isinstance(value, str | int):
                        text = str(value).lower() if isinstance(value, bool) else str(value)
                        headers[f"Mcp-Param-{mark}"] = encoded(text)
        return headers

    def _learn(self, request: PendingRequest) -> None:
        """Learn the headers of the tools in a page of tools/list, and remove tools with an invalid
        ``x-mcp-header`` (MCP 2026-07-28, transports: custom headers from tool parameters)."""
        try:
            result = request.result()
        except ClientError:
            return
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return
        kept = []
        for tool in tools:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                name, schema = tool["name"], tool.get("inputSchema")
                self._parameters.pop(name, None)
                try:
                    check_marks(schema)
                except ValueError as error:
                    diagnostics.write(
                        "warning", f"the server's tool {tool['name']!r:.80} is invalid and ignored: {error}"
                    )
                    continue
                if isinstance(schema, dict) and (found := parameter_headers(schema)):
                    self._parameters[name] = found
            kept.append(tool)
        tools[:] = kept


def check_marks(schema: Any) -> None:
    """Raise ValueError if the input schema has an invalid ``x-mcp-header``: clients must ignore the tool."""
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
        raise ValueError(f"{MARK}: {mark!r:.80} is not a valid header name")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kinds = [kind for kind in kinds if kind != "null"]
    if not reached or not kinds or not all(kind in PLAIN for kind in kinds):
        raise ValueError(f"{MARK}: {mark:.80}: expected a string, integer or boolean argument")
    if mark.lower() in seen:
        raise ValueError(f"{MARK}: {mark:.80} is used twice")
    seen.add(mark.lower())


def encoded(text: str) -> str:
    """Return a text as a header value: as it is, or as base64 of UTF-8 where it could be misread."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
