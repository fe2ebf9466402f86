"""A program, not a module: turns one document into Markdown and text by page, within limits.

It reads the document on descriptor 0 and answers with one line of JSON on descriptor 1. Documents are
untrusted, and the library that reads them is native code. Memory, processor time and written files are
therefore bounded before the library is imported. Before the library or the parsers of archives touch the
document, no further descriptor can be opened, so they can open no file and no socket. Reading pictures leaves
one descriptor free, for tesseract's language data, and files of other folders cannot be opened. A process
that may not read pictures answers that another one must. The program imports xberg, pypdf and the standard
library, and three files of fastrpc. Starting costs a quarter of a second.

The content decides what a document is; its name decides only among kinds of text.
"""

from __future__ import annotations

import asyncio
import codecs
import glob
import html
import io
import json
import os
import re
import resource
import sys
import zipfile
import zlib
from xml.parsers import expat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PAGES = 2_000
TEXT_BYTES = 20_000_000
UNPACKED_BYTES = 256 * 1024 * 1024  # of all members of a container
MEMBERS = 10_000
OCR_SECONDS = 45  # the rest of a minute is for the other work
LONG_SECONDS = 2.0  # after which a PDF is checked for endless content
FORMS = 1_000_000  # drawn on all pages, which takes some seconds
OCR_LANGUAGES = 6  # the most that are tried
SURE = 0.8  # tesseract's confidence in the right language; in a wrong one up to 0.5, in the same script more
HEAD = 4096

OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
DOCX = OFFICE + "wordprocessingml.document"
XLSX = OFFICE + "spreadsheetml.sheet"
PPTX = OFFICE + "presentationml.presentation"
PDF, EPUB, EML, HTML, CSV = (
    "application/pdf",
    "application/epub+zip",
    "message/rfc822",
    "text/html",
    "text/csv",
)
TEXT, MARKDOWN = "text/plain", "text/markdown"

NAMES = {
    PDF: "a PDF document",
    DOCX: "a Word document",
    XLSX: "an Excel workbook",
    PPTX: "a PowerPoint presentation",
    OPEN_DOCUMENT + "text": "an OpenDocument text",
    OPEN_DOCUMENT + "spreadsheet": "an OpenDocument spreadsheet",
    EPUB: "an EPUB book",
}
SUFFIXES = {
    ".csv": CSV,
    ".docm": DOCX,
    ".docx": DOCX,
    ".eml": EML,
    ".epub": EPUB,
    ".htm": HTML,
    ".html": HTML,
    ".markdown": MARKDOWN,
    ".md": MARKDOWN,
    ".ods": OPEN_DOCUMENT + "spreadsheet",
    ".odt": OPEN_DOCUMENT + "text",
    ".pdf": PDF,
    ".pptm": PPTX,
    ".pptx": PPTX,
    ".tsv": CSV,
    ".xhtml": HTML,
    ".xlsm": XLSX,
    ".xlsx": XLSX,
}
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
CONTENT = (
    "content.xml",
    "ppt/slides/slide",
    "word/document.xml",
    "xl/sharedStrings.xml",
    "xl/worksheets/sheet",
)
HEADER_LINE = re.compile(rb"(?:[!-9;-~]+:[ \t][^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*){2,}")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
FOOTNOTE = re.compile(r"^\[\^[^\]\n]+\]:", re.MULTILINE)
HTML_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{0,2000})</title", re.IGNORECASE)
HTML_LANGUAGE = re.compile(r"<html[^<>]{0,1000}\blang=[\"']?([\w-]{1,35})", re.IGNORECASE)
TOO_MANY_PAGES = re.compile(r"too many pages: (\d+)")
ACTIONS = re.compile(rb"/(?:JavaScript|JS|Launch)\b")
TESSDATA = (
    "/usr/share/tesseract-ocr/*/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
NO_TESSERACT = "reading text in pictures takes tesseract, which is not installed here"


class Refusal(Exception):
    """The document is not read: the end of a sentence that begins with its name and a colon."""


class PicturesWanted(Exception):
    """Another process, one that may read pictures, must read the document."""


class Order:
    """The request: the document, its name for messages, and whether tesseract may read its pictures."""

    def __init__(self, data: bytes, name: str, media_type: str, pictures: bool = False) -> None:
        self.data = data
        self.pictures = pictures
        self.library: Library | None = None
        self.media_type = media_type.partition(";")[0].strip().lower()
        self.suffix = os.path.splitext(name)[1].lower()
        self.warnings: list[str] = []


# --- the kind of document ----------------------------------------------------------------------------------


def kind_of(order: Order) -> str:
    """Return the media type of a document, by its content. Raises Refusal for anything else."""
    data = order.data
    if b"%PDF-" in data[:1024]:
        return PDF
    for beginning, image in IMAGES:
        if data.startswith(beginning):
            return image
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"PK\x03\x04"):
        return kind_of_archive(order)
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise Refusal("it is encrypted")
        raise Refusal("it has the format of Office before 2007; save it as DOCX, XLSX or PPTX")
    return kind_of_text(order)


