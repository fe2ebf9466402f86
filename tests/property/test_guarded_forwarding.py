"""Calls through a guarded gateway, forwarded as bytes: answers, records and counts are those of parsed calls.

A random conversation of two callers with a gateway takes place twice: with the calls forwarded as bytes if
the compiled gate allows them, and with every call parsed. The policy has rates, budgets, rules about
arguments and tools that are denied; more calls come than may be in flight. The servers return results of all
forms, errors and junk; they log, for which a call needs a Context; or they wait until the client cancels.
FASTRPC_STEPS says how many steps, FASTRPC_SEED which.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded
from support.in_memory import ENVELOPE, RawConversation, in_loop
from support.protocol import message
from support.waiting import until

from fastrpc import CallRecord, Server
from fastrpc.engine.messages import key_of
from fastrpc.gateway import gateway_of
from fastrpc.gateway.status import Health
from fastrpc.guard.audit import AuditLog, verify
from fastrpc.guard.audit.calls import CallAudit
from fastrpc.guard.budgets.file import BudgetFile
from fastrpc.guard.budgets.ledger import Ledger
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.proxy import UpstreamServer

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
STEPS = int(os.environ.get("FASTRPC_STEPS", "120"))
MOST_IN_FLIGHT = 4
NOON = 1_700_049_600.0
ACTS = ("free", "limited", "counted", "ruled", "staffed", "denied")
TOOLS = tuple(f"{server}_{name}" for server in ("far", "near") for name in ACTS)

UPSTREAM = r"""
import json, sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in sys.argv[1:]]
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        arguments = message["params"]["arguments"]
        for data in arguments.get("logs", ()):
            params = {"level": "error", "data": data}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
        if "hold" in arguments:
            continue
        if "raw" in arguments:
            print('{"jsonrpc":"2.0","id":%d,%s}' % (id, arguments["raw"]), flush=True)
            continue
        result = {"content": [{"type": "text", "text": json.dumps(message["params"], sort_keys=True)}]}
    elif id is None:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":")), flush=True)
