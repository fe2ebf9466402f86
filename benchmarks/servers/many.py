"""A server of as many tools as its argument says, each with two arguments: what W5 grows."""

import sys
from collections.abc import Callable

from fastrpc import Server

app = Server("bench-many")


def made(number: int) -> Callable[[str, int], str]:
    def tool(query: str, limit: int = 10) -> str:
        return f"tool {number}: {query} up to {limit}"

    tool.__doc__ = f"Return what was asked of tool {number}."
    return tool


for number in range(1, int(sys.argv[1])):
    app.tool(made(number), name=f"tool_{number}")


@app.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


if __name__ == "__main__":
    app.run()
