"""Resources: what a client may read, at fixed addresses, by template, and listed page by page.

Serve with `fastrpc serve examples/resources.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from fastrpc import Context, Server
from fastrpc.definitions.resource import Entry

app = Server("resources", version="1.0")

HERE = Path(__file__).resolve().parent
WORDS = {"de": "Guten Tag", "en": "Good day", "fr": "Bonjour"}
ROWS = [{"id": number, "square": number * number} for number in range(500)]
PAGE = 100


@app.resource("notes://welcome", mime_type="text/markdown", annotations={"audience": "user", "priority": 1})
def welcome() -> str:
    """What this server has to offer."""
    return "# Welcome\n\nRead `notes://greetings/en`, `source://resources.py` or `squares://7`."


@app.resource("notes://greetings/{language}{?loud}", ttl=3600, cache_scope="public")
def greeting(language: Literal["de", "en", "fr"], loud: bool = False) -> str:
    """A greeting in a language; the choices complete by themselves."""
    return WORDS[language].upper() if loud else WORDS[language]


@app.resource("source://{path*}")
def source(path: str) -> Path | None:
    """The source of these examples. What a client writes must not lead out of their folder."""
    file = (HERE / path).resolve()
    return file if file.is_relative_to(HERE) and file.is_file() else None


@app.resources("squares", ttl=60)
class Squares:
    """Five hundred numbers and their squares, listed by the hundred."""

    def list(self, cursor: str | None) -> Any:
        start = int(cursor or 0)
        entries = [
            Entry(f"squares://{row['id']}", f"Square {row['id']}") for row in ROWS[start : start + PAGE]
        ]
        return entries, str(start + PAGE) if start + PAGE < len(ROWS) else None

    def read(self, uri: str) -> dict[str, int] | None:
        number = uri.removeprefix("squares://")
        return ROWS[int(number)] if number.isdecimal() and int(number) < len(ROWS) else None


@app.tool(effect="read")
async def first_line(uri: str, ctx: Context) -> str:
    """Return the first line of a resource of this server."""
    contents = await ctx.read_resource(uri)
    return contents[0].text.partition("\n")[0]


if __name__ == "__main__":
    app.run()
