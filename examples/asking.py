"""Tools that ask before they go on: a form, a choice, the client's model, its folders.

Serve with `fastrpc serve examples/asking.py`. The same code asks clients of every protocol version that can
be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastrpc import Context, Meta, Server, ToolError
from fastrpc.client_requests import Form, Roots

app = Server("asking", version="1.0")
tables: list[str] = []


@dataclass
class Guest:
    name: Annotated[str, Meta(title="Name", min_length=1)]
    people: Annotated[int, Meta(title="How many", ge=1, le=12)] = 2
    place: Literal["inside", "garden"] = "inside"


def hold_a_table() -> int:
    """Hold the next free table; what must not happen again when the answer comes."""
    tables.append("held")
    return len(tables)


@app.tool(effect="write")
async def book(ctx: Context) -> str:
    """Book a table for the person at the client."""
    table = ctx.once("table", hold_a_table)
    answer = await ctx.elicit(f"Table {table} is free. For whom?", Guest)
    if not answer.accepted:
        tables[table - 1] = "free"
        return "Nothing is booked."
    guest = answer.value
    tables[table - 1] = guest.name
    return f"Table {table}, {guest.place}, for {guest.name} and {guest.people - 1} more."


@app.tool(effect="read")
async def shorten(text: str, ctx: Context) -> str:
    """Shorten a text to one sentence, with the client's model where there is one."""
    try:
        sample = await ctx.sample(f"Say this in one sentence:\n{text}", max_tokens=100)
    except ToolError:
        return text.split(".")[0] + "."
    return sample.text


@app.tool(effect="read")
async def plan(ctx: Context) -> str:
    """Ask for a goal and for the folders to work in, both at once."""
    answers = await ctx.ask(goal=Form("What is to be done?", str), folders=Roots())
    goal, folders = answers["goal"], answers["folders"]
    if goal is None or not goal.accepted:
        return "No plan without a goal."
    places = ", ".join(folder["uri"] for folder in folders or [])
    return f"{goal.data} in {places or 'a place of your choice'}"


if __name__ == "__main__":
    app.run()
