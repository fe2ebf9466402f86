"""The egress proxy: nothing that goes through it reaches an address that is not the Internet's.

Canaries listen on loopback, on every address of this machine; they must hear nothing. What represents the
Internet is 127.0.0.2, which a proxy may be allowed to reach.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from support.skips import not_installed
from support.waiting import SECONDS, until

from fastrpc import egress_proxy
from fastrpc.egress_proxy import SPECIAL_V4, EgressProxy, is_public

OUTSIDE = "127.0.0.2"
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is an address on Linux alone")


class Listener:
    """A server of the test's on one port of some addresses: what it heard, and what it answers."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi") -> None:
        self.answer = answer
        self.heard: list[bytes] = []
        self.hits = 0
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        with contextlib.suppress(OSError):
            self.heard.append(await reader.read(65536))
            writer.write(self.answer)
            await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def on(self, *hosts: str, port: int = 0) -> AsyncIterator[Listener]:
        servers: list[asyncio.Server] = []
        while not servers:
            self.port = port
            try:
                for host in hosts:
                    servers.append(await asyncio.start_server(self._serve, host, self.port))
                    self.port = servers[0].sockets[0].getsockname()[1]
            except OSError:
                if port or not servers:
                    raise
                while servers:  # of another program at the next host: look for another port
                    servers.pop().close()
        try:
            yield self
        finally:
            for server in servers:
                server.close()


async def ask(proxy: EgressProxy, request: str, *, ends: bool = False) -> bytes:
    """Send a request line to the proxy with its password, and return all that comes back."""
    return await send(proxy, head_of(proxy, request), ends=ends)


def head_of(proxy: EgressProxy, request: str) -> bytes:
    credentials = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    return f"{request} HTTP/1.1\r\nhost: x\r\nproxy-authorization: Basic {credentials}\r\n\r\n".encode()


async def connect(proxy: EgressProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))


