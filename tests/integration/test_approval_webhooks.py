"""Approvals by signed webhooks: sent to a real receiver, decided by a real POST to the server."""

from __future__ import annotations

import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from time import time
from typing import Any

import pytest
from support.http_server import HttpProcess
from support.rewriting import rewrite
from support.waiting import eventually

from fastrpc import Client
from fastrpc.errors import RemoteError
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.storage.database import Database

SECRET = "0123456789abcdef-shared"
TOOLS = """
from fastrpc import Server
app = Server("shop")

@app.tool(effect="exec")
def wipe(place: str) -> str:
    return f"wiped {place}"
"""
GUARD = """
[expose]
tools = ["*"]
[approvals]
hold_seconds = 30
editable = ["wipe"]
[approvals.webhook]
url = "{url}"
secret = "file:secret"
"""


class Inbox:
    """A server that keeps what is posted to it, and fails the first request."""

    def __init__(self) -> None:
        self.came: Queue[tuple[dict[str, str], bytes]] = Queue()
        self.fails = 1
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = 500 if inbox.fails else 200
                inbox.fails = max(0, inbox.fails - 1)
                if status == 200:
                    inbox.came.put((dict(self.headers), body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/inbox"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self, secret: str = SECRET) -> dict[str, Any]:
        headers, body = self.came.get(timeout=60)
        assert signature(body, headers["X-Fastrpc-Timestamp"], secret) == headers["X-Fastrpc-Signature"]
        found: dict[str, Any] = json.loads(body)
        return found


def signature(body: bytes, timestamp: str, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, "sha256").hexdigest()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    found = Inbox()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def server(tmp_path: Path, inbox: Inbox) -> Iterator[HttpProcess]:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD.format(url=inbox.url))
    (tmp_path / "secret").write_text(SECRET + "\n")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "token").write_text("t0ken-of-the-caller-123\n")
    (tmp_path / "token").chmod(0o600)
    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0")
    with HttpProcess(
        *command,
        "--token-file",
        "token",
        folder=tmp_path,
        environment={"FASTRPC_STATE_DIR": str(tmp_path / "state")},
    ) as process:
        yield process


