"""The names and globs of a list: how long, how many, and what they allow."""

from __future__ import annotations

import pytest

from fastrpc.guard.policy.patterns import Patterns


def test_a_name_has_one_to_256_characters() -> None:
    assert Patterns(["x" * 256, "y"]).match("x" * 256)
    for text in ("", "x" * 257):
        with pytest.raises(ValueError, match=f"has 1 to 256 characters, this {len(text)}"):
            Patterns(["y", text])


def test_a_list_has_at_most_ten_thousand() -> None:
    assert Patterns(["x*"] * 10_000).match("xy")
    with pytest.raises(ValueError, match="at most 10000 names and globs, this 10001"):
        Patterns(["x"] * 10_001)


@pytest.mark.parametrize(
    ("texts", "allowed", "refused"),
    [
        (["read"], ["read"], ["reads", "Read", ""]),
        (["read_*"], ["read_", "read_x"], ["read", "xread_"]),
        (["get?"], ["gets"], ["get", "getss"]),
        (["[ab]c", "d"], ["ac", "bc", "d", "[ab]c"], ["cc"]),
        ([], [], ["", "read"]),
    ],
)
def test_exact_names_and_globs(texts: list[str], allowed: list[str], refused: list[str]) -> None:
    patterns = Patterns(texts)
    assert [name for name in (*allowed, *refused) if patterns.match(name)] == allowed


def test_a_uri_is_allowed_as_a_whole_or_by_what_follows_its_scheme() -> None:
    assert Patterns(["documents/*"]).match_uri("file://documents/a")
    assert Patterns(["file://documents/*"]).match_uri("file://documents/a")
    assert not Patterns(["documents/*"]).match_uri("file://other/a")
