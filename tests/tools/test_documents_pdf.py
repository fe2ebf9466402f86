"""The text of PDFs: files made on the spot, sound, in Arabic, encrypted, broken and hostile."""

from __future__ import annotations

import asyncio
import io
import zlib

import pytest
from fastrpc.tools._page_text import in_reading_order
from fastrpc.tools.agent import _documents
from fastrpc.tools.agent._documents import pdf as documents_pdf

from fastrpc import ToolError, processes


def pdf(
    pages: list[bytes], *, objects: dict[int, bytes] | None = None, font: bytes = b"", info: bytes = b""
) -> bytes:
    """Return a PDF whose pages draw those streams; objects may be added or put in place."""
    found = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        3: font or b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: b"<< " + info + b" >>",
    }
    kids = []
    for index, stream in enumerate(pages):
        number = 10 + index * 2
        kids.append(b"%d 0 R" % number)
        found[number] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % (number + 1)
        )
        found[number + 1] = stream_object(stream)
    found[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(pages))
    found.update(objects or {})
    out = io.BytesIO(b"%PDF-1.7\n")
    out.seek(0, io.SEEK_END)
    places = {}
    for number in sorted(found):
        places[number] = out.tell()
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, found[number]))
    table = out.tell()
    out.write(b"xref\n0 1\n0000000000 65535 f \n")
    for number, place in places.items():
        out.write(b"%d 1\n%010d 00000 n \n" % (number, place))
    out.write(b"trailer << /Size 1000 /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % table)
    return out.getvalue()


def stream_object(data: bytes, extra: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), extra, data)


def lines(*texts: str) -> bytes:
    """A page's stream: lines of text from the top down."""
    drawn = b"".join(b"(%s) Tj 0 -20 Td " % text.encode("latin-1") for text in texts)
    return b"BT /F 12 Tf 50 780 Td " + drawn + b"ET"


def read(data: bytes) -> _documents.Document:
    async def ended() -> _documents.Document:
        try:
            return await _documents.pdf_text(data)
        finally:
            await processes.close()

    return asyncio.run(ended())


def test_each_page_has_a_mark_and_its_lines() -> None:
    """ReadDocs: each page of a PDF has its mark and its lines."""
    data = pdf(
        [lines("Tides of Northbay", "High water 06:15"), lines("The second page")], info=b"/Title (Tides)"
    )
    document = read(data)
    assert document.title == "Tides"
    assert document.text == (
        "[page 1 of 2]\n\nTides of Northbay\nHigh water 06:15\n\n[page 2 of 2]\n\nThe second page"
    )


def test_columns_come_as_they_are_drawn() -> None:
    left = b"BT /F 12 Tf 50 700 Td (left one) Tj 0 -20 Td (left two) Tj ET "
    right = b"BT /F 12 Tf 320 700 Td (right one) Tj 0 -20 Td (right two) Tj ET"
    text = read(pdf([left + right])).text
    assert text.split("\n")[2:] == ["left one", "left two", "right one", "right two"]


ARABIC_FONT = {
    3: b"<< /Type /Font /Subtype /Type0 /BaseFont /Naskh /Encoding /Identity-H /DescendantFonts [100 0 R] "
    b"/ToUnicode 101 0 R >>",
    100: b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Naskh /CIDSystemInfo << /Registry (Adobe) "
    b"/Ordering (Identity) /Supplement 0 >> /DW 500 >>",
}


def arabic_pdf(*drawn: str) -> bytes:
    """A page that draws glyphs as layout programs do: from left to right, letters as shapes."""
    glyphs = sorted(set("".join(drawn)))
    entries = "".join(f"<{index + 1:04X}> <{ord(glyph):04X}>\n" for index, glyph in enumerate(glyphs))
    table = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"
        "1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
        f"{len(glyphs)} beginbfchar\n{entries}endbfchar\nendcmap end end"
    )
    parts = []
    for line in drawn:
        shown = "".join(f"{glyphs.index(glyph) + 1:04X}" for glyph in line)
        parts.append(f"<{shown}> Tj 0 -20 Td ")
    stream = f"BT /F 12 Tf 50 700 Td {''.join(parts)}ET".encode()
    return pdf([stream], objects={**ARABIC_FONT, 101: stream_object(table.encode())})


def test_arabic_is_read_in_its_order_with_letters_and_numbers_as_written() -> None:
    """ReadDocs: Arabic in a PDF is read in its order."""
    # As it is drawn: from the left end of the line to the right, in the shapes of letters.
    drawn = "(\ufee1\ufeee\ufef4\ufedf\ufe8d) \u0662\u0660\u0662\u0666 \ufee1\ufefc\ufeb4\ufedf\ufe8d"
    text = read(arabic_pdf(drawn, "v2.0 beta")).text
    assert text.split("\n")[2:] == ["السلام ٢٠٢٦ (اليوم)", "v2.0 beta"]


