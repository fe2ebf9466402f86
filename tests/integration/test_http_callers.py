"""Who may come in over HTTP: tokens (scorecard F3), another caller's handles, and where secrets go (H3)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import process_list
from support.access_control import (
    BOTH,
    CALL,
    INITIALIZE,
    METHODS,
    OTHER,
    STATELESS,
    TOKEN,
    Caller,
    GuardedServer,
)
from support.http_client import Serving
from support.http_server import HttpProcess
from support.raw_http import Answer, Socket
from support.waiting import SECONDS, eventually


@pytest.fixture(scope="module")
def local() -> Iterator[GuardedServer]:
    with GuardedServer(token=[TOKEN, OTHER]) as server:
        yield server


# --- tokens (scorecard F3) --------------------------------------------------------------------------------

WRONG = {
    "missing": ((), False),
    "wrong": (("Authorization: Bearer a-token-of-nobody-at-all",), True),
    "prefix": ((f"Authorization: Bearer {TOKEN[:-1]}",), True),
    "longer": ((f"Authorization: Bearer {TOKEN}x",), True),
    "other case": ((f"Authorization: Bearer {TOKEN.upper()}",), True),
    "twice": ((f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {TOKEN}"), True),
    "twice in one": ((f"Authorization: Bearer {TOKEN}, Bearer {TOKEN}",), True),
    "empty": (("Authorization: Bearer",), True),
    "no scheme": ((f"Authorization: {TOKEN}",), False),
    "wrong scheme": ((f"Authorization: Basic {TOKEN}",), False),
    "other header": ((f"X-Authorization: Bearer {TOKEN}", f"Cookie: token={TOKEN}"), False),
    "long": ((f"Authorization: Bearer {'x' * 20_000}",), True),
    "no ASCII": (("Authorization: Bearer \xe9\xff",), True),
    "tail": ((f"Authorization: Bearer {TOKEN} x",), True),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_is_answered_at_once_with_the_body_unread(local: GuardedServer, name: str) -> None:
    """16 MiB are announced and never sent: whoever waited for them would wait for ever."""
    headers, is_given = WRONG[name]
    answer = local.ask("POST", "/mcp", *headers, *STATELESS, "Content-Length: 16777216")
    assert (answer.status, answer.code) == (401, -32600)
    assert answer.headers["connection"] == "close"
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="mcp"')
    assert ('error="invalid_token"' in challenge) is is_given
    for text in (challenge, answer.body.decode()):
        assert TOKEN[:8] not in text


def test_a_token_of_a_megabyte_is_refused(local: GuardedServer) -> None:
    answer = local.ask("POST", "/mcp", f"Authorization: Bearer {'x' * 1_000_000}")
    assert answer.status in (400, 401, 431)


def test_a_token_in_the_query_opens_nothing(local: GuardedServer) -> None:
    for name in ("token", "access_token", "authorization"):
        answer = local.ask("POST", f"/mcp?{name}={TOKEN}", *STATELESS, "Mcp-Name: count", body=CALL)
        assert answer.status == 401
        assert TOKEN.encode() not in answer.body


def test_the_scheme_is_taken_in_any_case(local: GuardedServer) -> None:
    """RFC 9110, 11.1: the name of a scheme has no case."""
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert local.call("count", f"Authorization: {scheme} {TOKEN}").status == 200


def test_a_refused_call_is_not_made_and_the_connection_is_not_used_on(local: GuardedServer) -> None:
    """A second request behind the refused one's head is no request: it would be that one's body."""
    before = local.count()
    body = CALL.replace(b"TOOL", b"count").replace(b"ARGUMENTS", b"{}")
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {TOKEN}",
        *STATELESS,
        "Mcp-Name: count",
    ]
    inner = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    outer = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(inner)}\r\n\r\n".encode()
    with Socket(local.port) as connection:
        connection.send(outer + inner)
        assert connection.answer().status == 401
        assert connection.is_closed()
    assert local.count() == before + 1


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (f"{TOKEN}\n", 0o604, "others may use"),
        ("# none yet\n\n", 0o600, "there is no token in"),
        (f"{TOKEN}\nshort\n", 0o600, "line 2 .* has 5 characters; at least 16 are needed"),
        (f"{TOKEN} {TOKEN}\n", 0o600, "line 1 .*: expected one token"),
        (None, 0o600, "cannot read .*No such file"),
    ],
)
def test_a_token_file_that_is_none_starts_no_server(
    tmp_path: Any, content: str | None, mode: int, complaint: str
) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    with pytest.raises(AssertionError, match=complaint) as caught:
        GuardedServer(token_file=str(path))
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "give token=…, or auth=None"),
        ({"token": []}, "token: expected at least one"),
        ({"token": "two words"}, "expected a text of visible ASCII characters"),
        ({"token": TOKEN, "is_open": True}, "exclude each other"),
        ({"token": TOKEN, "origins": ["*"]}, "--allow-origin: expected scheme://host"),
        ({"token": TOKEN, "hosts": ["http://mcp.test"]}, "--allow-host: expected a name"),
    ],
)
def test_who_may_come_in_has_to_be_said_and_to_make_sense(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint) as caught:
        GuardedServer(**options)
    assert TOKEN not in str(caught.value)


# --- one caller's handles are nothing to another ----------------------------------------------------------


def test_another_callers_session_looks_like_an_unknown_one(local: GuardedServer) -> None:
    mine, theirs = f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {OTHER}"
    opened = local.ask("POST", "/mcp", mine, *BOTH, body=INITIALIZE)
    session = opened.headers["mcp-session-id"]
    unknown = session[:-4] + ("AAAA" if session[-4:] != "AAAA" else "BBBB")
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    reply = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    requests: list[tuple[str, tuple[str, ...], bytes]] = [
        *[("POST", (), body) for body in (ping, note, reply, INITIALIZE[:-1], b"[]", b"{")],
        ("GET", (), b""),
        ("GET", ("Last-Event-ID: 0-1",), b""),
        ("GET", ("Last-Event-ID: nonsense",), b""),
        ("DELETE", (), b""),
        ("DELETE", ("MCP-Protocol-Version: 1999-01-01",), b""),
    ]
    for method, headers, body in requests:
        answers = [
            local.ask(method, "/mcp", theirs, *BOTH, *headers, f"Mcp-Session-Id: {id}", body=body)
            for id in (session, unknown)
        ]
        seen = [(each.status, each.body, sorted(each.headers)) for each in answers]
        assert seen[0] == seen[1], (method, headers, body, seen)
        assert answers[0].status in (400, 404)
    assert local.ask("POST", "/mcp", mine, *BOTH, f"Mcp-Session-Id: {session}", body=ping).status == 200


def test_another_callers_stream_of_http_sse_looks_like_an_unknown_one(local: GuardedServer) -> None:
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    with socket.create_connection(("127.0.0.1", local.port), timeout=SECONDS) as stream:
        head = f"GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        stream.sendall(head.encode())
        data = b""
        while b"session_id=" not in data or not data.endswith(b"\n\n\r\n"):
            data += stream.recv(65536)
        session = data.partition(b"session_id=")[2].split()[0].decode()
        for method in METHODS:
            answers = [
                local.ask(
                    method, f"/messages?session_id={id}", f"Authorization: Bearer {token}", *BOTH, body=ping
                )
                for token, id in ((OTHER, session), (OTHER, session[:-4] + "AAAA"))
            ]
            assert answers[0].status == answers[1].status in (404, 405)
            assert answers[0].body == answers[1].body
        mine = local.ask(
            "POST", f"/messages?session_id={session}", f"Authorization: Bearer {TOKEN}", *BOTH, body=ping
        )
        assert mine.status == 202


def test_what_a_request_has_carried_away_is_no_good_to_another_caller(local: GuardedServer) -> None:
    """2026-07-28, requestState: it has what was answered, and says that somebody has agreed to it."""
    mine, theirs = f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {OTHER}"
    state = local.call("ask", mine).json["result"]["requestState"]
    forged = state[:-1] + ("0" if state[-1] != "0" else "1")

    def answered(caller: str, state: str) -> Answer:
        answers = '{"1":{"action":"accept","content":{"value":"this one"}}}'
        more = f',"inputResponses":{answers},"requestState":{json.dumps(state)}'
        return local.call("ask", caller, more=more)

    foreign = answered(theirs, state)
    assert (foreign.status, foreign.code) == (400, -32602)
    assert foreign.body == answered(theirs, forged).body
    assert answered(mine, state).text == "it is this one"
    own = local.call("ask", theirs).json["result"]["requestState"]
    assert answered(theirs, own).text == "it is this one"
    assert answered(mine, own).body == foreign.body


# --- where tokens come from, and where they do not go -----------------------------------------------------


def test_the_token_of_the_environment_goes_to_no_child_log_or_error() -> None:
    """Planted: FASTRPC_TOKEN, a header, a query, a tool's own error. Looked for in all that can be read."""
    secret, guess = "planted-secret-of-the-environment", "planted-guess-of-a-caller"
    environment = {
        **os.environ,
        "FASTRPC_TOKEN": secret,
        "FASTRPC_LOG_LEVEL": "debug",
        "PYTHONASYNCIODEBUG": "1",
    }
    with GuardedServer(environment, from_environment=True) as server:
        right = f"Authorization: Bearer {secret}"
        shown = server.call("variables", right)
        assert shown.status == 200
        assert "PATH" in shown.body.decode()
        answers = [
            shown,
            server.call("count", f"Authorization: Bearer {guess}"),
            server.ask("GET", f"/mcp?token={guess}", f"Authorization: Bearer {guess}"),
            server.ask("POST", "/nowhere", right, f"Origin: http://{guess}.test", body=b"{"),
            server.call("fail", right, arguments=json.dumps({"text": f"it failed for {secret}, oh"})),
            server.ask("POST", "/mcp", right, *BOTH, body=b"{broken"),
        ]
        command = process_list.read(f"/proc/{server.process.pid}/cmdline")
        server.stop()
    assert "it failed" in server.stderr
    said = [server.stdout.encode(), server.stderr.encode()]
    for place in (*(each.body + repr(each.headers).encode() for each in answers), command, *said):
        assert secret.encode() not in place
        assert guess.encode() not in place


