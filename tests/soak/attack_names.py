"""Names whose addresses change while they are looked up, against the egress proxy and a real resolver.

    unshare --map-root-user --net --mount --pid --fork python tests/soak/attack_names.py [rounds]

In separate namespaces: there a name server of ours has port 53, and resolv.conf names it. Nothing is
replaced in fastrpc: names go through `getaddrinfo` as always. What represents the Internet is 127.0.0.2,
which the proxy may reach; canaries listen on other addresses of loopback.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import random
import socket
import struct
import sys
import tempfile
from base64 import b64encode
from collections import Counter

from fastrpc.egress_proxy import EgressProxy

SIOCSIFFLAGS, IFF_UP, MS_BIND = 0x8914, 1, 4096  # of Linux
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
OUTSIDE = "127.0.0.2"
INSIDE = ["127.0.0.1", "127.0.0.3", "10.0.0.1", "169.254.169.254", "0.0.0.0"]
INSIDE_V6 = [
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:7f00:2",
    "fe80::1",
    "fd00::1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]
A, CNAME, AAAA = 1, 5, 28
LOCALHOST = b"\x09localhost\x00"
INADDR6_LOOPBACK = socket.inet_pton(socket.AF_INET6, "::1")


class Names(asyncio.DatagramProtocol):
    """A name server: the first label of a name says how its answers change."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.chance = random.Random(15)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: object) -> None:
        place, labels = 12, []
        while data[place]:
            labels.append(data[place + 1 : place + 1 + data[place]].decode())
            place += 1 + data[place]
        kind = struct.unpack_from("!H", data, place + 1)[0]
        question = data[12 : place + 5]
        records = self.records(labels[0], kind)
        self.asked[labels[0]] += 1
        answer = data[:2] + struct.pack("!HHHHH", 0x8180, 1, len(records), 0, 0) + question
        for type_, value in records:
            owner = (
                LOCALHOST if labels[0] == "alias" and type_ != CNAME else b"\xc0\x0c"
            )  # or who was asked for
            answer += owner + struct.pack("!HHIH", type_, 1, 0, len(value)) + value  # lives for no time
        self.transport.sendto(answer, address)  # type: ignore[attr-defined]

    def records(self, how: str, kind: int) -> list[tuple[int, bytes]]:
        number = self.asked[how]
        outside, inside = socket.inet_aton(OUTSIDE), socket.inet_aton(self.chance.choice(INSIDE))
        inside_v6 = socket.inet_pton(socket.AF_INET6, self.chance.choice(INSIDE_V6))
        if how == "alias":  # another name for this machine
            local = (A, socket.inet_aton("127.0.0.1")) if kind == A else (AAAA, INADDR6_LOOPBACK)
            return [(CNAME, LOCALHOST), local]
        if kind == AAAA:
            return [(AAAA, inside_v6)] if how in ("mixed", "random", "six") else []
        if kind != A or how == "six":
            return []
        return {
            "turns": [(A, inside if number // 2 % 2 else outside)],
            "random": [(A, self.chance.choice([inside, outside]))],
            "mixed": [(A, inside), (A, outside), (A, inside)],
            "inside": [(A, inside)],
        }[how]


async def ask(proxy: EgressProxy, line: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    credentials = b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    writer.write(f"{line} HTTP/1.1\r\nhost: x\r\nproxy-authorization: Basic {credentials}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def main() -> None:
    loop = asyncio.get_running_loop()
    _, names = await loop.create_datagram_endpoint(Names, local_addr=("127.0.0.53", 53))
    hits: Counter[str] = Counter()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hits[writer.get_extra_info("sockname")[0]] += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")
        writer.close()

    servers = [await asyncio.start_server(serve, OUTSIDE, 8000)]
    for host in ("127.0.0.1", "127.0.0.3", "::1"):
        servers.append(await asyncio.start_server(serve, host, 8000))
    async with EgressProxy(allow=[OUTSIDE]) as proxy:
        for how in ("turns", "random", "mixed", "inside", "six", "alias"):
            came: Counter[int] = Counter()
            for number in range(ROUNDS):
                place = f"{how}.example.org:8000"
                came[await ask(proxy, f"GET http://{place}/" if number % 2 else f"CONNECT {place}")] += 1
            print(f"names, {how}: {ROUNDS} requests, {names.asked[how]} look-ups: {dict(came)}", flush=True)
            assert names.asked[how] >= ROUNDS
            assert came[200] > 0 or how in ("inside", "six", "alias")
    assert set(hits) == {OUTSIDE}, hits
    print(f"names: {hits[OUTSIDE]} connections to what was allowed, none to this machine", flush=True)
    for server in servers:
        server.close()


if __name__ == "__main__":
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("nameserver 127.0.0.53\noptions timeout:1 attempts:1\n")
        file.flush()
        os.chmod(file.name, 0o644)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(file.name.encode(), b"/etc/resolv.conf", None, MS_BIND, None):
            raise OSError(ctypes.get_errno(), "resolv.conf cannot be covered")
        asyncio.run(main())
        sys.exit(0)
