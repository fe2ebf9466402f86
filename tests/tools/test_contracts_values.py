"""What the verbs of the contracts toolset take and refuse: values, arguments of methods, requests."""

from __future__ import annotations

from typing import Any

import pytest
from eth_hash.auto import keccak
from fastrpc.tools.contracts import _requests, _values
from fastrpc.tools.contracts._chain import abi, transactions
from fastrpc.tools.contracts._errors import INVALID_REQUEST, EngineError
from fastrpc.tools.contracts._verbs import VERBS
from hypothesis import given
from hypothesis import strategies as st

VITALIK = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
BIG = 123456789012345678901234567890123456


def refusal(function: Any, *arguments: Any) -> str:
    with pytest.raises(EngineError) as caught:
        function(*arguments)
    assert caught.value.code == INVALID_REQUEST
    assert caught.value.retry is False
    return caught.value.message


def outcome(function: Any, *arguments: Any) -> tuple[Any, EngineError | None]:
    """What a function returns, or the EngineError that it raises; any other exception is the test's."""
    try:
        return function(*arguments), None
    except EngineError as error:
        return None, error


# --------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("given", [VITALIK, VITALIK.lower(), "0x" + VITALIK[2:].upper()])
def test_an_address_gets_its_checksum(given: str) -> None:
    assert _values.address("to", given) == VITALIK


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hello", 'to: expected an address (0x and 40 hex digits), got "hello"'),
        (VITALIK.replace("dA", "Da", 1), "checksum"),
        (VITALIK[:-1], "40 hex digits"),
        (VITALIK + "\n", "40 hex digits"),
        (5, "got 5"),
        (None, "got null"),
    ],
)
def test_what_is_no_address_is_refused(given: Any, said: str) -> None:
    assert said in refusal(_values.address, "to", given)


@pytest.mark.parametrize(
    ("given", "wei"), [(5, 5), ("5", 5), ("0x10", 16), (BIG, BIG), (str(BIG), BIG), (0, 0), ("0", 0)]
)
def test_wei_keeps_every_digit(given: Any, wei: int) -> None:
    assert _values.wei("value", given) == wei


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("1 ether", 'value: "1 ether" is not wei; write 1000000000000000000'),
        ("0.5 ether", "write 500000000000000000"),
        ("2gwei", "write 2000000000"),
        (1e18, "an amount in wei"),
        (-1, "an amount in wei"),
        (True, "an amount in wei"),
        ("1,000", "an amount in wei"),
        (2**256, "an amount in wei"),
        ("1 pound", "an amount in wei"),
    ],
)
def test_what_is_no_wei_is_refused_with_what_was_meant(given: Any, said: str) -> None:
    assert said in refusal(_values.wei, "value", given)


@pytest.mark.parametrize(
    ("given", "block"), [("latest", "latest"), (17, "0x11"), ("17", "0x11"), ("0x11", "0x11")]
)
def test_a_block_is_a_tag_or_a_number(given: Any, block: str) -> None:
    assert _values.block("block", given) == block


def test_a_url_is_shown_without_its_secrets() -> None:
    shown = _values.masked_url("https://user:pass@node.example:8545/v3/0123456789abcdef0123?key=abc")
    assert shown == "https://***@node.example:8545/v3/***?***"


@pytest.mark.parametrize("given", ["ftp://a", "http://", "file:///etc/passwd", "http://a:0", "x", 5])
def test_what_is_no_http_url_is_refused(given: Any) -> None:
    assert "an http or https URL" in refusal(_values.rpc_url, "rpc_url", given)


# -------------------------------------------------------------------------- arguments of methods

