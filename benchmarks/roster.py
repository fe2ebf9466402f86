"""Who can be measured: each one's name, how its servers and its clients are started, or why not.

Costs two short runs of the Python that has fastrpc. Builds nothing: a server that is not there says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

import build
import policies
from peers import build as sdks

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
SERVERS, CLIENTS = os.path.join(HERE, "servers"), os.path.join(HERE, "clients")
# Where `fastrpc serve` keeps its state, and the home and working folder of a user who has set nothing up:
# what is measured must not depend on whose machine it is.
STATE, HOME, WORK = (os.path.join(HERE, ".cache", name) for name in ("state", "home", "work"))
ACCESS_LOG = os.path.join(WORK, "access.log")
SETTINGS = ("FASTRPC_", "TOOL_", "TOOLS", "SKILL_", "ADDITIONAL_SKILLS")

PLAIN = "fastrpc-plain"  # fastrpc's plain echo, beside its echo in other shapes
ASYNC = "fastrpc-async"  # fastrpc with its tools as coroutines, in the rows where SDKs stand
LOAD_CLIENT = "load-client"  # the load client itself, beside the clients of the others
ORIGINAL = "original"  # a published server on the framework that it was written for
OWN = ("c", "c-ready", PLAIN, "fastrpc", ASYNC, "python-loop", "bare", LOAD_CLIENT, ORIGINAL)
PLAIN_SDKS = {"mcp-plain": "mcp"}  # the echo of an SDK as a plain function, where its peer's is a coroutine
SDKS = (*sdks.PEERS, *PLAIN_SDKS)

# How the echo of each is written: as a function that returns its result, or as one that is awaited. fastrpc
# is compared with SDKs of the same kind. Go has only the first, TypeScript's and tower-mcp's are the second.
A_FUNCTION, A_COROUTINE = "plain", "async"
WRITTEN = dict.fromkeys(("c", PLAIN, "fastrpc", "python-loop", *PLAIN_SDKS), A_FUNCTION)
WRITTEN |= dict.fromkeys(("rmcp", "rmcp-pipes", "go-sdk", "mcp-go"), A_FUNCTION)
WRITTEN |= dict.fromkeys((ASYNC, "mcp", "fastmcp", "ts-v1", "ts-v2", "tower-mcp"), A_COROUTINE)

# What a server is asked for: the tools of these names; the list that `fastrpc serve` gives, the
# memory that this takes; as little as it needs to answer initialize; the tool Bash; the wire of 2026-07-28; a
# start to that list; one of `fastrpc serve`, the same over HTTP; echo over HTTP, stateless and
# in JSON, in a session, with an access log, as an ASGI application in another's server.
ECHO, PAYLOAD, SLEEP, SLEEP_SYNC = "echo", "payload", "sleep", "sleep_sync"
LIST, SERVE, START, SHELL, STATELESS = "list", "serve", "start", "shell", "modern"
START_LIST, START_SERVE, START_HTTP = "start-list", "start-serve", "start-http"
HTTP, HTTP_SESSION, HTTP_LOG, HTTP_ASGI = "http", "http-session", "http-log", "http-asgi"
# echo behind a proxy, over stdio and over HTTP; of the plain peer, echo without it. The same proxy with a
# guard; of the plain peer, without one.
PROXY, PROXY_HTTP, PROXY_GUARDED = "proxy", "proxy-http", "proxy-guarded"
# echo behind a guard's policy (`policies.py`), over stdio and over HTTP; with one rule over arguments, with
# that and no audit log, with 100 rules of which 3 are about it. Of the plain peer, the same command without a
# guard.
GUARDED, GUARDED_HTTP = "guarded", "guarded-http"
GUARDED_RULE, GUARDED_RULE_ONLY, GUARDED_RULES = "guarded-rule", "guarded-rule-only", "guarded-rules"
# Not a server but a client, for fastrpc's server over stdio; for a server of its own package in the same
# process. Without an event loop, where there is such a client: the others give the one that they have.
CLIENT, CLIENT_IN_MEMORY = "client", "client-in-memory"
CLIENT_SYNC, CLIENT_SYNC_IN_MEMORY = "client-sync", "client-sync-in-memory"
CLIENT_HTTP, CLIENT_SYNC_HTTP = "client-http", "client-sync-http"  # for fastrpc's server over HTTP
# echo in one of the forms of servers/forms.py, whose name follows the command.
FORM = "form"
SWAPPED = "swapped"  # a published server, by `fastrpc swap --run`; of the peer `original`, as it is
MANY_TOOLS = (10, 100, 1000)
# What servers/shapes.py serves: echo written in these ways; returning, raising and with something around it;
# plain, but called wrongly or beside other things.
SHAPES: tuple[str, ...] = ("context", "progress", "keywords", "coroutine", "waiting", "thread")
SHAPES += ("dict", "model", "texts", "tool-error", "value-error", "hook", "guard", "observe")
SHAPES += ("misfit", "unknown", "ping", "resource", "prompt")
# What SDKs serve of these. Left out is what is written otherwise in each of them (hooks, guards) and what the
# load client cannot check: those in Python answer a call of an unknown tool with a failed result, mcp keeps
# the text of a ValueError to itself, rmcp has no exceptions and names neither the argument that does not fit
# nor the unknown tool. Plain functions run on a thread in Python's, so they stand beside run="thread" too.
COMMON_SHAPES = ("context", "progress", "coroutine", "waiting", "dict", "model", "texts", "tool-error")
COMMON_SHAPES += ("ping", "resource", "prompt")
SDK_SHAPES = {
    "mcp": (*COMMON_SHAPES, "thread", "misfit"),
    "fastmcp": (*COMMON_SHAPES, "thread", "misfit", "value-error"),
    "rmcp-pipes": COMMON_SHAPES,
}
SDK_SHAPES_OVER_HTTP = dict.fromkeys(
    ("mcp", "rmcp"), ("context", "coroutine", "waiting", "texts", "tool-error")
)

PORT = "{port}"  # the load client puts a free one in its place
TOKEN = "as-long-as-tokens-of-32-random-bytes-mostly-are"
HTTP_SDKS = (
    "mcp",
    "mcp-plain",
    "fastmcp",
    "ts-v2",
    "rmcp",
)  # those that speak 2026-07-28 over HTTP; a transport each

# V8 compiles what has run some thousand times, and is three times as fast afterwards; over HTTP that takes
# longer.
WARM_UP_SECONDS = {"ts-v1": 1.5, "ts-v2": 1.5}
HTTP_WARM_UP_SECONDS = {"ts-v2": 4.0}
CLIENT_SDKS = ("mcp", "fastmcp")  # those in Python: a client is compared with what else its user could import
# Servers that take a second to start are started less often.
MOST_STARTS = {"mcp": 2, "fastmcp": 2, "ts-v1": 3, "ts-v2": 3}  # per run


@dataclass
class Peer:
    """Whose servers and clients are measured, or the reason why there are none."""

    name: str
    commands: dict[str, list[str]]  # for each thing that it can be asked for
    missing: str = ""
    environment: dict[str, str] | None = None
    folder: str | None = None  # where it is started; None: here
    from_wheel: bool = True
    warm_up: float = 0.2
    most_starts: int = 1000
    facts: dict[str, Any] = field(default_factory=dict)


def many(tools: int) -> str:
    """What a server of so many tools is asked for as."""
    return f"many-{tools}"


def shaped(shape: str) -> str:
    """What a server whose echo has this shape is asked for as."""
    return f"shape-{shape}"


def shaped_over_http(shape: str) -> str:
    """What a server whose echo has this shape is asked for as, over HTTP."""
    return f"http-shape-{shape}"


def peer_of(name: str, python: str) -> Peer:
    """Return the peer of that name; `python` runs what is written in Python and is not an SDK's."""
    found = shutil.which(python)
    python = os.path.abspath(found) if found else python
    if name in SDKS:
        return sdk(name)
    if name == "fastrpc":
        return fastrpc(python)
    if name == ASYNC:
        return fastrpc_async(python)
    if name == PLAIN:
        peer = fastrpc(python)
        peer.name = PLAIN
        plain = [python, os.path.join(SERVERS, "shapes.py"), "plain"]
        over_http = [
            asked
            for asked in (HTTP_SESSION, HTTP_LOG, *map(shaped_over_http, SHAPES))
            if asked in peer.commands
        ]
        peer.commands = dict.fromkeys(map(shaped, SHAPES), plain)
        peer.commands |= {asked: [*plain, PORT, TOKEN] for asked in over_http}
        proxy = [python, os.path.join(SERVERS, "proxy.py")]
        direct = [*proxy, "--direct"]
        peer.commands |= {PROXY: direct, PROXY_HTTP: [*direct, PORT, TOKEN], PROXY_GUARDED: proxy}
        peer.commands[FORM] = [python, os.path.join(SERVERS, "forms.py")]
        peer.commands |= guarded_commands(python, is_guarded=False)
        return peer
    if name == "bare":
        bare = [python, "-c", "pass"]
        return Peer(name, dict.fromkeys((START, START_LIST, START_SERVE, START_HTTP), bare))
    if name == ORIGINAL:
        return Peer(name, {SWAPPED: []})
    if name == LOAD_CLIENT:
        program = [build.build("client", offline=True)]
        return Peer(name, dict.fromkeys((CLIENT, CLIENT_SYNC, CLIENT_HTTP, CLIENT_SYNC_HTTP), program))
    if name == "python-loop":
        loop = [python, os.path.join(SERVERS, "python_loop.py")]
        commands = dict.fromkeys((ECHO, LIST, START, START_LIST), loop)
        if has_http(python):
            commands[HTTP] = [python, os.path.join(SERVERS, "python_http.py"), PORT]
        return Peer(name, commands)
    server = build.build("server", offline=True)
    if name == "c-ready":
        return Peer(name, {LIST: [server, "--ready-list"]})
    asked_for = (ECHO, PAYLOAD, SLEEP, LIST, SERVE, START, START_LIST, SHELL)
    return Peer(name, {asked: [server] for asked in asked_for})


