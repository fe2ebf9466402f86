"""``fastrpc serve --http`` and ``app.run(http=…)`` as processes: addresses, TLS, mistakes, and the end.

Real servers and real sockets; what they write is read to the last line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from typing import Any

import pytest
from support import certificates, stdio
from support.child_processes import gone, is_alive
from support.http_client import (
    ECHO_AND_WAIT,
    TOKEN,
    Answer,
    Serving,
    Stream,
    answer_of,
    environment,
    stateless_request,
)
from support.http_server import FASTRPC
from support.waiting import SECONDS, eventually

TOOLS = (
    """
import json, os, subprocess, sys, time
from fastrpc import Server

app = Server("served")

@app.tool(run="thread")
def block(seconds: float) -> str:
    print("begun", flush=True)
    time.sleep(seconds)
    return "blocked"

@app.tool(run="thread")
def block_for(path: str) -> str:
    print("begun", flush=True)
    while not os.path.exists(path):
        time.sleep(0.005)
    return "blocked"

@app.tool(run="thread")
def inherited() -> str:
    child = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    with open("/proc/self/environ") as file:
        return json.dumps({"child": child, "own": str(dict(os.environ)), "memory": file.read()})

@app.tool(run="inline")
def modules() -> str:
    return " ".join(sys.modules)
