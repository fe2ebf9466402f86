"""Message: one line read, by each of the ways there are. All carry a call of ``echo`` with a short text.

What is measured includes the copy that `Message.read` makes of a line from Python, some 15 ns.
"""

from __future__ import annotations

import json

import pytest
from calls import BRIEFLY, LETTERS, UNLIKELY, call_line, echo_lines, one_by_one, texts

from fastrpc._core.message import Message

pytestmark = pytest.mark.benchmark(group="message", **BRIEFLY)

TEXTS = texts(1, 40)


def in_changing_order() -> list[bytes]:
    """No line has the shape of the one before it; the strict pass reads each from its beginning."""
    lines = []
    for id, text in enumerate(TEXTS):
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
        message["params"] = {"name": "echo", "arguments": {"text": text}}
        members = list(message.items())
        turned = dict(members[id % 4 :] + members[: id % 4])
        lines.append(json.dumps(turned, separators=((",", ":"), (", ", ": "))[id // 4 % 2]).encode())
    return lines


WAYS = {
    "shape of the line before": echo_lines(),
    "strict pass alone": in_changing_order(),
    "simdjson: an escape": echo_lines(letters=UNLIKELY),
    "simdjson: a nested argument": [
        call_line(id, "echo", {"text": text, "more": [id]}) for id, text in enumerate(TEXTS)
    ],
    "simdjson: notification": [
        json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"reason": text}}
        ).encode()
        for text in TEXTS
    ],
    "simdjson: a number of 30 digits": [
        call_line(id, "echo", {"text": text, "n": 10**30 + id}) for id, text in enumerate(TEXTS)
    ],
    "64 KB of text": echo_lines(64_000, 66_000, LETTERS)[:64],
}


@pytest.mark.parametrize("way", WAYS)
def test_reading_a_line(benchmark, way: str) -> None:
    message = Message()
    for line in WAYS[way][:16]:
        message.read(line)
        assert message.kind in ("request", "notification")
    benchmark(one_by_one(message.read, WAYS[way]))


def test_refusing_a_broken_line(benchmark) -> None:
    message = Message()
    lines = [line[:-2] for line in echo_lines()]
    message.read(lines[0])
    assert message.kind == "broken"
    benchmark(one_by_one(message.read, lines))


def test_making_python_objects_of_params(benchmark) -> None:
    message = Message()

    def params(line: bytes) -> object:
        message.read(line)
        return message.params

    lines = WAYS["simdjson: a nested argument"]
    assert params(lines[3])["arguments"]["more"] == [3]
    benchmark(one_by_one(params, lines))
