"""Images for tests, made on the spot: sound ones by Pillow, hostile ones byte by byte."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

from PIL import Image

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM")


def picture(size: tuple[int, int] = (60, 40), mode: str = "RGB") -> Image.Image:
    """A picture with something to see in each corner: red, green, blue and white on grey."""
    image = Image.new("RGB", size, (128, 128, 128))
    width, height = max(1, size[0] // 3), max(1, size[1] // 3)
    corners = (
        (0, 0, (255, 0, 0)),
        (size[0] - width, 0, (0, 255, 0)),
        (0, size[1] - height, (0, 0, 255)),
        (size[0] - width, size[1] - height, (255, 255, 255)),
    )
    for x, y, colour in corners:
        image.paste(colour, (x, y, x + width, y + height))
    return image.convert(mode)


def photograph(size: tuple[int, int]) -> Image.Image:
    """A picture with very many colours."""
    channels = [Image.effect_noise(size, 40) for _ in range(3)]
    return Image.merge("RGB", channels)


def noise(size: tuple[int, int], mode: str = "RGB") -> Image.Image:
    """Pixels that nothing compresses."""
    return Image.frombytes(mode, size, random.Random(1).randbytes(size[0] * size[1] * len(mode)))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def animated(form: str, size: tuple[int, int] = (40, 30), frames: int = 3) -> bytes:
    """An animation, or a TIFF with pages: the first is red, no other is."""
    colours = ["red", "green", "blue", "yellow", "black"]
    images = [Image.new("RGB", size, colours[number % 5]) for number in range(frames)]
    return encoded(images[0], form, save_all=True, append_images=images[1:])


def turned(form: str, orientation: int, size: tuple[int, int] = (60, 40)) -> bytes:
    """A picture whose EXIF data ask for a turn."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture(size), form, exif=exif, **({"quality": 95} if form == "JPEG" else {}))


def colour_at(image: Image.Image, corner: str) -> str:
    """Name the colour in a corner: ``top left`` and so on."""
    vertical, horizontal = corner.split()
    x = 2 if horizontal == "left" else image.width - 3
    y = 2 if vertical == "top" else image.height - 3
    found = image.convert("RGB").getpixel((min(max(x, 0), image.width - 1), min(max(y, 0), image.height - 1)))
    named = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
    assert isinstance(found, tuple)
    for name, colour in named.items():
        if all(abs(a - b) < 60 for a, b in zip(found, colour, strict=True)):
            return name
    return str(found)


# --- by hand ------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, colour_type: int = 0, between: bytes = b"", rows: int | None = None
) -> bytes:
    """A black PNG of any size; `between` are chunks before the pixels, `rows` how many of them are there."""
    header = struct.pack(">IIBBBBB", width, height, 8, colour_type, 0, 0, 0)
    row = bytes(1 + width * {0: 1, 2: 3, 6: 4}[colour_type])
    packer = zlib.compressobj(9)
    pixels = [packer.compress(row) for _ in range(height if rows is None else rows)]
    data = b"".join(pixels) + packer.flush()
    return PNG + chunk(b"IHDR", header) + between + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def zeros_packed(size: int) -> bytes:
    packer = zlib.compressobj(9)
    pieces = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join(pieces) + packer.flush()


def slow_gif(frames: int) -> bytes:
    """A GIF of so many frames of one pixel: counting them takes a while."""
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    screen = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return screen + frame * frames + b";"


def ico_of(inner: bytes, width: int = 16, height: int = 16) -> bytes:
    entry = struct.pack("<BBBBHHII", width, height, 0, 0, 1, 32, len(inner), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + inner


def tiff(*tags: tuple[int, int, int, int], more: int = 0) -> bytes:
    """A TIFF of nothing but tags: number, type, count, value; `more` is where the next directory lies."""
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + struct.pack("<I", more)


def round_tiff() -> bytes:
    """A sound TIFF of 4 × 4 px whose only directory names itself as the next one."""
    size = ((256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1))
    return tiff(*size, (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 4), (279, 4, 1, 16), more=8)


def hostile() -> dict[str, bytes]:
    """Files that no decoder should be handed in the server's own process."""
    bomb = zeros_packed(96 << 20)
    huge_png = png(50_000, 50_000, rows=20)
    jpeg = encoded(picture(), "JPEG")
    frame = jpeg.index(b"\xff\xc0")
    webp_canvas = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (16_382).to_bytes(3, "little") * 2
    return {
        "a PNG of 50,000 by 50,000": huge_png,
        "a PNG that says 2^31 by 2^31": png(1, 1).replace(
            struct.pack(">II", 1, 1), struct.pack(">II", 2**31 - 1, 2**31 - 1), 1
        ),
        "zTXt that unpacks to much": png(8, 8, between=chunk(b"zTXt", b"note\0\0" + bomb)),
        "iTXt that unpacks to much": png(8, 8, between=chunk(b"iTXt", b"note\0\1\0\0\0" + bomb)),
        "a thousand texts": png(
            8, 8, between=chunk(b"zTXt", b"note\0\0" + zlib.compress(bytes(1_000_000))) * 1000
        ),
        "a colour profile that unpacks to much": png(8, 8, between=chunk(b"iCCP", b"p\0\0" + bomb), rows=1),
        "a GIF of 65,535 by 65,535": b"GIF89a\xff\xff\xff\xff\x80\0\0" + slow_gif(1)[13:],
        "a WebP of 16,383 by 16,383": b"RIFF" + struct.pack("<I", 22) + b"WEBP" + webp_canvas,
        "an ICO around a PNG bomb": ico_of(huge_png),
        "an ICO around an ICO": ico_of(ico_of(ico_of(png(8, 8)))),
        "a BMP of 2^31 by 2^31": b"BM"
        + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 24, 0, 0, 0, 0, 0, 0),
        "a PPM of 999,999 by 999,999": b"P6 999999 999999 255\n" + bytes(100),
        "a PPM with a number without an end": b"P6 " + b"9" * 100_000,
        "a TIFF of 2^31 by 2^31": tiff(
            (256, 4, 1, 2**31), (257, 4, 1, 2**31), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
            (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 2**31), (279, 4, 1, 100),
        ),
        "a TIFF with tags of 2^32 values": tiff(*[(256 + n, 4, 2**32 - 1, 8) for n in range(40)]),
        "a JPEG that says 65,535 by 65,535": jpeg[: frame + 5] + b"\xff\xff\xff\xff" + jpeg[frame + 9 :],
        "random bytes": bytes((n * n * 31 + n * 7) % 251 for n in range(5000)),
        "random bytes behind a PNG's first ones": PNG + bytes((n * 37) % 256 for n in range(5000)),
        "NULs": bytes(5000),
    }  # fmt: skip
