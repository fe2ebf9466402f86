"""`PageView`: a request as a page sees it, and the responses that it can make; `Page` declares a page.

A page is a module of `fastrpc.dashboard.pages` with a list `PAGES`; each has routes, and a route a function
that takes a `PageView` and returns a response. It runs on a thread, and may read the database. Texts are
escaped by the template engine; what a caller has chosen is made visible first
(`fastrpc.guard.approvals.display`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import TimeoutError as LoopTimeout
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from fastrpc.dashboard.access import ADMINISTRATOR, APPROVER, VIEWER, SignInStore
from fastrpc.dashboard.language import LANGUAGES, Language, language_of
from fastrpc.dashboard.rendering import environment
from fastrpc.errors import FastrpcError
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.transports.http.guard import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import TypeVar

    from starlette.requests import Request
    from starlette.responses import Response

    from fastrpc.dashboard.access import Visitor
    from fastrpc.dashboard.openid import OpenIdSignIn
    from fastrpc.dashboard.serving import ServingProcess
    from fastrpc.dashboard.task_database import TaskDatabase
    from fastrpc.guard.audit.log import AuditLog
    from fastrpc.guard.editing import PolicyEditor
    from fastrpc.guard.policy.audit_section import AuditConfig
    from fastrpc.storage.database import Database

    Value = TypeVar("Value")

PREFIX = "/dashboard"
"""The path of the pages."""
COOKIE = "fastrpc_dashboard"
"""The cookie with the token of a session."""
LOOP_SECONDS = 10.0
"""How long a page waits for the event loop that serves."""
THEMES = ("auto", "light", "dark")
LANGUAGE_COOKIE, THEME_COOKIE = "fastrpc_language", "fastrpc_theme"
CHOICES = {"language": (LANGUAGE_COOKIE, LANGUAGES), "theme": (THEME_COOKIE, THEMES)}
"""What a visitor chooses by a button that may send any form along: its cookie, and the known values."""
AGAIN = "again"
"""The name of the button that shows a form once more, with what was typed."""
YEAR_SECONDS = 365 * 24 * 3600
NEEDED = {
    VIEWER: "Sign in first.",
    APPROVER: "Your role may look, but not decide.",
    ADMINISTRATOR: "Only an administrator may do this.",
}


class PageError(FastrpcError):
    """A request that a page refuses, with the sentence that it shows. `status` is that of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


Handler = Callable[["PageView"], "Response"]


@dataclass(frozen=True)
class PageRoute:
    """A path below the dashboard, and what answers there. `role`: who may; None: anyone, signed in or not. A
    form names its role: the default is that of a page which changes nothing. `again`: shows the page of a
    form once more, with what was typed, and does nothing else; None for a form in which nothing is typed."""

    method: str
    path: str
    handler: Handler
    role: str | None = VIEWER
    again: Handler | None = None


@dataclass(frozen=True)
class AuditSource:
    """An audit log: its folder, and the file of its public key, None for the one in the folder."""

    folder: str
    public_key: str | None = None

    @classmethod
    def of(cls, config: AuditConfig) -> AuditSource | None:
        """Return the log of a guard's configuration, None if calls are not recorded."""
        key = config.key_file
        return None if config.mode is None else cls(config.path, key and f"{key}.pub")


@dataclass(frozen=True)
class Sources:
    """What the pages show: the guard's database, which `database` opens, and the name of the server; of the
    process that serves it, `serving`, None for pages that are served by themselves; the database of tasks;
    the audit log into which actions are recorded; `log`, the files of the audit log that pages read; the
    guard's file; what signs people in at an authorization server, if the guard's file names one; and
    `knowledge`, which returns what the knowledge toolset has of an owner. None: this process has none."""

    database: Callable[[], Database]
    server: str = ""
    serving: ServingProcess | None = None
    tasks: TaskDatabase | None = None
    audit: AuditLog | None = None
    log: AuditSource | None = None
    policy: PolicyEditor | None = None
    sign_in: OpenIdSignIn | None = None
    knowledge: Callable[[str], Any] | None = None


@dataclass(frozen=True)
class Page:
    """A page; with a `title` it is an entry of the menu, which leads to the path of its first route, unless
    the sources do not have what it shows (`is_there`)."""

    routes: list[PageRoute] = field(default_factory=list)
    title: str = ""
    order: int = 0
    is_there: Callable[[Sources], bool] = lambda sources: True

    @property
    def path(self) -> str:
        return self.routes[0].path


