"""eof: what a server owes a client that has said all it has to say, and one that stumbles.

A script pipes its requests into a server and closes the pipe: `initialize` and 72 calls of `echo` go out in
one write, standard input is closed at once, and the right answers are counted. A missing answer is the
figure, a wrong one voids the row. Beside it, whether a line that is no JSON is answered with -32700, and
whether the server still serves afterwards. Not a matter of time: nothing is pinned, nothing repeated.
"""

from __future__ import annotations

import json
import subprocess
import threading

from roster import ECHO, Peer
from workloads.row import Column, Options, Result, Row

CALLS = 72
LIMIT_SECONDS = 20
HANDSHAKE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"eof","version":"1"}}}\n'
)
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
BROKEN = b'{"jsonrpc":"2.0","id":7,"method":"ping",}\n'
PARSE_ERROR = -32700


class Wrong(Exception):
    """The server said something that no right server says."""


def measure(row: Row, peer: Peer, options: Options) -> Result:
    try:
        answers = answers_at_eof(peer)
        return {"answers": answers, "parse_error": broken_line(peer)}
    except Wrong as problem:
        return {"void": str(problem)}


def text_of(number: int) -> str:
    return f'line {number} "of" {CALLS} \\ é'


def call(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": text_of(number)}}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(request, separators=(",", ":")).encode() + b"\n"


def started(peer: Peer) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        peer.commands[ECHO],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=peer.folder,
        env=peer.environment,
    )


def answers_at_eof(peer: Peer) -> int:
    """How many of the calls are answered when the input ends right after them. Raises Wrong."""
    requests = HANDSHAKE + READY + b"".join(call(number) for number in range(1, CALLS + 1))
    with started(peer) as server:
        try:
            output, _ = server.communicate(requests, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            raise Wrong(f"still runs {LIMIT_SECONDS} s after the end of its input") from None
    answered: set[int] = set()
    for line in output.splitlines():
        number = check(line)
        if number in answered:
            raise Wrong(f"call {number} is answered twice")
        answered.add(number)
    return len(answered - {0})


def check(line: bytes) -> int:
    """Return which request a line answers, rightly. Raises Wrong."""
    try:
        message = json.loads(line)
        number = message["id"]
        result = message["result"]
        if number == 0 and result["protocolVersion"]:
            return 0
        right = number in range(1, CALLS + 1) and not result.get("isError")
        if right and [(block["type"], block["text"]) for block in result["content"]] == [
            ("text", text_of(number))
        ]:
            return int(number)
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    raise Wrong(f"not a right answer: {line[:200].decode(errors='replace')}")


def broken_line(peer: Peer) -> str:
    """Whether a line that is no JSON is answered with -32700, and the call behind it too. Raises Wrong."""
    with started(peer) as server:
        limit = threading.Timer(LIMIT_SECONDS, server.kill)
        limit.start()
        try:
            seen = conversation(server)
        except BaseException:
            server.kill()
            raise
        finally:
            limit.cancel()
    said = "yes" if any(is_parse_error(message) for message in seen) else "no"
    return said if any(message.get("id") == 1 for message in seen) else f"{said}, then nothing"


def conversation(server: subprocess.Popen[bytes]) -> list[Result]:
    """Shake hands, send the broken line and a call behind it; return all that came. Raises Wrong."""
    assert server.stdin is not None
    assert server.stdout is not None
    seen: list[Result] = []
    try:
        server.stdin.write(HANDSHAKE)
        server.stdin.flush()
        check(server.stdout.readline())
        server.stdin.write(READY + BROKEN + call(1))
        server.stdin.flush()
        while line := server.stdout.readline():
            seen.append(parsed(line))
            if seen[-1].get("id") == 1:
                break
        server.stdin.close()
    except BrokenPipeError:
        pass  # it has ended; what it said before counts
    return seen + [parsed(line) for line in server.stdout]


def parsed(line: bytes) -> Result:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise Wrong(f"not a message: {line[:200].decode(errors='replace')}")
    return message


def is_parse_error(message: Result) -> bool:
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") == PARSE_ERROR and message.get("id") is None


ROWS = (
    Row(
        "eof",
        f"answers to {CALLS} calls, if the client closes the input right after them",
        measure,
        "answers",
        "answers",
        less_is_better=False,
        bar=1.0,
        sdks=True,
        columns=(Column("-32700", "parse_error"),),
    ),
)