def sdk(name: str) -> Peer:
    """Return an SDK. None lists the agent's tools: W3 is fastrpc against C."""
    folder, shape = (PLAIN_SDKS[name], "plain") if name in PLAIN_SDKS else (name, "")
    peer = Peer(name, {})
    peer.warm_up = WARM_UP_SECONDS.get(name, peer.warm_up)
    peer.most_starts = MOST_STARTS.get(name, peer.most_starts)
    command: list[str] = []
    try:
        command, peer.facts = sdks.command_of(folder, shape)
    except sdks.NotBuilt as problem:
        peer.missing = f"not built: {problem}"
    peer.commands = dict.fromkeys((ECHO,) if shape else (ECHO, PAYLOAD, SLEEP, START), command)
    if name in HTTP_SDKS:
        peer.commands[HTTP] = [*command, "--http", PORT]
    if name in CLIENT_SDKS:
        own_server = os.path.join(sdks.HERE, name, "server.py")
        peer.commands |= client_commands(command[0] if command else "", f"{name}_client.py", own_server)
    for each in SDK_SHAPES.get(name, ()):
        peer.commands[shaped(each)] = sdk_shape(peer, each)
    for each in SDK_SHAPES_OVER_HTTP.get(name, ()):
        peer.commands[shaped_over_http(each)] = [*sdk_shape(peer, each), "--http", PORT]
    return peer


