"""Signing in by a link's code or at an authorization server, signing out, choosing language and theme.

The code is the fragment of the link's URL, which browsers do not send: it is in no log and no proxy. A script
puts it into the form; without scripts one pastes it. Only the form uses the code up, so what fetches the link
to preview it does not.

The form of a link has no session's token: a page that another site has led to was got without the cookie, but
the browser sends the cookie with its form. The code is what only the person knows.

An authorization server sends the browser back from another site. Such a request has no `SameSite=Strict`
cookie, so the token of a sign-in is in a cookie that is `Lax`, and the response is a page that leads on: what
a page of this site requests has the session's cookie.
"""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import RedirectResponse

from fastrpc.dashboard import openid
from fastrpc.dashboard.access import SESSION_SECONDS, VIEWER
from fastrpc.dashboard.openid import CALLBACK, LOGIN_SECONDS, SignInFailed
from fastrpc.dashboard.recording import recorded
from fastrpc.dashboard.view import COOKIE, PREFIX, Page, PageRoute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.responses import Response

    from fastrpc.dashboard.view import PageView

LOGIN_COOKIE = "fastrpc_sign_in"
"""The cookie with the token of a sign-in that has begun at an authorization server."""
WORDS = (openid.OTHER_BROWSER, openid.REFUSED, openid.NOT_THERE, openid.BUSY, openid.NO_ROLE)
"""What is looked up in the visitor's language, besides the texts of the templates."""
USED = "This link has been used, or its time is over. Make another one: fastrpc dashboard link"


def form(view: PageView) -> Response:
    """Show the form. A visitor gets it, too: a link may be for another person or role, and a redirection
    would take the code along into the address of the next page."""
    return _entrance(view, "")


def _entrance(view: PageView, error: str, status: int = 200) -> Response:
    elsewhere = view.sources.sign_in
    server = elsewhere.server if elsewhere else ""
    typed = view.form.get("code", "")
    return view.page("entrance.html", status, error=error, server_name=server, typed=typed)


def sign_in(view: PageView) -> Response:
    code = view.form.get("code", "").strip().rpartition("#")[2]
    token = view.keys.sign_in(code) if code else None
    if token is None:
        return _entrance(view, view.language.text(USED), 403)
    return _signed_in(view, view.redirect("/"), token)


def _signed_in(view: PageView, response: Response, token: str) -> Response:
    """Give a browser its new session, and end the one that it had."""
    if COOKIE in view.request.cookies:
        view.keys.sign_out(view.request.cookies[COOKIE])
    view.set_cookie(response, COOKIE, token, int(SESSION_SECONDS))
    return response


def begin_elsewhere(view: PageView) -> Response:
    """Send the browser to the authorization server."""
    elsewhere = view.sources.sign_in
    if elsewhere is None:
        return view.redirect("/enter")
    try:
        address, token = elsewhere.begin()
    except SignInFailed as error:
        return _entrance(view, view.language.text(str(error), **error.values), 503)
    response = RedirectResponse(address, 303)
    view.set_cookie(response, LOGIN_COOKIE, token, LOGIN_SECONDS, "lax")
    return response


def finish_elsewhere(view: PageView) -> Response:
    """Begin a session for the person whom the authorization server has sent back."""
    elsewhere = view.sources.sign_in
    if elsewhere is None:
        return view.redirect("/enter")
    try:
        person, role = elsewhere.finish(view.request.cookies.get(LOGIN_COOKIE, ""), view.query)
    except SignInFailed as error:
        response = _entrance(view, view.language.text(str(error), **error.values), 403)
    else:
        with recorded(view, "dashboard.sign_in", person, target=role):
            token = view.keys.begin(person, role)
        response = _signed_in(view, view.page("signed_in.html"), token)
    response.delete_cookie(LOGIN_COOKIE, path=PREFIX)
    return response


def sign_out(view: PageView) -> Response:
    view.keys.sign_out(view.request.cookies[COOKIE])
    response = view.redirect("/enter")
    response.delete_cookie(COOKIE, path=PREFIX)
    return response


def choose(view: PageView) -> Response:
    """Set language and theme, and return to the page that had the form. Of a page with a form that searches,
    the fields of that form come along: they become the query."""
    back = view.form.pop("back", "") or view.query.get("back", "")
    if not (back.startswith(f"{PREFIX}/") and "\\" not in back and back.isprintable()):
        back = f"{PREFIX}/"
    elif view.form:
        back = f"{back}?{urlencode(view.form)}"
    return view.with_choice(view.redirect(back.removeprefix(PREFIX)))


PAGES = [
    Page(
        [
            PageRoute("GET", "/enter", form, role=None),
            PageRoute("POST", "/enter", sign_in, role=None, again=form),
            PageRoute("GET", "/enter/elsewhere", begin_elsewhere, role=None),
            PageRoute("GET", CALLBACK, finish_elsewhere, role=None),
            PageRoute("POST", "/leave", sign_out, VIEWER),
            PageRoute("POST", "/choose", choose, role=None),
        ]
    )
]
