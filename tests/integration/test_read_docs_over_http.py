"""What ReadDocs reaches for callers over HTTP: public addresses, whatever a page tries; over stdio, all.

Real servers, the real Chromium. What represents the Internet is 127.0.0.2, by a rule of the test's
(`support.fake_dns`); canaries on loopback must hear nothing, on TCP and UDP.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha1
from typing import Any

import pytest
from support import chromium, process_list, raw_http, stdio, web_server
from support.http_server import HttpProcess
from support.waiting import SECONDS, eventually
from support.web_server import Visit, Web

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is an address on Linux alone"),
]

OUTSIDE = "127.0.0.2"
INSIDE = "127.0.0.1"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = """
import json, os
import fastrpc.tools.agent
from fastrpc import Server
from fastrpc.tools.agent import _browser
from support import fake_dns

fake_dns.install(json.loads(os.environ[fake_dns.VARIABLE]))
_browser.WORKER = "support.fake_dns"
app = Server("reach")
app.include(fastrpc.tools.agent)
app.run(http="127.0.0.1:0", token=os.environ.pop("TOKEN_OF_THE_TEST"))
"""
CHANGING = [[OUTSIDE], [INSIDE]]  # checked once, and something else from then on
RULES = {
    "names": {
        "page.test": [[OUTSIDE]],
        "inside.test": [[INSIDE]],
        "mixed.test": [["10.0.0.1", "::1", INSIDE, OUTSIDE]],
        **{f"changing{number}.test": CHANGING for number in range(6)},
    },
    "public": [OUTSIDE],
    "word": "eno-elohw-a-drowssap",
}


class Canary:
    """Listens on the loopback addresses, at the port of `outside` and at one of UDP; notes who comes."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heard: list[str] = []
        self._listeners = [socket.create_server((INSIDE, port))]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((INSIDE, 0))
        self.udp_port: int = self.udp.getsockname()[1]
        with contextlib.suppress(OSError):  # a machine without IPv6
            self._listeners.append(socket.create_server(("::1", port), family=socket.AF_INET6))
        for work, of in [(self._packets, self.udp), *((self._accept, each) for each in self._listeners)]:
            threading.Thread(target=work, args=(of,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    self.heard.append("TCP")
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")

    def _packets(self, udp: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                udp.recv(2000)
                self.heard.append("UDP")

    def close(self) -> None:
        for each in (*self._listeners, self.udp):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Server(HttpProcess):
    """A server over HTTP in a separate process, whose folder holds all that it writes."""

    def __init__(self, command: list[str], folder: str, **environment: str) -> None:
        self.folder = folder
        variables = {
            name: value for name, value in os.environ.items() if not name.startswith(("FASTRPC", "TOOL"))
        }
        variables |= {
            "HOME": folder,
            "TMPDIR": folder,
            "FASTRPC_STATE_DIR": os.path.join(folder, "state"),
            "PYTHONPATH": os.pathsep.join(filter(None, (TESTS, os.environ.get("PYTHONPATH")))),
            "FAKE_DNS": json.dumps(RULES),
        }
        command = [sys.executable, *command]
        super().__init__(command=command, folder=folder, environment=variables | environment)

    def read(self, url: str, tool: str = "ReadDocs", **arguments: Any) -> tuple[bool, str]:
        """Call ReadDocs: whether it is an error, and the text."""
        given = {"url": url, **arguments} if tool == "ReadDocs" else arguments
        with raw_http.Socket(self.port) as connection:
            connection.send(raw_http.call(tool, given))
            result = connection.answer(seconds=60).json["result"]
        return result["isError"], result["content"][0]["text"]

    def refused(self, url: str, **arguments: Any) -> str:
        is_error, text = self.read(url, **arguments)
        assert is_error, text
        assert len(text) < 400
        return text


@contextlib.contextmanager
def served(*command: str, **environment: str) -> Iterator[Server]:
    with chromium.temporary_folder() as folder, Server(list(command), folder, **environment) as server:
        yield server
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Web, Canary]]:
    """A web server that represents the Internet, and canaries at the same port of loopback."""
    for _ in range(20):
        with web_server.serve(OUTSIDE) as web:
            try:
                canary = Canary(web.port)
            except OSError:
                continue  # somebody else has that port
            yield web, canary
            canary.close()
            return
    pytest.fail("no port is free on both addresses")


@pytest.fixture(scope="module")
def outside(both: tuple[Web, Canary]) -> Web:
    return both[0]


@pytest.fixture(scope="module")
def listeners(both: tuple[Web, Canary]) -> Canary:
    return both[1]


@pytest.fixture
def canary(listeners: Canary) -> Iterator[Canary]:
    """Must have heard nothing at the end."""
    listeners.heard.clear()
    yield listeners
    assert listeners.heard == []


@pytest.fixture(scope="module")
def browser(outside: Web, listeners: Canary) -> Iterator[Server]:
    """A server whose calls are read by Chromium."""
    chromium.need(whole=True)
    with served("-c", PROGRAM, TOKEN_OF_THE_TEST=raw_http.TOKEN, FASTRPC_BROWSER_SANDBOX="0") as server:
        yield server


@pytest.fixture(scope="module")
def plain(outside: Web, listeners: Canary) -> Iterator[Server]:
    """One without a browser."""
    environment = {"FASTRPC_BROWSER": "/no/such/browser", "NO_PROXY": "*", "http_proxy": ""}
    with served("-c", PROGRAM, TOKEN_OF_THE_TEST=raw_http.TOKEN, **environment) as server:
        yield server


@pytest.fixture(params=["browser", "plain"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def refusal(place: str) -> str:
    return (
        f"The page could not be loaded: {place} is not a public address, "
        "and only those may be read here (FASTRPC_REACH)."
    )


# --- what is asked for ------------------------------------------------------------------------------------


def test_a_public_page_is_read(server: Server, outside: Web, canary: Canary) -> None:
    outside.page("/open", "<main><h1>Open</h1><p>to everybody</p></main>", "Title")
    for host in ("page.test", OUTSIDE, "mixed.test"):
        is_error, text = server.read(outside.url("/open", host))
        assert not is_error, text
        assert text.startswith(f"Title\n{outside.url('/open', host)}\n")
        assert "to everybody" in text


SPELLINGS = {
    "127.0.0.1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "2130706433": "127.0.0.1",
    "0x7f.0.0.1": "127.0.0.1",
    "0177.0.0.01": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "①②⑦.0.0。1": "127.0.0.1",
    "user:word@127.0.0.1": "127.0.0.1",
    "0": "0.0.0.0",
    "[::1]": "[::1]",
    "[0:0::0:1]": "[::1]",
    "[::]": "[::]",
    "[::ffff:127.0.0.1]": "[::ffff:7f00:1]",
    "[::127.0.0.1]": "[::7f00:1]",
    "[64:ff9b::127.0.0.1]": "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]": "[2002:7f00:1::]",
    "[fe80::1]": "[fe80::1]",
    "169.254.169.254": "169.254.169.254",
    "10.0.0.1": "10.0.0.1",
    "100.100.100.200": "100.100.100.200",
    "LOCALHOST": "localhost",
    "some.localhost": "some.localhost",
    "inside.test": "inside.test",
}


def refusals(server: Server, urls: list[str]) -> list[str]:
    """What several simultaneous calls answer."""
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(server.refused, urls))


def test_no_spelling_of_an_inner_address_is_read_by_the_browser(browser: Server, canary: Canary) -> None:
    schemes = ("http", "https")
    urls = [f"{schemes[number % 2]}://{text}:{canary.port}/" for number, text in enumerate(SPELLINGS)]
    expected = [refusal(f"{place}:{canary.port}") for place in SPELLINGS.values()]
    assert refusals(browser, urls) == expected


def test_no_spelling_of_an_inner_address_is_read_without_a_browser(plain: Server, canary: Canary) -> None:
    urls = [f"{scheme}://{text}:{canary.port}/" for scheme in ("http", "https") for text in SPELLINGS]
    # httpx does not write all of them anew, and takes some for no address
    ends = (refusal("")[len("The page could not be loaded: ") :], ": its address is not valid.")
    for url, told in zip(urls, refusals(plain, urls), strict=True):
        dotted = "://127.0.0.1.:" in url and told.endswith(" is an unknown host.")
        assert dotted or told.endswith(ends), (url, told)


def test_ports_of_other_services_are_refused(server: Server) -> None:
    sentence = (
        "page.test:99 has a port that is not for web pages; 80, 443 and those from 1024 up may be read here."
    )
    assert server.refused("http://page.test:99/") == f"The page could not be loaded: {sentence}"


def test_a_host_that_is_not_there_is_said_to_be_so(server: Server) -> None:
    assert server.refused("http://nobody.invalid/") == (
        "The page could not be loaded: nobody.invalid is an unknown host."
    )


# --- what a page leads to ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["http://127.0.0.1:{}/", "https://[::1]:{}/x", "http://inside.test:{}/"])
def test_a_redirect_to_an_inner_address_is_refused(
    server: Server, outside: Web, canary: Canary, target: str
) -> None:
    target = target.format(canary.port)
    outside.redirect("/moved", target)
    place = target.partition("//")[2].partition("/")[0]
    assert server.refused(outside.url("/moved", "page.test")) == refusal(place)


@pytest.mark.parametrize(
    "how", ['<meta http-equiv="refresh" content="0; url={}">', "<script>location='{}'</script>"]
)
def test_a_page_that_goes_on_to_an_inner_address_is_refused(
    browser: Server, outside: Web, canary: Canary, how: str
) -> None:
    for scheme in ("http", "https"):
        target = f"{scheme}://localhost:{canary.port}/"
        outside.page("/going", how.format(target))
        assert browser.refused(outside.url("/going", "page.test")) == refusal(f"localhost:{canary.port}")


def test_a_name_that_resolves_differently_the_second_time_is_refused(
    server: Server, outside: Web, canary: Canary, request: pytest.FixtureRequest
) -> None:
    """Checked and connected to is one and the same; the next request is checked anew."""
    host = "changing0.test" if request.node.name.endswith("[browser]") else "changing1.test"
    outside.redirect("/first", f"http://{host}:{outside.port}/second")
    outside.page("/second", "never here")
    before = outside.count("/first")
    assert server.refused(outside.url("/first", host)) == refusal(f"{host}:{outside.port}")
    assert (outside.count("/first"), outside.count("/second")) == (before + 1, 0)


PAGE = """<main><h1>Tries</h1><ul id="said"></ul></main>
<img src="http://127.0.0.1:PORT/i"><script src="http://localhost:PORT/s"></script>
<link rel="stylesheet" href="http://127.0.0.1:PORT/c"><link rel="preload" as="script" href="http://0:PORT/p">
<link rel="prefetch" href="http://127.0.0.1:PORT/f"><link rel="dns-prefetch" href="//localhost">
<link rel="preconnect" href="http://127.0.0.1:PORT"><link rel="icon" href="http://127.0.0.1:PORT/icon">
<iframe src="http://127.0.0.1:PORT/frame"></iframe><iframe src="https://[::1]:PORT/frame"></iframe>
<iframe src="http://page.test:PORT/to-inside"></iframe><object data="http://127.0.0.1:PORT/o"></object>
<embed src="http://127.0.0.1:PORT/e"><video src="http://127.0.0.1:PORT/v" autoplay></video>
<form id="form" method="post" target="hole" action="http://127.0.0.1:PORT/form"><input name="a"></form>
<iframe name="hole"></iframe>
<script type="speculationrules">
{"prefetch": [{"urls": ["http://127.0.0.1:PORT/rule"], "eagerness": "immediate"}]}
</script>
<script>
const tries = [];
const say = (text) => { document.getElementById("said").innerHTML += "<li>" + text + "</li>"; };
const opened = (socket) => new Promise((ok, no) => { socket.onmessage = ok; socket.onerror = no; });
const tell = (what, attempt) => {
  tries.push(attempt.then(() => say(what + " done"), () => say(what + " failed")));
};
tell("fetch-outside", fetch("http://page.test:PORT/data").then((answer) => answer.text()));
tell("socket-outside", opened(new WebSocket("ws://page.test:PORT/socket")));
tell("socket-inside", opened(new WebSocket("ws://127.0.0.1:PORT/socket")));
tell("changing", fetch("http://changing2.test:PORT/data").then(
    () => fetch("http://changing2.test:PORT/data")).then((answer) => answer.text()));
for (const host of ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "127.0.0.1.",
                    "0.0.0.0", "inside.test", "any.localhost", "changing3.test", "changing3.test"]) {
  for (const scheme of ["http", "https"]) {
    tries.push(fetch(`${scheme}://${host}:PORT/fetch`, {mode: "no-cors"}));
    tries.push(opened(new WebSocket(`${scheme.replace("http", "ws")}://${host}:PORT/socket`)));
  }
  tries.push(fetch(`http://page.test:PORT/to-inside`, {mode: "no-cors"}));
  navigator.sendBeacon(`http://${host}:PORT/beacon`, "x");
  const request = new XMLHttpRequest();
  request.open("GET", `http://${host}:PORT/xhr`);
  request.send();
  new EventSource(`http://${host}:PORT/events`);
}
new Worker(URL.createObjectURL(new Blob([
  "try { importScripts('http://127.0.0.1:PORT/w') } catch { fetch('http://localhost:PORT/w') }"])));
document.getElementById("form").submit();
const user = {username: "u", credential: "c"};
const peer = new RTCPeerConnection({iceServers: [
  {urls: ["stun:127.0.0.1:UDP"]}, {urls: ["turn:127.0.0.1:UDP?transport=udp"], ...user},
  {urls: "turn:127.0.0.1:PORT?transport=tcp", ...user}, {urls: "turns:127.0.0.1:PORT", ...user}]});
peer.createDataChannel("x");
peer.createOffer().then((offer) => peer.setLocalDescription(offer));
const late = new Promise((over) => setTimeout(over, 4000));  // it lets sockets wait for each other
Promise.race([Promise.allSettled(tries), late]).then(() => say("all over"));
</script>"""


def answer_socket(visit: Visit) -> None:
    """Take a WebSocket and say something on it."""
    key = visit.headers.get("Sec-WebSocket-Key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    visit.send_response(101)
    for name, value in {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": b64encode(sha1(key.encode()).digest()).decode(),
    }.items():
        visit.send_header(name, value)
    visit.end_headers()
    visit.write(b"\x81\x02hi")
    visit.rfile.read(1)


def test_nothing_that_a_page_does_reaches_an_inner_address(
    browser: Server, outside: Web, canary: Canary
) -> None:
    """While what it does with public addresses works, WebSockets included."""
    outside.page("/tries", PAGE.replace("PORT", str(canary.port)).replace("UDP", str(canary.udp_port)))
    outside.add("/data", "data", "text/plain", access_control_allow_origin="*")
    outside.redirect("/to-inside", f"http://127.0.0.1:{canary.port}/moved")
    outside.answer("/socket", answer_socket)
    outcomes = (
        *("fetch-outside done", "socket-outside done", "socket-inside failed", "changing failed"),
        "all over",
    )
    for wait_ms in (5000, 20_000):  # on a busy machine its tries take longer
        is_error, text = browser.read(outside.url("/tries", "page.test"), wait_ms=wait_ms)
        assert not is_error, text
        if all(line in text for line in outcomes):
            break
    for line in outcomes:
        assert line in text
    assert "secret" not in text


# --- who may reach more, and who may not -------------------------------------------------------------------

SERVE = ("-m", "fastrpc", "serve", "--http", "127.0.0.1:0")


def test_the_command_serves_so_by_default_and_a_network_may_be_opened(outside: Web, canary: Canary) -> None:
    web = outside
    web.page("/inner", "<p>inner words</p>")
    options = {"FASTRPC_TOKEN": raw_http.TOKEN, "FASTRPC_BROWSER": "/no/such/browser"}
    with served(*SERVE, **options) as server:
        assert server.refused(web.url("/inner")) == refusal(f"{OUTSIDE}:{web.port}")
    with served(*SERVE, **options, FASTRPC_REACH="10.0.0.0/8,127.0.0.2/32") as server:
        assert "inner words" in server.read(web.url("/inner"))[1]
        assert server.refused(f"http://127.0.0.1:{canary.port}/") == refusal(f"127.0.0.1:{canary.port}")
    with served(*SERVE, **options, FASTRPC_REACH="all") as server:
        assert "inner words" in server.read(web.url("/inner"))[1]


def test_over_stdio_everything_is_read_without_a_proxy_unless_the_setting_says_otherwise(
    outside: Web,
) -> None:
    chromium.need()
    url = outside.page("/inner", "<p>inner words</p>")
    with chromium.temporary_folder() as home:
        environment = {"TMPDIR": home, "HOME": home, "FASTRPC_STATE_DIR": os.path.join(home, "state")}
        with stdio.serve(environment=environment, folder=home) as server:
            server.initialize()
            assert "inner words" in server.call("ReadDocs", url=url)["content"][0]["text"]
            commands = chromium.processes_in(home).values()
            assert any("--user-data-dir" in command for command in commands)
            assert not any("--proxy" in command for command in commands)
        environment |= {"FASTRPC_REACH": "public", "FASTRPC_BROWSER": "/no/such/browser"}
        with stdio.serve(environment=environment, folder=home) as server:
            server.initialize()
            result = server.call("ReadDocs", url=url)
            assert result["isError"]
            assert result["content"][0]["text"] == refusal(f"{OUTSIDE}:{outside.port}")


def test_in_one_process_those_who_may_reach_less_have_a_separate_browser(
    tmp_path_factory: pytest.TempPathFactory, outside: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    chromium.need(whole=True)
    monkeypatch.setenv("FASTRPC_BROWSER_SANDBOX", "0")
    url = outside.page("/inner", "<p>inner words</p>")
    with chromium.shelter(tmp_path_factory) as folder:
        loop = chromium.Loop()
        read = chromium.Reader(loop)
        try:
            assert chromium.facts_of(read(url))["via"] == "browser"
            monkeypatch.setenv("FASTRPC_REACH", "public")
            assert read.refused(url) == refusal(f"{OUTSIDE}:{outside.port}")
            assert len(proxy_ports(folder)) == 1
            monkeypatch.delenv("FASTRPC_REACH")
            assert "inner words" in chromium.text_of(read(url))
        finally:
            loop.close()


def test_for_others_the_browser_does_not_go_without_its_sandbox_unasked(outside: Web) -> None:
    chromium.need()
    if os.geteuid() != 0:
        pytest.skip("only root is refused the sandbox everywhere")
    outside.page("/open", "<p>open words</p>")
    with served("-c", PROGRAM, TOKEN_OF_THE_TEST=raw_http.TOKEN) as server:
        is_error, text = server.read(outside.url("/open", "page.test"))
        assert not is_error
        assert "[read by plain HTTP, scripts did not run: " in text
        assert "only FASTRPC_BROWSER_SANDBOX=0 lets others use a browser without it]" in text
        drawing = os.path.join(server.folder, "a.svg")
        with open(drawing, "w") as file:
            file.write(
                '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0h8v8z"/></svg>'
            )
        assert "FASTRPC_BROWSER_SANDBOX=0" in server.read("", "ReadImage", file_path=drawing)[1]


# --- the proxy's own life -----------------------------------------------------------------------------------


def proxy_ports(folder: str) -> set[int]:
    commands = chromium.processes_in(folder).values()
    words = [word for command in commands for word in command.split() if word.startswith("--proxy-server=")]
    return {int(word.rpartition(":")[2]) for word in words}


def refuses(port: int) -> bool:
    try:
        answer_of(port, "x")
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def answer_of(port: int, text: str) -> bytes:
    with socket.create_connection((INSIDE, port), SECONDS) as connection:
        connection.sendall(text.encode())
        return connection.recv(200)


def test_no_one_else_can_use_the_proxy_and_it_dies_with_the_server(outside: Web, canary: Canary) -> None:
    chromium.need(whole=True)
    outside.page("/open", "<p>open words</p>")
    with served("-c", PROGRAM, TOKEN_OF_THE_TEST=raw_http.TOKEN, FASTRPC_BROWSER_SANDBOX="0") as server:
        assert "open words" in server.read(outside.url("/open", "page.test"))[1]
        (port,) = proxy_ports(server.folder)
        asked = outside.count("/open")
        for request in (f"GET http://{OUTSIDE}:{outside.port}/open", f"CONNECT {OUTSIDE}:{outside.port}"):
            assert answer_of(port, f"{request} HTTP/1.1\r\nhost: x\r\n\r\n").startswith(b"HTTP/1.1 407 ")
        assert outside.count("/open") == asked
        password = RULES["word"][::-1]  # type: ignore[index]
        word = b64encode(f"fastrpc:{password}".encode()).decode()
        request = f"CONNECT {OUTSIDE}:{outside.port} HTTP/1.1\r\nproxy-authorization: Basic {word}\r\n\r\n"
        assert answer_of(port, request).startswith(b"HTTP/1.1 200 ")
        for pid in (server.process.pid, *chromium.processes_in(server.folder)):
            for file in ("cmdline", "environ"):
                shown = process_list.read(f"/proc/{pid}/{file}")  # processes of the browser come and go
                assert password.encode() not in shown
                assert word.encode() not in shown
        for command in chromium.processes_in(server.folder).values():
            for switch in ("--no-proxy-server", "--proxy-auto-detect", "--proxy-pac-url"):
                assert switch not in command
        server.process.send_signal(signal.SIGKILL)
        eventually(lambda: refuses(port))  # the proxy does not outlive its server
        chromium.none_left(server.folder)
