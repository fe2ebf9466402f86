"""`fastrpc contracts engine`: the real command, asked over its wire; with real programs, and stuck ones."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.child_processes import is_alive
from support.contracts import needs
from support.http_server import FASTRPC, HttpProcess
from support.ports import is_open
from support.raw_http import Socket
from support.waiting import SECONDS, eventually

TOKEN, OTHER_TOKEN = "a-token-for-tests-1", "a-token-for-tests-2"
BEARER = f"Authorization: Bearer {TOKEN}"
STUCK = "271828"  # the argument of sleep, by which a stuck program is found
COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Counter {
    uint256 public value;
    constructor(uint256 v) { value = v; }
    function set(uint256 v) external { require(v != 13, "unlucky"); value = v; }
}
"""
COUNTER_TEST = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
import {Test} from "forge-std/Test.sol";
import {Counter} from "../src/Counter.sol";
contract CounterTest is Test {
    function test_right() external { assertEq(new Counter(7).value(), 7); }
    function test_wrong() external { assertEq(new Counter(7).value(), 8, "not eight"); }
}
"""
SOURCES = {"src/Counter.sol": COUNTER}
BIG = "123456789012345678901234567890"
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_list"}).encode()

FAULTY = """
import sys
from fastrpc.tools.contracts._embedded.engine import EmbeddedEngine
from fastrpc.tools.contracts._engine_server import wire
from fastrpc.__main__ import main

async def broken(self, given, report):
    raise KeyError("a fault of ours")

EmbeddedEngine._artifact_get = broken
wire.SECONDS["test"] = 0.5
sys.exit(main(sys.argv[1:]))
"""
"""The command, with a fault, and a time limit that a test can wait for."""

IMPATIENT = """
import sys
from fastrpc.tools.contracts._engine_server import connection, server
from fastrpc.__main__ import main

