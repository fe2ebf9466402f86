"""`fastrpc contracts engine` has the options of `fastrpc serve --http`: each family, by the real command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastrpc.tools.contracts import _engine_command, _settings
from support.contracts_engine import TOKEN, Engine, refusal_of, rpc, token_file
from support.http_server import FASTRPC
from support.token_issuer import RESOURCE, AuthorizationServer
from support.waiting import SECONDS, eventually

from fastrpc import Client, Server
from fastrpc.cli import http_command, serve
from fastrpc.transports.http import run

PAGE = "https://page.example"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_list"}


def post(engine: Engine, token: str | None = TOKEN, **headers: str) -> httpx.Response:
    authorization = {} if token is None else {"authorization": f"Bearer {token}"}
    sent = {"content-type": "application/json", **authorization, **headers}
    return httpx.post(engine.url, json=LIST, headers=sent, timeout=SECONDS, trust_env=False)


def test_it_has_all_options_of_serve_but_those_that_it_cannot_keep(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _engine_command.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert not [line for line in shown.splitlines() if len(line) > 110]
    for option in (*serve.OPTIONS, "--project-config"):
        assert (f"\n  {option} " in shown) is (option not in http_command.LEFT_OUT), option


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        (["--no-auth", "--guard", "guard.toml"], {}, "unknown option '--guard'"),
        (["--no-auth", "--workers", "2"], {}, "unknown option '--workers'"),
        (["--no-auth"], {"FASTRPC_WORKERS": "2"}, "one process serves"),
        (["--no-auth", "here"], {}, "one argument too many: 'here'"),
        (["--no-auth", "--projct-config"], {}, "did you mean '--project-config'?"),
        (["--no-auth", "--project-config=yes"], {}, "--project-config takes no value"),
        (["--no-auth", "--log-level", "loud"], {}, "--log-level: expected one of debug"),
        (["--no-auth", "--scope", "x"], {}, "--scope needs --auth-server too"),
        (["--no-auth", "--auth-server", "https://a.test"], {}, "--no-auth and --auth-server exclude"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, options: list[str], variables: dict[str, str], said: str
) -> None:
    assert said in refusal_of(*options, folder=tmp_path, **variables)


def test_options_reach_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("FASTRPC_TOKEN", "FASTRPC_CONTRACTS_PROJECT_CONFIG"):
        monkeypatch.setenv(name, "")
    for name in ("FASTRPC_DRAIN_SECONDS", "FASTRPC_MAX_IN_FLIGHT", "FASTRPC_LOG_LEVEL"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # set again behind the test
        monkeypatch.delenv(name)
    monkeypatch.setenv("FASTRPC_CONTRACTS_ENGINE", "http://127.0.0.1:8645")
    served: list[tuple[Server, Any]] = []
    monkeypatch.setattr(run, "run", lambda make, settings: served.append((make(), settings)))
    options = "--no-auth --cwd project --project-config --drain-seconds 60 --access-log - --allow-host here"
    options += f" --access-log-format json --allow-origin {PAGE} --max-in-flight 5 --stats --trace t"
    assert _engine_command.main(options.split()) == 0
    ((server, settings),) = served
    assert (settings.address.host, settings.address.port) == ("127.0.0.1", 8645)
    assert (settings.drain_seconds, settings.stats, settings.workers) == (60.0, True, 1)
    assert (settings.access_log, settings.access_log_format) == ("-", "json")
    assert settings.trace == str(tmp_path.resolve() / "project" / "t")
    assert settings.application["max_body"] == _engine_command.MOST_BODY
    assert (settings.application["hosts"], settings.application["origins"]) == (["here"], [PAGE])
    assert (server.max_in_flight, list(server.http_endpoints)) == (5, [_engine_command.PATH])
    assert os.getcwd() == os.path.realpath(tmp_path / "project")
    assert (_settings.PROJECT_CONFIG.read(), _settings.ENGINE.read()) == (True, "")


def test_tokens_of_an_authorization_server_open_it(tmp_path: Path) -> None:
    with AuthorizationServer() as issuing:
        options = ("--auth-server", issuing.issuer, "--resource", RESOURCE, "--scope", "contracts")
        with Engine(tmp_path, *options) as engine:
            good = issuing.token(scope="contracts")
            assert post(engine, good).json()["result"]["ok"] is True
            with Client.sync(f"{engine.root}/mcp", token=good) as client:
                assert not client.call_tool("tachyon_chain_list").is_error
            for token, status in (
                (None, 401),
                (TOKEN, 401),
                (issuing.token(scope="contracts", aud="https://other.test/"), 401),
                (issuing.token(scope="reading"), 403),
            ):
                answer = post(engine, token)
                assert (answer.status_code, answer.json()["ok"]) == (status, False)
                assert token is None or token not in answer.text + engine.stderr


def test_pages_of_an_allowed_origin_may_use_it_and_others_not(tmp_path: Path) -> None:
    with Engine(tmp_path, "--token-file", token_file(tmp_path), "--allow-origin", PAGE) as engine:
        asked = {"origin": PAGE, "access-control-request-method": "POST"}
        asked["access-control-request-headers"] = "authorization, content-type"
        before = httpx.options(engine.url, headers=asked, trust_env=False)
        assert (before.status_code, before.content) == (204, b"")
        assert before.headers["access-control-allow-origin"] == PAGE
        assert "POST" in before.headers["access-control-allow-methods"]
        assert "authorization" in before.headers["access-control-allow-headers"].lower()
        answer = post(engine, origin=PAGE)
        assert answer.json()["result"]["ok"] is True
        assert answer.headers["access-control-allow-origin"] == PAGE
        other = {**asked, "origin": "https://other.example"}
        assert httpx.options(engine.url, headers=other, trust_env=False).status_code == 403
        assert post(engine, origin="https://other.example").status_code == 403
        assert httpx.options(engine.url, trust_env=False).status_code in (401, 405)


def test_a_trace_has_both_directions_of_its_wire_and_no_token(tmp_path: Path) -> None:
    with Engine(tmp_path, "--token-file", token_file(tmp_path), "--trace", "trace") as engine:
        assert post(engine).json()["result"]["ok"] is True
    trace = (tmp_path / "trace").read_text()
    assert "POST /rpc" in trace
    assert '"method":"tachyon_chain_list"' in trace.replace(": ", ":")
    assert '"active_chain_id":"local"' in trace
    assert TOKEN not in trace


def test_statistics_of_its_tools_are_printed_on_a_signal_and_at_the_end(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth", "--stats") as engine:
        with Client.sync(f"{engine.root}/mcp") as client:
            assert not client.call_tool("tachyon_chain_list").is_error
        os.kill(engine.pid, signal.SIGUSR1)
        eventually(lambda: "tachyon_chain_list" in engine.stderr)
        os.kill(engine.pid, signal.SIGTERM)
        assert engine.process.wait(SECONDS) == 0
        eventually(lambda: engine.stderr.count("tachyon_chain_list") == 2)


def test_the_log_goes_to_a_file_from_the_given_level_on(tmp_path: Path) -> None:
    options = ("--log-file", "log", "--log-level", "info", "--token-file", token_file(tmp_path))
    with Engine(tmp_path, *options) as engine:
        assert post(engine, None).status_code == 401
        eventually(lambda: " 401" in (tmp_path / "log").read_text())
        assert engine.stderr.count("\n") == 1, engine.stderr  # where it is; a port may have any digits
    assert TOKEN not in (tmp_path / "log").read_text()


def test_it_serves_on_a_unix_socket(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    (tmp_path / ".git").mkdir()
    command = [
        *FASTRPC,
        "contracts",
        "engine",
        "--http",
        f"unix:{place}",
        "--token-file",
        token_file(tmp_path),
    ]
    variables = {**os.environ, "FASTRPC_TOKEN": "", "FASTRPC_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(command, cwd=tmp_path, env=variables, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(place.exists)
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SECONDS)
                eventually(lambda: client.connect_ex(str(place)) == 0)
                client.sendall(rpc("chain_list"))
                answer = b""
                while b"active_chain_id" not in answer:
                    answer += client.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["result"]["ok"] is True
        finally:
            process.terminate()
