"""The source of a server that has one of every feature, for tests that talk to it over a pipe."""

from __future__ import annotations

FEATURES = '''
from dataclasses import dataclass
from typing import Any, Literal

from fastrpc import Context, Server
from fastrpc.content import Audio, EmbeddedResource, Image, ResourceLink, Text

app = Server(
    "features",
    version="2.0",
    title="All features",
    description="One of each",
    website_url="https://example.com",
    icons=[{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
    instructions="Try everything.",
)


@dataclass
class Point:
    x: int
    y: int = 0


@app.tool(effect="read", title="Make a point")
def point(x: int) -> Point:
    """Return a point."""
    return Point(x)


@app.tool
def mixed() -> Any:
    return [
        Text("text"),
        Image(b"png", "image/png"),
        Audio(b"wav", "audio/wav"),
        EmbeddedResource("docs://guide", text="inside"),
        ResourceLink("docs://guide", name="guide"),
    ]


@app.tool
async def steps(count: int, ctx: Context) -> str:
    for step in range(count):
        await ctx.progress(step + 1, total=count, message=f"step {step + 1}")
    return "done"


@app.tool
def noisy(ctx: Context) -> None:
    ctx.debug("quiet")
    ctx.info({"any": ["value"]}, logger="tests")
    ctx.error("loud")


@app.tool
async def who(ctx: Context) -> str:
    answer = await ctx.elicit("Where?", Point)
    return f"{answer.data.x},{answer.data.y}" if answer.accepted else answer.action


@app.tool
async def visit(ctx: Context) -> str:
    return (await ctx.elicit_url("Sign in", "https://example.com/sign-in")).action


@app.tool
async def think(ctx: Context) -> str:
    sample = await ctx.sample("What now?", max_tokens=9, system_prompt="Be brief")
    return f"{sample.model}: {sample.text}"


@app.tool
async def where(ctx: Context) -> str:
    return ", ".join(root["uri"] for root in await ctx.roots())


@app.tool
async def everything(ctx: Context) -> str:
    answer = await ctx.elicit("Where?", Point)
    sample = await ctx.sample(f"Name {answer.data.x}")
    roots = await ctx.roots()
    return f"{answer.data.x} is {sample.text} in {len(roots)}"


@app.tool
def change(ctx: Context) -> None:
    app.add_tool(lambda: "new", name="added")
    app.add_resource("docs://added", "new")
    app.prompt(lambda: "new", name="added")
    app.resource_updated("docs://guide")


@app.resource("docs://guide", mime_type="text/markdown", title="The guide", size=5)
def guide() -> str:
    """How to begin."""
    return "Begin"


@app.resource("docs://logo", mime_type="image/png")
def logo() -> bytes:
    return b"png"


@app.resource("notes://{name}/{part*}", mime_type="application/json")
def note(name: str, part: str) -> dict[str, str]:
    return {"name": name, "part": part}


@app.prompt(title="Review code")
def review(code: str, language: Literal["python", "rust"] = "python") -> str:
    """Have code reviewed."""
    return f"Review this {language}: {code}"


@app.complete("review", "code")
def complete_code(value: str, others: dict[str, str]) -> list[str]:
    return [f"{value} in {others.get('language', 'any')}"]


@app.complete("notes://{name}/{part*}", "name")
def complete_name(value: str) -> list[str]:
    return [name for name in ("ann", "anton", "ben") if name.startswith(value)]
'''
