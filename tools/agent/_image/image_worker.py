"""A program, not a module: decodes one image file after another for ReadImage, within limits.

`pool` starts it as a separate process, since a file may be hostile and decoders have vulnerabilities. It
receives open descriptors through a socket and opens nothing itself. While it reads a file, the limits leave
no descriptor free, no file may be written, and memory and processor time are bounded. It imports Pillow and
the standard library, and one file of fastrpc. Starting costs about 45 ms, a small picture after that 2 ms.

A file that fits, is upright and uses the whole range of its greys is decoded completely, to check that it can
be, and returned byte for byte. Any other is turned upright, scaled and encoded anew, so that the result is
never longer than was asked.
"""

from __future__ import annotations

import copy  # could not be opened later, when Pillow imports it
import io
import math
import os
import resource
import socket
import struct
import sys
import warnings

try:
    from PIL import (
        BmpImagePlugin,
        GifImagePlugin,
        IcoImagePlugin,
        Image,
        ImageCms,
        ImageFile,
        JpegImagePlugin,
        MpoImagePlugin,
        PngImagePlugin,
        PpmImagePlugin,
        TiffImagePlugin,
        UnidentifiedImageError,
        WebPImagePlugin,
    )
except ImportError:
    if __name__ == "image_worker":  # as a program; the self-test imports every module
        raise
else:
    LOADED = (  # imported before the first file; nothing is imported later
        *(copy, ImageCms),  # the latter converts LAB
        *(BmpImagePlugin, GifImagePlugin, IcoImagePlugin, JpegImagePlugin, MpoImagePlugin),
        *(PngImagePlugin, PpmImagePlugin, TiffImagePlugin, WebPImagePlugin),
    )
    TURNS = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "ICO", "PPM")
PASSING = ("PNG", "JPEG", "GIF", "WEBP")
TO_PNG = ("BMP", "TIFF", "ICO", "PPM")

# The request: the file's size, the most bytes of the answer, longest edge, megapixels, seconds. The answer:
# the outcome, the lengths of the text and of the picture. `pool` repeats these definitions.
ORDER = struct.Struct("=QQIII")
ANSWER = struct.Struct("=BII")
DONE, UNKNOWN, BROKEN, TOO_LARGE, NO_MEMORY = 1, 2, 3, 4, 5

JPEG_AT_MOST = 65_535**2  # as announced: a JPEG is decoded at an eighth of its size if need be
GRAPHIC_COLOURS = 4_096  # a sample with more colours is a photograph
GRAPHIC_GREYS = 64
SAMPLE_EDGE = 512
PROFILE_LIMIT = 16 * 1024
TRUNCATED = "it is cut short"


class Refusal(Exception):
    """The file is not shown."""

    def __init__(self, kind: int, text: str = "") -> None:
        super().__init__(text)
        self.kind = kind


class Order:
    """The limits of the result."""

    __slots__ = ("edge", "limit", "pixels", "size")

    def __init__(self, size: int, limit: int, edge: int, megapixels: int) -> None:
        self.size = size
        self.limit = limit
        self.edge = edge
        self.pixels = megapixels * 1_000_000


def examine(file: BinaryIO, order: Order) -> tuple[str, bytes]:
    """Return the facts of an image file and the bytes to show. Raises Refusal, and any exception of
    Pillow."""
    file.seek(0)
    data = file.read(order.size) if order.size <= order.limit else b""
    source: BinaryIO = io.BytesIO(data) if data else file
    is_jpeg = source.read(2) == b"\xff\xd8"
    source.seek(0)
    Image.MAX_IMAGE_PIXELS = JPEG_AT_MOST if is_jpeg else order.pixels
    image = Image.open(source, formats=FORMATS)
    name = "JPEG" if image.format == "MPO" else str(image.format)
    width, height = image.size
    # The further pictures of a JPEG are other views of the same, not an animation.
    frames = 1 if is_jpeg else int(getattr(image, "n_frames", 1))
    turn = turn_of(image) if name == "TIFF" else 1  # Pillow turns a TIFF itself while it decodes it
    fits = bool(data) and max(width, height) <= order.edge
    if is_jpeg and not fits:
        shrink_while_decoding(image, order)
    image.load()
    if name != "TIFF":
        turn = turn_of(image)  # not earlier: in a PNG this decodes, and would hide its errors
    if name == "ICO":
        width, height = image.size  # of the picture inside, which may differ from the directory's entry
    facts = f"{name} {width} {height} {frames} {turn}"
    if fits and frames == 1 and name in PASSING and turn == 1 and not is_too_dark(image):
        if not ends_whole(name, data):
            raise Refusal(BROKEN, TRUNCATED)
        return f"{facts} {name} {width} {height} 1", data
    picture = scaled(image, order.edge)
    if turn != 1 and name != "TIFF":
        picture = picture.transpose(TURNS[turn])
    forms = preferences(picture, name, few_colours=image.mode in ("1", "P"))
    form, picture, encoded = encode(picture, forms, order.limit)
    return f"{facts} {form} {picture.width} {picture.height} 0", encoded


