"""Texts that clients carry: the keys that sign and verify them, and where these come from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from fastrpc import Server, signed_texts
from fastrpc.errors import UsageError
from fastrpc.signed_texts import LONGEST_FILE, TextKeys, configured, keys_of

ONE, TWO, THREE = ("one-key-" * 5, "two-key-" * 5, "three-ke" * 5)


def opens(keys: TextKeys, text: str) -> bool:
    return keys.payload_of(text, "test", "alice") is not None


def signed_by(*keys: str) -> str:
    return configured(",".join(keys)).signed("test", "alice", "payload")


def file_of(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_first_key_signs_and_all_verify() -> None:
    keys = configured(f" {ONE} , {TWO},")
    assert [opens(keys, signed_by(key)) for key in (ONE, TWO, THREE)] == [True, True, False]
    assert signed_by(ONE, TWO) == signed_by(ONE)
    assert keys.payload_of(signed_by(TWO), "test", "alice") == "payload"


def test_a_text_is_for_one_purpose_and_one_principal() -> None:
    keys = configured(ONE)
    text = keys.signed("test", "alice", "a.b")
    assert keys.payload_of(text, "test", "alice") == "a.b"
    for purpose, principal in (("other", "alice"), ("test", "bob"), ("test", "")):
        assert keys.payload_of(text, purpose, principal) is None


def test_keys_of_a_file_come_after_those_of_the_variable(tmp_path: Path) -> None:
    path = file_of(tmp_path, f"# comment\n\n{TWO}\n  {THREE}  \n")
    keys = configured(ONE, path)
    assert all(opens(keys, signed_by(key)) for key in (ONE, TWO, THREE))
    assert keys.signed("test", "alice", "payload") == signed_by(ONE)
    assert configured("", path).signed("test", "alice", "payload") == signed_by(TWO)


@pytest.mark.parametrize("text", [",", " ", " ,, "])
def test_separators_alone_are_no_keys(text: str) -> None:
    with pytest.raises(UsageError, match="FASTRPC_SECRET: there is no key"):
        configured(text)


def test_an_application_is_not_made_with_keys_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_SECRET_FILE", "/no/such/file")
    with pytest.raises(UsageError, match="FASTRPC_SECRET_FILE: cannot read"):
        Server("keys").asgi(auth=None)


def test_without_keys_one_is_random_and_not_shared() -> None:
    one, other = configured(""), configured(None)
    assert not one.are_shared
    assert not opens(other, one.signed("test", "alice", "payload"))
    assert configured(ONE).are_shared


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("short", 0o600, "expected at least 32 bytes, got 5"),
        ("x" * (LONGEST_FILE + 1), 0o600, "longer than"),
        ("#\n", 0o600, "there is no key"),
        (ONE, 0o604, "others may use"),
        (ONE, 0o602, "others may use"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str, mode: int, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        configured("", file_of(tmp_path, text, mode))
    assert ONE not in str(caught.value)


def test_a_short_key_is_an_error_that_does_not_contain_it() -> None:
    with pytest.raises(UsageError, match="expected at least 32 bytes, got 6") as caught:
        configured(f"{ONE},secret")
    assert "secret" not in str(caught.value).replace("secrets", "")
    configured("k" * 32)
    with pytest.raises(UsageError, match="got 31"):
        configured("k" * 31)


def test_short_keys_sign_where_no_session_depends_on_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(signed_texts.SECRET_VARIABLE, "short")
    monkeypatch.delenv(signed_texts.FILE_VARIABLE, raising=False)
    runtime = SimpleNamespace(signing_keys=None)
    keys = keys_of(runtime)
    assert not keys.are_shared
    assert keys_of(runtime) is keys
    assert opens(keys_of(SimpleNamespace(signing_keys=None)), keys.signed("test", "alice", "payload"))
