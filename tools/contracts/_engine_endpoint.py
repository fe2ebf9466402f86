"""The engine for other programs: tachyon's wire format as an endpoint, ``POST /rpc``, of a server over HTTP.

A body is one JSON-RPC 2.0 request, and its result the envelope: ``{"ok": true, "data": …}`` or ``{"ok":
false, "error": {code, message, retry, details}}``. A request that cannot be read is a JSON-RPC error.
Integers keep every digit. A request that changes something runs to its end even if its client disconnects.
The server handles HTTP and access.
"""

from __future__ import annotations

import asyncio
import json
import re

from fastrpc.errors import InvalidParams, InvalidRequest, MethodNotFound, ParseError
from fastrpc.time_limit import TimeLimit
from fastrpc.transports.http.endpoints import Endpoint

from . import _engines, _failures, _programs, _requests, _strict_json
from ._errors import (
    ASSERTION_FAILED,
    ENGINE_UNAVAILABLE,
    INVALID_REQUEST,
    EngineError,
    invalid,
)
from ._values import quoted, unknown_chain
from ._verbs import PREFIX, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.errors import ProtocolError

HEALTH, CHAIN_USE = "health", "chain_use"
"""The methods of the wire format besides the nine verbs."""
SECONDS = {**{verb: facts.seconds for verb, facts in VERBS.items()}, HEALTH: 15, CHAIN_USE: 15}
VERSION_SECONDS = 5.0

_SURROGATE = re.compile(rb"\\u[dD]")


class Request:
    """A parsed request. `goes_on`: it runs to its end even if its client disconnects."""

    __slots__ = ("goes_on", "id", "params", "verb")

    def __init__(self, id: Any, verb: str, params: dict[str, Any]) -> None:
        self.id = id
        self.verb = verb
        self.params = params
        self.goes_on = verb in VERBS and VERBS[verb].effect == "write"


class EngineEndpoint(Endpoint):
    """Answers requests with the engine of the running loop."""

    def __init__(self) -> None:
        self._forge = ""
        self._going: set[asyncio.Task[bytes]] = set()

    async def answer(self, body: bytes) -> bytes:
        request = read(body)
        if isinstance(request, bytes):
            return request
        if not request.goes_on:
            return await self._served(request)
        task = asyncio.ensure_future(self._served(request))
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        return await asyncio.shield(task)

    def refusal(self, message: str) -> bytes:
        error = EngineError(INVALID_REQUEST, message)
        return encoded({"ok": False, "data": None, "error": _failures.shown(error)})

    async def _served(self, request: Request) -> bytes:
        """Run a request within its time and return the body of the answer. Raises nothing: if it is
        cancelled, because the engine ends, the answer says that."""
        verb, seconds = request.verb, SECONDS[request.verb]
        try:
            with TimeLimit(seconds):
                data = await self._data(verb, request.params)
        except asyncio.CancelledError:
            text = "the engine has ended before this was done"
            envelope = failure(EngineError(ENGINE_UNAVAILABLE, text, retry=not request.goes_on))
        except Exception as error:
            envelope = failure(_failures.engine_error_of(error, verb, seconds, "the engine's log"))
        else:
            envelope = {"ok": True, "data": data}
        return encoded({"jsonrpc": "2.0", "id": request.id, "result": envelope})

    async def _data(self, verb: str, params: dict[str, Any]) -> dict[str, Any]:
        if verb == HEALTH:
            return await self._health(params)
        if verb == CHAIN_USE:
            return await self._chain_use(params)
        return await _engines.current().request(verb, _requests.read(verb, params), _unheard)

    async def _health(self, params: dict[str, Any]) -> dict[str, Any]:
        from fastrpc import __version__

        from .. import _project

        _requests.check_names(params, [])
        listed = await self._data("chain_list", {})
        return {
            "version": __version__,
            "chains": [each["id"] for each in listed["chains"]],
            "project_root": _project.key(),
            "forge": await self._forge_version(),
        }

    async def _forge_version(self) -> str:
        """The version that forge prints, asked for once; empty if forge is missing."""
        from fastrpc import processes

        if not self._forge:
            try:
                command = [_programs.find("forge"), "--version"]
                asked = await processes.run(command, timeout_ms=int(VERSION_SECONDS * 1000))
            except (EngineError, processes.ProgramError):
                return ""
            self._forge = asked.output.head.decode(errors="replace").partition("\n")[0].strip()
        return self._forge

    async def _chain_use(self, params: dict[str, Any]) -> dict[str, Any]:
        """The chains, if the requested one is the active one, which never changes here."""
        _requests.check_names(params, ["chain_id"])
        if params.get("chain_id") is None:
            raise invalid("chain_id", "chain, which is required", "nothing")
        asked = _requests.READERS["chain"]("chain_id", params["chain_id"])
        listed = await self._data("chain_list", {})
        for chain in listed["chains"]:
            if asked in (chain["id"], str(chain["chain_id"])):
                if chain["active"]:
                    return listed
                active = listed["active_chain_id"]
                text = f"chain_id: {active} is always the active one here; name {asked} in each request"
                raise EngineError(INVALID_REQUEST, text)
        raise unknown_chain(asked, [each["id"] for each in listed["chains"]])


def _unheard(phase: str) -> None:
    """The wire format has no progress."""


# --- requests ---------------------------------------------------------------------------------------------


def read(body: bytes) -> Request | bytes:
    """Parse a request; bytes are the answer to an invalid one (JSON-RPC 2.0, 4 and 5.1)."""
    try:
        message = _strict_json.decode(body.decode())
        if _SURROGATE.search(body):  # a lone surrogate is valid JSON, but no text that a program can receive
            json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return _error(None, ParseError, f"not JSON: {reason}")
    if isinstance(message, list):
        return _error(None, InvalidRequest, "a batch is not served here: one request a body")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(None, InvalidRequest, 'expected an object with "jsonrpc": "2.0"')
    id, method, params = message.get("id"), message.get("method"), message.get("params")
    if "id" not in message or isinstance(id, bool | list | dict):
        return _error(None, InvalidRequest, "id: expected a number, a text or null")
    if not isinstance(method, str):
        return _error(id, InvalidRequest, "method: expected a text")
    verb = method.removeprefix(PREFIX)
    if verb not in SECONDS or not method.startswith(PREFIX):
        from fastrpc.errors import suggestion

        hint = suggestion(method, [PREFIX + each for each in SECONDS])
        return _error(id, MethodNotFound, f"no method {quoted(method)}{hint}")
    if params is not None and not isinstance(params, dict):
        return _error(id, InvalidParams, f"params: expected an object, got {quoted(params)}")
    return Request(id, verb, params or {})


# --- answers ----------------------------------------------------------------------------------------------


def failure(error: EngineError) -> dict[str, Any]:
    """The envelope of a failure. Failed tests are in its data, as in tachyon's format, and in its details."""
    envelope: dict[str, Any] = {"ok": False, "error": _failures.shown(error)}
    if error.code == ASSERTION_FAILED and error.details is not None:
        envelope["data"] = error.details
    return envelope


def encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _error(id: Any, kind: type[ProtocolError], message: str) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "error": {"code": kind.code, "message": message}})
