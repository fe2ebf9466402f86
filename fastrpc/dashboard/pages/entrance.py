"""Signing in by a link's code, signing out, and the choice of language and theme.

The code is the fragment of the link's URL, which browsers do not send: it is in no log and no proxy. A script
puts it into the form; without scripts one pastes it. Only the form uses the code up, so what fetches the link
to preview it does not.
"""

from __future__ import annotations

from fastrpc.dashboard.access import SESSION_SECONDS
from fastrpc.dashboard.language import LANGUAGES
from fastrpc.dashboard.view import COOKIE, LANGUAGE_COOKIE, PREFIX, THEME_COOKIE, THEMES, Page, PageRoute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView

YEAR_SECONDS = 365 * 24 * 3600
USED = "This link has been used, or its time is over. Make another one: fastrpc dashboard link"


def form(view: PageView) -> Response:
    if view.visitor is not None:
        return view.redirect("/")
    return view.page("entrance.html", error="")


def sign_in(view: PageView) -> Response:
    code = view.form.get("code", "").strip().rpartition("#")[2]
    token = view.keys.sign_in(code) if code else None
    if token is None:
        return view.page("entrance.html", 403, error=USED)
    response = view.redirect("/")
    view.set_cookie(response, COOKIE, token, int(SESSION_SECONDS))
    return response


def sign_out(view: PageView) -> Response:
    view.keys.sign_out(view.request.cookies[COOKIE])
    response = view.redirect("/enter")
    response.delete_cookie(COOKIE, path=PREFIX)
    return response


def choose(view: PageView) -> Response:
    """Set language and theme, and return to the page that had the form."""
    back = view.form.get("back", "")
    is_here = back.startswith(f"{PREFIX}/") and "\\" not in back and back.isprintable()
    response = view.redirect(back.removeprefix(PREFIX) if is_here else "/")
    for cookie, name, known in ((LANGUAGE_COOKIE, "language", LANGUAGES), (THEME_COOKIE, "theme", THEMES)):
        if view.form.get(name) in known:
            view.set_cookie(response, cookie, view.form[name], YEAR_SECONDS)
    return response


PAGES = [
    Page(
        [
            PageRoute("GET", "/enter", form, role=None),
            PageRoute("POST", "/enter", sign_in, role=None),
            PageRoute("POST", "/leave", sign_out),
            PageRoute("POST", "/choose", choose, role=None),
        ]
    )
]