PAIR = {"type": "tuple", "components": [{"name": "a", "type": "uint256"}, {"name": "b", "type": "string"}]}


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ({"type": "uint256"}, BIG, BIG),
        ({"type": "uint256"}, str(BIG), BIG),
        ({"type": "int8"}, "-128", -128),
        ({"type": "int256"}, "-0x10", -16),
        ({"type": "bool"}, True, True),
        ({"type": "bytes4"}, "0x01020304", b"\1\2\3\4"),
        ({"type": "uint8[]"}, [1, "2"], [1, 2]),
        ({"type": "uint8[2][]"}, [[1, 2]], [[1, 2]]),
        (PAIR, {"a": 1, "b": "x"}, (1, "x")),
        (PAIR, ["1", "x"], (1, "x")),
    ],
)
def test_an_argument_becomes_the_value_of_its_type(kind: Any, given: Any, value: Any) -> None:
    assert abi.converted("args[0]", kind, given) == value


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ({"type": "uint8"}, 256, "args[0]: expected uint8: an integer from 0 to 255"),
        ({"type": "uint256"}, 1e30, "write it as a decimal text"),
        ({"type": "uint256"}, True, "got true"),
        ({"type": "bytes4"}, "0x0102", "4 bytes"),
        ({"type": "uint8[2]"}, [1], "an array of 2"),
        ({"type": "uint8[]"}, [1, 300], "args[0][1]"),
        ({**PAIR, "type": "tuple[]"}, [{"a": 1, "b": 5}], "args[0][0].b: expected a text"),
        (PAIR, {"a": 1}, "an object with a, b"),
        ({"type": "string"}, "\ud800", "lone surrogate"),
    ],
)
def test_an_argument_that_does_not_fit_is_named_by_its_path(kind: Any, given: Any, said: str) -> None:
    assert said in refusal(abi.converted, "args[0]", kind, given)


def test_the_number_of_arguments_is_said_with_the_constructor() -> None:
    counter = [{"type": "constructor", "inputs": [{"name": "v", "type": "uint256"}]}]
    said = refusal(abi.encode_constructor, "Counter", counter, [])
    assert said == "constructor_args: Counter(uint256 v) takes 1, got 0"


METHODS = [
    {"type": "function", "name": "set", "inputs": [{"name": "v", "type": "uint256"}]},
    {"type": "function", "name": "set", "inputs": [{"name": "v", "type": "string"}]},
    {"type": "function", "name": "get", "inputs": []},
]


def test_a_method_of_several_is_named_by_its_signature() -> None:
    assert "set(uint256), set(string)" in refusal(abi.encode_call, "set", METHODS, ["1"])
    data, _ = abi.encode_call("set(uint256)", METHODS, [str(BIG)])
    assert data == bytes.fromhex("60fe47b1") + BIG.to_bytes(32, "big")
    assert "did you mean get" in refusal(abi.encode_call, "gett", METHODS, [])


def test_reverts_are_read() -> None:
    error = {"type": "error", "name": "TooMuch", "inputs": [{"name": "most", "type": "uint256"}]}
    selector = abi.selector_of(error)
    found = abi.decode_revert(selector + (7).to_bytes(32, "big"), [error])
    assert (found["reason"], found["args"]) == ("TooMuch(most=7)", {"most": "7"})
    panic = bytes.fromhex(abi.PANIC) + (0x12).to_bytes(32, "big")
    assert abi.decode_revert(panic, [])["reason"] == "Panic: division by zero"
    assert abi.decode_revert(b"\1\2\3\4", [error]) == {"data": "0x01020304"}