def client_commands(python: str, driver: str, own_server: str, *without_loop: str) -> dict[str, list[str]]:
    """How a client is started; `without_loop`: the option for the one that needs no event loop, if any."""
    command = [python, os.path.join(CLIENTS, driver)]
    over_stdio = {CLIENT: command, CLIENT_SYNC: [*command, *without_loop]}
    in_memory, over_http = ["--in-memory", own_server], ["--http", TOKEN]
    return {
        **over_stdio,
        CLIENT_HTTP: [*over_stdio[CLIENT], *over_http],
        CLIENT_SYNC_HTTP: [*over_stdio[CLIENT_SYNC], *over_http],
        CLIENT_IN_MEMORY: [*over_stdio[CLIENT], *in_memory],
        CLIENT_SYNC_IN_MEMORY: [*over_stdio[CLIENT_SYNC], *in_memory],
    }


def sdk_shape(peer: Peer, shape: str) -> list[str]:
    """How an SDK's echo of this shape is started; nothing where it is not built."""
    return [] if peer.missing else sdks.command_of(peer.name, shape)[0]


def fastrpc(python: str) -> Peer:
    """Return fastrpc as `python` imports it, from this repository where it is not installed.

    `echo`, `payload` and `sleep` are served by a file of a user's own, as SDKs serve them too; lists, the
    shell and starts are those of the command `fastrpc serve`, which a client is configured with.
    """
    question = "import fastrpc, os, sys; print(os.path.dirname(fastrpc.__file__), fastrpc.__version__)"
    echo = os.path.join(SERVERS, "echo.py")
    commands = {asked: [python, echo] for asked in (ECHO, PAYLOAD, SLEEP, SLEEP_SYNC, START, STATELESS)}
    commands |= {
        asked: [*command_line(python), "serve"] for asked in (LIST, SERVE, SHELL, START_LIST, START_SERVE)
    }
    commands |= client_commands(python, "fastrpc_client.py", echo, "--sync")
    commands[SWAPPED] = command_line(python)
    commands[FORM] = [python, os.path.join(SERVERS, "forms.py")]
    commands[PROXY] = [python, os.path.join(SERVERS, "proxy.py")]
    commands[PROXY_HTTP] = [*commands[PROXY], PORT, TOKEN]
    commands |= {many(tools): [python, os.path.join(SERVERS, "many.py"), str(tools)] for tools in MANY_TOOLS}
    shapes = {shape: [python, os.path.join(SERVERS, "shapes.py"), shape] for shape in SHAPES}
    if not can_import(python, "pydantic"):
        del shapes["model"]
    commands |= {shaped(shape): command for shape, command in shapes.items()}
    if has_http(python):
        http = [python, os.path.join(SERVERS, "http_echo.py"), PORT, TOKEN]
        commands |= {HTTP: http, HTTP_SESSION: http, HTTP_ASGI: [*http, "--asgi"]}
        commands[HTTP_LOG] = [*http, "--access-log", ACCESS_LOG]
        commands |= {shaped_over_http(shape): [*command, PORT, TOKEN] for shape, command in shapes.items()}
        commands[START_HTTP] = [*command_line(python), "serve", "--http", f"127.0.0.1:{PORT}", "--no-auth"]
    for folder in (HOME, WORK):
        os.makedirs(folder, exist_ok=True)
    commands |= guarded_commands(python, is_guarded=True)
    commands[PROXY_GUARDED] = [*commands[PROXY], "--guard", policies.write(WORK, TOKEN)["plain"]]
    problem = ""
    for path in (None, REPOSITORY):
        environment = {name: text for name, text in os.environ.items() if not name.startswith(SETTINGS)}
        environment |= {"FASTRPC_STATE_DIR": STATE, "HOME": HOME}
        if path is not None:
            environment["PYTHONPATH"] = path
        asked = subprocess.run(
            [python, "-c", question], cwd=os.sep, env=environment, capture_output=True, text=True, timeout=60
        )
        if asked.returncode == 0:
            place, _, version = asked.stdout.strip().rpartition(" ")
            source = "installed" if path is None else "repository, through PYTHONPATH"
            if path is None and place.startswith(REPOSITORY) and "site-packages" not in place:
                source = "editable install"
            facts = {"version": version, "source": source}
            return Peer("fastrpc", commands, "", environment, WORK, source == "installed", facts=facts)
        problem = (asked.stderr.strip().splitlines() or ["no answer"])[-1]
    return Peer("fastrpc", commands, f"not built: {problem}")


