"""How the client reaches a server over HTTP: names, TLS, and the environment's proxies; nothing is shown of
secrets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import ssl
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.raw_web import OK, Line, RawWeb

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")
pytest.importorskip("cryptography", reason="certificates are made with it")
from support.certificates import for_host, for_localhost

from fastrpc.client.http import dialing
from fastrpc.client.http.address import Remote
from fastrpc.client.http.wire import Unreachable, Wire
from fastrpc.transports.loop import new_loop

HOST = "mcp.invalid"
"""A name that no one can look up: only a proxy leads there."""


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    if request.param == "asyncio":
        return asyncio.new_event_loop()
    pytest.importorskip("uvloop")
    return new_loop()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def run(conversation: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop | None = None) -> Any:
    loop = loop or asyncio.new_event_loop()
    try:
        return loop.run_until_complete(asyncio.wait_for(conversation, 30))
    finally:
        loop.close()


def settings_of(certificate: tuple[str, str]) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(*certificate)
    return made


async def serve(line: Line) -> None:
    while True:
        await line.request()
        line.say(OK)


async def post(url: str, times: int = 1, **options: Any) -> bytes:
    """The body of a POST's answer. Raises ClientError."""
    wire = Wire(Remote(url, **options))
    try:
        for _ in range(times):
            async with wire.send("POST", {"content-type": "application/json"}, b"{}") as answer:
                body = await answer.body()
        return body
    finally:
        await wire.close()


async def failure(url: str, **options: Any) -> str:
    """Why a server cannot be reached."""
    with pytest.raises(Unreachable) as told:
        await post(url, **options)
    return str(told.value)


# --- names ----------------------------------------------------------------------------------------------


def test_a_name_is_tried_at_each_of_its_addresses(
    monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop
) -> None:
    """One refuses, one says nothing for ever: the third is taken."""
    monkeypatch.setattr(dialing, "HEAD_START", 0.05)

    async def conversation() -> None:
        with socket.socket() as silent, socket.socket() as refusing:
            for each in (silent, refusing):
                each.bind(("127.0.0.1", 0))
            silent.listen(0)
            with contextlib.ExitStack() as stack:
                for _ in range(4):  # its queue is full: it says nothing any more
                    waiting = stack.enter_context(socket.socket())
                    waiting.setblocking(False)
                    waiting.connect_ex(silent.getsockname())
                async with RawWeb(serve) as server:
                    ports = (refusing.getsockname()[1], silent.getsockname()[1], server.port)
                    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
                    found = [(*kind, ("127.0.0.1", port)) for port in ports]

                    running = asyncio.get_running_loop()
                    opened = await dialing._open_socket(running, found)
                    assert opened.getpeername() == ("127.0.0.1", server.port)
                    opened.close()

    run(conversation(), loop)


def test_families_take_turns() -> None:
    one, two, three = ((socket.AF_INET6, number) for number in range(3))
    other = (socket.AF_INET, 9)
    assert dialing._in_turns([one, two, three, other]) == [one, other, two, three]


@pytest.mark.parametrize("url", ["http://localhost:{}/", "http://127.0.0.1:{}/"])
def test_an_address_without_a_listener_is_reported(url: str, loop: asyncio.AbstractEventLoop) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = url.format(taken.getsockname()[1])
        told = run(failure(url, token="tok-secret"), loop)
    assert told == f"{url} cannot be reached: connection refused"


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_host_that_has_no_name_is_reported(scheme: str, host: str, loop: asyncio.AbstractEventLoop) -> None:
    assert run(failure(f"{scheme}://{host}/"), loop).startswith(f"{scheme}://{host}/ cannot be reached: ")


def test_one_that_does_not_answer_in_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "CONNECT_SECONDS", 0.05)

    async def silent(line: Line) -> None:
        await line.gone()

    async def conversation() -> None:
        async with RawWeb(silent) as server:
            told = await failure(server.url.replace("http:", "https:"))
            assert told.endswith("no connection within 0.05 s, waiting for its TLS handshake")

    run(conversation())


# --- TLS ------------------------------------------------------------------------------------------------


def test_certificates_are_verified(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    certificate = for_localhost(tmp_path)

    async def conversation() -> None:
        async with RawWeb(serve, settings_of(certificate), "localhost") as server:
            assert "its certificate is not trusted (self" in await failure(server.url)
            assert server.heads == []
            assert await post(server.url, times=2, tls_ca=certificate[0]) == b"{}"
            assert len([line for line in server.lines if line.heads]) == 1
            by_number = server.url.replace("localhost", "127.0.0.1")
            assert "its certificate is not trusted (IP address" in await failure(
                by_number, tls_ca=certificate[0]
            )

    run(conversation(), loop)


def test_the_environment_may_name_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = for_localhost(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])

    async def conversation() -> None:
        async with RawWeb(serve, settings_of(certificate), "localhost") as server:
            assert await post(server.url) == b"{}"

    run(conversation())


def test_what_is_no_tls_is_reported() -> None:
    async def plain(line: Line) -> None:
        line.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def conversation() -> None:
        async with RawWeb(plain) as server:
            told = await failure(server.url.replace("http:", "https:"))
            assert "cannot be reached: " in told

    run(conversation())


# --- proxies --------------------------------------------------------------------------------------------


