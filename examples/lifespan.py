"""The life of a server: a database that is opened before the first call and closed at the end.

Serve with `fastrpc serve examples/lifespan.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastrpc import Context, Server


@asynccontextmanager
async def life(server: Server) -> AsyncIterator[sqlite3.Connection]:
    """Give all calls one connection. Whatever is yielded is `ctx.state`."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        connection.execute("create table notes (text text)")
        yield connection
    finally:
        connection.close()


app = Server("lifespan", version="1.0", lifespan=life)


@app.tool(effect="write")
async def note(text: str, ctx: Context) -> int:
    """Keep a note; return how many there are."""
    ctx.state.execute("insert into notes values (?)", (text,))
    found: int = ctx.state.execute("select count(*) from notes").fetchone()[0]
    return found


@app.tool(effect="read")
async def notes(ctx: Context) -> list[str]:
    """Return all notes."""
    return [row[0] for row in ctx.state.execute("select text from notes")]


if __name__ == "__main__":
    app.run()