def guarded_commands(python: str, *, is_guarded: bool) -> dict[str, list[str]]:
    """How the echo behind a policy is served, and how it is without one."""
    serve = [*command_line(python), "serve", os.path.join(SERVERS, "echo.py")]
    files = policies.write(WORK, TOKEN)

    def command(name: str, *more: str) -> list[str]:
        return [*serve, *(("--guard", files[name]) if is_guarded else ()), *more]

    token = ("--token-file", files["token"])
    over_http = ("--http", f"127.0.0.1:{PORT}", *(() if is_guarded else token))
    return {
        GUARDED: command("plain"),
        GUARDED_HTTP: command("http", *over_http),
        GUARDED_RULE: command("rule"),
        GUARDED_RULE_ONLY: command("rule-only"),
        GUARDED_RULES: command("rules"),
    }


def fastrpc_async(python: str) -> Peer:
    """Return fastrpc with the tools that SDKs serve too, as coroutines."""
    peer = fastrpc(python)
    peer.name = ASYNC
    program = [python, os.path.join(SERVERS, "echo_async.py")]
    over_http = {HTTP: [*program, PORT, TOKEN]} if HTTP in peer.commands else {}
    peer.commands = dict.fromkeys((ECHO, PAYLOAD, SLEEP, START), program) | over_http
    return peer


def has_http(python: str) -> bool:
    """Whether this Python has what fastrpc's extra `http` installs; without it W11 is left out."""
    return can_import(python, "httptools, uvicorn, uvloop")


def has_guard(python: str) -> bool:
    """Whether this Python has what fastrpc's extra `guard` installs; without it W15 is not guarded."""
    return can_import(python, "cryptography, orjson, sqlalchemy")


def can_import(python: str, modules: str) -> bool:
    asked = [python, "-c", f"import {modules}"]
    return subprocess.run(asked, cwd=os.sep, capture_output=True, timeout=60).returncode == 0


def command_line(python: str) -> list[str]:
    """The command `fastrpc` that was installed beside this Python, or the module where there is none."""
    script = shutil.which("fastrpc", path=os.path.dirname(shutil.which(python) or ""))
    return [script] if script else [python, "-m", "fastrpc"]
