"""Attacks on every page that the dashboard has, by its list of routes: frames, roles, forms of others,
methods, paths, headers with markup, and texts that no database takes."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import httpx
import pytest
from fastrpc.tools.knowledge._store import current
from support import whole_dashboard
from support.dashboard_browser import BASE, HOSTILE, Browser
from support.guarded_folder import fastrpc, variables
from support.http_server import HttpProcess
from support.knowledge_entries import write
from support.pages_read import Elements
from support.whole_dashboard import CALL, ELSEWHERE, PARAMETER, path_of, places, routes

from fastrpc.dashboard.access import VIEWER, SignInStore
from fastrpc.dashboard.app import MOST_THREADS, Dashboard
from fastrpc.dashboard.view import COOKIE, PageRoute, Sources
from fastrpc.guard.approvals.store import Approval, ApprovalStore
from fastrpc.guard.audit.log import AuditLog
from fastrpc.storage.database import Database
from fastrpc.storage.errors import StorageError
from fastrpc.transports.http.guard import AccessRules

pytest_plugins = ["support.guard_database", "support.dashboard"]
dashboard, log = whole_dashboard.dashboard, whole_dashboard.log
Ask = Callable[..., Approval]
Visit = Callable[..., Browser]


@pytest.fixture
def pages(visit: Visit, ask: Ask, log: AuditLog, database: Database) -> dict[str, str]:
    return places(visit, ask, log, database)


def asked(
    browser: Browser, route: PageRoute, parameter: str = "ap_nothing", query: str = ""
) -> httpx.Response:
    path = f"{path_of(route, parameter)}{query}"
    return browser.get(path) if route.method == "GET" else browser.send(path)


# --- every page -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["nobody", "viewer", "administrator"])
def test_every_answer_forbids_frames_inline_scripts_and_content_from_elsewhere(
    visit: Visit, dashboard: Dashboard, role: str
) -> None:
    for route in routes(dashboard):
        browser = Browser(dashboard) if role == "nobody" else visit("ada", role)
        answer = asked(browser, route)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy, route.path
        assert "frame-ancestors 'none'" in policy, route.path
        assert "unsafe" not in policy, route.path
        assert "data:" not in policy, route.path
        assert answer.headers["x-frame-options"] == "DENY", route.path
        assert answer.headers["x-content-type-options"] == "nosniff", route.path
        assert answer.headers["cache-control"] == "no-store", route.path
        assert answer.status_code < 500, (route.path, answer.text)


def test_every_page_is_there_and_forbids_frames_inline_scripts_and_content_from_elsewhere(
    visit: Visit, dashboard: Dashboard, pages: dict[str, str]
) -> None:
    browser, seen = visit(), set()
    for route in routes(dashboard):
        if route.method == "GET" and route.path not in ELSEWHERE:
            answer = browser.get(pages.get(route.path, path_of(route)))
            assert answer.status_code == 200, (route.path, answer.text)
            assert "default-src 'none'" in answer.headers["content-security-policy"], route.path
            assert "unsafe" not in answer.headers["content-security-policy"], route.path
            assert answer.headers["x-frame-options"] == "DENY", route.path
            assert answer.headers["cache-control"] == "no-store", route.path
            seen.add(route.path)
    assert seen >= pages.keys()


def test_whoever_has_not_signed_in_gets_nothing_but_the_way_in(dashboard: Dashboard) -> None:
    for route in routes(dashboard):
        if route.role is not None:
            answer = asked(Browser(dashboard), route)
            if route.method == "POST":
                assert answer.status_code == 401, route.path
                assert "<form" not in answer.text.partition("<main")[2], route.path
                continue
            assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/enter"), route.path
            assert answer.text == "", route.path


def test_every_form_that_does_something_needs_more_than_the_default_role(dashboard: Dashboard) -> None:
    sent = [route for route in routes(dashboard) if route.method != "GET"]
    assert {route.path for route in sent if route.role is None} == {"/enter", "/choose"}
    assert {route.path for route in sent if route.role == VIEWER} == {"/leave"}


def test_a_viewer_does_nothing_that_needs_another_role(visit: Visit, dashboard: Dashboard) -> None:
    viewer, seen = visit("vera", "viewer"), 0
    for route in routes(dashboard):
        if route.role not in (None, VIEWER):
            seen += 1
            assert asked(viewer, route).status_code == 403, route.path
            viewer.get("/")
    assert seen >= 5


@pytest.mark.parametrize(
    "changed",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"origin": None}, {"token": ""}, {"token": "é"}],
)
def test_no_form_of_another_site_or_session_is_taken(
    visit: Visit, dashboard: Dashboard, changed: dict[str, Any]
) -> None:
    browser = visit()
    for route in routes(dashboard):
        if route.method == "POST" and (route.role is not None or "origin" in changed):
            answer = browser.send(path_of(route), confirmed="yes", **changed)
            assert answer.status_code == 403, route.path
            assert COOKIE in browser.cookies, route.path


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST", "GET"])
def test_a_path_answers_its_own_methods_alone(visit: Visit, dashboard: Dashboard, method: str) -> None:
    browser, known = visit(), {}
    for route in routes(dashboard):
        known.setdefault(route.path, set()).add(route.method)
    for path, methods in known.items():
        if method not in methods:
            answer = browser._send(method, PARAMETER.sub("x", path), headers={"origin": BASE})
            assert answer.status_code == 405, path
            assert answer.headers["x-frame-options"] == "DENY", path


def test_the_answer_to_a_form_leads_back_to_a_page_that_is_got(
    visit: Visit, dashboard: Dashboard, ask: Ask
) -> None:
    browser, waiting, seen = visit(), ask(), 0
    for route in routes(dashboard):
        page = asked(browser, route, waiting.id).text if route.method == "POST" else ""
        for path in re.findall(r'(?:name="back" value|hx-get)="/dashboard([^"]+)"', page):
            seen += 1
            assert browser.get(path).status_code != 405, (route.path, path)
        if COOKIE not in browser.cookies:
            browser = visit()
        browser.get("/")
    assert seen >= 10
    browser.get("/")
    for form in ({"arg:place": '"y"'}, {"arg:place": "no JSON"}):
        page = browser.send(f"/approvals/{waiting.id}/edit", **form).text
        assert f'name="back" value="/dashboard/approvals/{waiting.id}"' in page
        assert f'hx-get="/dashboard/approvals/{waiting.id}"' in page


TEXTS = [
    "%00",
    "a%00b",
    "%ED%A0%80",
    "%FF%FE",
    "%0d%0aset-cookie:x=1",
    "%E2%80%AE",
    "9" * 400,
    "-1",
    "%5c..%5c",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_no_database_takes_is_no_internal_error(
    visit: Visit, dashboard: Dashboard, ask: Ask, text: str
) -> None:
    browser = visit()
    ask()
    for route in routes(dashboard):
        for query in ("", f"?after={text}&q={text}&since={text}&until={text}&page={text}&tool={text}"):
            answer = asked(browser, route, text, query)
            assert answer.status_code < 500 or "not serve" in answer.text, (route.path, query)
            assert "set-cookie" not in answer.headers or "x=1" not in answer.headers["set-cookie"]
            if COOKIE not in browser.cookies:  # it was the form that signs out
                browser = visit()
            browser.get("/")


@pytest.mark.parametrize("text", ["a\0b", "\0"])
def test_a_form_with_a_nul_is_refused_and_decides_nothing(
    visit: Visit, ask: Ask, store: ApprovalStore, text: str
) -> None:
    browser, waiting = visit(), ask()
    answer = browser.send(f"/approvals/{waiting.id}/reject", comment=text)
    assert (answer.status_code, "not a form" in answer.text) == (400, True)
    assert store.get(waiting.id).state == "waiting"


def test_a_form_with_half_of_a_surrogate_pair_is_refused(
    visit: Visit, ask: Ask, store: ApprovalStore
) -> None:
    browser, waiting = visit(), ask()
    body = (
        b"form_token=%s&comment=%%ED%%A0%%80"
        % re.findall(r'"form_token" value="(\w+)"', browser.last)[0].encode()
    )
    answer = browser._send("POST", f"/approvals/{waiting.id}/reject", content=body, headers={"origin": BASE})
    assert answer.status_code == 400
    assert store.get(waiting.id).state == "waiting"


def test_no_address_that_a_caller_has_chosen_can_be_clicked(
    visit: Visit, dashboard: Dashboard, ask: Ask, log: AuditLog, pages: dict[str, str]
) -> None:
    address = "https://evil.example/"
    waiting = ask(f"{address}a", {address: address}, reason=address, server=address, owner=address)
    log.append({**CALL, "tool": address, "actor": address, "reason": address})
    assert log.flush()
    entry = write(current(), f"See {address} or javascript:alert(1)", source=address, tags=("a",))
    shown = {"/approvals/{id}": f"/approvals/{waiting.id}"}
    shown["/knowledge/entries/{id}"] = f"/knowledge/entries/{entry.id}"
    browser, seen = visit(), 0
    for route in routes(dashboard):
        if route.method != "GET" or route.path in ELSEWHERE:
            continue
        answer = browser.get({**pages, **shown}.get(route.path, path_of(route)))
        seen += address in answer.text
        for tag, attributes in Elements(answer.text).found:
            for name in ("href", "action", "formaction", "src", "srcset", "hx-get", "hx-post", "sse-connect"):
                leads = attributes.get(name)
                assert leads is None or leads.startswith(("/dashboard", "?", "#")), (route.path, tag, leads)
    assert seen >= 5


# --- headers ----------------------------------------------------------------------------------------------


def test_no_header_of_a_browser_becomes_markup(visit: Visit, dashboard: Dashboard, ask: Ask) -> None:
    waiting = ask()
    browser = visit()
    headers = dict.fromkeys(
        ("user-agent", "referer", "accept-language", "x-forwarded-for", "x-forwarded-host", "hx-target"),
        HOSTILE,
    )
    for path in ("/", "/decided", f"/approvals/{waiting.id}", "/enter", "/nowhere"):
        answer = browser.get(path, **headers)
        assert "alert(1)" not in answer.text, path
    for cookie in ("fastrpc_language", "fastrpc_theme", COOKIE):
        stranger = Browser(dashboard)
        stranger.cookies.set(cookie, "<script>alert(1)</script>", path="/dashboard")
        assert "alert(1)" not in stranger.get("/enter").text


def test_a_path_is_shown_as_text(visit: Visit) -> None:
    answer = visit().get("/approvals/%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%20onload=x")
    assert answer.status_code == 404
    scripts = [attributes for tag, attributes in Elements(answer.text).found if tag == "script"]
    assert all((each.get("src") or "").startswith("/dashboard/static/") for each in scripts)
    assert not [
        name for _, attributes in Elements(answer.text).found for name in attributes if name == "onload"
    ]


@pytest.mark.parametrize("cookie", ["", "x" * 5000, "\x80\xff", "../../x", "' OR 1=1 --", "%00"])
def test_a_cookie_that_is_none_is_nobodys(dashboard: Dashboard, cookie: str) -> None:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/dashboard/",
        "raw_path": b"/dashboard/",
        "query_string": b"",
        "scheme": "http",
        "server": ("127.0.0.1", 8700),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8700"), (b"cookie", f"{COOKIE}={cookie}".encode("latin-1"))],
    }
    asyncio.run(dashboard(scope, receive, send))
    assert sent[0]["status"] == 303


def test_a_chosen_session_is_worth_nothing_before_and_after(dashboard: Dashboard, database: Database) -> None:
    fixed = "chosen-by-an-attacker-" + "x" * 21
    victim, attacker = Browser(dashboard), Browser(dashboard)
    for browser in (victim, attacker):
        browser.cookies.set(COOKIE, fixed, path="/dashboard", domain="127.0.0.1")
    assert attacker.get("/").status_code == 303
    victim.sign_in(SignInStore(database).make_link("ada", "administrator"))
    assert victim.cookies[COOKIE] != fixed
    assert attacker.get("/").status_code == 303
    assert victim.get("/").status_code == 200


def test_signing_in_again_ends_the_session_before(dashboard: Dashboard, database: Database) -> None:
    browser, thief = Browser(dashboard), Browser(dashboard)
    browser.sign_in(SignInStore(database).make_link("ada", "administrator"))
    thief.cookies.update(browser.cookies)
    assert thief.get("/").status_code == 200
    browser.get("/")
    browser.sign_in(SignInStore(database).make_link("ada", "viewer"))
    assert thief.get("/").status_code == 303
    assert browser.get("/").status_code == 200


def test_a_browser_with_a_session_uses_a_new_link(dashboard: Dashboard, database: Database) -> None:
    browser, keys = Browser(dashboard), SignInStore(database)
    browser.sign_in(keys.make_link("vera", "viewer"))
    form = browser.get("/enter")  # no redirection, which would keep the code in the address bar
    assert (form.status_code, 'name="code"' in form.text) == (200, True)
    former, stranger = browser.cookies[COOKIE], Browser(dashboard)
    browser.last = stranger.get("/enter").text  # as by a link in a mail: without the cookie
    assert browser.send("/enter", origin="https://evil.example", code="x").status_code == 403
    browser.last = stranger.last
    assert browser.sign_in(keys.make_link("ada", "administrator")).status_code == 303
    assert "ada" in browser.get("/").text
    assert keys.visitor(former) is None


# --- threads ----------------------------------------------------------------------------------------------


def test_pages_and_tools_take_no_threads_of_each_other() -> None:
    """Pages that wait for their database hold a bounded number of threads, none of which are those that
    tools use; and pages answer while tools hold all of theirs."""
    entered, ends = Semaphore(0), Event()

    def database() -> Database:
        entered.release()
        assert ends.wait(60)
        raise StorageError("it does not serve")

    async def flood() -> list[int]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(of_tools)
        application = Dashboard(Sources(database), AccessRules(None))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url=BASE) as client:
            held = loop.run_in_executor(None, ends.wait, 60)  # a tool holds the only thread
            assert (await asyncio.wait_for(client.get("/dashboard/enter"), 60)).status_code == 200
            ends.set()
            await held
            ends.clear()
            cookie = {"cookie": f"{COOKIE}=x"}
            sent = [
                asyncio.create_task(client.get("/dashboard/", headers=cookie))
                for _ in range(MOST_THREADS + 4)
            ]
            try:
                for _ in range(MOST_THREADS):
                    assert await asyncio.wait_for(loop.run_in_executor(None, entered.acquire, True, 60), 60)
                assert not await loop.run_in_executor(None, entered.acquire, True, 0.2)
            finally:
                ends.set()
            return [answer.status_code for answer in await asyncio.gather(*sent)]

    with ThreadPoolExecutor(1) as of_tools:
        assert asyncio.run(flood()) == [503] * (MOST_THREADS + 4)


# --- paths, at a real server --------------------------------------------------------------------------------

TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def look() -> str:
    "Look."
    return "seen"
"""
INSIDE = ["import", "root:", "fastrpc.dashboard", "def "]
"""What files of the server have, and its pages do not."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpProcess, Path]]:
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "shop.py").write_text(TOOLS)
    (folder / "guard.toml").write_text("[expose]\ntools = ['*']\n")
    fastrpc(folder, "token", "create", "--owner", "agent")
    command = ("serve", "shop.py", "--http", "127.0.0.1:0", "--guard", "guard.toml", "--dashboard")
    with HttpProcess(*command, folder=folder, environment=variables(folder)) as process:
        yield process, folder


def raw(port: int, head: str, body: str = "") -> tuple[int, str]:
    """Send a request as it is written, without a client that tidies its path; return status and answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        length = f"content-length: {len(body)}\r\n" if body else ""
        connection.sendall(
            f"{head} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{length}\r\n{body}".encode(
                "latin-1"
            )
        )
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return int(answer.split(b" ", 2)[1]), answer.decode("utf-8", "replace")


