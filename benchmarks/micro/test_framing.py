"""Framer: bytes in, lines out. A read of many lines, one line a read, and one long line in small pieces."""

from __future__ import annotations

import pytest
from calls import BRIEFLY, echo_lines, one_by_one, texts

from fastrpc._core.framer import Framer

pytestmark = pytest.mark.benchmark(group="framer", **BRIEFLY)


def test_one_line_a_read(benchmark) -> None:
    feed = Framer().feed
    lines = [line + b"\n" for line in echo_lines()]
    assert feed(lines[0]) == [lines[0][:-1]]
    benchmark(one_by_one(feed, lines))


def test_64_lines_a_read(benchmark) -> None:
    feed = Framer().feed
    lines = echo_lines()
    reads = [b"\n".join(lines[at : at + 64]) + b"\n" for at in range(0, len(lines), 64)]
    assert feed(reads[1]) == lines[64:128]
    benchmark(one_by_one(feed, reads))


def test_a_line_of_1_mb_in_reads_of_64_kb(benchmark) -> None:
    feed = Framer().feed
    line = "".join(texts(1024, 1024)).encode()
    pieces = [line[at : at + 65536] for at in range(0, len(line), 65536)] + [b"\n"]
    expected = [[]] * (len(pieces) - 1) + [[line]]
    assert list(map(feed, pieces)) == expected
    benchmark(lambda: [feed(piece) for piece in pieces])
