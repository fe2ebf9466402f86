"""A server made of servers: each part is written, and tested, by itself.

Serve with `fastrpc serve examples/mount.py`.
"""

from __future__ import annotations

from fastrpc import CallInfo, Server

clock = Server("clock")
words = Server("words")


@clock.tool(effect="read")
def minutes(hours: int, minutes: int = 0) -> int:
    """Return a time of day in minutes."""
    return 60 * hours + minutes


@words.tool(effect="read")
def count(text: str) -> int:
    """Return how many words a text has."""
    return len(text.split())


@words.before
def unquote(call: CallInfo) -> None:
    """Hooks of a part hold for its own tools only."""
    call.arguments["text"] = str(call.arguments.get("text", "")).strip("'\"")


@words.resource("words://stop", mime_type="text/plain")
def stop_words() -> str:
    """Words that carry little. Addresses have no prefix."""
    return "a\nthe\nof"


app = Server("parts", version="1.0")
app.mount(clock, "clock")  # clock_minutes
app.mount(words, "words")  # words_count


@words.tool
def longest(text: str) -> str:
    """Return the longest word. What a part gains later shows too, as words_longest."""
    return max(text.split(), key=len, default="")


if __name__ == "__main__":
    app.run()
