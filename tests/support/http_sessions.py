"""A server over HTTP that says, asks and waits, and what speaks to it by raw sockets.

`Server` starts it (`http_server`). Its tools do what a test tells them to, when it tells them: `hold` waits
to be let go, `outcome` says how a call has ended. `Session` is a client of the versions up to 2025-11-25,
`stateless_request` makes a request of 2026-07-28, `Stream` reads events as they come. Bounded in time.
"""

from __future__ import annotations

import json
import time
from typing import Any

from support.held_calls import GATES
from support.http_server import HttpProcess, tool_server
from support.protocol import SESSION_VERSIONS, STATELESS, message
from support.raw_http import META, Answer, Closed, Socket, head_of
from support.waiting import SECONDS

TOKEN, OTHER_TOKEN = "a-token-of-the-first-caller", "a-token-of-the-second-caller"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada", "value": "v"}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "hi there"},
        "model": "m",
    },
    "roots/list": {"roots": [{"uri": "file:///a"}]},
}
ASKED = [
    ("form", "{'name': 'Ada'}"),
    ("model", "hi there"),
    ("roots", "['file:///a']"),
    ("both", "{'a': ElicitResult('accept', 'v'), 'b': ElicitResult('accept', 'v')}"),
]
"""How the tool `ask` may ask, and its text once a client that can do everything has given these answers."""

