"""The contracts toolset on an engine, in one process: whatever is in the parameters or in an answer, a call
ends in an answer, and nothing is broadcast that was not asked for.

Arguments are those of a valid call, of which some were replaced by any JSON; so are answers of the engine.
What it was asked is held against its wire (`support.standin_engine.WIRE`), what is broadcast against the
arguments.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from fastrpc.tools.contracts import _errors, verbs
from fastrpc.tools.contracts._verbs import VERBS
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.bridged import ADDRESS, Session, environment
from support.standin_engine import (
    CHAIN,
    COUNTER_ABI,
    COUNTER_SOURCE,
    OTHER_CHAIN,
    WIRE,
    Engine,
    answers,
    misread,
)
from support.standin_http import Asked, HttpEngine

from fastrpc import Client, Server

SECONDS = 60
CODES = {value for name, value in vars(_errors).items() if name.isupper() and isinstance(value, str)} - {
    _errors.INTERNAL_ERROR
}
SET = {"to": ADDRESS, "chain_id": CHAIN, "method": "set", "args": [9], "abi": COUNTER_ABI}
VALID: dict[str, list[dict[str, Any]]] = {
    "compile": [{"sources": {"src/Counter.sol": COUNTER_SOURCE}, "optimize": True}],
    "test": [{"sources": {"src/Counter.sol": COUNTER_SOURCE}, "filter": "test_"}],
    "simulate": [{"to": ADDRESS, "chain_id": CHAIN, "data": "0x3fa4f245", "value": 1, "block": "latest"}],
    "deploy": [{"idempotency_key": "k", "chain_id": CHAIN, "contract": "Counter", "constructor_args": [7]}],
    "call": [SET, {"to": ADDRESS, "chain_id": CHAIN, "data": "0x60fe47b1" + "00" * 32, "value": "5"}],
    "chain_list": [{}],
    "chain_register": [{"id": "mine", "rpc_url": "http://127.0.0.1:9", "chain_id": 99}],
    "artifact_get": [{"name": "Counter", "include": ["abi"]}],
    "registry_lookup": [{"idempotency_key": "k", "chain_id": CHAIN}],
}
WORDS = [
    "",
    "0x",
    "0x0g",
    "-1",
    "1 ether",
    "1e18",
    "0xff",
    str(2**256),
    "Counter",
    "src/Counter.sol:Counter",
    CHAIN,
    OTHER_CHAIN,
    "31337",
    "latest",
    "set",
    "set(uint256)",
    "value",
    "../../etc/passwd",
    "a\nb",
    "\0",
    "x" * 5_000,
    ADDRESS,
    ADDRESS.upper(),
]
TEXTS = st.one_of(st.sampled_from(WORDS), st.text(st.characters(codec="utf-8"), max_size=20))
NUMBERS = st.one_of(
    st.integers(-(2**300), 2**300),
    st.sampled_from([0, 1, 9, 13, 31337, 2**63, 2**256 - 1, 2**256]),
    st.floats(allow_nan=False, allow_infinity=False),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(TEXTS, st.sampled_from(["type", "name", "inputs", "salt"])), inner, max_size=4
        ),
    ),
    max_leaves=12,
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A verb and arguments for it: those of a valid call, and any JSON in some of its parameters."""
    verb = draw(st.sampled_from(["deploy", "call", *VERBS]))  # those that broadcast come more often
    names = [*VERBS[verb].parameters, "no_such_parameter"]
    changed = draw(st.dictionaries(st.sampled_from(names), JSON, max_size=3))
    gone = draw(st.sets(st.sampled_from(names), max_size=1))
    arguments = {**draw(st.sampled_from(VALID[verb])), **changed}
    return verb, {name: value for name, value in arguments.items() if name not in gone}


@st.composite
def changed_answers(draw: st.DrawFn) -> tuple[str, Any]:
    """A method, and the data of a valid answer to it in which any JSON is in some place."""
    method = draw(st.sampled_from(list(WIRE)))
    data = Engine().answer(method, VALID[method.removeprefix("tachyon_")][0])["data"]
    return method, _changed(draw, data)


def _changed(draw: st.DrawFn, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _changed(draw, value[place]), *value[place + 1 :]]
    name = draw(st.sampled_from(list(value)))
    return {**value, name: _changed(draw, value[name])}


