"""An HTTP server on loopback that never ends an answer: whoever counts from the last byte waits for ever.

    with Dripping("HTTP/1.1 200 OK\\r\\n") as server: ...      # server.url, server.connections

What follows the beginning is a byte now and then.
"""

from __future__ import annotations

import contextlib
import socketserver
import threading
from types import TracebackType

PAUSE_SECONDS = 0.02


class Dripping:
    """Serves inside of ``with``. `begins`: how each answer begins."""

    def __init__(self, begins: str = "") -> None:
        self.connections = 0
        self._ends = threading.Event()
        dripping = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                dripping.connections += 1
                with contextlib.suppress(OSError):
                    self.request.sendall(begins.encode())
                    while not dripping._ends.wait(PAUSE_SECONDS):
                        self.request.sendall(b"x")

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Dripping:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()
