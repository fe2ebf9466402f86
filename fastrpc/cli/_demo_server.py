"""The smallest server for measurements: one tool that returns its argument. Run by `fastrpc demo`."""

from __future__ import annotations

from fastrpc import Server

app = Server("demo", version="1.0")


@app.tool(effect="read", run="inline")
def echo(text: str) -> str:
    """Return the text."""
    return text
