"""What a list hides from a caller no error names to it; a call of it is the guard's business."""

from __future__ import annotations

from typing import Any

import pytest
from support.in_memory import every_version, in_loop
from support.list_filters import Caller, shop, shows, team_of

from fastrpc import CallInfo, Context, ToolError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS


@every_version
def test_no_error_names_what_a_caller_does_not_see(version: str) -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)
    unknown: list[tuple[str, dict[str, Any]]] = [
        ("tools/call", {"name": "secret_00"}),
        ("prompts/get", {"name": "secret_promt"}),
        ("resources/read", {"uri": "docs://secret/00"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "secret_promt"},
                "argument": {"name": "word", "value": ""},
            },
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "secret://{y}"}, "argument": {"name": "x", "value": ""}},
        ),
    ]

    async def run() -> None:
        caller = Caller(app, version)
        for _ in range(3):  # a connection may keep such answers
            for principal, is_named in (("ada", True), ("bob", False)):
                caller.principal = principal
                for method, params in unknown:
                    message = (await caller.error(method, **params))["message"]
                    hint = message.partition("did you mean")[2]
                    assert ("secret" in hint) is is_named, message

    in_loop(run)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_a_handler_cannot_read_a_resource_that_its_caller_does_not_see(version: str) -> None:
    app = shop()

    @app.tool
    async def reading(ctx: Context) -> str:
        await ctx.read_resource("docs://secret/00")
        return "read"

    app.filter_lists(shows, classify=team_of)

    async def run() -> None:
        for principal, is_named in (("ada", True), ("bob", False)):
            answer = await Caller(app, version, principal).ask("tools/call", name="reading")
            text = answer["result"]["content"][0]["text"]
            assert "Resource not found" in text
            assert ("docs://secret/0" in text.partition("did you mean")[2]) is is_named

    in_loop(run)


@every_version
def test_arguments_of_a_hidden_prompt_are_not_completed(version: str) -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)
    params = {
        "ref": {"type": "ref/prompt", "name": "secret_prompt"},
        "argument": {"name": "word", "value": ""},
    }

    async def run() -> None:
        caller = Caller(app, version, "ada")
        answer = await caller.ask("completion/complete", **params)
        assert answer["result"]["completion"]["values"] == ["hush"]
        caller.principal = "bob"
        error = await caller.error("completion/complete", **params)
        unknown = await caller.error(
            "completion/complete", **{**params, "ref": {**params["ref"], "name": "none"}}
        )
        assert error["message"].partition(" (")[0] == "ref: unknown prompt: secret_prompt"
        assert error["code"] == unknown["code"]

    in_loop(run)


@every_version
def test_what_is_hidden_can_be_called_unless_a_guard_refuses(version: str) -> None:
    app = shop()
    app.filter_lists(shows, classify=team_of)

    async def run(is_refused: bool) -> None:
        caller = Caller(app, version, "bob")
        answers = [
            await caller.ask("tools/call", name="secret_0"),
            await caller.ask("resources/read", uri="docs://secret/0"),
            await caller.ask("resources/read", uri="secret://x"),
            await caller.ask("prompts/get", name="secret_prompt", arguments={"word": "x"}),
        ]
        for answer in answers:
            assert ("error" in answer or answer["result"].get("isError", False)) is is_refused

    in_loop(lambda: run(False))

    @app.guard
    def refuse_guests(call: CallInfo) -> None:
        if team_of(call.principal) == "guest" and "secret" in call.name:
            raise ToolError("not for you")

    in_loop(lambda: run(True))