def test_a_few_bytes_that_represent_millions_of_values_are_given_back_as_they_are() -> None:
    def word(number: int) -> bytes:
        return number.to_bytes(32, "big")

    def nested(depth: int, width: int) -> bytes:
        """Arrays of arrays, each of which names the one behind it `width` times."""
        inner = b"".join(word(width) + word(32 * width) * width for _ in range(depth - 1))
        return word(32) + inner + word(width) + word(7) * width

    bomb = nested(5, 100)  # ten thousand million integers
    assert abi.decode_outputs([{"type": "uint256[][][][][]"}], bomb) == "0x" + bomb.hex()
    texts = word(32) + word(200) + word(32 * 200) * 200 + word(32 * 1_000) + b"x" * 32 * 1_000
    assert abi.decode_outputs([{"type": "string[]"}], texts) == "0x" + texts.hex()
    for tuples, is_soon_decoded in ((3, True), (31, False)):
        within: dict[str, Any] = {"type": "uint256"}
        for _ in range(tuples):  # each makes eth-abi take twice the time
            within = {"type": "tuple", "components": [within]}
        assert (abi.decode_outputs([within], word(7)) != "0x" + word(7).hex()) is is_soon_decoded
    empty = {"type": "tuple[]", "components": []}
    assert abi.decode_outputs([empty], word(32) + word(2**200)) == "0x" + (word(32) + word(2**200)).hex()
    assert abi.decode_outputs([{"type": "uint256[][]"}], nested(2, 1)) == [["7"]]


def test_events_are_decoded_for_half_a_second_in_all() -> None:
    within: dict[str, Any] = {"type": "uint256", "name": "value"}
    for _ in range(10):
        within = {"type": "tuple", "name": "within", "components": [within]}
    event = {"type": "event", "name": "Deep", "inputs": [within]}
    topic = "0x" + keccak(abi.signature_of(event).encode()).hex()
    log = {"address": VITALIK, "topics": [topic], "data": "0x" + "00" * 32}
    decoded = ["args" in each for each in abi.decode_logs([log] * 500, [event])]
    assert decoded == sorted(decoded, reverse=True)
    assert 20 < sum(decoded) < 100
    assert abi.decode_logs([{**log, "data": None}], [event])[0]["data"] == "0x"


LONG = pytest.param(f"uint8[{'9' * 5_000}]", id="long")


@pytest.mark.parametrize("kind", ["uint7", "bytes99", "moon", "uint256[0]", LONG, "f()"])
def test_types_that_are_none_are_refused_and_their_bytes_given_back(kind: str) -> None:
    values: dict[str, Any] = {"uint7": "1", "bytes99": "0x" + "00" * 99, "uint256[0]": []}
    refusal(abi.encode_inputs, "args", "f", [{"type": kind}], [values.get(kind, "x")])
    assert abi.decode_outputs([{"type": kind}], b"\1" * 32) == "0x" + "01" * 32


@given(st.lists(st.integers(0, 255), max_size=200), st.sampled_from(["bytes", "string[]", "uint8[][2]"]))
def test_any_bytes_are_decoded_or_given_back(data: list[int], kind: str) -> None:
    assert abi.decode_outputs([{"type": kind}], bytes(data)) is not None


@given(st.recursive(st.integers(0, 2**256 - 1), lambda inner: st.lists(inner, max_size=4), max_leaves=20))
def test_what_was_encoded_is_decoded(value: Any) -> None:
    def depth(value: Any) -> int:
        return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0

    def as_deep(value: Any, wanted: int) -> Any:
        """The value as arrays of arrays, all of them as deep."""
        if wanted == 0:
            return value
        return [as_deep(each, wanted - 1) for each in (value if isinstance(value, list) else [value])]

    def as_text(value: Any) -> Any:
        return [as_text(each) for each in value] if isinstance(value, list) else str(value)

    deep = depth(value)
    value = as_deep(value, deep)
    inputs = [{"type": "uint256" + "[]" * deep}, {"type": "string"}]
    encoded = abi.encode_inputs("args", "f", inputs, [value, "é" * 40])
    assert abi.decode_outputs(inputs, encoded) == [as_text(value), "é" * 40]


def test_an_abi_has_no_more_levels_than_contracts_have() -> None:
    entry: dict[str, Any] = {"type": "uint256"}
    for _ in range(400):  # as deep as JSON that Python reads
        entry = {"type": "tuple", "components": [entry]}
    abi = [{"type": "function", "name": "f", "inputs": [entry]}]
    assert "levels of components" in refusal(_values.abi, "abi", abi)
    assert _values.abi("abi", METHODS) == METHODS


