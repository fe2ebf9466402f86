"""Twelve secrets, planted where secrets are, and a session that gives each of them a reason to show (H3).

None may be found in what the server logs, answers, traces or keeps, nor in the command line or the
environment of any process below it. What a caller writes into a shell command is in that command's own
line: that is the caller's doing and not among the twelve.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from support.process_list import below, read
from support.stdio import SECONDS, Process, encode, serve

PLACES = (
    "signing key in the environment",
    "token in the environment",
    "key of an API in the environment",
    "password in the environment",
    "address with a password in the environment",
    "unknown key in a file",
    "line of a file that is none",
    "signing key in a file",
    "argument of a call",
    "header in an argument",
    "address in an exception",
    "environment in an exception",
    "address of a page",
)
SECRETS = {place: f"planted{number:02}x{place.replace(' ', '')[-6:]}" for number, place in enumerate(PLACES)}

TOOLS = '''
"""Tools that have to do with secrets, and fail."""
import os

from fastrpc import tool


@tool(effect="read")
def connect() -> str:
    """Fail as a database's driver does."""
    raise RuntimeError("cannot connect to postgres://app:%(address in an exception)s@db.example/main")


@tool(effect="read")
async def sign_in() -> str:
    """Fail as a client's library does, with what it was given, and with a cause."""
    try:
        raise ValueError({"api_key": os.environ["SERVICE_API_KEY"]})
    except ValueError as error:
        raise RuntimeError(f"refused: {os.environ['SERVICE_API_KEY']}") from error


@tool(effect="read")
def keep(options: dict[str, object], password: str) -> str:
    """Take secrets and say nothing of them."""
    return "kept"
