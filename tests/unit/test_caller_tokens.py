"""Tokens in the guard's database: what is made, what is kept of it, rotation and revocation."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from sqlalchemy import text as sql

from fastrpc.guard.callers.token_text import digest_of, id_of, new_token
from fastrpc.guard.callers.tokens import CallerTokens, TokenError, UnknownToken, live_tokens
from fastrpc.redaction import masked
from fastrpc.storage.database import Database
from fastrpc.storage.schema import change_number

pytest_plugins = ["support.guard_database"]


class Now:
    """A clock that does not advance."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def store(database: Database, now: Now) -> CallerTokens:
    return CallerTokens(database, now)


def number(database: Database) -> int:
    with database.reading() as connection:
        return change_number(connection, "tokens")


def live(database: Database, now: Now) -> list[str]:
    with database.reading() as connection:
        return [row[0] for row in live_tokens(connection, now())]


# --- the text -----------------------------------------------------------------------------------------


def test_a_token_is_an_id_and_256_random_bits() -> None:
    texts = {new_token() for _ in range(200)}
    assert len({token_id for token_id, _ in texts}) == len(texts)
    for token_id, text in texts:
        match = re.fullmatch(r"frpc_([a-z2-7]{12})_([A-Za-z0-9_-]{43})", text)
        assert match
        assert match[1] == token_id == id_of(text.encode())
        assert len(base64.urlsafe_b64decode(match[2] + "=")) == 32


@pytest.mark.parametrize("change", ["short", "long", "prefix", "separator", "empty"])
def test_what_is_no_token_has_no_id(change: str) -> None:
    token = new_token()[1].encode()
    others = {
        "short": token[:-1],
        "long": token + b"A",
        "prefix": b"ghp_x" + token[5:],
        "separator": token[:17] + b"-" + token[18:],
        "empty": b"",
    }
    assert id_of(others[change]) is None


# --- made ---------------------------------------------------------------------------------------------


def test_of_a_token_only_the_digest_is_kept(database: Database, store: CallerTokens, tmp_path: Path) -> None:
    record, text = store.create("ada", "operator", ["files:read", "files:write"], 60)
    secret = text.split("_", 2)[2].encode()  # which may have the separator in it
    with database.reading() as connection:
        digest = connection.execute(sql("SELECT digest FROM fastrpc_tokens")).scalar_one()
    assert digest == digest_of(text.encode())
    database.close()
    for name in tmp_path.iterdir():
        data = name.read_bytes()
        assert digest in data or not data
        for spelling in (secret, secret.hex().encode(), base64.b64encode(secret)):
            assert spelling not in data
    assert text not in repr(record)


def test_a_token_is_masked_in_all_output_from_then_on(store: CallerTokens) -> None:
    record, text = store.create("ada", "operator")
    _, other = store.rotate(record.id)
    assert masked(f"it is {text}, or {other}") == "it is ****, or ****"


def test_a_record_says_all_that_was_asked_for(store: CallerTokens, now: Now) -> None:
    record, _ = store.create(" ada@example.com ", "operator", ["b", "a", "b"], 60)
    assert store.list() == [record]
    assert (record.owner, record.caller_class, record.scopes) == ("ada@example.com", "operator", ("b", "a"))
    assert (record.created_at, record.expires_at) == (now(), now() + 60)
    assert (record.revoked_at, record.last_used_at, record.rotated_from) == (None, None, None)
    assert record.principal == f"ada@example.com#{record.id}"


def test_every_change_raises_the_number_in_its_own_transaction(
    database: Database, store: CallerTokens
) -> None:
    record, _ = store.create("ada", "operator")
    assert number(database) == 1
    other, _ = store.rotate(record.id, 10)
    assert number(database) == 2
    store.revoke(other.id)
    assert number(database) == 3
    store.revoke(other.id)
    store.note_use({other.id: 1.0})
    assert number(database) == 3


@pytest.mark.parametrize("owner", ["", " ", "a#b", "os:ada", "https://issuer", "a\nb", "x" * 201])
def test_an_owner_that_could_be_another_principal_is_refused(store: CallerTokens, owner: str) -> None:
    with pytest.raises(TokenError, match="owner: expected") as caught:
        store.create(owner, "operator")
    assert len(str(caught.value)) < 400
    assert store.list() == []


