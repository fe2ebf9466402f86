"""The smallest server of fastrpc, as a user writes it: what the load client drives."""

from fastrpc import Server

app = Server("bench")


@app.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool
def add(a: int, b: int) -> int:
    """Return the sum of two integers."""
    return a + b


if __name__ == "__main__":
    app.run()
