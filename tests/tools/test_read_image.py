"""ReadImage: what is passed on and what is scaled, turned and converted, and what is said of it."""

from __future__ import annotations

import base64
import struct
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools.agent.read_image import read_image
from PIL import Image
from support import images
from support.image_calls import EDGE, MIB, block, facts, fits, line, one_worker, picture, run, shown

from fastrpc import ToolResult


@pytest.fixture(autouse=True, scope="module")
def worker() -> Iterator[None]:
    with one_worker():
        yield


@pytest.fixture(autouse=True)
def place(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home and a working directory of its own for each test."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


# --- byte for byte ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "mime_type"),
    [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")],
)
def test_an_image_that_fits_passes_byte_for_byte(form: str, mime_type: str) -> None:
    """ReadImage: PNG, JPEG, GIF and WebP that fit pass byte for byte."""
    data = images.encoded(images.picture((60, 40)), form)
    result = shown(data)
    assert block(result).data == data
    assert block(result).mime_type == mime_type
    name = "WebP" if form == "WEBP" else form
    assert line(result) == f"{name}, 60 × 40 px, {len(data)} bytes; unchanged."
    assert facts(result) == {
        "format": form,
        "mime_type": mime_type,
        "width": 60,
        "height": 40,
        "bytes": len(data),
        "original": {"format": form, "width": 60, "height": 40, "bytes": len(data)},
        "unchanged": True,
        "scaled": False,
        "frames": 1,
        "orientation": 1,
        "turned": False,
    }


@pytest.mark.parametrize("size", [(EDGE, EDGE), (EDGE, 1), (1, EDGE), (1, 1)])
def test_the_longest_edge_that_passes(size: tuple[int, int]) -> None:
    """ReadImage: an image fits with a longest edge of up to 1,568 pixels."""
    data = images.encoded(images.picture(size), "PNG")
    assert block(shown(data)).data == data


def test_what_fits_exactly_by_its_bytes_passes_and_one_more_does_not() -> None:
    """ReadImage: 5 MiB of base64 fit, one byte more does not."""
    image = images.encoded(images.picture(), "PNG")
    limit = 5 * MIB // 4 * 3
    filling = images.chunk(b"tEXt", b"note\0" + b"x" * (limit - len(image) - 12 - 5))
    data = image[:33] + filling + image[33:]
    assert len(data) == limit
    result = shown(data)
    assert block(result).data == data
    assert len(base64.b64encode(data)) == 5 * MIB

    longer = image[:33] + images.chunk(b"tEXt", b"note\0" + b"x" * (limit - len(image) - 16)) + image[33:]
    assert len(longer) == limit + 1
    result = shown(longer)
    assert not facts(result)["unchanged"]
    assert facts(result)["bytes"] < 1000
    assert (facts(result)["width"], facts(result)["height"]) == (60, 40)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_kinds_of_pixels_pass_byte_for_byte(mode: str) -> None:
    """ReadImage: palette, grey, 16-bit, bilevel and transparent pixels pass byte for byte, too."""
    image = images.picture(mode="L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = image.convert("I").point(lambda value: value * 257).convert("I;16")
    data = images.encoded(image, "PNG")
    assert block(shown(data)).data == data


def test_a_cmyk_jpeg_passes_byte_for_byte() -> None:
    """ReadImage: a JPEG in CMYK passes byte for byte, too."""
    data = images.encoded(images.picture(mode="CMYK"), "JPEG")
    assert block(shown(data)).data == data


def test_a_jpeg_with_several_views_is_a_jpeg_and_no_animation() -> None:
    data = images.encoded(
        images.picture(), "MPO", save_all=True, append_images=[images.picture().rotate(180)]
    )
    result = shown(data, "phone.jpg")
    assert block(result).data == data
    assert (facts(result)["format"], facts(result)["frames"]) == ("JPEG", 1)


def test_a_jpeg_named_png_is_shown_as_what_it_is() -> None:
    """ReadImage: the content tells the format, not the file's name."""
    data = images.encoded(images.picture(), "JPEG")
    result = shown(data, "wrong.png")
    assert block(result).data == data
    assert block(result).mime_type == "image/jpeg"
    assert line(result).startswith("JPEG, ")


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_an_image_that_fits_is_turned_too(form: str) -> None:
    """ReadImage: an image is turned as its EXIF data ask, whatever its size."""
    result = shown(images.turned(form, 6))
    assert "turned by 90° clockwise as its EXIF data ask" in line(result)
    assert (facts(result)["orientation"], facts(result)["turned"], facts(result)["scaled"]) == (
        6,
        True,
        False,
    )
    assert picture(result).size == (40, 60)
    assert picture(result).getexif().get(0x0112, 1) == 1  # no one is to turn it again


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
@pytest.mark.parametrize("bits", [10, 12, 16])
@pytest.mark.parametrize("size", [(40, 20), (2000, 20)])
def test_few_bits_in_sixteen_are_scaled(form: str, bits: int, size: tuple[int, int]) -> None:
    """ReadImage: greys of 10 or 12 bits in 16 are shown from black to white."""
    white = (1 << bits) - 1
    quarter = size[0] // 4
    row = [*[0] * quarter, *[white // 2] * quarter, *[white] * (2 * quarter)]
    image = Image.frombytes("I;16", size, struct.pack(f"<{size[0]}H", *row) * size[1])
    found = picture(shown(images.encoded(image, form)))
    if found.mode.startswith("I;16"):  # passed byte for byte
        found = found.convert("I").point(lambda value: value / 257).convert("L")
    at = [found.getpixel((found.width * part // 8, 5)) for part in (1, 3, 7)]
    assert at == [0, pytest.approx(127, abs=1), 255]


def test_a_tiff_says_what_white_is() -> None:
    """ReadImage: the highest value of a sample is what a TIFF says it is."""
    image = Image.new("I;16", (40, 20), 1000)
    data = images.encoded(image, "TIFF", tiffinfo={0x0119: 4000})
    assert picture(shown(data)).getpixel((5, 5)) == 1000 * 255 // 4000


def test_other_orders_of_bytes_and_other_modes_are_shown() -> None:
    """ReadImage: 16 bits in either order, palettes with transparent colours, CMYK and LAB."""
    image = Image.new("I;16B", (40, 20), 0x8080)
    assert picture(shown(images.encoded(image, "TIFF"))).getpixel((5, 5)) == 0x80
    palette = images.picture(mode="P")
    palette.info["transparency"] = 0
    assert picture(shown(images.encoded(palette, "PNG", transparency=0))).convert("RGBA").mode == "RGBA"
    cmyk = Image.new("CMYK", (40, 20), (255, 0, 0, 0))
    assert picture(shown(images.encoded(cmyk, "TIFF"))).getpixel((5, 5)) == (0, 255, 255)
    lab = Image.new("LAB", (40, 20), (255, 128, 128))
    assert picture(shown(images.encoded(lab, "TIFF"))).convert("L").getpixel((5, 5)) > 250


# --- scaled and encoded anew ------------------------------------------------------------------------------


def test_a_large_photograph_is_scaled_and_stays_a_jpeg() -> None:
    """ReadImage: a larger image is scaled and encoded anew, and its original size is reported."""
    data = images.encoded(images.photograph((3000, 2000)), "JPEG", quality=85)
    result = shown(data)
    assert picture(result).size == (1568, 1045)
    assert (picture(result).format, block(result).mime_type) == ("JPEG", "image/jpeg")
    original = {"format": "JPEG", "width": 3000, "height": 2000, "bytes": len(data)}
    assert facts(result)["original"] == original
    assert facts(result)["scaled"] is True
    size = len(block(result).data)
    assert line(result) == (
        f"JPEG, 3000 × 2000 px, {len(data):,} bytes; shown as JPEG, 1568 × 1045 px, {size:,} bytes: "
        "scaled (1 px here is 1.91 px there), encoded anew."
    )


def test_a_large_drawing_stays_a_png_and_keeps_its_colours() -> None:
    """ReadImage: a large drawing stays a PNG."""
    result = shown(images.encoded(images.picture((4000, 300)), "PNG"))
    assert (picture(result).format, picture(result).size) == ("PNG", (1568, 118))
    for corner, colour in (("top left", "red"), ("top right", "green"), ("bottom left", "blue")):
        assert images.colour_at(picture(result), corner) == colour


def test_a_large_photograph_as_png_becomes_a_jpeg() -> None:
    data = images.encoded(images.photograph((1800, 900)), "PNG")
    result = shown(data)
    assert picture(result).format == "JPEG"
    assert "converted" in line(result)


def test_transparency_is_kept() -> None:
    """ReadImage: transparency is kept when an image is encoded anew."""
    image = images.picture((2000, 100), "RGBA")
    image.putalpha(Image.linear_gradient("L").resize((2000, 100)))
    result = shown(images.encoded(image, "PNG"))
    assert picture(result).mode == "RGBA"
    alpha = picture(result).getchannel("A")
    assert sum(alpha.histogram()[:3]) > 0
    assert sum(alpha.histogram()[253:]) > 0


def test_the_transparent_colour_of_a_palette_is_kept() -> None:
    image = images.picture((2000, 100)).quantize(8)
    result = shown(images.encoded(image, "GIF", transparency=image.getpixel((1000, 50))))
    assert picture(result).convert("RGBA").getchannel("A").getextrema() == (0, 255)


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_pixels_that_cannot_be_compressed_still_end_within_five_mebibytes(mode: str) -> None:
    """ReadImage: no result is longer than 5 MiB of base64, whatever the pixels."""
    data = images.encoded(images.noise((EDGE, EDGE), mode), "PNG", compress_level=1)
    assert len(data) > 5 * MIB
    result = shown(data)
    assert fits(result)
    assert picture(result).mode == mode


def test_noise_as_bmp_ends_within_five_mebibytes_although_it_should_be_a_png() -> None:
    result = shown(images.encoded(images.noise((1700, 1700)), "BMP"))
    assert fits(result)
    assert picture(result).format == "JPEG"


UPRIGHT = {  # orientation: what is then top left, top right
    1: ("red", "green"),
    2: ("green", "red"),
    3: ("white", "blue"),
    4: ("blue", "white"),
    5: ("red", "blue"),
    6: ("blue", "red"),
    7: ("white", "green"),
    8: ("green", "white"),
}


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_a_scaled_image_is_turned_as_its_exif_data_ask(form: str, tmp_path: Any) -> None:
    """ReadImage: an image that is encoded anew is turned as its EXIF data ask."""

    async def turn(orientation: int) -> ToolResult:
        (tmp_path / "turned").write_bytes(images.turned(form, orientation, (1800, 900)))
        return await read_image(f"{tmp_path}/turned")

    async def turn_all() -> dict[int, ToolResult]:
        return {orientation: await turn(orientation) for orientation in UPRIGHT}

    for orientation, result in run(turn_all).items():
        image = picture(result)
        assert image.size == ((784, 1568) if orientation >= 5 else (1568, 784)), orientation
        corners = (images.colour_at(image, "top left"), images.colour_at(image, "top right"))
        assert corners == UPRIGHT[orientation], orientation
        assert facts(result)["turned"] is (orientation != 1)
        assert ("as its EXIF data ask" in line(result)) is (orientation != 1)
        assert image.getexif().get(0x0112, 1) == 1  # no one is to turn it again


def test_an_extremely_narrow_image_keeps_a_pixel_of_width() -> None:
    result = shown(images.encoded(images.picture((60_000, 1)), "PNG"))
    assert picture(result).size == (1568, 1)


def test_a_jpeg_of_hundreds_of_megapixels_is_decoded_at_a_fraction() -> None:
    data = images.encoded(Image.new("L", (16_000, 14_000), 90), "JPEG")
    result = shown(data)
    assert picture(result).size == (1568, 1372)
    assert facts(result)["original"]["width"] == 16_000


@pytest.mark.parametrize(
    ("mode", "value", "expected"),
    [("I;16", 0x8080, 0x80), ("I", 0x4040, 0x40), ("CMYK", (255, 0, 0, 0), (0, 255, 255)), ("1", 1, 255)],
)
def test_kinds_of_pixels_are_converted_with_their_brightness(mode: str, value: Any, expected: Any) -> None:
    """ReadImage: 16-bit, CMYK and bilevel pixels are converted when an image is encoded anew."""
    form = "TIFF" if mode in ("CMYK", "I") else "PNG"
    image = picture(shown(images.encoded(Image.new(mode, (2000, 20), value), form)))
    assert image.mode in ("L", "RGB")
    assert image.getpixel((700, 8)) == expected


def test_numbers_with_a_fraction_are_spread_over_the_greys() -> None:
    image = Image.new("F", (40, 20), -2.5)
    image.paste(7.5, (20, 0, 40, 20))
    assert picture(shown(images.encoded(image, "TIFF"))).getextrema() == (0, 255)


def test_a_colour_profile_is_kept_and_comments_are_not() -> None:
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = images.encoded(images.picture((2000, 50)), "JPEG", icc_profile=profile, comment=b"x" * 60_000)
    image = picture(shown(data))
    assert image.info["icc_profile"] == profile
    assert "comment" not in image.info


# --- other formats, animations, drawings ------------------------------------------------------------------


@pytest.mark.parametrize("form", ["BMP", "TIFF", "ICO", "PPM"])
def test_other_formats_become_png(form: str) -> None:
    """ReadImage: BMP, TIFF, ICO and PPM become PNG."""
    data = images.encoded(images.picture((60, 40)), form, **({"sizes": [(60, 40)]} if form == "ICO" else {}))
    result = shown(data)
    assert (picture(result).format, block(result).mime_type) == ("PNG", "image/png")
    assert picture(result).size == (60, 40)
    assert images.colour_at(picture(result), "top right") == "green"
    assert line(result).startswith(f"{form}, 60 × 40 px, {len(data):,} bytes; shown as PNG, 60 × 40 px, ")
    assert line(result).endswith(": converted.")
    assert facts(result)["original"]["format"] == form


def test_a_photograph_as_tiff_becomes_a_png_too() -> None:
    data = images.encoded(images.photograph((300, 200)), "TIFF", compression="tiff_lzw")
    assert picture(shown(data)).format == "PNG"


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_shown_with_a_note(form: str) -> None:
    """ReadImage: of an animation the first frame is shown, with a note."""
    result = shown(images.animated(form))
    image = picture(result)
    assert getattr(image, "n_frames", 1) == 1
    assert images.colour_at(image, "top left") in ("red", "(254, 0, 0)")
    assert "the first of 3 frames" in line(result)
    assert facts(result)["frames"] == 3


def test_of_a_tiff_the_first_page_is_shown_with_a_note() -> None:
    result = shown(images.animated("TIFF", frames=5))
    assert images.colour_at(picture(result), "top left") == "red"
    assert "the first of 5 pages" in line(result)


def test_a_tiff_whose_directories_go_round_ends() -> None:
    assert facts(shown(images.round_tiff()))["frames"] == 1


SVG = b"""<?xml version="1.0"?>
<!-- a drawing -->
<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="9" height="9"/></svg>"""


def test_a_drawing_is_shown_as_the_browser_paints_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def picture_of_svg(data: bytes, longest_edge: int, reach: object) -> bytes:
        asked.append((data, longest_edge))
        return images.encoded(images.picture((30, 20)), "PNG")

    browser = types.ModuleType("fastrpc.tools.agent._browser")
    browser.picture_of_svg = picture_of_svg  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastrpc.tools.agent._browser", browser)
    monkeypatch.setattr("fastrpc.tools.agent._browser", browser, raising=False)
    result = shown(SVG, "drawing.svg")
    assert asked == [(SVG, EDGE)]
    assert picture(result).size == (30, 20)
    size = len(block(result).data)
    assert line(result) == (f"SVG, {len(SVG)} bytes; drawn by the browser as PNG, 30 × 20 px, {size} bytes.")
    assert facts(result)["original"] == {"format": "SVG", "width": None, "height": None, "bytes": len(SVG)}
