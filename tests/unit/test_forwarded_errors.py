"""A server's standard error is forwarded whole, until it is too much."""

from __future__ import annotations

import pytest

from fastrpc import diagnostics
from fastrpc.client import stdio
from fastrpc.client.stdio import BURST, RATE, READ_SIZE, ForwardedErrors

PIECE = (b"x" * 127 + b"\n") * (READ_SIZE // 128)


class Clock:
    """The time in seconds, which passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stdio, "monotonic", clock)
    return clock


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    written: list[str] = []
    monkeypatch.setattr(diagnostics, "write_text", lambda text: written.append(text) or True)
    return written


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    records: list[str] = []
    monkeypatch.setattr(diagnostics, "write", lambda at, text: records.append(text))
    return records


def test_what_is_little_is_forwarded_whole(clock: Clock, written: list[str], records: list[str]) -> None:
    forwarding = ForwardedErrors("t")
    for _ in range(10 * BURST // READ_SIZE):
        assert forwarding.write(PIECE)
        clock.now += READ_SIZE / RATE
    assert "".join(written).encode() == PIECE * (10 * BURST // READ_SIZE)
    assert records == []


def test_a_server_that_writes_without_end_is_forwarded_up_to_a_limit(
    clock: Clock, written: list[str], records: list[str]
) -> None:
    forwarding = ForwardedErrors("t")
    for _ in range(20 * BURST // READ_SIZE):
        assert forwarding.write(PIECE)
    assert BURST - READ_SIZE <= len("".join(written)) <= BURST + READ_SIZE
    assert records == [
        f"the server t writes more than {RATE:,} bytes a second to standard error: not all of it is shown"
    ]


def test_what_is_left_out_begins_and_ends_with_a_line(
    clock: Clock, written: list[str], records: list[str]
) -> None:
    forwarding = ForwardedErrors("t")
    for _ in range(BURST // READ_SIZE):
        forwarding.write(b"a" * READ_SIZE)
    forwarding.write(b"the end of the line\nleft out\nleft")
    forwarding.write(b" out")
    clock.now += 1
    forwarding.write(b" as well\nshown\n")
    assert "".join(written) == "a" * BURST + "the end of the line\nshown\n"
    forwarding.write(b"b" * BURST + b"\n")
    clock.now += 1
    forwarding.write(b"shown too\n")
    assert written[-1] == "shown too\n"
    assert len(records) == 1


def test_nothing_is_written_once_no_one_reads(
    clock: Clock, records: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "write_text", lambda text: False)
    forwarding = ForwardedErrors("t")
    assert not forwarding.write(b"a\n")
    assert not forwarding.write(b"a" * BURST + b"\n")