def test_a_token_that_a_tools_error_has_in_it_is_masked(local: GuardedServer) -> None:
    """One caller's error must not show another's token, however the tool has come by it."""
    answer = local.call("fail", arguments=json.dumps({"text": f"it failed for {OTHER}, oh"}))
    assert "it failed for ****, oh" in answer.text


def test_a_function_that_fails_over_a_token_does_not_tell_it() -> None:
    """A dict's look-up raises KeyError, whose words are the token."""
    with GuardedServer(asked={TOKEN: "ada"}) as server:
        assert server.call("count").status == 200
        answer = server.call("count", f"Authorization: Bearer {OTHER}")
        assert (answer.status, answer.code) == (500, -32603)
        server.stop()
    said = server.stderr
    assert "KeyError" in said
    assert OTHER not in said + answer.body.decode()


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# callers\n{TOKEN}\n")
    path.chmod(0o600)
    with GuardedServer(token_file=str(path)) as server:
        failed = server.call("fail", arguments=json.dumps({"text": f"it failed for {TOKEN}"}))
        assert "it failed for ****" in failed.text
        for _ in range(3):  # the fast path knows the head by now
            assert server.call("count", f"Authorization: Bearer {TOKEN}").status == 200
        assert server.call("count", f"Authorization: Bearer {OTHER}").status == 401
        path.write_text(f"{OTHER}\n")
        eventually(lambda: server.call("count", f"Authorization: Bearer {TOKEN}").status == 401)
        assert server.call("count", f"Authorization: Bearer {OTHER}").status == 200


