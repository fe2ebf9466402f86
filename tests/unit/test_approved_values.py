"""The values that an approver was shown are those that run: of models, of defaults that calls share, of
arguments that the approver has changed."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pydantic
import pytest
from support.guarded import guarded

from fastrpc import Server
from fastrpc.errors import RemoteError
from fastrpc.guard.approvals.asking import Approvals
from fastrpc.guard.approvals.store import Approval, ApprovalDecision, ApprovalStore
from fastrpc.storage.database import Database
from fastrpc.testing import Client

pytest_plugins = ["support.guard_database"]

POLICY = '[expose]\ntools = ["*"]\n[approvals]\neditable = ["*"]\nhold_seconds = 100\n'
RULE = '[[rules]]\nid = "small"\ntools = ["sell"]\nwhen = "args.count > 10"\nthen = "deny"\n'


class Payment(pydantic.BaseModel):
    amount: int = pydantic.Field(1, exclude=True)
    to: str = "ada"


CHECKED = itertools.count()


class Counted(pydantic.BaseModel):
    number: int = 0

    @pydantic.model_validator(mode="after")
    def count(self) -> Counted:
        self.number = next(CHECKED)
        return self


def bank(runs: list[Any]) -> Server:
    app = Server("bank")

    @app.tool
    def pay(payment: Payment) -> str:
        runs.append(payment)
        return f"paid {payment.amount}"

    @app.tool
    def sell(count: int, counted: Counted) -> str:
        runs.append((count, counted))
        return f"sold {count}"

    shared: list[str] = []

    @app.tool
    def wipe(place: str, others: list[str] = shared) -> str:
        runs.append((place, list(others)))
        return "wiped"

    @app.tool
    def write(text: str) -> str:
        return "written"

    runs.append(shared)
    return app


def served(folder: Path, runs: list[Any], database: Database | None, text: str = "") -> Server:
    open_database = None if database is None else lambda: database
    return guarded(folder, POLICY + text, bank(runs), approve=Approvals("bank", open_database))[0]


async def outcome(client: Client, tool: str, **arguments: Any) -> str:
    try:
        return (await client.call(tool, **arguments)).text
    except RemoteError as error:
        return f"{error.data['reason']}: {error}"


async def waiting(database: Database) -> Approval:
    store = ApprovalStore(database)
    while not (found := store.list()):
        await asyncio.sleep(0.01)
    return found[0]


def decide(database: Database, approval: Approval, edited: str | None = None, uses: int = 1) -> None:
    decision = ApprovalDecision(True, "os:grace", "command line", edited_arguments=edited, uses=uses)
    ApprovalStore(database).decide(approval.id, decision)


def run(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 60))


def test_a_member_that_json_leaves_out_is_shown_and_bound(tmp_path: Path, database: Database) -> None:
    runs: list[Any] = []

    async def conversation() -> tuple[str, list[str]]:
        async with Client(served(tmp_path, runs, database)) as client:
            asked = asyncio.ensure_future(outcome(client, "pay", payment={"amount": 1}))
            first = await waiting(database)
            decide(database, first, uses=5)
            done = [await asked, await outcome(client, "pay", payment={"amount": 1})]
            more = asyncio.ensure_future(outcome(client, "pay", payment={"amount": 1_000_000}))
            other = await waiting(database)
            ApprovalStore(database).decide(other.id, ApprovalDecision(False, "os:grace", "command line"))
            return first.arguments + other.arguments, [*done, (await more).partition(":")[0]]

    shown, done = run(conversation())
    assert done == ["paid 1", "paid 1", "approval_rejected"]
    assert '"amount": 1,' in shown
    assert '"amount": 1000000,' in shown


def test_a_default_that_has_changed_meanwhile_is_not_run(tmp_path: Path, database: Database) -> None:
    runs: list[Any] = []
    app = served(tmp_path, runs, database)
    (shared,) = runs

    async def conversation() -> str:
        async with Client(app) as client:
            asked = asyncio.ensure_future(outcome(client, "wipe", place="x"))
            approval = await waiting(database)
            shared.append("/home")
            decide(database, approval)
            return await asked

    assert "its arguments have changed meanwhile" in run(conversation())
    assert len(runs) == 1


def test_what_an_approver_changes_is_bound_before_rules_see_it_and_the_rest_is_what_was_shown(
    tmp_path: Path, database: Database
) -> None:
    runs: list[Any] = []

    async def conversation(edited: str) -> tuple[str, Approval]:
        async with Client(served(tmp_path, runs, database, RULE)) as client:
            asked = asyncio.ensure_future(outcome(client, "sell", count=2, counted={}))
            approval = await waiting(database)
            decide(database, approval, edited)
            return await asked, approval

    done, approval = run(conversation('{"count": "3"}'))
    assert done == "sold 3"
    count, counted = runs[-1]
    assert count == 3
    assert f'"number": {counted.number}' in approval.arguments
    assert run(conversation('{"count": "11"}'))[0].startswith("not_allowed")


def test_a_mask_is_no_argument(tmp_path: Path, database: Database) -> None:
    from fastrpc.guard.approvals.store import NotAllowedToApprove

    async def conversation() -> None:
        async with Client(served(tmp_path, [], database)) as client:
            asked = asyncio.ensure_future(outcome(client, "write", text="x"))
            approval = await waiting(database)
            with pytest.raises(NotAllowedToApprove, match="hides a secret"):
                decide(database, approval, '{"text": "****"}')
            asked.cancel()

    run(conversation())


@pytest.mark.parametrize("has_database", [True, False])
def test_a_form_that_would_be_cut_is_not_sent(tmp_path: Path, database: Database, has_database: bool) -> None:
    """Whoever sees the beginning alone approves blind: with a database others can see all of it."""
    forms: list[Any] = []

    def answer(form: Any) -> dict[str, Any]:
        forms.append(form)
        return {"action": "accept", "content": {}}

    async def conversation() -> tuple[str, str]:
        app = served(tmp_path, [], database if has_database else None)
        async with Client(app, on_elicit=answer) as client:
            short = await outcome(client, "write", text="x" * 1000)
            long = asyncio.ensure_future(outcome(client, "write", text="x" * 5000))
            if has_database:
                approval = await waiting(database)
                assert approval.arguments == f'{{"text": "{"x" * 5000}"}}'
                decide(database, approval)
            return short, await long

    short, long = run(conversation())
    assert short == "written"
    assert len(forms) == 1
    assert long == "written" if has_database else "too long for a form" in long