class Conversation:
    """A server in memory and the stand-in that it is bridged to, in one loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.engine = HttpEngine()
        server = Server("contracts")
        server.include(verbs)
        self._client = Client(server)
        self._numbers = count()
        self.session = Session(self._client)

    def own(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with a key that no example has used, unless they have another one anyway."""
        if arguments.get("idempotency_key") != "k":
            return arguments
        return {**arguments, "idempotency_key": f"k-{next(self._numbers)}"}

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, SECONDS))

    def outcome(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The envelope of a call, behind which `engine.requests` are those that it has made."""
        self.engine.forget()
        found: dict[str, Any] = self.run(self.session.envelope(verb, **arguments))
        return found

    def __enter__(self) -> Conversation:
        self.run(self.engine.__aenter__())
        self.run(self._client.connect())
        return self

    def __exit__(self, *error: Any) -> None:
        self.run(self._client.close())
        self.run(self.engine.__aexit__())
        self.loop.close()


@pytest.fixture(scope="module")
def conversation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    folder = tmp_path_factory.mktemp("conversation")
    with pytest.MonkeyPatch.context() as patch, Conversation() as conversation:
        for name, value in environment(folder, conversation.engine.url).items():
            patch.setenv(name, value)
        patch.chdir(folder)
        yield conversation


def broadcast_of(asked: Asked) -> bool:
    is_call = asked.method == "tachyon_call" and not asked.params.get("simulate_only")
    return is_call or asked.method == "tachyon_deploy"


def is_uint256(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch("[0-9]{1,78}", text) is not None and int(text) < 2**256


def check_broadcast(asked: Asked, arguments: dict[str, Any]) -> None:
    """Hold what is broadcast against what was asked for."""
    sent = asked.params
    assert asked.method == f"tachyon_{'deploy' if 'idempotency_key' in arguments else 'call'}"
    given_names = {name for name, value in arguments.items() if value is not None}
    assert given_names - set(sent) <= {"simulate_only"}, "nothing that was given is left out"
    assert sent.get("chain_id", CHAIN) in (CHAIN, OTHER_CHAIN, "31337", "31338")
    for name in ("value", "spend_cap_wei"):
        assert name not in sent or is_uint256(sent[name])
    assert int(sent.get("value", "0")) <= int(sent.get("spend_cap_wei", sent.get("value", "0")))
    if asked.method == "tachyon_deploy":
        (argument,) = sent["constructor_args"]
        assert is_uint256(argument)
        assert sent["contract"] == "Counter"
        assert sent["idempotency_key"] == arguments["idempotency_key"]
    else:
        assert re.fullmatch("0x[0-9a-fA-F]{40}", sent["to"])
        assert ("method" in sent) != ("data" in sent)
        assert "rpc_url" not in sent
    if "method" in sent:
        entries = [each for each in sent.get("abi", COUNTER_ABI) if each.get("type") == "function"]
        named = [
            each for each in entries if each.get("name") == sent["method"].replace(" ", "").split("(")[0]
        ]
        assert len(sent.get("args", [])) in [len(each.get("inputs", [])) for each in named]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(call=calls())
@example(call=("deploy", VALID["deploy"][0]))
@example(call=("call", SET))
@example(call=("call", {**SET, "value": 10, "spend_cap_wei": 9}))
@example(call=("deploy", {**VALID["deploy"][0], "constructor_args": [[]]}))
@example(call=("deploy", {**VALID["deploy"][0], "create2": {"salt": "0x" + "00" * 32}}))
@example(call=("simulate", {"to": ADDRESS, "data": "0x" + "00" * 100_000}))
@example(
    call=(
        "call",
        {**SET, "abi": [{"type": "function", "name": "set", "inputs": [{"type": "uint7[9999999999]"}]}]},
    )
)
@example(call=("call", {**SET, "abi": [{"type": "function", "name": "set", "inputs": [{"type": "tuple"}]}]}))
def test_any_json_ends_in_an_answer_and_in_no_broadcast_but_a_valid_one(
    call: tuple[str, dict[str, Any]], conversation: Conversation
) -> None:
    verb, arguments = call[0], conversation.own(call[1])
    found = conversation.outcome(verb, arguments)
    assert found["ok"] or found["error"]["code"] in CODES, found
    for asked in conversation.engine.requests:
        assert misread(asked.method, asked.params) is None, "the engine was sent what it cannot read"
        if broadcast_of(asked):
            check_broadcast(asked, arguments)


@settings(max_examples=80)
@example(verb="deploy", answer=("tachyon_chain_list", {"chains": [{"id": CHAIN, "chain_id": {"/": None}}]}))
@given(verb=st.sampled_from(list(VALID)), answer=changed_answers())
def test_any_json_in_an_answer_ends_in_an_answer(
    verb: str, answer: tuple[str, Any], conversation: Conversation
) -> None:
    method, data = answer
    arguments = conversation.own(VALID[verb][0])
    conversation.engine.always(method, answers(data))
    found = conversation.run(conversation.session.envelope(verb, **arguments))
    conversation.engine.forget()
    assert found["ok"] or found["error"]["code"] in CODES, found
