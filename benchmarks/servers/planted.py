"""echo.py with a planted slowdown of so many µs a call, the last argument: what the guard must notice."""

import sys
import time

from fastrpc import Server

app = Server("planted")
WASTE_NANOSECONDS = int(sys.argv[-1]) * 1000


@app.tool(run="inline")
def echo(text: str) -> str:
    """Return the text, late."""
    until = time.perf_counter_ns() + WASTE_NANOSECONDS
    while time.perf_counter_ns() < until:
        pass
    return text


if __name__ == "__main__":
    app.run()
