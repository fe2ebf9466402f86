"""nginx, Caddy and HAProxy as docs/http.md prints them, each a process of its own on loopback, over TLS.

    with reverse_proxy("nginx", folder, server.port) as front:
        assert front.call("echo", text="hello") == "hello"

With ``deployed=True`` the configuration is that of examples/deployment, with two servers behind.

The text of the document is used as it is; ports, files of certificates and addresses of servers behind
are replaced, and each of them has to be there. What a proxy needs around it (where it writes, what it listens
on) is added outside of that text. `Front` is a client that names the host of the document, and trusts the
proxy's certificate alone. Where a proxy is not installed the test is skipped; on CI it fails.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import certificates
from support.http_client import Serving
from support.ports import free_port
from support.skips import not_installed
from support.waiting import SECONDS

HOST = "mcp.example.com"
DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "http.md")
LANGUAGES = {"nginx": "nginx", "caddy": "caddyfile", "haproxy": "haproxy"}
PROXIES = list(LANGUAGES)
DEPLOYMENT = Path(__file__).resolve().parent.parent.parent / "examples" / "deployment"
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
SERVER = re.compile(r"\b(?:127\.0\.0\.1|10(?:\.\d+){3}):8000\b")
TRIES = 3  # a port that the system has just named may be taken by somebody else before the proxy listens


def printed(language: str) -> str:
    """Return the one snippet of the document in this language."""
    with open(DOCUMENT, encoding="utf-8") as file:
        found = re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
    assert len(found) == 1, f"docs/http.md has {len(found)} snippets of {language}"
    return str(found[0])


def replaced(text: str, values: dict[str, str]) -> str:
    """Replace what a machine has otherwise. Fails for what the text does not have exactly once."""
    for name, value in values.items():
        assert text.count(name) == 1, f"{name} stands {text.count(name)} times in:\n{text}"
        text = text.replace(name, value)
    return text


def at_these_ports(text: str, ports: list[int]) -> dict[str, str]:
    """Return what takes the place of each server's address in a configuration."""
    places = SERVER.findall(text)
    assert len(places) <= 2, places
    if places == ["127.0.0.1:8000"] and f"server {places[0]};" in text:  # nginx: a group of servers
        return {f"server {places[0]};": " ".join(f"server 127.0.0.1:{port};" for port in ports)}
    return {place: f"127.0.0.1:{ports[number % len(ports)]}" for number, place in enumerate(places)}


def program_of(name: str) -> str:
    """Return a proxy's program. Skips where it is not installed."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"))
    found = shutil.which(name, path=places)
    if found is None:
        pytest.skip(not_installed(name))
    return found


# --- what each of them is given ---------------------------------------------------------------------------
# (folder, port, ports behind) → (arguments, environment, certificate to trust)

Given = tuple[list[str], dict[str, str], Path]


def _nginx(folder: Path, port: int, behind: list[int], text: str) -> Given:
    certificate, key = certificates.for_host(folder, HOST)
    text = replaced(
        text,
        {
            **at_these_ports(text, behind),
            "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
            "/etc/mcp/fullchain.pem": certificate,
            "/etc/mcp/privkey.pem": key,
        },
    )
    user = pwd.getpwuid(os.geteuid()).pw_name
    written = [f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    around = [
        *([f"user {user};"] if os.geteuid() == 0 else []),
        f"pid {folder}/nginx.pid;",
        "worker_processes 2;",
        "daemon off;",
        "events {}",
        "http {",
        "access_log off;",
        *written,
        text,
        "}",
    ]
    (folder / "nginx.conf").write_text("\n".join(around))
    return ["-p", str(folder), "-c", "nginx.conf", "-e", "stderr"], {}, Path(certificate)


def _caddy(folder: Path, port: int, behind: list[int], text: str) -> Given:
    """Caddy gets certificates by itself; here from an authority of its own (``local_certs``)."""
    values = at_these_ports(text, behind)
    if _version_of(program_of("caddy")) < (2, 7):
        values["request_buffers 16MiB "] = "buffer_requests "
    text = replaced(text, values)
    around = [
        "{",
        "admin off",
        "default_bind 127.0.0.1",
        f"https_port {port}",
        "auto_https disable_redirects",
        "local_certs",
        "skip_install_trust",
        "}",
        text,
    ]
    (folder / "Caddyfile").write_text("\n".join(around))
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    arguments = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"]
    return arguments, homes, folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"


def _version_of(program: str) -> tuple[int, int]:
    """Return the version that Caddy says it has."""
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    assert found is not None, said
    return int(found[1]), int(found[2])


def _haproxy(folder: Path, port: int, behind: list[int], text: str) -> Given:
    certificate, key = certificates.for_host(folder, HOST)
    both = folder / "both.pem"
    both.write_bytes(Path(certificate).read_bytes() + Path(key).read_bytes())
    text = replaced(
        text,
        {
            **at_these_ports(text, behind),
            "bind :443 ": f"bind 127.0.0.1:{port} ",
            "/etc/mcp/both.pem": str(both),
        },
    )
    (folder / "haproxy.cfg").write_text(text)
    return ["-db", "-f", "haproxy.cfg"], {}, Path(certificate)


GIVEN = {"nginx": _nginx, "caddy": _caddy, "haproxy": _haproxy}


# --- their processes --------------------------------------------------------------------------------------


@contextlib.contextmanager
def reverse_proxy(name: str, folder: Path, *behind: int, deployed: bool = False) -> Iterator[Front]:
    """Start a proxy in front of servers at these ports, `deployed` with the configuration of
    examples/deployment.."""
    program = program_of(name)
    text = (DEPLOYMENT / FILES[name]).read_text() if deployed else printed(LANGUAGES[name])
    for attempt in range(TRIES):
        port = free_port()
        arguments, variables, trusted = GIVEN[name](folder, port, list(behind), text)
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                [program, *arguments],
                cwd=folder,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            tls = _when_it_listens(process, port, trusted)
            said = (folder / "log").read_text(errors="replace")
            if tls is None:
                assert attempt + 1 < TRIES, f"{name} did not begin:\n{said}"
                assert "in use" in said or "bind" in said, f"{name} did not begin:\n{said}"
                continue
            yield Front(port, tls, log=folder / "log")
            return
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _when_it_listens(process: subprocess.Popen[bytes], port: int, trusted: Path) -> ssl.SSLContext | None:
    """Return what trusts a proxy once it takes connections; None if it has ended before that."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            tls = ssl.create_default_context(cafile=str(trusted))
            with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
                tls.wrap_socket(plain, server_hostname=HOST).close()
            return tls
        time.sleep(0.02)
    return None


