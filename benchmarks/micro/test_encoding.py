"""Output: texts and plain values written as JSON. Each row includes making the `bytes` that is returned."""

from __future__ import annotations

import json

import pytest
from calls import BRIEFLY, COUNT, UNLIKELY, one_by_one, texts

from fastrpc._core.encode import Output, dumps, quoted

pytestmark = pytest.mark.benchmark(group="encode", **BRIEFLY)

TEXTS = {
    "short": texts(1, 40),
    "short, escapes and letters beyond ASCII": texts(1, 40, UNLIKELY),
    "1 KB": texts(1000, 1100),
    "64 KB": texts(64_000, 66_000)[:64],
    "64 KB, escapes and letters beyond ASCII": texts(64_000, 66_000, UNLIKELY)[:64],
    "64 KB of control characters": texts(64_000, 66_000, "\x00\x01\x1f")[:64],
}


@pytest.mark.parametrize("kind", TEXTS)
def test_quoting(benchmark, kind: str) -> None:
    assert json.loads(quoted(TEXTS[kind][0])) == TEXTS[kind][0]
    benchmark(one_by_one(quoted, TEXTS[kind]))


def test_an_answer_of_one_text(benchmark) -> None:
    output = Output()
    text, take = output.text, output.take

    def write(value: str) -> bytes:
        text(b"12345", value, b'"}],"isError":false}}\n')
        return take()

    assert json.loads(write("x"))["result"]["content"] == [{"type": "text", "text": "x"}]
    benchmark(one_by_one(write, TEXTS["short"]))


def test_a_plain_value(benchmark) -> None:
    values = [
        {"id": at, "text": text, "list": [at / 3, None, True]} for at, text in enumerate(TEXTS["short"])
    ]
    assert len(values) == COUNT
    assert json.loads(dumps(values[5])) == values[5]
    benchmark(one_by_one(dumps, values))
