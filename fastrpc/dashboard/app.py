"""`Dashboard`: the ASGI application of the pages.

For each request it checks the Host, finds the visitor by the cookie, checks that a form was sent by a page of
this origin and, where one must be signed in, of this session (a token in the form), and has the page answer
on a thread. Every response has headers that forbid other sites to frame, script or read it. An error becomes
a page with one sentence.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pkgutil import iter_modules
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, StreamingResponse
from starlette.routing import Mount, Route, compile_path
from starlette.staticfiles import StaticFiles

from fastrpc import diagnostics
from fastrpc.dashboard import pages
from fastrpc.dashboard.access import SignInStore, Visitor
from fastrpc.dashboard.live import Changes, TooManyPages
from fastrpc.dashboard.view import COOKIE, PREFIX, PageError, PageRoute, PageView, Sources
from fastrpc.errors import FAILURES
from fastrpc.guard.approvals.store import ApprovalError
from fastrpc.storage.errors import StorageError
from fastrpc.transports.http.guard import Refused, headers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Pattern

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fastrpc.transports.http.guard import AccessRules

LONGEST_FORM = 1024 * 1024
MOST_FIELDS = 200
MOST_THREADS = 8
"""Pages that are made at once; others wait. The event loop's threads are for the calls of tools."""
OTHER_SESSION = "This form is of another session: open the page again and send it once more."
SESSION_OVER = "Your session has ended, so nothing was done. Sign in, and send the form once more."
HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send no Origin with a form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Dashboard:
    """The application at ``/dashboard``. `rules` check the Host."""

    def __init__(self, sources: Sources, rules: AccessRules) -> None:
        self.sources = sources
        self._threads = ThreadPoolExecutor(MOST_THREADS, "dashboard")
        self.changes = Changes(sources.database, self._threads)
        self._rules = rules
        routes: list[Route | Mount] = [
            Route("/events", self._events),
            Mount("/static", _Static(directory=os.path.join(HERE, "static"))),
        ]
        self.pages = sorted(
            (
                page
                for name in _names(pages.__path__)
                for page in import_module(f"{pages.__name__}.{name}").PAGES
            ),
            key=lambda page: page.order,
        )
        self._got: list[Pattern[str]] = []
        for page in self.pages:
            for each in page.routes:
                if each.method == "GET":
                    self._got.append(compile_path(each.path)[0])
                endpoint = self._endpoint(each)
                routes.append(Route(each.path, endpoint, methods=[each.method]))
        self._app: ASGIApp = Starlette(
            routes=[Mount(PREFIX, routes=routes), Route(PREFIX, _to_the_first)],
            exception_handlers={404: _nothing_here, 405: _nothing_here},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            self._rules.check_host(headers_of(scope))
        except Refused as refused:
            answer = PlainTextResponse(refused.message, refused.status)
            await answer(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    # --- a request ----------------------------------------------------------------------------------------

    def _endpoint(self, route: PageRoute) -> Callable[..., object]:
        """Return the endpoint of a page's route: it reads a form, and then does the rest on one thread."""

        def page(request: Request, visitor: Visitor | None, form: dict[str, str]) -> Response:
            if route.role is not None and visitor is None:
                if request.method == "POST":
                    raise PageError(SESSION_OVER, 401)
                return _sign_in_first(request)
            token = form.pop("form_token", "")
            view = self._view(request, visitor, form)
            if route.role is not None:
                view.needs(route.role)
            if route.again is not None and view.chosen:  # it only shows what was sent
                return view.with_choice(route.again(view))
            is_of_session = request.method == "POST" and route.role is not None
            if is_of_session and visitor is not None and not visitor.sent(token):
                raise PageError(OTHER_SESSION, 403)
            return route.handler(view)

        def failed(
            request: Request, visitor: Visitor | None, sent: dict[str, str], status: int, message: str
        ) -> Response:
            view = self._view(request, visitor, dict(sent))
            if view.is_part:
                return view.page("error_state.html", status, message=message)
            kept = {name: text for name, text in view.form.items() if name != "form_token"}
            is_kept = route.again is not None and any(kept.values())
            of_form = {"kept": kept if is_kept else {}, "action": request.url.path, "is_over": status == 401}
            return view.with_choice(view.page("error.html", status, message=message, **of_form))

        def answer(request: Request, form: dict[str, str] | PageError) -> Response:
            visitor, sent = None, {} if isinstance(form, PageError) else dict(form)
            try:
                visitor = self._visitor(request)
                if _has_nul(request):
                    raise PageError("There is nothing here.", 404)
                if isinstance(form, PageError):
                    raise form
                return page(request, visitor, form)
            except (PageError, ApprovalError) as error:
                status, message = error.status, str(error)
            except StorageError as error:
                status, message = 503, str(error)
            except FAILURES as error:
                diagnostics.write("error", f"{request.method} {request.url.path:.200} failed", error)
                status, message = 500, "Internal error; see the server's log"
            return failed(request, visitor, sent, status, message)

        async def endpoint(request: Request) -> Response:
            request.state.loop = loop = asyncio.get_running_loop()
            form: dict[str, str] | PageError = {}
            if request.method == "POST":
                try:
                    form = await _form_of(request)
                except PageError as error:
                    form = error
            return await loop.run_in_executor(self._threads, answer, request, form)

        return endpoint

    def _view(self, request: Request, visitor: Visitor | None, form: dict[str, str]) -> PageView:
        menu = [each for each in self.pages if each.title and each.is_there(self.sources)]
        path = request.url.path
        here = path if request.method == "GET" else f"{PREFIX}{self._shown_at(path.removeprefix(PREFIX))}"
        return PageView(self.sources, menu, request, visitor, form, request.state.loop, here)

    def _shown_at(self, path: str) -> str:
        """Return where the page that has a form is got: at the longest beginning of the form's path."""
        while path and not any(each.match(path) for each in self._got):
            path = path.rpartition("/")[0]
        return path or "/"

    def _visitor(self, request: Request) -> Visitor | None:
        token = request.cookies.get(COOKIE)
        return SignInStore(self.sources.database()).visitor(token) if token else None

    async def _events(self, request: Request) -> Response:
        """Tell an open page what has changed, as events (HTML: server-sent events)."""

        async def visitor() -> Visitor | None:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._visitor, request)

        try:
            if await visitor() is None:
                return PlainTextResponse("sign in first", 401)
            since = request.headers.get("last-event-id") or request.query_params.get("since", "")
            stream = self.changes.stream(since, visitor)
        except (TooManyPages, StorageError) as error:
            return PlainTextResponse(str(error), 503)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


class _Static(StaticFiles):
    """The files of the pages: style sheet, scripts. Their names have the release, so browsers may keep
    them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        found = await super().get_response(path, scope)
        found.headers["cache-control"] = "max-age=3600"
        return found


async def _form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page of this origin has sent, at least one. Raises PageError."""
    origin = request.headers.get("origin")
    if origin is None or origin.partition("://")[2] != request.headers.get("host"):
        raise PageError("This form was not sent by a page of this server.", 403)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_FORM:
            raise PageError(f"The form is longer than {LONGEST_FORM:,} bytes.", 413)
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        fields = []
    if not fields or any("\0" in text for pair in fields for text in pair):  # PostgreSQL stores no NUL
        raise PageError("This is not a form of these pages.", 400)
    return {"form_token": "", **dict(fields)}


def _has_nul(request: Request) -> bool:
    """Whether a NUL is in the path or the query: PostgreSQL compares no text with one."""
    query = request.query_params
    return any("\0" in text for text in (request.scope["path"], *query.keys(), *query.values()))


def _sign_in_first(request: Request) -> Response:
    if "hx-request" in request.headers:  # a part of a page: the whole page goes to the form
        return PlainTextResponse("", 401, headers={"hx-redirect": f"{PREFIX}/enter"})
    return RedirectResponse(f"{PREFIX}/enter", 303)


async def _to_the_first(request: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", 303)


async def _nothing_here(request: Request, error: Exception) -> Response:
    return PlainTextResponse("There is nothing here.", getattr(error, "status_code", 404))


def _names(path: object) -> list[str]:
    return sorted(each.name for each in iter_modules(path))  # type: ignore[arg-type]
