"""Documents that are made to take a reader in: each is text or one sentence, within the limits of the process
that reads it, and holds nothing of this machine."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from pathlib import Path

import pytest
from fastrpc.tools.knowledge._extraction import ExtractionError, extract_data, passages

pytestmark = pytest.mark.long

FILES = Path(__file__).parent.parent / "data" / "knowledge"
SECRET = "zq-not-for-documents"
WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
MAIL = "From: a@b.c\r\nTo: d@e.f\r\nSubject: x\r\nMIME-Version: 1.0\r\n"


def remade(name: str, members: dict[str, str | bytes]) -> bytes:
    """A file of the test data with members changed or added."""
    made = io.BytesIO()
    with zipfile.ZipFile(FILES / name) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for each in source.namelist():
            if each not in members:
                out.writestr(each, source.read(each))
        for each, data in members.items():
            out.writestr(each, data)
    return made.getvalue()


def word(body: str) -> bytes:
    return remade("pandoc-en.docx", {"word/document.xml": f"{WORD}{body}</w:body></w:document>"})


def with_a_wrong_size(data: bytes, member: bytes, size: int) -> bytes:
    """An archive whose headers say another size of a member's content."""
    found = bytearray(data)
    for match in re.finditer(re.escape(member), data):
        at = match.start()
        if data[at - 30 : at - 26] == b"PK\3\4":
            found[at - 8 : at - 4] = size.to_bytes(4, "little")
        elif data[at - 46 : at - 42] == b"PK\1\2":
            found[at - 22 : at - 18] = size.to_bytes(4, "little")
    return bytes(found)


def pdf(*objects: str) -> bytes:
    """A PDF of objects, of which the first is the catalogue."""
    text, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    text += (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
        f"startxref\n{len(text)}\n%%EOF"
    )
    return text.encode()


def sheet(rows: str, dimension: str) -> bytes:
    data = f'{SHEET}<dimension ref="{dimension}"/><sheetData>{rows}</sheetData></worksheet>'
    return remade("libreoffice.xlsx", {"xl/worksheets/sheet1.xml": data})


def book(secret: str) -> bytes:
    """An EPUB one of whose chapters is another file of this machine."""
    with zipfile.ZipFile(FILES / "pandoc-zh.epub") as source:
        contents = source.read("EPUB/content.opf").decode()
    up = "../" * 12
    return remade(
        "pandoc-zh.epub",
        {
            "EPUB/content.opf": contents.replace("text/ch001.xhtml", f"{up}{secret.lstrip('/')}"),
            f"{up}{secret.lstrip('/')}": "evil",
        },
    )


WHOLE = (FILES / "pandoc-en.docx").read_bytes()
PAGES = "<</Type/Pages/Count 10/Kids["
EXPONENTIAL = [
    "<</Type/Catalog/Pages 2 0 R>>",
    *(f"{PAGES}{f'{number + 1} 0 R ' * 10}]>>" for number in range(2, 14)),
    "<</Type/Page/MediaBox[0 0 9 9]>>",
]
FORM = "<</XObject<</F 5 0 R>>>>"
ITSELF = [
    EXPONENTIAL[0],
    "<</Type/Pages/Kids[3 0 R]/Count 1>>",
    f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources{FORM}>>",
    "<</Length 5>>\nstream\n/F Do\nendstream",
    f"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources{FORM}/Length 5>>\nstream\n/F Do\nendstream",
]


def forms(name: str) -> bytes:
    """A PDF whose page draws a form ten times, which draws one ten times, and so on: 10**12 in all."""
    begin = f"<</Length {10 * len(name)}/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F "
    made = [f"{begin}{number} 0 R>>>>>>\nstream\n{name * 10}\nendstream" for number in range(6, 18)]
    last = "<</Length 0/Type/XObject/Subtype/Form/BBox[0 0 9 9]>>\nstream\n\nendstream"
    return pdf(EXPONENTIAL[0], *ITSELF[1:3], ITSELF[3], *made, last)


PARTS = 10_000
NESTED = "".join(
    f'Content-Type: multipart/mixed; boundary="b{number}"\r\n\r\n--b{number}\r\n' for number in range(PARTS)
)
ENDS = "".join(f"--b{number}--\r\n" for number in reversed(range(PARTS)))
DAMAGED, TOO_LARGE = "it is damaged", "unpacked it is larger than is allowed"
NO_WORDS = ("it is damaged", "its page holds no text")  # pypdf from 7.1 on leaves such a form out

