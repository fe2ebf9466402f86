"""Files whose names look like the one that is given: screenshots of macOS, letters with accents."""

from __future__ import annotations

import os
import unicodedata
from typing import Any

import pytest

pytest.importorskip("PIL", reason="the extra tools is not installed")

from fastrpc.tools.agent._file_names import the_one_meant
from fastrpc.tools.agent.read_image import read_image
from support import images
from support.image_calls import facts, run

from fastrpc import ToolError

SCREENSHOT = "Screenshot 2026-01-01 at 9.00.00\u202fAM.png"
TYPED = SCREENSHOT.replace("\u202f", " ")
COMPOSED = unicodedata.normalize("NFC", "Übersicht é.png")


@pytest.mark.parametrize(
    ("there", "given"),
    [
        (SCREENSHOT, TYPED),
        (TYPED, SCREENSHOT),
        (unicodedata.normalize("NFD", COMPOSED), COMPOSED),
        (COMPOSED, unicodedata.normalize("NFD", COMPOSED)),
        ("a\u00a0b  c.png", "a b c.png"),
        ("report.png", "\u202areport.png"),  # as Windows copies it
        ("\u200eIMG\ufeff-1.png", "IMG-1.png"),
    ],
)
def test_the_only_file_whose_name_looks_the_same_is_read(there: str, given: str, tmp_path: Any) -> None:
    """ReadImage: a name with an ordinary space, or with composed letters, finds the file of macOS."""
    folder = tmp_path / unicodedata.normalize("NFD", "Aufnähme")
    folder.mkdir()
    (folder / there).write_bytes(images.encoded(images.picture(), "PNG"))
    (folder / "other.png").touch()
    result = run(lambda: read_image(f"{tmp_path}/{unicodedata.normalize('NFC', 'Aufnähme')}/{given}"))
    assert facts(result)["format"] == "PNG"


def test_of_several_none_is_taken_and_all_are_named(tmp_path: Any) -> None:
    """ReadImage: where two names look the same neither is guessed."""
    for name in ("a\u202fb.png", "a\u00a0b.png"):
        (tmp_path / name).write_bytes(images.encoded(images.picture(), "PNG"))
    with pytest.raises(ToolError, match=r"does not exist\. Did you mean") as caught:
        run(lambda: read_image(f"{tmp_path}/a b.png"))
    assert "a\\u202fb" in str(caught.value) or "a\u202fb" in str(caught.value)


def test_what_is_similar_is_named(tmp_path: Any) -> None:
    """ReadImage: a misspelled name is answered with what is there."""
    (tmp_path / "diagram.png").touch()
    with pytest.raises(ToolError, match=r"does not exist\. Did you mean diagram\.png\?"):
        run(lambda: read_image(f"{tmp_path}/diagramm.png"))
    with pytest.raises(ToolError, match="there is no folder"):
        run(lambda: read_image(f"{tmp_path}/nowhere/x.png"))


def test_a_link_is_found_and_refused_as_one(tmp_path: Any) -> None:
    (tmp_path / "real.png").touch()
    os.symlink("real.png", tmp_path / "a\u202fb.png")
    assert the_one_meant(f"{tmp_path}/a b.png") == f"{tmp_path}/a\u202fb.png"
    with pytest.raises(ToolError, match="symbolic link"):
        run(lambda: read_image(f"{tmp_path}/a b.png"))