"""
    + ECHO_AND_WAIT
)


@pytest.fixture
def folder(tmp_path: Any) -> Any:
    (tmp_path / "tools.py").write_text(TOOLS)
    return tmp_path


def serve(folder: Any, *options: str, http: str = "127.0.0.1:0", **more: Any) -> Serving:
    return Serving("serve", "tools.py", "--http", http, *options, folder=folder, **more)


def mistake(folder: Any, *arguments: str, command: list[str] | None = None, **environ: str) -> str:
    """Run what must not begin: one line on stderr, exit code 2. Return the line."""
    done = subprocess.run(
        [*(command or [*FASTRPC, "serve"]), *arguments],
        cwd=folder,
        env=environment(**environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("fastrpc: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# --- addresses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "localhost:0"])
def test_an_address_is_served_and_named_on_stderr(folder: Any, address: str) -> None:
    with serve(folder, http=address) as server:
        assert server.call("echo", text="hello") == "hello"
        host = address[:-2].strip("[]")
        for found in socket.getaddrinfo(host, server.port, type=socket.SOCK_STREAM):  # all have the same port
            socket.create_connection(found[4][:2], timeout=SECONDS).close()
        assert server.stop() == 0
    assert server.stderr == f"fastrpc: serving at http://{address[:-1]}{server.port}/mcp\n"
    assert server.stdout == ""


def test_a_unix_socket_is_its_owners_alone_and_gone_at_the_end(folder: Any) -> None:
    with serve(folder, http="unix:here") as server:
        assert os.stat(folder / "here").st_mode & 0o777 == 0o600
        assert server.call("echo", text="hello") == "hello"
        assert "unix:" in mistake(folder, "tools.py", "--http", "unix:here")
        assert server.call("echo", text="hello") == "hello"
        assert server.stop() == 0
    assert server.stderr == f"fastrpc: serving at unix:{folder}/here /mcp\n"
    assert not (folder / "here").exists()


def test_a_unix_socket_that_was_left_behind_is_replaced(folder: Any) -> None:
    with serve(folder, http="unix:here") as server:
        server.kill(signal.SIGKILL)
        server.wait()
    assert (folder / "here").exists()
    with serve(folder, http="unix:here") as server:
        assert server.call("echo", text="hello") == "hello"
        assert server.stop() == 0


def test_a_file_in_the_place_of_a_unix_socket_is_kept(folder: Any) -> None:
    (folder / "here").write_text("mine")
    assert "in use" in mistake(folder, "tools.py", "--http", "unix:here")
    assert (folder / "here").read_text() == "mine"


def test_a_server_that_ends_leaves_the_unix_socket_of_the_next_one(folder: Any) -> None:
    with serve(folder, http="unix:here") as first:
        call = first.begin_call("wait_for", path=str(folder / "go"))
        first.has_begun(1)
        first.kill()
        eventually(first.is_refused)
        with serve(folder, http="unix:here") as second:  # while the first still works
            (folder / "go").touch()
            assert answer_of(call).text == "waited"
            assert first.wait() == 0
            assert second.call("echo", text="hello") == "hello"


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_port_in_use_is_a_mistake_that_names_the_address(folder: Any, count: str) -> None:
    with serve(folder, "--workers", count) as server:
        address = f"127.0.0.1:{server.port}"
        for workers in ("1", "2"):
            said = mistake(folder, "tools.py", "--http", address, "--workers", workers)
            assert said == f"fastrpc: http: http://{address}: Address already in use\n"
        assert server.call("echo", text="hello") == "hello"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        *[
            (text, "expected HOST:PORT, [IPV6]:PORT or unix:PATH")
            for text in ("127.0.0.1", ":8000", "::1:8000", "127.0.0.1:80000", "127.0.0.1:0000000001")
        ],
        ("unix:", "expected unix:PATH"),
        (f"unix:{'x' * 120}", "is too long for the address of a Unix socket"),
        ("not..a.host:80", "not a host name"),
        ("there-is-no-such-host.invalid:80", "there-is-no-such-host.invalid: "),
        ("192.0.2.1:80", "http://192.0.2.1:80: Cannot assign requested address"),
    ],
)
def test_an_address_that_cannot_be_is_a_mistake(folder: Any, address: str, said: str) -> None:
    assert said in mistake(folder, "tools.py", "--http", address)


# --- mistakes ---------------------------------------------------------------------------------------------

LOCAL = ("--http", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", "2"), "--workers is for HTTP"),
        (("--no-auth",), "--no-auth is for HTTP"),
        (("--tls-cert", "x"), "--tls-cert is for HTTP"),
        ((*LOCAL, "--trace", "no/such/folder"), "no/such/folder: No such file or directory"),
        ((*LOCAL, "--no-auth", "--token-file", "x"), "--no-auth and --token-file exclude each other"),
        ((*LOCAL, "--no-auth", "--auth-server", "https://a"), "--no-auth and --auth-server exclude"),
        ((*LOCAL, "--no-auth"), "FASTRPC_TOKEN is set (environment): give one of them"),
        ((*LOCAL, "--tls-cert", "x"), "--tls-cert needs --tls-key too"),
        ((*LOCAL, "--tls-key", "x"), "--tls-key needs --tls-cert too"),
        ((*LOCAL, "--resource", "https://a/mcp"), "--resource needs --auth-server too"),
        ((*LOCAL, "--tls-cert", "none", "--tls-key", "none"), "tls_cert: none: No such file or directory"),
        ((*LOCAL, "--tls-cert", "tools.py", "--tls-key", "tools.py"), "tls_cert and tls_key: "),
        ((*LOCAL, "--token-file", "none"), "--token-file: cannot read none"),
        ((*LOCAL, "--allow-host", "a b"), "--allow-host: expected a name"),
        ((*LOCAL, "--allow-origin", "page.example"), "--allow-origin: expected scheme://host"),
        ((*LOCAL, "--workers", "0"), "--workers: expected a whole number"),
        ((*LOCAL, "--workers", "300"), "workers: expected 1 to 256, got 300"),
        ((*LOCAL, "--drain-seconds", "-1"), "--drain-seconds: expected a number"),
        (("--http", "0.0.0.0:0", "--auth-server", "https://a"), "cannot be derived from 0.0.0.0:0"),
        (("--http", "unix:x", "--auth-server", "https://a"), "cannot be derived from unix:x"),
        (("--http",), "--http needs a value"),
    ],
)
def test_options_that_do_not_fit_are_one_line_and_exit_code_2(
    folder: Any, options: tuple[str, ...], said: str
) -> None:
    assert said in mistake(folder, "tools.py", *options)


LATE = """
from fastrpc import tool

@tool
def one() -> int:
    return 1

def attach(server):
    def late():
        @tool
        def two(*many: int) -> int:
            return 2
        yield two
    server.load_tools_later(late)
