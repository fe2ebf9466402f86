"""A page in a real Chromium tries to reach a server on the user's machine, by all that pages can do.

The page comes from another origin, or from a name that an attacker has had point to the server meanwhile (DNS
rebinding). It may not read a word, and no tool may have run; a page of an allowed origin may work.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support import chromium, web_server
from support.access_control import TOKEN, GuardedServer
from support.web_server import Web

pytestmark = [pytest.mark.timeout(240), pytest.mark.long]  # a hundred requests of a browser on a busy machine
PAGE = "<!doctype html><title>A page</title><body>"
NEEDED = 40
"""How many requests of a page have to reach the server at least, or it is the browser that was tested."""

PATHS = [
    "/mcp",
    "/mcp/http",
    "/sse",
    "/mcp/sse",
    "/messages",
    "/mcp/sse/message",
    "/healthz",
    "/readyz",
    "/.well-known/oauth-protected-resource",
]

ATTACK = r"""
async ({base, paths, token, ms}) => {
    const read = [];   // all that the page came to know, by how
    const envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    };
    const message = (method, params) => JSON.stringify({jsonrpc: "2.0", id: 1, method, params});
    const call = message("tools/call", {name: "count", arguments: {}});
    const modern = message("tools/call", {name: "count", arguments: {}, _meta: envelope});
    const open = message("initialize", {
        protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: "evil", version: "1"},
    });
    const routing = {
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "count",
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
    };
    const known = token ? {Authorization: `Bearer ${token}`} : {};
    const patience = () => AbortSignal.timeout(ms);
    const after = (seconds, value) => new Promise(done => setTimeout(() => done(value), seconds * 1000));

    async function byFetch(how, path, options) {
        try {
            const answer = await fetch(base + path, {signal: patience(), ...options});
            if (answer.type === "opaque" || answer.type === "opaqueredirect") return;
            read.push([how, path, answer.status, (await answer.text()).slice(0, 80)]);
        } catch (error) {}   // the browser keeps the answer from the page
    }
    function byXhr(how, path, type, body) {
        return new Promise(done => {
            const xhr = new XMLHttpRequest();
            xhr.onloadend = () => {
                if (xhr.status || xhr.responseText) read.push([how, path, xhr.status, xhr.responseText]);
                done();
            };
            xhr.timeout = ms;
            xhr.withCredentials = true;
            xhr.open("POST", base + path);
            xhr.setRequestHeader("Content-Type", type);
            xhr.send(body);
        });
    }
    function byEvents(path, withCredentials) {
        return new Promise(done => {
            const source = new EventSource(base + path, {withCredentials});
            const over = () => { source.close(); done(); };
            source.onopen = () => { read.push(["EventSource", path, "open"]); over(); };
            source.addEventListener("endpoint", event => read.push(["EventSource", path, event.data]));
            source.onerror = over;
            setTimeout(over, ms);
        });
    }
    function bySocket(path) {
        return new Promise(done => {
            const socket = new WebSocket(base.replace("http", "ws") + path, "mcp");
            socket.onopen = () => { read.push(["WebSocket", path, "open"]); socket.send(call); };
            socket.onmessage = event => read.push(["WebSocket", path, event.data]);
            socket.onclose = done;
            setTimeout(done, ms);
        });
    }
    function byElement(name, attribute, path, more = {}) {
        return new Promise(done => {
            const element = Object.assign(document.createElement(name), more);
            element[attribute] = base + path;
            element.onload = () => {
                let inside = null;
                try { inside = element.contentDocument && element.contentDocument.body.innerText; }
                catch (error) {}
                // A frame says that it has loaded whatever is in it.
                if (name === "iframe" || name === "object" ? inside : true)
                    read.push([name, path, "loaded", inside]);
                done();
            };
            element.onerror = done;
            document.body.append(element);
            setTimeout(done, ms);
        });
    }
    function byForm(path, enctype, method, body) {
        return new Promise(done => {
            const frame = document.createElement("iframe");
            frame.name = `frame ${Math.random()}`;
            document.body.append(frame);
            const form = document.createElement("form");
            Object.assign(form, {action: base + path, method, enctype, target: frame.name});
            const field = document.createElement("input");
            // text/plain writes name=value: what is sent is JSON all the same
            field.name = body.slice(0, -1) + ',"tail":"';
            field.value = '"}';
            form.append(field);
            document.body.append(form);
            frame.onload = () => {
                let inside = null;
                try { inside = frame.contentDocument && frame.contentDocument.body.innerText; }
                catch (error) {}
                if (inside) read.push(["form", path, inside]);
                if (!submitted) return;
                done();
            };
            let submitted = true;
            form.submit();
            setTimeout(done, ms);
        });
    }
    function fromNowhere(path) {   // a sandboxed frame: its origin is null
        return new Promise(done => {
            const frame = document.createElement("iframe");
            frame.sandbox = "allow-scripts";
            frame.srcdoc = `<script>
                fetch(${JSON.stringify(base + path)}, {
                    method: "POST", headers: ${JSON.stringify({...routing, ...known})},
                    body: ${JSON.stringify(modern)}
                }).then(answer => answer.text()).then(text => parent.postMessage(text, "*"),
                    error => parent.postMessage("", "*"))
            <\/script>`;
            addEventListener("message", event => {
                if (event.source !== frame.contentWindow) return;
                if (event.data) read.push(["null", path, event.data]);
                done();
            });
            document.body.append(frame);
            setTimeout(done, ms);
        });
    }

    const plain = {"Content-Type": "text/plain"};
    const all = [];
    for (const path of paths) {
        for (const mode of ["cors", "no-cors"]) {
            for (const referrerPolicy of ["no-referrer", "unsafe-url"])
                all.push(() => byFetch(`GET ${mode}`, path, {mode, referrerPolicy, credentials: "include"}));
            all.push(() => byFetch(`HEAD ${mode}`, path, {mode, method: "HEAD"}));
        }
        all.push(() => byElement("img", "src", path));
        all.push(() => byElement("script", "src", path));
        all.push(() => byElement("script", "src", path, {crossOrigin: "anonymous"}));
    }
    for (const path of paths.slice(0, 2)) {
        for (const body of [call, open, modern])
            for (const mode of ["cors", "no-cors"])
                for (const referrerPolicy of ["no-referrer", "unsafe-url"])
                    all.push(() => byFetch(`POST ${mode} plain`, path, {
                        mode, method: "POST", body, headers: plain, referrerPolicy, credentials: "include",
                    }));
        for (const credentials of ["omit", "include"])
            all.push(() => byFetch("POST cors JSON", path, {
                method: "POST", body: modern, headers: {...routing, ...known}, credentials,
            }));
        all.push(() => byFetch("initialize", path, {
            method: "POST", body: open, headers: {"Content-Type": "application/json", ...known},
        }));
        all.push(() => byFetch("DELETE", path, {method: "DELETE", headers: {"Mcp-Session-Id": "x"}}));
        all.push(() => byXhr("XHR plain", path, "text/plain", call));
        all.push(() => byXhr("XHR JSON", path, "application/json", call));
        all.push(async () => navigator.sendBeacon(base + path, new Blob([call], {type: "text/plain"})));
        all.push(async () => navigator.sendBeacon(base + path, new Blob([call], {type: "application/json"})));
        for (const enctype of ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
            all.push(() => byForm(path, enctype, "post", call));
        all.push(() => byForm(path, "text/plain", "get", call));
        all.push(() => fromNowhere(path));
        all.push(() => bySocket(path));
        all.push(() => byElement("iframe", "src", path));
        all.push(() => byElement("object", "data", path));
        all.push(() => byElement("link", "href", path, {rel: "stylesheet"}));
    }
    for (const path of ["/sse", "/mcp/sse", "/mcp"])
        for (const withCredentials of [true, false]) all.push(() => byEvents(path, withCredentials));
    const workers = [0, 1, 2, 3].map(async () => { while (all.length) await all.shift()(); });
    await Promise.race([Promise.all(workers), after(120)]);
    return {read, left: all.length};
}
"""


class Browser:
    """The Chromium of this file. Names that end in .test are this machine; each page has its own context."""

    def __init__(self) -> None:
        self.loop = chromium.Loop()
        self.loop.run(self._start())

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        chosen = os.environ.get("FASTRPC_BROWSER") or next(filter(None, map(shutil.which, chromium.NAMES)))
        self._chromium = await self._playwright.chromium.launch(
            executable_path=chosen, args=["--host-resolver-rules=MAP *.test 127.0.0.1"]
        )

    def close(self) -> None:
        self.loop.run(self._end())
        self.loop.close()

    async def _end(self) -> None:
        await self._chromium.close()
        await self._playwright.stop()

    @contextlib.asynccontextmanager
    async def page(self, address: str) -> AsyncIterator[Any]:
        context = await self._chromium.new_context()
        try:
            page = await context.new_page()
            await page.goto(address)
            yield page
        finally:
            await context.close()

    def ask(self, address: str, script: str, given: Any) -> Any:
        """Have the page at an address call a function of JavaScript."""

        async def run() -> Any:
            async with self.page(address) as page:
                return await page.evaluate(script, given)

        return self.loop.run(run(), 60.0)

    def attack(self, address: str, base: str, token: str = "", ms: int = 8000) -> Attack:
        """Have the page at an address do all that it can to the server at `base`; each may take so long."""
        attack: Attack = self.loop.run(self._attack(address, base, token, ms), 150.0)
        return attack

    async def _attack(self, address: str, base: str, token: str, ms: int) -> Attack:
        attack = Attack()

        def note(answer: Any) -> None:
            if answer.url.startswith(base + "/"):
                attack.statuses.append(answer.status)

        async with self.page(address) as page:
            page.context.on("response", note)
            given = {"base": base, "paths": PATHS, "token": token, "ms": ms}
            found = await page.evaluate(ATTACK, given)
            attack.read = found["read"]
            assert found["left"] == 0, "the page has not come to an end"
        return attack

    def attack_rebound(self, server: GuardedServer, token: str = "", ms: int = 8000) -> Attack:
        """The same by a page whose name has come to mean the server since it was loaded."""
        attack: Attack = self.loop.run(self._attack_rebound(server, token, ms), 150.0)
        return attack

    async def _attack_rebound(self, server: GuardedServer, token: str, ms: int) -> Attack:
        relay = await asyncio.start_server(lambda *ends: rebind(server.port, *ends), "127.0.0.1", 0)
        base = f"http://rebound.test:{relay.sockets[0].getsockname()[1]}"
        try:
            return await self._attack(base + "/page", base, token, ms)
        finally:
            relay.close()


async def rebind(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The attacker's machine as long as its page is loaded; from then on the server, byte by byte."""
    with contextlib.suppress(OSError):
        begin = await reader.read(65536)
        if begin.startswith(b"GET /page "):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close"
            writer.write(head % len(PAGE) + b"\r\n\r\n" + PAGE.encode())
        elif begin:
            answers, requests = await asyncio.open_connection("127.0.0.1", port)
            requests.write(begin)
            await asyncio.gather(pipe(reader, requests), pipe(answers, writer))
    writer.close()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


