"""Reads the values of a request: addresses, wei, chain ids, blocks, names; refuses invalid ones.

Each function takes the parameter's name and the JSON value, and returns the value for the chain. Raises
EngineError(INVALID_REQUEST) with the parameter, the expected and the received value. Integers may be JSON
integers, decimal texts or 0x texts, and keep every digit. A float is refused even if it is whole: 1e30 had
lost digits before it arrived. Costs microseconds, and the import of a Keccak for mixed-case addresses.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ._errors import CHAIN_NOT_FOUND, INVALID_REQUEST, EngineError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_QUOTE = 80
MOST_ENTRIES = 5_000
DEEPEST_ENTRY = 32
MAX_WORD = 2**256 - 1
BLOCK_TAGS = ("latest", "earliest", "pending", "safe", "finalized")
UNITS = {"wei": 1, "gwei": 10**9, "szabo": 10**12, "finney": 10**15, "ether": 10**18, "eth": 10**18}

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*\Z")
_DECIMAL = re.compile(r"[0-9]{1,78}\Z")
_HEX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,64}\Z")
_AMOUNT = re.compile(r"([0-9]{1,60})(?:\.([0-9]{1,18}))?\s*([a-zA-Z]+)\Z")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}\Z")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
_CONTRACT = re.compile(r"(?:[A-Za-z0-9_./@-]{1,200}\.(?:sol|vyi?):)?[A-Za-z_$][A-Za-z0-9_$]{0,99}\Z")


def quoted(value: Any) -> str:
    """The value for an error message, shortened."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def text(parameter: str, value: Any, longest: int = 1_000) -> str:
    if not isinstance(value, str) or not value or len(value) > longest:
        raise invalid(parameter, f"a text of 1 to {longest} characters", quoted(value))
    return value


