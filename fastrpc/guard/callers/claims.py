"""Callers with an authorization server's token: their class by its claims (RFC 7519, 4), and their principal.

    [[claims]]
    claim = "groups"              # or ["realm_access", "roles"]: a claim in a claim
    contains = "ops"
    class = "operator"

The first rule that fits wins. `equals` requires the same value of the same type (1 is not true). `contains`
requires an element of an array, or a word of a text whose words are separated by spaces, as in ``scope``.
`matches` requires a text or an element that one of several globs matches. `present` requires any value. A
claim of another type does not fit.

The class and the scopes are part of the principal, ``CLASS@ISSUER#SUBJECT`` or
``CLASS"SCOPES"@ISSUER#SUBJECT``. So everything that is stored by principal (sessions, lists, decisions,
approvals) belongs to the claims of the request's token, and two tokens of one subject with different claims
never share rights. A scope has no quotation mark (RFC 6749, 3.3), a class no colon, and an issuer no
fragment, so a principal is parsed unambiguously, and principals of other sources have other forms. Pure: no
state, and each process parses a principal in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastrpc.callers import CLAIMED, SCOPE, Caller
from fastrpc.errors import excerpt

Test = Callable[[object], bool]

_MISSING = object()


@dataclass(eq=False)
class ClaimRule:
    """One rule: tokens of `issuer`, "" for all, whose claim at `path` passes `test`, get a class."""

    path: tuple[str, ...]
    test: Test
    caller_class: str
    issuer: str = ""

    def fits(self, issuer: str, claims: Mapping[str, Any]) -> bool:
        """Whether the rule fits a token's claims."""
        if self.issuer and self.issuer != issuer:
            return False
        value = _at(claims, self.path)
        return value is not _MISSING and self.test(value)


class ClaimedCallers:
    """Callers with tokens of authorization servers. `rules`, or else `default_class`, determine the class."""

    def __init__(self, rules: Iterable[ClaimRule], default_class: str) -> None:
        self._rules = tuple(rules)
        self._default_class = default_class

    def principal_of(self, issuer: str, claims: Mapping[str, Any], scopes: Iterable[str]) -> str:
        """Return the principal of a token with verified claims."""
        fitting = (rule.caller_class for rule in self._rules if rule.fits(issuer, claims))
        caller_class = next(fitting, self._default_class)
        granted = " ".join(sorted({scope for scope in scopes if SCOPE.match(scope)}))
        quoted = f'"{granted}"' if granted else ""
        return f"{caller_class}{quoted}@{issuer}#{claims['sub']}"


def caller_of(principal: str) -> Caller | None:
    """Return the caller of a principal that `ClaimedCallers` has made, None for any other."""
    found = CLAIMED.match(principal)
    if found is None:
        return None
    caller_class, scopes, subject = found.groups()
    return Caller(
        principal, caller_class, owner=subject, scopes=tuple((scopes or "").split()), counted_as=subject
    )


# --- kinds of values --------------------------------------------------------------------------------------
# Each raises ValueError with what was expected and what was received.


def path(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n for n in names):
        raise ValueError(f"expected a name, or an array of names, got {_shown(value)}")
    return tuple(names)


def equals(wanted: object) -> Test:
    _check_plain(wanted)
    return lambda value: _is_same(value, wanted)


def contains(wanted: object) -> Test:
    _check_plain(wanted)
    return lambda value: any(_is_same(element, wanted) for element in _elements(value))


def present(wanted: object) -> Test:
    if wanted is not True:
        raise ValueError(f"expected true, got {_shown(wanted)}")
    return lambda value: value is not None


def matching(match: Callable[[str], bool]) -> Test:
    """Return the test that a text, or an element of an array, passes `match`."""

    def test(value: object) -> bool:
        texts = value if isinstance(value, list) else [value]
        return any(isinstance(text, str) and match(text) for text in texts)

    return test


def _check_plain(wanted: object) -> None:
    if not isinstance(wanted, (str, int, float)) or wanted == "":
        raise ValueError(f"expected a text, a number or a boolean, got {_shown(wanted)}")


def _elements(value: object) -> list[object]:
    if isinstance(value, str):
        return [*value.split(" ")]
    return value if isinstance(value, list) else []


def _is_same(value: object, wanted: object) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _at(claims: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(claims, dict) or name not in claims:
            return _MISSING
        claims = claims[name]
    return claims


def _shown(value: object) -> str:
    return excerpt(repr(value))
