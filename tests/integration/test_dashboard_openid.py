"""Signing in to the dashboard at a real authorization server: who gets in, with which role; what of a sign-in
that another browser has begun, of a forged or foreign ID token, of a session that an attacker has chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from support.dashboard import RecordedActions
from support.dashboard_browser import BASE, Browser
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.openid_server import CLIENT, SECRET, OpenIdServer
from support.ports import free_port
from support.token_issuer import RSA, STRANGER, send

from fastrpc.dashboard.access import SignInStore
from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.openid import OpenIdSignIn
from fastrpc.dashboard.view import COOKIE, PREFIX, Sources
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.storage.database import Database
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.dashboard"]
NOTED: Any = RecordedActions()
GUARD = """
[dashboard]
issuer = "ISSUER"
client_id = "CLIENT"
client_secret = "file:secret"
url = "BASE"
scopes = ["profile"]

[[dashboard.roles]]
claim = "groups"
contains = "ops"
role = "approver"

[[dashboard.roles]]
claim = ["realm", "roles"]
matches = "view*"
role = "viewer"
"""
OPS = {"sub": "ada", "groups": ["ops"]}


@pytest.fixture
def login() -> Iterator[OpenIdServer]:
    with OpenIdServer() as server:
        server.person = OPS
        yield server


def configured(folder: Path, issuer: str, base: str = BASE) -> str:
    """Write the file of the guard, with the secret beside it; return its path."""
    (folder / "secret").write_text(SECRET)
    os.chmod(folder / "secret", 0o600)
    text = GUARD.replace("ISSUER", issuer).replace("CLIENT", CLIENT).replace("BASE", base)
    (folder / "guard.toml").write_text(text)
    return str(folder / "guard.toml")


@pytest.fixture
def new_browser(login: OpenIdServer, database: Database, tmp_path: Path) -> Callable[[], Browser]:
    """Returns a browser of a dashboard that offers the authorization server."""
    config = policy_file.read(configured(tmp_path, login.issuer))
    NOTED.said.clear()
    sources = Sources(
        lambda: database,
        "shop",
        audit=NOTED,
        sign_in=OpenIdSignIn(lambda: config.dashboard, PREFIX),
    )
    dashboard = Dashboard(sources, AccessRules(None))
    return lambda: Browser(dashboard)


def sent_back(browser: Browser, base: str = BASE) -> str:
    """Begin a sign-in, and return the path to which the authorization server sends the browser back."""
    begun = browser.get("/enter/elsewhere")
    assert begun.status_code == 303
    back = httpx.get(begun.headers["location"], trust_env=False).headers["location"]
    assert back.startswith(f"{base}/dashboard/enter/callback?")
    return back.removeprefix(f"{base}/dashboard")


# --- who gets in ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("person", "role"),
    [
        (OPS, "approver"),
        ({"sub": "eve", "realm": {"roles": ["viewer"]}}, "viewer"),
        ({**OPS, "realm": {"roles": ["viewer"]}}, "approver"),
    ],
)
def test_a_person_gets_the_role_of_the_first_rule_that_fits(
    new_browser: Callable[[], Browser], login: OpenIdServer, person: dict[str, Any], role: str
) -> None:
    login.person = person
    browser = new_browser()
    assert f"Sign in at {login.issuer.partition('://')[2]}" in browser.get("/enter").text
    answer = browser.get(sent_back(browser))
    assert answer.status_code == 200
    assert 'content="0; url=/dashboard/"' in answer.text
    page = browser.get("/").text
    assert f"{login.issuer}#{person['sub']}</bdi>, {role}" in page
    name = f"{login.issuer}#{person['sub']}"
    assert [(name, "dashboard.sign_in", role, "begun"), (name, "dashboard.sign_in", role, "ok")] == NOTED.said


@pytest.mark.parametrize(
    "person", [{"sub": "eve"}, {"sub": "eve", "groups": "devops"}, {"sub": "eve", "groups": 1}]
)
def test_whom_no_rule_fits_does_not_get_in(
    new_browser: Callable[[], Browser], login: OpenIdServer, person: dict[str, Any]
) -> None:
    login.person = {"sub": "eve", **person}
    browser = new_browser()
    answer = browser.get(sent_back(browser))
    assert (answer.status_code, "no rule" in answer.text) == (403, True)
    assert COOKIE not in browser.cookies
    assert browser.get("/").status_code == 303


def test_the_request_has_pkce_state_and_nonce_and_the_secret_stays_on_the_server(
    new_browser: Callable[[], Browser], login: OpenIdServer
) -> None:
    browser = new_browser()
    begun = browser.get("/enter/elsewhere")
    query = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["location"]).query).items()}
    assert query["response_type"] == "code"
    assert query["code_challenge_method"] == "S256"
    assert query["scope"] == "openid profile"
    token = browser.cookies["fastrpc_sign_in"]
    assert len({query["state"], query["nonce"], query["code_challenge"], token}) == 4
    assert token not in begun.headers["location"]
    assert SECRET not in begun.headers["location"]
    attributes = begun.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=lax" in attributes
    browser.get(sent_back(browser))
    assert "fastrpc_sign_in" not in browser.cookies
    assert login.forms[-1]["client_secret"] == SECRET


def test_a_server_that_wants_the_secret_in_the_form_gets_it_there(
    new_browser: Callable[[], Browser], login: OpenIdServer
) -> None:
    login.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    browser = new_browser()
    assert browser.get(sent_back(browser)).status_code == 200


def test_a_server_without_an_authorization_server_offers_none(
    database: Database,
) -> None:
    browser = Browser(Dashboard(Sources(lambda: database, "shop"), AccessRules(None)))
    assert "elsewhere" not in browser.get("/enter").text
    assert browser.get("/enter/elsewhere").headers["location"] == "/dashboard/enter"
    assert browser.get("/enter/callback?code=x&state=y").headers["location"] == "/dashboard/enter"


# --- attacks ----------------------------------------------------------------------------------------------


def refused(browser: Browser, path: str) -> str:
    """Return the page of a refused sign-in."""
    answer = browser.get(path)
    assert answer.status_code == 403
    assert COOKIE not in browser.cookies
    assert browser.get("/").status_code == 303
    return answer.text


def test_only_the_browser_that_began_finishes(new_browser: Callable[[], Browser]) -> None:
    victim, attacker = new_browser(), new_browser()
    path = sent_back(attacker)
    assert "another browser" in refused(victim, path)  # who has begun nothing
    sent_back(victim)
    assert "another browser" in refused(victim, path)  # who has begun another one
    assert "another browser" in refused(new_browser(), "/enter/callback?code=x")
    assert "another browser" in refused(new_browser(), "/enter/callback?code=x&state=%07%ff")


def test_a_code_is_good_once_and_a_sign_in_too(
    new_browser: Callable[[], Browser], login: OpenIdServer
) -> None:
    browser = new_browser()
    path = sent_back(browser)
    thief = new_browser()
    thief.cookies.update(browser.cookies)
    assert browser.get(path).status_code == 200
    refused(thief, path)
    assert len(login.forms) == 2  # the authorization server refuses the second one


def test_a_session_that_was_there_before_is_ended_and_not_taken_over(
    new_browser: Callable[[], Browser], database: Database
) -> None:
    attacker, victim = new_browser(), new_browser()
    attacker.sign_in(SignInStore(database).make_link("mallory", "viewer"))
    fixed = attacker.cookies[COOKIE]
    victim.cookies.set(COOKIE, fixed, path="/dashboard", domain="127.0.0.1")
    victim.get(sent_back(victim))
    assert victim.cookies[COOKIE] != fixed
    assert attacker.get("/").status_code == 303
    assert "#ada" in victim.get("/").text


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"iss": "https://evil.example"}, "InvalidIssuerError"),
    ({"aud": "another-client"}, "InvalidAudienceError"),
    ({"aud": [CLIENT, "another-client"]}, "for another client"),
    ({"azp": "another-client"}, "for another client"),
    ({"exp": 1_000_000}, "ExpiredSignatureError"),
    ({"exp": None}, "MissingRequiredClaimError"),
    ({"iat": None}, "MissingRequiredClaimError"),
    ({"nonce": None}, "MissingRequiredClaimError"),
    ({"nonce": "0" * 64}, "another sign-in"),
    ({"nonce": "\ud800"}, "another sign-in"),
    ({"nonce": ["x"]}, "another sign-in"),
    ({"sub": None}, "MissingRequiredClaimError"),
    ({"sub": ""}, "names no person"),
    ({"sub": 7}, "InvalidSubjectError"),
    ({"sub": "a\nb"}, "names no person"),
    ({"sub": "\u202eada"}, "names no person"),
    ({"sub": "x" * 300}, "names no person"),
]


@pytest.mark.parametrize(("changes", "why"), CHANGES, ids=str)
def test_an_id_token_with_wrong_claims_is_refused(
    new_browser: Callable[[], Browser],
    login: OpenIdServer,
    caplog: pytest.LogCaptureFixture,
    changes: dict[str, Any],
    why: str,
) -> None:
    login.changes = changes
    browser = new_browser()
    assert "does not answer as it should" in refused(browser, sent_back(browser))
    assert why in caplog.text


def test_an_id_token_of_several_audiences_is_for_its_authorized_party(
    new_browser: Callable[[], Browser], login: OpenIdServer
) -> None:
    login.changes = {"aud": [CLIENT, "another-client"], "azp": CLIENT}
    browser = new_browser()
    assert browser.get(sent_back(browser)).status_code == 200


def cut(token: str) -> str:
    """Return a token with another signature."""
    return token[:-9] + "AAAAAAAAA"


FORGED: list[tuple[Any, str]] = [
    (lambda claims: {"id_token": STRANGER.sign(claims)}, "InvalidSignatureError"),
    (lambda claims: {"id_token": jwt.encode(claims, None, algorithm="none")}, "not accepted"),
    (lambda claims: {"id_token": jwt.encode(claims, SECRET * 3, algorithm="HS256")}, "not accepted"),
    (lambda claims: {"id_token": RSA.sign(claims, kid="unknown")}, "does not publish"),
    (lambda claims: {"id_token": RSA.sign(claims, crit=["x"], x=1)}, "not"),
    (lambda claims: {"id_token": cut(RSA.sign(claims))}, "InvalidSignatureError"),
    (lambda claims: {"id_token": "a.b.c"}, "DecodeError"),
    (lambda claims: {"id_token": None}, "no ID token"),
    (lambda claims: ["id_token"], "no ID token"),
    (lambda claims: {"id_token": "x" * 300_000}, "too long"),
]


@pytest.mark.parametrize(("make", "why"), FORGED)
def test_an_id_token_that_the_issuer_has_not_signed_is_refused(
    new_browser: Callable[[], Browser],
    login: OpenIdServer,
    caplog: pytest.LogCaptureFixture,
    make: Any,
    why: str,
) -> None:
    login.makes = make
    browser = new_browser()
    assert "does not answer as it should" in refused(browser, sent_back(browser))
    assert why in caplog.text


def test_a_refusal_of_the_authorization_server_is_said_and_its_words_are_text(
    new_browser: Callable[[], Browser], login: OpenIdServer
) -> None:
    login.denies = "<script>alert(1)</script>\u202e"
    browser = new_browser()
    page = refused(browser, sent_back(browser))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page


def test_an_answer_of_another_issuer_is_refused(new_browser: Callable[[], Browser]) -> None:
    browser = new_browser()
    path = re.sub(r"iss=[^&]+", "iss=https%3A%2F%2Fevil.example", sent_back(browser))
    assert "another issuer" in refused(browser, path)


@pytest.mark.parametrize("name", ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize("value", ["http://evil.example/x", "javascript:alert(1)", "", 7])
def test_metadata_that_leads_elsewhere_in_clear_is_refused(
    new_browser: Callable[[], Browser], login: OpenIdServer, name: str, value: object
) -> None:
    login.metadata[name] = value
    answer = new_browser().get("/enter/elsewhere")
    assert (answer.status_code, "location" in answer.headers) == (503, False)


def test_an_authorization_server_that_is_down_is_said_to_be_and_links_go_on(
    new_browser: Callable[[], Browser], login: OpenIdServer, database: Database
) -> None:
    login.answers[login.place] = lambda handler: send(handler, b"broken", 500)
    browser = new_browser()
    answer = browser.get("/enter/elsewhere")
    assert (answer.status_code, "does not answer" in answer.text) == (503, True)
    assert browser.sign_in(SignInStore(database).make_link("ada", "viewer")).status_code == 303


# --- the guard's file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('client_id = "CLIENT"', "", "expected issuer, client_id, url and roles, or none of them"),
        ('role = "viewer"', 'role = "king"', "expected viewer, approver"),
        ('url = "BASE"', 'url = "https://a/b"', "without a path"),
        ('issuer = "ISSUER"', 'issuer = "login.example.com"', "expected an https address"),
        ("file:secret", "s3cret", "not the secret itself"),
        ('contains = "ops"', "", "expected one of equals, contains, matches, present"),
        ("scopes =", "scope =", "no such key"),
    ],
)
def test_a_mistake_in_the_guards_file_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    assert old in GUARD
    monkeypatch.setitem(globals(), "GUARD", GUARD.replace(old, new))
    with pytest.raises(GuardConfigError, match=re.escape(said)) as caught:
        policy_file.read(configured(tmp_path, "https://login.example.com"))
    assert re.search(r"guard.toml, line \d+: dashboard", str(caught.value))


def test_the_pages_by_themselves_offer_the_authorization_server_and_follow_the_file(
    login: OpenIdServer, tmp_path: Path
) -> None:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    file = Path(configured(tmp_path, login.issuer, base))
    command = ("dashboard", "serve", "--http", f"127.0.0.1:{port}", "--guard", "guard.toml")
    ready = r"the dashboard is at (\S+?)/dashboard"
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path), ready=ready) as server:

        def sign_in() -> httpx.Response:
            browser = Browser(base)
            assert f"Sign in at {login.issuer.partition('://')[2]}" in browser.get("/enter").text
            return browser.get(sent_back(browser, base))

        assert sign_in().status_code == 200
        file.write_text(file.read_text() + "[[rules]]\n")
        assert sign_in().status_code == 200
        assert "the former sign-in stays in use" in server.stderr
        configured(tmp_path, login.issuer, base)
        file.write_text(file.read_text().replace('contains = "ops"', 'contains = "chiefs"'))
        answer = sign_in()
        assert (answer.status_code, "no rule" in answer.text) == (403, True)


# --- a browser and a server -------------------------------------------------------------------------------

TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def look() -> str:
    "Look."
    return "seen"
"""


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_browser_signs_in_at_another_site_and_is_in(
    tmp_path: Path, browser: Any, login: OpenIdServer, scripts: bool
) -> None:
    port = free_port()
    base = f"http://localhost:{port}"  # the authorization server is at 127.0.0.1: another site
    configured(tmp_path, login.issuer, base)
    (tmp_path / "shop.py").write_text(TOOLS)
    fastrpc(tmp_path, "token", "create", "--owner", "agent")
    command = ("serve", "shop.py", "--http", f"127.0.0.1:{port}", "--guard", "guard.toml", "--dashboard")
    with HttpProcess(*command, folder=tmp_path, environment=variables(tmp_path)):
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.goto(f"{base}/dashboard/")
        page.click("text=Sign in at")
        page.wait_for_selector("text=No call is here")
        assert page.url == f"{base}/dashboard/"
        assert f"{login.issuer}#ada" in page.inner_text("header")
        assert "approver" in page.inner_text("header")
