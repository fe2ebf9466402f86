"""Server-sent events are read as the standard says, wherever the network cuts them."""

from __future__ import annotations

from itertools import pairwise

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