@pytest.mark.parametrize("how", ["gone", "readable by others"])
def test_a_token_file_that_can_be_used_no_more_lets_no_one_in_until_it_is_right_again(
    tmp_path: Path, how: str
) -> None:
    """On both ways: a head that the fast path knows is judged anew."""
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    patch = {"transports.http.auth.LOOK_SECONDS": 0.1, "transports.http.auth.FILE_GRACE_SECONDS": 0.2}
    with GuardedServer(token=OTHER, token_file=str(path), patch=patch) as server:
        assert server.call("count").status == 200
        if how == "gone":
            path.unlink()
        else:
            path.chmod(0o604)
        eventually(lambda: server.call("count").status == 503)
        for answer in (server.call("count"), server.ask("POST", "/mcp", "Authorization: Bearer who-knows")):
            assert (answer.status, answer.code) == (503, -32603)
            assert "retry-after" in answer.headers
            assert str(path) not in answer.body.decode()
        assert server.ask("POST", "/mcp").status == 401  # without a token the answer is no other
        assert server.call("count", f"Authorization: Bearer {OTHER}").status == 200
        path.write_text(f"{TOKEN}\n")
        path.chmod(0o600)
        eventually(lambda: server.call("count").status == 200)
        server.stop()
    said = server.stderr
    assert "its tokens are refused until it is valid again" in said
    assert said.endswith("is valid again\n")
    assert TOKEN not in said


