"""`fastrpc contracts engine` as a process, asked over its wire; and programs that never end, for it to run.

Linux only where it looks for programs: it reads /proc.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx

from support.http_server import FASTRPC, HttpProcess
from support.process_list import below
from support.raw_http import Socket
from support.waiting import SECONDS

TOKEN, OTHER_TOKEN = "a-token-for-tests-1", "a-token-for-tests-2"
BEARER = f"Authorization: Bearer {TOKEN}"
STUCK = "271828"  # the argument of sleep, by which a stuck program is found


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
            ready=r"^fastrpc: serving at (http://\S+)/mcp$",
        )
        headers = {"Content-Type": "application/json"}
        if "--no-auth" not in options:
            headers["Authorization"] = f"Bearer {TOKEN}"
        self.client = httpx.Client(headers=headers, timeout=SECONDS, trust_env=False)
        self.folder = folder
        self.root = self.place
        self.url = f"{self.root}/rpc"

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


def refusal_of(*options: str, folder: Path, **variables: str) -> str:
    """Return the line with which the command refuses to start."""
    state = str(folder / "state")
    done = subprocess.run(
        [*FASTRPC, "contracts", "engine", *options],
        cwd=folder,
        env={**os.environ, "FASTRPC_TOKEN": "", "FASTRPC_STATE_DIR": state, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def rpc(verb: str, *headers: str, **params: Any) -> bytes:
    """A whole request, as it goes over a socket."""
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": f"tachyon_{verb}", "params": params}).encode()
    length = f"Content-Length: {len(body)}"
    return head("POST /rpc HTTP/1.1", BEARER, "Content-Type: application/json", length, *headers) + body


def head(line: str, *headers: str, host: str = "127.0.0.1") -> bytes:
    return "\r\n".join([line, f"Host: {host}", *headers, "", ""]).encode()


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
