"""G10: secrets that are planted wherever a guarded server has some show in nothing that it, or its commands,
put out: over stdio and HTTP, on SQLite and PostgreSQL, in any spelling."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from support.http_server import FASTRPC, HttpProcess
from support.process_list import below, read
from support.secret_search import escaped, found_in, spellings
from support.token_issuer import CURVE, RESOURCE, AuthorizationServer
from support.waiting import eventually

from fastrpc import Client
from fastrpc.errors import RemoteError
from fastrpc.signed_requests import signature_of

pytestmark = pytest.mark.long

pytest_plugins = ["support.postgres"]

SECRETS = {
    "token of the file, from the vault": "vault-Token-1-q8Zr5yPw",
    "secret of the approvals' webhook": "Hook-Secret-2-k4Vn9sLd",
    "secret of the audit's webhook": "Audit-Hook-3-m7Xc2bTf",
    "header of a request": "Header-Key-4-p6Gh1jRw",
    "cookie of a request": "Cookie-Val-5-z3Nv8kQe",
    "argument with a secret's name": "Argument-Pw-6-t9Bm4xYc",
    "argument within an object": "Nested-Key-7-d2Fs7gLa",
    "token in a text": "Text-Token-8-v5Kj3nHu",
    "bearer in a list": "Bearer-Val-9-w1Qp6rZi",
    "variable of the environment": "Env-Value-10-c8Ty2mXo",
    "password of an exception": "Exc-Passw-11-h4Dw9bNs",
    "key of a cause": "Cause-Key-12-r7Lf5vGk",
    "argument that does not fit": "Misfit-Pw-13-e3Jx8zCt",
    "edited argument": "Edited-Pw-14-n6Ub1yAq",
}
TOOLS = """
import subprocess
from fastrpc import Server

app = Server("shop")

@app.tool(effect="exec")
def wipe(place: str, password: str = "", options: dict[str, object] | None = None, note: str = "") -> str:
    return f"wiped {place}"

@app.tool(effect="read")
def connect() -> str:
    raise RuntimeError("cannot connect to postgres://app:%(password of an exception)s@db.example/main")

@app.tool(effect="read")
def sign_in() -> str:
    try:
        raise ValueError({"api_key": "%(key of a cause)s"})
    except ValueError as error:
        raise RuntimeError("refused") from error

@app.tool(effect="read")
def spawn(seconds: float) -> str:
    subprocess.run(["sleep", str(seconds)])
    return "slept"
"""
GUARD = """
tokens = [{{ id = "filed", token = "{{{{vault:filed}}}}" }}]

[expose]
tools = ["*"]
budget = ["1000 calls/day"]

[approvals]
hold_seconds = 100
editable = ["wipe"]
[approvals.webhook]
url = "{url}/approvals"
secret = "file:hook-secret"

[audit]
key_file = "{keys}/audit.pem"
[[audit.targets]]
webhook = "{url}/audit"
secret = "env:AUDIT_HOOK_SECRET"
[[audit.targets]]
folder = "{folder}/checkpoints"

[[rules]]
id = "not-home"
tools = ["wipe"]
when = 'args.place == "/home" && args.password != "" && args.note != "" && size(args.options) > 0'
then = "deny"
reason = "nobody wipes that"
"""


class Receiver:
    """What is sent to the webhooks: headers and bodies."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.came.append(self.path.encode() + b"\n" + bytes(self.headers) + body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def issuing() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


