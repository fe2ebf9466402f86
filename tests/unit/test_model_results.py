"""Results that are models of pydantic's: compiled code answers what the dispatcher would, every byte."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.in_memory import RawConversation, in_loop

from fastrpc import Server, ToolResult
from fastrpc.protocol.versions import VERSIONS

pydantic = pytest.importorskip("pydantic")


class Price(pydantic.BaseModel):
    amount: float
    unit: str = pydantic.Field("EUR", serialization_alias="currency")
    tags: set[str] = pydantic.Field(default_factory=set)

    @pydantic.field_serializer("amount")
    def two_places(self, amount: float) -> str:
        return f"{amount:.2f}"


class Offer(Price):
    until: str = "today"


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(revalidate_instances="always")
    amount: float


class Endless(pydantic.BaseModel):
    amount: float


VALUES: dict[str, Any] = {
    "instance": lambda: Price(amount=1.5, tags={"é"}),
    "instance of a subclass": lambda: Offer(amount=2),
    "a dict": lambda: {"amount": 3},
    "a dict that does not fit": lambda: {"amount": "many"},
    "a result": lambda: ToolResult("text", structured={"amount": 4.0}),
    "another class": lambda: Strict(amount=1),
    "nothing": lambda: None,
}


def app_of() -> Server:
    app = Server("t")

    @app.tool
    async def price(how: str) -> Price:
        return VALUES[how]()  # type: ignore[no-any-return]

    @app.tool
    async def strict() -> Strict:
        return Strict.model_construct(amount="wrong")

    @app.tool
    async def endless() -> Endless:
        return Endless(amount=float("inf"))

    return app


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_is_written_as_the_dispatcher_writes_it(
    version: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def answers(stepped: bool) -> tuple[dict[Any, bytes], int]:
        peer = RawConversation(app_of(), version, stepped=stepped)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        calls = [("price", {"how": how}) for how in VALUES] + [("strict", {}), ("endless", {})]
        for id, (name, arguments) in enumerate(calls):
            peer.call(id, name, arguments)
            await peer.answer(id)
        peer.close()
        return peer.answers, peer.handed_on

    found, handed_on = in_loop(lambda: answers(True))
    expected, all_of_them = in_loop(lambda: answers(False))
    assert found == expected
    assert (handed_on, all_of_them) == (0, len(VALUES) + 2)
    assert b"1.50" in found[0]
    assert b"currency" in found[0]
    assert b'"isError":true' in found[3]
    assert b'"isError":true' in found[len(VALUES)]  # validated again, as its configuration says
    capfd.readouterr()
