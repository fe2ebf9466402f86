"""What attacks a server over HTTP for minutes, with honest callers beside; the counts of SECURITY.md are its.

    python tests/soak/attack_http.py [flood] [tls] [workers] [names]

Each part starts `fastrpc serve --http` on loopback, prints what it did and the result of it, and fails when
honest callers were shut out. `make soak` runs all. Linux, as root or with namespaces of its own for `names`;
the limit of open files has to be above 12,000 for the flood.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import resource
import selectors
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support import certificates  # noqa: E402
from support.http_client import ECHO_AND_WAIT, Serving, ask, children, stateless_request  # noqa: E402

CONNECTIONS = 10_000
SECONDS = 20.0
TOOLS = "from fastrpc import Server\napp = Server('soak')\n" + ECHO_AND_WAIT
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
FLOODS = {
    "silent": b"",
    "one byte": b"P",
    "half a head": b"POST /mcp HTTP/1.1\r\nHost: localho",
    "idle": HEALTH,
}


@contextlib.contextmanager
def served(*options: str, tls: ssl.SSLContext | None = None) -> Iterator[Serving]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tools.py").write_text(TOOLS)
        arguments = ["serve", "tools.py", "--http", "127.0.0.1:0", *options]
        with Serving(*arguments, folder=folder, tls=tls) as server:
            yield server


# --- honest callers ---------------------------------------------------------------------------------------


class Callers:
    """Threads that call a tool again and again, on connections that they keep or on new ones."""

    def __init__(self, server: Serving, *, keeping: int = 4, coming: int = 4) -> None:
        self.server = server
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        kinds = ["kept"] * keeping + ["new"] * coming
        self._threads = [threading.Thread(target=self._run, args=(kind,), daemon=True) for kind in kinds]

    def __enter__(self) -> Callers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self, kind: str) -> None:
        connection = self.server.connection()
        connection.timeout = 10.0
        message, headers = stateless_request("tools/call", {"name": "echo", "arguments": {"text": "hello"}})
        while not self._ended.is_set():
            begun = time.monotonic()
            try:
                answer = ask(connection, "POST", "/mcp", message, self.server.headers(**headers))
                came = "answered" if answer.status == 200 and answer.text == "hello" else str(answer.status)
            except (OSError, http.client.HTTPException) as error:
                came = type(error).__name__
            took = time.monotonic() - begun
            if came != "answered" or kind == "new":
                connection.close()
            with self._lock:
                self.counts[f"{kind}: {came}"] += 1
                self.longest = max(self.longest, took)
            self._ended.wait(0.02)

    def told(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in sorted(self.counts.items()))
        return f"{counts}; the longest call took {self.longest:.2f} s"

    def all_answered(self, share: float = 1.0) -> None:
        answered = sum(number for name, number in self.counts.items() if name.endswith("answered"))
        assert answered >= share * sum(self.counts.values()) > 0, self.counts


# --- 10,000 connections at once ---------------------------------------------------------------------------


def hold_open(port: int, sent: bytes, seconds: float, many: int = CONNECTIONS) -> tuple[int, int]:
    """Keep connections open from 100 addresses, open anew what is closed; return how many of both."""
    opened = closed = 0
    selector = selectors.DefaultSelector()

    def add() -> None:
        nonlocal opened
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((f"127.0.1.{1 + opened % 100}", 0))
        connection.connect_ex(("127.0.0.1", port))
        selector.register(connection, selectors.EVENT_WRITE, None)
        opened += 1

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for _ in range(min(500, many - len(selector.get_map()))):
            add()
        for key, events in selector.select(0.01):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                if events & selectors.EVENT_WRITE:
                    connection.send(sent)
                    selector.modify(connection, selectors.EVENT_READ, None)
                    continue
                gone = not connection.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                gone = True
            if gone:
                selector.unregister(connection)
                connection.close()
                closed += 1
    for key in list(selector.get_map().values()):
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    return opened, closed


def attack(server: Serving, sent: bytes, name: str, share: float) -> None:
    """Flood a server for a while, with callers beside, and say the result of it."""
    most = memory = 0
    program = [sys.executable, __file__, "hold", str(server.port), sent.hex() or "-", str(SECONDS)]
    with Callers(server) as callers:
        time.sleep(0.5)
        flood = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
        while flood.poll() is None:
            most = max(most, len(os.listdir(f"/proc/{server.pid}/fd")))
            memory = max(memory, resident(server.pid))
            time.sleep(0.1)
        assert flood.stdout is not None
        opened, closed = flood.stdout.read().split()
        flood.stdout.close()
    print(f"{name}: {opened} connections, {closed} closed by the server; it had {most} files and {memory} MB")
    print(f"    {callers.told()}", flush=True)
    callers.all_answered(share)


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 2**20


def flood() -> None:
    for name, sent in FLOODS.items():
        with served() as server:
            attack(server, sent, f"flood, {name}", 0.99)
            assert server.call("echo", text="hello") == "hello"


# --- TLS --------------------------------------------------------------------------------------------------


def tls() -> None:
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = certificates.for_localhost(folder)
        context = ssl.create_default_context(cafile=certificate)
        options = ("--tls-cert", certificate, "--tls-key", key)
        with served(*options, tls=context) as server:
            versions_and_ciphers(server)
            renegotiation(server)
            broken_handshakes(server)
            assert server.call("echo", text="hello") == "hello"
        for name, sent in {"silent": b"", "a greeting that stalls": greeting()[:40]}.items():
            with served(*options, tls=context) as server:
                attack(server, sent, f"TLS, {name}", 0.99)


def shakes_hands(server: Serving, configure: Callable[[ssl.SSLContext], object]) -> str | None:
    """Return the cipher that a handshake comes to, None if to none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    configure(context)
    with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
        try:
            with context.wrap_socket(plain) as spoken:
                cipher = spoken.cipher()
                return f"{spoken.version()} {cipher[0] if cipher else ''}"
        except (ssl.SSLError, ConnectionError):
            return None


