"""`Context.caller`: who calls, with a guard, without one, over a mount, and by a context made by hand."""

from __future__ import annotations

import asyncio
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded
from support.list_filters import Caller as Asking

from fastrpc import Caller, Context, Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

USER = pwd.getpwuid(os.geteuid()).pw_name
POLICY = '[expose]\ntools = ["*"]\n[risk]\n"*" = "low"\n'


def facts(caller: Caller) -> list[str]:
    return [caller.principal, caller.owner, caller.caller_class]


def whoami() -> Server:
    app = Server("whoami")

    @app.tool
    def who(ctx: Context) -> list[str]:
        return facts(ctx.caller)

    @app.tool(run="thread")
    def who_on_a_thread(ctx: Context) -> list[str]:
        return facts(ctx.caller)

    @app.resource("who://am/i")
    def resource(ctx: Context) -> str:
        return " ".join(facts(ctx.caller))

    return app


def told(app: Server, principal: str, tool: str) -> Any:
    async def ask() -> Any:
        return await Asking(app, LATEST_SESSION_VERSION, principal).ask("tools/call", name=tool, arguments={})

    return asyncio.run(ask())["result"]["structuredContent"]["result"]


def mounting() -> Server:
    app = Server("outer")
    app.mount(whoami())
    return app


@pytest.mark.parametrize("make", [whoami, mounting])
@pytest.mark.parametrize("tool", ["who", "who_on_a_thread"])
@pytest.mark.parametrize(
    ("principal", "expected"), [("", [f"os:{USER}", USER, ""]), ("ada#1", ["ada#1", "ada#1", ""])]
)
def test_without_a_guard_the_owner_is_the_principal_or_the_user(make, tool, principal, expected) -> None:
    assert told(make(), principal, tool) == expected


@pytest.mark.parametrize("make", [whoami, mounting])
@pytest.mark.parametrize(
    ("principal", "expected"),
    [("", ["os:tester", "os:tester", "local"]), ("ada", ["ada#1", "ada#1", "staff"])],
)
def test_with_a_guard_it_is_whom_the_guard_knows(tmp_path: Path, make, principal, expected) -> None:
    app, _ = guarded(tmp_path, POLICY, make())
    assert told(app, principal, "who") == expected


def test_a_changed_resource_is_reported_too() -> None:
    async def read() -> Any:
        return await Asking(whoami(), LATEST_SESSION_VERSION, "ada#1").ask("resources/read", uri="who://am/i")

    assert asyncio.run(read())["result"]["contents"][0]["text"] == "ada#1 ada#1 "


def test_a_context_made_by_hand_is_the_users() -> None:
    assert facts(Context().caller) == [f"os:{USER}", USER, ""]