def kind_of_archive(order: Order) -> str:
    library_for(order)
    try:
        with zipfile.ZipFile(io.BytesIO(order.data)) as archive:
            members = archive.infolist()
            if len(members) > MEMBERS:
                raise Refusal(f"it holds {len(members):,} files; at most {MEMBERS:,} are read")
            size = sum(member.file_size for member in members)
            if size > UNPACKED_BYTES:
                raise Refusal(f"unpacked it would have {size:,} bytes; at most {UNPACKED_BYTES:,} are read")
            names = set(archive.namelist())
            if any(member.flag_bits & 1 for member in members):
                raise Refusal("it is encrypted")
            declared = ""
            if "mimetype" in names and archive.getinfo("mimetype").file_size < 200:
                declared = archive.read("mimetype").decode("ascii", "replace").strip()
            if "[Content_Types].xml" in names or declared.startswith(OPEN_DOCUMENT):
                for name in archive.namelist():
                    if name.endswith((".xml", ".rels")):
                        check_xml(archive, name)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, zlib.error):
        raise Refusal("it is damaged") from None
    if any(name.endswith("vbaProject.bin") for name in names):
        order.warnings.append("it contains macros, which are not run")
    for main_part, kind in (
        ("word/document.xml", DOCX),
        ("xl/workbook.xml", XLSX),
        ("ppt/presentation.xml", PPTX),
    ):
        if main_part in names:
            return kind
    if declared in NAMES:
        return declared
    raise Refusal("it is an archive; add the documents in it one by one")


def check_xml(archive: zipfile.ZipFile, name: str) -> None:
    """Read a part of a document completely. Raises Refusal for one that declares a document type, and for one
    of the content that is not well-formed: xberg would silently leave out the text after the error."""
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse_type
    try:
        with archive.open(name) as file:
            while piece := file.read(1 << 20):
                parser.Parse(piece, False)
        parser.Parse(b"", True)
    except expat.ExpatError:
        if name.startswith(CONTENT):
            raise Refusal(f"it is damaged ({name} is not well-formed)") from None


def refuse_type(*declared: Any) -> None:
    raise Refusal("it declares a document type (DTD), as only hostile documents of this kind do")


def kind_of_text(order: Order) -> str:
    head = order.data[:HEAD]
    if encoding_by_zeros(order.data) is None and b"\0" in head:
        raise Refusal("documents of its kind cannot be read")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
    if start.startswith(b"{\\rtf"):
        raise Refusal("it is RTF; save it as DOCX")
    if start.startswith((b"<!doctype html", b"<html")):
        return HTML
    said = order.media_type if order.media_type in (CSV, EML, HTML, MARKDOWN) else SUFFIXES.get(order.suffix)
    if said in (CSV, HTML, MARKDOWN) or (said == EML and HEADER_LINE.match(head)):
        return said
    return TEXT