TOOLS = (
    r"""
import asyncio, json, sys, time
from fastrpc import Context, Server
from fastrpc.client_requests import Form
from fastrpc.errors import ProtocolError

app = Server("told")
if given["behind"]:
    app.mount(Server.proxy([sys.executable, "-c", given["behind"]]), "behind")
ends = []
"""
    + GATES
    + r'''
@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool(run="inline")
def who(context: Context) -> str:
    return context.principal

@app.tool(run="inline")
def look(look: bool, context: Context) -> str:
    return context.principal if look else "nobody"

@app.tool(run="inline")
def fragment() -> str:
    """Free 100 blocks of a megabyte between small ones that stay; how many megabytes are still there."""
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) // 256
    largest = bytearray(30_000_000)
    del largest  # glibc has mapped it by itself, and maps no smaller one from here on
    before = resident()
    blocks, small = [], []
    for _ in range(100):
        blocks.append(b"x" * 1_000_000)
        small.append(b"x" * 2_000)
    del blocks
    return str(resident() - before)

@app.tool
async def wait(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "waited"

@app.tool
async def outlast() -> str:
    """Wait until the server's end has begun."""
    while not application.here().stopping:
        await asyncio.sleep(0.002)
    return "waited"

@app.tool
async def hold(name: str, context: Context, say: bool = False) -> str:
    """Wait until `let_go` is called with this name."""
    if say:
        context.info(f"{name} has begun")
    return await held(name)

@app.tool
async def outcome(name: str) -> str:
    """How a call of `hold` has ended, once it has."""
    await gate(name).ended.wait()
    return gate(name).outcome

@app.tool
async def say(
    count: int, context: Context, size: int = 0, pause_ms: float = 0, every: int = 1, polls: int = 0
) -> str:
    """Log numbers, with a pause behind every so many; have the client come back behind each `polls`."""
    for number in range(count):
        context.info({"n": number, "filling": "x" * size})
        if polls and number % polls == polls - 1:
            context.close_stream()
        if number % every == every - 1:
            await asyncio.sleep(pause_ms / 1000)
    return f"said {count}"

@app.tool
async def step(context: Context) -> str:
    context.progress(1, 2, "half")
    context.debug("deep inside")
    context.warning("look out")
    return "stepped"

@app.tool(run="inline")
def wide(context: Context) -> str:
    context.info("said inline")
    return "wide"

@app.tool
async def ask(how: str, context: Context) -> str:
    if how == "form":
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        return str((await context.elicit("Name?", form, key="name")).data)
    if how == "model":
        return (await context.sample("Say hi", key="hi")).text
    if how == "roots":
        return str([root["uri"] for root in await context.roots(key="folders")])
    return str(await context.ask(a=Form("a", str), b=Form("b", str)))

@app.tool(input_schema={"type": "object", "properties": {
    "region": {"type": "string", "x-mcp-header": "Region"},
    "count": {"type": "integer", "x-mcp-header": "Count"},
    "fast": {"type": "boolean", "x-mcp-header": "Fast"},
    "inside": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}}}})
def marked(**arguments) -> str:
    return json.dumps(arguments, sort_keys=True)

@app.tool(run="inline")
def change() -> str:
    """Add a tool and take it away: the list has changed."""
    def passing() -> str:
        return ""
    app.tool(passing)
    app.remove_tool("passing")
    return "changed"

@app.tool(run="inline")
def refuse(seconds: int) -> str:
    """Refuse the call, and say when to call again."""
    raise ProtocolError("too early", {"retry_after_seconds": seconds})

@app.tool(run="inline")
def learn(name: str) -> str:
    def learned() -> str:
        return name
    app.tool(learned, name=name, run="inline")
    return "learned"

@app.tool(run="inline")
def forget(name: str) -> str:
    app.remove_tool(name)
    return "forgotten"

@app.tool(run="inline")
def touch(uri: str) -> str:
    app.resource_updated(uri)
    return "touched"

@app.tool(run="inline")
def stop(grace_seconds: float) -> str:
    """Have the application end though the server goes on, as a host's may."""
    ends.append(asyncio.ensure_future(application.here().stop(grace_seconds)))
    return "stopping"

@app.tool(run="inline")
def counts() -> str:
    """What the application keeps."""
    http = application.here()
    sessions = http.sessions
    return json.dumps({
        "sessions": len(sessions),
        "streams": sum(len(session._streams) for session in sessions._sessions.values()),
        "readers": sum(
            stream.reader is not None
            for session in sessions._sessions.values() for stream in session._streams.values()
        ),
        "pooled": sum(len(session._idle) for session in sessions._sessions.values()),
        "kept": sessions._store.bytes,
        "quota": app.runtime.quotas.used,
        "running": len(http.exchanges.running)
        + sum(len(session.running) for session in sessions._sessions.values()),
        "idle": sum(map(len, http.exchanges._idle.values())),
        "sse": len(http._sse._sessions),
        "dispatchers": len(app.runtime.dispatchers),
    })

@app.resource("docs://{name}")
def page(name: str) -> str:
    return f"the page {name}"

@app.prompt
def greet(name: str) -> str:
    return f"Greet {name}"

class Front:
    """A host that cancels what serves a request, where the request says when: some seconds after it has come,
    or once it is a call of `hold` that runs, or has sent something."""

    async def __call__(self, scope, receive, send):
        when, _, what = dict(scope.get("headers", ())).get(b"x-give-up", b"").decode().partition(" ")
        sent = asyncio.Event()

        async def noted(part):
            await send(part)
            if part.get("body"):
                sent.set()

        serving = asyncio.ensure_future(application.here()(scope, receive, noted))
        if not when:
            await serving
            return
        if when == "begun":
            await gate(what).begun.wait()
        elif when == "sent":
            await gate(what).begun.wait()
            await sent.wait()
        else:
            await asyncio.sleep(float(when))
        serving.cancel()
        await asyncio.wait([serving])

    async def stop(self, grace_seconds):
        await application.here().stop(grace_seconds)

front = Front()
'''
)


class RequestedProcess(HttpProcess):
    """A server's process to which a test sends single requests."""

    def ask(self, data: bytes) -> Answer:
        """Send one request on a connection of its own and return the answer."""
        with Socket(self.port) as connection:
            connection.send(data)
            return connection.answer()

    def open(self, data: bytes) -> Stream:
        """Send one request whose answer is read as it comes."""
        stream = Stream(self.port)
        stream.send(data)
        return stream