"""


def test_a_tool_that_a_module_attaches_late_is_checked_before_the_server_serves(folder: Any) -> None:
    (folder / "attaching.py").write_text(LATE)
    assert "two (attaching.py, line 10): takes *args" in mistake(folder, "attaching", *LOCAL)


@pytest.mark.parametrize(
    ("options", "environ", "said"),
    [
        (LOCAL, {"FASTRPC_TOKEN": ""}, "a server needs a token"),
        (("--http", "0.0.0.0:0", "--no-auth"), {"FASTRPC_TOKEN": ""}, "for loopback addresses only"),
        (("--http", "example.com:0", "--no-auth"), {"FASTRPC_TOKEN": ""}, "for loopback addresses only"),
        (LOCAL, {"FASTRPC_TOKEN": "short"}, "FASTRPC_TOKEN: the token has 5 characters"),
        (LOCAL, {"FASTRPC_TOKEN": "with a blank in the middle"}, "FASTRPC_TOKEN: expected one token"),
        (LOCAL, {"FASTRPC_SECRET": "short"}, "FASTRPC_SECRET: expected at least 32 bytes, got 5"),
    ],
)
def test_secrets_that_are_none_are_one_line_and_exit_code_2(
    folder: Any, options: tuple[str, ...], environ: dict[str, str], said: str
) -> None:
    assert said in (line := mistake(folder, "tools.py", *options, **environ))
    assert "blank" not in line


@pytest.mark.parametrize("library", ["uvicorn", "httptools"])
def test_without_the_http_server_the_extra_is_named(folder: Any, library: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None; from fastrpc.__main__ import main; sys.exit(main())"
    said = mistake(folder, "serve", "tools.py", *LOCAL, command=[sys.executable, "-c", code])
    assert said == f'fastrpc: http: {library} is not installed; pip install "fastrpc-mcp[http]"\n'


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_target_that_cannot_be_loaded_is_one_line_over_http_too(folder: Any, workers: str) -> None:
    (folder / "broken.py").write_text("import no_such_module")
    said = mistake(folder, "broken.py", *LOCAL, "--workers", workers)
    assert "broken.py" in said
    assert "no_such_module" in said


# --- TLS --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return certificates.for_localhost(tmp_path_factory.mktemp("tls"))


def tls_options(certificate: tuple[str, str]) -> tuple[str, ...]:
    return ("--tls-cert", certificate[0], "--tls-key", certificate[1])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_over_tls_everything_is_served(folder: Any, certificate: tuple[str, str], workers: str) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    options = (*tls_options(certificate), "--workers", workers)
    with serve(folder, *options, tls=context, http="localhost:0") as server:
        assert server.place == f"https://localhost:{server.port}/mcp"
        assert server.call("echo", text="hello") == "hello"
        session = server.session()
        assert session.call("wait", seconds=0.01).text == "waited"
        stream = session.listen()
        server.kill()
        assert "retry: 5000" in [*stream.lines()]
        assert server.wait() == 0


def test_http_to_a_tls_port_is_hung_up_and_serving_goes_on(folder: Any, certificate: tuple[str, str]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    with serve(folder, *tls_options(certificate), tls=context) as server:
        for sent in (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x00", b"\0" * 2000):
            assert b"HTTP" not in said_to(server.port, sent)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        plain = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
        with plain, pytest.raises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(plain)
        assert server.call("echo", text="hello") == "hello"
        assert server.stop() == 0
    assert server.stderr.count("\n") == 1, server.stderr


def said_to(port: int, sent: bytes) -> bytes:
    """Send some bytes, and return what comes back before the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain:
        plain.sendall(sent)
        plain.shutdown(socket.SHUT_WR)
        try:
            return plain.recv(1000)
        except ConnectionResetError:
            return b""


def test_a_tls_handshake_that_does_not_come_is_given_up(folder: Any, certificate: tuple[str, str]) -> None:
    code = (
        "import sys; from fastrpc.transports.http import handshakes\n"
        "assert handshakes.HANDSHAKE_SECONDS <= 10; handshakes.HANDSHAKE_SECONDS = 0.3\n"
        "from fastrpc.__main__ import main; sys.exit(main())"
    )
    arguments = ["serve", "tools.py", *LOCAL, *tls_options(certificate)]
    with Serving(*arguments, command=[sys.executable, "-c", code], folder=folder) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as silent:
            assert silent.recv(1) == b""
        assert server.stop() == 0
    assert server.stderr.count("\n") == 1, server.stderr