def encoding_by_zeros(data: bytes) -> str | None:
    """Return the encoding of text in UTF-16 or UTF-32: by its byte order mark, else because nearly all zero
    bytes are in the same half of a character."""
    for mark, encoding in (
        (b"\xff\xfe\0\0", "utf-32"),
        (b"\0\0\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if data.startswith(mark):
            return encoding
    sample = data[:65_536]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) <= 4 * min(even, odd):  # a character such as U+4E00 has a zero in its other half
        return None
    encoding = "utf-16-be" if even else "utf-16-le"
    text = sample.decode(encoding, "replace")
    strange = sum(not (character.isprintable() or character.isspace()) for character in text)
    return encoding if strange * 20 < len(text) else None


# --- reading -----------------------------------------------------------------------------------------------


def read(order: Order) -> dict[str, Any]:
    """Return the answer for a document. Raises Refusal, or any exception of a library."""
    kind = kind_of(order)
    expected = SUFFIXES.get(order.suffix, kind)
    if kind in NAMES and expected != kind:
        order.warnings.append(f"its name ends in {order.suffix}, but it is {NAMES[kind]}")
    if kind == PDF and ACTIONS.search(order.data):
        order.warnings.append("it contains JavaScript or a launch action, which is not run")
    document = read_text(order) if kind in (TEXT, MARKDOWN) else read_by_library(order, kind)
    markdown = document.pages if document.has_form and kind != TEXT else None
    pages = document.pages if markdown is None else [plain_text(page) for page in markdown]
    size = sum(len(page.encode("utf-8", "replace")) for page in pages)
    if size > TEXT_BYTES:
        raise Refusal(f"it holds {size:,} bytes of text; at most {TEXT_BYTES:,} are read")
    if not any(page.strip() for page in pages):
        raise Refusal("it contains no text")
    return {
        "pages": pages,
        "markdown": markdown,
        "media_type": kind,
        "title": " ".join(document.title.split())[:500],
        "language": document.language[:35],
        "warnings": order.warnings,
    }


class Document:
    """The result: pages in Markdown, or plain text if `has_form` is false."""

    def __init__(
        self, pages: list[str], title: str = "", language: str = "", *, has_form: bool = True
    ) -> None:
        self.pages = pages
        self.title = title
        self.language = language
        self.has_form = has_form


def read_text(order: Order) -> Document:
    """Return text unchanged: in UTF-8 or UTF-16, else in the encoding that xberg detects."""
    data = order.data
    for encoding in (encoding_by_zeros(data), "utf-8-sig"):
        if encoding:
            try:
                return Document([data.decode(encoding)])
            except UnicodeDecodeError:
                pass
    return Document([library_for(order).extract(data, TEXT, output_format="plain").content])


def read_by_library(order: Order, kind: str) -> Document:
    if kind == PDF:
        return read_pdf(order)
    if kind.startswith("image/"):
        if not languages():
            raise Refusal(f"it is a picture: {NO_TESSERACT}")
        if not order.pictures:
            raise PicturesWanted
        return Document(pages_of(library_for(order).read_picture(order.data, kind)), has_form=False)
    data = order.data
    if kind in (CSV, HTML) and (encoding := encoding_by_zeros(data)):
        data = data.decode(encoding, "replace").encode()
    result = library_for(order).extract(data, kind)
    pages = pages_of(result)
    if kind == DOCX:  # notes belong to the whole, not to a page
        note = FOOTNOTE.search(result.content)
        if note and note[0] not in pages[-1]:
            pages[-1] += "\n\n" + result.content[note.start() :]
    title, language = str(result.metadata.title or ""), str(result.metadata.language or "")
    if kind == HTML:
        head = data[: 16 * HEAD].decode("utf-8", "replace")
        title = html.unescape(found[1]) if (found := HTML_TITLE.search(head)) else title
        language = found[1] if (found := HTML_LANGUAGE.search(head)) else language
    return Document(pages, title, language)


def read_pdf(order: Order) -> Document:
    """Return a PDF's pages: by pypdf if they hold right-to-left script, which xberg does not put in order; by
    tesseract if they hold no text. Raises Refusal if no page has text."""
    in_order = reader_of_pages()
    library = library_for(order)
    result = library.extract(order.data, PDF)
    document = Document(
        pages_of(result), str(result.metadata.title or ""), str(result.metadata.language or "")
    )
    if in_order and any(map(RIGHT_TO_LEFT.search, document.pages)):
        document.pages, document.has_form = in_order(order.data, document.pages), False
    pages = document.pages
    empty = [number for number, page in enumerate(pages, 1) if not plain_text(page).strip()]
    if not empty:
        return document
    if library.languages and not order.pictures:
        raise PicturesWanted
    problem = NO_TESSERACT
    if library.languages:
        problem = "tesseract found no text in them"
        try:
            found = pages_of(library.read_picture(order.data, PDF, empty))
            for number in empty:
                pages[number - 1] = found[number - 1]
        except Exception:
            problem = "tesseract could not read them"
    left = [number for number in empty if not pages[number - 1].strip()]
    if len(left) == len(pages):
        hold = f"{len(pages)} pages hold" if len(pages) > 1 else "page holds"
        raise Refusal(f"its {hold} no text, pictures at most; {problem}")
    if left:
        some = ", ".join(map(str, left[:10])) + (" and others" if len(left) > 10 else "")
        order.warnings.append(f"pages without text: {some}; {problem}")
    return document


def pages_of(result: Any) -> list[str]:
    """Return the pages of xberg's result, or the whole as one page."""
    pages = [page_markdown(page) for page in result.pages or ()]
    if pages and (any(page.strip() for page in pages) or not result.content.strip()):
        return pages
    return [result.content]


def page_markdown(page: Any) -> str:
    text: str = page.content
    if page.sheet_name:
        text = f"## {page.sheet_name}\n\n{text}"
    return text


def reader_of_pages() -> Any:
    """Return a function that puts pages of right-to-left script into reading order, which xberg does not;
    None without pypdf."""
    try:
        import _page_text  # type: ignore[import-not-found]
        import pypdf

        _page_text.load()
    except ImportError:
        return None

    def read_pages(data: bytes, pages: list[str]) -> list[str]:
        try:
            reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
            if reader.is_encrypted:
                reader.decrypt("")
            return [
                _page_text.page_text(reader.pages[index]) if RIGHT_TO_LEFT.search(page) else plain_text(page)
                for index, page in enumerate(pages)
            ]
        except MemoryError:
            raise
        except Exception:  # xberg could read it; then its order is used
            return [plain_text(page) for page in pages]

    return read_pages


def counter_of_forms() -> Any:
    """Return a function that counts the forms that a PDF draws; None without pypdf."""
    try:
        import _pdf_forms  # type: ignore[import-not-found]
    except ImportError:
        return None
    return _pdf_forms.count_of


class Library:
    """xberg, and tesseract's languages. Where pictures are read, tesseract's data are the only files that can
    be opened from then on."""

    def __init__(self, pictures: bool) -> None:
        try:
            import xberg
        except ImportError:
            raise Refusal(
                "reading it takes xberg; install it with: pip install 'fastrpc-mcp[documents]'"
            ) from None
        self.xberg: Any = xberg
        self.languages = languages()
        self.count_forms = counter_of_forms()
        self.loop = asyncio.new_event_loop()
        codecs.lookup("cp437")  # of names in archives
        if pictures and self.languages:
            import _readable_folders  # type: ignore[import-not-found]

            _readable_folders.confine_if_possible([os.environ["TESSDATA_PREFIX"]])
        self.extract(b"start", TEXT)  # this starts its threads while descriptors are free

    def read_picture(self, data: bytes, kind: str, pages: list[int] | None = None) -> Any:
        """Return tesseract's text, in the language of its highest confidence: a page is in one language, and
        languages together read worse than each alone."""
        best, best_score = None, -1.0
        sample = {"force_ocr_pages": pages[:1]} if pages else {}
        for language in self.languages:
            result = self.extract(data, kind, [language], **sample)
            score = max(
                (page.ocr_confidence.score for page in result.pages if page.ocr_confidence), default=0.0
            )
            if score > best_score:
                best, best_score, best_language = result, score, language
            if score >= SURE:
                break
        if pages and len(pages) > 1:
            return self.extract(data, kind, [best_language], force_ocr_pages=pages)
        return best

    def extract(self, data: bytes, kind: str, ocr: list[str] | None = None, **options: Any) -> Any:
        """Return the result for a document, with tesseract in those languages. Raises RuntimeError."""
        x = self.xberg
        config = x.ExtractionConfig(
            **{"output_format": "plain" if ocr else "markdown", **options},
            use_cache=False,
            enable_quality_processing=False,
            disable_ocr=not ocr,
            ocr=x.OcrConfig(backend="tesseract", language=ocr) if ocr else None,
            html_options=x.ConversionOptions(extract_metadata=False),
            pages=x.PageConfig(extract_pages=True),
            concurrency=x.ConcurrencyConfig(max_threads=1, max_concurrent_ocr=1),
            max_archive_depth=1,
            security_limits=x.SecurityLimits(max_pages=PAGES, max_archive_size=UNPACKED_BYTES),
            extraction_timeout_secs=OCR_SECONDS if ocr else None,
        )
        given = x.ExtractInput(kind=x.ExtractInputKind.BYTES, bytes=data, mime_type=kind)
        answer = self.loop.run_until_complete(self._within_reason(x.extract(given, config), data, kind))
        if answer.errors:
            raise RuntimeError(answer.errors[0].message)
        return answer.results[0]

    async def _within_reason(self, extracting: Any, data: bytes, kind: str) -> Any:
        """Return xberg's answer. Raises Refusal for a PDF that takes it long, if its content is endless. The
        library draws on threads, so this thread has time to check."""
        task = asyncio.ensure_future(extracting)
        if kind == PDF:
            await asyncio.wait([task], timeout=LONG_SECONDS)
            if not task.done() and self.count_forms is not None and self.count_forms(data) > FORMS:
                raise Refusal(f"it draws forms within forms; at most {FORMS:,} are drawn")
        return await task


def languages() -> list[str]:
    """Return the languages that tesseract has data for, English first."""
    named = os.environ.get("TESSDATA_PREFIX")
    for pattern in TESSDATA if named is None else (glob.escape(named),):
        for folder in sorted(glob.glob(pattern), reverse=True):
            found = [
                name[: -len(".traineddata")] for name in os.listdir(folder) if name.endswith(".traineddata")
            ]
            found = sorted(set(found) - {"osd", "equ"}, key=lambda name: (name != "eng", name))
            if found:
                os.environ["TESSDATA_PREFIX"] = folder
                return found[:OCR_LANGUAGES]
    return []


# --- plain text --------------------------------------------------------------------------------------------

TABLE_RULE = re.compile(r"\|?(?:\s*:?-{3,}:?\s*\|)+\s*(?::?-{3,}:?\s*)?$")
MARKS = (
    (re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL), ""),
    (re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]{0,4000}(?:\s\"[^\"\n]{0,500}\")?\)"), r"\1"),
    (re.compile(r"(?<!\\)(\*\*|__)(?=\S)((?:(?!\1)[^\n]){1,1000})(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\\\w*])([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?![\w*])"), r"\2"),
    (re.compile(r"\\([\\`*_{}\[\]()<>#+.!|~$^-])"), r"\1"),
)


