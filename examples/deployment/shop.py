"""A server for `compose.yaml` and `kubernetes.yaml`: a call that is short, and a task that a worker runs."""

from __future__ import annotations

import asyncio
import socket

from fastrpc import Context, Server

app = Server("shop")


@app.tool(effect="read")
def price(name: str) -> float:
    """Say what something costs."""
    return {"tea": 2.5, "coffee": 3.2}.get(name, 1.0)


@app.tool(effect="read")
def host() -> str:
    """Name the container that answers."""
    return socket.gethostname()


@app.tool(effect="read", task="required")
async def report(ctx: Context, days: int = 3) -> str:
    """Add up the sales of some days, one a second."""
    for day in range(days):
        ctx.progress(day, days)
        await asyncio.sleep(1)
    return f"{days} days on {socket.gethostname()}"


if __name__ == "__main__":
    app.run()