class Tunnel:
    """A proxy that opens tunnels to one port of this machine, whatever is asked for."""

    def __init__(self, port: int = 0, answer: bytes = b"HTTP/1.1 200 Fine\r\n\r\n") -> None:
        self.port = port
        self.answer = answer

    async def __call__(self, line: Line) -> None:
        await line.request()
        line.say(self.answer)
        if b" 200 " not in self.answer:
            await line.gone()
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)

        async def back() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(65536):
                    line.writer.write(data)

        task = asyncio.ensure_future(back())
        try:
            with contextlib.suppress(ConnectionError):
                while data := await line._reader.read(65536):
                    writer.write(data)
        finally:
            writer.close()
            task.cancel()


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_an_https_server_is_reached_through_a_tunnel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop
) -> None:
    certificate = for_host(tmp_path, HOST)

    async def conversation() -> None:
        tunnel = Tunnel()
        async with RawWeb(serve, settings_of(certificate)) as server, RawWeb(tunnel) as proxy:
            tunnel.port = server.port
            monkeypatch.setenv(name, f"http://user:p%40ss@127.0.0.1:{proxy.port}")
            url = f"https://{HOST}/mcp"
            assert await post(url, times=2, tls_ca=certificate[0], token="tok-of-mine") == b"{}"
            (head,) = proxy.heads
            assert head.startswith(b"CONNECT mcp.invalid:443 HTTP/1.1\r\nhost: mcp.invalid:443\r\n")
            assert b"proxy-authorization: Basic " + base64.b64encode(b"user:p@ss") + b"\r\n" in head
            assert b"tok-of-mine" not in head
            assert len(server.heads) == 2
            assert server.heads[0].startswith(b"POST /mcp HTTP/1.1\r\nhost: mcp.invalid\r\n")
            assert b"proxy-authorization" not in server.heads[0]
            assert "its certificate is not trusted" in await failure(url)

    run(conversation(), loop)


def test_a_proxy_may_speak_tls_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop
) -> None:
    (tmp_path / "proxy").mkdir()
    mine, its = for_host(tmp_path, HOST), for_localhost(tmp_path / "proxy")
    monkeypatch.setenv("SSL_CERT_FILE", its[0])

    async def conversation() -> None:
        tunnel = Tunnel()
        async with (
            RawWeb(serve, settings_of(mine)) as server,
            RawWeb(tunnel, settings_of(its), "localhost") as proxy,
            RawWeb(serve, settings_of(its), "localhost") as passing,
        ):
            tunnel.port = server.port
            monkeypatch.setenv("HTTPS_PROXY", f"https://localhost:{proxy.port}")
            monkeypatch.setenv("HTTP_PROXY", f"https://localhost:{passing.port}")
            assert await post(f"http://{HOST}/mcp") == b"{}"
            assert passing.heads[0].startswith(b"POST http://mcp.invalid/mcp HTTP/1.1\r\n")
            if hasattr(asyncio, "timeout"):  # Python 3.10 has no TLS in TLS
                assert await post(f"https://{HOST}/mcp", tls_ca=mine[0]) == b"{}"

    run(conversation(), loop)


def test_an_http_server_is_asked_for_by_its_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation() -> None:
        async with RawWeb(serve) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"user@127.0.0.1:{proxy.port}")
            assert await post(f"http://{HOST}:8080/mcp?a=b", times=2) == b"{}"
            assert len(proxy.heads) == 2
            for head in proxy.heads:
                assert head.startswith(
                    b"POST http://mcp.invalid:8080/mcp?a=b HTTP/1.1\r\nhost: mcp.invalid:8080\r\n"
                )
                assert b"proxy-authorization: Basic " + base64.b64encode(b"user:") + b"\r\n" in head

    run(conversation())


@pytest.mark.parametrize(
    ("no_proxy", "passes"),
    [
        ("", True),
        ("example.com", True),
        ("invalid", False),
        (".invalid", False),
        (f"a.example,{HOST}", False),
        (f"{HOST}:80", False),
        (f"{HOST}:81", True),
        ("*", False),
    ],
)
def test_no_proxy_names_hosts_that_are_reached_directly(
    no_proxy: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert dialing.Route(Remote(f"http://{HOST}/mcp")).passes_on is passes


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_this_machine_is_reached_directly(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert not dialing.Route(Remote(f"http://{host}/mcp")).passes_on


@pytest.mark.parametrize(
    ("url", "answer", "reason"),
    [
        (
            "http://u:secret@127.0.0.1:{}",
            b"HTTP/1.1 407 Proxy Auth\r\n\r\n",
            "refuses it (status 407 Proxy Auth)",
        ),
        ("http://u:secret@127.0.0.1:{}", b"", "closed by the server"),
        (
            "http://u:secret@127.0.0.1:{}",
            b"HTTP/1.1 200 OK\r\n\r\nearly",
            "sent data before the TLS handshake",
        ),
        ("http://u:secret@127.0.0.1:{}", b"SSH-2.0\r\n", "is not HTTP"),
        ("http://u:secret@127.0.0.1:1", b"", "the proxy 127.0.0.1:1: connection refused"),
        ("socks5://u:secret@127.0.0.1:{}", b"", "is of the kind socks5, not http"),
        ("http://u:secret@127.0.0.1:port", b"", "the address of the environment's proxy is invalid"),
    ],
)
def test_a_proxy_that_does_not_help_is_reported_without_its_password(
    url: str, answer: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(line: Line) -> None:
        await line.request()
        line.say(answer)

    async def conversation() -> None:
        async with RawWeb(play) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", url.format(proxy.port))
            told = await failure(f"https://{HOST}/mcp")
            assert reason in told
            assert "secret" not in told

    run(conversation())


def test_without_a_proxy_in_the_environment_none_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import urllib.request

    def refuse() -> dict[str, str]:
        raise AssertionError("it was asked")

    monkeypatch.setattr(dialing.sys, "platform", "linux")
    monkeypatch.setattr(urllib.request, "getproxies", refuse)
    assert not dialing.Route(Remote(f"http://{HOST}/mcp")).passes_on