"""
POLICY = """
[expose]
tools = ["*"]
[risk]
"*" = "low"
[classes.staff]
tools = ["*_free", "*_limited", "*_counted", "*_ruled", "*_staffed"]
tool_rates = { "far_limited" = "6/hour", "near_limited" = "2/hour" }
tool_budgets = { "far_counted" = ["8 calls/day"], "near_counted" = ["2 calls/day"] }
budget = ["90 calls/day"]
[classes.guest]
tools = ["*_free", "*_limited", "*_counted", "*_ruled"]
rate = "60/hour"
tool_rates = { "far_limited" = "4/hour" }
tool_budgets = { "far_counted" = ["5 calls/day"] }
[[rules]]
id = "no-bombs"
tools = ["*_ruled"]
when = 'has(args.text) && args.text == "bomb"'
then = "deny"
"""
RAW = (
    '"result":{"content":[{"type":"text","text":"x"}]}',
    '"result":{"content":[{"type":"text","text":"no"}],"isError":true}',
    '"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":[1,null]},"isError":false}',
    '"result":{"content":[],"_meta":{"example.com/x":1}}',
    '"result":{"content":[{"type":"smell"}]}',
    '"result":5',
    '"error":{"code":-32050,"message":"full","data":{"seconds":3}}',
    '"error":{"code":-32602,"message":"no"}',
)
TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
OF_ONE_RECORD = re.compile(r"id|seq|prev|time|.*_us|bytes|arguments|result")
"""Fields of the audit log that no two records have in common."""
RETRY = re.compile(rb'(retry in |"retry\w*":)\d+')
ANSWER = re.compile(rb'\{"jsonrpc":"2.0","id":(?:"[^"]*"|\d+),"(?:result|error)":(.*)\}')

Step = tuple[int, Any, str, dict[str, Any], dict[str, Any]]
"""A call: the number of the connection, the id, the tool, the arguments, the ``_meta``."""


def arguments_of(chance: random.Random) -> dict[str, Any]:
    text = chance.choice(["x", "bomb", "\u00e9\u2028\\\n", "y" * 300])
    found: dict[str, Any] = {"text": text, "n": chance.randrange(5)}
    if chance.random() < 0.2:
        found["big"] = chance.choice([2**63, 10**40, -0.0, 1e300])
    if chance.random() < 0.5:
        found["raw"] = chance.choice(RAW)
    if chance.random() < 0.1:
        found["hold"] = True
    return found if chance.random() < 0.9 else {}


def steps_of(chance: random.Random) -> list[list[Step]]:
    """Return the calls of each step, which are begun together."""
    found: list[list[Step]] = []
    number = 0
    for _ in range(STEPS):
        together: list[Step] = []
        for _ in range(chance.choice([1, 1, 1, 2, MOST_IN_FLIGHT + 2])):
            number += 1
            id = f"{number}{'i' * 300}" if number % 20 == 0 else chance.choice([number, f"\u00e9{number}"])
            meta = {**TRACE, "example.com/tenant": chance.randrange(3)} if chance.random() < 0.3 else {}
            together.append((chance.randrange(4), id, chance.choice(TOOLS), arguments_of(chance), meta))
        if len(together) == 1 and chance.random() < 0.2:  # which of several calls is meant is not certain
            together[0][3].pop("hold", None)
            together[0][3]["logs"] = ["first", {"second": 2}]
        found.append(together)
    return found


class Caller(RawConversation):
    """A connection of one principal. `sent`: the arguments of its calls, by their ids."""

    def __init__(self, app: Server, version: str, principal: str) -> None:
        super().__init__(app, version)
        self.dispatcher.principal = principal
        self.sent: dict[Any, bytes] = {}

    async def list_tools(self) -> None:
        meta = {"_meta": ENVELOPE} if self.version == STATELESS else {}
        self.say(message("tools/list", meta, id="list"))
        await self.answer("list")

    def call(self, id: Any, name: str, arguments: Any, meta: dict[str, Any] | None = None) -> None:
        self.sent[id] = json.dumps(arguments).encode()
        super().call(id, name, arguments, meta)

    def is_held(self, id: Any) -> bool:
        return key_of(json.dumps(id).encode()) in self.connection.in_flight

    def result(self, id: Any) -> bytes:
        """The result or the error of an answer, as JSON."""
        found = ANSWER.fullmatch(self.answers[id])
        assert found is not None
        return found[1]


class Conversation:
    """A guarded gateway and its callers; with `as_bytes` False every call is parsed."""

    def __init__(self, folder: Path, *, as_bytes: bool) -> None:
        folder.mkdir()
        program = folder / "upstream.py"
        program.write_text(UPSTREAM)
        entry = {"command": sys.executable, "args": [str(program), *ACTS]}
        self.app, self.gateway = gateway_of({"far": entry, "near": entry})
        self.app.runtime.calls.limit = MOST_IN_FLIGHT
        self.as_bytes = as_bytes
        self.folder = folder / "audit"
        audit = CallAudit(AuditLog(str(self.folder)))
        self.budgets = BudgetFile(str(folder / "budgets"))
        ledger = Ledger(self.budgets, lambda: NOON)
        _, audit.guard = guarded(
            folder, POLICY, self.app, ledger=ledger, on_refusal=audit.refused, is_recorded=True
        )
        self.app.observe(audit)
        self.app.observe(ledger)
        Health(str(program), "", self.app, self.gateway)
        self.records: list[CallRecord] = []
        self.app.observe(self.records.extend)
        self.callers: list[Caller] = []

    async def take_place(self, steps: list[list[Step]]) -> None:
        for version in (LATEST_SESSION_VERSION, STATELESS):
            for principal in ("ada", "eve"):
                self.callers.append(Caller(self.app, version, principal))
                await self.callers[-1].list_tools()
        if not self.as_bytes:
            for tool in self.app.registries.tools:
                tool.forwarder = None
            self.app.runtime.forget_plans()
        for together in steps:
            await self.step(together)
        for caller in self.callers:
            caller.close()
        await self.app.runtime.leave()
        self.app.drain_observers(at_end=True)

    async def step(self, together: list[Step]) -> None:
        for number, *call in together:
            self.callers[number].call(*call)
        for number, id, *_ in together:
            caller = self.callers[number]
            if caller.is_held(id) and b'"hold"' in caller.sent[id]:
                caller.say(message("notifications/cancelled", {"requestId": id, "reason": "enough"}))
            else:
                await caller.answer(id)
        await until(lambda: self.app.runtime.calls.count == 0)
        self.app.drain_observers()  # records settle budgets

    # --- what was to be seen of it --------------------------------------------------------------------

    def answers(self) -> dict[str, Any]:
        """Return what each connection has received, with the same times, and with what may be left out."""
        found: dict[str, Any] = {}
        for number, caller in enumerate(self.callers):
            found[f"said to {number}"] = [what for _, what in caller.said]
            for id, line in caller.answers.items():
                found[f"{number} {id}"] = answer = json.loads(RETRY.sub(rb"\g<1>0", line))
                if isinstance(answer.get("result"), dict):
                    answer["result"].setdefault("isError", False)
        return found

    def audited(self) -> tuple[list[dict[str, Any]], dict[Any, dict[str, Any]]]:
        """Return what the audit log says of refused calls, in their order, and of each other request, whose
        hashes are those of what came and went."""
        assert verify.verify(str(self.folder)).faults == []
        lines = b"".join(path.read_bytes() for path in sorted(self.folder.glob("2*.jsonl"))).splitlines()
        refused, others = [], {}
        for text in lines:
            line = json.loads(RETRY.sub(rb"\g<1>0", text))
            alike = {name: None if OF_ONE_RECORD.fullmatch(name) else value for name, value in line.items()}
            if line.get("outcome") == "refused":
                refused.append(alike)
            elif "id" in line:
                assert line["request"] not in others, "recorded twice"
                others[line["request"]] = alike
                self.check_hashes(line)
        return refused, others

    def check_hashes(self, line: dict[str, Any]) -> None:
        request = str(line["request"])
        ((caller, id),) = (
            (each, id) for each in self.callers for id in each.sent if json.dumps(id)[:100] == request
        )
        assert hashed(line["arguments"], caller.sent[id]) == line["arguments"]
        assert (line["bytes"] > 0) == (id in caller.answers)
        if line["bytes"]:
            assert line["bytes"] >= len(caller.answers[id])
            assert hashed(line["result"], caller.result(id)) == line["result"]

    def recorded(self) -> list[tuple[Any, ...]]:
        """Return what observers have received of each call."""
        return sorted(
            (each.id, each.kind, each.name, each.principal, each.outcome, each.arguments, each.trace)
            for each in self.records
        )

    def counts(self) -> list[Any]:
        """Return what is counted: budgets, the calls and errors of each server."""
        members = [(each.name, each.calls, each.errors) for each in self.gateway.members.values()]
        return [sorted((text, amount) for _, _, _, amount, text in self.budgets.table.entries()), members]


def hashed(fields: dict[str, str], content: bytes) -> dict[str, str]:
    return {**fields, "sha256": sha256(bytes.fromhex(fields["salt"]) + content).hexdigest()}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of the upstream requests that were not forwarded as bytes."""
    seen: list[str] = []
    request = UpstreamServer.request

    async def noted(self: Any, method: str, params: dict[str, Any], context: Any) -> dict[str, Any]:
        seen.append(method)
        return await request(self, method, params, context)

    monkeypatch.setattr(UpstreamServer, "request", noted)
    return seen


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_a_guarded_call_that_is_forwarded_is_answered_recorded_and_counted_as_a_parsed_one(
    tmp_path: Path, seed: int, parsed: list[str]
) -> None:
    steps = steps_of(random.Random(seed))
    found = []
    for as_bytes in (True, False):
        conversation = Conversation(tmp_path / str(as_bytes), as_bytes=as_bytes)
        in_loop(partial(conversation.take_place, steps))
        found.append(conversation)
        ended = ("ok", "tool_error")
        sent = sum(each.outcome in ended for each in conversation.records)
        assert len(parsed) < 0.8 * sent if as_bytes else len(parsed) >= sent, (len(parsed), sent)
        parsed.clear()
    forwarded, other = found
    assert forwarded.answers() == other.answers()
    assert forwarded.recorded() == other.recorded()
    assert forwarded.audited() == other.audited()
    assert forwarded.counts() == other.counts()
    assert {each.outcome for each in forwarded.records} >= {"ok", "tool_error", "refused", "cancelled"}
    forwarded.budgets.close()
    other.budgets.close()
