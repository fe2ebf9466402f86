"""Whatever bytes arrive, the fast path answers as the application alone would: byte for byte but for Date.

Requests are made from a right one by changing its line, headers and body, put one behind the other and cut
into packets anywhere. A real server with the fast path and one without are sent the same; all that comes
back until they close must be the same. FASTRPC_REQUESTS says how many are tried, FASTRPC_SEED which.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from support.raw_http import TOKEN, Server, call, call_body, head_of, headers, list_body, listing

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
REQUESTS = int(os.environ.get("FASTRPC_REQUESTS", "250"))

# Short, so that what is incomplete comes to its end.
LIMITS = {"head_seconds": 0.5, "body_seconds": 0.5, "idle_seconds": 0.5, "read_seconds": 5.0}

LAST = head_of([("Host", "localhost"), ("Connection", "close")], "GET /healthz HTTP/1.1")


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    with Server(**LIMITS) as hot, Server(hot=False, **LIMITS) as cold:
        yield hot, cold


BODIES = st.sampled_from(
    [
        (call_body("echo", {"text": "hello"}), "echo", "tools/call"),
        (call_body("echo", {"text": "h\u00e4", "times": 3}, id="a\u00e9"), "echo", "tools/call"),
        (call_body("add", {"a": 1, "b": "2"}), "add", "tools/call"),
        (call_body("add", {"a": 1}), "add", "tools/call"),
        (call_body("give", {"what": "dict"}), "give", "tools/call"),
        (call_body("fail", {"how": "method"}), "fail", "tools/call"),
        (call_body("fail", {"how": "on purpose"}), "fail", "tools/call"),
        (call_body("wait", {"ms": 1}), "wait", "tools/call"),
        (call_body("echo", {"text": "x"}, progressToken=1), "echo", "tools/call"),
        (call_body("nobody"), "nobody", "tools/call"),
        (list_body(), None, "tools/list"),
        (list_body(cursor="x"), None, "tools/list"),
        (list_body(cursor=1), None, "tools/list"),
        (list_body(**{"": "x"}), None, "tools/list"),
        (call_body("marked", {"region": "eu"}), "marked", "tools/call"),
        (call_body("count_wherever", {"x": 1}), "count_wherever", "tools/call"),
        (call_body("echo", {"text": "x" * 70_000}), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}, id=None), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}, id=1.5), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}, id=""), "echo", "tools/call"),
        (call_body("echo", {"text": "x", "text\\": 1}), "echo", "tools/call"),
        (call_body("echo").replace(b'"echo"', b'"ech\\u006f"'), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}).replace(b'"id":1', b'"id":1,"id":2'), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}).replace(b"2026-07-28", b"2025-11-25"), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}).replace(b"clientCapabilities", b"other"), "echo", "tools/call"),
        (b"\xef\xbb\xbf" + call_body("echo", {"text": "x"}), "echo", "tools/call"),
        (call_body("echo", {"text": "x"}), "add", "tools/call"),
        (list_body(), "echo", "tools/call"),
        (b" \n" + call_body("echo", {"text": "x"}) + b"\r\n", "echo", "tools/call"),
        (call_body("echo", {"text": "x"})[:-1], "echo", "tools/call"),
        (b"[" + call_body("echo", {"text": "x"}) + b"]", "echo", "tools/call"),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', None, "notifications/initialized"),
        (b"\xff", "echo", "tools/call"),
        (b"", "echo", "tools/call"),
    ]
)
LINES = st.sampled_from(
    ["POST /mcp HTTP/1.1"] * 12
    + [
        "POST /mcp/http HTTP/1.1",
        "POST /mcp/ HTTP/1.1",
        "POST /mcp?a=b HTTP/1.1",
        "POST /%6dcp HTTP/1.1",
        "POST http://localhost/mcp HTTP/1.1",
        "POST http://evil.example/mcp HTTP/1.1",
        "POST localhost:80 HTTP/1.1",
        "CONNECT localhost:80 HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "POST /mcp HTTP/1.0",
        "POST  /mcp HTTP/1.1",
        "post /mcp HTTP/1.1",
        "PUT /mcp HTTP/1.1",
        "POST /mcp",
        "\r\nPOST /mcp HTTP/1.1",
    ]
)
VALUES = {
    "Host": ["localhost", "LOCALHOST:1", "[::1]:80", "evil.example", "", "localhost:x", "a b"],
    "Accept": ["*/*", "application/json", "text/*, application/*;q=0.1", "application/jsonx", ""],
    "Content-Type": ["application/json;charset=utf-8", "Application/JSON", "text/plain", ""],
    "Authorization": ["Bearer wrong", f"bearer {TOKEN}", f"Bearer  {TOKEN}", TOKEN, f"Bearer {TOKEN}x", ""],
    "MCP-Protocol-Version": ["2025-11-25", "2026-07-28 ", "2026-07-29", "", "x"],
    "Mcp-Method": ["tools/call", "tools/list", "TOOLS/CALL", ""],
    "Mcp-Param-Region": ["eu", "us", "=?base64?ZXU=?="],
    "Mcp-Name": ["echo", "add", "=?base64?ZWNobw==?=", "=?base64?x?=", "\xe9", ""],
    "Content-Length": [
        "0",
        "5",
        "+5",
        "-1",
        "5, 5",
        "0x5",
        "99999999999999999999999",
        "5 5",
        "",
        "400",
        "070",
    ],
}
MORE = st.sampled_from(
    [
        ("Connection", "close"),
        ("Connection", "keep-alive"),
        ("Connection", "Keep-Alive, x"),
        ("Proxy-Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("Transfer-Encoding", "identity"),
        ("Expect", "100-continue"),
        ("Upgrade", "h2c"),
        ("Origin", "http://localhost"),
        ("Origin", "https://evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Content-Encoding", "gzip"),
        ("Mcp-Session-Id", "x"),
        ("Mcp-Param-Text", "y"),
        ("Mcp-Param-Region", "eu"),
        ("Mcp-Method", "tools/list"),
        ("Authorization", f"Bearer {TOKEN}"),
        ("Trailer", "X"),
        ("TE", "trailers"),
        ("Keep-Alive", "timeout=1"),
        ("Connection", ""),
        ("X-Tab", "a\tb"),
        ("Last-Event-ID", "1"),
        ("X-Folded", "a\r\n b"),
        ("X-Bare", "a\nb: c"),
        ("X-Nul", "a\0b"),
        ("X Space", "a"),
        ("X-Before ", "a"),
        ("", "a"),
        ("X-Empty", ""),
        ("X-Latin", "\xff"),
        ("Content-Length", "5"),
        ("Mcp-Name", "echo"),
        ("Host", "localhost"),
    ]
)
SPELL = st.sampled_from([str, str, str, str.lower, str.upper])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request: right in half of the cases, with one to three mistakes in the others."""
    body, name, method = draw(BODIES)
    pairs = headers(body, name, method)
    line = draw(LINES)
    spell = draw(SPELL)
    pairs = [(spell(key), value) for key, value in pairs]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        at = draw(st.integers(0, len(pairs) - 1))
        what = draw(st.sampled_from(["value", "drop", "twice", "more", "space"]))
        key, value = pairs[at]
        known = {each.lower(): found for each, found in VALUES.items()}.get(key.lower())
        if what == "value" and known:
            pairs[at] = key, draw(st.sampled_from(known))
        elif what == "drop" and len(pairs) > 1:
            del pairs[at]
        elif what == "twice":
            pairs.insert(draw(st.integers(0, len(pairs))), (key, value))
        elif what == "space":
            pairs[at] = (
                key,
                draw(st.sampled_from([" ", "\t", ""])) + value + draw(st.sampled_from([" ", "\t"])),
            )
        else:
            pairs.insert(at, draw(MORE))
    if draw(st.integers(0, 9)) == 0:
        pairs = [pair for pair in pairs if pair[0].lower() != "content-length"]
        pairs.append(("Transfer-Encoding", "chunked"))
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    head = head_of(pairs, line)
    if draw(st.integers(0, 9)) == 0:  # a byte of the head is another, or gone, or twice
        at, byte = draw(st.integers(0, len(head) - 1)), draw(st.binary(max_size=1))
        head = head[:at] + byte + head[at + draw(st.integers(0, 1)) :]
    return head + body


@seed(SEED)
@settings(
    max_examples=REQUESTS,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(requests(), min_size=1, max_size=3), st.lists(st.integers(1, 1500), max_size=3))
@example([call(), call(), listing()], [])
@example([call(), call("wait", {"ms": 20}), call()], [100, 500, 900])
@example([call()[:-5]], [])
def test_the_straight_way_cannot_be_told(
    servers: tuple[Server, Server], parts: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(parts) + LAST
    places = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    pieces = [data[begin:end] for begin, end in pairwise(places)]
    for _ in range(3):  # a machine that is busy may come too late for one of them
        with servers[0].socket() as hot, servers[1].socket() as cold:
            hot.send(*pieces)
            cold.send(*pieces)
            found = hot.stream(seconds=10), cold.stream(seconds=10)
        if found[0] == found[1]:
            return
    assert found[0] == found[1]