PATHS = [
    "/dashboard/../mcp",
    "/dashboard/..%2fmcp",
    "/dashboard/%2e%2e/mcp",
    "/dashboard/%2e%2e%2fmcp",
    "/dashboard%2f..%2fmcp",
    "/dashboard/./",
    "/dashboard//",
    "//dashboard/",
    "/DASHBOARD/",
    "/dashboard;/mcp",
    "/dashboard%00/",
    "/dashboardx/static/style.css",
    "/mcp/../dashboard/",
    "/mcp/dashboard/",
    "/dashboard/static/../app.py",
    "/dashboard/static/..%2fapp.py",
    "/dashboard/static/%2e%2e/app.py",
    "/dashboard/static/..%5capp.py",
    "/dashboard/static/%252e%252e/app.py",
    "/dashboard/static/....//app.py",
    "/dashboard/static//etc/passwd",
    "/dashboard/static/%2fetc%2fpasswd",
    "/dashboard/static/../../../../../../etc/passwd",
    "/dashboard/static/../templates/base.html",
    "/dashboard/static/style.css%00.js",
    "/dashboard/static/",
    "/dashboard/events/../",
    "/dashboard/enter/../",
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_past_the_way_in_nor_out_of_the_folder_of_static_files(
    server: tuple[HttpProcess, Path], method: str, path: str
) -> None:
    call = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}' if method == "POST" else ""
    status, answer = raw(server[0].port, f"{method} {path}", call)
    assert status in (303, 307, 400, 401, 403, 404, 405, 421), answer
    body = answer.partition("\r\n\r\n")[2]
    assert not [text for text in INSIDE if text in body], body
    assert "tools" not in body
    location = re.search(r"\r\nlocation: (\S+)", answer)
    assert location is None or re.match(
        rf"(http://127.0.0.1:{server[0].port})?/dashboard/(enter)?$", location[1]
    )


def test_the_pages_token_opens_no_mcp_and_the_mcp_token_no_page(server: tuple[HttpProcess, Path]) -> None:
    process, folder = server
    origin = f"http://127.0.0.1:{process.port}"
    token = fastrpc(folder, "token", "create", "--owner", "agent").splitlines()[0]
    link = fastrpc(folder, "dashboard", "link", "--as", "ada", "--url", origin).strip()
    with httpx.Client(base_url=origin, headers={"origin": origin}, trust_env=False) as client:
        assert client.post("/dashboard/enter", data={"code": link}).status_code == 303
        session = client.cookies[COOKIE]
        assert client.get("/dashboard/").status_code == 200
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for headers in ({}, {"authorization": f"Bearer {session}"}):
            assert client.post("/mcp", json=call, headers=headers).status_code == 401
    with httpx.Client(base_url=origin, trust_env=False) as client:
        for headers in ({"authorization": f"Bearer {token}"}, {"cookie": f"{COOKIE}={token}"}):
            assert client.get("/dashboard/", headers=headers).status_code == 303