class Server(RequestedProcess):
    """A server's process, from `with` to its end.

    `patch` sets names of modules of fastrpc (``{"transports.http.streams.SESSION_EVENTS": 10}``), `limits`
    those of connections; `behind` is the program of a server behind this one. `options` are those of
    `Server.asgi`.
    """

    def __init__(
        self,
        *,
        hot: bool = True,
        drain_seconds: float = 1.0,
        behind: str = "",
        limits: dict[str, float] | None = None,
        patch: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if "auth" not in options:
            options.setdefault("token", [TOKEN, OTHER_TOKEN])
        super().__init__(
            command=tool_server(
                TOOLS,
                hot=hot,
                drain_seconds=drain_seconds,
                limits=limits,
                patch=patch,
                options=options,
                behind=behind,
            )
        )

    def call(self, name: str, /, **arguments: Any) -> str:
        """Call a tool in 2026-07-28 and return its text; for a test's own questions to the server."""
        return self.ask(stateless_request("tools/call", {"name": name, "arguments": arguments})).text

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.call("counts"))
        return found

    def end(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Send SIGTERM; return the exit code and what the server has said on stderr."""
        self.kill()
        return self.ended(seconds)

    def ended(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Wait for the end that a signal has begun; return what `end` does."""
        code = self.wait(seconds)
        assert "ended in order" in self.stdout, self.stderr
        return code, self.stderr


class Event:
    """A server-sent event; one that holds nothing but a comment has `comment`."""

    def __init__(self, text: str) -> None:
        self.id: str | None = None
        self.retry: int | None = None
        self.kind = "message"
        self.comment: str | None = None
        data: list[str] = []
        for line in text.split("\n"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "":
                self.comment = value
            elif field == "data":
                data.append(value)
            elif field == "id":
                self.id = value
            elif field == "retry":
                self.retry = int(value)
            elif field == "event":
                self.kind = value
            else:
                raise AssertionError(f"a strange line: {line!r}")
        self.data = "\n".join(data) if data else None

    @property
    def json(self) -> Any:
        return json.loads(self.data or "null")

    @property
    def method(self) -> str | None:
        """The method of the message that the event holds, None for an answer."""
        found: str | None = self.json.get("method")
        return found

    def __repr__(self) -> str:
        return f"<Event id={self.id} {self.kind} {self.data} {self.comment or ''}>"


class Stream(Socket):
    """A connection whose answer is a stream of events."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._text = b""
        self._head: Answer | None = None

    def __enter__(self) -> Stream:
        return self

    @property
    def head(self) -> Answer:
        if self._head is None:
            self._head = Answer(self._until(b"\r\n\r\n", SECONDS), b"")
        return self._head

    def next(self, seconds: float = SECONDS) -> Event | None:
        """Return the next event, comments too; None at an end in order. Raises Closed and TimeoutError."""
        head = self.head
        assert head.status == 200, head
        assert head.headers["content-type"] == "text/event-stream", head
        while b"\n\n" not in self._text:
            size = int(self._until(b"\r\n", seconds), 16)
            part = self._exactly(size + 2, seconds)[:-2]
            if size == 0:
                assert not self._text, f"an event was cut short: {self._text!r}"
                return None
            self._text += part
        text, _, self._text = self._text.partition(b"\n\n")
        return Event(text.decode())

    def event(self, seconds: float = SECONDS) -> Event:
        """Return the next event that holds more than a comment."""
        deadline = time.monotonic() + seconds
        while True:
            event = self.next(seconds)
            assert event is not None, "the stream has ended"
            if event.comment is None:
                return event
            if time.monotonic() > deadline:
                raise TimeoutError

    def message(self, seconds: float = SECONDS) -> Any:
        """Return the next message; priming events are left out."""
        while not (event := self.event(seconds)).data:
            pass
        return event.json

    def rest(self, seconds: float = SECONDS) -> list[Event]:
        """Return all events up to the end of the stream, without comments."""
        found = []
        while (event := self.next(seconds)) is not None:
            if event.comment is None:
                found.append(event)
        return found

    def messages(self, seconds: float = SECONDS) -> list[Any]:
        """Return all messages up to the end of the stream."""
        return [event.json for event in self.rest(seconds) if event.data]

    def is_cut(self, seconds: float = SECONDS) -> bool:
        """Whether the connection ends before the stream does; all that still comes is read."""
        try:
            while self.next(seconds) is not None:
                pass
        except Closed:
            return True
        return False

    def close(self) -> None:
        self.plain.close()


# --- requests ---------------------------------------------------------------------------------------------


def given_up(when: str) -> dict[str, str]:
    """Headers of a request that is given up while the application serves it, as a host's server does: ``begun
    NAME`` once that call of `hold` runs, ``sent NAME`` once something of its answer has been sent, too."""
    return {"x_give_up": when, "expect": "no short cut"}


def http(
    method: str = "POST",
    path: str = "/mcp",
    body: Any = None,
    *,
    token: str | None = TOKEN,
    **headers: str | list[str] | None,
) -> bytes:
    """A request as bytes. A header is given by its name in snake case, None leaves a usual one out."""
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    found: dict[str, str | list[str] | None] = {
        "host": "127.0.0.1",
        "accept": "application/json, text/event-stream" if method == "POST" else "text/event-stream",
        "content_type": "application/json" if method == "POST" else None,
        "authorization": None if token is None else f"Bearer {token}",
        "content_length": str(len(content)) if method == "POST" else None,
        **headers,
    }
    pairs = [
        (name.replace("_", "-"), each)
        for name, value in found.items()
        for each in ([] if value is None else [value] if isinstance(value, str) else value)
    ]
    return head_of(pairs, f"{method} {path} HTTP/1.1") + content


def stateless_request(
    method: str,
    params: dict[str, Any] | None = None,
    id: Any = 1,
    *,
    meta: dict[str, Any] | None = None,
    capabilities: dict[str, Any] | None = None,
    **headers: Any,
) -> bytes:
    """A request of 2026-07-28, with the headers that belong to it."""
    params = params or {}
    envelope = {**META, **(meta or {})}
    if capabilities is not None:
        envelope["io.modelcontextprotocol/clientCapabilities"] = capabilities
    body = message(method, {**params, "_meta": envelope}, id)
    usual: dict[str, Any] = {"mcp_protocol_version": STATELESS, "mcp_method": method}
    if method in NAMED and isinstance(params.get(NAMED[method]), str):
        usual["mcp_name"] = params[NAMED[method]]
    return http(body=body, **{**usual, **headers})


def calling(
    name: str, /, id: Any = 1, *, meta: dict[str, Any] | None = None, **arguments: Any
) -> dict[str, Any]:
    """The call of a tool, as a message of the versions up to 2025-11-25."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if meta is not None:
        params["_meta"] = meta
    return message("tools/call", params, id)


class Session:
    """A client of a version up to 2025-11-25, from its handshake on."""

    def __init__(
        self,
        server: Server,
        version: str = SESSION_VERSIONS[-1],
        *,
        capabilities: dict[str, Any] | None = None,
        token: str | None = TOKEN,
        path: str = "/mcp",
    ) -> None:
        self.server = server
        self.token = token
        self.path = path
        self.version = version
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        self.opened = server.ask(http(path=path, body=message("initialize", params, "first"), token=token))
        assert self.opened.status == 200, self.opened
        self.result = self.opened.json["result"]
        self.id = self.opened.headers["mcp-session-id"]
        assert self.post(message("notifications/initialized")).status == 202

    def request(self, body: Any = None, method: str = "POST", **headers: Any) -> bytes:
        usual = {"mcp_session_id": self.id, "mcp_protocol_version": self.version, "token": self.token}
        return http(method, self.path, body, **{**usual, **headers})

    def post(self, body: Any, **headers: Any) -> Answer:
        return self.server.ask(self.request(body, **headers))

    def call(self, name: str, /, id: Any = 1, **arguments: Any) -> Answer:
        return self.post(calling(name, id, **arguments))

    def open(self, body: Any, **headers: Any) -> Stream:
        """Post a message whose answer is read as it comes."""
        return self.server.open(self.request(body, **headers))

    def listen(self, last_event_id: str | None = None, **headers: Any) -> Stream:
        """Open the stream of what belongs to no request, or go on with one."""
        return self.server.open(self.request(method="GET", last_event_id=last_event_id, **headers))

    def answer(self, id: Any, **members: Any) -> Answer:
        """Answer a question of the server's."""
        return self.post(message(None, id=id, **members))

    def delete(self, **headers: Any) -> Answer:
        return self.server.ask(self.request(method="DELETE", **headers))


# --- what tests say of answers ----------------------------------------------------------------------------


def refused(answer: Answer, status: int, code: int = -32600, id: Any = None) -> dict[str, Any]:
    """Hold an answer against what every refusal is: JSON-RPC, whatever the status; return its error."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/json", answer
    body: dict[str, Any] = answer.json
    assert set(body) == {"jsonrpc", "id", "error"}, body
    assert body["id"] == id, body
    assert body["error"]["code"] == code, body
    assert "Traceback" not in body["error"]["message"], body
    return dict(body["error"])


def text_of(body: Any) -> str:
    """The text of a tool's result."""
    found: str = body["result"]["content"][0]["text"]
    return found


def peak_memory(server: Server) -> int:
    """The most memory that the server has had, in kB."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