class Attack:
    """The result of an attack: what the page has read, and the statuses that the browser has seen."""

    def __init__(self) -> None:
        self.read: list[list[Any]] = []
        self.statuses: list[int] = []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium.need()
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with web_server.serve() as web:
        web.page("/", PAGE)
        yield web


@pytest.fixture(scope="module", params=["token", "open"])
def server(request: pytest.FixtureRequest, web: Web) -> Iterator[GuardedServer]:
    """One that wants a token, and one on loopback that wants none."""
    options: dict[str, Any] = {"token": TOKEN} if request.param == "token" else {"is_open": True}
    with GuardedServer(origins=[at("app.test", web)], **options) as server:
        yield server


def at(name: str, web: Web) -> str:
    """The origin of a page of `web` under a name."""
    return f"http://{name}:{web.port}"


def test_a_page_from_elsewhere_reads_nothing_and_runs_nothing(
    browser: Browser, web: Web, server: GuardedServer
) -> None:
    before = server.count()
    attack = browser.attack(at("evil.test", web) + "/", f"http://127.0.0.1:{server.port}")
    assert attack.read == []
    assert server.count() == before + 1
    assert len(attack.statuses) >= NEEDED
    assert set(attack.statuses) == {403}


def test_a_page_from_elsewhere_that_knows_the_token_gets_nothing_either(
    browser: Browser, web: Web, server: GuardedServer
) -> None:
    before = server.count()
    base = f"http://localhost:{server.port}"
    attack = browser.attack(at("evil.test", web) + "/", base, TOKEN)
    assert attack.read == []
    assert server.count() == before + 1
    assert set(attack.statuses) == {403}


