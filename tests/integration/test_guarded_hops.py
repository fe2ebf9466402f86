"""A guard in front of a proxy, a gateway or a mount: what goes on of an approved call, and what is heard."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.echo_upstream import GOT, URI
from support.guarded import guarded
from support.hops import (
    HOPS,
    MORE,
    NAMES,
    SECONDS,
    TRACE,
    UPSTREAMS,
    address,
    assert_carried,
    eventually_in,
    over_stdio,
)

from fastrpc import RemoteError
from fastrpc.guard.approvals.asking import Approvals
from fastrpc.guard.approvals.store import ApprovalDecision, ApprovalStore
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.storage.database import Database
from fastrpc.testing import Client

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

ASKED = """[expose]
tools = ["*"]
resources = ["*"]
prompts = ["*"]
[approvals]
hold_seconds = 0.05
[[rules]]
id = "ask"
when = "true"
then = "ask"
"""


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("upstream", ["stdio", "stateless"])
@pytest.mark.parametrize("hop", ["proxy", "gateway", "mounted", "between"])
def test_what_goes_on_of_an_approved_call_is_what_was_shown(
    tmp_path: Path, hop: str, upstream: str, version: str, method: str
) -> None:
    database = Database(f"sqlite:///{tmp_path}/guard.sqlite3")
    store = ApprovalStore(database)

    async def run() -> None:
        async with UPSTREAMS[upstream]() as where:
            app = HOPS[hop](where)
            guarded(tmp_path, ASKED, app, approve=Approvals("host", lambda: database))
            async with Client(app, version=version) as client:
                await client.list_tools()
                prefix = "".join(f"{each}_" for each in NAMES.get(hop, ()))
                params: dict[str, Any] = {"name": prefix + ("act" if method == "tools/call" else "say")}
                if method == "resources/read":
                    params = {"uri": address(hop, URI)}
                waits = {**params, **MORE, "_meta": dict(TRACE)}
                with suppress(RemoteError):  # of a resource and a prompt; of a tool it is a result
                    await client.request(method, waits)
                (waiting,) = store.list()
                store.decide(waiting.id, ApprovalDecision(True, "os:grace", "command line"))
                trace = {key: TRACE[key] for key in ("traceparent", "tracestate")}
                other = {**trace, "example.com/tenant": {"id": 8}, "example.com/new": 1}
                result = await client.request(method, {**params, "x-request": 2, "x-y": 3, "_meta": other})
                assert_carried(result["_meta"][GOT])
                assert "x-y" not in result["_meta"][GOT]

    try:
        asyncio.run(asyncio.wait_for(run(), SECONDS))
    finally:
        database.close()


LISTED = """[expose]
tools = ["*"]
resources = [{listed}]
[risk]
"*" = "none"
[defaults]
hide = {hide}
"""


@pytest.mark.parametrize("hide", ["true", "false"])
@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("is_allowed", [True, False])
@pytest.mark.parametrize("hop", ["proxy", "gateway", "mounted", "between"])
def test_no_one_is_notified_of_a_resource_outside_of_the_allowlist(
    tmp_path: Path, hop: str, version: str, is_allowed: bool, hide: str
) -> None:
    uri, codes, heard = address(hop, URI), [], []

    async def run() -> None:
        async with over_stdio() as where:
            app = HOPS[hop](where)
            text = LISTED.format(listed=json.dumps(uri if is_allowed else "x://y"), hide=hide)
            guarded(tmp_path, text, app)
            async with Client(app, version=version) as client:
                await client.list_tools()
                method, params = "resources/subscribe", {"uri": uri}
                if version == STATELESS:
                    method, params = (
                        "subscriptions/listen",
                        {"notifications": {"resourceSubscriptions": [uri]}},
                    )
                listening = asyncio.ensure_future(client.request(method, params))
                acknowledged = "notifications/subscriptions/acknowledged"
                taken = asyncio.ensure_future(eventually_in(client.notifications, acknowledged))
                await asyncio.wait({listening, taken}, return_when=asyncio.FIRST_COMPLETED)
                taken.cancel()
                prefix = "".join(f"{each}_" for each in NAMES.get(hop, ()))
                call = {"name": f"{prefix}act", "arguments": {"touch": True}}
                await client.request("tools/call", call)
                await client.request("tools/call", call)
                heard.extend(
                    each["params"]["uri"] for each in client.notifications if "updated" in each["method"]
                )
                if listening.done() and listening.exception() is not None:
                    codes.append(listening.exception().code)
                listening.cancel()

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    if is_allowed:
        assert (codes, set(heard)) == ([], {uri})
    else:
        refused = {"true": [], "false": [403 if version == STATELESS else -32000]}
        assert heard == []
        assert codes == refused[hide] or (hide == "true" and version != STATELESS)
