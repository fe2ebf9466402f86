"""The JSON of any value that a tool may return.

Plain values (dict, list, numbers …) are written by `fastrpc._core.encoder`, 3 µs for 3 KB. The rest is
encoded by orjson, which the first such value imports (18 ms, once). What orjson refuses or would change
silently is encoded by the standard library (`_exact_json`). NaN and infinity, which JSON does not have, are
refused; the error names their position.
"""

from __future__ import annotations

import sys

from fastrpc._core.encoder import is_plain, plain_json
from fastrpc.errors import ArgumentError, FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class UnencodableResult(FastrpcError):
    """A tool returned a value that JSON cannot represent. The message names the value and its position."""

    outcome = "encoding_error"


UNWRITABLE = (UnencodableResult, UnicodeEncodeError)
"""What `to_json` raises for a value that JSON cannot represent."""


def to_json(value: Any) -> bytes:
    """Return the JSON of any value that a tool may return. Raises UnencodableResult."""
    plain = plain_json(value)
    return rich_json(value) if plain is None else plain


def rich_json(value: Any) -> bytes:
    """Return the JSON of a value that is not plain. Raises UnencodableResult."""
    import orjson

    try:
        encoded = orjson.dumps(value, default=_plainer, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return _exact_json(value)
    if b"null" in encoded and not is_plain(value):
        _refuse_nan(value)
    return encoded


def _plainer(value: Any) -> Any:
    """Convert a value that orjson cannot encode to one that it can. Raises UnencodableResult."""
    if isinstance(value, (set, frozenset)):
        return list(value)
    if "pydantic" in sys.modules and hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    _refuse_unfinished(value)
    import msgspec

    return msgspec.to_builtins(value, str_keys=True)


def _refuse_unfinished(value: Any) -> None:
    """Refuse a coroutine and the like, returned in place of a result. Raises UnencodableResult."""
    from types import AsyncGeneratorType, CoroutineType, GeneratorType

    if isinstance(value, CoroutineType):
        value.close()  # otherwise Python warns, later and elsewhere, that it was never awaited
        raise UnencodableResult(
            f"the result is a coroutine; await the call of {value.__qualname__} that returned it"
        )
    if isinstance(value, (GeneratorType, AsyncGeneratorType)):
        raise UnencodableResult(f"the result is a generator, {value.__qualname__}; return a list instead")


def _exact_json(value: Any) -> bytes:
    """Return the standard library's encoding: slow, but for integers of any size, and with clear errors."""
    import json

    _refuse_nan(value)
    try:
        text = json.dumps(value, default=_plainer, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        cure = "; return text, numbers, or lists, dicts and dataclasses of these"
        raise UnencodableResult(
            f"the result cannot be written as JSON: {error}{cure if isinstance(error, TypeError) else ''}"
        ) from None


def _refuse_nan(value: Any) -> None:
    """Raise UnencodableResult with the position of a number that JSON does not have."""
    for place, leaf in _leaves(value, "result"):
        if isinstance(leaf, float) and leaf - leaf != 0:
            raise UnencodableResult(f"{place}: {leaf} cannot be written as JSON")


def message_json(message: dict[str, Any]) -> bytes:
    """Return the JSON of a message that a client sends. Raises ArgumentError."""
    try:
        return to_json(message)
    except UNWRITABLE as error:
        given = {name: value for name, value in message.items() if name not in ("jsonrpc", "id", "params")}
        raise unsendable({**given, **message.get("params", {})}, error) from None


def unsendable(params: dict[str, Any], error: BaseException) -> BaseException:
    """Return the exception for params that a client could not encode.

    It is an ArgumentError that names the first value that JSON does not have: a number (RFC 8259, 6), or a
    text with half a surrogate pair, which has no UTF-8 (RFC 3629, 3). Otherwise it is `error` itself.
    """
    if not isinstance(error, UNWRITABLE):
        return error
    for name, value in params.items():
        for place, leaf in _leaves(value, name):
            if isinstance(leaf, float):
                if leaf - leaf != 0:
                    return ArgumentError(f"{place}: expected a finite number, got {leaf}")
                continue
            try:
                to_json(leaf)
            except UnicodeEncodeError:
                return ArgumentError(
                    f"{place}: expected a text, got one with half a surrogate pair: {leaf!a:.80}"
                )
            except UnencodableResult:
                return ArgumentError(f"{place}: expected a value with JSON, got {type(leaf).__name__}")
    return ArgumentError(f"expected values with JSON: {str(error).rpartition(': ')[2]}")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the names of members and the leaves (no dict, list, tuple or set) of a value, with positions."""
    waiting = [(path, value)]
    seen = set()  # a value may contain itself
    while waiting:
        path, value = waiting.pop()
        if not isinstance(value, (dict, list, tuple, set, frozenset)):
            yield path, value
        elif id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, dict):
                yield from ((path, name) for name in value)
                members = [(f"{path}.{name}", member) for name, member in value.items()]
            else:
                members = [(f"{path}[{at}]", element) for at, element in enumerate(value)]
            waiting += reversed(members)