def versions_and_ciphers(server: Serving) -> None:
    import warnings

    taken: list[str] = []
    tried = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for version in (
            ssl.TLSVersion.TLSv1,
            ssl.TLSVersion.TLSv1_1,
            ssl.TLSVersion.TLSv1_2,
            ssl.TLSVersion.TLSv1_3,
        ):

            def only(context: ssl.SSLContext, version: ssl.TLSVersion = version) -> None:
                context.set_ciphers("ALL:@SECLEVEL=0")
                context.minimum_version = context.maximum_version = version

            found = shakes_hands(server, only)
            assert (found is not None) == (version >= ssl.TLSVersion.TLSv1_2), (version, found)
    everything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    everything.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    for cipher in (each["name"] for each in everything.get_ciphers()):
        if str(cipher).startswith("TLS_"):
            continue  # 1.3, which has no weak ones

        def with_cipher(context: ssl.SSLContext, cipher: str = str(cipher)) -> None:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(f"{cipher}:@SECLEVEL=0")

        tried += 1
        found = shakes_hands(server, with_cipher)
        if found:
            taken.append(found.split()[1])
    weak = [
        name
        for name in taken
        if any(sign in name for sign in ("NULL", "RC4", "DES", "ADH", "MD5", "EXP", "PSK"))
    ]
    assert taken
    assert not weak
    print(
        f"TLS: 1.0 and 1.1 refused, 1.2 and 1.3 taken; of {tried} ciphers of 1.2 {len(taken)} taken: {taken}"
    )


def renegotiation(server: Serving) -> None:
    """Ask for a second handshake as openssl's client does at an ``R``."""
    program = shutil.which("openssl")
    if program is None:
        print("TLS: no openssl here, renegotiation was not tried")
        return
    done = subprocess.run(
        [program, "s_client", "-tls1_2", "-connect", f"127.0.0.1:{server.port}"],
        input="R\n",
        capture_output=True,
        text=True,
        timeout=30,
    )
    said = done.stdout + done.stderr
    assert "RENEGOTIATING" in said
    assert "no renegotiation" in said or "handshake failure" in said, said
    print("TLS: a second handshake on one connection was refused")


def greeting() -> bytes:
    """A right ClientHello."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def broken_handshakes(server: Serving, many: int = 10_000) -> None:
    chance = random.Random(15)
    right = greeting()
    with Callers(server) as callers:
        for number in range(many):
            kind = number % 4
            data = bytearray(right)
            if kind == 0:
                data = bytearray(chance.randbytes(chance.randrange(1, 2000)))
            elif kind == 1:
                del data[chance.randrange(1, len(data)) :]
            elif kind == 2:
                for _ in range(chance.randrange(1, 8)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            else:
                data[3:5] = chance.randrange(65536).to_bytes(2, "big")  # a record of another length
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", server.port), 10) as plain,
            ):
                plain.sendall(data)
                if number % 8 == 0:
                    plain.shutdown(socket.SHUT_WR)
                    plain.settimeout(0.05)
                    with contextlib.suppress(TimeoutError):
                        plain.recv(65536)
    print(f"TLS: {many} broken handshakes; {callers.told()}", flush=True)
    callers.all_answered()


# --- several workers --------------------------------------------------------------------------------------


def workers(many: int = 4, seconds: float = 30.0) -> None:
    with served("--workers", str(many)) as server:
        attack_workers(server, many, seconds)
    with served("--workers", str(many)) as server:
        attack(server, FLOODS["one byte"], f"{many} workers, one byte", 0.99)


def attack_workers(server: Serving, many: int, seconds: float) -> None:
    chance = random.Random(15)
    killed = 0
    sessions = [server.session() for _ in range(20)]
    with Callers(server) as callers:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = children(server.pid)
            if len(alive) == many:
                os.kill(chance.choice(alive), signal.SIGKILL)
                killed += 1
                time.sleep(11)  # one that dies young again and again is given up
            time.sleep(0.05)
    while len(children(server.pid)) < many:
        time.sleep(0.05)
    found = Counter(session.call("echo", text="x").status for session in sessions)
    print(
        f"workers: {killed} of {many} killed one by one; {callers.told()}; 20 sessions: {dict(found)}",
        flush=True,
    )
    callers.all_answered(0.97)
    assert set(found) <= {200, 404}


# --- names whose addresses change -------------------------------------------------------------------------


def names() -> None:
    """In namespaces of our own: a name server on port 53, and a resolv.conf that names it."""
    command = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", sys.executable]
    subprocess.run([*command, os.path.join(HERE, "attack_names.py")], check=True, timeout=300)


PARTS = {"flood": flood, "tls": tls, "workers": workers, "names": names}


def main(arguments: list[str]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if arguments[:1] == ["hold"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        sent = b"" if arguments[2] == "-" else bytes.fromhex(arguments[2])
        print(*hold_open(int(arguments[1]), sent, float(arguments[3])))
        return
    for name in arguments or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
