"""Rules from claims to a class: which fit, and what is said of those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from fastrpc.errors import InvalidConfig
from fastrpc.guard.callers.claims import ClaimRules

RULES = [
    {"claim": "groups", "contains": "ops", "class": "operator"},
    {"claim": ["realm_access", "roles"], "contains": "dev", "class": "developer"},
    {"claim": "scope", "contains": "write", "class": "writer"},
    {"claim": "https://example.com/level", "equals": 3, "class": "third"},
    {"claim": "email_verified", "equals": True, "class": "person"},
    {"claim": "azp", "present": True, "class": "program"},
]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({}, None),
        ({"sub": "7"}, None),
        ({"groups": ["ops", "x"]}, "operator"),
        ({"groups": ["Ops"]}, None),
        ({"groups": "ops other"}, "operator"),
        ({"groups": "opsx"}, None),
        ({"groups": {"ops": 1}}, None),
        ({"groups": None}, None),
        ({"groups": [["ops"]]}, None),
        ({"realm_access": {"roles": ["dev"]}}, "developer"),
        ({"realm_access": ["roles"]}, None),
        ({"realm_access.roles": ["dev"]}, None),
        ({"scope": "read write"}, "writer"),
        ({"scope": "rewrite"}, None),
        ({"https://example.com/level": 3}, "third"),
        ({"https://example.com/level": "3"}, None),
        ({"email_verified": True}, "person"),
        ({"email_verified": 1}, None),
        ({"email_verified": "true"}, None),
        ({"azp": ""}, "program"),
        ({"azp": None}, None),
        ({"groups": ["ops"], "azp": "x"}, "operator"),
    ],
)
def test_the_first_rule_that_fits_says_the_class(claims: dict[str, Any], expected: str | None) -> None:
    assert ClaimRules(RULES).class_of(claims) == expected


def test_without_rules_nobody_has_a_class() -> None:
    assert ClaimRules([]).class_of({"groups": ["ops"]}) is None


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"claim": "a"}, "expected a list, got dict"),
        (["x"], "rule 1: expected an object, got str"),
        ([RULES[0], {"clam": "a"}], "rule 2: unknown member 'clam' (did you mean claim?)"),
        ([{"claim": "a", "class": "b"}], "rule 1: expected one of equals, contains, present, got none"),
        (
            [{"claim": "a", "class": "b", "equals": 1, "contains": 2}],
            "rule 1: expected one of equals, contains, present, got equals and contains",
        ),
        ([{"claim": "a", "equals": 1}], "rule 1: class: expected the name of a class, got nothing"),
        (
            [{"claim": "a", "equals": 1, "class": "a b"}],
            "rule 1: class: expected the name of a class, got 'a b'",
        ),
        (
            [{"equals": 1, "class": "a"}],
            "rule 1: claim: expected a name, or a list of names, got nothing",
        ),
        ([{"claim": [], "equals": 1, "class": "a"}], "claim: expected a name, or a list of names, got []"),
        ([{"claim": ["a", 1], "equals": 1, "class": "a"}], "claim: expected a name"),
        ([{"claim": "a", "equals": None, "class": "a"}], "equals: expected a text, a number or a boolean"),
        ([{"claim": "a", "contains": ["b"], "class": "a"}], "contains: expected a text, a number"),
        ([{"claim": "a", "contains": "", "class": "a"}], "contains: expected a text, a number"),
        ([{"claim": "a", "present": False, "class": "a"}], "present: expected true, got False"),
    ],
)
def test_a_rule_that_cannot_be_is_named_with_its_member(rules: Any, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        ClaimRules(rules)
    assert words in str(caught.value)


def test_an_error_quotes_little_of_a_rule() -> None:
    with pytest.raises(InvalidConfig) as caught:
        ClaimRules([{"claim": "a", "equals": ["x" * 10_000], "class": "a"}])
    assert len(str(caught.value)) < 400
