"""A loopback server that replaces the search engines of WebSearch: their pages, and what else they do.

    with search_engines(bing="captcha", qwant="hang") as engines:
        os.environ["FASTRPC_SEARCH_ADDRESS"] = engines.address
        …
        engines.requests[0].engine, .method, .path, .fields, .headers

A request goes to ``/<engine>/<path of the engine>`` and gets the engine's page from ``fixtures/search``,
unless the engine has one of the `MODES`. Standard library only; also a program, to try by hand:
``python tests/support/search_engines.py bing=captcha qwant=hang``.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "search")

MODES = {
    "ok": "its page with results",
    "gzip": "the same, packed",
    "scripts": "the other shape of its page, where it has two",
    "empty": "its page that says that there are no results",
    "captcha": "its page that asks for a person, with 200",
    "redirect": "a redirect to its captcha",
    "elsewhere": "a redirect to another host",
    "circle": "a redirect to itself",
    "blocked": "403",
    "busy": "429",
    "failing": "503",
    "broken": "bytes that are no page and no JSON",
    "changed": "a page of another shape",
    "slow": "its page with results, after `delay` seconds",
    "hang": "nothing at all",
    "stall": "the beginning of its page, and nothing more",
    "huge": "a page of 3 MiB",
    "bomb": "64 MiB, packed to 64 KiB",
    "dropped": "the connection closed without an answer",
}

CAPTCHAS = {
    "duckduckgo": "https://duckduckgo.com/anomaly.js?sv=html",
    "bing": "/challenge/verify?q=x",
    "brave": "/captcha?q=x",
    "google": "https://www.google.com/sorry/index?continue=x",
    "mojeek": "/captcha",
    "yahoo": "https://guce.yahoo.com/consent?brandType=nonEu",
    "yandex": "https://yandex.com/showcaptcha?cc=1",
    "startpage": "/sp/captcha",
    "qwant": "https://geo.captcha-delivery.com/captcha/?cid=x",
    "wikipedia": "/captcha",
    "searxng": "/captcha",
}


class Asked:
    """One request that came."""

    def __init__(self, engine: str, method: str, path: str, fields: dict[str, str], headers: Any) -> None:
        self.engine = engine
        self.method = method
        self.path = path
        self.fields = fields
        self.headers = headers


class StandIn(ThreadingHTTPServer):
    """The server. `modes` may be changed while it runs; an engine without one is ``ok``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, modes: dict[str, str], delay: float = 1.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.modes = modes
        self.delay = delay
        self.requests: list[Asked] = []
        self.ended = threading.Event()  # what hangs, hangs until then

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked(self, engine: str) -> list[Asked]:
        return [request for request in self.requests if request.engine == engine]

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients may go away in the middle of a page: that is what they are tried with


class Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer("")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode())

    def do_CONNECT(self) -> None:
        """What a client asks who takes this server for its proxy: noted, and refused."""
        self.server.requests.append(Asked("", self.command, self.path, {}, self.headers))
        self.page(b"", 502)

    def answer(self, form: str) -> None:
        parts = urlsplit(self.path)
        engine, _, path = parts.path.lstrip("/").partition("/")
        fields = dict(parse_qsl(form or parts.query, keep_blank_values=True))
        self.server.requests.append(Asked(engine, self.command, f"/{path}", fields, self.headers))
        mode = self.server.modes.get(engine, "ok")
        if engine == "startpage" and self.command == "GET" and mode in ("ok", "gzip", "empty"):
            self.page(fixture(engine, "welcome"))
        elif mode in ("ok", "gzip", "slow"):
            if mode == "slow":
                self.server.ended.wait(self.server.delay)
            self.page(fixture(engine), packed=mode == "gzip")
        elif mode in ("empty", "captcha", "scripts"):
            self.page(fixture(engine, mode), 202 if (engine, mode) == ("duckduckgo", "captcha") else 200)
        else:
            getattr(self, f"be_{mode}")(engine)

    def page(self, body: bytes, status: int = 200, packed: bool = False, **headers: str) -> None:
        if packed:
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def be_redirect(self, engine: str) -> None:
        self.page(b"", 302, Location=CAPTCHAS[engine])

    def be_elsewhere(self, engine: str) -> None:
        self.page(b"", 302, Location="http://127.0.0.1:1/secret")

    def be_circle(self, engine: str) -> None:
        self.page(b"", 302, Location=self.path.removeprefix(f"/{engine}"))

    def be_blocked(self, engine: str) -> None:
        self.page(b"Forbidden", 403)

    def be_busy(self, engine: str) -> None:
        self.page(b"Too many requests", 429, Retry_After="60")

    def be_failing(self, engine: str) -> None:
        self.page(b"Service unavailable", 503)

    def be_broken(self, engine: str) -> None:
        self.page(b'\xff\xfe{"results": [<<< &#xZZ;\x00')

    def be_changed(self, engine: str) -> None:
        page = b"<html><style>.no-results{}</style><body><h2>All is new here</h2></body></html>"
        json = b'{"hits": [{"link": "https://x.example/"}]}'
        self.page(page if fixture_path(engine).endswith(".html") else json)

    def be_hang(self, engine: str) -> None:
        self.server.ended.wait(60)
        self.close_connection = True

    def be_stall(self, engine: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(fixture(engine)[:100])
        self.wfile.flush()
        self.be_hang(engine)

    def be_huge(self, engine: str) -> None:
        self.page(b"<html><body>" + b"<p>long</p>" * (3 * 1024**2 // 11))

    def be_bomb(self, engine: str) -> None:
        self.page(bomb(), Content_Encoding="gzip")

    def be_dropped(self, engine: str) -> None:
        self.close_connection = True
        self.connection.close()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def fixture_path(engine: str, kind: str = "") -> str:
    name = f"{engine}.{kind}" if kind else engine
    page = os.path.join(FOLDER, f"{name}.html")
    return page if os.path.exists(page) else os.path.join(FOLDER, f"{name}.json")


def fixture(engine: str, kind: str = "") -> bytes:
    with open(fixture_path(engine, kind), "rb") as file:
        return file.read()


@functools.cache
def bomb() -> bytes:
    return gzip.compress(b" " * 64 * 1024**2)


@contextlib.contextmanager
def search_engines(*, delay: float = 1.0, **modes: str) -> Iterator[StandIn]:
    """Run the server for the time of the block. ``everyone="hang"`` sets all."""
    everyone = modes.pop("everyone", None)
    if everyone is not None:
        modes = dict.fromkeys(CAPTCHAS, everyone) | modes
    assert not set(modes.values()) - set(MODES), f"unknown mode in {modes}"
    if "bomb" in modes.values():
        bomb()  # made once, before many ask for it at the same time
    server = StandIn(modes, delay)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


if __name__ == "__main__":
    chosen: Any = dict(argument.split("=") for argument in sys.argv[1:])
    with search_engines(**chosen) as running:
        print(f"export FASTRPC_SEARCH_ADDRESS={running.address}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
