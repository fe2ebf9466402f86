"""Rules that map the claims of an access token (RFC 7519, 4) to a class of callers. The first that fits wins.

        rules = ClaimRules([{"claim": "groups", "contains": "ops", "class": "operator"},
                            {"claim": ["realm_access", "roles"], "contains": "dev", "class": "developer"}])
        rules.class_of({"sub": "7", "groups": ["ops"]})  # "operator"

`claim` is the name of a claim, or a list of names that leads into nested ones. `equals` wants the same value
of the same type (1 is not true); `contains` an element of an array, or a word of a text whose words are
separated by spaces, as in ``scope``; `present` wants that there is one, whatever it is. Pure: rules are
checked when they are made, and a claim of another shape than a rule expects does not fit.
"""

from __future__ import annotations

import re

from fastrpc.errors import InvalidConfig, excerpt, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Test = Callable[[object], bool]

TESTS = ("equals", "contains", "present")
MEMBERS = ("claim", *TESTS, "class")
CLASS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_MISSING = object()


class ClaimRules:
    """Rules, each a dict as in a configuration. Raises InvalidConfig, which names the rule and the member."""

    def __init__(self, rules: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(rules, (list, tuple)):
            raise InvalidConfig(f"claim rules: expected a list, got {type(rules).__name__}")
        self._rules = [_read(rule, number) for number, rule in enumerate(rules, 1)]

    def class_of(self, claims: Mapping[str, Any]) -> str | None:
        """Return the class of the first rule that fits, None if none does."""
        for path, test, caller_class in self._rules:
            value = _at(claims, path)
            if value is not _MISSING and test(value):
                return caller_class
        return None


def _read(rule: Mapping[str, Any], number: int) -> tuple[tuple[str, ...], Test, str]:
    where = f"claim rules: rule {number}"
    if not isinstance(rule, dict):
        raise InvalidConfig(f"{where}: expected an object, got {type(rule).__name__}")
    for member in rule:
        if member not in MEMBERS:
            hint = suggestion(str(member), MEMBERS, 1) or f"; there are {', '.join(MEMBERS)}"
            raise InvalidConfig(f"{where}: unknown member {excerpt(str(member))!r}{hint}")
    given = [name for name in TESTS if name in rule]
    if len(given) != 1:
        raise InvalidConfig(
            f"{where}: expected one of {', '.join(TESTS)}, got {' and '.join(given) or 'none'}"
        )
    caller_class = rule.get("class")
    if not isinstance(caller_class, str) or not CLASS.match(caller_class):
        raise InvalidConfig(f"{where}: class: expected the name of a class, got {_shown(caller_class)}")
    return _path(rule.get("claim"), where), _test(given[0], rule[given[0]], where), caller_class


def _path(claim: object, where: str) -> tuple[str, ...]:
    names = [claim] if isinstance(claim, str) else claim
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, str) and n for n in names):
        raise InvalidConfig(f"{where}: claim: expected a name, or a list of names, got {_shown(claim)}")
    return tuple(names)


def _test(kind: str, wanted: object, where: str) -> Test:
    if kind == "present":
        if wanted is not True:
            raise InvalidConfig(f"{where}: present: expected true, got {_shown(wanted)}")
        return lambda value: value is not None
    if not isinstance(wanted, (str, int, float)) or wanted == "":
        raise InvalidConfig(f"{where}: {kind}: expected a text, a number or a boolean, got {_shown(wanted)}")
    if kind == "equals":
        return lambda value: _is_same(value, wanted)

    def contains(value: object) -> bool:
        elements = value.split(" ") if isinstance(value, str) else value
        return isinstance(elements, list) and any(_is_same(element, wanted) for element in elements)

    return contains


def _is_same(value: object, wanted: object) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _at(claims: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(claims, dict) or name not in claims:
            return _MISSING
        claims = claims[name]
    return claims


def _shown(value: object) -> str:
    return "nothing" if value is None else excerpt(repr(value))
