"""Endpoints beside MCP: paths at which a server answers POSTs of JSON by other rules, with the same guard.

`Server.http_endpoints` holds them by path, in which ``*`` is any one segment. Host, Origin, token and the
length of a body are checked as for MCP. When the server ends, it waits for their requests in flight. Requests
to other paths go to the application. A server without endpoints does not import this.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial

from fastrpc.transports.base import drained
from fastrpc.transports.http.guard import Refused, preflight_headers
from fastrpc.transports.http.request import HttpRequest, root_and_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Front, Mapped, Receive, Send

__all__ = ["Endpoint", "EndpointFront", "Refused"]

LAST_SECONDS = 1.0
"""Seconds that cancelled requests may take to end."""


class Endpoint:
    """The handler of POST requests at a path."""

    needs_token = True
    """Whether the request needs a token, as for MCP. An endpoint without one checks who sends, in
    `answer_request`."""

    async def answer_request(self, request: HttpRequest, body: bytes) -> bytes:
        """Return what `answer` does, for one that reads the headers, too. Raises Refused."""
        return await self.answer(body)

    async def answer(self, body: bytes) -> bytes:
        """Return the JSON body of the response, which has status 200. It is cancelled when the client
        disconnects, and when the server ends first."""
        raise NotImplementedError

    def refusal(self, message: str) -> bytes:
        """Return the JSON body of a response that refuses a request, for example for a wrong token."""
        raise NotImplementedError


class EndpointFront:
    """An ASGI application that serves the endpoints, and passes every other request to `front`.

    `app` is the server's `HttpApp`, whose guard and limits hold for the endpoints too.
    """

    def __init__(self, front: Front, app: HttpApp, endpoints: Mapping[str, Endpoint]) -> None:
        self._front = front
        self._app = app
        self._endpoints = endpoints
        self._patterns = [
            (re.compile(re.escape(path).replace(r"\*", "[^/]+")), each)
            for path, each in endpoints.items()
            if "*" in path
        ]
        self._answering: set[asyncio.Task[bytes]] = set()

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        is_request = scope["type"] == "http"
        endpoint = self._at(root_and_path(scope)[1]) if is_request else None
        if endpoint is None:
            await self._front(scope, receive, send)
        else:
            request = HttpRequest(scope, receive, send)
            request.error_body = lambda error, id: endpoint.refusal(error.message)
            await request.serve(partial(self._serve, endpoint))

    def _at(self, path: str) -> Endpoint | None:
        matching = (endpoint for pattern, endpoint in self._patterns if pattern.fullmatch(path))
        return self._endpoints.get(path) or next(matching, None)

    async def _serve(self, endpoint: Endpoint, request: HttpRequest) -> None:
        guard = self._app.guard
        request.origin = guard.check_place(request.headers)
        if request.method == "OPTIONS" and request.origin is not None:
            await request.answer(204, b"", preflight_headers(request.headers))
            return
        if endpoint.needs_token:
            await guard.authenticate(request.headers)
        self._app.check_open()
        if request.method != "POST":
            raise Refused(405, f"{request.method:.40}: not served here", headers=[(b"allow", b"POST")])
        request.check_form()
        body = await request.body(self._app.max_body, self._app.bodies)
        task = asyncio.ensure_future(endpoint.answer_request(request, body))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        request.watch(task.cancel)
        try:
            content = await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            if request.gone:
                return  # the client has disconnected
            raise Refused(503, "The server has ended before this was done") from None
        if not request.gone:
            await request.answer(200, content)

    async def stop(self, grace_seconds: float | None) -> None:
        """Refuse new requests, wait for those that are being answered, and cancel the rest."""
        self._app.refuse_new()
        await drained(self._all_answered(), grace_seconds)
        for task in self._answering:
            task.cancel()
        await drained(self._all_answered(), LAST_SECONDS)
        await self._front.stop(grace_seconds)

    async def _all_answered(self) -> None:
        while self._answering:
            await asyncio.wait(set(self._answering))
