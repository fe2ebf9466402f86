"""Sealed ids of sessions: what they contain, how long they are accepted, and by whom."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fastrpc.protocol.lifecycle import SessionState
from fastrpc.signed_texts import TextKeys
from fastrpc.transports.http import session_ids
from fastrpc.transports.http.session_seals import (
    ADOPTED_SECONDS,
    CLOCK_SECONDS,
    ENDED_KEPT,
    LONGEST,
    SessionSeals,
)

KEYS = TextKeys((b"k" * 32,), are_shared=True)
PARAMS: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "clientInfo": {"name": "näme", "version": "1.2", "title": "A client"},
    "capabilities": {"roots": {"listChanged": True}, "experimental": {"x": [1, 2.5, None]}},
}


def agreed(**changed: Any) -> SessionState:
    session = SessionState()
    session.agree({**PARAMS, **changed})
    return session


def sealed(seals: SessionSeals, session: SessionState | None = None, principal: str = "alice") -> str:
    id = seals.sealed(principal, session or agreed())
    assert id is not None
    return id


@pytest.fixture
def seals() -> SessionSeals:
    return SessionSeals(KEYS, "shop")


def test_an_id_contains_the_handshake(seals: SessionSeals) -> None:
    assert SessionSeals(KEYS, "shop").handshake_of(sealed(seals), "alice") == PARAMS


def test_of_what_a_client_says_about_itself_an_id_has_only_short_texts(seals: SessionSeals) -> None:
    info = {"name": "c", "version": 3, "icons": [{"src": "x" * 2000}], "websiteUrl": "https://example.com"}
    found = seals.handshake_of(sealed(seals, agreed(clientInfo=info)), "alice")
    assert found is not None
    assert found["clientInfo"] == {"name": "c"}


def test_an_id_is_of_one_principal_and_one_server(seals: SessionSeals) -> None:
    id = sealed(seals)
    assert seals.handshake_of(id, "bob") is None
    assert SessionSeals(KEYS, "store").handshake_of(id, "alice") is None
    assert SessionSeals(TextKeys((b"o" * 32,)), "shop").handshake_of(id, "alice") is None


@pytest.mark.parametrize("id", ["", ".", "..", "a.b", "a.b.c.d", "ü.é.\ud800", "x" * 2000, ".." + "0" * 64])
def test_other_texts_are_no_ids(seals: SessionSeals, id: str) -> None:
    assert seals.handshake_of(id, "alice") is None


def test_a_changed_byte_makes_an_id_none(seals: SessionSeals) -> None:
    id = sealed(seals)
    for at, byte in enumerate(id):
        changed = f"{id[:at]}{'A' if byte != 'A' else 'B'}{id[at + 1 :]}"
        assert seals.handshake_of(changed, "alice") is None, at


@pytest.mark.parametrize(
    ("seconds", "accepted"),
    [
        (ADOPTED_SECONDS, True),
        (ADOPTED_SECONDS + 1, False),
        (-CLOCK_SECONDS, True),
        (-CLOCK_SECONDS - 1, False),
    ],
)
def test_an_id_is_accepted_for_a_day(
    seals: SessionSeals, seconds: int, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = float(int(time.time()))
    monkeypatch.setattr(time, "time", lambda: now)
    id = sealed(seals)
    monkeypatch.setattr(time, "time", lambda: now + seconds)
    assert (seals.handshake_of(id, "alice") is not None) is accepted


def test_no_id_is_longer_than_a_header_of_the_fast_path_may_be(seals: SessionSeals) -> None:
    lengths = []
    for size in range(0, LONGEST, 7):
        id = seals.sealed("alice", agreed(capabilities={"x": "y" * size}))
        if id is not None:
            lengths.append(len(id))
    assert LONGEST - 20 < max(lengths) <= LONGEST


def test_an_ended_session_is_refused_until_many_others_have_ended(seals: SessionSeals) -> None:
    id = sealed(seals)
    seals.refuse(id)
    assert seals.handshake_of(id, "alice") is None
    for number in range(ENDED_KEPT):
        seals.refuse(f"{number:016}.x.y")
    assert seals.handshake_of(id, "alice") is not None


def test_a_worker_seals_only_ids_that_belong_to_it(
    seals: SessionSeals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_ids, "_count", 3)
    for number in range(3):
        monkeypatch.setattr(session_ids, "_number", number)
        assert session_ids.worker_of(sealed(seals).encode(), 3) == number
        stream = session_ids.first_stream() + 5 * session_ids.STREAM_STEP
        assert session_ids.worker_of_stream(f"{stream}-7".encode()) == number


@pytest.mark.parametrize("text", [b"", b"0-4", b"x-1", b"-", b"1" * 21 + b"-1"])
def test_the_standalone_stream_is_no_workers(text: bytes) -> None:
    assert session_ids.worker_of_stream(text) is None