def test_a_page_whose_name_has_come_to_mean_the_server_reads_its_refusal_at_most(
    browser: Browser, server: GuardedServer
) -> None:
    """DNS rebinding: for the browser it is one origin, so that the page may read what is answered."""
    before = server.count()
    attack = browser.attack_rebound(server, TOKEN)
    assert server.count() == before + 1
    assert len(attack.statuses) >= NEEDED
    assert set(attack.statuses) == {421}
    for found in attack.read:
        assert 421 in found or "does not answer to that name" in str(found), found


def test_the_page_does_reach_a_server_that_does_not_look_where_requests_come_from(
    browser: Browser, web: Web
) -> None:
    """That these tests can fail: the same page, the same browser, and a guard that has been taken away."""
    with GuardedServer(unguarded=True, is_open=True) as server:
        before = server.count()
        # Streams have no end by themselves: little patience.
        attack = browser.attack(at("evil.test", web) + "/", f"http://127.0.0.1:{server.port}", ms=500)
        between = server.count()
        assert between > before + 1
        assert 200 in {found[2] for found in attack.read}
        attack = browser.attack_rebound(server, ms=500)
        assert server.count() > between + 1
        assert 200 in {found[2] for found in attack.read}


# --- pages that may -----------------------------------------------------------------------------------