def test_addresses_of_new_contracts_are_known_before() -> None:
    # The first contracts of anvil's first account, and the example of EIP-1014.
    first = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert transactions.created_address(first, 0) == "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    assert transactions.created_address(first, 1) == "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
    zero = transactions.created2_address("0x" + "0" * 40, b"\0" * 32, b"\0")
    assert zero == "0x4D1A2e2bB4F88F0250f26Ffff098B0b30B26BF38"


# ---------------------------------------------------------------------------------------- requests


def test_an_unknown_parameter_is_refused_with_the_nearest() -> None:
    said = refusal(_requests.read, "artifact_get", {"nam": "Counter"})
    assert said == "nam: no such parameter (did you mean name?)"


def test_a_required_parameter_is_missed_by_name() -> None:
    assert refusal(_requests.read, "simulate", {}).startswith("to: expected")


@pytest.mark.parametrize(
    "path",
    ["../a.sol", "/etc/a.sol", "a/../b.sol", "a\\b.sol", "a.sol\0", "a//b.sol", ".git/a.sol", "a.js", ""],
)
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    assert "sources[" in refusal(_requests.read, "compile", {"sources": {path: "contract A {}"}})


def test_sources_are_solidity_or_vyper_and_small_enough_to_be_held() -> None:
    sources = {"src/A.sol": "a", "src/b.vy": "b", "src/interfaces/IC.vyi": "c"}
    assert _requests.read("compile", {"sources": sources})["sources"] == sources
    assert _values.contract("name", "src/interfaces/IC.vyi:IC")
    large = dict.fromkeys(("a.sol", "b.sol"), "x" * (_requests.MOST_BYTES // 2 + 1))
    assert "at most 16777216 characters" in refusal(_requests.read, "compile", {"sources": large})


@pytest.mark.parametrize("text", ["cancun'\nffi = true", "cancun ", "CANCUN", "", 5])
def test_a_version_that_could_be_configuration_is_refused(text: Any) -> None:
    arguments = {"sources": {"a.sol": ""}, "evm_version": text}
    assert refusal(_requests.read, "test", arguments).startswith("evm_version: expected")


def test_sources_and_a_folder_exclude_each_other() -> None:
    assert "both" in refusal(_requests.read, "compile", {"sources": {"a.sol": ""}, "project_root": "/tmp"})
    assert "neither" in refusal(_requests.read, "compile", {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.data())
def test_any_json_in_any_parameter_is_read_or_refused_in_words(data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(sorted(VERBS)))
    names = st.sampled_from([*VERBS[verb].parameters, "other"])
    arguments = data.draw(st.dictionaries(names, JSON, max_size=6))
    found, error = outcome(_requests.read, verb, arguments)
    if error is None:
        assert set(found) <= set(VERBS[verb].parameters)
        return
    assert error.code == INVALID_REQUEST
    assert len(error.message) < 1_000
    assert any(name in error.message for name in (*VERBS[verb].parameters, "other"))


KINDS = (
    "uint256",
    "int8",
    "address",
    "bool",
    "string",
    "bytes",
    "bytes32",
    "uint8[]",
    "uint8[2]",
    "function",
)


@given(st.sampled_from(KINDS), JSON)
def test_any_json_for_any_type_is_encoded_or_refused_in_words(kind: str, value: Any) -> None:
    inputs = [{"name": "v", "type": kind}]
    encoded, error = outcome(abi.encode_inputs, "args", "f", inputs, [value])
    if error is None:
        assert len(encoded) % 32 == 0
        assert abi.decode_outputs(inputs, encoded) is not None
        return
    assert error.code == INVALID_REQUEST
    assert error.message.startswith("args[0]")