'''


@pytest.fixture
def folders(tmp_path: Any) -> Any:
    for name in ("home/.claude", "work", "state"):
        (tmp_path / name).mkdir(parents=True)
    lines = [
        f"GITHUB_TOKEN={SECRETS['unknown key in a file']}",
        f"{SECRETS['line of a file that is none']} alone",
        f"FASTRPC_SECRET={SECRETS['signing key in a file']}",
    ]
    (tmp_path / "home" / ".claude" / "scorpiox-env.txt").write_text("\n".join(lines))
    (tmp_path / "work" / "tools_that_fail.py").write_text(TOOLS % SECRETS)
    return tmp_path


def environment(folders: Any) -> dict[str, str]:
    password = SECRETS["address with a password in the environment"]
    return {
        "HOME": str(folders / "home"),
        "FASTRPC_STATE_DIR": str(folders / "state"),
        "FASTRPC_SECRET": SECRETS["signing key in the environment"],
        "FASTRPC_TOKEN": SECRETS["token in the environment"],
        "FASTRPC_API_KEY": SECRETS["key of an API in the environment"],
        "FASTRPC_DB_PASSWORD": SECRETS["password in the environment"],
        "FASTRPC_SEARXNG_URL": f"http://me:{password}@127.0.0.1:9/",
        "FASTRPC_SEARCH_ENGINES": "searxng",
        "SERVICE_API_KEY": SECRETS["environment in an exception"],
    }


SERVICE = {SECRETS["environment in an exception"]}
"""Of another program: it is the user's wish that what the shell starts inherits it."""


class Watched:
    """A session that keeps all that could be seen of it."""

    def __init__(self, server: Process) -> None:
        self.server = server
        self.seen: dict[str, bytes] = {"answers": b"", "process list": b"", "environment of children": b""}

    def call(self, tool: str, **arguments: Any) -> str:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": tool}}
        self.server.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.server.last_id, "method": "tools/call", "params": params}
        self.server.send(encode(message))
        while True:
            line = self.server.line(60)
            self.seen["answers"] += line + b"\n"
            self.look()
            if f'"id":{self.server.last_id},'.encode() in line:
                return line.decode()

    def look(self) -> None:
        """Note the command lines of all processes below the server, itself too, and what they inherit."""
        for pid in (self.server.pid, *below(self.server.pid)):
            self.seen["process list"] += read(f"/proc/{pid}/cmdline") + b"\n"
            if pid != self.server.pid:
                self.seen["environment of children"] += read(f"/proc/{pid}/environ") + b"\n"


def shown(seen: dict[str, bytes]) -> list[str]:
    return [
        f"{place}: {where}"
        for where, data in seen.items()
        for place, secret in SECRETS.items()
        if secret.encode() in data and not (where == "environment of children" and secret in SERVICE)
    ]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")
@pytest.mark.timeout(180)
def test_planted_secrets_show_nowhere(folders: Any) -> None:
    """Configuration: a planted secret shows in no log, answer, trace, state, list of processes or child."""
    trace = folders / "trace"
    options = ["--trace", str(trace), "--log-level", "debug"]
    with serve(
        command=[
            sys.executable,
            "-m",
            "fastrpc",
            "serve",
            *options,
            "fastrpc.tools.agent",
            "tools_that_fail.py",
        ],
        environment=environment(folders),
        folder=str(folders / "work"),
    ) as server:
        server.initialize()
        watched = Watched(server)
        watched.call("BackgroundBash", command="sleep 60")
        listed = watched.call("Bash", command="env; sleep 0.2; echo done; exit 3")
        assert "exit code 3" in listed
        assert "RuntimeError: cannot connect to postgres://" in watched.call("connect")
        assert "RuntimeError: refused" in watched.call("sign_in")
        header = f"Bearer {SECRETS['header in an argument']}"
        sent = {"headers": {"Authorization": header}, "curl": f"-H 'Authorization: {header}'"}
        assert "kept" in watched.call("keep", options=sent, password=SECRETS["argument of a call"])
        watched.call("keep", options={"password": 5}, password=["wrong", SECRETS["argument of a call"]])
        watched.call("ReadDocs", url=f"http://me:{SECRETS['address of a page']}@127.0.0.1:9/page")
        watched.call("WebSearch", query="anything")
        watched.call("TaskManager", action="create", query="", text="A task")
        watched.call("SetCallback", action="set", message="Later", delay_seconds=3600)
        watched.call("ReadImage", file_path="/nowhere.png")
        seen = watched.seen
        server.close_stdin()
        assert server.wait() == 0
        seen["log"] = server.stderr.encode()
        seen["trace"] = trace.read_bytes()
        seen["state"] = b"".join(
            read(os.path.join(folder, name))
            for folder, _, names in os.walk(folders / "state")
            for name in names
        )
    seen["answers"] = without_environment_of_others(seen["answers"])
    assert b"kept" in seen["trace"], "the trace was looked at"
    assert b"sign_in failed" in seen["log"], "the log was looked at"
    assert b"sleep" in seen["process list"], "the children were looked at"
    assert b"HOME=" in seen["environment of children"]
    assert shown(seen) == []


def without_environment_of_others(answers: bytes) -> bytes:
    """What `env` prints of the user's own variables is what the user asked for."""
    return answers.replace(f"SERVICE_API_KEY={SECRETS['environment in an exception']}".encode(), b"")


def test_the_settings_are_printed_without_secrets(folders: Any) -> None:
    """Configuration: `fastrpc config` prints no secret."""
    seen = {}
    for arguments in (["config"], ["config", "--json"], ["tools"]):
        done = subprocess.run(
            [sys.executable, "-m", "fastrpc", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            cwd=folders / "work",
            env={**os.environ, **environment(folders)},
        )
        assert done.returncode == 0, done.stderr
        seen[" ".join(arguments)] = done.stdout + done.stderr
    assert b"http://****@127.0.0.1:9/" in seen["config"]
    assert shown(seen) == []


def test_this_test_would_see_a_secret() -> None:
    assert len(PLACES) >= 12
    assert len(set(SECRETS.values())) == len(PLACES)
    secret = SECRETS["token in the environment"]
    assert shown({"log": b"..." + secret.encode()}) == ["token in the environment: log"]