ANCESTORS = """\
{
    env; ps -A eww -o args
    process=$$
    while [ "$process" -gt 1 ]; do
        tr '\\0' '\\n' < /proc/$process/environ; tr '\\0' '\\n' < /proc/$process/cmdline
        process=$(sed 's/.*) //' /proc/$process/stat | cut -d' ' -f2)
    done
} | tr ' ' '\\n' | grep -a -e 'plant[e]d' -e 'FASTRPC_[TS]' | sort -u; echo LOOKED"""


@pytest.mark.skipif(not os.path.exists("/proc/self/environ"), reason="there is no /proc to look into")
def test_a_shell_of_the_tools_cannot_see_what_opens_the_server(tmp_path: Any) -> None:
    """Bash looks at its own environment and at those of all processes that it comes from, as they began."""
    token, secret = "planted-token-for-the-shell", "planted-secret-for-the-shell-to-look-for"
    environment = {**os.environ, "FASTRPC_TOKEN": token, "FASTRPC_SECRET": secret, "HOME": str(tmp_path)}
    with HttpProcess("serve", "--http", "127.0.0.1:0", folder=tmp_path, environment=environment) as server:
        caller = Caller(server.port)
        arguments = json.dumps({"command": ANCESTORS})
        assert caller.call("Bash", arguments=arguments).status == 401
        answer = caller.call("Bash", f"Authorization: Bearer {token}", arguments=arguments)
        server.stop()
    assert answer.status == 200
    assert "LOOKED" in answer.text
    assert "FASTRPC_TOKEN" in answer.text  # of the process itself: the name has stayed, the value has not
    for text in (answer.text, server.stdout, server.stderr):
        assert token not in text
        assert secret not in text


def test_another_callers_background_task_looks_like_an_unknown_one(tmp_path: Any) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n{OTHER}\n")
    tokens.chmod(0o600)
    options = ("--http", "127.0.0.1:0", "--token-file", str(tokens))
    with Serving("serve", *options, folder=tmp_path, FASTRPC_STATE_DIR=str(tmp_path / "state")) as server:

        def called(token: str, tool: str, **arguments: Any) -> str:
            params = {"name": tool, "arguments": arguments}
            return server.stateless_request("tools/call", params, Authorization=f"Bearer {token}").text

        assert called(TOKEN, "BackgroundBash", command="sleep 60").startswith("Started background task 1 ")
        for tool in ("ReadBgOutput", "KillBgTask"):
            for task_id in (1, 2):
                said = called(OTHER, tool, task_id=task_id)
                assert said == f"There is no background task {task_id}. Tasks: none."
        assert called(OTHER, "ListBgTasks") == "No background tasks."
        assert "sleep 60" in called(TOKEN, "ListBgTasks")
        assert called(TOKEN, "KillBgTask", task_id=1).startswith("Killed background task 1")
