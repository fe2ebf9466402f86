"""Tools that hold a call until another call lets it go: source text for the servers of tests, behind ``app``.

A server's own `hold` awaits ``held(name)``; the source needs `asyncio` and `app`.
"""

from __future__ import annotations

GATES = """
gates = {}

class Gate:
    def __init__(self):
        self.begun, self.open, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.outcome = ""

def gate(name):
    return gates.setdefault(name, Gate())

async def held(name):
    it = gate(name)
    it.begun.set()
    try:
        await it.open.wait()
        it.outcome = "returned"
        return name
    except asyncio.CancelledError:
        it.outcome = "cancelled"
        raise
    finally:
        it.ended.set()

@app.tool(run="inline")
def let_go(name: str) -> str:
    gate(name).open.set()
    return "gone"

@app.tool
async def begun(name: str) -> str:
    await gate(name).begun.wait()
    return "begun"
"""
