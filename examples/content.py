"""Results of all kinds: serve with `fastrpc serve examples/content.py`.

Each client gets what its protocol version knows; what it does not, in the nearest form that it does.
"""

from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from fastrpc import Audio, EmbeddedResource, Image, ResourceLink, Server, Text, ToolResult

app = Server("content", version="1.0", title="Content", description="One tool for each kind of result.")

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Weather:
    celsius: float
    sky: str


@app.tool(effect="read")
def pixel() -> list[Text | Image]:
    """Return a caption for the person, and a picture for both."""
    caption = Text("A picture of one pixel:", annotations={"audience": "user"})
    return [caption, Image(b64decode(PIXEL))]


@app.tool(effect="read")
def beep() -> Audio:
    """Return a sound: a millisecond of silence."""
    header = b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x08\0\0\0"
    return Audio(header + b"\x80" * 8, "audio/wav")


@app.tool(effect="read")
def report() -> list[EmbeddedResource | ResourceLink]:
    """Return a short text as a resource, and the address of the long one."""
    return [
        EmbeddedResource("report://summary", text="All is well.", mime_type="text/plain"),
        ResourceLink("report://full", "full", title="The whole report", mime_type="text/plain", size=90_000),
    ]


@app.tool(effect="read")
def weather(city: str = "Bern") -> Weather:
    """Return facts: the annotation makes the output schema, and the result is held against it."""
    return Weather(21.5, "clear")


@app.tool(effect="read")
def lookup(word: str = "pump") -> Any:
    """Return a text for the model, and a note for the program around it."""
    return ToolResult(f"{word}: a device that moves liquids", meta={"example.org/source": "cache"})


if __name__ == "__main__":
    app.run()
