"""Converts JSON arguments to calldata, and back: the ABI of Solidity's contracts, by eth-abi.

Arguments are checked against their types here, and an error gives the path of the invalid one; eth-abi's own
errors are for programmers. Integers keep every digit. They come as JSON integers or as decimal or 0x texts,
and are returned as decimal texts, since clients' JSON may be limited to 53 bits. The first use imports
eth-abi, 0.3 s.
"""

from __future__ import annotations

import re

from .. import _values
from .._errors import INVALID_REQUEST, EngineError, invalid
from .._values import quoted
from .abi_size import ARRAY, MOST_STEPS, is_known, is_plain, steps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

_INTEGER = re.compile(r"(u?)int([0-9]+)\Z")
_BYTES = re.compile(r"bytes([0-9]+)\Z")
_SIGNED = re.compile(r"-?(?:[0-9]{1,78}|0[xX][0-9a-fA-F]{1,64})\Z")
LONGEST_TEXT = 1_000
"""Characters of a revert's reason; its bytes are shown too."""
ERROR_STRING, PANIC = "08c379a0", "4e487b71"
PANICS = {
    0x01: "an assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division by zero",
    0x21: "conversion to an enum that has no such member",
    0x22: "an incorrectly encoded storage byte array",
    0x31: "pop of an empty array",
    0x32: "an index is out of bounds",
    0x41: "too much memory",
    0x51: "a call of a function variable that was not set",
}


def type_of(parameter: Entry) -> str:
    """The canonical type, with tuples expanded."""
    kind = str(parameter["type"])
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(type_of(member) for member in parameter.get("components", ()))
    return f"({inner}){kind[5:]}"


def signature_of(entry: Entry) -> str:
    return f"{entry.get('name', '')}({','.join(type_of(each) for each in entry.get('inputs', ()))})"


def selector_of(entry: Entry) -> bytes:
    from eth_hash.auto import keccak

    return bytes(keccak(signature_of(entry).encode())[:4])


def shown_signature(entry: Entry, name: str = "") -> str:
    """The signature with the parameters' names, for messages."""
    inputs = (f"{each['type']} {each.get('name', '')}".strip() for each in entry.get("inputs", ()))
    return f"{name or entry.get('name', '')}({', '.join(inputs)})"


# --- to the chain ------------------------------------------------------------------------------------


def encode_constructor(contract: str, abi: list[Entry], arguments: list[Any]) -> bytes:
    """The constructor's arguments, to be appended to the bytecode."""
    entry = next((each for each in abi if each.get("type") == "constructor"), {})
    inputs = entry.get("inputs", [])
    return encode_inputs("constructor_args", shown_signature(entry, contract), inputs, arguments)


def encode_call(method: str, abi: list[Entry], arguments: list[Any]) -> tuple[bytes, Entry]:
    """The calldata of a method, and its entry. `method` is a name, or a signature where several methods have
    the name."""
    entry = find_method(method, abi, len(arguments))
    encoded = encode_inputs("args", shown_signature(entry), entry.get("inputs", []), arguments)
    return selector_of(entry) + encoded, entry


def find_method(method: str, abi: list[Entry], count: int) -> Entry:
    from fastrpc.errors import suggestion

    functions = [each for each in abi if each.get("type") == "function"]
    wanted = method.replace(" ", "")
    found = [each for each in functions if wanted in (each.get("name"), signature_of(each))]
    if not found:
        names = [str(each.get("name")) for each in functions]
        hint = suggestion(wanted.partition("(")[0], names)
        raise EngineError(INVALID_REQUEST, f"method: the contract has no {quoted(method)}{hint}")
    if len(found) > 1:
        fitting = [each for each in found if len(each.get("inputs", ())) == count]
        if len(fitting) != 1:
            choices = ", ".join(map(signature_of, found))
            raise invalid("method", f"the signature, as several bear the name: {choices}", quoted(method))
        found = fitting
    return found[0]


def entry_of(data: bytes, abi: list[Entry]) -> Entry | None:
    """The method that calldata is for, if the ABI has it."""
    if len(data) < 4:
        return None
    functions = (each for each in abi if each.get("type") == "function")
    return next((each for each in functions if selector_of(each) == data[:4]), None)


def calldata_of(given: dict[str, Any], abi: list[Entry]) -> tuple[bytes, Entry | None]:
    """The calldata for the parameters of a call, and its method, if that is known."""
    if "data" in given:
        data = bytes.fromhex(given["data"][2:])
        return data, entry_of(data, abi)
    return encode_call(given["method"], abi, given.get("args", []))


