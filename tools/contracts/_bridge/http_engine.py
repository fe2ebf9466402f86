"""An engine over HTTP: JSON-RPC 2.0, one POST for each request, on reused connections.

The token is read for each request, from the setting or the file, and is never sent over plain http to another
machine. Redirects are not followed: they would send the request, with its effects, to another server. Answers
are bounded. docs/contracts.md gives the cost.
"""

from __future__ import annotations

import asyncio
import json
import os
from itertools import count
from urllib.parse import urlsplit

import orjson

from fastrpc.client.http.address import Remote
from fastrpc.client.http.connection import BrokenConnection
from fastrpc.client.http.wire import Unreachable as NoConnection
from fastrpc.client.http.wire import Wire, header_lines
from fastrpc.errors import ConnectionLost, InvalidAnswer, MethodNotFound
from fastrpc.time_limit import TimeLimit

from .. import _settings
from .._errors import ENGINE_PROTOCOL, ENGINE_UNAUTHORIZED, ENGINE_UNAVAILABLE, EngineError
from .._verbs import PREFIX, VERBS
from . import answers
from .connection import Refused, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.client.http.wire import Answer

PATH = "/rpc"
HEADERS = {"content-type": "application/json", "accept": "application/json"}
HEADER_LINES = header_lines(HEADERS)
MOST_BYTES = 32 * 1024 * 1024
LARGE_BYTES = 256 * 1024  # longer answers are parsed on a worker thread
BUSY = (429, 502, 503, 504)


def _encode(request: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(request)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(request, separators=(",", ":")).encode()


class HttpEngine:
    """The engine at a URL. Raises EngineError(ENGINE_UNAVAILABLE) for a URL that cannot be used."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        address = url if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}{PATH}"
        try:
            self._remote = Remote(address, token=_token_source())
        except (ValueError, ImportError) as error:
            raise EngineError(ENGINE_UNAVAILABLE, f"{_settings.ENGINE.name}: {error}") from None
        self.is_local = self._remote.is_local
        self._is_open_to_listeners = self._remote.is_open_to_listeners
        self._wire = Wire(self._remote, follows_redirects=False)
        self._numbers = count(1)

    async def ask(self, verb: str, parameters: dict[str, Any], seconds: float) -> Any:
        """Return the envelope. Raises EngineError, and TimeoutError after `seconds`."""
        id = next(self._numbers)
        return answers.result_of(await self._answer(id, PREFIX + verb, parameters, seconds), id)

    async def verbs(self) -> set[str]:
        """Return the names of the toolset's tools for which the engine does not return "method not found".
        Raises EngineError."""
        found = set()
        for verb in VERBS:
            answer = await self._answer(next(self._numbers), PREFIX + verb, 0, VERBS["chain_list"].seconds)
            error = answer.get("error") if isinstance(answer, dict) else None
            if not isinstance(error, dict) or error.get("code") != MethodNotFound.code:
                found.add(PREFIX + verb)
        return found

    async def _answer(self, id: int, method: str, parameters: Any, seconds: float) -> Any:
        """Send a request and return the answer's JSON. Raises EngineError and TimeoutError."""
        if self._is_open_to_listeners:
            raise Refused(
                ENGINE_UNAUTHORIZED,
                "the token is not sent over plain http to another machine; use an https URL",
            )
        body = _encode({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
        try:
            with TimeLimit(seconds):
                content = await self._post(body)
        except ValueError as error:  # of an invalid token
            raise Refused(ENGINE_UNAUTHORIZED, str(error)) from None
        except InvalidAnswer as error:
            raise answers.protocol_error(f"cannot be understood: {error}") from None
        except ConnectionLost as error:
            raise Unreachable(str(error), was_sent=not isinstance(error, NoConnection)) from None
        except TimeoutError:
            raise
        except OSError as error:
            raise Refused(ENGINE_UNAUTHORIZED, f"the token cannot be read: {error.strerror}") from None
        parse = answers.parsed
        return parse(content) if len(content) < LARGE_BYTES else await asyncio.to_thread(parse, content)

    async def _post(self, body: bytes) -> bytes:
        """Send a request and return the body of its answer. On an idle connection, an answer that arrives
        whole takes a shorter path. Raises EngineError for another status than 200, and as `Wire.send`."""
        begun = self._wire.post_at_once(HEADER_LINES, body, None, None)
        if begun is not None:
            try:
                await begun.settled()
            except (BrokenConnection, OSError) as error:
                raise self._wire.broken(self._remote.url, error) from None
            except BaseException:
                begun.cancel()
                raise
            if begun.is_complete and begun.status == 200 and not begun.has_special_headers:
                return begun.body()
        async with self._wire.send("POST", HEADERS, body, begun=begun) as answer:
            if answer.status != 200:
                raise self._refused(answer)
            return await answer.content(MOST_BYTES)

    async def close(self) -> None:
        await self._wire.close()

    def _refused(self, answer: Answer) -> EngineError:
        status, place = answer.status, self._wire.place(answer.url)
        if status in (401, 403):
            what = "does not accept the token" if self._remote.has_token else "asks for a token"
            hint = f"; set {_settings.TOKEN.name} or {_settings.TOKEN_FILE.name}"
            return Refused(ENGINE_UNAUTHORIZED, f"{place} {what} (status {status}){hint}")
        if status in BUSY:
            return EngineError(ENGINE_UNAVAILABLE, f"{place} cannot answer now (status {status})", retry=True)
        redirect = "; redirects are not followed" if 300 <= status < 400 else ""
        kind = Refused if status < 500 else EngineError
        return kind(ENGINE_PROTOCOL, f"{place} is not an engine: it answers status {status}{redirect}")


def _token_source() -> Any:
    """Return the token, or a function that reads it from its file; None if neither is configured."""
    path = _settings.TOKEN_FILE.read()
    if path:
        return TokenFile(path).read
    return _settings.TOKEN.read() or None


class TokenFile:
    """Reads the token from the first line of a file, again after each change of the file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._token = ""

    def read(self) -> str:
        """Return the token. Raises OSError."""
        found = os.stat(self._path)
        state = (found.st_ino, found.st_size, found.st_mtime_ns)
        if state != self._state:
            from fastrpc.redaction import hide
            from fastrpc.regular_files import open_regular

            with open(open_regular(self._path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
                self._token = file.readline(10_000).strip()
            hide(self._token)
            self._state = state
        return self._token