class PageView:
    """A request of a visitor, None for one who has not signed in. `menu` are the pages
    that it names, `form` has the fields of a form, except those of a button of every page, which are in
    `chosen`; `loop` is the event loop that serves; `here` is the path of the page, where it is got: for the
    response to a form, that of the page with the form."""

    def __init__(
        self,
        sources: Sources,
        menu: list[Page],
        request: Request,
        visitor: Visitor | None,
        form: dict[str, str],
        loop: asyncio.AbstractEventLoop,
        here: str,
    ) -> None:
        self.sources = sources
        self.menu = menu
        self.request = request
        self.visitor = visitor
        self.form = form
        self.chosen = {name: form.pop(name) for name in (*CHOICES, AGAIN) if name in form}
        self.loop = loop
        self.here = here

    @property
    def person(self) -> str:
        """The name of the visitor, who has signed in."""
        return "" if self.visitor is None else self.visitor.person

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    @property
    def place(self) -> str:
        """The path of the page, with the query of the request."""
        query = self.request.url.query
        return f"{self.here}?{query}" if query else self.here

    @property
    def is_part(self) -> bool:
        """Whether an open page asks for a part of itself."""
        return "hx-request" in self.request.headers

    @cached_property
    def language(self) -> Language:
        """The language that the visitor has chosen, or the browser's first one that there is."""
        chosen = self.chosen.get("language") or self.request.cookies.get(LANGUAGE_COOKIE, "")
        return LANGUAGES.get(chosen) or language_of(self.request.headers.get("accept-language", ""))

    @property
    def theme(self) -> str:
        chosen = self.chosen.get("theme") or self.request.cookies.get(THEME_COOKIE, "auto")
        return chosen if chosen in THEMES else "auto"

    @cached_property
    def keys(self) -> SignInStore:
        return SignInStore(self.sources.database())

    @cached_property
    def approvals(self) -> ApprovalStore:
        return ApprovalStore(self.sources.database())

    @property
    def log(self) -> AuditSource:
        """The files of the audit log. Raises PageError if there are none."""
        found = self.sources.log
        if found is None or not os.path.isdir(found.folder):
            raise PageError("There is no audit log here.", 404)
        return found

    def needs(self, role: str) -> None:
        """Raise PageError for a visitor who has neither the role nor one above it."""
        if self.visitor is None or not self.visitor.may(role):
            raise PageError(NEEDED[role], 403)

    @property
    def serving(self) -> ServingProcess:
        """The server of this process. Raises PageError for pages that are served by themselves."""
        if self.sources.serving is None:
            raise PageError(
                "These pages are served by themselves: this process has no calls and no tools.", 404
            )
        return self.sources.serving

    def in_loop(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine in the event loop that serves, and return its value. Raises PageError if that takes
        too long."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(LOOP_SECONDS)
        except LoopTimeout:  # TimeoutError itself, except in Python 3.10
            future.cancel()
            raise PageError("The server is busy: try again.", 503) from None

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page, or a part of one, made from a template. `place`: where the same page is got, if that
        is not the path of the page with its query."""
        made = (
            environment()
            .get_template(template)
            .render(
                view=self,
                visitor=self.visitor,
                menu=self.menu,
                here=self.here,
                server=self.sources.server,
                language=self.language,
                theme=self.theme,
                _=self.language.text,
                form_token=self._form_token,
                **{"place": self.place, **values},
            )
        )
        return HTMLResponse(made, status)

    def _form_token(self) -> Markup:
        """Return the field by which the application recognizes a form of this session."""
        token = "" if self.visitor is None else self.visitor.form_token
        return Markup('<input type="hidden" name="form_token" value="{}">').format(token)

    def redirect(self, path: str) -> Response:
        """Return the response to a form: the browser goes to a path below the dashboard."""
        return RedirectResponse(f"{PREFIX}{path}", 303)

    def with_choice(self, response: Response) -> Response:
        """Have the browser keep the language or the theme that the visitor has chosen with this request."""
        for name, (cookie, known) in CHOICES.items():
            if self.chosen.get(name) in known:
                self.set_cookie(response, cookie, self.chosen[name], YEAR_SECONDS)
        return response

    def set_cookie(
        self, response: Response, name: str, value: str, seconds: int, same_site: str = "strict"
    ) -> None:
        """Set a cookie that only these pages get, and no script. Away from this machine, only by TLS."""
        is_secure = self.request.url.scheme == "https" or not is_loopback(self.request.url.hostname or "")
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path=PREFIX,
            secure=is_secure,
            httponly=True,
            samesite=same_site,  # type: ignore[arg-type]
        )
