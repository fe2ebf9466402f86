"""Sophon's configuration: 60 requests a minute, whatever they are, each with a record, and -32000 for what is
not in the lists."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded
from support.waiting import eventually

from fastrpc.errors import RemoteError
from fastrpc.guard.audit import AuditLog, verify
from fastrpc.guard.audit.calls import CallAudit
from fastrpc.guard.requests import EveryRequest
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

SOPHON = json.dumps(
    {
        "enabled": True,
        "transports": {"stdio": {"enabled": True}},
        "auth": {"tokens": []},
        "expose": {"tools": ["search"], "resources": ["documents/*"], "prompts": []},
    }
)
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}),
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("resources/subscribe", {"uri": "shop://documents/guide"}),
    ("tools/lost", {}),
    ("tools/call", {"name": "search", "arguments": {"text": "x"}}),
    ("tools/call", {"name": "seach", "arguments": {}}),
    ("resources/read", {"uri": "shop://documents/guide"}),
    ("resources/read", {"uri": "shop://documents/nothing"}),
    ("tools/call", {"name": "wipe", "arguments": {"place": "x"}}),
    ("resources/read", {"uri": "shop://secrets/x"}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "x"}}),
]


class Sophon:
    def __init__(self, folder: Path, text: str = SOPHON, name: str = "mcp-server.json") -> None:
        self.folder = folder / "audit"
        self.log = AuditLog(str(self.folder))
        audit = CallAudit(self.log)
        self.app, guard = guarded(folder, text, name=name, on_refusal=audit.refused, is_recorded=True)
        audit.guard = guard
        self.app.observe(audit)
        assert guard.policy.config.counts_requests
        self.app.runtime.counter = EveryRequest(guard, audit)

    def records(self, method: str) -> list[dict[str, Any]]:
        """The records of requests by a method, all but those that `tools/list` has had at the end."""
        text = b"".join(path.read_bytes() for path in sorted(self.folder.glob("2*.jsonl")))
        whole = text[: text.rfind(b"\n") + 1]  # the log's thread may be writing the last line
        found = [
            each for each in map(json.loads, whole.splitlines()) if "id" in each and each["action"] == method
        ]
        return found[:-1] if method == "tools/list" else found


async def codes(client: Client, method: str, params: dict[str, Any], times: int) -> list[int]:
    found = []
    for _ in range(times):
        try:
            await client.request(method, params)
            found.append(0)
        except RemoteError as error:
            found.append(error.code)
    return found


CASES = [
    (version, method, params)
    for version in (LATEST_SESSION_VERSION, STATELESS)
    for method, params in OTHERS
    if version != STATELESS
    or method not in ("ping", "resources/subscribe")  # which that version does not have
]


@pytest.mark.parametrize(("version", "method", "params"), CASES, ids=lambda value: json.dumps(value))
def test_every_request_counts_and_is_audited(
    tmp_path: Path, version: str, method: str, params: dict[str, Any]
) -> None:
    sophon = Sophon(tmp_path)

    async def conversation() -> tuple[list[int], int]:
        async with Client(sophon.app, version=version) as client:
            found = await codes(client, method, params, 61)
            return found, (await codes(client, "tools/list", {}, 1))[0]

    found, after = asyncio.run(asyncio.wait_for(conversation(), 60))
    too_often = 429 if version == STATELESS else -32004
    assert after == too_often
    allowed = found.index(too_often)
    assert allowed in (59, 60)  # the handshake of a session is a request, too
    assert set(found[allowed:]) == {too_often}
    eventually(lambda: len(sophon.records(method)) == 61, 20)  # those of calls are made behind them
    sophon.log.close()
    assert verify.verify(str(sophon.folder)).faults == []
    records = sophon.records(method)
    assert len(records) == 61
    outcomes = [each["outcome"] for each in records]
    assert outcomes.count("refused") in (61 - allowed, 61)
    assert all(each["category"] == "mcp_server" and "sha256" in each["arguments"] for each in records)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_what_the_lists_do_not_have_is_refused_with_the_code_of_sophon(tmp_path: Path, version: str) -> None:
    sophon = Sophon(tmp_path)

    async def conversation() -> list[list[int]]:
        async with Client(sophon.app, version=version) as client:
            return [
                await codes(client, "tools/call", {"name": "wipe", "arguments": {"place": "x"}}, 1),
                await codes(client, "resources/read", {"uri": "shop://secrets/x"}, 1),
                await codes(client, "prompts/get", {"name": "greet", "arguments": {"name": "x"}}, 1),
            ]

    code = 403 if version == STATELESS else -32000
    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == [[code]] * 3


def test_a_policy_may_count_all_requests(tmp_path: Path) -> None:
    text = '[expose]\ntools = ["*"]\n[defaults]\nrate = "5/hour"\nrequests = "all"\n'
    sophon = Sophon(tmp_path, text, "guard.toml")

    async def conversation() -> list[int]:
        async with Client(sophon.app, version=STATELESS) as client:  # which asks who the server is
            return await codes(client, "tools/list", {}, 7)

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == [0] * 4 + [429] * 3
