"""The source of a server whose tools and resource show which process serves a session, and what it shares."""

from __future__ import annotations

TOOLS = """
import asyncio, os
from fastrpc import Context, Server

app = Server("shared")

@app.tool
async def client(context: Context) -> str:
    return f"{context.client_info['name']} {sorted(context.client_capabilities)}"

@app.tool(run="inline")
def who() -> str:
    return str(os.getpid())

@app.tool
async def note(context: Context) -> str:
    context.debug("a detail")
    return str(os.getpid())

@app.tool
async def greet(context: Context) -> str:
    return "hello " + (await context.elicit("Name?", str)).data

@app.tool
async def hold(path: str, context: Context) -> str:
    context.info(str(os.getpid()))
    try:
        await asyncio.sleep(60)
    finally:
        open(path, "w").close()
    return "held"

@app.tool(run="inline")
def tell() -> str:
    app.log(str(os.getpid()))
    return str(os.getpid())

@app.resource("docs://guide")
def guide() -> str:
    return "guide"
"""
