"""Secrets are taken out of what is written down, and harmless texts stay as they are."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc import redaction
from fastrpc._core.redaction import may_match
from fastrpc.redaction import PATTERNS, masked, masked_data, masked_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://me:s3cret@host/p", "https://****@host/p"),
        ("at postgres://app:s3cret@db/main: refused", "at postgres://****@db/main: refused"),
        ('{"url":"https:\\/\\/me:s3cret@host"}', '{"url":"https:\\/\\/****@host"}'),
        ("https://s3cret@host", "https://****@host"),
        ("GET /x?access_token=s3cret&page=2", "GET /x?access_token=****&page=2"),
        ('{"password":"s3\\"cret","page":"2"}', '{"password":"****","page":"2"}'),
        ('{"API-Key" : "s3cret"}', '{"API-Key" : "****"}'),
        ('{"passwords":["s3cret","s3cret"],"a":["b"]}', '{"passwords":["****"],"a":["b"]}'),
        (
            r'{"json":"{\"secret\": \"s3cret\", \"a\": \"b\"}"}',
            r'{"json":"{\"secret\": \"****\", \"a\": \"b\"}"}',
        ),
        ("{'client_secret': 's3cret', 'a': 'b'}", "{'client_secret': '****', 'a': 'b'}"),
        ("curl -H 'Authorization: Bearer s3cret' x", "curl -H 'Authorization: ****' x"),
        ("Authorization: token s3cret\nHost: x", "Authorization: ****\nHost: x"),
        ("sent Bearer s3cret.x-y", "sent Bearer ****"),
        ("PGPASSWORD=s3cret psql", "PGPASSWORD=**** psql"),
        ("login(password='s3 cret', name='me')", "login(password=****, name='me')"),
        ("tool --api-key s3cret --verbose", "tool --api-key **** --verbose"),
        ('{"progressToken":"p-1","token":"s3cret"}', '{"progressToken":"p-1","token":"****"}'),
    ],
)
def test_a_secret_is_masked_and_what_is_around_it_stays(text: str, expected: str) -> None:
    assert masked(text) == expected
    assert masked_line(text.encode()) == expected.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a plain text",
        "token: expected string, got 5",
        "Unexpected token: } in line 3",
        "basic understanding of bearer tokens",
        "mail me@example.org, see http://host/~me@home",
        '{"progress":5,"keys":["a"],"monkey":"x"}',
        "key=value; tokenize the secretary",
        "نصّ عربي 👩‍🚀 e\u0301",
    ],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_values_of_the_environment_with_such_a_name_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "planted-value")
    monkeypatch.setenv("MY_TOKEN", "short")
    monkeypatch.setenv("PLACE", "harmless-value")
    assert masked("planted-value harmless-value short") == "**** harmless-value short"


def test_bytes_that_are_no_text_pass_unchanged() -> None:
    assert masked_line(b"\xff\x00 token=s3cret \xfe") == b"\xff\x00 token=**** \xfe"


LONG = {
    "a": 500_000,
    "token": 100_000,
    '"token': 80_000,
    "a:": 250_000,
    "--": 250_000,
    "://": 150_000,
    '"token":"': 50_000,
    "bearer ": 70_000,
    "token=": 80_000,
    "\\": 500_000,
    "authorization: ": 30_000,
}


@pytest.mark.alone
@pytest.mark.parametrize("piece", LONG)
def test_no_text_takes_long(piece: str) -> None:
    began = time.monotonic()
    masked(piece * LONG[piece])
    assert time.monotonic() - began < 10


WORDS = ("token", "Secret", "passwd", "PASSWORD", "api-key", "api_key", "credential", "private key", "key")
WORDS += ("authorization", "Proxy-Authorization", "cookie", "x-api-key", "Bearer", "basic", "progressToken")
MARKS = ("@", "://", ":", "=", "--", "-", '"', "'", "\\", " ", "\n", "\t", "/", "[", "]", "s3cret.x-y", "1")
LETTERS = ("\u017f", "\u212a", "\u0130", "\u0131", "\ud800", "é", "漢", "👩", "a", "s", "k", "i")


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(WORDS + MARKS + LETTERS), max_size=12).map("".join))
def test_a_text_that_is_not_searched_holds_no_secret(text: str) -> None:
    """The quick look is never wrong: what it lets through no pattern finds."""
    if not may_match(text):
        assert not any(pattern.search(text) for pattern, _ in PATTERNS)


def test_a_variable_that_changes_is_masked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("first-secret", "second-secret"):
        monkeypatch.setenv("MY_TOKEN", secret)
        assert masked("first-secret, second-secret").count("****") == 1
        assert secret not in masked(f"it is {secret}")
    monkeypatch.delenv("MY_TOKEN")
    assert masked("first-secret, second-secret") == "first-secret, second-secret"
    monkeypatch.setattr(os, "environ", {"MY_TOKEN": "third-secret"})
    assert masked("third-secret") == "****"


def test_what_is_hidden_is_masked_and_the_oldest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"hidden-by-a-test-{number}" for number in range(3)]
    monkeypatch.setattr(redaction, "MOST_HIDDEN", len(redaction.hidden) + 3)
    before = dict(redaction.hidden)
    try:
        for name in names:
            redaction.hide(name)
        assert masked(" ".join(names)) == "**** **** ****"
        assert set(redaction.hidden) == {*before, *names}
        redaction.hide("hidden-by-a-test-too")
        assert len(redaction.hidden) == len(before) + 3
        assert next(iter([*before, *names])) not in redaction.hidden
        assert masked("hidden-by-a-test-too") == "****"
    finally:
        redaction.hidden.clear()
        redaction.hidden.update(before)


def test_data_keeps_its_shape_and_loses_its_secrets() -> None:
    data = {
        "password": 1234,
        "max_tokens": 4000,
        "token": "s3cret",
        "headers": {"Authorization": "s3cret", "Cookie": ["s3cret", {"a": 5}]},
        "signing_key": {"user": "s3cret", "on": True},
        "url": "https://me:s3cret@host/]",
        "names": ["a]", None, 1.5],
        1: "x",
    }
    assert masked_data(data) == {
        "password": "****",
        "max_tokens": 4000,
        "token": "****",
        "headers": {"Authorization": "****", "Cookie": ["****", {"a": "****"}]},
        "signing_key": {"user": "****", "on": True},
        "url": "https://****@host/]",
        "names": ["a]", None, 1.5],
        "1": "x",
    }


@pytest.mark.parametrize(("secret", "shown"), [("1234567", "1234567"), ("12345678", "****")])
def test_values_of_less_than_eight_characters_occur_by_chance(
    monkeypatch: pytest.MonkeyPatch, secret: str, shown: str
) -> None:
    monkeypatch.setattr(redaction, "hidden", {})
    redaction.hide(secret)
    assert list(redaction.hidden) == [secret] * (shown == "****")
    monkeypatch.setenv("MY_TOKEN", secret)
    assert masked(f"it is {secret}") == f"it is {shown}"
