"""Output: texts and plain values written as JSON. Each row includes making the `bytes` that is returned."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from calls import BRIEFLY, COUNT, UNLIKELY, one_by_one, texts

from fastrpc._core.encoder import OBJECT_FORM, OutputBuffer, dumps, plain_json, quoted

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
    output = OutputBuffer()
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


def record(number: int, words: list[str]) -> dict[str, Any]:
    """A record as the load client's `payload` has it: 3 KB, thirty texts, a hundred numbers."""
    chance = random.Random(number)
    steps = [
        {
            "index": index,
            "command": words[(number + index) % COUNT],
            "took_ms": chance.randrange(65_536),
            "share": chance.randrange(1000) / 1000,
            "passed": chance.random() < 0.5,
            "error": None,
            "lines": [chance.randrange(100), chance.randrange(10_000), -chance.randrange(1, 11)],
        }
        for index in range(26)
    ]
    owner = {"name": words[number], "teams": ["core", "tools"], "settings": {}, "limits": []}
    return {
        "number": number,
        "title": words[number],
        "open": True,
        "score": 12.25,
        "owner": owner,
        "steps": steps,
    }


def test_an_answer_of_a_record(benchmark) -> None:
    output = OutputBuffer()
    value, take = output.value, output.take

    def write(record: dict[str, Any]) -> bytes:
        value(b"12345", record, OBJECT_FORM, b'"}],"isError":false}}\n')
        return take()

    records = [record(number, TEXTS["short"]) for number in range(64)]
    assert json.loads(write(records[0]))["result"]["structuredContent"] == records[0]
    benchmark(one_by_one(write, records))


NUMBERS = {
    "integers": lambda chance: chance.getrandbits(chance.randrange(50)),
    "doubles of few decimals": lambda chance: chance.randrange(10**7) / 10**4,
    "doubles of all digits": lambda chance: chance.random(),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_list_of_a_thousand(benchmark, kind: str) -> None:
    chance = random.Random(1)
    lists = [[NUMBERS[kind](chance) for _ in range(1000)] for _ in range(16)]
    assert json.loads(plain_json(lists[0])) == lists[0]
    benchmark(one_by_one(plain_json, lists))
