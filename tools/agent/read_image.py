"""The tool ReadImage: shows an image file to the model, never larger than a chat accepts.

An image that fits is passed on byte for byte, after it has been decoded once as a check. Others are scaled
and encoded anew. Decoding happens in a process with limits (`_image.pool`), since any file may be hostile.
The browser draws SVG. The first image costs about 60 ms, further ones 3 ms and the time to decode.
"""

from __future__ import annotations

from fastrpc import Context, ToolError, ToolResult, tool

from . import _settings, _text
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from ._image.file import File
    from ._image.pool import Picture, Refused
else:
    from fastrpc.typing_forms import Annotated

LONGEST_EDGE = 1_568
BASE64_LIMIT = 5 * 1024 * 1024
BYTE_LIMIT = BASE64_LIMIT // 4 * 3

TURNS = {
    2: "mirrored",
    3: "turned by 180°",
    4: "mirrored upside down",
    5: "mirrored and turned by 90° anticlockwise",
    6: "turned by 90° clockwise",
    7: "mirrored and turned by 90° clockwise",
    8: "turned by 90° anticlockwise",
}
NAMES = {"WEBP": "WebP"}


@tool(name="ReadImage", effect="read")
async def read_image(
    file_path: Annotated[str, "The absolute path to the image file"], ctx: Context | None = None
) -> ToolResult:
    """Read an image file and display it visually"""
    import asyncio

    patience = _settings.PATIENCE_SECONDS.read()
    try:
        return await asyncio.wait_for(_read(file_path, ctx), patience or None)
    except asyncio.TimeoutError:
        raise ToolError(
            f"{_text.quoted(file_path)} was not read within {patience:g} s; try again later."
        ) from None


async def _read(given: str, ctx: Context | None) -> ToolResult:
    from ._image import file as image_file

    file = await image_file.open_file(given, _settings.IMAGE_FILE_BYTES.read())
    try:
        if image_file.is_svg(file.head):
            return await _draw(file, ctx)
        return _shown(await _decode(file, file.descriptor, file.size), file.size)
    except OSError as error:
        raise ToolError(f"file_path: {file.path} cannot be read: {error.strerror}.") from None
    finally:
        file.close()


async def _decode(file: File, descriptor: int, size: int) -> Picture:
    from ._image import pool as image_pool

    try:
        return await image_pool.pool().examine(
            descriptor,
            size,
            limit=BYTE_LIMIT,
            edge=LONGEST_EDGE,
            seconds=_settings.IMAGE_SECONDS.read(),
            memory=_settings.IMAGE_MEMORY_BYTES.read(),
        )
    except image_pool.Refused as refusal:
        raise ToolError(f"file_path: {file.path} {_why_not(refusal, file)}") from None


def _why_not(refusal: Refused, file: File) -> str:
    """Return the rest of a sentence that says why a file is not shown."""
    from ._image import file as image_file
    from ._image import pool as image_pool

    kind, text = refusal.kind, str(refusal)
    if kind == image_pool.UNKNOWN and not image_file.begins_like_an_image(file.head):
        found = image_file.what_it_is(file.head)
        return f"is {found or 'no image'}; expected {image_file.ACCEPTED}."
    if kind == image_pool.TOO_LARGE:
        return f"has more than {image_pool.PIXELS} megapixels; that is the limit."
    if kind == image_pool.NO_MEMORY:
        return "takes more memory to decode than there may be (FASTRPC_IMAGE_MEMORY_BYTES)."
    if kind == image_pool.SLOW:
        return "takes longer to decode than it may (FASTRPC_IMAGE_SECONDS)."
    if kind == image_pool.CRASHED:
        return f"makes the decoder fail ({text}); it is damaged or malicious."
    return f"is damaged or incomplete{f' ({text})' if text else ''}."


async def _draw(file: File, ctx: Context | None) -> ToolResult:
    """Show an SVG drawing as the browser paints it."""
    from .. import _reach
    from ._browser import picture_of_svg

    if file.size > BYTE_LIMIT:
        raise ToolError(f"file_path: {file.path} has {file.size:,} bytes; an SVG may have {BYTE_LIMIT:,}.")
    painted = await picture_of_svg(file.read(file.size), LONGEST_EDGE, _reach.of(ctx))
    descriptor = _nameless_file(painted)
    try:
        picture = await _decode(file, descriptor, len(painted))
    finally:
        import os

        os.close(descriptor)
    return _shown(picture, file.size, drawing=True)


def _nameless_file(data: bytes) -> int:
    import os
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return os.dup(file.fileno())


def _shown(picture: Picture, size: int, drawing: bool = False) -> ToolResult:
    """Return the image, a line that describes it, and the facts."""
    from fastrpc import Image

    from ._image.pool import MIME_OF

    mime_type = MIME_OF[picture.form]
    upright = max(picture.original_width, picture.original_height)
    scaled = not picture.passed and max(picture.width, picture.height) < upright
    facts = {
        "format": picture.form,
        "mime_type": mime_type,
        "width": picture.width,
        "height": picture.height,
        "bytes": len(picture.data),
        "original": {
            "format": "SVG" if drawing else picture.original_form,
            "width": None if drawing else picture.original_width,
            "height": None if drawing else picture.original_height,
            "bytes": size,
        },
        "unchanged": picture.passed and not drawing,
        "scaled": scaled,
        "frames": picture.frames,
        "orientation": picture.turn,
        "turned": picture.turn != 1,
    }
    text = _line(picture, size, scaled, drawing)
    answer = result(text, facts)
    answer.content = [Image(picture.data, mime_type), text]
    return answer


def _line(picture: Picture, size: int, scaled: bool, drawing: bool) -> str:
    shown = f"{_name(picture.form)}, {picture.width} × {picture.height} px, {len(picture.data):,} bytes"
    if drawing:
        return f"SVG, {size:,} bytes; drawn by the browser as {shown}."
    turn = TURNS.get(picture.turn, "")
    if picture.passed:
        return f"{shown}; unchanged."
    original = f"{_name(picture.original_form)}, {picture.original_width} × {picture.original_height} px"
    done = []
    if picture.frames > 1:
        parts = "pages" if picture.original_form == "TIFF" else "frames"
        done.append(f"the first of {picture.frames} {parts}")
    if turn:
        done.append(f"{turn} as its EXIF data ask")
    if scaled:
        factor = max(picture.original_width, picture.original_height) / max(picture.width, picture.height)
        done.append(f"scaled (1 px here is {factor:.3g} px there)")
    done.append("encoded anew" if picture.form == picture.original_form else "converted")
    return f"{original}, {size:,} bytes; shown as {shown}: {', '.join(done)}."


def _name(form: str) -> str:
    return NAMES.get(form, form)
