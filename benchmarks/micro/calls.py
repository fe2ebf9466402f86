"""Lines and texts for the micro benchmarks: never the same twice in a row, always the same in each run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

BRIEFLY = {"max_time": 0.3, "min_time": 0.0001}  # seconds of one row, and of one of its rounds
COUNT = 1024  # different ones, taken in turn
LETTERS = "abcdefghijklmnop qrstuv"
UNLIKELY = LETTERS + '"\\\n\té€😀'


def texts(shortest: int, longest: int, letters: str = LETTERS) -> list[str]:
    """Texts whose lengths and letters vary."""
    chance = random.Random(1)
    return ["".join(chance.choices(letters, k=chance.randint(shortest, longest))) for _ in range(COUNT)]


def call_line(id: int, tool: str, arguments: dict[str, Any], **params: Any) -> bytes:
    """A ``tools/call`` as most clients write it, without its newline."""
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
    params = {"name": tool, "arguments": arguments, **params}
    return json.dumps({**message, "params": params}, ensure_ascii=False, separators=(",", ":")).encode()


def echo_lines(shortest: int = 1, longest: int = 40, letters: str = LETTERS) -> list[bytes]:
    """Calls of ``echo`` with a text each."""
    return [
        call_line(id, "echo", {"text": text}) for id, text in enumerate(texts(shortest, longest, letters))
    ]


def one_by_one(function: Callable[[Any], Any], values: list[Any]) -> Callable[[], Any]:
    """Return what calls `function` with the next of `values` each time it is called."""
    calls: Iterator[Any] = map(function, cycle(values))
    return calls.__next__
