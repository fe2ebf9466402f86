"""A server as it is written for FastMCP: only the first import line is another one."""

from fastrpc.compat import Context, FastMCP

mcp = FastMCP("shelf", instructions="Lends books.")
lent: dict[str, str] = {}


@mcp.tool()
async def lend(title: str, reader: str, ctx: Context) -> str:
    """Lend a book."""
    await ctx.info(f"{reader} wants {title}")
    if title in lent:
        raise ValueError(f"{lent[title]} has it")
    lent[title] = reader
    await ctx.report_progress(1, 1)
    return f"{title} goes to {reader}"


@mcp.resource("shelf://{title}")
def where(title: str) -> str:
    """Who has a book."""
    return lent.get(title, "the shelf")


@mcp.prompt()
def recommend(mood: str) -> str:
    """Ask for a book."""
    return f"Recommend a book for somebody who feels {mood}."


if __name__ == "__main__":
    mcp.run()