def turn_of(image: Image.Image) -> int:
    """Return the orientation in the EXIF data, 1 to 8."""
    try:
        turn = image.getexif().get(0x0112, 1)
    except Exception:  # whatever is wrong with the EXIF data, the picture may be valid
        return 1
    return int(turn) if turn in TURNS else 1


def shrink_while_decoding(image: Image.Image, order: Order) -> None:
    """Have a large JPEG decoded at a half, a quarter or an eighth: as far as that loses nothing, or as far as
    the limit requires."""
    edge = order.edge * 2 if image.width * image.height <= order.pixels else order.edge
    scale = max(1.0, max(image.size) / edge)
    image.draft(None, (max(1, int(image.width / scale)), max(1, int(image.height / scale))))


# --- complete or truncated ----------------------------------------------------------------------------------


def ends_whole(name: str, data: bytes) -> bool:
    """Whether a file that could be decoded is also complete at its end."""
    if name == "PNG":
        return _png_ends(data)
    if name == "JPEG":
        return _jpeg_ends(data)
    if name == "GIF":
        return data.rstrip(b"\0")[-1:] == b";" or b"\0;" in data[-4096:]
    return len(data) >= int.from_bytes(data[4:8], "little") + 8


def _png_ends(data: bytes) -> bool:
    at = 8
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        at += 12 + int(length)
        if kind == b"IEND":
            return at <= len(data)
    return False


def _jpeg_ends(data: bytes) -> bool:
    """Walk along the markers, since a thumbnail may contain an end marker too."""
    at = 2
    while 0 <= at < len(data) - 1:
        if data[at] != 0xFF:
            at = data.find(b"\xff", at)  # entropy-coded data, or invalid bytes between segments
            continue
        marker = data[at + 1]
        if marker == 0xD9:
            return True
        if marker == 0xFF:
            at += 1
        elif marker in (0x00, 0x01) or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return False


# --- scaling and encoding -----------------------------------------------------------------------------------


def scaled(image: Image.Image, edge: int) -> Image.Image:
    """Return the picture in one of the modes L, LA, RGB and RGBA, its longest edge at most `edge`."""
    scale = edge / max(image.size)
    if scale >= 1:
        return plain(image)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    if image.mode in ("RGB", "L", "CMYK", "YCbCr") and "transparency" not in image.info:
        return plain(image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0))  # first: less to convert
    return plain(image).resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def plain(image: Image.Image) -> Image.Image:
    """Return the picture as L, LA, RGB or RGBA, without an alpha channel that is all opaque."""
    mode = image.mode
    if mode.startswith("I;16"):
        image = _to_bytes(image.convert("I"), 0, greys_of(image))
    elif mode in ("I", "F"):
        low, high = _extrema(image)
        if mode == "I" and low >= 0 and 255 < high < 65_536:  # which is also how 16-bit values come
            low, high = 0, 65_535
        image = _to_bytes(image, low, high)
    elif image.has_transparency_data:
        image = image.convert("RGBA" if mode != "LA" else "LA")
    elif mode not in ("L", "RGB"):
        image = image.convert("L" if mode == "1" else "RGB")
    if image.mode in ("LA", "RGBA") and image.getchannel("A").getextrema() == (255, 255):
        image = image.convert(image.mode[:-1])
    return image


def greys_of(image: Image.Image) -> int:
    """Return the value of white in an image of 16 bits. Cameras and scanners use 10, 12 or 14 of them, and
    TIFF may say so. Otherwise few bits are assumed if no value uses the highest ones."""
    tags = getattr(image, "tag_v2", {})
    white = _first(tags.get(0x0119))  # MaxSampleValue
    bits = _first(tags.get(0x0102))  # BitsPerSample
    for told in (white, (1 << bits) - 1 if 8 < bits < 16 else 0):
        if 255 < told < 65_535:
            return told
    highest = _extrema(image.convert("I"))[1]
    return next((white for white in (1023, 4095) if highest <= white), 65_535)


def _first(value: object) -> int:
    """Return the number in a tag, or the first of several; 0 without any."""
    first = value[0] if isinstance(value, tuple) and value else value
    return first if isinstance(first, int) else 0


def is_too_dark(image: Image.Image) -> bool:
    """Whether an image of 16 bits uses only the lower ones of them, so that it would be black if shown
    unchanged."""
    return image.mode.startswith("I;16") and greys_of(image) < 65_535


