"""The egress proxy and the URL Standard: the host that it takes from an address is the one a browser takes.

Where two readers of one address find different hosts, what one of them has checked is not where the other
goes. Each address is put to the proxy as it is written, in the request line and as the target of a tunnel;
what it looks up is held against what a parser of the URL Standard (https://url.spec.whatwg.org) makes of it:
the same host and port, or a refusal. The parser is Node's; the Standard's own tests (urltestdata.json of
web-platform-tests) are read too, where FASTRPC_URL_TESTS names that file.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from base64 import b64encode
from ipaddress import IPv6Address
from itertools import product
from typing import Any

import pytest
from support.skips import not_installed
from support.waiting import SECONDS

from fastrpc.egress_proxy import EgressProxy

Place = tuple[str, int]

USERS = ["", "u@", "u:p@", "@", "93.184.216.34@", "u%40", "a:80@b@", "127.0.0.1\\@", "x:@", ":@"]
HOSTS = [
    *("example.com", "EXAMPLE.com", "example.com.", "a..b", ".a", "a_b", "-a-", "a.b-", "xn--nxasmq6b", "x"),
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.1", "017700000001", "0177.0.0.1"),
    *(
        "127.0.0.1.",
        "127.0.0.01",
        "0x7f.0x0.0x0.0x1",
        "0",
        "0x",
        "0x.0x",
        "00",
        "1.2.3.08",
        "09",
        "1.2.3.4.5",
    ),
    *(
        "256.1.1.1",
        "1.1.1.256",
        "1.1.65536",
        "1.16777216",
        "4294967295",
        "4294967296",
        "0x100000000",
        "1.2.3.",
    ),
    *(
        "1.2.3.4..",
        "1..2",
        "foo.0x4",
        "foo.09",
        "foo.2.3",
        "foo.0x",
        "foo.1.",
        "1.2.3.0x1g",
        "99999999999999999",
    ),
    *(
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]",
        "[1:2:3:4:5:6:7:8]",
        "[1::2::3]",
        "[::1",
        "::1]",
        "[]",
    ),
    *(
        "::1",
        "1::2",
        "[::1%25lo]",
        "[fe80::1%lo]",
        "[::127.1]",
        "[::1.2.3.4.5]",
        "[0:0:0:0:0:0:0:0:1]",
        "[:::]",
    ),
    *("[v1.x]", "[::1]x", "x[::1]", "[[::1]]", "127.0.0.1%00.example.com", "127。0。0。1", "ｅxample.com"),
    *(
        "a%2eb",
        "%31%32%37.0.0.1",
        "ex ample",
        "a<b",
        "a|b",
        "a^b",
        "a,b",
        "a;b",
        "a=b",
        "a+b",
        "a'b",
        "a~b",
        "*.a",
    ),
    *(
        "a\tb",
        "a\u00adb",
        "faß.example",
        "☃.example",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "",
        ".",
        "..",
    ),
]
PORTS = ["", ":", ":80", ":443", ":0", ":65535", ":65536", ":8a", ":-1", ":+80", ":00080", ":80:80", ": 80"]
ENDS = [
    "/",
    "",
    "/p?q#f",
    "?q",
    "#f",
    "\\",
    "\\@example.org/",
    "/@example.org/",
    "?@example.org",
    "#@example.org/",
]
STARTS = [
    "http://",
    "HTTP://",
    "http:",
    "http:/",
    "http:///",
    "http:\\\\",
    "http:/\\",
    " http://",
    "http://\t",
]


def written() -> list[str]:
    """Addresses of our own: hosts with each user, port, end and beginning in turn, all else as usual."""
    found = ["http://" + "".join(parts) + "/" for parts in product(USERS, HOSTS, ("", ":81"))]
    found += ["http://" + "".join(parts) for parts in product(("",), HOSTS[::6], PORTS, ENDS)]
    found += ["".join(parts) for parts in product(STARTS, USERS[:4], HOSTS[:30:3], ("/",))]
    return list(dict.fromkeys(found))


NODE = """
const lines = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(lines.map(line => {
  try { const url = new URL(line); return [url.protocol, url.hostname, url.port]; } catch { return null; }
})));
"""


def read_by_node(addresses: list[str]) -> list[Any]:
    """Return scheme, host and port of each as Node's parser finds them, None where it finds a failure."""
    node = shutil.which("node")
    if node is None:
        pytest.skip(not_installed("Node"))
    done = subprocess.run(
        [node, "-e", NODE],
        input=json.dumps(addresses),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: list[Any] = json.loads(done.stdout)
    return found


class Asked:
    """A proxy of which one can tell what it would have gone to: it looks names up, and none is found."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.proxy = EgressProxy(resolve=self._resolve)

    async def _resolve(self, host: str, port: int) -> list[str]:
        self.places.append((host, port))
        raise OSError

    async def place_of(self, line: str) -> Place | None:
        """Send a request with this first line; return the host and port that the proxy took from it."""
        self.places.clear()
        credentials = b64encode(f"{self.proxy.username}:{self.proxy.password}".encode()).decode()
        head = f"{line} HTTP/1.1\r\nhost: other.example\r\nproxy-authorization: Basic {credentials}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.proxy.url.rpartition(":")[2]))
        try:
            writer.write(head.encode())
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), SECONDS)
        finally:
            writer.close()
        assert answer.startswith(b"HTTP/1.1 502 " if self.places else b"HTTP/1.1 400 "), (line, answer)
        assert len(self.places) < 2
        return self.places[0] if self.places else None


def same_form(host: str) -> str:
    """Return a host with an address of IPv6 as this Python writes it: mapped ones have two forms."""
    if ":" in host:
        return str(IPv6Address(host.strip("[]")))
    return host.lower()


def compare(cases: list[tuple[str, Any]]) -> tuple[int, int]:
    """Put addresses to a proxy; return how many it took and refused. Fails for one that it misreads."""

    async def run() -> tuple[int, int]:
        asked = Asked()
        taken = refused = 0
        wrong = []
        async with asked.proxy:
            for address, expected in cases:
                for line, default in lines_of(address, expected):
                    place = await asked.place_of(line)
                    if place is None:
                        refused += 1
                        continue
                    taken += 1
                    host, port = place
                    if expected is None and "xn--" in host.lower():
                        continue  # the Standard judges punycode, too; whoever looks it up gets the same name
                    if expected is None or (same_form(host), port) != (same_form(expected[1]), default):
                        wrong.append((line, place, expected))
        assert not wrong, f"{len(wrong)} of {taken}: {wrong[:20]}"
        return taken, refused

    return asyncio.run(run())


def lines_of(address: str, expected: Any) -> list[tuple[str, int]]:
    """Return the request lines in which an address may come, as it is written, and the port each means."""
    plain = re.sub(r"(?i)^(https|wss?):", "http:", address)
    authority = "".join(re.findall(r"^http://([^/?#\\]*)", plain))
    port = int(expected[2] or {"https:": 443, "wss:": 443}.get(expected[0], 80)) if expected else 0
    named = re.search(r":\d+$", authority)
    lines = [(f"GET {plain}", port if named else 80)]
    if authority and (
        authority.startswith("[") or authority.count(":") < 2
    ):  # else it is httpcore's own form
        lines.append((f"CONNECT {authority}{'' if named else ':443'}", port if named else 443))
    return lines


@pytest.mark.long
def test_the_host_that_is_taken_is_a_browsers_or_none() -> None:
    addresses = written()
    taken, refused = compare(list(zip(addresses, read_by_node(addresses), strict=True)))
    assert taken > 300
    assert refused > 300


def test_what_a_browser_sends_is_taken() -> None:
    """An address in the Standard's own form is looked up as it is, unless no client may ask for it."""
    addresses = [f"http://{host}/" for host in HOSTS]
    found = [
        each
        for each in read_by_node(addresses)
        if each is not None and not re.search(r"[^\w.:\[\]-]", each[1])
    ]
    assert len(found) > 40

    async def run() -> None:
        asked = Asked()
        async with asked.proxy:
            for _, host, port in found:
                place = await asked.place_of(f"CONNECT {host}:{port or 443}")
                assert place is not None, host
                assert (same_form(place[0]), place[1]) == (same_form(host), int(port or 443))

    asyncio.run(run())


def test_the_urls_of_the_standards_own_tests() -> None:
    name = os.environ.get("FASTRPC_URL_TESTS")
    if not name:
        pytest.skip("FASTRPC_URL_TESTS does not name an urltestdata.json of web-platform-tests")
    with open(name, encoding="utf-8") as file:
        tests = [each for each in json.load(file) if isinstance(each, dict)]
    cases = []
    for test in tests:
        found = None
        if not test.get("failure") and test["protocol"] in ("http:", "https:", "ws:", "wss:"):
            found = (test["protocol"], test["hostname"], test["port"])
            cases.append((f"http://{test['host']}{test['pathname']}{test['search']}", found))
        if re.match(r"(?i)(https?|wss?):", test["input"]) and test.get("base") is None:
            cases.append((test["input"], found))
    taken, refused = compare(cases)
    print(f"{len(tests)} tests, {len(cases)} addresses: {taken} taken, {refused} refused")
    assert taken > 300