@pytest.mark.parametrize(
    ("caller_class", "scopes", "expires_in", "what"),
    [
        ("", [], None, "class"),
        ("two words", [], None, "class"),
        ("x" * 65, [], None, "class"),
        ("ok", [""], None, "scope"),
        ("ok", ["a b"], None, "scope"),
        ("ok", ['a"'], None, "scope"),
        ("ok", ["é"], None, "scope"),
        ("ok", ["s" * 5000], None, "scopes"),
        ("ok", [], 0, "expires"),
        ("ok", [], -1, "expires"),
        ("ok", [], float("nan"), "expires"),
    ],
)
def test_what_no_token_can_have_is_named(
    store: CallerTokens, caller_class: str, scopes: list[str], expires_in: float | None, what: str
) -> None:
    with pytest.raises(TokenError, match=f"^{what}: expected"):
        store.create("ada", caller_class, scopes, expires_in)
    assert store.list() == []


# --- rotated ------------------------------------------------------------------------------------------


def test_a_rotated_token_is_the_same_caller_with_another_secret(store: CallerTokens, now: Now) -> None:
    first, text = store.create("ada", "operator", ["a"], 100)
    now.now += 30
    second, other = store.rotate(first.id, 20)
    assert text != other
    assert second.id != first.id
    assert second.principal == first.principal
    assert (second.caller_class, second.scopes, second.rotated_from) == ("operator", ("a",), first.id)
    assert second.expires_at == now() + 100
    now.now += 50
    third, _ = store.rotate(second.id)
    assert third.principal == first.principal


def test_the_former_token_is_valid_until_the_overlap_is_over(
    database: Database, store: CallerTokens, now: Now
) -> None:
    first, _ = store.create("ada", "operator")
    second, _ = store.rotate(first.id, 20)
    now.now += 19.9
    assert live(database, now) == sorted([first.id, second.id])
    now.now += 0.1
    assert live(database, now) == [second.id]


def test_without_an_overlap_it_is_over_at_once(database: Database, store: CallerTokens, now: Now) -> None:
    first, _ = store.create("ada", "operator")
    second, _ = store.rotate(first.id)
    assert live(database, now) == [second.id]


def test_an_overlap_never_lengthens_the_life_of_a_token(store: CallerTokens, now: Now) -> None:
    first, _ = store.create("ada", "operator", expires_in=10)
    store.rotate(first.id, 1000)
    assert store.list()[0].expires_at == now() + 10


def test_a_token_is_rotated_once_unless_its_successor_is_revoked(
    database: Database, store: CallerTokens
) -> None:
    first, _ = store.create("ada", "operator")
    second, _ = store.rotate(first.id, 60)
    before = store.list()
    with pytest.raises(TokenError, match=f"rotated already, to {second.id}"):
        store.rotate(first.id, 60)
    assert store.list() == before
    store.revoke(second.id)
    assert store.rotate(first.id, 60)[0].rotated_from == first.id


@pytest.mark.parametrize("state", ["revoked", "expired"])
def test_what_is_not_live_is_not_rotated(store: CallerTokens, now: Now, state: str) -> None:
    record, _ = store.create("ada", "operator", expires_in=10)
    if state == "revoked":
        store.revoke(record.id)
    else:
        now.now += 10
    with pytest.raises(TokenError, match=f"it is {state}"):
        store.rotate(record.id)


@pytest.mark.parametrize("overlap", [-1, float("nan"), float("inf")])
def test_an_overlap_is_a_number_of_seconds(store: CallerTokens, overlap: float) -> None:
    record, _ = store.create("ada", "operator")
    with pytest.raises(TokenError, match="overlap"):
        store.rotate(record.id, overlap)


# --- revoked ------------------------------------------------------------------------------------------


def test_a_revoked_token_stays_revoked_since_the_first_time(
    database: Database, store: CallerTokens, now: Now
) -> None:
    record, _ = store.create("ada", "operator")
    revoked = store.revoke(record.id)
    now.now += 5
    assert store.revoke(record.id) == revoked
    assert revoked.revoked_at == now() - 5
    assert revoked.status(now()) == "revoked"
    assert live(database, now) == []


def test_to_revoke_a_token_leaves_its_successor(database: Database, store: CallerTokens, now: Now) -> None:
    first, _ = store.create("ada", "operator")
    second, _ = store.rotate(first.id, 60)
    store.revoke(first.id)
    assert live(database, now) == [second.id]


def test_an_unknown_id_is_named_with_the_one_that_was_meant(store: CallerTokens) -> None:
    record, text = store.create("ada", "operator")
    with pytest.raises(UnknownToken, match=f"did you mean {record.id}"):
        store.revoke(record.id[:-1] + "_")
    with pytest.raises(UnknownToken) as caught:
        store.revoke(text)
    assert text not in str(caught.value)


# --- used ---------------------------------------------------------------------------------------------


def test_the_time_of_last_use_only_grows(store: CallerTokens) -> None:
    record, _ = store.create("ada", "operator")
    for at, there in ((50.0, 50.0), (40.0, 50.0), (60.0, 60.0)):
        store.note_use({record.id: at, "unknown": at})
        assert store.list()[0].last_used_at == there
