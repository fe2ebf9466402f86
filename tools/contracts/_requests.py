"""Reads the arguments of a verb: checks that each is known, present and of its kind, before an engine is
asked.

Returns them in the engine's form. Raises EngineError(INVALID_REQUEST) with the parameter, the expected and
the received value; for an unknown name, with the nearest known one. null counts as absent.
"""

from __future__ import annotations

import re

from . import _settings, _values
from ._artifacts import PARTS
from ._errors import INVALID_REQUEST, EngineError, invalid
from ._values import quoted
from ._verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_NAMES, MOST_ARGUMENTS = 200, 200
MOST_FILES, MOST_BYTES = 1_000, 16 * 1024 * 1024
"""Bytes of all sources together. solc takes more than a second for a megabyte. Encoding them as JSON for the
compiler takes up to ten times as much memory in the server."""
MOST_RUNS = 2**32 - 1

_EVM_VERSION = re.compile(r"[a-z][a-zA-Z]{2,19}\Z")
_PATTERN = re.compile(r"[^-\s\0-\x1f][^\0-\x1f]{0,199}\Z")
_PATH = re.compile(r"[A-Za-z0-9_@+. -]+(/[A-Za-z0-9_@+. -]+)*\.(sol|vyi?|toml|txt|env)\Z")


def read(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The verb's parameters. Raises EngineError."""
    readers, required = _FORMS[verb]
    if not arguments.keys() <= readers.keys():
        check_names(arguments, list(readers))
    for name in required:
        if arguments.get(name) is None:
            kind = VERBS[verb].parameters[name][0]
            raise invalid(name, f"{kind.replace('_', ' ')}, which is required", "nothing")
    found = {name: readers[name](name, value) for name, value in arguments.items() if value is not None}
    _check_together(verb, found)
    return found


def check_names(arguments: dict[str, Any], known: list[str]) -> None:
    """Raise EngineError for the first unknown argument, with the nearest known one."""
    for name in arguments:
        if name not in known:
            from fastrpc.errors import suggestion

            hint = suggestion(name, known) or f"; there are {', '.join(known) or 'none'}"
            raise EngineError(INVALID_REQUEST, f"{quoted(name)[1:-1]}: no such parameter{hint}")


def _check_together(verb: str, found: dict[str, Any]) -> None:
    """Check which arguments require or exclude each other."""
    if verb in ("compile", "test") and ("sources" in found) == ("project_root" in found):
        raise invalid(
            "sources", "either sources or project_root", "both" if "sources" in found else "neither"
        )
    if verb != "chain_register" and "chain_id" in found and "rpc_url" in found:
        raise invalid("rpc_url", "either chain_id or rpc_url", "both")
    if verb == "call":
        if ("method" in found) == ("data" in found):
            raise invalid("method", "either method or data", "both" if "data" in found else "neither")
        if "args" in found and "method" not in found:
            raise invalid("args", "a method to go with them", "data alone")


# ---------------------------------------------------------------------------------------- by kind


def _sources(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise invalid(name, 'an object of texts by path, such as {"src/Counter.sol": "…"}', quoted(value))
    if len(value) > MOST_FILES:
        raise invalid(name, f"at most {MOST_FILES} files", str(len(value)))
    total = 0
    for path, text in value.items():
        where = f'{name}["{path[:100]}"]'
        if not _PATH.match(path) or any(step.startswith(".") for step in path.split("/")[:-1]):
            raise invalid(where, "a relative path to a .sol file, without ..", quoted(path))
        if not isinstance(text, str):
            raise invalid(where, "the file's text", quoted(text))
        total += len(text)
    if total > MOST_BYTES:
        raise invalid(name, f"at most {MOST_BYTES} characters together", str(total))
    return value


def _folder(name: str, value: Any) -> str:
    import os

    path = _values.text(name, value, 4_000)
    is_elsewhere = bool(_settings.ENGINE.read())  # the engine's folders may be on another machine
    if "\0" in path or not os.path.isabs(path) or not (is_elsewhere or os.path.isdir(path)):
        raise invalid(name, "the absolute path of a folder", quoted(value))
    return os.path.realpath(path)


def _names(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > MOST_NAMES:
        raise invalid(name, f"an array of at most {MOST_NAMES} names", quoted(value))
    found = [_values.contract(f"{name}[{index}]", each) for index, each in enumerate(value)]
    if name == "include":
        for index, each in enumerate(found):
            if each not in PARTS:
                raise invalid(f"{name}[{index}]", f"one of {', '.join(PARTS)}", quoted(each))
    return found


def _arguments(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_ARGUMENTS:
        raise invalid(name, f"an array of at most {MOST_ARGUMENTS} arguments", quoted(value))
    return value


def _optimize(name: str, value: Any) -> int:
    """The number of optimizer runs; 0: no optimization."""
    if isinstance(value, bool):
        return 200 if value else 0
    return _values.integer(name, value, "true, false, or the number of runs", MOST_RUNS)


def _evm_version(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _EVM_VERSION.match(value):
        raise invalid(name, "a name such as paris or cancun", quoted(value))
    return value


def _pattern(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _PATTERN.match(value):
        raise invalid(name, "a pattern of 1 to 200 characters that does not begin with -", quoted(value))
    return value


def _chain(name: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(_values.chain_number(name, value))
    return _values.name(name, value)


def _create2(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not {"salt"} <= set(value) <= {"salt", "deployer"}:
        raise invalid(name, "an object with salt, and deployer if it is not the common one", quoted(value))
    salt = _values.data(f"{name}.salt", value["salt"])
    if len(salt) != 32:
        raise invalid(f"{name}.salt", "32 bytes, 0x and 64 hex digits", f"{len(salt)} bytes")
    found: dict[str, Any] = {"salt": "0x" + salt.hex()}
    if value.get("deployer") is not None:
        found["deployer"] = _values.address(f"{name}.deployer", value["deployer"])
    return found


def _data(name: str, value: Any) -> str:
    return "0x" + _values.data(name, value).hex()


READERS: dict[str, Callable[[str, Any], Any]] = {
    "abi": _values.abi,
    "address": _values.address,
    "arguments": _arguments,
    "block": _values.block,
    "chain": _chain,
    "contract": _values.contract,
    "create2": _create2,
    "data": _data,
    "evm_version": _evm_version,
    "flag": _values.flag,
    "folder": _folder,
    "key": _values.key,
    "name": _values.name,
    "names": _names,
    "number": _values.chain_number,
    "optimize": _optimize,
    "pattern": _pattern,
    "rpc_url": _values.rpc_url,
    "sources": _sources,
    "text": _values.text,
    "wei": _values.wei,
}

_FORMS: dict[str, tuple[dict[str, Callable[[str, Any], Any]], list[str]]] = {
    verb: (
        {name: READERS[kind] for name, (kind, _, _) in facts.parameters.items()},
        [name for name, (_, required, _) in facts.parameters.items() if required],
    )
    for verb, facts in VERBS.items()
}
"""For each verb, the function that reads each of its parameters, and the required ones."""