def _extrema(image: Image.Image) -> tuple[float, float]:
    low, high = image.getextrema()
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (0.0, 1.0)


def _to_bytes(image: Image.Image, low: float, high: float) -> Image.Image:
    """Map the values from `low` to `high` onto those of a byte."""
    factor = 255 / (high - low) if high > low else 1.0
    return image.point(lambda value: value * factor - low * factor).convert("L")


def preferences(picture: Image.Image, name: str, few_colours: bool) -> tuple[tuple[str, dict[str, int]], ...]:
    """Return the encodings to try, best first: PNG for graphics and transparency, JPEG for photographs."""
    if picture.mode in ("LA", "RGBA"):
        webp = (("WEBP", {"quality": 85, "method": 2}),) if WebPImagePlugin.SUPPORTED else ()
        return (("PNG", {}), *webp)
    jpeg = (("JPEG", {"quality": 90, "subsampling": 0}), ("JPEG", {"quality": 75}))
    if name in TO_PNG or few_colours or (name != "JPEG" and is_graphic(picture)):
        return (("PNG", {}), *jpeg)
    return jpeg


def is_graphic(picture: Image.Image) -> bool:
    """Whether a picture has few colours, like a drawing or a screenshot."""
    scale = SAMPLE_EDGE / max(picture.size)
    if scale < 1:
        size = (max(1, int(picture.width * scale)), max(1, int(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.NEAREST)
    return picture.getcolors(GRAPHIC_COLOURS if picture.mode == "RGB" else GRAPHIC_GREYS) is not None


def encode(
    picture: Image.Image, forms: tuple[tuple[str, dict[str, int]], ...], limit: int
) -> tuple[str, Image.Image, bytes]:
    """Return the encoding and the bytes of a picture, which is made smaller until they fit."""
    profile = picture.info.get("icc_profile")
    if picture.mode not in ("RGB", "RGBA") or not _is_small_profile(profile):
        profile = None
    picture.info.clear()  # comments and the like
    while True:
        for form, options in forms:
            buffer = io.BytesIO()
            picture.save(buffer, form, icc_profile=profile, exif=b"", **options)
            if buffer.tell() <= limit:
                return form, picture, buffer.getvalue()
        size = (max(1, picture.width * 3 // 4), max(1, picture.height * 3 // 4))
        picture = picture.resize(size, Image.Resampling.LANCZOS)


def _is_small_profile(profile: object) -> bool:
    """Whether a colour profile is one for RGB and worth its bytes."""
    return isinstance(profile, bytes) and profile[16:20] == b"RGB " and len(profile) <= PROFILE_LIMIT


# --- the process --------------------------------------------------------------------------------------------


def limit_time(seconds: int) -> None:
    """Allow so many seconds of processor time from now; after them the system ends this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))


def serve(channel: socket.socket) -> None:
    """Examine files until the socket is closed."""
    while True:
        order, descriptors, _, _ = socket.recv_fds(channel, ORDER.size, 1)
        if len(order) < ORDER.size or len(descriptors) != 1:
            return
        size, limit, edge, megapixels, seconds = ORDER.unpack(order)
        limit_time(seconds)
        kind, text, data = answer(descriptors[0], Order(size, limit, edge, megapixels))
        encoded = text.encode("ascii", "replace")[:200]
        channel.sendall(ANSWER.pack(kind, len(encoded), len(data)) + encoded)
        channel.sendall(data)


def answer(descriptor: int, order: Order) -> tuple[int, str, bytes]:
    with open(descriptor, "rb") as file:
        try:
            return (DONE, *examine(file, order))
        except Refusal as refusal:
            return refusal.kind, str(refusal), b""
        except UnidentifiedImageError:
            return UNKNOWN, "", b""
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            return TOO_LARGE, "", b""
        except MemoryError:
            return NO_MEMORY, "", b""
        except Exception as error:  # any exception of a decoder
            return BROKEN, f"{error}", b""


def main() -> None:
    """Arguments: the address of the socket in hexadecimal, and the memory limit."""
    from _process_limits import limit  # type: ignore[import-not-found]
    from _system_calls import (  # type: ignore[import-not-found]
        DESCRIPTORS,
        NATIVE,
        confine_if_possible,
    )

    warnings.simplefilter("ignore")
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(bytes.fromhex(sys.argv[1]))
    limit(int(sys.argv[2]))
    # One descriptor more than are open now: the received file.
    beyond = channel.fileno() + 2
    os.closerange(channel.fileno() + 1, 1024)
    resource.setrlimit(resource.RLIMIT_NOFILE, (beyond, beyond))
    confine_if_possible(NATIVE, DESCRIPTORS)
    serve(channel)


if __name__ == "__main__":
    main()
