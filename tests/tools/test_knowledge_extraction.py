"""What documents say: files that pandoc and LibreOffice made; damaged, hostile and lying ones."""

from __future__ import annotations

import asyncio
import io
import os
import re
import zipfile
from pathlib import Path

import pytest
from fastrpc.tools.knowledge import _extraction
from fastrpc.tools.knowledge._extraction import (
    Extracted,
    ExtractionError,
    document_worker,
    extract,
    passages,
)
from PIL import Image, ImageDraw, ImageFont

FILES = Path(__file__).parent.parent / "data" / "knowledge"
MAIN = "word/document.xml"


def read(path: Path) -> Extracted:
    return asyncio.run(extract(str(path)))


def refusal(path: Path) -> str:
    with pytest.raises(ExtractionError) as caught:
        read(path)
    return str(caught.value)


def remade(to: Path, *, without: str = "", **changed: bytes) -> Path:
    """Write the English DOCX with members changed or added: `word__document` means word/document.xml."""
    members = {name.replace("__", "/") + ".xml": data for name, data in changed.items()}
    with (
        zipfile.ZipFile(FILES / "pandoc-en.docx") as source,
        zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out,
    ):
        for name in source.namelist():
            if name not in members and name != without:
                out.writestr(name, source.read(name))
        for name, data in members.items():
            out.writestr(name, data)
    return to


def test_the_folder_of_language_data_may_have_a_name_that_looks_like_a_pattern(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "[data]*?"
    folder.mkdir()
    for language in ("osd", "ara", "eng"):
        (folder / f"{language}.traineddata").touch()
    monkeypatch.setenv("TESSDATA_PREFIX", str(folder))
    assert document_worker.languages() == ["eng", "ara"]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("pandoc-en.docx", "wordprocessingml.document", "This handbook tells the harbour"),
        ("pandoc-ar.docx", "wordprocessingml.document", "يشرح هذا الدليل"),
        ("pandoc-zh.epub", "epub+zip", "本手册告诉港口员工如何接待船舶"),
        ("libreoffice-ar.pdf", "pdf", "يشرح هذا الدليل"),
        ("libreoffice.xlsx", "spreadsheetml.sheet", "North\t14.5"),
    ],
)
def test_a_document_gives_its_kind_and_its_words_in_reading_order(name: str, kind: str, words: str) -> None:
    extracted = read(FILES / name)
    assert extracted.media_type.endswith(kind)
    assert words in "\n".join(extracted.pages)


def test_the_sheets_of_a_workbook_are_its_pages() -> None:
    assert len(read(FILES / "libreoffice.xlsx").pages) == 4


def test_passages_hold_every_word_and_say_their_headings() -> None:
    extracted = read(FILES / "pandoc-en.docx")
    found = passages(extracted)
    assert extracted.markdown is not None
    assert [each.position for each in found] == list(range(len(found)))
    whole = " ".join(each.text for each in found).split()
    assert whole == " ".join(extracted.markdown).split()
    assert any(each.heading for each in found)


def test_a_long_paragraph_is_cut_into_passages_without_breaking_a_word() -> None:
    words = [f"word{number}" for number in range(2_000)]
    found = passages(Extracted([" ".join(words)]))
    assert " ".join(each.text for each in found).split() == words
    assert all(len(re.findall(r"\w+", each.text)) <= 300 for each in found)


PROBE = """
import os, sys; sys.path += sys.argv[6:]
import document_worker as worker, _system_calls
_system_calls.confine_if_possible = lambda *more: None  # where there is none: the limits alone
def probe(*arguments, **options):
    made = []
    try:
        while True:
            made.append(os.dup(0))
    except OSError:
        raise worker.Refusal(f"{len(made)} can be had")
def extract(self, data, *arguments, **options):
    return real(self, data, *arguments, **options) if data == b"start" else probe()
real, worker.Library.extract = worker.Library.extract, extract
worker.check_xml = worker.check_xml if PROBED == "library" else probe
worker.main()
"""


@pytest.mark.parametrize("probed", ["parser", "library"])
def test_what_reads_a_document_can_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probed: str
) -> None:
    monkeypatch.setattr(_extraction, "BOOTSTRAP", f"PROBED = {probed!r}{PROBE}")
    (tmp_path / "a.csv").write_text("a,b")
    (tmp_path / "latin.txt").write_bytes(b"\xe9\xe8")
    paths = [FILES / "pandoc-en.docx"]
    if probed == "library":
        paths += [FILES / "libreoffice-ar.pdf", FILES / "pandoc-zh.epub"]
        paths += [tmp_path / "a.csv", tmp_path / "latin.txt"]
    for path in paths:
        assert refusal(path) == f"{path.name}: 0 can be had"


