"""Progress and log messages: serve with `fastrpc serve examples/progress.py`.

A tool says how far it is, and what happens on the way; the client sees it while the call runs.
"""

import asyncio
import logging
import time

from fastrpc import Context, Server, log_bridge

app = Server("progress", version="1.0")

# What the program logs through Python's own logging while a call runs goes to the client of that call.
log_bridge.bridge("shop", "INFO")
shop = logging.getLogger("shop")


@app.tool(effect="read")
async def bake(loaves: int, ctx: Context) -> str:
    """Bake bread, one loaf after the other, in the loop."""
    for loaf in range(loaves):
        await ctx.progress(loaf, total=loaves, message=f"loaf {loaf + 1}")
        await asyncio.sleep(0.02)
    await ctx.progress(loaves, total=loaves, message="all baked")
    return f"{loaves} loaves"


@app.tool(effect="read", run="thread")
def grind(sacks: int, ctx: Context) -> str:
    """Grind flour on a thread; stop when the client cancels."""
    for sack in range(sacks):
        if ctx.cancelled:
            return "stopped"
        ctx.log({"sack": sack, "weight": 50}, level="debug", logger="mill")
        time.sleep(0.02)
        ctx.progress(sack + 1, total=sacks)
    ctx.info(f"{sacks} sacks ground", logger="mill")
    return f"{sacks} sacks"


@app.tool(effect="read")
async def sell(loaves: int) -> str:
    """Sell bread; a function that knows nothing of contexts logs as it always did."""
    if loaves > 10:
        shop.warning("%s loaves in one go", loaves)
    shop.info("sold %s", loaves)
    return "sold"


if __name__ == "__main__":
    app.run()