def encode_inputs(parameter: str, shown: str, inputs: list[Entry], arguments: list[Any]) -> bytes:
    if len(arguments) != len(inputs):
        raise EngineError(INVALID_REQUEST, f"{parameter}: {shown} takes {len(inputs)}, got {len(arguments)}")
    for index, each in enumerate(inputs):
        if not is_known(each):
            kind = quoted(each["type"])
            raise EngineError(INVALID_REQUEST, f"{parameter}[{index}]: the type {kind} cannot be encoded")
    values = [
        converted(f"{parameter}[{index}]", each, argument)
        for index, (each, argument) in enumerate(zip(inputs, arguments, strict=True))
    ]
    if not inputs:
        return b""
    from eth_abi.abi import encode

    return bytes(encode([type_of(each) for each in inputs], values))


def converted(path: str, parameter: Entry, value: Any) -> Any:
    """A JSON value in eth-abi's form for this type, which must be known. Raises EngineError with the path of
    an invalid part."""
    kind = str(parameter["type"])
    if array := ARRAY.match(kind):
        return _array(path, {**parameter, "type": array[1]}, array[2], value)
    if kind == "tuple":
        return _tuple(path, parameter.get("components", []), value)
    if integer := _INTEGER.match(kind):
        return _integer(path, kind, not integer[1], int(integer[2]), value)
    if kind == "address":
        return _values.address(path, value)
    if kind == "bool":
        return _values.flag(path, value)
    if kind == "string":
        return _string(path, value)
    if kind == "bytes" or _BYTES.match(kind):
        found = _values.data(path, value)
        if kind != "bytes" and len(found) != int(kind[5:]):
            raise invalid(path, f"{kind}: {kind[5:]} bytes", f"{len(found)} bytes")
        return found
    found = _values.data(path, value)
    if len(found) != 24:
        raise invalid(path, "function: an address and a selector, 24 bytes", f"{len(found)} bytes")
    return found


