"""`PageView`: a request as a page sees it, and the responses that it can make; `Page` declares a page.

A page is a module of `fastrpc.dashboard.pages` with a list `PAGES`; each has routes, and a route a function
that takes a `PageView` and returns a response. It runs on a thread, and may read the database. Texts are
escaped by the template engine; what a caller has chosen is made visible first
(`fastrpc.guard.approvals.display`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    from starlette.requests import Request
    from starlette.responses import Response

    from fastrpc.dashboard.access import Visitor
    from fastrpc.dashboard.openid import OpenIdSignIn
    from fastrpc.storage.database import Database

PREFIX = "/dashboard"
"""The path of the pages."""
COOKIE = "fastrpc_dashboard"
"""The cookie with the token of a session."""
THEMES = ("auto", "light", "dark")
LANGUAGE_COOKIE, THEME_COOKIE = "fastrpc_language", "fastrpc_theme"
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
    """A path below the dashboard, and what answers there. `role`: who may; None: anyone, signed in or not."""

    method: str
    path: str
    handler: Handler
    role: str | None = VIEWER


@dataclass(frozen=True)
class Page:
    """A page; with a `title` it is an entry of the menu, which leads to the path of its first route."""

    routes: list[PageRoute] = field(default_factory=list)
    title: str = ""
    order: int = 0
    needs: str = ""
    """The field of `Sources` without which the menu does not have the page."""

    @property
    def path(self) -> str:
        return self.routes[0].path


@dataclass(frozen=True)
class Sources:
    """What the pages show: the guard's database, which `database` opens, and the name of the server."""

    database: Callable[[], Database]
    server: str = ""
    audit: Callable[[str, str, str, str], None] | None = None
    """Records who did what to what, and the outcome (`CallAudit.done_by`); None without an audit log."""
    sign_in: OpenIdSignIn | None = None
    """Signs people in at an authorization server, if the guard's file names one."""
    knowledge: Callable[[str], Any] | None = None
    """Returns what the knowledge toolset has of an owner; None if it is not served."""


class PageView:
    """A request of a visitor, None for one who has not signed in. `menu` are the pages
    that it names, `form` has the fields of a form."""

    def __init__(
        self,
        sources: Sources,
        menu: list[Page],
        request: Request,
        visitor: Visitor | None,
        form: dict[str, str],
    ) -> None:
        self.sources = sources
        self.menu = menu
        self.request = request
        self.visitor = visitor
        self.form = form

    @property
    def person(self) -> str:
        """The name of the visitor, who has signed in."""
        return "" if self.visitor is None else self.visitor.person

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query_params)

    @property
    def is_part(self) -> bool:
        """Whether an open page asks for a part of itself."""
        return "hx-request" in self.request.headers

    @cached_property
    def language(self) -> Language:
        """The language that the visitor has chosen, or the browser's first one that there is."""
        chosen = self.request.cookies.get(LANGUAGE_COOKIE, "")
        return LANGUAGES.get(chosen) or language_of(self.request.headers.get("accept-language", ""))

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME_COOKIE, "auto")
        return chosen if chosen in THEMES else "auto"

    @cached_property
    def keys(self) -> SignInStore:
        return SignInStore(self.sources.database())

    @cached_property
    def approvals(self) -> ApprovalStore:
        return ApprovalStore(self.sources.database())

    def needs(self, role: str) -> None:
        """Raise PageError for a visitor who has neither the role nor one above it."""
        if self.visitor is None or not self.visitor.may(role):
            raise PageError(NEEDED[role], 403)

    @contextmanager
    def audited(self, action: str, target: str, person: str = "") -> Iterator[None]:
        """Record that the visitor, or another person, does something, before it is done, and how it ended.
        Raises PageError if that cannot be recorded; nothing is done then."""
        note, person = self.sources.audit, person or self.person
        if note is None:
            yield
            return
        try:
            note(person, action, target, "begun")
        except FastrpcError as error:
            raise PageError(str(error), 503) from None
        outcome = "error"
        try:
            yield
            outcome = "ok"
        finally:
            with suppress(FastrpcError):  # that it began is recorded
                note(person, action, target, outcome)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page, or a part of one, made from a template."""
        made = (
            environment()
            .get_template(template)
            .render(
                view=self,
                visitor=self.visitor,
                menu=self.menu,
                here=self.request.url.path,
                server=self.sources.server,
                language=self.language,
                theme=self.theme,
                _=self.language.text,
                form_token=self._form_token,
                **values,
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
