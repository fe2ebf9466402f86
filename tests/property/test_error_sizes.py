"""No error answer grows with what it is about: huge members of a request are quoted by their beginning.

Every member of sample requests is made huge, or is joined by one with a huge name, in every version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.in_memory import connected

from fastrpc import Server
from fastrpc.errors import LONGEST_EXCERPT, excerpt, suggest
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS, VERSIONS

MOST = 4096
"""Bytes of an error answer: some excerpts and a few hundred words, each character up to 12 bytes of JSON."""
SIZE = 20_000
"""Of what is huge: some times MOST, whatever is said of it."""
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/logLevel": "info",
    "progressToken": "token",
}
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
    ("no/such", {}),
    ("ping", {}),
    ("tools/list", {"cursor": "cursor"}),
    ("tools/call", {"name": "tool", "arguments": {"number": 1, "choice": "a", "items": [1], "flag": True}}),
    ("resources/list", {"cursor": "cursor"}),
    ("resources/read", {"uri": "docs://guide"}),
    ("resources/read", {"uri": "docs://numbers/1"}),
    ("resources/subscribe", {"uri": "docs://numbers/1"}),
    ("resources/unsubscribe", {"uri": "docs://numbers/1"}),
    ("prompts/list", {"cursor": "cursor"}),
    ("prompts/get", {"name": "prompt", "arguments": {"language": "Greek"}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "language", "value": "G"}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "docs://{name}"}, "argument": {"name": "n", "value": ""}},
    ),
    ("logging/setLevel", {"level": "info"}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": 1}}),
]
HUGE: list[Any] = [
    "x" * SIZE,
    "é\n\U0001f600" * (SIZE // 3),
    'docs://numbers/"\\' * (SIZE // 16),
    10**4000,
    ["x" * SIZE],
    {"y" * SIZE: "x" * SIZE},
    [[]] * SIZE,
]
NAMES = [each for each in HUGE if isinstance(each, str)]


def server() -> Server:
    app = Server("t")

    @app.tool(run="inline")
    def tool(number: int, choice: Literal["a", "b"], items: list[int], flag: bool = False) -> str:
        return "served"

    @app.resource("docs://guide", run="inline")
    def guide() -> str:
        return "guide"

    @app.resource("docs://numbers/{number}", run="inline")
    def number(number: int) -> str:
        return "number"

    @app.prompt(run="inline")
    def prompt(language: Literal["Greek", "Latin"]) -> str:
        return "prompt"

    return app


def answers(app: Server, version: str | None, message: bytes) -> list[bytes]:
    """Return what is said to one message, in memory; without a version it is the first of all."""
    found: list[bytes] = []
    dispatcher = app.connect()
    transport = connected(dispatcher.connection, found.append)
    if version in SESSION_VERSIONS:
        dispatcher.adopt_version(version)
    transport.send(message)
    dispatcher.close()
    return found


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each member of a message, at any depth."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield (*path, key)
            yield from paths(member, (*path, key))


def changed(message: Any, path: tuple[Any, ...], huge: Any, how: str) -> Any:
    """Return a copy with a member replaced, renamed, or joined by another one."""
    found = json.loads(json.dumps(message))
    holder = found
    for key in path[:-1]:
        holder = holder[key]
    if how == "value":
        holder[path[-1]] = huge
    else:
        holder[huge] = holder.pop(path[-1]) if how == "renamed" else 1
    return found


def written(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def check(found: list[bytes]) -> None:
    for line in found:
        answer = json.loads(line)
        if "error" in answer or answer.get("result", {}).get("isError"):
            size = len(json.dumps(answer, ensure_ascii=True))
            assert size <= MOST, line[:500]


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("how", ["value", "renamed", "joined"])
def test_no_error_is_larger_than_some_words(version: str, how: str) -> None:
    app = server()
    for method, params in METHODS:
        meta = {"_meta": META} if version == STATELESS else {}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **meta}}
        for path in paths(message):
            if path == ("id",) and how == "value":
                continue  # an id comes back whole (JSON-RPC 2.0, section 5)
            for huge in HUGE if how == "value" else NAMES:
                check(answers(app, version, written(changed(message, path, huge, how))))


def test_no_error_before_the_handshake_is_larger_than_some_words() -> None:
    for huge in HUGE:
        check(answers(server(), None, written({"jsonrpc": "2.0", "id": 1, "method": huge})))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_error_about_a_broken_message_is_larger_than_some_words(version: str) -> None:
    app = server()
    text = b"x" * SIZE
    for line in [
        text,
        b'{"jsonrpc":"2.0","id":1,"method":"' + text,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","' + text + b'":1,"' + text + b'":2}',
        b'{"jsonrpc":"' + text + b'","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[' + b"9" * SIZE + b"]}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"9" * SIZE + b"e}}",
        b"[" * SIZE,
        b"[" + b"1," * SIZE,
        b'{"jsonrpc":"2.0","id":[1],"method":"' + text + b'"}',
        b'{"jsonrpc":"2.0","method":"' + text + b'","params":1}',
        b'"' + text + b"\\ud800" + b'"',
    ]:
        check(answers(app, version, line))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=2 * LONGEST_EXCERPT))
def test_an_excerpt_is_the_text_or_its_beginning(text: str) -> None:
    shown = excerpt(text)
    assert len(shown) <= LONGEST_EXCERPT
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=8), st.lists(st.text(max_size=8)))
def test_what_came_is_never_suggested(name: str, known: list[str]) -> None:
    assert name not in suggest(name, [*known, name])