class Watched:
    """A server that is configured with all secrets, and whatever can be seen of it."""

    def __init__(self, folder: Path, receiver: Receiver, database: str = "") -> None:
        self.folder = folder / "work"
        self.keys = folder / "keys"
        for each in (self.folder, self.keys):
            each.mkdir()
        self.receiver = receiver
        key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        text = GUARD.format(url=receiver.url, keys=self.keys, folder=self.folder)
        for path, content in (
            (self.keys / "audit.pem", key.decode()),
            (self.folder / "vault", f"filed = {SECRETS['token of the file, from the vault']}\n"),
            (self.folder / "hook-secret", SECRETS["secret of the approvals' webhook"] + "\n"),
            (self.folder / "shop.py", TOOLS % SECRETS),
            (self.folder / "guard.toml", text),
        ):
            path.write_text(content)
            path.chmod(0o600)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
        self.variables = {
            **kept,
            "FASTRPC_STATE_DIR": str(self.folder / "state"),
            "AUDIT_HOOK_SECRET": SECRETS["secret of the audit's webhook"],
            "SERVICE_API_KEY": SECRETS["variable of the environment"],
            **({"FASTRPC_GUARD_DATABASE": database} if database else {}),
        }
        (key_line,) = key.decode().splitlines()[1:-1]
        self.secrets = {name: secret.encode() for name, secret in SECRETS.items()}
        self.secrets["the audit's signing key"] = base64.b64decode(key_line)[-32:]
        self.seen: dict[str, bytes] = {}
        said = self.command("token", "create", "--owner", "ada", "--class", "agent", "--json")
        self.token = str(json.loads(said)["token"])
        self.secrets["token of the database"] = self.token.split("_", 2)[2].encode()

    def command(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [*FASTRPC, *arguments], cwd=self.folder, env=self.variables, capture_output=True, timeout=60
        )
        assert done.returncode == code, done.stdout + done.stderr
        if arguments[:2] != ("token", "create"):  # which shows it, once
            self.note(f"fastrpc {' '.join(arguments[:2])}", done.stdout + done.stderr)
        return done.stdout.decode()

    def note(self, place: str, data: bytes) -> None:
        self.seen[place] = self.seen.get(place, b"") + data + b"\n"

    def look(self, pid: int) -> None:
        """Note the command lines of a server and all below it, and what the latter have inherited."""
        for each in (pid, *below(pid)):
            self.note("process list", read(f"/proc/{each}/cmdline"))
            if each != pid:
                self.note("environment of children", read(f"/proc/{each}/environ"))

    def conversation(self, client: Any, pid: int) -> None:
        """Have each secret of a call come to the guard, the tools, the approvers and the log."""
        arguments: dict[str, Any] = {
            "password": SECRETS["argument with a secret's name"],
            "options": {
                "headers": {"X-Api-Key": SECRETS["argument within an object"]},
                "curl": [f"Authorization: Bearer {SECRETS['bearer in a list']}"],
                "value": SECRETS["variable of the environment"],
            },
            "note": f"log in with token={SECRETS['token in a text']}",
        }
        with ThreadPoolExecutor(2) as pool:
            assert self.outcome(client, "wipe", place="/home", **arguments) in (403, -32000)
            held = pool.submit(self.outcome, client, "wipe", place="x", **arguments)
            approval = self.only_waiting()
            self.command("approvals", "show", approval)
            said = self.command(
                "approvals", "edit", approval, f"password={SECRETS['edited argument']}", code=2
            )
            assert "contain a secret" in said + self.seen["fastrpc approvals edit"].decode()
            self.command("approvals", "edit", approval, "note=nothing")
            assert held.result(60) == "wiped x"
            held = pool.submit(self.outcome, client, "wipe", place="y", **arguments)
            approval = self.only_waiting()
            self.command("approvals", "reject", approval, "--comment", "no")
            assert held.result(60) in (403, -32001)
            assert "cannot connect" in self.outcome(client, "connect")
            assert "refused" in self.outcome(client, "sign_in")
            self.outcome(client, "wipe", place=7, password=[SECRETS["argument that does not fit"]])
            sleeping = pool.submit(self.outcome, client, "spawn", seconds=60.0)
            program = eventually(lambda: next(filter(is_sleep, below(pid)), None))
            self.look(pid)
            os.kill(program, signal.SIGTERM)
            assert sleeping.result(60) == "slept"

    def outcome(self, client: Any, tool: str, **arguments: Any) -> Any:
        """Return the text of a result, or the error's code; what the caller reads is noted."""
        progress: list[Any] = []
        try:
            result = client.call_tool(tool, arguments, on_progress=progress.append)
        except RemoteError as error:
            self.note("answers", repr((error, error.data, progress)).encode())
            return error.code
        self.note("answers", repr((result.text, result, progress)).encode())
        return result.text

    def only_waiting(self) -> str:
        def waiting() -> list[Any]:
            found: list[Any] = json.loads(self.command("approvals", "list", "--json"))
            return found

        return str(eventually(waiting)[0]["id"])

    def commands(self) -> None:
        """Note what the commands say about what has happened."""
        self.command("audit", "export")
        self.command("audit", "export", "--format", "csv")
        self.command("audit", "tail")
        self.command("audit", "verify", "--public-key", str(self.keys / "audit.pem.pub"))
        lines = self.command("audit", "search", "--json").splitlines()
        for line in lines:
            self.command(
                "guard", "why", json.loads(line)["id"], "guard.toml"
            ) if '"refused"' in line else None
        assert any('"refused"' in line for line in lines)
        self.command("approvals", "list", "--all")
        listed = json.loads(self.command("approvals", "list", "--all", "--json"))
        assert {each["state"] for each in listed} >= {"used", "rejected"}
        for each in listed:
            self.command("approvals", "show", each["id"])
        self.command("token", "list")
        self.command("budgets", "list", "--json")
        self.command("guard", "check", "guard.toml", "shop.py:app")

    def files(self) -> None:
        """Note what is kept: of the state, the audit log, the targets, the log and the trace."""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if (
                    name not in ("vault", "hook-secret", "shop.py", "guard.toml")
                    and "__pycache__" not in folder
                ):
                    path = os.path.join(folder, name)
                    self.note(os.path.relpath(path, self.folder), read(path))
        self.note("webhooks", b"\n".join(self.receiver.came))

    def check(self) -> None:
        # A mistake of the search itself would show here: each output has what only it has.
        for place, part in (
            ("answers", b"nobody wipes that"),
            ("process list", b"sleep"),
            ("environment of children", b"PATH="),
            ("webhooks", b'"event": "asked"'),
            ("webhooks", b"/audit\n"),
            ("fastrpc audit search", b'"because"'),
            ("fastrpc guard why", b"not-home"),
            ("fastrpc approvals show", b"****"),
            ("log", b"connect failed"),
        ):
            assert part in self.seen[place], (place, self.seen[place][-2000:])
        # It is the user's wish that programs of tools inherit variables of others.
        inherited = self.seen.pop("environment of children")
        own = f"SERVICE_API_KEY={SECRETS['variable of the environment']}".encode()
        self.seen["environment of children"] = inherited.replace(own, b"")
        found = found_in(self.seen, self.secrets)
        assert not found, "\n".join(found)


