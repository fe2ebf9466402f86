"""A web server on the loopback address for tests: pages by path, slow ones, redirects, downloads, counted.

    with serve() as web:
        web.page("/hello", "<h1>Hello</h1>")
        web.add("/data.json", b'{"a": 1}', "application/json")
        web.redirect("/old", "/hello")
        web.answer("/slow", lambda visit: time.sleep(5))       # whatever else: a function of the visit
        ... web.url("/hello") ...
        assert web.count("/hello") == 1

Each request has a separate thread. `web.requests` lists `(method, path)` in the order they came,
`web.headers` the last headers by path. What is still being written when the block ends is cut off.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Handler = Callable[["Visit"], object]


class Visit(BaseHTTPRequestHandler):
    """One request. `respond` answers it whole; `begin` and `write` in pieces."""

    web: Web
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        with self.web.lock:
            self.web.requests.append((self.command, self.path))
            self.web.headers[path] = dict(self.headers.items())
        handler = self.web.handlers.get(path)
        self.close_connection = True
        try:
            if handler is None:
                self.respond(b"<h1>Not here</h1>", status=404)
            else:
                handler(self)
        except OSError:
            pass  # the client has gone

    do_POST = do_HEAD = do_GET

    def respond(
        self,
        body: bytes | str,
        media: str | None = "text/html; charset=utf-8",
        status: int = 200,
        **headers: str,
    ) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.begin(media, status, content_length=str(len(data)), **headers)
        self.write(data)

    def begin(
        self, media: str | None = "text/html; charset=utf-8", status: int = 200, **headers: str
    ) -> None:
        self.send_response(status)
        if media is not None:
            self.send_header("Content-Type", media)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def for_ever(self, piece: bytes, pause: float = 0.01) -> None:
        """Write a piece again and again until the client goes or the test is over."""
        while not self.web.over.wait(pause):
            self.write(piece)

    def log_message(self, format: str, *values: Any) -> None:
        pass


class Web:
    """The server, and what it was asked."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.handlers: dict[str, Handler] = {}
        self.requests: list[tuple[str, str]] = []
        self.headers: dict[str, dict[str, str]] = {}
        self.lock = threading.Lock()
        self.over = threading.Event()
        self._server = ThreadingHTTPServer((host, 0), type("Visit", (Visit,), {"web": self}))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def url(self, path: str = "/", host: str = "") -> str:
        return f"http://{host or self.host}:{self.port}{path}"

    def answer(self, path: str, handler: Handler) -> str:
        """Have a function answer requests for a path; return its address."""
        self.handlers[path] = handler
        return self.url(path)

    def add(
        self, path: str, body: bytes | str, media: str | None = "text/html; charset=utf-8", **more: Any
    ) -> str:
        return self.answer(path, lambda visit: visit.respond(body, media, **more))

    def page(self, path: str, body: str, title: str = "", head: str = "") -> str:
        """Serve a page with that body."""
        return self.add(
            path, f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"
        )

    def redirect(self, path: str, target: str, status: int = 302) -> str:
        return self.answer(path, lambda visit: visit.respond(b"", status=status, location=target))

    def count(self, path: str) -> int:
        """Return how often a path was asked for, whatever its query."""
        with self.lock:
            return sum(1 for _, asked in self.requests if asked.partition("?")[0] == path)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def serve(host: str = "127.0.0.1") -> Iterator[Web]:
    web = Web(host)
    try:
        yield web
    finally:
        web.close()