def test_pictures_are_read_by_a_process_that_can_open_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tesseract's data. A PDF with text is not read by it: see above."""
    image = Image.new("L", (900, 200), 255)
    font = ImageFont.load_default(48)
    ImageDraw.Draw(image).text((20, 60), "The harbour is closed", fill=0, font=font)
    for name in ("scan.png", "scan.pdf"):
        image.save(tmp_path / name)
        if not document_worker.languages():
            assert refusal(tmp_path / name).endswith(document_worker.NO_TESSERACT)
            continue
        assert read(tmp_path / name).pages == ["The harbour is closed"]
        with monkeypatch.context() as patched:
            patched.setattr(_extraction, "BOOTSTRAP", f"PROBED = 'library'{PROBE}")
            assert refusal(tmp_path / name).endswith(
                ": 1 can be had" if name == "scan.png" else ": 0 can be had"
            )


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = remade(tmp_path / "bomb.docx", word__bomb=bytes(300_000_000))
    assert re.search(r"bomb\.docx: unpacked it would have 300,\d{3},\d{3} bytes", refusal(path))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("before", ["", f"<!--{'x' * 100_000}-->"])
def test_an_office_document_that_declares_entities_is_refused(
    tmp_path: Path, encoding: str, before: str
) -> None:
    xml = f'{before}<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d>&x;</d>'.encode(encoding)
    assert "declares a document type" in refusal(remade(tmp_path / "xxe.docx", word__document=xml))


def test_an_opendocument_text_that_declares_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "laughs.odt"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        out.writestr("content.xml", '<!DOCTYPE d [<!ENTITY x "xx">]><d>&x;</d>')
    assert "declares a document type" in refusal(path)


def test_a_document_whose_text_breaks_off_is_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "pandoc-en.docx") as archive:
        xml = archive.read(MAIN)
    path = remade(tmp_path / "half.docx", word__document=xml[: len(xml) // 2])
    assert refusal(path) == "half.docx: it is damaged (word/document.xml is not well-formed)"


def test_macros_are_named_and_not_run(tmp_path: Path) -> None:
    path = remade(tmp_path / "macro.docm")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("word/vbaProject.bin", b"\0" * 100)
    assert read(path).warnings == ["it contains macros, which are not run"]


def test_the_content_decides_where_a_name_lies(tmp_path: Path) -> None:
    path = tmp_path / "lies.pdf"
    path.write_bytes((FILES / "pandoc-en.docx").read_bytes())
    extracted = read(path)
    assert "This handbook" in extracted.pages[0]
    assert extracted.warnings == ["its name ends in .pdf, but it is a Word document"]


def test_an_archive_of_something_else_is_no_document(tmp_path: Path) -> None:
    path = remade(tmp_path / "other.docx", without=MAIN)
    assert refusal(path) == "other.docx: it is an archive; add the documents in it one by one"


def test_an_encrypted_pdf_is_named_so(tmp_path: Path) -> None:
    import pypdf

    writer = pypdf.PdfWriter(clone_from=str(FILES / "libreoffice-ar.pdf"))
    writer.encrypt("a password", algorithm="AES-256")
    held = io.BytesIO()
    writer.write(held)
    path = tmp_path / "secret.pdf"
    path.write_bytes(held.getvalue())
    assert refusal(path) == "secret.pdf: it is encrypted"


@pytest.mark.parametrize("name", ["libreoffice-ar.pdf", "pandoc-en.docx"])
def test_half_a_document_is_damaged(tmp_path: Path, name: str) -> None:
    data = (FILES / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(data[: len(data) // 2])
    assert refusal(path) in (
        f"{name}: it is damaged",
        f"{name}: it is damaged, or of a form that is not read",
    )


def test_what_is_no_file_with_content_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to(FILES / "README.md")
    (tmp_path / "binary.csv").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(range(256)))
    with open(tmp_path / "huge.csv", "wb") as file:
        file.truncate(2 * 1024**3)
    assert refusal(tmp_path / "empty.txt") == "empty.txt: it is empty"
    assert refusal(tmp_path / "binary.csv") == "binary.csv: documents of its kind cannot be read"
    assert refusal(tmp_path).endswith("it is a folder; expected a file")
    for name in ("pipe.txt", "link.txt", "huge.csv", "none.txt"):
        assert refusal(tmp_path / name).startswith(f"{name}: it ")
