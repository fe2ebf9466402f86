"""A guarded server: one with tools of each effect, behind a policy that is written into a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastrpc import Server, ToolError
from fastrpc.callers import Caller
from fastrpc.guard.guard import Costs, Guard, Schemas
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import Policy


def shop(*, has_secrets: bool = True) -> Server:
    app = Server("shop")

    @app.tool(effect="read", run="inline")
    def search(text: str) -> str:
        return f"found {text}"

    @app.tool(effect="write", run="inline")
    def order(item: str, count: int = 1) -> str:
        return f"ordered {count} {item}"

    @app.tool(effect="exec", run="inline")
    def wipe(place: str) -> str:
        if place == "nowhere":
            raise ToolError("there is nothing")
        return f"wiped {place}"

    @app.tool(run="inline")
    def mystery() -> str:
        return "done"

    @app.resource("shop://documents/guide")
    def guide() -> str:
        return "the guide"

    if has_secrets:

        @app.resource("shop://secrets/{name}")
        def secret(name: str) -> str:
            return f"the secret {name}"

    @app.prompt
    def greet(name: str) -> str:
        return f"Greet {name}"

    return app


CALLERS = {"": Caller("os:tester", "local"), "ada": Caller("ada#1", "staff"), "eve": Caller("eve#2", "guest")}


def caller_of(principal: str) -> Caller:
    return CALLERS.get(principal) or Caller(principal, "default")


def policy_of(folder: Path, text: str, app: Server, name: str = "guard.toml") -> Policy:
    path = folder / name
    path.write_text(text)
    config, costs = policy_file.read(str(path)), Costs(app)
    config.check_units(costs.values())
    return Policy(config, Schemas(app), costs)


def guarded(
    folder: Path, text: str, app: Server | None = None, name: str = "guard.toml", **options: Any
) -> tuple[Server, Guard]:
    """Return the shop, or `app`, behind the policy of a text."""
    app = app or shop()
    guard = Guard(policy_of(folder, text, app, name), caller_of, **options)
    guard.install(app)
    return app, guard