async def tunnel(proxy: EgressProxy, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a tunnel to a port outside."""
    reader, writer = await connect(proxy)
    writer.write(head_of(proxy, f"CONNECT {OUTSIDE}:{port}"))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def send(proxy: EgressProxy, data: bytes, *, ends: bool = False) -> bytes:
    """Send something, and say that no more comes if it `ends`; return all that comes back."""
    reader, writer = await connect(proxy)
    try:
        writer.write(data)
        if ends:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), SECONDS)
    finally:
        writer.close()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# --- every range, every spelling --------------------------------------------------------------------------


def spellings_v4(address: str) -> list[str]:
    """An IPv4 address in the ways that resolvers, libraries and browsers read."""
    number = int(IPv4Address(address))
    a, b, c, d = address.split(".")
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    return [
        address,
        f"{address}.",
        str(number),
        hex(number),
        f"0X{number:X}",
        f"0{number:o}",
        ".".join(f"0{int(part):o}" for part in (a, b, c, d)),
        ".".join(f"000{int(part):o}" for part in (a, b, c, d)),
        ".".join(hex(int(part)) for part in (a, b, c, d)),
        f"{hex(int(a))}.{b}.0{int(c):o}.{d}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"[::ffff:{address}]",
        f"[::ffff:{high}:{low}]",
        f"[0:0:0:0:0:FFFF:{high.upper()}:{low}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[64:ff9b:1::{high}:{low}]",
        f"[2002:{high}:{low}::1]",
        f"[2001:0:4136:e378:8000:63bf:{number >> 16 ^ 0xFFFF:x}:{number & 0xFFFF ^ 0xFFFF:x}]",
        f"[::ffff:{address}%25lo]",
        f"93.184.216.34@{address}",
        address.replace(".", "%2e"),
        address.replace(".", "。"),
        address.replace("1", "①").replace("0", "⓪").replace("2", "②").replace("6", "⑥"),
    ]


SPECIAL_V6 = {
    "unspecified": "::",
    "loopback": "::1",
    "unique local": "fd12:3456::1",
    "cloud metadata": "fd00:ec2::254",
    "link-local": "fe80::1",
    "site-local": "fec0::1",
    "multicast": "ff02::1",
    "documentation": "2001:db8::1",
    "new documentation": "3fff::1",
    "discard": "100::1",
    "ORCHID": "2001:20::1",
    "benchmarks": "2001:2::1",
    "segment routing": "5f00::1",
}


def spellings_v6(address: str) -> list[str]:
    parsed = IPv6Address(address)
    tail = IPv4Address(int(parsed) & 0xFFFFFFFF)
    return [
        f"[{address}]",
        f"[{parsed.exploded}]",
        f"[{parsed.exploded.upper()}]",
        f"[{parsed.exploded[:-9]}{tail}]",
        f"[{address}%25lo]",
        f"[{address}%lo]",
        f"[{address}%1]",
        f"user@[{address}]",
    ]


RANGES = {
    str(network): spellings_v4(str(network[16 if network.prefixlen < 28 else 0])) for network in SPECIAL_V4
}
RANGES["127.0.0.0/8 itself"] = spellings_v4("127.0.0.1")
RANGES["0.0.0.0"] = spellings_v4("0.0.0.0")
RANGES["metadata"] = spellings_v4("169.254.169.254")
RANGES["broadcast"] = spellings_v4("255.255.255.255")
RANGES.update({name: spellings_v6(address) for name, address in SPECIAL_V6.items()})
RANGES["names"] = ["localhost", "LOCALHOST", "localhost.", "127.1", "127.0.1", "0", "0x7f.1", "[::]", "[::1]"]
RANGES["more names"] = ["any.localhost", "ANY.LocalHost.", "::1", "::ffff:127.0.0.1", "::", "0::0:1"]


@pytest.mark.parametrize("name", RANGES)
def test_no_spelling_of_a_special_address_is_connected_to(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    connect = asyncio.open_connection
    own_port = 0

    async def watched(host: str, port: int, **options: Any) -> Any:
        if port != own_port:
            tried.append(host)
        return await connect(host, port, **options)

    async def run() -> None:
        nonlocal own_port
        async with EgressProxy() as proxy, Listener().on("0.0.0.0", "::") as canary:
            own_port = int(proxy.url.rpartition(":")[2])
            monkeypatch.setattr(egress_proxy.asyncio, "open_connection", watched)
            for text in RANGES[name]:
                for request in (
                    f"CONNECT {text}:{canary.port}",
                    f"GET http://{text}:{canary.port}/",
                    f"GET http://{text}/",
                ):
                    answer = await ask(proxy, request)
                    assert status_of(answer) in (400, 403, 502), (request, answer)
                    assert not tried, f"{request}: {tried} was connected to"
            assert canary.hits == 0

    asyncio.run(run())


def test_only_single_hosts_of_the_internet_are_public() -> None:
    for address in ("93.184.216.34", "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450::1"):
        assert is_public(address)
    assert not any(is_public(address) for address in SPECIAL_V6.values())
    assert not is_public("localhost")


def test_the_addresses_of_this_machine_are_not_reached() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("93.184.216.34", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    assert egress_proxy._is_own(egress_proxy.ip_address(own))
    assert not egress_proxy._is_own(egress_proxy.ip_address("93.184.216.34"))


@pytest.mark.parametrize(
    ("port", "may"), [(80, True), (443, True), (8080, True), (22, False), (25, False), (1023, False)]
)
def test_ports_of_old_services_are_not_reached(port: int, may: bool) -> None:
    async def run() -> bool:
        return EgressProxy().may_reach("93.184.216.34", port)

    assert asyncio.run(run()) is may


# --- what changes meanwhile -------------------------------------------------------------------------------


@linux_only
def test_a_redirect_to_a_special_address_ends_at_the_proxy() -> None:
    import httpx

    async def run() -> None:
        async with Listener().on("127.0.0.1", "::1") as canary:
            location = f"location: http://localhost:{canary.port}/"
            moved = f"HTTP/1.1 302 Found\r\n{location}\r\ncontent-length: 0\r\n\r\n"
            async with (
                Listener(moved.encode()).on(OUTSIDE) as outside,
                EgressProxy(allow=[OUTSIDE]) as proxy,
                httpx.AsyncClient(
                    proxy=proxy.url_with_password, trust_env=False, follow_redirects=True
                ) as client,
            ):
                answer = await client.get(f"http://{OUTSIDE}:{outside.port}/")
                assert (answer.status_code, answer.text) == (403, "Address not public")
                assert str(answer.url) == f"http://localhost:{canary.port}/"
                assert (outside.hits, canary.hits) == (1, 0)
                assert proxy.refusals == {("localhost", canary.port): "Address not public"}

    asyncio.run(run())


@linux_only
@pytest.mark.parametrize("request_of", ["CONNECT rebind.test:{}", "GET http://rebind.test:{}/"])
def test_a_name_that_resolves_differently_later_is_connected_to_where_it_was_checked(request_of: str) -> None:
    """Each look-up answers something else: the checked address first, loopback from then on."""
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return [OUTSIDE] if len(looked_up) == 1 else ["127.0.0.1"]

    async def run() -> None:
        async with (
            Listener().on("127.0.0.1") as canary,  # first: connections take ports there, not on the other
            Listener().on(OUTSIDE, port=canary.port) as outside,
            EgressProxy(allow=[OUTSIDE], resolve=resolve) as proxy,
        ):
            request = request_of.format(outside.port)
            assert status_of(await ask(proxy, request, ends=True)) == 200
            assert (len(looked_up), outside.hits, canary.hits) == (1, 1, 0)
            assert status_of(await ask(proxy, request, ends=True)) == 403
            assert (len(looked_up), outside.hits, canary.hits) == (2, 1, 0)

    asyncio.run(run())


@linux_only
def test_of_several_addresses_only_the_public_ones_are_tried() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "::1", "10.0.0.1", "fe80::1%lo", OUTSIDE]

    async def run() -> None:
        async with (
            Listener().on("127.0.0.1", "::1") as canary,
            Listener().on(OUTSIDE, port=canary.port) as outside,
            EgressProxy(allow=[OUTSIDE], resolve=resolve) as proxy,
        ):
            assert status_of(await ask(proxy, f"GET http://many.test:{outside.port}/")) == 200
            assert (outside.hits, canary.hits) == (1, 0)

    asyncio.run(run())


@linux_only
def test_a_real_name_server_whose_answers_change_leads_nowhere_else() -> None:
    """Through the system's resolver: answers in turn, at random, mixed, of IPv6, an alias of localhost."""
    script = os.path.join(os.path.dirname(__file__), "..", "soak", "attack_names.py")
    command = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces here: a name server of the test's needs port 53 in one")
    done = subprocess.run(
        [*command, sys.executable, script, "40"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("none to this machine")


# --- whom it serves, and how much -------------------------------------------------------------------------


@linux_only
@pytest.mark.parametrize(
    "header",
    [
        "",
        "proxy-authorization: Basic eDp5\r\n",
        "proxy-authorization: {0}x\r\n",
        "proxy-authorization: {0}\r\nproxy-authorization: {0}\r\n",
    ],
)
def test_without_the_password_nothing_is_served(header: str) -> None:
    async def run() -> None:
        async with Listener().on(OUTSIDE) as outside, EgressProxy(allow=[OUTSIDE]) as proxy:
            right = "Basic " + b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
            for first in (f"GET http://{OUTSIDE}:{outside.port}/", f"CONNECT {OUTSIDE}:{outside.port}"):
                answer = await send(proxy, f"{first} HTTP/1.1\r\n{header.format(right)}\r\n".encode())
                assert status_of(answer) == 407
                assert b'proxy-authenticate: Basic realm="fastrpc"\r\n' in answer
            assert outside.hits == 0

    asyncio.run(run())


@linux_only
def test_a_request_goes_on_without_what_is_for_the_proxy_alone() -> None:
    import httpx

    async def run() -> None:
        async with Listener().on(OUTSIDE) as outside, EgressProxy(allow=[OUTSIDE]) as proxy:
            async with httpx.AsyncClient(proxy=proxy.url_with_password, trust_env=False) as client:
                answer = await client.post(f"http://{OUTSIDE}:{outside.port}/a?b=c", content=b"x" * 40)
            assert answer.text == "hi"
            assert answer.headers["connection"] == "close"
            heard = outside.heard[0]
            assert heard.startswith(b"POST /a?b=c HTTP/1.1\r\nhost: ")
            assert b"proxy" not in heard.lower()
            assert proxy.password.encode() not in heard
            assert b"content-length: 40\r\n" in heard

    asyncio.run(run())


@linux_only
def test_a_tunnel_carries_bytes_both_ways() -> None:
    data = os.urandom(3_000_000)

    async def mirror(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(mirror, OUTSIDE, 0)
        port = server.sockets[0].getsockname()[1]
        async with EgressProxy(allow=[OUTSIDE]) as proxy:
            reader, writer = await tunnel(proxy, port)
            writer.write(data)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), SECONDS) == data
            writer.close()
        server.close()

    asyncio.run(run())


def test_a_head_that_is_long_or_slow_is_given_up() -> None:
    async def run() -> None:
        async with EgressProxy() as proxy:
            # Not a byte more than is read: an end with some unread is a reset, and may take the answer away.
            long = b"GET http://x/ HTTP/1.1\r\na: ".ljust(egress_proxy.LONGEST_HEAD + 4, b"a")
            assert status_of(await send(proxy, long)) == 431
        async with EgressProxy(head_seconds=0.3) as proxy:
            assert await send(proxy, b"GET http://x/ HTTP/1.1\r\n") == b""

    asyncio.run(run())


def test_connections_beyond_the_limit_are_refused_until_others_end() -> None:
    async def run() -> None:
        async with EgressProxy(connections=3) as proxy:
            port = int(proxy.url.rpartition(":")[2])
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            assert status_of(await send(proxy, b"")) == 503
            for _, writer in held:
                writer.close()
            await until(lambda: not proxy._running)
            assert status_of(await ask(proxy, "GET http://127.0.0.1/")) == 403

    asyncio.run(run())


@linux_only
@pytest.mark.parametrize("limits", [{"most_bytes": 100_000}, {"longest_seconds": 1.0}], ids=str)
@pytest.mark.parametrize("request_of", ["CONNECT {}:{}", "GET http://{}:{}/"])
def test_a_connection_has_an_end_in_bytes_and_in_time(limits: dict[str, Any], request_of: str) -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                writer.write(b"x" * 1000)
                await writer.drain()
                await asyncio.sleep(0.001)

    async def run() -> None:
        server = await asyncio.start_server(endless, OUTSIDE, 0)
        port = server.sockets[0].getsockname()[1]
        async with EgressProxy(allow=[OUTSIDE], **limits) as proxy:
            request = request_of.format(OUTSIDE, port)
            if request.startswith("GET"):
                with pytest.raises(ConnectionResetError):  # no client takes it for the whole
                    await ask(proxy, request)
            else:
                assert len(await ask(proxy, request)) < 3_000_000
        server.close()

    asyncio.run(run())


def test_a_cancellation_is_not_lost_when_what_is_waited_for_has_just_come() -> None:
    async def run() -> None:
        coming: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        waiting = asyncio.ensure_future(egress_proxy._with_timeout(coming, 20))
        await asyncio.sleep(0)
        coming.set_result(b"data")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())


@linux_only
def test_a_tunnel_whose_client_has_gone_does_not_wait_for_the_other_side(monkeypatch: Any) -> None:
    monkeypatch.setattr(egress_proxy, "ENDED_SECONDS", 0.2)

    async def run() -> None:
        over = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            over.set()  # and keeps its own side open

        server = await asyncio.start_server(silent, OUTSIDE, 0)
        port = server.sockets[0].getsockname()[1]
        async with EgressProxy(allow=[OUTSIDE]) as proxy:
            _, writer = await tunnel(proxy, port)
            assert len(proxy._running) == 1
            writer.close()
            await asyncio.wait_for(over.wait(), SECONDS)
            await until(lambda: not proxy._running)
        server.close()

    asyncio.run(run())


@linux_only
def test_what_was_not_reached_is_remembered_until_it_is() -> None:
    answers = [["127.0.0.1"], [OUTSIDE]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async def run() -> None:
        async with (
            Listener().on(OUTSIDE) as outside,
            EgressProxy(allow=[OUTSIDE], resolve=resolve) as proxy,
        ):
            request = f"GET http://late.test:{outside.port}/"
            assert status_of(await ask(proxy, request)) == 403
            assert proxy.refusals == {("late.test", outside.port): "Address not public"}
            assert status_of(await ask(proxy, request)) == 200
            assert proxy.refusals == {}

    asyncio.run(run())


def test_no_more_is_remembered_than_a_few_hundred_places() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError

    async def run() -> None:
        async with EgressProxy(resolve=resolve) as proxy:
            for number in range(egress_proxy.REMEMBERED + 20):
                assert status_of(await ask(proxy, f"CONNECT host{number}.test:443")) == 502
            assert len(proxy.refusals) == egress_proxy.REMEMBERED
            assert ("host0.test", 443) not in proxy.refusals

    asyncio.run(run())


@linux_only
def test_a_tunnel_in_which_nothing_moves_is_closed() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(silent, OUTSIDE, 0)
        port = server.sockets[0].getsockname()[1]
        async with EgressProxy(allow=[OUTSIDE], idle_seconds=0.3) as proxy:
            assert status_of(await ask(proxy, f"CONNECT {OUTSIDE}:{port}")) == 200  # read to its end
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "request_text",
    [
        "GET https://93.184.216.34/ HTTP/1.1",
        "GET ftp://93.184.216.34/ HTTP/1.1",
        "GET / HTTP/1.1",
        "CONNECT 93.184.216.34 HTTP/1.1",
        "CONNECT 93.184.216.34:0 HTTP/1.1",
        "CONNECT 93.184.216.34:99999 HTTP/1.1",
        "GET http://127.0.0.1\\@93.184.216.34/ HTTP/1.1",
        "GET http://93.184.216.34/ HTTP/2",
        "GET  http://93.184.216.34/ HTTP/1.1",
        "POST http://93.184.216.34/ HTTP/1.1\r\ntransfer-encoding: chunked",
        "POST http://93.184.216.34/ HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2",
        "GET http://93.184.216.34/ HTTP/1.1\r\nbad header: x",
    ],
)
def test_what_is_no_plain_request_is_refused_before_anything_is_resolved(request_text: str) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise AssertionError("resolved")

    async def run() -> None:
        async with EgressProxy(resolve=resolve) as proxy:
            word = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
            text = f"{request_text}\r\nproxy-authorization: Basic {word}\r\n\r\n"
            assert status_of(await send(proxy, text.encode())) in (400, 411)

    asyncio.run(run())


# --- a real browser ---------------------------------------------------------------------------------------

PAGE = """<!doctype html><title>page</title>
<img src="http://127.0.0.1:PORT/img"><img src="http://localhost:PORT/img"><img src="http://[::1]:PORT/img">
<iframe src="http://2130706433:PORT/frame"></iframe>
<link rel="preload" as="script" href="http://0:PORT/preload">
<link rel="dns-prefetch" href="//localhost"><link rel="preconnect" href="http://127.0.0.1:PORT">
<script>
const hosts = ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "127.0.0.1.", "0.0.0.0",
               "foo.localhost"];
const tries = [];
const opened = socket => new Promise((ok, no) => { socket.onopen = ok; socket.onerror = no; });
for (const host of hosts) {
  tries.push(fetch(`http://${host}:PORT/fetch`, {mode: "no-cors"}));
  tries.push(fetch(`https://${host}:PORT/fetch`, {mode: "no-cors"}));
  tries.push(opened(new WebSocket(`ws://${host}:PORT/ws`)));
  tries.push(opened(new WebSocket(`wss://${host}:PORT/ws`)));
  navigator.sendBeacon(`http://${host}:PORT/beacon`, "x");
}
const user = {username: "u", credential: "c"};
const peer = new RTCPeerConnection({iceServers: [
  {urls: ["stun:127.0.0.1:UDP"]}, {urls: ["turn:127.0.0.1:UDP?transport=udp"], ...user},
  {urls: "turn:127.0.0.1:PORT?transport=tcp", ...user}, {urls: "turns:127.0.0.1:PORT", ...user}]});
peer.createDataChannel("x");
peer.createOffer().then(offer => peer.setLocalDescription(offer));
Promise.allSettled(tries).then(() => setTimeout(() => { document.title = "done"; }, PAUSE));
</script>"""


def find_chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if find_spec("playwright") is None or found is None:
        pytest.skip(not_installed("Chromium"))
    return found


@pytest.mark.long
@linux_only
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "unguarded-the-canaries-hear-it"])
def test_a_page_in_chromium_reaches_nothing_of_this_machine(guarded: bool) -> None:
    """By images, frames, fetches, sockets, beacons, prefetches and WebRTC; over TCP and UDP."""
    executable = find_chromium()
    from playwright.async_api import async_playwright

    async def run() -> None:
        loop = asyncio.get_running_loop()
        packets: list[bytes] = []

        class Packets(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, address: Any) -> None:
                packets.append(data)

        udp, _ = await loop.create_datagram_endpoint(Packets, local_addr=("127.0.0.1", 0))
        udp_port = udp.get_extra_info("sockname")[1]
        async with (
            Listener().on("127.0.0.1", "::1") as canary,
            Listener().on(OUTSIDE) as outside,
            EgressProxy(allow=[OUTSIDE]) as proxy,
            async_playwright() as playwright,
        ):
            text = PAGE.replace("PORT", str(canary.port)).replace("UDP", str(udp_port))
            text = text.replace("PAUSE", "1500" if guarded else "0")  # in which canaries would hear something
            outside.answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + text.encode()
            browser = await playwright.chromium.launch(
                executable_path=executable,
                args=["--no-sandbox", *(proxy.browser_flags if guarded else [])],
                proxy=proxy.browser_proxy if guarded else None,  # type: ignore[arg-type]
            )
            try:
                page = await browser.new_page()
                await page.goto(f"http://{OUTSIDE}:{outside.port}/", wait_until="commit")
                await page.wait_for_function("document.title == 'done'", timeout=60_000)
                if not guarded:
                    await until(lambda: canary.hits and packets)
            finally:
                await browser.close()
            assert outside.hits >= 1
            if guarded:
                assert (canary.hits, len(packets)) == (0, 0)
                assert {host for host, port in proxy.refusals} >= {"127.0.0.1", "localhost", "::1"}
        udp.close()

    asyncio.run(run())
