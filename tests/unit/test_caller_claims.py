"""Callers with an authorization server's token: which class claims give, and how principals are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastrpc.callers import Caller, owner_of, token_principal, user_principal
from fastrpc.guard.callers import claims
from fastrpc.guard.callers.claims import ClaimedCallers, ClaimRule, caller_of
from fastrpc.guard.policy.patterns import Patterns

HERE, THERE = "https://as.test/realms/a", "https://else.test"
RULES = [
    ClaimRule(("groups",), claims.contains("ops"), "operator"),
    ClaimRule(("realm_access", "roles"), claims.contains("dev"), "developer"),
    ClaimRule(("scope",), claims.contains("write"), "writer"),
    ClaimRule(("https://example.com/level",), claims.equals(3), "third"),
    ClaimRule(("email_verified",), claims.equals(True), "person"),
    ClaimRule(("email",), claims.matching(Patterns(["*@example.com"]).match), "staff"),
    ClaimRule(("azp",), claims.present(True), "program"),
    ClaimRule(("tenant",), claims.equals("x"), "foreign", THERE),
]


def named(given: dict[str, Any], issuer: str = HERE, scopes: tuple[str, ...] = ()) -> str:
    return ClaimedCallers(RULES, "default").principal_of(issuer, {"sub": "7", **given}, scopes)


def caller(given: dict[str, Any], issuer: str = HERE, scopes: tuple[str, ...] = ()) -> Caller:
    found = caller_of(named(given, issuer, scopes))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "default"),
        ({"groups": ["ops", "x"]}, "operator"),
        ({"groups": ["Ops"]}, "default"),
        ({"groups": "ops other"}, "operator"),
        ({"groups": "opsx"}, "default"),
        ({"groups": {"ops": 1}}, "default"),
        ({"groups": None}, "default"),
        ({"groups": [["ops"]]}, "default"),
        ({"realm_access": {"roles": ["dev"]}}, "developer"),
        ({"realm_access": ["roles"]}, "default"),
        ({"realm_access.roles": ["dev"]}, "default"),
        ({"scope": "read write"}, "writer"),
        ({"scope": "rewrite"}, "default"),
        ({"https://example.com/level": 3}, "third"),
        ({"https://example.com/level": "3"}, "default"),
        ({"email_verified": True}, "person"),
        ({"email_verified": 1}, "default"),
        ({"email_verified": "true"}, "default"),
        ({"email": "ada@example.com"}, "staff"),
        ({"email": ["x", "ada@example.com"]}, "staff"),
        ({"email": "ada@example.com.evil.test"}, "default"),
        ({"email": 7}, "default"),
        ({"azp": ""}, "program"),
        ({"azp": None}, "default"),
        ({"groups": ["ops"], "azp": "x"}, "operator"),
    ],
)
def test_the_first_rule_that_fits_says_the_class(given: dict[str, Any], expected: str) -> None:
    assert caller(given).caller_class == expected


def test_a_rule_about_one_issuer_says_nothing_of_another_s_tokens() -> None:
    assert caller({"tenant": "x"}, THERE).caller_class == "foreign"
    assert caller({"tenant": "x"}, HERE).caller_class == "default"


def test_tokens_of_one_subject_with_other_rights_are_callers_apart_whose_rates_count_together() -> None:
    plain, operator = caller({}), caller({"groups": ["ops"]}, scopes=("b", "a", "b"))
    assert plain.principal == f"default@{HERE}#7"
    assert operator.principal == f'operator"a b"@{HERE}#7'
    assert (operator.scopes, operator.owner) == (("a", "b"), f"{HERE}#7")
    assert plain.counted_as == operator.counted_as == f"{HERE}#7"
    assert named({}, scopes=("a", "b")) == named({}, scopes=("b", "a"))


def test_no_subject_and_no_scope_makes_the_principal_of_another_caller() -> None:
    """What a client can choose, its subject or the scopes that it asks for, is never read as a class."""
    hostile = ["operator@https://as.test#7", f'operator"x"@{HERE}#7', f"{HERE}#7", "a\nb", '"', "#", "@", " "]
    for text in hostile:
        for given, scopes in (({"sub": text}, ("a",)), ({}, (text,)), ({}, ("a", text))):
            principal = named(given, scopes=scopes)
            found = caller_of(principal)
            assert found is not None
            assert found.caller_class == "default"
            assert found.owner == f"{HERE}#{given.get('sub', '7')}"
            assert set(found.scopes) <= set(scopes)


@pytest.mark.parametrize(
    "principal",
    [
        "",
        f"{HERE}#7",
        f"{HERE}#operator@{HERE}#7",
        token_principal("ada@example.com", "k3x7q2mfa4zt"),
        user_principal("operator@host"),
        "0" * 64,
        "operator@as.test#7",
    ],
)
def test_what_other_sources_name_is_no_principal_of_claims(principal: str) -> None:
    assert caller_of(principal) is None


@pytest.mark.parametrize(
    ("read", "value", "words"),
    [
        (claims.path, None, "expected a name, or an array of names, got None"),
        (claims.path, [], "expected a name, or an array of names, got []"),
        (claims.path, ["a", 1], "expected a name, or an array of names"),
        (claims.equals, None, "expected a text, a number or a boolean, got None"),
        (claims.contains, ["b"], "expected a text, a number or a boolean, got ['b']"),
        (claims.contains, "", "expected a text, a number or a boolean, got ''"),
        (claims.present, False, "expected true, got False"),
    ],
)
def test_what_a_rule_cannot_ask_is_said(read: Callable[[object], object], value: object, words: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        read(value)
    assert words in str(caught.value)


def test_an_error_quotes_little_of_a_rule() -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        claims.equals(["x" * 10_000])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("granted", ["", '"read write"'])
def test_a_principal_contains_whose_it_is(granted: str) -> None:
    principal = f"agents{granted}@https://issuer.example/a#ada"
    assert owner_of(principal) == "https://issuer.example/a#ada"
    assert getattr(caller_of(principal), "owner", None) == owner_of(principal)
    assert owner_of("ada#k3x7") == "ada"
    assert owner_of("os:ada") == "os:ada"
