"""The part of the demo with a picture: it is painted, read, and shown in the terminal."""

from __future__ import annotations

import base64
import io
import os
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SIZE = (3000, 2000)
COLUMNS, ROWS = 60, 20
SHADES = " .:-=+*#%@"


def look_at_a_picture(conversation: Any) -> None:
    conversation.title("A picture of six megapixels, scaled for the model")
    path = os.path.join(conversation.folder, "evening.png")
    paint(path)
    answer = conversation.call("ReadImage", {"file_path": path}, says="3000")
    blocks = [block for block in answer.content if block["type"] == "image"]
    conversation.check(len(blocks) == 1, "ReadImage gave no image")
    picture = base64.b64decode(blocks[0]["data"])
    for line in drawn(picture, conversation.colours):
        conversation.remark(line)
    kept = os.path.join(tempfile.gettempdir(), f"fastrpc-demo.{blocks[0]['mimeType'].partition('/')[2]}")
    try:
        with open(kept, "wb") as file:
            file.write(picture)
    except OSError:
        return  # another program's picture, most likely
    conversation.remark(f"what the model gets: {kept}")


def paint(path: str) -> None:
    """Paint an evening at the sea."""
    from PIL import Image, ImageDraw

    width, height = SIZE
    sky = Image.linear_gradient("L").resize(SIZE)
    picture = Image.merge(
        "RGB", (sky, sky.point(lambda value: value * 2 // 3), sky.point(lambda value: 140 - value // 2))
    )
    draw = ImageDraw.Draw(picture)
    draw.ellipse((width * 0.58, height * 0.36, width * 0.78, height * 0.66), fill=(255, 236, 160))
    draw.rectangle((0, height * 0.62, width, height), fill=(20, 44, 84))
    for row in range(9):
        top = height * (0.64 + 0.04 * row)
        draw.rectangle(
            (width * (0.60 - 0.02 * row), top, width * (0.76 + 0.02 * row), top + 14), fill=(238, 190, 120)
        )
    draw.polygon(((500, 1240), (980, 1240), (900, 1340), (580, 1340)), fill=(30, 16, 16))
    draw.polygon(((720, 520), (720, 1200), (1060, 1200)), fill=(240, 240, 235))
    picture.save(path, compress_level=1)


def drawn(picture: bytes, colours: bool) -> list[str]:
    """Return lines of text that show a picture: two pixels per character in colour, or shades."""
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB" if colours else "L").resize((COLUMNS, ROWS * 2 if colours else ROWS))
    if not colours:
        return [
            "".join(SHADES[small.getpixel((x, y)) * len(SHADES) // 256] for x in range(COLUMNS))
            for y in range(ROWS)
        ]
    lines = []
    for y in range(0, ROWS * 2, 2):
        upper = [small.getpixel((x, y)) for x in range(COLUMNS)]
        lower = [small.getpixel((x, y + 1)) for x in range(COLUMNS)]
        pairs = zip(upper, lower, strict=True)
        lines.append(
            "".join(f"\x1b[38;2;{a};{b};{c};48;2;{d};{e};{f}m▀" for (a, b, c), (d, e, f) in pairs) + "\x1b[0m"
        )
    return lines
