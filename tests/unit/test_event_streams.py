"""Server-sent events are read as the standard says, wherever the network cuts them."""

from __future__ import annotations

import tracemalloc
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrpc.client.http.events import Events, TooLong

STREAM = (
    b"\xef\xbb\xbf: a comment\nretry: 250\nid: 1\ndata:\n\n"
    b"event: message\r\ndata: one\r\n\r\ndata:two\rdata: lines\rid: 2\r\r"
    b"id\ndata:  spaced \nunknown: field\n\nevent: other\ndata: caf\xc3\xa9\nid: 3\n\n"
    b"retry: soon\nevent: empty\n\ndata: last\nid: 4\n\ndata: cut off"
)
EXPECTED = [
    ("message", "one", None),
    ("message", "two\nlines", "2"),
    ("message", " spaced ", ""),
    ("other", "café", "3"),
    ("message", "last", "4"),
]


def read(pieces: list[bytes]) -> tuple[list[tuple[str, str, str | None]], Events]:
    events = Events(1000)
    found = [(event.kind, event.data, event.id) for piece in pieces for event in events.feed(piece)]
    return found, events


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_a_stream_reads_the_same_wherever_it_is_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    found, events = read([STREAM[start:end] for start, end in pairwise(places)])
    assert found == EXPECTED
    assert events.last_id == "4"
    assert events.retry_seconds == 0.25


def test_a_stream_reads_the_same_byte_by_byte() -> None:
    assert read([bytes([byte]) for byte in STREAM])[0] == EXPECTED


def test_an_event_that_primes_says_its_id_and_nothing_else() -> None:
    found, events = read([b"id: 9\ndata: \n\n"])
    assert found == []
    assert events.last_id == "9"


def test_what_was_cut_off_is_forgotten_on_another_connection() -> None:
    events = Events(1000)
    assert list(events.feed(b"id: 5\ndata: half")) == []
    events.begin_anew()
    (event,) = events.feed(b"data: whole\n\n")
    assert (event.data, event.id, events.last_id) == ("whole", None, None)


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 200, b"data: x\n" * 20, b"x" * 2000])
def test_an_event_over_the_limit_is_refused(piece: bytes) -> None:
    with pytest.raises(TooLong, match="1000 bytes"):
        read([piece] * 60)


@pytest.mark.parametrize("name", [b"id", b"event"])
def test_an_id_and_a_type_are_bounded(name: bytes) -> None:
    list(Events(100_000).feed(name + b": " + b"x" * 4096 + b"\ndata: y\n\n"))
    with pytest.raises(TooLong, match="type or id is longer than 4096 bytes"):
        list(Events(100_000).feed(name + b": " + b"x" * 4097 + b"\n"))


@pytest.mark.parametrize("line", [b"data\n", b"data:ab\n"])
def test_an_event_of_many_small_lines_takes_no_more_memory_than_its_limit(line: bytes) -> None:
    limit = 200_000
    events = Events(limit)
    tracemalloc.start()
    try:
        with pytest.raises(TooLong):
            list(chain.from_iterable(events.feed(line * 1000) for _ in range(limit // 1000 + 2)))
        assert tracemalloc.get_traced_memory()[1] < 2 * limit
    finally:
        tracemalloc.stop()


def test_what_is_kept_of_an_unfinished_event_is_counted() -> None:
    events = Events(1000)
    list(events.feed(b"data: " + b"x" * 100 + b"\ndata: y"))
    assert events.unfinished == 101 + 7
    list(events.feed(b"\n\n"))
    assert events.unfinished == 0