def flag(parameter: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise invalid(parameter, "true or false", quoted(value))
    return value


def key(parameter: str, value: Any) -> str:
    """An idempotency key."""
    if not isinstance(value, str) or not _KEY.match(value):
        raise invalid(parameter, "1 to 200 of the characters A-Z a-z 0-9 . _ : / @ -", quoted(value))
    return value


def name(parameter: str, value: Any) -> str:
    """The id of a project or of a chain."""
    if not isinstance(value, str) or not _NAME.match(value):
        raise invalid(parameter, "1 to 64 of the characters A-Z a-z 0-9 _ . -", quoted(value))
    return value


def contract(parameter: str, value: Any) -> str:
    """A contract's name, ``Counter`` or ``src/Counter.sol:Counter``."""
    if not isinstance(value, str) or not _CONTRACT.match(value):
        raise invalid(
            parameter, "a contract's name, such as Counter or src/Counter.sol:Counter", quoted(value)
        )
    return value


def address(parameter: str, value: Any) -> str:
    """An address, with its EIP-55 checksum. One in mixed case must have the right checksum already."""
    if not isinstance(value, str) or not _ADDRESS.match(value):
        raise invalid(parameter, "an address (0x and 40 hex digits)", quoted(value))
    proper = checksummed(value)
    digits = value[2:]
    if digits not in (digits.lower(), digits.upper()) and value != proper:
        raise invalid(parameter, f"an address whose checksum is right (EIP-55: {proper})", quoted(value))
    return proper


def checksummed(value: str) -> str:
    """The address in the mixed case of EIP-55."""
    from eth_hash.auto import keccak

    digits = value[2:].lower()
    nibbles = keccak(digits.encode()).hex()
    cased = (
        digit.upper() if int(nibble, 16) >= 8 else digit
        for digit, nibble in zip(digits, nibbles, strict=False)
    )
    return "0x" + "".join(cased)


def integer(parameter: str, value: Any, expected: str, most: int = MAX_WORD) -> int:
    """An integer from 0 to `most`: a JSON integer, a decimal text or a 0x text."""
    number = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _DECIMAL.match(value):
        number = int(value)
    elif isinstance(value, str) and _HEX_NUMBER.match(value):
        number = int(value, 16)
    if number is None or not 0 <= number <= most:
        raise invalid(parameter, expected, quoted(value))
    return number


def wei(parameter: str, value: Any) -> int:
    if isinstance(value, str) and (amount := _AMOUNT.match(value.strip())):
        whole, part, unit = amount.groups()
        factor = UNITS.get(unit.lower())
        if factor is not None and factor >= 10 ** len(part or ""):
            meant = int(whole) * factor + int(part or 0) * factor // 10 ** len(part or "")
            raise EngineError(INVALID_REQUEST, f"{parameter}: {quoted(value)} is not wei; write {meant}")
    return integer(parameter, value, "an amount in wei: an integer, as decimal or 0x text where it is large")


def chain_number(parameter: str, value: Any) -> int:
    return integer(parameter, value, "the chain's number, such as 31337", 2**63 - 1)


def block(parameter: str, value: Any) -> str:
    """A block as JSON-RPC wants it: a tag, or the number in hex."""
    if value in BLOCK_TAGS:
        return str(value)
    expected = f"a block number, or one of {', '.join(BLOCK_TAGS)}"
    return hex(integer(parameter, value, expected, 2**63 - 1))


def data(parameter: str, value: Any, longest: int = 1_000_000) -> bytes:
    """Bytes as 0x and an even number of hex digits."""
    if not isinstance(value, str) or len(value) > 2 * longest + 2 or not _HEX.match(value):
        raise invalid(parameter, "0x and an even number of hex digits", quoted(value))
    return bytes.fromhex(value[2:])


def bytes_of(value: Any) -> bytes:
    """The bytes of a 0x text from another program; none if it is invalid."""
    return bytes.fromhex(value[2:]) if isinstance(value, str) and _HEX.match(value) else b""


def abi(parameter: str, value: Any) -> list[dict[str, Any]]:
    """A contract's ABI, as the compiler writes it."""
    if not isinstance(value, list) or len(value) > MOST_ENTRIES:
        raise invalid(parameter, "an array of entries, as the compiler writes it", quoted(value))
    for index, entry in enumerate(value):
        _abi_entry(f"{parameter}[{index}]", entry, 0)
    return value


def _abi_entry(path: str, entry: Any, level: int) -> None:
    if level > DEEPEST_ENTRY:
        raise invalid(path[:LONGEST_QUOTE], f"at most {DEEPEST_ENTRY} levels of components", "more")
    if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
        raise invalid(path, 'an object with a "type"', quoted(entry))
    for part in ("inputs", "outputs", "components"):
        if part in entry:
            if not isinstance(entry[part], list):
                raise invalid(f"{path}.{part}", "an array", quoted(entry[part]))
            for index, each in enumerate(entry[part]):
                _abi_entry(f"{path}.{part}[{index}]", each, level + 1)


def rpc_url(parameter: str, value: Any) -> str:
    from urllib.parse import urlsplit

    if isinstance(value, str) and len(value) <= 2_000 and value.isascii() and value.isprintable():
        try:
            parts = urlsplit(value)
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
                return value
        except ValueError:
            pass
    shown = masked_url(value) if isinstance(value, str) else value
    raise invalid(parameter, "an http or https URL", quoted(shown))


@lru_cache(maxsize=64)
def masked_url(url: str) -> str:
    """The URL without what may be a secret: user and password, the path's long parts, the query."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "…"
    host = f"[{host}]" if ":" in host else host
    credentials = "***@" if "@" in parts.netloc else ""
    path = "/".join("***" if len(step) >= 16 else step for step in parts.path.split("/"))
    query = "?***" if parts.query else ""
    return f"{parts.scheme}://{credentials}{host}{'' if port is None else f':{port}'}{path}{query}"


def unknown_chain(chain: str, known: list[str]) -> EngineError:
    return EngineError(CHAIN_NOT_FOUND, f"chain_id: no chain {quoted(chain)}; there are {', '.join(known)}")


def counted(number: int, noun: str) -> str:
    """Return a number of things, in words: ``2 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
