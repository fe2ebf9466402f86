"""What a handler is handed, and what it asks."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

from typing_extensions import assert_type

from fastrpc import Contents, Context, Image, Message, Meta
from fastrpc.client_requests import ElicitResult, Form, Roots, Sample, Sampling, Visit


@dataclass
class Address:
    street: str


class Size(TypedDict):
    height: int


class Color(Enum):
    RED = "red"


def place_order() -> dict[str, int]:
    return {"order": 1}


async def place_order_later() -> int:
    return 1


async def forms(ctx: Context) -> str:
    assert_type(await ctx.elicit("Sure?"), ElicitResult[None])
    assert_type(await ctx.elicit("Where to?", Address), ElicitResult[Address])
    assert_type(await ctx.elicit("How many?", int, key="many"), ElicitResult[int])
    assert_type(await ctx.elicit("How large?", Size), ElicitResult[Size])
    assert_type(await ctx.elicit("Which?", Color), ElicitResult[Color])
    assert_type(await ctx.elicit("Which?", set[Color]), ElicitResult[set[Color]])
    assert_type(await ctx.elicit("Which?", Literal["a", "b"]), ElicitResult[Literal["a", "b"]])
    assert_type(await ctx.elicit("Age?", Annotated[int, Meta(ge=0)]), ElicitResult[int])
    assert_type(await ctx.elicit("Which?", ["a", "b"]), ElicitResult[str])
    assert_type(await ctx.elicit("Which?", {"type": "string"}), ElicitResult[Any])
    assert_type(await ctx.elicit_url("Sign in", "https://example.com"), ElicitResult[None])
    answer = await ctx.elicit("Where to?", Address)
    assert_type(answer.action, Literal["accept", "decline", "cancel"])
    assert_type(answer.accepted, bool)
    assert_type(answer.data, "Address | None")
    assert_type(answer.value, Address)
    answer.data.street  # error
    answer.value.city  # error
    answer.street  # error
    answer.action.accepted  # error
    await ctx.elicit("How many?", 5)  # error
    await ctx.elicit("Where to?", Address("a"))  # error
    await ctx.elicit(Address)  # error
    await ctx.elicit("Where to?", schema=Address)  # error
    await ctx.elicit("Where to?", [1, 2])  # error
    (await ctx.elicit("How many?", int)).value.upper()  # error
    many: int = await ctx.elicit("How many?", int)  # error
    ctx.elicit("How many?", int).value  # error
    await ctx.elicit(int, "How many?")  # error
    await ctx.elicit_url("Sign in")  # error
    if answer.data is None:
        return f"nowhere, {many}"
    return answer.data.street


def made_by_hand() -> ElicitResult[Address]:
    ElicitResult("accepted", 5)  # error
    return ElicitResult("accept", Address("a"))


async def model(ctx: Context) -> str:
    sample = await ctx.sample("Say it", max_tokens=10, system_prompt="Be short", temperature=0.5)
    assert_type(sample, Sample)
    assert_type(sample.text, str)
    assert_type(sample.stop_reason, "str | None")
    await ctx.sample(["a", Message("user", "b"), sample, {"role": "user", "content": "c"}, Image(b"")])
    await ctx.sample("Say it", sytem_prompt="Be short")  # error
    await ctx.sample("Say it", include_context="everything")  # error
    await ctx.sample(5)  # error
    await ctx.sample([5])  # error
    await ctx.sample("Say it", 10)  # error
    return sample.text


async def others(ctx: Context) -> None:
    roots = await ctx.roots()
    assert_type(roots[0]["uri"], str)
    assert_type(roots[0].get("name"), "str | None")
    roots[0]["path"]  # error
    await ctx.ask(a=Form("How many?", int), b=Roots(), c=Sampling("Say it"), d=Visit("Go", "https://a.b"))
    await ctx.ask(a="How many?")  # error
    await ctx.ask(a=int)  # error
    assert_type(Form("How many?", int), Form[int])
    assert_type(Form("Sure?"), Form[None])
    assert_type(Form("Which?", ["a"]), Form[str])
    Form("How many?", 5)  # error
    assert_type(ctx.once("order", place_order), "dict[str, int]")
    assert_type(await ctx.once("order", place_order_later), int)
    ctx.once(place_order)  # error
    ctx.once("order", place_order())  # error
    assert_type(ctx.read_resource("docs://guide"), Awaitable[list[Contents]])
    ctx.read_resource(5)  # error


async def telling(ctx: Context) -> None:
    ctx.progress(1, 2, "half")
    await ctx.progress(1.5)
    assert_type(await ctx.progress(1.5), None)
    ctx.progress("half")  # error
    ctx.log({"any": "value"}, "notice", logger="mine")
    ctx.log("text", "warn")  # error
    ctx.info("text")
    ctx.inform("text")  # error
    ctx.close_stream()
    assert_type(ctx.request_id, "str | int")
    assert_type(ctx.cancelled, bool)
    assert_type(ctx.principal, str)
    assert_type(ctx.wants_progress, bool)
    assert_type(ctx.protocol_version, str)
    ctx.cancelled()  # error
