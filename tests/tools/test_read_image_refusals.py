"""ReadImage: what is refused and in which words, hostile files, paths, and what may be missing."""

from __future__ import annotations

import io
import os
import random
import shutil
import socket
import sys
import threading
import unicodedata
from typing import Any

import pytest
from fastrpc.tools.agent._image import pool as image_pool
from fastrpc.tools.agent.read_image import read_image
from PIL import Image
from support import images
from support.image_calls import EDGE, MIB, attempt, block, fits, picture, refusal, refused, run, see, shown

from fastrpc import ToolError


@pytest.fixture(autouse=True)
def place(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home and a working directory of its own for each test."""
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


# --- what is refused --------------------------------------------------------------------------------------


def test_files_that_are_none(tmp_path: Any) -> None:
    """ReadImage: a missing file or a folder is an error in a sentence."""
    assert refusal(f"{tmp_path}/missing.png") == f"file_path: {tmp_path}/missing.png does not exist."
    assert refusal(str(tmp_path)) == f"file_path: {tmp_path} is a folder; expected an image file."
    assert refusal("") == "file_path: expected the path to an image file, got an empty text."
    assert refusal("/a\0b") == "file_path: contains a character not allowed in names."
    assert refusal("/dev/null") == "file_path: /dev/null is a device; expected an image file."
    assert refusal("/" + "x" * 300).endswith("cannot be opened: File name too long.")
    assert refusal("/" + "x" * 100_000) == "file_path: has 100,001 characters; a path has at most 4,096."
    assert refused(b"") == f"file_path: {tmp_path}/image.png is empty; expected an image file."


def test_a_named_pipe_is_refused_at_once(tmp_path: Any) -> None:
    """ReadImage: regular files only: a named pipe is refused at once."""
    os.mkfifo(tmp_path / "pipe.png")
    assert refusal(f"{tmp_path}/pipe.png").endswith("is a FIFO; expected an image file.")


def test_a_socket_is_refused(tmp_path: Any) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.png")
        assert refusal(f"{tmp_path}/socket.png").endswith("is a socket; expected an image file.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Any) -> None:
    (tmp_path / "secret.png").write_bytes(images.encoded(images.picture(), "PNG"))
    (tmp_path / "secret.png").chmod(0)
    assert refusal(f"{tmp_path}/secret.png").endswith("cannot be opened: Permission denied.")


def test_a_symbolic_link_is_not_followed_but_its_target_is_named(tmp_path: Any) -> None:
    """ReadImage: a symbolic link is not followed."""
    (tmp_path / "image.png").write_bytes(images.encoded(images.picture(), "PNG"))
    os.symlink("image.png", "link.png")
    os.symlink("nowhere.png", "loose.png")
    os.symlink("round.png", "round.png")
    not_followed = "is a symbolic link, which is not followed"
    assert refusal(f"{tmp_path}/link.png").endswith(
        f"link.png {not_followed}; it leads to {tmp_path}/image.png."
    )
    assert refusal("loose.png").endswith(f"{not_followed}.")
    assert refusal("round.png").endswith(f"{not_followed}.")


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_the_wire_is_not_read(path: str) -> None:
    """ReadImage: `/dev/stdin`, which is the wire, is not read."""
    message = refusal(path)
    assert "not followed" in message or "expected an image file" in message


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"<!DOCTYPE html><html><svg></svg></html>", "is an HTML page"),
        (b"%PDF-1.7\n", "is a PDF document"),
        (b"PK\x03\x04" + bytes(40), "is a ZIP archive"),
        (b"\0\0\0\x18ftypheic" + bytes(40), "is a HEIC image"),
        (b"\0\0\0\x18ftypavif" + bytes(40), "is an AVIF image"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer: the image itself was not"),
        ("مرحبا، هذا نص".encode(), "is text"),
        (bytes(range(1, 256)) * 3, "is no image"),
    ],
)
def test_what_is_no_image_is_named(data: bytes, what: str) -> None:
    """ReadImage: what is no image is an error that says what it is."""
    message = refused(data)
    assert f"image.png {what}" in message
    assert message.endswith("; expected PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, PPM or SVG.")


def test_a_file_over_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    with open("long.png", "wb") as file:
        file.truncate(256 * MIB + 1)
    expected = f"file_path: {tmp_path}/long.png has 268,435,457 bytes; at most 268,435,456 are read."
    assert refusal("long.png") == expected
    monkeypatch.setenv("FASTRPC_IMAGE_FILE_BYTES", "100")
    assert refused(images.encoded(images.picture(), "PNG")).endswith("at most 100 are read.")


CUT = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("GIF", {}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
    ("BMP", {}),
    ("TIFF", {}),
    ("PPM", {}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("form", "options"), CUT)
def test_a_file_cut_short_anywhere_is_refused(form: str, options: dict[str, Any]) -> None:
    """At a few places through the process, at each byte through the function that it runs.

    ReadImage: a file that is cut short is an error.
    """
    from fastrpc.tools.agent._image import image_worker as worker

    data = images.encoded(images.picture((24, 16)), form, **options)
    for length in (len(data) // 2, len(data) - 1):
        assert "is damaged or incomplete" in refused(data[:length])
    for length in range(1, len(data)):
        order = worker.Order(length, 4 * MIB, EDGE, 100)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Pillow raises
            worker.examine(io.BytesIO(data[:length]), order)
        assert not isinstance(caught.value, AssertionError)


@pytest.mark.filterwarnings("ignore")
def test_every_hostile_file_is_refused_in_a_sentence_and_the_next_one_served(tmp_path: Any) -> None:
    """ReadImage: a hostile file is an error in a sentence, and the next file is served."""
    sound = images.encoded(images.picture(), "PNG")
    (tmp_path / "sound.png").write_bytes(sound)

    async def all_of_them() -> dict[str, str]:
        said = {}
        for name, data in images.hostile().items():
            (tmp_path / "hostile.png").write_bytes(data)
            with pytest.raises(ToolError) as caught:
                await read_image(f"{tmp_path}/hostile.png")
            said[name] = str(caught.value)
            assert block(await read_image(f"{tmp_path}/sound.png")).data == sound
        return said

    for name, message in run(all_of_them).items():
        assert message.startswith(f"file_path: {tmp_path}/hostile.png "), name
        assert message.endswith("."), name
        assert len(message) < 400, name
        assert "Errno" not in message, name
        assert message.isprintable(), name
        if " by " in name and "JPEG" not in name and "2^31" not in name:
            assert message.endswith("has more than 100 megapixels; that is the limit."), name


@pytest.mark.filterwarnings("ignore")
def test_files_with_random_damage_are_shown_or_refused_and_nothing_else(tmp_path: Any) -> None:
    chance = random.Random(20)

    async def all_of_them() -> None:
        for form in images.FORMATS:
            sound = images.encoded(images.picture((24, 16)), form)
            for _ in range(6):
                data = bytearray(sound)
                for _ in range(chance.choice((1, 3, 10))):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                (tmp_path / "damaged").write_bytes(data)
                result, said = await attempt(f"{tmp_path}/damaged")
                if result is not None:
                    assert fits(result)  # this process can decode it, too
                else:
                    assert said.startswith("file_path: ")
                    assert "Errno" not in said

    run(all_of_them)


# --- paths ------------------------------------------------------------------------------------------------


def test_a_relative_path_and_the_home_folder_are_accepted(tmp_path: Any) -> None:
    data = images.encoded(images.picture(), "PNG")
    os.mkdir("folder")
    (tmp_path / "folder" / "image.png").write_bytes(data)
    assert block(see("folder/image.png")).data == data
    assert block(see("~/folder/image.png")).data == data
    os.symlink("/", "elsewhere")  # `..` behind a link is the system's affair
    assert "does not exist" in refusal("elsewhere/../folder/image.png")


NAMES = [
    "صورة الشاشة.png",
    unicodedata.normalize("NFC", "é à ü.png"),
    unicodedata.normalize("NFD", "é à ü.png"),
    "👩‍👩‍👧‍👦🏳️‍🌈.png",
    "مُحَمَّد ١٢٣.png",
    "Screenshot at 3.04.05\u202fPM.png",
    " leading and trailing ",
    "new\nline \"quotes\" 'and' \\.png",
    "\u202eevil\u2066.png",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_pass_unchanged_into_the_file_system_and_into_errors(name: str, tmp_path: Any) -> None:
    """ReadImage: a file name of any Unicode passes unchanged."""
    assert refusal(f"{tmp_path}/{name}") == f"file_path: {tmp_path}/{name} does not exist."
    data = images.encoded(images.picture(), "PNG")
    (tmp_path / name).write_bytes(data)
    assert block(see(f"{tmp_path}/{name}")).data == data
    other = unicodedata.normalize("NFC" if unicodedata.is_normalized("NFD", name) else "NFD", name)
    if other != name and sys.platform == "linux":
        assert block(see(f"{tmp_path}/{other}")).data == data  # it looks the same


def test_texts_inside_an_image_pass_with_it() -> None:
    from PIL import PngImagePlugin

    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("Title", "قِطّة 👩‍👩‍👧")
    data = images.encoded(images.picture(), "PNG", pnginfo=texts)
    assert block(shown(data)).data == data


def test_a_file_that_becomes_a_link_while_it_is_read_never_shows_what_the_link_leads_to(
    tmp_path: Any,
) -> None:
    """The path alternates between an image and a link to a secret one, as fast as the system can.

    ReadImage: the check is made on the open descriptor, so that a path that is swapped meanwhile shows
    nothing else.
    """
    open_one = images.encoded(Image.new("RGB", (8, 8), "green"), "PNG")
    secret = images.encoded(Image.new("RGB", (9, 9), "red"), "PNG")
    (tmp_path / "secret.png").write_bytes(secret)
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            with open("next", "wb") as file:
                file.write(open_one)
            os.replace("next", "image.png")
            os.symlink("secret.png", "next")
            os.replace("next", "image.png")

    async def look() -> tuple[int, int]:
        seen = refused = 0
        while (seen < 20 or refused < 20) and seen + refused < 3000:
            result, said = await attempt(f"{tmp_path}/image.png")
            if result is None:
                assert "symbolic link" in said or "does not exist" in said
                refused += 1
            else:
                assert block(result).data == open_one
                seen += 1
        return seen, refused

    (tmp_path / "image.png").write_bytes(open_one)
    thread = threading.Thread(target=flip)
    thread.start()
    try:
        seen, refused = run(look)
    finally:
        stop.set()
        thread.join()
    assert seen >= 1
    assert refused >= 1


# --- settings and what is missing -------------------------------------------------------------------------


def test_facts_become_structured_content_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """ReadImage: its facts become `structuredContent` where `FASTRPC_STRUCTURED=1` asks for that."""
    data = images.encoded(images.picture(), "PNG")
    assert shown(data).structured is None
    monkeypatch.setenv("FASTRPC_STRUCTURED", "1")
    assert shown(data).structured["format"] == "PNG"


def test_without_pillow_the_refusal_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = refused(images.encoded(images.picture(), "PNG"))
    assert message == "ReadImage needs Pillow; install it with: pip install 'fastrpc-mcp[tools]'"


def test_a_pillow_that_cannot_be_loaded_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import importlib.util
    from importlib.machinery import ModuleSpec

    broken = ModuleSpec("PIL", None, is_package=True)
    assert broken.submodule_search_locations is not None
    broken.submodule_search_locations.append(str(tmp_path / "broken" / "PIL"))
    (tmp_path / "broken" / "PIL").mkdir(parents=True)
    (tmp_path / "broken" / "PIL" / "__init__.py").write_text("raise ImportError('libjpeg is missing')\n")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: broken)
    message = refused(images.encoded(images.picture(), "PNG"))
    assert message == "The process that reads images cannot be started: ImportError: libjpeg is missing"


def test_a_socket_in_the_file_system_serves_where_there_are_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(image_pool, "ABSTRACT", False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    os.mkdir("tmp")
    data = images.encoded(images.picture(), "PNG")
    assert block(shown(data)).data == data
    assert os.listdir("tmp") == []


@pytest.fixture
def disk_with_space(tmp_path: Any) -> None:
    if shutil.disk_usage(tmp_path).free < 600 * MIB:
        pytest.skip("too little space")


def test_tool_and_worker_speak_the_same_language() -> None:
    from fastrpc.tools.agent._image import image_worker as worker

    for name in ("DONE", "UNKNOWN", "BROKEN", "TOO_LARGE", "NO_MEMORY"):
        assert getattr(worker, name) == getattr(image_pool, name)
    assert (worker.ORDER.format, worker.ANSWER.format) == (
        image_pool.ORDER.format,
        image_pool.ANSWER.format,
    )
    assert set(image_pool.MIME_OF) == set(worker.FORMATS)
    assert worker.PASSING == image_pool.SENT


def test_a_large_file_is_read_from_its_descriptor_not_into_memory(disk_with_space: None) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = (8000, 8000)
    with open("large.bmp", "wb") as file:
        header = images.encoded(Image.new("RGB", (1, 1)), "BMP")[:54]
        file.write(header[:18] + size[0].to_bytes(4, "little") + size[1].to_bytes(4, "little") + header[26:])
        file.truncate(54 + size[0] * size[1] * 3)
    result = see("large.bmp")
    assert picture(result).size == (1568, 1568)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 60, f"{grown:.0f} MiB"