def serve_with_few_files(folder: Any, certificate: tuple[str, str]) -> Serving:
    """Serve over TLS in a process that may open 128 files."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
        "from fastrpc.__main__ import main; sys.exit(main())"
    )
    arguments = ["serve", "tools.py", *LOCAL, *tls_options(certificate)]
    context = ssl.create_default_context(cafile=certificate[0])
    return Serving(*arguments, command=[sys.executable, "-c", code], folder=folder, tls=context)


def test_connections_that_never_speak_tls_shut_no_one_out(folder: Any, certificate: tuple[str, str]) -> None:
    """More of them come than the server may open files, and each may be silent for ten seconds."""
    silent = []
    with serve_with_few_files(folder, certificate) as server:
        for number in range(160):
            silent.append(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))
            if number % 2:
                silent[-1].sendall(b"\x16\x03\x01\x02\x00\x01")  # a greeting has begun
            if number % 20 == 19:
                assert server.call("echo", text="hello") == "hello"
        assert "child" in server.call("inherited")  # a tool that starts a program finds files, too
        for connection in silent:
            connection.close()
        assert server.stop() == 0
    assert server.stderr.count("\n") == 1, server.stderr


def test_who_has_spoken_tls_is_not_closed_for_who_has_not(folder: Any, certificate: tuple[str, str]) -> None:
    with serve_with_few_files(folder, certificate) as server:
        call = server.begin_call("wait_for", path=str(folder / "go"))
        server.has_begun(1)
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) for _ in range(160)]
        (folder / "go").touch()
        assert answer_of(call).text == "waited"
        assert server.stop() == 0  # and the end does not wait for them
        for connection in silent:
            connection.close()


def test_a_tls_client_cannot_have_the_handshake_repeated(certificate: tuple[str, str]) -> None:
    from fastrpc.transports.http.settings import HttpSettings

    settings = HttpSettings("127.0.0.1:0", token=TOKEN, tls_cert=certificate[0], tls_key=certificate[1])
    context = settings.context()
    assert context is not None
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION


def test_tls_handshakes_that_do_not_come_shut_no_one_out(folder: Any, certificate: tuple[str, str]) -> None:
    """With 160 files, and more connections than that: the oldest handshake gives way to a new one."""
    command = ["sh", "-c", 'ulimit -n 160; exec "$@"', "sh", *FASTRPC]
    context = ssl.create_default_context(cafile=certificate[0])
    with serve(folder, *tls_options(certificate), tls=context, command=command) as server:
        silent = []
        for number in range(300):
            silent.append(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))
            silent[-1].sendall(b"\x16" if number % 3 else b"")
        assert server.call("echo", text="hello") == "hello"
        assert silent[0].recv(1) == b""
        assert server.stop() == 0
        for each in silent:
            each.close()
    assert server.stderr.count("\n") == 1, server.stderr


def test_a_key_that_does_not_fit_or_is_locked_is_a_mistake(folder: Any, certificate: tuple[str, str]) -> None:
    locked = certificate[1].replace("key.pem", "locked.pem")
    said = mistake(folder, "tools.py", *LOCAL, *tls_options((certificate[0], locked)))
    assert "the key has a password" in said
    said = mistake(folder, "tools.py", *LOCAL, *tls_options((certificate[0], certificate[0])))
    assert "tls_cert and tls_key: " in said


# --- the end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_one_signal_ends_an_idle_server_with_exit_code_0(folder: Any, number: int) -> None:
    """It has nothing to wait for, however long it may wait."""
    with serve(folder, "--drain-seconds", "3600") as server:
        stream = server.session().listen()
        idle = server.connection()
        idle.request("GET", "/healthz")
        assert answer_of(idle).status == 200
        server.kill(number)
        assert "retry: 5000" in [*stream.lines()]
        assert server.wait() == 0
    assert server.stderr.count("\n") == 1, server.stderr
    assert server.stdout == ""


def test_under_nohup_a_hangup_is_no_end(folder: Any) -> None:
    with serve(folder, "--workers", "1", command=["nohup", *FASTRPC]) as server:
        server.kill(signal.SIGHUP)
        time.sleep(0.3)  # that nothing happens cannot be waited for
        assert server.call("echo", text="hello") == "hello"
        assert server.stop() == 0


def test_calls_in_flight_end_within_the_grace_time(folder: Any) -> None:
    with serve(folder) as server:
        go = folder / "go"
        calls = [
            each.begin_call(tool, path=str(go))
            for each in (server, server.session())
            for tool in ("wait_for", "block_for")
        ]
        idle = server.connection()
        idle.request("GET", "/healthz")
        assert answer_of(idle).status == 200
        server.has_begun(4)
        server.kill()
        assert idle.sock.recv(1) == b""
        eventually(server.is_refused)
        go.touch()
        assert [answer_of(call).text for call in calls] == ["waited", "blocked", "waited", "blocked"]
        assert server.wait() == 0
    assert server.stderr.count("\n") == 1, server.stderr


def assert_stopped(answer: Answer) -> None:
    """The answer of a call that was stopped: an error that says why."""
    assert answer.json["error"] == {"code": -32603, "message": "The server has ended"}


def test_a_call_beyond_the_grace_time_is_answered_with_an_error(folder: Any) -> None:
    with serve(folder, "--drain-seconds", "0.3") as server:
        session = server.session()
        calls = [server.begin_call("wait", seconds=30), session.begin_call("block", seconds=30)]
        server.has_begun(2)
        server.kill()
        for call in calls:
            assert_stopped(answer_of(call))
        assert server.wait() == 0


def test_the_second_signal_ends_soon(folder: Any) -> None:
    with serve(folder, "--drain-seconds", "60") as server:
        call = server.begin_call("wait", seconds=30)
        server.has_begun(1)
        server.kill()
        eventually(server.is_refused)
        server.kill(signal.SIGINT)
        assert_stopped(answer_of(call))
        assert server.wait() == 0


def test_streams_end_with_an_event(folder: Any) -> None:
    with serve(folder) as server:
        own, before = server.session().listen(), server.session("2025-06-18").listen()
        message, headers = stateless_request(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
        )
        listening = Stream(server, "POST", "/mcp", message, **headers)
        oldest = Stream(server, "GET", "/sse")
        assert "acknowledged" in next(listening.data())
        server.kill()
        lines = [*own.lines()]
        assert lines[-4:] == ["retry: 5000", "id: 0-0", "data: ", ""], lines
        assert ": the server ends" in [*before.lines()]
        assert '"id":1' in [*listening.data()][-1]
        assert [*oldest.lines()][-1] == ""
        assert server.wait() == 0
    assert server.stderr.count("\n") == 1, server.stderr


LIVING = """
import sys
from contextlib import asynccontextmanager
from fastrpc import Server, processes

