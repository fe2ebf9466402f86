"""A client that logs in by OAuth: the first login, refreshes, step-ups, and everything that goes wrong.

The servers are real, over HTTP on the loopback interface (`support.authorization`); the person's browser is a
function that follows redirects.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import urllib.error
from collections.abc import Awaitable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("httpx2", reason="the official SDK brings it: pip install 'mcp>=2.3'")
pytest.importorskip("uvicorn", reason="the protected server runs on it: pip install uvicorn")

from support.authorization import Protected, visit
from support.dripping import Dripping

from fastrpc import Client, Server
from fastrpc.client import ClientCredentials, FileStore, OAuth
from fastrpc.client.oauth.token_store import MemoryStore
from fastrpc.errors import AuthorizationFailed, HttpStatusError, RemoteError

SECONDS = 60.0
SPOKEN = pytest.mark.parametrize("version", [None, "2025-11-25"])


@pytest.fixture
def protected() -> Iterator[Protected]:
    with Protected() as servers:
        yield servers


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, SECONDS))


def oauth(**options: Any) -> OAuth:
    return OAuth(**{"open_browser": visit, "store": MemoryStore(), **options})


async def added(protected: Protected, auth: OAuth, **options: Any) -> str:
    """Connect anew, and make a call."""
    async with Client(protected.url, auth=auth, **options) as client:
        return str((await client.call_tool("add", {"a": 1})).text)


def add(protected: Protected, auth: OAuth, **options: Any) -> str:
    """Do so in a separate loop."""
    return str(run(added(protected, auth, **options)))


def edit(folder: Path, **members: Any) -> dict[str, Any]:
    """Change the one record in a folder; return it."""
    (path,) = folder.glob("*.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, **members}))
    return dict(record)


# --- what goes well -------------------------------------------------------------------------------------


@SPOKEN
def test_the_first_request_leads_to_a_login_and_all_others_have_its_token(
    protected: Protected, version: str | None
) -> None:
    assert add(protected, oauth(), version=version) == "3"
    assert protected.count("/authorize", response_type="code", code_challenge_method="S256") == 1
    assert protected.count("/token", grant_type="authorization_code", resource=protected.url) == 1
    (login,) = (form for path, form in protected.requests if path == "/authorize")
    assert login["redirect_uri"].startswith("http://127.0.0.1:")
    assert login["scope"] == "basic"  # as the challenge has it


def test_a_client_without_an_event_loop_logs_in_too(protected: Protected) -> None:
    with Client.sync(protected.url, auth=oauth()) as client:
        assert client.call_tool("add", {"a": 1}).text == "3"
    assert protected.count("/authorize") == 1


def test_a_proxy_logs_in_at_its_upstream_server(protected: Protected) -> None:
    async def conversation() -> None:
        async with Client(Server.proxy(protected.url, auth=oauth())) as client:
            assert (await client.call_tool("add", {"a": 1})).text == "3"

    run(conversation())
    assert protected.count("/authorize") == 1


def test_a_login_is_kept_for_the_next_client(protected: Protected, tmp_path: Path) -> None:
    for _ in range(2):
        assert add(protected, oauth(store=FileStore(str(tmp_path)))) == "3"
    assert protected.count("/authorize") == 1


def test_a_login_that_is_forgotten_is_made_again(protected: Protected) -> None:
    auth = oauth()
    add(protected, auth)
    auth.forget(protected.url)
    add(protected, auth)
    assert protected.count("/authorize") == 2


def test_a_token_that_has_expired_is_refreshed_after_a_restart(protected: Protected, tmp_path: Path) -> None:
    add(protected, oauth(store=FileStore(str(tmp_path))))
    protected.revoke()
    edit(tmp_path, expires_at=1.0)
    assert add(protected, oauth(store=FileStore(str(tmp_path)))) == "3"
    assert protected.count("/token", grant_type="refresh_token", resource=protected.url) == 1
    assert protected.count("/authorize") == 1


def test_a_token_that_is_refused_before_its_time_is_refreshed_without_a_person(protected: Protected) -> None:
    auth = oauth()
    add(protected, auth)
    protected.revoke()
    assert add(protected, auth) == "3"
    assert protected.count("/token", grant_type="refresh_token") == 1
    assert protected.count("/authorize") == 1


def test_a_refresh_that_is_refused_leads_to_a_login_of_the_same_client(protected: Protected) -> None:
    auth = oauth()
    add(protected, auth)
    protected.revoke()
    protected.refresh_tokens.clear()
    assert add(protected, auth) == "3"
    assert protected.count("/authorize", client_id="client-1") == 2
    assert protected.count("/register") == 1


def test_a_registration_that_the_server_has_forgotten_is_made_again(protected: Protected) -> None:
    auth = oauth()
    add(protected, auth)
    protected.revoke()
    protected.unwell["refresh_token"] = 401, {"error": "invalid_client"}
    assert add(protected, auth) == "3"
    assert protected.count("/register") == 2


def test_requests_that_are_refused_together_wait_for_one_login(protected: Protected) -> None:
    async def conversation() -> None:
        async with Client(protected.url, auth=oauth()) as client:
            protected.revoke()
            protected.refresh_tokens.clear()
            before = protected.count("/authorize")
            results = await asyncio.gather(*(client.call_tool("add", {"a": a}) for a in range(8)))
            assert [int(result.text) for result in results] == list(range(2, 10))
            assert protected.count("/authorize") == before + 1

    run(conversation())


def test_who_waits_for_a_login_may_be_cancelled_and_the_login_goes_on(protected: Protected) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def browser(url: str) -> None:
        begun.set()
        may_go_on.wait(SECONDS)
        visit(url)

    async def conversation() -> None:
        auth = oauth()
        async with Client(protected.url, auth=auth) as client:
            protected.revoke()
            protected.refresh_tokens.clear()
            auth.open_browser = browser
            first = asyncio.ensure_future(client.call_tool("add", {"a": 1}))
            await asyncio.to_thread(begun.wait, SECONDS)
            second = asyncio.ensure_future(client.call_tool("add", {"a": 2}))
            await asyncio.sleep(0)
            first.cancel()
            may_go_on.set()
            assert (await second).text == "4"
            assert protected.count("/authorize") == 2

    run(conversation())


def test_a_tool_that_wants_more_scopes_leads_to_one_login_for_these_too(protected: Protected) -> None:
    protected.scopes_of["write"] = "write"

    async def conversation() -> None:
        async with Client(protected.url, auth=oauth()) as client:
            assert (await client.call_tool("add", {"a": 1})).text == "3"
            assert (await client.call_tool("write")).text == "written"
            assert (await client.call_tool("write")).text == "written"

    run(conversation())
    scopes = [form["scope"] for path, form in protected.requests if path == "/authorize"]
    assert scopes == ["basic", "basic write"]


def test_the_users_scopes_are_asked_for_besides_the_servers(protected: Protected) -> None:
    protected.scopes_of["write"] = "write"
    add(protected, oauth(scopes=["write"]))
    scopes = [form["scope"] for path, form in protected.requests if path == "/authorize"]
    assert scopes == ["write basic"]


REQUEST_SECONDS = 1000.0


class Clock(asyncio.SelectorEventLoop):
    """A loop whose clock is put forward, so that no one has to wait for a limit, nor meets one on a busy
    machine."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def run(self, conversation: Coroutine[Any, Any, Any]) -> Any:
        with contextlib.closing(self):
            try:
                return self.run_until_complete(conversation)
            finally:
                for task in asyncio.all_tasks(self):
                    task.cancel()
                    self.run_until_complete(asyncio.wait([task]))

    def visit_late(self, url: str) -> None:
        """Be a person who takes longer than a request may."""
        self.ahead += 2 * REQUEST_SECONDS
        visit(url)

    def oauth(self) -> OAuth:
        return oauth(open_browser=self.visit_late, login_seconds=10 * REQUEST_SECONDS)


