"""What an approval is bound to: caller, server, what is called, its arguments, its schema, the policy.

The digest covers the bound arguments, defaults included, so two spellings of one call have one digest. It
is the SHA-256 of canonical JSON (RFC 8785). Canonical JSON does not distinguish all values that a function
can; these are tagged first: integers beyond 2^53, floats with an integral value (1 and 1.0 are two calls),
NaN and the infinities, strings with lone surrogates, and objects of other types. It costs some 20 µs for a
call with a few arguments, and only for calls that need an approval.
"""

from __future__ import annotations

import json
from hashlib import sha256
from os import PathLike, fspath

from fastrpc.redaction import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_EXACT = 2**53 - 1
LONGEST_KEPT = 64 * 1024
"""Characters of arguments that are kept and shown. The digest is of all."""


class Unbindable(ValueError):
    """An argument that has no canonical form: nobody could be asked about exactly this call."""


class Binding:
    """What an approval of one call is bound to. `shown` is the arguments as JSON, with secrets masked.
    `texts` are the arguments that are strings; `rest_digests` has, by the name of each, the digest of all
    other arguments."""

    __slots__ = (
        "call_digest",
        "caller",
        "digest",
        "kind",
        "name",
        "policy",
        "rest_digests",
        "schema",
        "server",
        "shown",
        "texts",
    )

    def __init__(
        self,
        *,
        caller: str,
        server: str,
        kind: str,
        name: str,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Any],
        policy: str,
    ) -> None:
        """`caller` is the principal. Raises Unbindable."""
        self.caller, self.server, self.kind, self.name, self.policy = caller, server, kind, name, policy
        self.schema = json.dumps(schema)
        call = [caller, server, kind, name, tagged(arguments)]
        self.call_digest = _digest(call)
        self.digest = _digest([call, tagged(schema), policy])
        self.shown = shown(arguments)
        self.texts = {name: value for name, value in arguments.items() if type(value) is str}
        self.rest_digests = {name: _digest_without(arguments, name) for name in self.texts}


def _digest_without(arguments: Mapping[str, Any], name: str) -> str:
    return _digest(tagged({key: value for key, value in arguments.items() if key != name})).hex()


def _digest(value: Any) -> bytes:
    import rfc8785

    try:
        return sha256(rfc8785.dumps(value)).digest()
    except (ValueError, RecursionError) as error:
        raise Unbindable(f"the arguments have no canonical form: {error}") from None


def tagged(value: Any) -> Any:
    """Return a value of which `rfc8785` writes another text for each other value. Raises Unbindable."""
    try:
        return _tagged(value)
    except RecursionError:
        raise Unbindable("the arguments are nested too deeply") from None


def _tagged(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -MOST_EXACT <= value <= MOST_EXACT else {"$integer": hex(value)}
    if kind is float:
        return (
            {"$float": repr(value)} if value != value or value in INFINITIES or value.is_integer() else value
        )
    if kind is list:
        return [_tagged(each) for each in value]
    if kind is dict:
        return _object(value)
    return {"$type": f"{kind.__module__}.{kind.__qualname__}", "value": _tagged(_plain(value))}


INFINITIES = (float("inf"), float("-inf"))


def _text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"$text": value.encode("utf-16-be", "surrogatepass").hex()}
    return value


def _object(value: dict[Any, Any]) -> Any:
    members = {}
    for key, each in value.items():
        if type(key) is not str or key.startswith("$") or key != _text(key):
            break
        members[key] = _tagged(each)
    else:
        return members
    pairs = [[_tagged(key), _tagged(each)] for key, each in value.items()]
    return {"$object": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))}


def _plain(value: Any) -> Any:
    """Return what makes a value of another type up, of plain types."""
    if isinstance(value, (set, frozenset)):
        return sorted((_tagged(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    from fastrpc.json_encoding import UnencodableResult, to_json

    try:
        plain = json.loads(to_json(value))
    except (UnencodableResult, TypeError, ValueError) as error:
        raise Unbindable(
            f"an argument of the type {type(value).__name__} has no canonical form: {error}"
        ) from None
    return plain


def shown(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON, as people are shown them: secrets are masked, characters that one cannot see,
    or that turn the direction of a text, are escaped, and a long text is cut."""
    text = visible(masked(json.dumps(arguments, ensure_ascii=False, default=_for_people)))
    if len(text) > LONGEST_KEPT:
        return f"{text[:LONGEST_KEPT]}… {len(text) - LONGEST_KEPT} more characters"
    return text


def indented(shown: str) -> str:
    """Return what `shown` has returned on several lines."""
    try:
        lines = json.dumps(json.loads(shown), ensure_ascii=False, indent=2).split("\n")
    except ValueError:  # it was cut
        return shown
    return "\n".join(map(visible, lines))


def visible(text: str) -> str:
    """Return a JSON text on one line in which no character is one that cannot be seen."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _for_people(value: Any) -> Any:
    try:
        return _plain(value)
    except Unbindable:
        return repr(value)