connection.SECONDS.update({connection.HEAD: 0.3, connection.BODY: 0.3})
connection.READ_SECONDS = 0.3
server.MOST_CONNECTIONS = 2
sys.exit(main(sys.argv[1:]))
"""
"""The command, with limits of connections that a test can wait for."""


class Engine(HttpProcess):
    """The command's process, and a client of it."""

    def __init__(self, folder: Path, *options: str, command: Any = FASTRPC, **variables: str) -> None:
        state = str(folder / "state")
        environment = {**os.environ, "FASTRPC_TOKEN": "", "FASTRPC_STATE_DIR": state, **variables}
        (folder / ".git").mkdir(exist_ok=True)
        super().__init__(
            *("contracts", "engine", "--http", "127.0.0.1:0", *options),
            command=command,
            folder=folder,
            environment=environment,
            ready=r"^fastrpc: contracts engine: (http://\S+/rpc)$",
        )
        headers = {} if "--no-auth" in options else {"Authorization": f"Bearer {TOKEN}"}
        self.client = httpx.Client(headers=headers, timeout=SECONDS, trust_env=False)
        self.url = self.place
        self.root = self.url.removesuffix("/rpc")

    def close(self) -> None:
        if hasattr(self, "client"):
            self.client.close()
        super().close()

    def post(self, body: Any) -> Any:
        """Send a body, and return the JSON of the answer, which has status 200."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.client.post(self.url, content=content)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    def envelope(self, verb: str, **params: Any) -> dict[str, Any]:
        answer = self.post({"jsonrpc": "2.0", "id": 7, "method": f"tachyon_{verb}", "params": params})
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
        found: dict[str, Any] = answer["result"]
        return found

    def data(self, verb: str, **params: Any) -> dict[str, Any]:
        envelope = self.envelope(verb, **params)
        assert envelope.pop("ok") is True, envelope
        found: dict[str, Any] = envelope.pop("data")
        assert not envelope
        return found

    def error(self, verb: str, **params: Any) -> dict[str, Any]:
        envelope = self.envelope(verb, **params)
        assert envelope["ok"] is False
        found: dict[str, Any] = envelope["error"]
        return found

    def deploy(self, key: str) -> dict[str, Any]:
        return self.data("deploy", **deployment(key))

    def socket(self) -> Socket:
        return Socket(self.port)

    def runs(self, *words: str) -> list[int]:
        """The processes below the server whose command line has these words."""
        return [pid for pid in below(self.pid) if set(words) <= set(command_line(pid))]


def deployment(key: str) -> dict[str, Any]:
    return {"idempotency_key": key, "chain_id": "local", "contract": "Counter", "constructor_args": ["7"]}


def rpc(verb: str, *headers: str, **params: Any) -> bytes:
    """A whole request, as it goes over a socket."""
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": f"tachyon_{verb}", "params": params}).encode()
    return head("POST /rpc HTTP/1.1", BEARER, f"Content-Length: {len(body)}", *headers) + body


def head(line: str, *headers: str, host: str = "127.0.0.1") -> bytes:
    return "\r\n".join([line, f"Host: {host}", *headers, "", ""]).encode()


LIST_REQUEST = rpc("chain_list")


def below(pid: int) -> list[int]:
    """All processes below a process."""
    parents: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def command_line(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")
    except OSError:
        return []


def token_file(folder: Path, text: str = f"# of tests\n{OTHER_TOKEN}\n\n{TOKEN}\n", mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def stuck_programs(folder: Path) -> dict[str, str]:
    """The variables that put a compiler and a forge that never end in the place of the real ones."""
    found = {}
    for name in ("solc", "forge"):
        path = folder / f"stuck-{name}"
        version = f'[ "$1" = --version ] && echo "{name} ${{FASTRPC_TOKEN:-without a token}}" && exit\n'
        path.write_text(f"#!/bin/sh\n{version if name == 'forge' else ''}exec sleep {STUCK}\n")
        path.chmod(0o755)
        found[f"FASTRPC_CONTRACTS_{name.upper()}"] = str(path)
    return found


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine of most tests, with the real programs."""
    folder = tmp_path_factory.mktemp("project")
    with Engine(folder, "--token-file", token_file(folder)) as engine:
        yield engine
        assert engine.stop() == 0
        assert engine.stdout == ""
        assert engine.stderr.count("\n") == 1, engine.stderr  # where it is


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One whose programs never end, and which has a fault."""
    folder = tmp_path_factory.mktemp("stuck")
    command = (sys.executable, "-c", FAULTY)
    with Engine(folder, command=command, FASTRPC_TOKEN=TOKEN, **stuck_programs(folder)) as engine:
        yield engine
        assert engine.stop(signal.SIGINT) == 0
        assert TOKEN not in engine.stderr


# --- the verbs --------------------------------------------------------------------------------------------


@needs("solc")
@needs("anvil")
def test_from_a_source_text_to_a_called_contract(engine: Engine) -> None:
    made = engine.data("compile", sources=SOURCES, project_id="p", optimize=True)
    assert [each["name"] for each in made["artifacts"]] == ["Counter"]
    got = engine.data("artifact_get", name="Counter", project_id="p", include=["abi"])["artifact"]
    assert (got["path"], "bytecode" in got) == ("src/Counter.sol", False)
    first = engine.deploy("counter-1")
    assert (first["existing"], first["receipt"]["status"]) == (False, "success")
    to = first["address"]
    done = engine.data("call", to=to, method="set", args=[BIG], value="0")
    assert done["receipt"]["status"] == "success"
    assert engine.data("call", to=to, method="value", chain_id="31337")["decoded"] == BIG
    unlucky = "0x60fe47b1" + (13).to_bytes(32, "big").hex()
    assert engine.data("simulate", to=to, data=unlucky)["revert"]["reason"] == "unlucky"
    looked = engine.data("registry_lookup", idempotency_key="counter-1", chain_id="local")
    assert (looked["found"], looked["address"], looked["confirmed"]) == (True, to, True)
    error = engine.error("call", to=to, method="set", args=["13"])
    assert (error["code"], error["retry"], error["details"]["revert"]["reason"]) == (
        "CALL_FAILED",
        False,
        "unlucky",
    )


@needs("solc")
def test_all_parts_of_large_artifacts_are_in_the_answer(engine: Engine) -> None:
    body = "".join(f"function f{n}() external pure returns (uint256) {{ return {n}; }}" for n in range(150))
    source = f"// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0;\ncontract Large {{ {body} }}"
    (artifact,) = engine.data("compile", sources={"Large.sol": source}, project_id="large")["artifacts"]
    assert len(artifact["abi"]) == 150
    assert artifact["bytecode"].startswith("0x60")


@needs("solc")
@needs("forge")
def test_failed_tests_are_data_and_details(engine: Engine) -> None:
    sources = {**SOURCES, "test/Counter.t.sol": COUNTER_TEST}
    envelope = engine.envelope("test", sources=sources)
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "TEST_ASSERTION_FAILED")
    assert envelope["data"] == envelope["error"]["details"]
    assert (envelope["data"]["passed"], envelope["data"]["failed"]) == (1, 1)
    assert engine.data("test", sources=sources, filter="test_right")["failed"] == 0


def test_a_registered_chain_is_listed_and_the_local_one_stays_active(engine: Engine) -> None:
    url = "https://user:secret@node.example/"
    shown = engine.data("chain_register", id="sepolia", rpc_url=url, chain_id="11155111")
    assert (shown["chain_id"], "secret" in json.dumps(shown)) == (11155111, False)
    listed = engine.data("chain_list")
    assert [each["id"] for each in listed["chains"]] == ["local", "sepolia"]
    for local in ("local", 31337, "31337"):
        assert engine.data("chain_use", chain_id=local) == listed
    error = engine.error("chain_use", chain_id="sepolia")
    assert (error["code"], "local is always the active one" in error["message"]) == ("INVALID_REQUEST", True)
    assert engine.error("chain_use", chain_id="moon")["code"] == "CHAIN_NOT_FOUND"
    for params in ({}, {"chain_id": None}, {"chain": "local"}, {"chain_id": [1]}):
        assert engine.error("chain_use", **params)["code"] == "INVALID_REQUEST"


def test_health_says_what_is_served(engine: Engine, stuck: Engine) -> None:
    found = engine.data("health")
    assert found["project_root"] == os.path.realpath(os.path.dirname(token_path(engine)))
    assert found["chains"][0] == "local"
    assert found["version"]
    assert stuck.data("health")["forge"] == "forge without a token"  # no program inherits it


def token_path(engine: Engine) -> str:
    arguments = command_line(engine.pid)
    return arguments[arguments.index("--token-file") + 1]


@pytest.mark.parametrize("path", ["/", "/healthz"])
def test_whether_it_lives_is_public_and_says_no_more(engine: Engine, path: str) -> None:
    answer = httpx.get(engine.root + path, trust_env=False)
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    assert answer.json()["data"].keys() == {"engine", "version"}


def test_mistakes_are_envelopes(engine: Engine) -> None:
    envelope = engine.envelope("artifact_get", nam="A")
    assert envelope.keys() == {"ok", "error"}
    assert envelope["error"]["code"] == "INVALID_REQUEST"
    assert "did you mean name?" in envelope["error"]["message"]
    assert engine.error("health", all=True)["code"] == "INVALID_REQUEST"


# --- JSON-RPC ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [0, -1, 2**70, 1.5, "a\n\u1f600", None])
def test_the_id_comes_back_as_it_was_sent(engine: Engine, id: Any) -> None:
    answer = engine.post({"jsonrpc": "2.0", "id": id, "method": "tachyon_chain_list", "params": None})
    assert answer["id"] == id
    assert answer["result"]["ok"] is True


@pytest.mark.parametrize(
    ("body", "id", "code"),
    [
        (b"", None, -32700),
        (b"{", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tachyon_chain_list","x":"\xff"}', None, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"tachyon_chain_list"}', None, -32700),
        (b"[" * 200_000, None, -32700),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_list"}], None, -32600),
        ("tachyon_chain_list", None, -32600),
        ({"id": 1, "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "id": [1], "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_lst"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "chain_list"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tachyon_tachyon_test"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": "x", "method": "tachyon_chain_list", "params": []}, "x", -32602),
        ({"jsonrpc": "2.0", "id": "x", "method": "tachyon_chain_list", "params": "all"}, "x", -32602),
    ],
)
def test_what_is_no_request_is_an_error_of_json_rpc(engine: Engine, body: Any, id: Any, code: int) -> None:
    answer = engine.post(body)
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert answer["error"]["message"]
    assert "result" not in answer


def test_an_unexpected_fault_is_an_envelope_and_the_next_request_is_served(stuck: Engine) -> None:
    error = stuck.error("artifact_get", name="Counter")
    assert (error["code"], error["message"]) == ("INTERNAL_ERROR", "KeyError, see the engine's log")
    assert stuck.data("chain_list")["chains"]
    eventually(lambda: "a fault of ours" in stuck.stderr)


def test_what_takes_too_long_is_ended(stuck: Engine) -> None:
    sources = {**SOURCES, "test/Counter.t.sol": COUNTER_TEST}
    error = stuck.error("test", sources=sources)
    assert (error["code"], error["message"]) == ("ENGINE_TIMEOUT", "not done after 0.5 s, and ended")
    eventually(lambda: not stuck.runs("sleep", STUCK))


# --- who may use it ---------------------------------------------------------------------------------------

UNAUTHORIZED = {
    "ok": False,
    "data": None,
    "error": {"code": "INVALID_REQUEST", "message": "missing or invalid bearer token", "retry": False},
}


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (f"Authorization: {TOKEN}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        ("Authorization: Bearer # of tests",),
        ("Authorization: Bearer ",),
        (BEARER, BEARER),
    ],
)
def test_without_its_token_a_request_is_refused_before_its_body_is_read(
    engine: Engine, headers: tuple[str, ...]
) -> None:
    with engine.socket() as client:
        client.send(head("POST /rpc HTTP/1.1", "Content-Length: 1000", *headers))
        answer = client.answer()
        assert (answer.status, answer.json) == (401, UNAUTHORIZED)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert client.is_closed()


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer  {TOKEN}", f"Bearer {OTHER_TOKEN}"])
def test_each_token_of_the_file_opens(engine: Engine, given: str) -> None:
    answer = httpx.post(engine.url, content=LIST, headers={"Authorization": given}, trust_env=False)
    assert answer.json()["result"]["ok"] is True


@pytest.mark.parametrize(
    ("host", "headers", "status"),
    [
        ("localhost", (), 200),
        ("LOCALHOST.:1", (), 200),
        ("127.0.0.1:8645", (), 200),
        ("[::1]:8645", (), 200),
        ("rebound.example", (), 421),
        ("127.0.0.1.example", (), 421),
        ("192.0.2.1", (), 421),
        ("", (), 400),
        ("127.0.0.1", ("Host: 127.0.0.1",), 400),
        ("127.0.0.1", ("Origin: http://rebound.example",), 403),
        ("127.0.0.1", ("Origin: http://127.0.0.1:3000",), 403),
        ("127.0.0.1", ("Origin: null",), 403),
        ("127.0.0.1", ("Sec-Fetch-Site: cross-site",), 403),
        ("127.0.0.1", ("Sec-Fetch-Site: same-site",), 403),
        ("127.0.0.1", ("Sec-Fetch-Site: none",), 200),
    ],
)
@pytest.mark.parametrize("line", ["GET /healthz HTTP/1.1", "POST /rpc HTTP/1.1"])
def test_other_names_and_pages_are_refused(
    engine: Engine, line: str, host: str, headers: tuple[str, ...], status: int
) -> None:
    body = LIST if line.startswith("POST") else b""
    length = (f"Content-Length: {len(body)}",) if body else ()
    with engine.socket() as client:
        client.send(head(line, BEARER, *length, *headers, host=host) + body)
        answer = client.answer()
        assert answer.status == status
        assert status == 200 or answer.json["error"]["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /rpc HTTP/1.1", 405),
        ("POST /healthz HTTP/1.1", 405),
        ("POST /rpc/ HTTP/1.1", 404),
        ("GET /artifacts HTTP/1.1", 404),
        ("POST http://127.0.0.1/rpc HTTP/1.1", 404),
    ],
)
def test_nothing_else_is_there(engine: Engine, line: str, status: int) -> None:
    with engine.socket() as client:
        client.send(head(line, BEARER))
        answer = client.answer()
        assert (answer.status, answer.json["ok"]) == (status, False)


def refused(folder: Path, *options: str, **variables: str) -> str:
    """What the command says that does not start, in one line."""
    done = subprocess.run(
        [*FASTRPC, "contracts", "engine", *options],
        cwd=folder,
        env={**os.environ, "FASTRPC_TOKEN": "", "FASTRPC_STATE_DIR": str(folder / "state"), **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("fastrpc: contracts engine: ")
    return line


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        ([], {}, "nobody may use it without a token: give --token-file FILE"),
        ([], {"FASTRPC_TOKEN": " "}, "nobody may use it without a token"),
        ([], {"FASTRPC_TOKEN": "too-short"}, "FASTRPC_TOKEN: a token has 16 to 16384 characters"),
        (["--no-auth"], {"FASTRPC_TOKEN": TOKEN}, "--no-auth, but FASTRPC_TOKEN is set"),
        (["--no-auth", "--token-file", "x"], {}, "--no-auth, but --token-file is given"),
        (["--no-auth", "--http", "0.0.0.0:0"], {}, "--no-auth is for loopback addresses only"),
        (["--no-auth", "--http", "[::]:0"], {}, "--no-auth is for loopback addresses only"),
        (["--token-file", "missing"], {}, "--token-file: cannot read missing: No such file"),
        (["--no-auth", "--http", "8645"], {}, "--http: expected HOST:PORT"),
        (["--no-auth", "--http", "::1:8645"], {}, "--http: expected HOST:PORT"),
        (["--no-auth", "--http", "127.0.0.1:70000"], {}, "--http: expected HOST:PORT"),
    ],
)
def test_it_does_not_start_without_knowing_who_may_use_it(
    tmp_path: Path, options: list[str], variables: dict[str, str], said: str
) -> None:
    line = refused(tmp_path, *options, **variables)
    assert said in line
    assert "too-short" not in line


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        (TOKEN, 0o604, "others may use"),
        ("# none\n", 0o600, "there is no token in"),
        (f"{TOKEN}\nseven words that are a secret too", 0o600, "line 2 of"),
        ("a-secret", 0o600, "a token has 16 to 16384 characters, this one 8"),
    ],
)
def test_a_file_of_tokens_is_checked_and_not_quoted(tmp_path: Path, text: str, mode: int, said: str) -> None:
    line = refused(tmp_path, "--token-file", token_file(tmp_path, text, mode))
    assert said in line
    assert "secret" not in line


def test_an_address_that_is_taken_is_said(tmp_path: Path, engine: Engine) -> None:
    line = refused(tmp_path, "--no-auth", "--http", f"127.0.0.1:{engine.port}")
    assert line.endswith(": Address already in use")


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'httptools' else found(name, *more)\n"
    )
    line = refused(tmp_path, "--no-auth", PYTHONPATH=str(tmp_path))
    assert line.endswith('httptools is not installed; pip install "fastrpc-mcp[contracts,http]"')


# --- HTTP -------------------------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_whether_its_length_is_said_or_not(engine: Engine) -> None:
    size = 32 * 1024 * 1024
    with engine.socket() as client:
        client.send(head("POST /rpc HTTP/1.1", BEARER, f"Content-Length: {size + 1}"))
        assert client.answer().status == 413
    with engine.socket() as client:
        client.send(head("POST /rpc HTTP/1.1", BEARER, "Transfer-Encoding: chunked"))
        piece = b"%x\r\n%s\r\n" % (1024 * 1024, b" " * (1024 * 1024))
        for _ in range(33):
            client.send(piece)
        assert client.answer().status == 413
    with engine.socket() as client:  # one byte less is read
        client.send(head("POST /rpc HTTP/1.1", BEARER, f"Content-Length: {size}"))
        client.send(LIST + b" " * (size - len(LIST)))
        assert client.answer().json["result"]["ok"] is True


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 400_000, 431),
        (head("GET / HTTP/1.1", "Content-Length: 5"), 400),
        (head("GET / HTTP/1.1", "Transfer-Encoding: chunked"), 400),
        (head("POST /rpc HTTP/1.1", BEARER, "Connection: Upgrade", "Upgrade: h2c"), 400),
        (head("POST /rpc HTTP/1.1", BEARER, "Content-Length: 1", "Transfer-Encoding: chunked"), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ],
    ids=["a head without an end", "a body of GET", "chunks of GET", "an upgrade", "two lengths", "TLS"],
)
def test_a_broken_request_is_answered_once_and_its_connection_closed(
    engine: Engine, sent: bytes, status: int
) -> None:
    with engine.socket() as client:
        client.send(sent)
        answer = client.answer()
        assert (answer.status, answer.json["ok"]) == (status, False)
        assert client.is_closed()


def test_requests_of_one_connection_are_answered_in_their_order(engine: Engine) -> None:
    requests = [rpc("chain_use", chain_id=f"c{number}") for number in range(20)]
    with engine.socket() as client:
        client.send(b"".join(requests) + head("GET /nothing HTTP/1.1"))
        for number in range(20):
            assert f'no chain "c{number}"' in client.answer().json["result"]["error"]["message"]
        assert client.answer().status == 404
        assert client.is_closed()


def test_a_request_may_come_byte_by_byte_and_wait_for_leave_to_send_its_body(engine: Engine) -> None:
    request, _, body = rpc("chain_list", "Expect: 100-continue", "Connection: close").partition(b"\r\n\r\n")
    with engine.socket() as client:
        for byte in request + b"\r\n\r\n":
            client.send(bytes([byte]))
        assert client.answer().status == 100
        client.send(body)
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.is_closed()


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("impatient")
    with Engine(folder, "--no-auth", command=(sys.executable, "-c", IMPATIENT)) as engine:
        yield engine
        assert engine.stop() == 0
        assert engine.stderr.count("\n") == 1, engine.stderr


@pytest.mark.parametrize(
    "part", [b"POST /rpc HTT", head("POST /rpc HTTP/1.1", "Content-Length: 9") + b"{"], ids=["head", "body"]
)
def test_a_request_that_comes_too_slowly_is_given_up(impatient: Engine, part: bytes) -> None:
    with impatient.socket() as client:
        client.send(part)
        assert client.answer().status == 408
        assert client.is_closed()


def test_a_client_that_does_not_read_is_not_served_on_and_let_go(impatient: Engine) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": "x" * 1_000_000, "method": None}).encode()  # as long an answer
    request = head("POST /rpc HTTP/1.1", f"Content-Length: {len(body)}") + body
    with impatient.socket() as client:
        client.plain.settimeout(SECONDS)
        with pytest.raises(ConnectionError):  # once the server has read no more, and then closed
            client.plain.sendall(request * 50)


def test_connections_beyond_the_limit_are_turned_away(impatient: Engine) -> None:
    with impatient.socket() as one, impatient.socket() as other:
        for client in (one, other):
            client.send(LIST_REQUEST)
            assert client.answer().status == 200
        with impatient.socket() as third:
            assert third.answer().status == 503
            assert third.is_closed()
        one.send(LIST_REQUEST)
        assert one.answer().status == 200


# --- clients that go, work that goes on -------------------------------------------------------------------


def test_lists_and_lookups_do_not_wait_behind_a_compilation(stuck: Engine) -> None:
    with stuck.socket() as client:
        client.send(rpc("compile", sources=SOURCES))
        eventually(lambda: stuck.runs("sleep", STUCK))
        assert stuck.data("chain_list")["chains"]
        looked = stuck.data("registry_lookup", idempotency_key="k", chain_id="local")
        assert looked["found"] is False
        assert stuck.data("chain_register", id="c", rpc_url="https://node.example", chain_id=5)
        assert stuck.data("health")["chains"]
        assert stuck.runs("sleep", STUCK)  # all that was beside it
        assert not client.has_more()
    eventually(lambda: not stuck.runs("sleep", STUCK))  # its client has gone, and so is it


@needs("solc")
@needs("anvil")
def test_a_deployment_goes_on_when_its_client_has_gone(engine: Engine) -> None:
    engine.data("compile", sources=SOURCES)
    engine.deploy("before")  # the chain runs, and its lock is there
    state = Path(token_path(engine)).parent / "state"
    (lock,) = state.glob("contracts/*/broadcast-31337.lock")
    with open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with engine.socket() as client:
            client.send(rpc("deploy", **deployment("gone")))
            eventually(lambda: str(lock) in opened_by(engine.pid))  # it has begun, and waits
        assert engine.data("chain_list")["chains"]  # by now the server knows that the client has gone
        assert not engine.data("registry_lookup", idempotency_key="gone", chain_id="local")["found"]
    looked = {"idempotency_key": "gone", "chain_id": "local"}
    found = eventually(lambda: engine.data("registry_lookup", **looked)["confirmed"])
    assert found is True
    assert engine.deploy("gone")["existing"] is True


def opened_by(pid: int) -> list[str]:
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found


# --- the end ----------------------------------------------------------------------------------------------


@needs("solc")
@needs("anvil")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_program_outlives_it(tmp_path: Path, number: int) -> None:
    with Engine(tmp_path, "--no-auth") as engine:
        engine.data("compile", sources=SOURCES)
        engine.data("simulate", to="0x" + "11" * 20)
        programs = below(engine.pid)
        names = " ".join(" ".join(command_line(pid)) for pid in programs)
        assert "anvil" in names
        assert engine.stop(number) == (0 if number != signal.SIGKILL else -signal.SIGKILL)
        eventually(lambda: not [pid for pid in programs if is_alive(pid)])
        assert engine.stdout == ""


def test_what_the_end_cuts_off_says_so(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth", **stuck_programs(tmp_path)) as engine:
        found: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: found.append(engine.error("compile", sources=SOURCES)))
        asking.start()
        programs = eventually(lambda: engine.runs("sleep", STUCK))
        engine.kill()
        eventually(lambda: not is_open(engine.port))
        engine.kill()  # the second one waits for nothing
        assert engine.wait() == 0
        asking.join(SECONDS)
        assert (found[0]["code"], found[0]["retry"]) == ("ENGINE_UNAVAILABLE", True)
        eventually(lambda: not [pid for pid in programs if is_alive(pid)])


def test_it_asks_no_other_engine_not_even_itself(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth", FASTRPC_CONTRACTS_ENGINE="http://127.0.0.1:9") as engine:
        assert engine.data("chain_list")["active_chain_id"] == "local"