@asynccontextmanager
async def life(server):
    yield
    sys.stderr.write("lifespan left\\n")

app = Server("living", lifespan=life)

@app.tool
async def begin() -> str:
    app.begun = await processes.start(["sleep", "60"])
    return str(app.begun.pid)
"""


def test_at_the_end_the_lifespan_is_left_and_the_programs_of_tools_are_ended(folder: Any) -> None:
    (folder / "living.py").write_text(LIVING)
    with Serving("serve", "living.py", *LOCAL, folder=folder) as server:
        program = int(server.call("begin"))
        assert is_alive(program)
        assert server.stop() == 0
    assert server.stderr.endswith("lifespan left\n")
    gone(program)


# --- secrets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_secret_is_in_the_environment_of_a_tool_or_its_programs(folder: Any, workers: str) -> None:
    secret = "a-key-that-signs-and-nobody-else-may-know"
    with serve(folder, "--workers", workers, FASTRPC_SECRET=secret, FASTRPC_HTTP_SESSIONS="7") as server:
        seen = json.loads(server.call("inherited"))
        for place in seen.values():
            assert "FASTRPC_HTTP_SESSIONS" in place  # other settings are
            assert TOKEN not in place
            assert secret not in place


# --- app.run ----------------------------------------------------------------------------------------------


def program(folder: Any, options: str) -> list[str]:
    (folder / "program.py").write_text(f"{TOOLS}\napp.run(http='127.0.0.1:0'{options})\n")
    return [sys.executable, "program.py"]


@pytest.mark.parametrize("options", ["", ", token='a-token-in-the-program'", ", auth=None", ", workers=2"])
def test_run_serves_until_a_signal_comes(folder: Any, options: str) -> None:
    token = {", token='a-token-in-the-program'": "a-token-in-the-program", ", auth=None": None}.get(
        options, TOKEN
    )
    environ = {"FASTRPC_TOKEN": ""} if token is None else {}
    with Serving(command=program(folder, options), folder=folder, token=token, **environ) as server:
        assert server.call("echo", text="hello") == "hello"
        assert TOKEN not in server.call("inherited")
        server.token = "a-token-that-is-none"
        assert server.stateless_request("tools/list", {}).status == (200 if token is None else 401)
        assert server.stop() == 0
    assert server.stdout == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (", auth=None", "without authentication (auth=None, --no-auth), but with token"),
        (", tls_cert='x'", "give both (tls_cert, tls_key)"),
        (", trace='no/such/folder'", "no/such/folder: No such file or directory"),
        (", tokens='x'", "asgi: unknown option 'tokens'"),
        (", workers=0", "workers: expected 1 to 256, got 0"),
        (", secret='short'", "FASTRPC_SECRET: expected at least 32 bytes"),
    ],
)
def test_options_of_run_that_do_not_fit_are_one_line(folder: Any, options: str, said: str) -> None:
    done = subprocess.run(
        program(folder, options),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"fastrpc: {folder}/program.py:")
    assert said in line
    assert TOKEN not in done.stderr


# --- start-up ---------------------------------------------------------------------------------------------


def test_serving_over_standard_input_imports_nothing_of_http(folder: Any) -> None:
    with stdio.serve(TOOLS) as server:
        server.initialize()
        found = server.request("tools/call", {"name": "modules", "arguments": {}})
    modules = found["result"]["content"][0]["text"].split()
    assert "fastrpc.transports.stdio" in modules
    wrong = [
        name
        for name in modules
        if re.match(r"fastrpc\.(transports\.http|cli\._serve_http)|(uvicorn|httptools|h11)\b", name)
    ]
    assert wrong == []