def post(server: HttpProcess, said: Any, secret: str = SECRET, at: float | None = None) -> tuple[int, Any]:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    timestamp = str(int(at or time()))
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/approvals",
        body,
        {
            "Content-Type": "application/json",
            "X-Fastrpc-Timestamp": timestamp,
            "X-Fastrpc-Signature": signature(body, timestamp, secret),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def call(server: HttpProcess, place: str) -> Any:
    url = f"http://127.0.0.1:{server.port}/mcp"
    with Client.sync(url, token="t0ken-of-the-caller-123") as client:
        try:
            return client.call_tool("wipe", {"place": place}).text
        except RemoteError as error:
            return error.message


def test_what_waits_is_sent_and_a_signed_decision_lets_it_run(server: HttpProcess, inbox: Inbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(call, server, "x")
        sent = inbox.next()
        assert sent["event"] == "asked"
        approval = sent["approval"]
        assert (approval["name"], approval["arguments"], approval["risk"]) == ("wipe", {"place": "x"}, "high")
        said = {"id": approval["id"], "digest": approval["digest"], "decision": "approve", "by": "grace"}
        status, answer = post(server, {**said, "edited": {"place": "y"}})
        assert (status, answer["state"], answer["decided_by"]) == (200, "approved", "grace")
        assert post(server, {**said, "edited": {"place": "y"}})[0] == 200, "it may come twice"
        assert held.result(60) == "wiped y"
        assert inbox.next()["event"] == "approved"
        assert post(server, {**said, "decision": "reject"}) == (409, f"{approval['id']} is used by grace")
    assert SECRET not in server.stderr


def test_what_is_not_signed_now_for_this_call_changes_nothing(server: HttpProcess, inbox: Inbox) -> None:
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(call, server, "x")
        approval = inbox.next()["approval"]
        said = {"id": approval["id"], "digest": approval["digest"], "decision": "approve", "by": "grace"}
        assert post(server, said, secret="another") == (401, "the signature is not valid")
        old = "the timestamp is too old, or in the future"
        assert post(server, said, at=time() - 400) == (401, old)
        assert post(server, said, at=time() + 400) == (401, old)
        wrong = (409, "digest: this is not the digest of the approval")
        assert post(server, {**said, "digest": "0" * 64}) == wrong
        assert post(server, {**said, "id": "ap_nothing"})[0] == 404
        assert post(server, {**said, "decision": "yes"})[0] == 400
        assert post(server, {**said, "ba": "grace"}) == (
            400,
            "ba: no such member; the members are id, digest, decision, by, comment, edited",
        )
        assert post(server, {**said, "by": ""}) == (400, "by is missing")
        assert post(server, b"[]") == (400, "expected a JSON object")
        url = f"http://127.0.0.1:{server.port}/approvals"
        for headers in ({}, {"Authorization": "Bearer t0ken-of-the-caller-123"}):
            unsigned = urllib.request.Request(
                url, json.dumps(said).encode(), {"Content-Type": "application/json", **headers}
            )
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(unsigned, timeout=60)
        assert post(server, {**said, "decision": "reject", "comment": "no"})[0] == 200
        assert held.result(60) == "wipe was not approved by grace: no"


NONE = GUARD.partition("[approvals.webhook]")[0]
NEW_SECRET = "another-shared-secret-4711"


def changed(server: HttpProcess, folder: Path, text: str) -> None:
    """Have the server use another policy: it looks at its file before each decision, and twice a second."""
    rewrite(folder / "guard.toml", text)
    post(server, b"[]")


def test_another_url_and_secret_hold_at_once_and_what_waits_is_still_sent(
    server: HttpProcess, inbox: Inbox, tmp_path: Path
) -> None:
    other = Inbox()
    other.fails = 0
    (tmp_path / "new-secret").write_text(NEW_SECRET + "\n")
    (tmp_path / "new-secret").chmod(0o600)
    inbox.fails = 1  # it is tried again a second later
    try:
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(call, server, "x")
            eventually(lambda: inbox.fails == 0)
            changed(server, tmp_path, GUARD.format(url=other.url).replace("file:secret", "file:new-secret"))
            waiting = inbox.next()["approval"]
            assert waiting["arguments"] == {"place": "x"}, "to where it was to go, signed as it was"
            said = {"id": waiting["id"], "digest": waiting["digest"], "decision": "reject", "by": "grace"}
            assert post(server, said) == (401, "the signature is not valid")
            assert post(server, said, NEW_SECRET)[0] == 200
            assert "was not approved by grace" in first.result(60) or "void" in first.result(60)
            assert other.next(NEW_SECRET)["event"] == "rejected"
            second = pool.submit(call, server, "y")
            approval = other.next(NEW_SECRET)["approval"]
            said = {"id": approval["id"], "digest": approval["digest"], "decision": "approve", "by": "grace"}
            assert post(server, said, NEW_SECRET)[0] == 200
            assert second.result(60) == "wiped y"
            assert inbox.came.empty()
        assert NEW_SECRET not in server.stderr
    finally:
        other.server.shutdown()
        other.server.server_close()


def test_it_may_be_switched_off_and_on(server: HttpProcess, inbox: Inbox, tmp_path: Path) -> None:
    inbox.fails = 0
    changed(server, tmp_path, NONE)
    assert post(server, {})[0] == 401, "there is nothing for who has no token"
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(call, server, "x")
        database = Database(f"sqlite:///{tmp_path}/state/guard.sqlite3")
        store = ApprovalStore(database)
        eventually(lambda: len(store.list()) == 1)
        (approval,) = store.list()
        said = {"id": approval.id, "digest": approval.digest.hex(), "decision": "approve", "by": "grace"}
        assert post(server, said)[0] == 401
        changed(server, tmp_path, GUARD.format(url=inbox.url))
        assert post(server, said)[0] == 200
        held.result(60)
        assert inbox.next()["event"] == "approved", "what was asked before was not sent"
        database.close()
    changed(server, tmp_path, GUARD.format(url="ftp://nowhere/"))
    assert post(server, said)[0] == 200, "a broken file changes nothing"
    eventually(lambda: "the former policy stays in use" in server.stderr)