def test_the_pieces_of_a_line_are_put_in_reading_order() -> None:
    pieces = [
        "\n",
        "٦٢٠٢",
        " مارس ",
        "٤",
        " في ",
        "ليلى الحدّاد",
        "كتبته ",
        "\n",
        "one ",
        "two",
    ]
    from_the_left = [(piece, float(place)) for place, piece in enumerate(pieces)]
    assert in_reading_order(from_the_left) == "\nكتبته ليلى الحدّاد في ٤ مارس ٢٠٢٦\none two"
    assert in_reading_order([(each, 0.0) for each in (".«", "نعم", "» :", "قال")]) == "قال: «نعم»."


def test_pieces_that_are_drawn_from_the_right_are_left_in_their_order() -> None:
    drawn = [("السفينة وغاطسها", 403.0), (" ", 399.0), ("1", 399.0), (" يصعد المرشدون", 72.0), (".", 72.0)]
    assert in_reading_order(drawn) == "السفينة وغاطسها 1 يصعد المرشدون."
    scattered = [("السفينة", 216.0), ("تستقبل", 262.0), ("هذا ", 301.0), ("كيف", 269.0)]
    assert in_reading_order(scattered) == "هذا كيف تستقبل السفينة"


def encrypted(password: str) -> bytes:
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([lines("A secret tide")])))
    writer.encrypt(password, "owner", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_an_encrypted_pdf_needs_its_password_and_says_so() -> None:
    with pytest.raises(ToolError, match=r"^The PDF cannot be read without its password"):
        read(encrypted("harbour"))


def test_a_pdf_that_is_only_protected_is_read() -> None:
    assert "A secret tide" in read(encrypted("")).text


def test_a_pdf_of_pictures_says_that_there_is_no_text() -> None:
    with pytest.raises(ToolError, match=r"^The PDF contains no text, only pictures \(2 pages\)\.$"):
        read(pdf([b"0 0 100 100 re f", b"q 1 0 0 1 0 0 cm Q"]))


SOUND = pdf([lines("A tide"), lines("Another")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>not a PDF</html>",
        b"%PDF-1.7\n",
        b"%PDF-1.7\n" + bytes(range(256)) * 50,
        SOUND[: len(SOUND) // 3],
        pdf([lines("x")], objects={1: b"<< /Type /Catalog /Pages 1 0 R >>"}),
        pdf([lines("x")], objects={2: b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"}),
        pdf([lines("x")], objects={2: b"<< /Type /Pages /Kids 2 0 R /Count 99999999 >>"}),
        pdf([lines("x")], objects={11: b"[" * 50_000}),
    ],
)
def test_what_is_no_pdf_or_broken_is_an_error_in_a_sentence(data: bytes) -> None:
    """ReadDocs: a PDF with a password, one of pictures and a broken one are errors in a sentence."""
    with pytest.raises(
        ToolError, match=r"^The PDF (could not be read|has no pages|contains no text)[^\n]*\.$"
    ):
        read(data)


def test_a_pdf_whose_table_is_wrong_is_read_all_the_same() -> None:
    assert "A tide" in read(SOUND.replace(b"startxref\n", b"startxref\n9")).text


def test_a_page_that_is_broken_does_not_cost_the_others() -> None:
    bomb = zlib.compress(b"(x) Tj " * 3_000_000, 9)  # 21 MB out of 40 KB; pypdf refuses, or it takes its time
    data = pdf(
        [lines("A tide"), b"", lines("The third")],
        objects={13: stream_object(bomb[:-500] + b"rubbish" * 10, b"/Filter /NoSuchDecode")},
    )
    text = read(data).text
    assert "A tide" in text
    assert "The third" in text
    assert "[page 2 of 3]\n\n[this page could not be read: " in text


def test_a_bomb_ends_within_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_documents, "MEMORY", 300 * 1024 * 1024)
    monkeypatch.setattr(_documents, "SECONDS", 15)
    bomb = zlib.compress(b"\0" * 600_000_000, 9)
    data = pdf([b""], objects={11: stream_object(bomb, b"/Filter /FlateDecode")})
    with pytest.raises(ToolError, match=r"^The PDF "):
        read(data)


def test_pages_that_take_too_long_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_pdf, "PAGES", 1)
    _, text = documents_pdf.read(SOUND)
    assert text == "[page 1 of 2]\n\nA tide\n\n[pages 2 to 2 are left out]"
    monkeypatch.setattr(documents_pdf, "PAGES", 10)
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(documents_pdf.time, "monotonic", lambda: next(clock))
    _, text = documents_pdf.read(SOUND)
    assert text == "[page 1 of 2]\n\nA tide\n\n[pages 2 to 2 are left out: reading them takes too long]"