def plain_text(markdown: str) -> str:
    """Return Markdown as text: without its marks, cells between tabs."""
    lines = []
    for line in markdown.split("\n"):
        if line.startswith("|"):
            if TABLE_RULE.match(line):
                continue
            cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
            line = "\t".join(cell.strip() for cell in cells)
        elif line.startswith("#"):
            line = line.lstrip("#").lstrip(" ")
        lines.append(line)
    text = "\n".join(lines)
    for pattern, replacement in MARKS:
        text = pattern.sub(replacement, text)
    return text.strip("\n")


# --- the process -------------------------------------------------------------------------------------------


def library_for(order: Order) -> Library:
    """Return the library, which is imported while descriptors are free. From then on none can be opened,
    except one where pictures are read."""
    if order.library is None:
        import _system_calls  # type: ignore[import-not-found]

        order.library = Library(order.pictures)
        beyond = 0
        if order.pictures:
            beyond = os.dup(0) + 1  # the lowest free number; all below it are in use
            os.close(beyond - 1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (beyond, beyond))
        more = [_system_calls.FILES] if order.pictures else []
        _system_calls.confine_if_possible(_system_calls.NATIVE, *more)
    return order.library


def refusal_for(error: Exception) -> str:
    """Return the end of the sentence for an exception of a library, whose own message means little to
    callers."""
    text = str(error)
    lower = text.lower()
    if "password" in lower or "encrypt" in lower:
        return "it is encrypted"
    if many := TOO_MANY_PAGES.search(text):
        return f"it has {int(many[1]):,} pages; at most {PAGES:,} are read"
    if "limit" in lower or "bomb" in lower:
        return "unpacked it is larger than is allowed"
    return "it is damaged, or of a form that is not read"


def answer(order: Order) -> dict[str, Any]:
    try:
        return read(order)
    except Refusal as refusal:
        return {"error": str(refusal)}
    except PicturesWanted:
        return {"wants_pictures": True}
    except MemoryError:
        return {"error": "reading it takes more memory than is allowed"}
    except Exception as error:
        return {"error": refusal_for(error)}


answering = -1


def main() -> None:
    """Arguments: bytes of memory, seconds, `pictures` or `text`, and in hexadecimal the name and the media
    type."""
    global answering
    memory, seconds, pictures = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "pictures"
    name, media_type = (bytes.fromhex(each).decode("utf-8", "replace") for each in sys.argv[4:6])
    from _process_limits import limit  # type: ignore[import-not-found]

    limit(memory, seconds)
    answering = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    said = answer(Order(data, name, media_type, pictures))
    with open(answering, "wb", closefd=False) as out:
        out.write(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"))
    os._exit(0)


if __name__ == "__main__":
    main()