WORK = r"""
async ({base, token}) => {
    const known = token ? {Authorization: `Bearer ${token}`} : {};
    const common = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"};
    const seen = {};
    const post = (body, headers) => fetch(base + "/mcp", {
        method: "POST", body: JSON.stringify({jsonrpc: "2.0", ...body}),
        headers: {...common, ...known, ...headers},
    });
    const opened = await post({id: 1, method: "initialize", params: {
        protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: "page", version: "1"},
    }});
    const session = {
        "Mcp-Session-Id": opened.headers.get("Mcp-Session-Id"), "MCP-Protocol-Version": "2025-11-25",
    };
    seen.session = session["Mcp-Session-Id"];
    seen.noted = (await post({method: "notifications/initialized"}, session)).status;
    seen.called = await (await post(
        {id: 2, method: "tools/call", params: {name: "count", arguments: {}}}, session)).json();
    const stream = new AbortController();
    const listening = await fetch(base + "/mcp", {
        headers: {"Accept": "text/event-stream", "Last-Event-ID": "0-0", ...known, ...session},
        signal: stream.signal, cache: "no-store",   // with its cache, Chromium may send the DELETE twice
    });
    seen.streams = [listening.status, listening.headers.get("Content-Type")];
    stream.abort();
    seen.ended = (await fetch(base + "/mcp", {
        method: "DELETE", headers: {...known, ...session}, cache: "no-store",
    })).status;
    seen.after = (await post({id: 4, method: "ping"}, session)).status;
    const meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    };
    const modern = await post(
        {id: 3, method: "tools/call", params: {name: "count", arguments: {}, _meta: meta}},
        {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "count",
         "Mcp-Param-Region": "eu"});
    seen.modern = [modern.status, await modern.json()];
    const unknown = await fetch(base + "/mcp", {method: "POST", body: "{}", headers: {
        ...common, Authorization: "Bearer of-nobody-at-all",
    }});
    seen.unknown = [unknown.status, unknown.headers.get("WWW-Authenticate")];
    seen.alive = await (await fetch(base + "/healthz")).json();
    return seen;
}
"""


@pytest.mark.parametrize("name", ["app.test", "localhost", "127.0.0.1"])
def test_a_page_of_an_allowed_origin_works(
    browser: Browser, web: Web, server: GuardedServer, name: str
) -> None:
    """One that was named, and those of this machine: sessions, streams and both eras."""
    before = server.count()
    base = f"http://127.0.0.1:{server.port}"
    seen = browser.ask(at(name, web) + "/", WORK, {"base": base, "token": TOKEN})
    assert len(seen["session"]) >= 32
    assert seen["noted"] == 202
    assert seen["called"]["result"]["content"][0]["text"] == str(before + 1)
    assert seen["streams"][0] == 200
    assert seen["streams"][1].startswith("text/event-stream")
    assert (seen["ended"], seen["after"]) == (200, 404)
    assert seen["modern"][0] == 200
    assert seen["modern"][1]["result"]["content"][0]["text"] == str(before + 2)
    assert seen["alive"] == {"status": "ok"}
    if server.wants_token:
        assert seen["unknown"][0] == 401
        assert seen["unknown"][1].startswith("Bearer ")