def _array(path: str, item: Entry, length: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise invalid(path, f"an array of {item['type']}", quoted(value))
    if length and len(value) != int(length):
        raise invalid(path, f"an array of {length}", f"one of {len(value)}")
    return [converted(f"{path}[{index}]", item, each) for index, each in enumerate(value)]


def _tuple(path: str, members: list[Entry], value: Any) -> tuple[Any, ...]:
    names = [str(member.get("name", "")) for member in members]
    if isinstance(value, dict):
        if set(value) != set(names):
            raise invalid(
                path, f"an object with {', '.join(names)}", f"one with {', '.join(map(str, value))}"
            )
        value = [value[name] for name in names]
    if not isinstance(value, list) or len(value) != len(members):
        raise invalid(path, f"an array or object of {len(members)}: {', '.join(names)}", quoted(value))
    return tuple(
        converted(f"{path}.{name}" if name else f"{path}[{index}]", member, each)
        for index, (name, member, each) in enumerate(zip(names, members, value, strict=True))
    )


def _integer(path: str, kind: str, signed: bool, bits: int, value: Any) -> int:
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    number = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _SIGNED.match(value):
        number = int(value, 16 if "x" in value.lower() else 10)
    if number is None or not least <= number <= most:
        hint = "; write it as a decimal text" if isinstance(value, float) else ""
        raise invalid(path, f"{kind}: an integer from {least} to {most}{hint}", quoted(value))
    return number


def _string(path: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid(path, "a text", quoted(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(path, "a text of Unicode characters", "one with a lone surrogate") from None
    return value


# ------------------------------------------------------------------------------------- from the chain


def decode_outputs(outputs: list[Entry], data: bytes) -> Any:
    """The return value of a function: a value, an array of several, None for nothing. Never raises
    EngineError(INVALID…): what cannot be decoded is returned as hex."""
    if not outputs:
        return None
    values = decoded(outputs, data)
    if values is None:
        return "0x" + data.hex()
    shown = [to_json(each, value) for each, value in zip(outputs, values, strict=True)]
    return shown[0] if len(shown) == 1 else shown


def decode_answer(calldata: bytes, abi: list[Entry], returned: bytes) -> dict[str, Any] | None:
    """The method that was called, and its return value; None if the ABI does not have it."""
    entry = entry_of(calldata, abi)
    if entry is None:
        return None
    return {"method": signature_of(entry), "result": decode_outputs(entry.get("outputs", []), returned)}


def decoded(parameters: list[Entry], data: bytes) -> tuple[Any, ...] | None:
    """The values; None if the bytes are invalid, or encode more values than they have room for."""
    if not all(map(is_known, parameters)) or not is_plain(parameters, data):
        return None
    from eth_abi.abi import decode
    from eth_abi.exceptions import DecodingError

    try:
        return tuple(decode([type_of(each) for each in parameters], data))
    except (DecodingError, OverflowError, UnicodeDecodeError):
        return None


def to_json(parameter: Entry, value: Any) -> Any:
    """A decoded value as JSON: integers as decimal texts, bytes as 0x texts, tuples with names as objects."""
    kind = str(parameter["type"])
    if array := ARRAY.match(kind):
        return [to_json({**parameter, "type": array[1]}, each) for each in value]
    if kind == "tuple":
        members = parameter.get("components", [])
        shown = [to_json(member, each) for member, each in zip(members, value, strict=True)]
        names = [str(member.get("name", "")) for member in members]
        named = all(names) and len(set(names)) == len(names)
        return dict(zip(names, shown, strict=True)) if named else shown
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _values.checksummed(value) if kind == "address" else value


def named(parameters: list[Entry], values: tuple[Any, ...]) -> dict[str, Any]:
    """Decoded values by name; those without a name by their number."""
    return {
        str(each.get("name") or index): to_json(each, value)
        for index, (each, value) in enumerate(zip(parameters, values, strict=True))
    }


def decode_revert(data: bytes, abi: list[Entry]) -> dict[str, Any]:
    """The content of a revert: Error(string), Panic(uint256), an error of the contract, or the bytes
    alone."""
    found: dict[str, Any] = {"data": "0x" + data.hex()}
    selector = data[:4].hex()
    if selector == ERROR_STRING and (values := decoded([{"type": "string"}], data[4:])):
        return {**found, "error": "Error", "reason": values[0][:LONGEST_TEXT]}
    if selector == PANIC and (values := decoded([{"type": "uint256"}], data[4:])):
        reason = PANICS.get(values[0], "an unknown reason")
        return {**found, "error": "Panic", "code": hex(values[0]), "reason": f"Panic: {reason}"}
    for entry in abi:
        if entry.get("type") == "error" and selector_of(entry) == data[:4]:
            values = decoded(entry.get("inputs", []), data[4:])
            if values is not None:
                arguments = named(entry.get("inputs", []), values)
                shown = ", ".join(f"{name}={value}" for name, value in arguments.items())
                reason = f"{entry['name']}({shown})"
                return {**found, "error": entry["name"], "args": arguments, "reason": reason[:LONGEST_TEXT]}
    return found


def decode_logs(logs: list[dict[str, Any]], abi: list[Entry]) -> list[dict[str, Any]]:
    """The events of a receipt: decoded if the contract's ABI has them, the others as bytes."""
    from eth_hash.auto import keccak

    events = {
        "0x" + keccak(signature_of(entry).encode()).hex(): entry
        for entry in abi
        if entry.get("type") == "event" and not entry.get("anonymous")
    }
    found, steps = [], 0
    for log in logs:
        topics = log.get("topics") or []
        entry = events.get(topics[0]) if topics and steps < MOST_STEPS else None
        data = _values.bytes_of(log.get("data"))
        if entry is not None and all(map(is_known, entry["inputs"])):
            steps += steps_of(entry["inputs"], data)
        found.append(_log(log, topics, data, entry))
    return found


def _log(log: dict[str, Any], topics: list[str], data: bytes, entry: Entry | None) -> dict[str, Any]:
    raw = {"address": _values.checksummed(log["address"]), "topics": topics, "data": "0x" + data.hex()}
    if entry is None:
        return raw
    indexed = [each for each in entry["inputs"] if each.get("indexed")]
    others = [each for each in entry["inputs"] if not each.get("indexed")]
    values = decoded(others, data)
    if values is None or len(indexed) != len(topics) - 1:
        return raw
    arguments = named(others, values)
    for parameter, topic in zip(indexed, topics[1:], strict=True):
        dynamic = parameter["type"] in ("string", "bytes") or parameter["type"][-1] == "]"
        value = (
            None
            if dynamic or parameter["type"] == "tuple"
            else decoded([parameter], bytes.fromhex(topic[2:]))
        )
        arguments[parameter["name"]] = topic if value is None else to_json(parameter, value[0])
    return {"address": raw["address"], "event": entry["name"], "args": arguments}
