"""What load balancers see of a server that ends: `/readyz` refuses first, while the server serves on.

That it serves on is seen by answers, and by connections that are taken; a second signal ends the notice.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from support.http_client import ECHO_AND_WAIT, Serving, answer_of, ask, environment, stateless_request
from support.http_server import FASTRPC
from support.waiting import SECONDS, eventually

from fastrpc.transports.http.server import wait_for_first_requests
from fastrpc.transports.http.sockets import ignore_new_connections

SERVER = "from fastrpc import Server\napp = Server('ready')\n" + ECHO_AND_WAIT
SERVER += """
@app.tool(run="inline")
def block_loop(path: str) -> str:
    import time
    print("begun", flush=True)
    while not os.path.exists(path):
        time.sleep(0.005)
    return "blocked"
"""
LONG = ("--notice-seconds", "3600")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(SERVER)
    return tmp_path


def serve(folder: Path, *options: str, **environ: str) -> Serving:
    return Serving("serve", "tools.py", "--http", "127.0.0.1:0", *options, folder=folder, **environ)


def status(server: Serving, path: str = "/readyz") -> int:
    return probe(server, path).status


def probe(server: Serving, path: str = "/readyz") -> Any:
    """Ask as a probe does: on a new connection, without a token."""
    return ask(server.connection(), "GET", path, None, {})


def mistake(folder: Path, *options: str) -> str:
    """Return what a server says that does not begin."""
    done = subprocess.run(
        [*FASTRPC, "serve", "tools.py", *options],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_readyz_refuses_first_and_the_server_serves_on(folder: Path, workers: str) -> None:
    with serve(folder, *LONG, "--workers", workers, "--log-level", "info") as server:
        session = server.session()
        stream = session.listen()
        assert [status(server), status(server, "/healthz")] == [200, 200]
        server.kill()
        eventually(lambda: [status(server) for _ in range(8)] == [503] * 8)
        assert probe(server).body == b'{"status":"stopping"}'
        assert status(server, "/healthz") == 200
        assert server.call("echo", text="hello") == "hello"
        assert session.call("echo", text="old").text == "old"
        call = server.begin_call("wait_for", path=str(folder / "go"))
        server.has_begun(1)
        server.kill()  # ends the notice, and the time for calls
        assert "retry: 5000" in [*stream.lines()]
        assert answer_of(call).json["error"]["message"] == "The server has ended"
        assert server.wait() == 0
    assert "readyz" not in server.stderr


def test_the_notice_ends_by_itself_and_calls_still_have_their_time(folder: Path) -> None:
    with serve(folder, "--notice-seconds", "0.2", "--workers", "2") as server:
        call = server.begin_call("wait_for", path=str(folder / "go"))
        server.has_begun(1)
        server.kill()
        eventually(server.is_refused)
        (folder / "go").touch()
        assert answer_of(call).text == "waited"
        assert server.wait() == 0


def test_the_date_goes_on_during_the_notice(folder: Path) -> None:
    with serve(folder, *LONG) as server:
        server.kill()
        eventually(lambda: status(server) == 503)
        first = probe(server, "/healthz").headers["date"]
        eventually(lambda: probe(server, "/healthz").headers["date"] != first)
        assert probe(server, "/healthz").headers["connection"] == "close"
        server.kill()
        assert server.wait() == 0


def test_a_connection_is_closed_after_its_next_answer(folder: Path) -> None:
    """Otherwise a proxy would send a request on a connection that is being closed."""
    message, headers = stateless_request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
    with serve(folder, *LONG) as server:
        hot, regular = server.connection(), server.connection()
        for _ in range(3):
            assert ask(hot, "POST", "/mcp", message, server.headers(**headers)).text == "hello"
        assert ask(regular, "GET", "/readyz", None, {}).status == 200
        server.kill()
        eventually(lambda: status(server) == 503)
        for connection, method, path in ((hot, "POST", "/mcp"), (regular, "GET", "/healthz")):
            with connection.sock.dup() as kept:
                body = message if method == "POST" else None
                answer = ask(connection, method, path, body, server.headers(**headers))
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert kept.recv(1) == b""
        server.kill()
        assert server.wait() == 0


def test_a_connection_that_comes_as_the_notice_ends_is_served(folder: Path) -> None:
    """The system has accepted it, and the server not yet: closing the port would reset it."""
    with serve(folder, "--notice-seconds", "1.5") as server:
        server.kill()
        eventually(lambda: status(server) == 503)
        blocking = server.begin_call("block_loop", path=str(folder / "go"))
        server.has_begun(1)
        late = [server.begin_call("echo", text="late") for _ in range(20)]
        time.sleep(1.6)  # the notice has ended
        (folder / "go").touch()
        assert [answer_of(call).text for call in late] == ["late"] * 20
        assert answer_of(blocking).text == "blocked"
        assert server.wait() == 0


def test_a_connection_made_before_the_end_may_send_its_first_request_after_it(folder: Path) -> None:
    """A proxy that has had no processor meanwhile: it would not send the request again, elsewhere."""
    patience = "from fastrpc.transports.http import server\nserver.FIRST_REQUEST_SECONDS = 3600\n"
    (folder / "tools.py").write_text(patience + SERVER)
    message, headers = stateless_request("tools/call", {"name": "echo", "arguments": {"text": "late"}})
    with serve(folder, "--notice-seconds", "0.1") as server:
        late = server.connection()
        late.connect()
        server.kill()
        eventually(lambda: ignores_connections(server))
        answer = ask(late, "POST", "/mcp", message, server.headers(**headers))
        assert (answer.status, answer.text, answer.headers["connection"]) == (200, "late", "close")
        assert server.wait() == 0


def ignores_connections(server: Serving) -> bool:
    """Whether an attempt to connect is neither accepted nor refused."""
    attempt = server.connection()
    attempt.timeout = 0.5
    try:
        attempt.connect()
    except TimeoutError:
        return True
    finally:
        attempt.close()
    return False


def test_probes_can_be_switched_off(folder: Path) -> None:
    with serve(folder, FASTRPC_HTTP_HEALTH="false") as server:
        assert [status(server, path) for path in ("/healthz", "/readyz")] == [404, 404]
        assert server.call("echo", text="hello") == "hello"


def test_a_time_of_notice_is_for_http_and_is_a_number_of_seconds(folder: Path) -> None:
    assert "--notice-seconds is for HTTP" in mistake(folder, "tools.py", *LONG)
    said = mistake(folder, "tools.py", "--http", "127.0.0.1:0", "--notice-seconds", "soon")
    assert "--notice-seconds: expected a number of seconds" in said
    said = mistake(folder, "tools.py", "--http", "127.0.0.1:0", "--notice-seconds", "86400")
    assert "http: notice_seconds: expected 0 to 3600, got 86400" in said


def test_connections_that_have_begun_are_served_while_new_ones_are_ignored() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        with socket.create_connection(place, 5) as before:
            before.sendall(b"request")
            if not ignore_new_connections(listener):
                pytest.skip("SO_ATTACH_FILTER is of Linux")
            with socket.socket() as after:
                after.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    after.connect(place)
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(100) == b"request"
                accepted.sendall(b"answer")
            assert before.recv(100) == b"answer"


def test_a_server_that_ends_waits_until_each_connection_is_accepted() -> None:
    """On a busy machine its process may have had no time to accept them."""
    listener = socket.create_server(("127.0.0.1", 0))

    async def end() -> None:
        waiting = asyncio.ensure_future(wait_for_first_requests([listener], []))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        listener.accept()[0].close()
        await asyncio.wait_for(waiting, SECONDS)

    with listener, socket.create_connection(listener.getsockname()):
        asyncio.run(end())
