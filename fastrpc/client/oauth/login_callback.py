"""The person's part of a login: opens the browser, and receives the redirect at this machine (RFC 8252).

`Redirect` listens at 127.0.0.1 while one login is under way, and takes one redirect: a GET of its path, with
the state that was sent. Anything else is refused and changes nothing, so that no page in the browser can
end or replace a login. Each connection is bounded in bytes and time; its page quotes nothing of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from fastrpc import diagnostics
from fastrpc.errors import AuthorizationFailed

HOST = "127.0.0.1"
PATH = "/callback"
LONGEST_HEAD = 16 * 1024
"""Bytes of a request."""
HEAD_SECONDS = 10.0

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>fastrpc</title>
<body><p>{}</p></body></html>"""
HEAD = (
    "HTTP/1.1 {}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n"
    "content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\n"
    "cache-control: no-store\r\nconnection: close\r\n\r\n"
)
DONE = "You are logged in. This page can be closed."
DENIED = "The login was not completed. This page can be closed."
ANOTHER = "This page belongs to another login."


class Redirect:
    """Receives the redirect of one login."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._state = ""
        self._received: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._refused = 0
        """How many redirects had another state."""
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    async def listen(self, port: int) -> None:
        """Listen at a port, 0 for any. Raises OSError if it is taken."""
        self._server = await asyncio.start_server(self._serve, HOST, port, limit=LONGEST_HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        connections = tuple(self._connections)  # such as those that a browser opens in advance
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def expect(self, authorization_url: str) -> None:
        """Take a redirect with the state of this address."""
        self._state = _query(authorization_url).get("state", "")

    async def result(self, seconds: float) -> dict[str, str]:
        """Return the members of the redirect. Raises AuthorizationFailed if it says no, or does not come."""
        try:
            found = await asyncio.wait_for(asyncio.shield(self._received), seconds)
        except asyncio.TimeoutError:
            also = f"; {self._refused} redirects with another state were refused" if self._refused else ""
            raise AuthorizationFailed(f"the login was not completed within {seconds:g} s{also}") from None
        if "error" in found:
            about = found.get("error_description")
            raise AuthorizationFailed(
                f"the login was denied: {found['error']:.80}" + (f": {about:.200}" if about else "")
            )
        return found

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
            status, words = self._answer(head.decode("latin-1"))
            page = PAGE.format(words).encode()
            writer.write(HEAD.format(status, len(page)).encode() + page)
            await asyncio.wait_for(writer.drain(), HEAD_SECONDS)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> tuple[str, str]:
        """Return the status and the words for a request, and take it if it is the redirect."""
        from secrets import compare_digest

        request, *fields = head.split("\r\n")
        method, _, rest = request.partition(" ")
        target = rest.partition(" ")[0]
        hosts = [
            value.strip()
            for name, _, value in (field.partition(":") for field in fields)
            if name.lower() == "host"
        ]
        if method != "GET" or target.partition("?")[0] != PATH or hosts != [f"{HOST}:{self.port}"]:
            return "404 Not Found", "There is nothing here."
        found = _query(target)
        if not self._state or not compare_digest(found.get("state", "").encode(), self._state.encode()):
            self._refused += 1
            return "400 Bad Request", ANOTHER
        if self._received.done():
            return "400 Bad Request", ANOTHER
        self._received.set_result(found)
        return "200 OK", DENIED if "error" in found else DONE


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def show(url: str, open_browser: Callable[[str], object] | None) -> None:
    """Show a person the page of the login: with `open_browser`, or in the system's browser. The address is
    written to standard error too, unless a function of the user has shown it."""
    if open_browser is not None:
        done = await asyncio.to_thread(open_browser, url)  # it may block
        if hasattr(done, "__await__"):
            done = await done
        if done is not False:
            return
    diagnostics.write_line(f"fastrpc: log in at {url}")
    if open_browser is None and _has_screen():
        await asyncio.to_thread(_open_system_browser, url)


def _has_screen() -> bool:
    """Whether a browser would have a window. One in the terminal would take it from the program."""
    import os
    import sys

    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def _open_system_browser(url: str) -> None:
    """Start the browser in a process whose output is not ours, which may be a protocol's."""
    import subprocess
    import sys

    from fastrpc.processes.variables import environment

    silent = subprocess.DEVNULL
    with suppress(OSError, subprocess.TimeoutExpired):  # standard error shows the address
        subprocess.run(
            [sys.executable, "-m", "webbrowser", url],
            stdin=silent,
            stdout=silent,
            stderr=silent,
            env=environment(),
            timeout=HEAD_SECONDS,
            start_new_session=True,
            check=False,
        )