def test_a_person_may_take_longer_than_a_request(protected: Protected) -> None:
    clock = Clock()
    limits = {"start_seconds": REQUEST_SECONDS, "timeout_seconds": REQUEST_SECONDS}
    assert clock.run(added(protected, clock.oauth(), **limits)) == "3"
    assert clock.ahead > REQUEST_SECONDS
    assert protected.asked[0] == "server/discover"  # the probe has not given up either
    assert "initialize" not in protected.asked


def test_a_program_logs_in_by_its_own_credentials(protected: Protected) -> None:
    auth = ClientCredentials("robot", "robots-secret", issuer=protected.origin, in_body=True)
    assert add(protected, auth) == "3"
    assert add(protected, auth) == "3"
    assert protected.count("/token", grant_type="client_credentials", client_id="robot") == 1


def test_a_client_that_is_known_beforehand_is_not_registered(protected: Protected) -> None:
    assert add(protected, oauth(client_id="known", client_secret="known-secret", issuer=protected.origin))
    assert protected.count("/register") == 0
    assert protected.count("/authorize", client_id="known") == 1


def test_the_command_line_names_the_page_of_the_login_and_keeps_the_login(
    protected: Protected, tmp_path: Path
) -> None:
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    environment = {name: value for name, value in os.environ.items() if name not in screens}
    environment |= {
        "FASTRPC_STATE_DIR": str(tmp_path),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    command = [sys.executable, "-m", "fastrpc", "call", protected.url, "add", "a=1", "--auth", "oauth"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as first:
        assert first.stderr is not None
        lines = (line for line in first.stderr if "waiting for" not in line)  # said on a busy machine alone
        words, _, url = next(lines).strip().rpartition(" ")
        assert words == "fastrpc: log in at"
        visit(url)
        assert first.communicate(timeout=SECONDS)[0] == "3\n"
    (file,) = (tmp_path / "oauth").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    again = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
    assert (again.stdout, again.stderr, again.returncode) == ("3\n", "", 0)
    assert protected.count("/authorize") == 1


# --- what goes wrong ------------------------------------------------------------------------------------


def failure(protected: Protected, auth: OAuth, **options: Any) -> str:
    with pytest.raises(AuthorizationFailed) as caught:
        add(protected, auth, **options)
    return str(caught.value)


def test_a_login_that_is_denied_is_an_error_that_says_so(protected: Protected) -> None:
    protected.denies = True
    assert "the login was denied: access_denied: not today" in failure(protected, oauth())
    assert protected.count("/token") == 0


def test_a_proxy_whose_login_was_denied_does_not_open_the_browser_for_each_request(
    protected: Protected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastrpc.proxy.RETRY_SECONDS", 0.0)  # any other failure is tried again at once
    protected.denies = True

    async def conversation() -> None:
        async with Client(Server.proxy(protected.url, auth=oauth())) as client:
            for _ in range(3):
                with pytest.raises(RemoteError, match="the login was denied"):
                    await client.list_tools()
                with pytest.raises(RemoteError, match="the login was denied"):
                    await client.call_tool("add", {"a": 1})

    run(conversation())
    assert protected.count("/authorize") == 1


def test_a_person_may_take_longer_than_a_proxy_waits_for_its_server(protected: Protected) -> None:
    clock = Clock()

    async def conversation() -> None:
        proxy = Server.proxy(protected.url, auth=clock.oauth(), start_seconds=REQUEST_SECONDS)
        async with Client(proxy, timeout_seconds=0) as client:
            assert (await client.call_tool("add", {"a": 1})).text == "3"

    clock.run(conversation())
    assert clock.ahead > REQUEST_SECONDS


def test_a_redirect_with_another_state_is_refused_and_the_right_one_still_taken(protected: Protected) -> None:
    statuses = []

    def browser(url: str) -> None:
        redirect = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        for wrong in ("?code=evil&state=guessed", "?code=evil", "/other?code=evil"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                visit(redirect + wrong)
            statuses.append(caught.value.code)
            caught.value.close()
        visit(url)

    assert add(protected, oauth(open_browser=browser)) == "3"
    assert statuses == [400, 400, 404]
    assert protected.count("/token", code="evil") == 0


def test_a_login_that_no_one_completes_ends_and_is_not_begun_again(protected: Protected) -> None:
    async def conversation() -> None:
        auth = oauth()
        async with Client(protected.url, auth=auth) as client:
            protected.revoke()
            protected.refresh_tokens.clear()
            shown: list[str] = []
            auth.open_browser, auth.login_seconds = shown.append, 0.2
            for _ in range(2):
                with pytest.raises(AuthorizationFailed, match="not completed within"):
                    await client.call_tool("add", {"a": 1})
            assert len(shown) == 1

    run(conversation())


def test_a_token_that_is_refused_as_soon_as_it_is_issued_leads_to_no_second_login(
    protected: Protected,
) -> None:
    protected.takes_none = True
    assert "refuses the token that was just issued" in failure(protected, oauth())
    assert protected.count("/authorize") == 1


def test_a_scope_that_is_never_granted_is_asked_for_once(protected: Protected) -> None:
    protected.scopes_of["add"] = "more"
    protected.unwell["authorization_code"] = 200, {"access_token": "weak-token-1", "token_type": "Bearer"}
    protected.tokens["weak-token-1"] = {"basic"}
    assert "still requires the scopes more" in failure(protected, oauth())
    assert protected.count("/authorize") == 2


def test_a_refresh_during_an_outage_fails_and_keeps_the_login(protected: Protected, tmp_path: Path) -> None:
    auth = oauth(store=FileStore(str(tmp_path)))
    add(protected, auth)
    edit(tmp_path, expires_at=1.0)
    protected.unwell["refresh_token"] = 503, {}
    assert "answers a refresh with status 503" in failure(protected, auth)
    del protected.unwell["refresh_token"]
    assert add(protected, auth) == "3"
    assert protected.count("/authorize") == 1


@pytest.mark.parametrize("begins", ["", "HTTP/1.1 200 OK\r\n\r\n"])
def test_an_authorization_server_that_answers_byte_by_byte_is_given_up(
    protected: Protected, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastrpc.client.oauth.flow.FLOW_SECONDS", 2.0)
    with Dripping(begins) as server:
        protected.authorization_server = server.url
        found = failure(protected, oauth())
    assert found.startswith(server.url)
    assert "has not answered within 2 s" in found


@pytest.mark.parametrize("elsewhere", ["http://example.com", "http://192.0.2.1:8080"])
def test_nothing_goes_to_an_authorization_server_without_encryption(
    protected: Protected, elsewhere: str
) -> None:
    protected.authorization_server = elsewhere
    assert "expected an https address of the authorization server" in failure(protected, oauth())


def test_credentials_go_to_no_other_authorization_server_than_their_own(protected: Protected) -> None:
    auth = oauth(client_id="known", client_secret="known-secret", issuer="https://elsewhere.example")
    assert "but client_id belongs to https://elsewhere.example" in failure(protected, auth)
    assert protected.count("/register") == protected.count("/authorize") == protected.count("/token") == 0


def test_an_answer_of_the_token_endpoint_that_is_none_is_described_without_its_content(
    protected: Protected,
) -> None:
    protected.unwell["authorization_code"] = 200, {"refresh_token": "very-secret-1", "token_type": "Bearer"}
    found = failure(protected, oauth())
    assert "access_token: Field required" in found
    assert "very-secret-1" not in found


def test_a_plain_403_is_no_reason_for_a_login(protected: Protected, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "_refusal_of", lambda message, header: (403, {}, {"error": "no"}))
    with pytest.raises(HttpStatusError, match="403"):
        add(protected, oauth())
    assert protected.count("/authorize") == 0


def test_no_secret_is_in_an_error_a_log_or_a_repr(
    protected: Protected,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    auth = oauth(client_id="known", client_secret="known-secret")
    add(protected, auth)
    protected.revoke()
    secrets = {"known-secret", *protected.refresh_tokens}
    names = ("code", "code_verifier", "refresh_token", "client_secret")

    def echo(form: dict[str, str]) -> Any:
        return 400, {}, {"error": "no", "echo": [form[name] for name in names if name in form]}

    monkeypatch.setattr(protected, "_token", echo)
    found = failure(protected, auth)
    assert "Token exchange failed (400)" in found
    secrets |= {
        form[name] for path, form in protected.requests for name in names if path == "/token" and name in form
    }
    assert len(secrets) >= 5
    seen = capfd.readouterr()
    for text in (found, caplog.text, repr(auth), seen.out, seen.err):
        assert [secret for secret in secrets if secret in text] == []
    assert "Traceback" not in caplog.text + seen.err


# --- what an authorization server must say, and what it need not ------------------------------------------


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
def test_without_pkce_by_s256_no_one_is_shown_a_login(
    protected: Protected, methods: list[str] | None
) -> None:
    protected.pkce = methods
    assert "code_challenge_methods_supported: expected S256, got" in failure(protected, oauth())
    assert not protected.count("/register")
    assert not protected.count("/authorize")


def test_without_metadata_no_one_is_shown_a_login(protected: Protected) -> None:
    protected.unwell["/.well-known/oauth-authorization-server"] = 404, {}
    assert "does not offer PKCE" in failure(protected, oauth())
    assert not protected.count("/authorize")


def test_a_program_of_its_own_needs_no_pkce(protected: Protected) -> None:
    protected.pkce = None
    assert (
        add(protected, ClientCredentials("me", client_secret="a-secret-of-mine", issuer=protected.origin))
        == "3"
    )


@pytest.mark.parametrize(
    "expires_in",
    [
        -5,
        0,
        0.5,
        "-5",
        "soon",
        "",
        True,
        [60],
        {"s": 1},
        None,
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
    ],
)
def test_a_life_that_is_not_a_number_of_seconds_is_none(protected: Protected, expires_in: Any) -> None:
    """The token is used until the server refuses it: it neither fails, nor is renewed for each request."""
    protected.expires_in = expires_in
    auth = oauth()
    for _ in range(2):
        assert add(protected, auth) == "3"
    assert protected.count("/token") == 1


@pytest.mark.parametrize("expires_in", [3600, 3600.9, "3600", 1e300, "9" * 500])
def test_a_life_is_taken_as_it_can_be_read(protected: Protected, expires_in: Any) -> None:
    protected.expires_in = expires_in
    auth = oauth()
    for _ in range(2):
        assert add(protected, auth) == "3"
    assert protected.count("/token") == 1