def is_sleep(pid: int) -> bool:
    """Whether a process is the program that the tool has begun: it may be about to become that."""
    return read(f"/proc/{pid}/cmdline").startswith(b"sleep\0")


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes through /proc")


@needs_proc
@pytest.mark.timeout(180)
def test_over_stdio_no_planted_secret_shows(tmp_path: Path, receiver: Receiver) -> None:
    watched = Watched(tmp_path, receiver)
    options = ("--log-file", "log", "--log-level", "debug", "--trace", "trace")
    command = [*FASTRPC, "serve", *options, "shop.py:app", "--guard", "guard.toml"]
    variables = {**watched.variables, "FASTRPC_TOKEN": watched.token}
    before = set(below(os.getpid()))
    with Client.sync(command, cwd=str(watched.folder), env=variables) as client:
        server = next(
            pid
            for pid in below(os.getpid())
            if pid not in before and b"serve" in read(f"/proc/{pid}/cmdline")
        )
        watched.conversation(client, server)
        asked: list[Any] = []
    accepts = {"action": "accept", "content": {}}

    def answer(request: Any) -> Any:
        asked.append(request)
        return accepts

    with Client.sync(command, cwd=str(watched.folder), env=variables, on_elicit=answer) as client:
        assert (
            watched.outcome(client, "wipe", place="z", password=SECRETS["argument with a secret's name"])
            == "wiped z"
        )
    watched.note("forms", repr([(each, getattr(each, "__dict__", "")) for each in asked]).encode())
    assert asked
    assert b"wipe" in watched.seen["forms"]
    eventually(lambda: any(each.startswith(b"/audit") for each in receiver.came))
    watched.commands()
    watched.files()
    watched.check()
    assert "state/guard.sqlite3" in watched.seen


