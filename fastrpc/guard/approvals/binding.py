"""What an approval is bound to: caller, server, what is called, its arguments, its schema, the policy.

The digest covers the bound arguments, including defaults, so two spellings of one call have the same digest.
It is the SHA-256 of the canonical JSON (RFC 8785) of their canonical form (`canonical`); people are shown the
text of that form (`display`). Canonical JSON does not distinguish all values of the form, so these are tagged
first: integers beyond 2^53, floats with an integral value (1 and 1.0 are two calls), NaN and the infinities,
and strings with lone surrogates. This takes some 20 µs for a call with a few arguments, and only for calls
that need an approval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fastrpc.errors import Reworded
from fastrpc.guard.approvals.canonical import Unbindable, canonical
from fastrpc.guard.approvals.display import masked_tree, written

MOST_EXACT = 2**53 - 1
LONGEST_SHOWN = 256 * 1024
"""The maximum length of arguments that people are shown, in characters. Longer ones cannot be approved."""


class Binding:
    """What an approval of one call is bound to. `shown` is the arguments as JSON, with secrets masked.
    `texts` are the arguments that are strings; `rest_digests` maps the name of each to the digest of all
    other arguments."""

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
        tree = canonical(dict(arguments))
        call = [caller, server, kind, name, tagged(tree)]
        self.call_digest = _digest(call)
        self.digest = _digest([call, tagged(schema), policy])
        self.shown = shown(tree)
        self.texts = {name: value for name, value in arguments.items() if type(value) is str}
        self.rest_digests = {name: _digest_without(arguments, name) for name in self.texts}


def _digest_without(arguments: Mapping[str, Any], name: str) -> str:
    return _digest(tagged(canonical({key: each for key, each in arguments.items() if key != name}))).hex()


def _digest(value: Any) -> bytes:
    import rfc8785

    with Reworded((ValueError, RecursionError), Unbindable, "the arguments have no canonical form: "):
        return sha256(rfc8785.dumps(value)).digest()


def tagged(value: Any) -> Any:
    """Return a tagged tree: `rfc8785` writes different texts for different trees. Raises Unbindable."""
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
    return _object(value)


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


def shown(tree: Any) -> str:
    """Return the canonical form of arguments as JSON, in the form that people are shown. Raises Unbindable if
    it is too long to be read."""
    text = written(masked_tree(tree))
    if len(text) > LONGEST_SHOWN:
        raise Unbindable(
            f"its arguments are {len(text):,} characters, more than the {LONGEST_SHOWN:,} that an approver "
            "is shown"
        )
    return text


def indented(shown: str) -> str:
    """Return the result of `shown` on several lines, for people: see `written`."""
    return written(json.loads(shown), 2)