CASES = [
    *((f"cut-{size}.docx", WHOLE[: int(len(WHOLE) * size)], DAMAGED) for size in (0.1, 0.9, 0.999)),
    ("no-end.docx", WHOLE[:-10], DAMAGED),
    ("repetitive.docx", word(f"<w:p><w:r><w:t>{'a' * 9_000_000}</w:t></w:r></w:p>"), TOO_LARGE),
    (
        "lies.docx",
        with_a_wrong_size(word(f"<w:t>{'a' * 9_000_000}</w:t>"), b"word/document.xml", 100),
        DAMAGED,
    ),
    ("deep.docx", word("<w:tbl><w:tr><w:tc>" * 50_000 + "</w:tc></w:tr></w:tbl>" * 50_000), TOO_LARGE),
    ("own-child.pdf", pdf(EXPONENTIAL[0], "<</Type/Pages/Kids[2 0 R]/Count 1>>"), DAMAGED),
    ("exponential.pdf", pdf(*EXPONENTIAL), DAMAGED),
    (
        "own-parent.pdf",
        pdf(
            EXPONENTIAL[0],
            "<</Type/Pages/Kids[3 0 R]/Count 1/Parent 3 0 R>>",
            "<</Type/Page/Parent 2 0 R>>",
        ),
        DAMAGED,
    ),
    ("nested.eml", f"{MAIL}{NESTED}Content-Type: text/plain\r\n\r\nthe words\r\n{ENDS}".encode(), ""),
    ("own-form.pdf", pdf(*ITSELF), NO_WORDS),
    *(
        (f"forms-{at}.pdf", forms(name), "it draws forms within forms; at most 1,000,000 are drawn")
        for at, name in enumerate(("/F Do\n", "/#46 Do\n"))
    ),
    (
        "letters-in-letters.eml",
        (MAIL + "Content-Type: message/rfc822\r\n\r\n" * 50_000 + "hi").encode(),
        "it is damaged, or nested too deeply to be read",
    ),
    ("rows.xlsx", sheet('<row r="1000000000"><c r="A1000000000"><v>7</v></c></row>', "A1:A1000000000"), ""),
    ("declared.xlsx", sheet('<row r="1"><c r="A1"><v>7</v></c></row>', "A1:XFD1048576"), ""),
    ("far.xlsx", sheet('<row r="1048576"><c r="XFD1048576"><v>7</v></c></row>', "A1:XFD1048576"), ""),
]


def read(name: str, data: bytes) -> str:
    """What is answered for a document: its text, or the sentence."""
    try:
        extracted = asyncio.run(extract_data(data, name))
    except ExtractionError as error:
        return str(error)
    return "\n".join(each.text for each in passages(extracted))


@pytest.mark.parametrize(("name", "data", "sentence"), CASES, ids=[name for name, _, _ in CASES])
def test_what_is_made_to_take_a_reader_in_is_text_or_one_sentence(
    name: str, data: bytes, sentence: str | tuple[str, ...]
) -> None:
    found = read(name, data)
    if sentence:
        assert found.removeprefix(f"{name}: ").startswith(sentence)
        assert "\n" not in found
    else:
        assert len(found) < 100_000
        assert "the words" in found if name == "nested.eml" else "7" in found


def test_a_book_reads_no_file_beside_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xhtml"
    secret.write_text(f"<html><body>{SECRET}</body></html>")
    assert SECRET not in read("dots.epub", book(str(secret)))
    assert secret.read_text().count(SECRET) == 1
    assert sorted(tmp_path.iterdir()) == [secret]


@pytest.mark.parametrize("name", ["a.html", "a.xhtml", "a.epub", "a.docx"])
def test_an_entity_brings_no_file_in(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text(SECRET)
    entity = f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>'
    page = f'{entity}<html xmlns="http://www.w3.org/1999/xhtml"><body><p>&x; words</p></body></html>'
    relations = f"{entity}<Relationships>&x;</Relationships>"
    data = {
        "a.epub": remade("pandoc-zh.epub", {"EPUB/text/ch001.xhtml": page}),
        "a.docx": remade("pandoc-en.docx", {"word/_rels/document.xml.rels": relations}),
    }.get(name, page.encode())
    assert SECRET not in read(name, data)