class Front(Serving):
    """What a client sees of a proxy: a server at the document's host name. It has no separate process."""

    def __init__(self, port: int, tls: ssl.SSLContext, host: str = HOST, log: Path | None = None) -> None:
        self.port = port
        self._log = log
        self.tls = tls
        self.host = host
        self.token = "a-token-for-tests-of-serving"
        self.path = "/mcp"

    def log(self) -> str:
        """Return what the proxy has written to its log."""
        return "" if self._log is None else self._log.read_text(errors="replace")

    def connection(self) -> http.client.HTTPConnection:
        assert self.tls is not None
        return _Connection(self.host, self.port, self.tls)


class _Connection(http.client.HTTPSConnection):
    """HTTPS to a name whose address no one has to look up."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext) -> None:
        super().__init__(host, timeout=SECONDS, context=context)
        self._place = ("127.0.0.1", port)
        self._tls = context

    def connect(self) -> None:
        plain = socket.create_connection(self._place, SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock: Any = self._tls.wrap_socket(plain, server_hostname=HOST)


class Http2:
    """A connection that speaks HTTP/2 with a proxy, by the library h2. Streams go by their numbers."""

    def __init__(self, front: Front) -> None:
        from h2.connection import H2Connection

        assert front.tls is not None
        tls = front.tls
        tls.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", front.port), SECONDS)
        self._socket = tls.wrap_socket(plain, server_hostname=HOST)
        assert self._socket.selected_alpn_protocol() == "h2"
        self._front = front
        self._http = H2Connection()
        self._bodies: dict[int, bytes] = {}
        self._ended: set[int] = set()
        self._http.initiate_connection()
        self._flush()

    def __enter__(self) -> Http2:
        return self

    def __exit__(self, *exception: object) -> None:
        self._socket.close()

    def post(self, given: tuple[Any, dict[str, str]]) -> int:
        """Send a message with its headers to the endpoint; return its stream."""
        message, more = given
        data = json.dumps(message).encode()
        stream: int = self._http.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "https"), (":authority", self._front.host)]
        headers = {**self._front.headers(**more), "Content-Length": str(len(data))}
        head += [(":path", self._front.path), *((name.lower(), value) for name, value in headers.items())]
        self._http.send_headers(stream, head)
        self._http.send_data(stream, data, end_stream=True)
        self._bodies[stream] = b""
        self._flush()
        return stream

    def read(self, stream: int, until: bytes | None = None) -> bytes:
        """Read a stream to its end, or until something has come; return what has come."""
        while stream not in self._ended and (until is None or until not in self._bodies[stream]):
            data = self._socket.recv(65536)
            assert data, "the connection has ended"
            for event in self._http.receive_data(data):
                kind, number = type(event).__name__, getattr(event, "stream_id", 0)
                if kind == "DataReceived":
                    self._bodies[number] += event.data
                    self._http.acknowledge_received_data(event.flow_controlled_length, number)
                elif kind == "StreamEnded":
                    self._ended.add(number)
                assert kind not in ("StreamReset", "ConnectionTerminated"), event
            self._flush()
        assert until is None or until in self._bodies[stream], self._bodies[stream]
        return self._bodies[stream]

    def reset(self, stream: int) -> None:
        """Give a stream up (RFC 9113, 8.1: CANCEL)."""
        self._http.reset_stream(stream, 8)
        self._flush()

    def _flush(self) -> None:
        self._socket.sendall(self._http.data_to_send())