@needs_proc
@pytest.mark.timeout(180)
def test_over_http_no_planted_secret_shows(
    tmp_path: Path, receiver: Receiver, issuing: AuthorizationServer, request: pytest.FixtureRequest
) -> None:
    from support.postgres import program

    database, cluster, name = "", None, ""
    if program("postgres") is not None:
        cluster = request.getfixturevalue("postgres")
        name = cluster.new_database()
        who = f"{cluster.password_user}:{quote(cluster.password, safe='')}"
        database = f"postgresql://{who}@/{name}?host={cluster.folder}"
    watched = Watched(tmp_path, receiver, database)
    if cluster is not None:
        watched.secrets["password of the database"] = cluster.password.encode()
    jwt = issuing.token(CURVE)
    watched.secrets["signature of a JWT"] = jwt.rpartition(".")[2].encode()
    options = ("--log-file", "log", "--log-level", "debug", "--access-log", "access", "--trace", "trace")
    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0", *options)
    issuers = ("--auth-server", issuing.issuer, "--resource", RESOURCE)
    with HttpProcess(*command, *issuers, folder=watched.folder, environment=watched.variables) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        with Client.sync(url, token=watched.token) as client:
            watched.conversation(client, server.pid)
        for token in (jwt, SECRETS["token of the file, from the vault"]):
            headers = {
                "X-Api-Key": SECRETS["header of a request"],
                "Cookie": f"session={SECRETS['cookie of a request']}",
            }
            with Client.sync(url, token=token, headers=headers) as client:
                assert "cannot connect" in watched.outcome(client, "connect")
        body = json.dumps({"id": "ap_nothing", "digest": "0", "decision": "approve", "by": "grace"}).encode()
        for secret, code in ((SECRETS["secret of the approvals' webhook"], 404), ("another", 401)):
            at = str(int(time.time()))
            signed = {
                "Content-Type": "application/json",
                "X-Fastrpc-Timestamp": at,
                "X-Fastrpc-Signature": signature_of(secret.encode(), at, body),
            }
            asked = urllib.request.Request(url.replace("/mcp", "/approvals"), body, signed)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(asked, timeout=60)
            assert caught.value.code == code
            watched.note("answers", caught.value.read())
        eventually(lambda: any(each.startswith(b"/audit") for each in receiver.came))
        server.stop()
        watched.note("standard error", server.stderr.encode() + server.stdout.encode())
    if cluster is not None:
        for table in ("fastrpc_tokens", "fastrpc_approvals", "fastrpc_changes"):
            rows = cluster.execute(f"SELECT row_to_json(each)::text FROM {table} each", name)
            watched.note("database", repr(rows).encode())
        assert b"wipe" in watched.seen["database"]
    watched.commands()
    watched.files()
    watched.check()
    assert b"tools/call connect" in watched.seen["access"]


@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"xyz"])
@pytest.mark.parametrize("secret", ["Planted-Secret-77-q8Zr", 'a longer planted secret: /@%"\\', "short-1!"])
def test_the_search_finds_what_is_put_there_on_purpose(secret: str, before: bytes) -> None:
    raw = secret.encode()
    for spelt in (
        raw,
        raw.hex().encode(),
        raw.hex().upper().encode(),
        base64.b64encode(before + raw + b" and more"),
        base64.urlsafe_b64encode(before + raw),
        quote(secret).encode(),
        "".join(f"%{byte:02X}" for byte in raw).encode(),
        escaped(secret),
        json.dumps(secret).encode(),
        json.dumps(json.dumps({"a": secret})).encode(),
        raw[::-1],
    ):
        output = b"before " + before + spelt + b" behind"
        assert found_in({"log": output}, {"it": raw}), spelt
        assert found_in({"log": output.replace(spelt, b"****")}, {"it": raw}) == []
    assert len(dict(spellings(raw))) > 9


def test_a_secret_in_the_log_of_a_real_server_is_found(tmp_path: Path, receiver: Receiver) -> None:
    """The defect is planted in the tool: it prints what it got."""
    watched = Watched(tmp_path, receiver)
    tools = 'from fastrpc import Server\napp = Server("s")\n@app.tool(effect="read")\n'
    tools += "def leak(password: str) -> str:\n    raise RuntimeError('it was ' + password.encode().hex())\n"
    (watched.folder / "shop.py").write_text(tools)
    (watched.folder / "guard.toml").write_text('[expose]\ntools = ["*"]\n')
    command = [*FASTRPC, "serve", "--log-file", "log", "shop.py:app", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(watched.folder), env=watched.variables) as client:
        watched.outcome(client, "leak", password=SECRETS["argument with a secret's name"])
    watched.files()
    found = found_in(watched.seen, watched.secrets)
    assert "argument with a secret's name: hex, log" in found
    assert "argument with a secret's name: hex, answers" in found
