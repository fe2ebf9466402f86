"""The processes that read what strangers wrote, taken over by it: on Linux the kernel refuses them what
reading does not take, and the document gets one error. Elsewhere their limits have to do (tests of each)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import _readable_folders, _system_calls
from fastrpc.tools.agent import _documents
from fastrpc.tools.agent._image import pool as image_pool
from fastrpc.tools.agent.read_image import read_image
from fastrpc.tools.knowledge import _extraction
from PIL import Image
from support import escapes, image_calls
from support.escapes import ATTEMPTS

from fastrpc import ToolError

FILES = Path(__file__).parent.parent / "data" / "knowledge"
ON_LINUX = sys.platform == "linux"
DOCUMENT = """
import sys; sys.path += sys.argv[6:]
import document_worker as worker
extract = worker.Library.extract
def taken_over(self, data, *arguments, **options):
    if data == b"start":
        return extract(self, data, *arguments, **options)
    raise worker.Refusal("reached: " + reached())
worker.Library.extract = taken_over
worker.main()
"""
PAGE = """
import sys; sys.path[:] = [path for path in sys.path if path]
from fastrpc.tools.agent._documents import worker
reader = worker._reader
def _reader(kind):
    reader(kind)
    return lambda data: ("", "reached: " + reached())
worker._reader = _reader
worker.main()
"""
IMAGE = """
import sys; sys.path += sys.argv[3:]
import image_worker as worker
def taken_over(file, order):
    raise worker.Refusal(worker.BROKEN, "reached: " + reached())
worker.examine = taken_over
worker.main()
"""
PICTURES = """
def _reading(path):
    _os.close(_os.open(path.format(_os.environ["TESSDATA_PREFIX"]), _os.O_RDONLY))

def _in_a_thread():
    found = []
    thread = _threading.Thread(target=lambda: found.append(_tried()))
    thread.start()
    thread.join()
    return found[0]

_TRIED |= {
    "read the data": lambda: _reading("{}/eng.traineddata"),
    "read linked data": lambda: _reading("{}/ara.traineddata"),
    "read beside the data": lambda: _reading("{}/../elsewhere/secret"),
    "read by a link to a folder": lambda: _reading("{}/up/secret"),
    "list a folder": lambda: _os.listdir("/etc"),
    "read an environment": lambda: _reading(f"/proc/{_parent}/environ"),
}
"""
READ_ALL = (
    "read a file, read the data, read linked data, read beside the data, read by a link to a folder, "
    "list a folder, read an environment"
)
ABORTED = DOCUMENT.replace("raise", "import os; os.abort()\n    raise")


def error_of(work: Any) -> str:
    with pytest.raises(ToolError) as caught:
        asyncio.run(work)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["pandoc-en.docx", "libreoffice-ar.pdf", "pandoc-zh.epub"] if ON_LINUX else []
)
def test_what_reads_a_document_can_do_nothing_else(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(_extraction, "BOOTSTRAP", ATTEMPTS + DOCUMENT)
    assert error_of(_extraction.extract(str(FILES / name))) == f"{name}: reached: nothing"


def picture_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> str:
    """What is answered for a picture by a process that runs this program where tesseract has data."""
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
        (each / "eng.traineddata").write_text("words")
    (elsewhere / "secret").write_text("secret")
    (folder / "ara.traineddata").symlink_to(elsewhere / "eng.traineddata")
    (folder / "up").symlink_to(elsewhere)
    picture = tmp_path / "scan.png"
    Image.new("L", (90, 20), 255).save(picture)
    monkeypatch.setenv("TESSDATA_PREFIX", str(folder))
    monkeypatch.setattr(_extraction, "BOOTSTRAP", escapes.ONE_THREAD + program)
    return error_of(_extraction.extract(str(picture))).removeprefix("scan.png: reached: ")


def has_landlock() -> bool:
    try:
        return _readable_folders.version() > 0
    except OSError:
        return False


@pytest.mark.parametrize("thread", ["one", "late"] if ON_LINUX else [])
def test_what_reads_pictures_can_read_the_data_of_tesseract_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread: str
) -> None:
    reached = "_tried()" if thread == "one" else "_in_a_thread()"
    found = picture_reader(tmp_path, monkeypatch, PICTURES + DOCUMENT.replace("reached()", reached))
    assert found == ("read the data, read linked data" if has_landlock() else READ_ALL)


@pytest.mark.parametrize("without", ["s.CREATE_RULESET = 1 << 20", "s.ctypes = None"] if ON_LINUX else [])
def test_what_reads_pictures_can_read_files_where_the_kernel_has_no_landlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    changed = f"import sys; sys.path += sys.argv[6:]; import _readable_folders as s; {without}\n"
    program = PICTURES + changed + DOCUMENT.replace("reached()", "_tried()")
    assert picture_reader(tmp_path, monkeypatch, program) == READ_ALL


@pytest.mark.parametrize("number", [1] if ON_LINUX else [])
def test_what_reads_pictures_has_one_thread_when_its_files_are_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The kernel confines one thread and those that it starts, not the others."""
    counting = """
import os, sys; sys.path += sys.argv[6:]
import _readable_folders
confine, threads = _readable_folders.confine, []
def counted(folders):
    threads.extend(os.listdir("/proc/self/task"))
    confine(folders)
_readable_folders.confine = counted
"""
    program = counting + DOCUMENT.replace("reached()", "str(len(threads))")
    assert picture_reader(tmp_path, monkeypatch, program) == str(number)


@pytest.mark.parametrize("kind", ["pdf", "markdown", "html"] if ON_LINUX else [])
def test_what_reads_a_fetched_page_can_do_nothing_else(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(_documents, "BOOTSTRAP", ATTEMPTS + PAGE)
    work = _documents.pdf_text(b"%PDF-") if kind == "pdf" else _documents.convert("x", "https://a.b/", kind)
    assert asyncio.run(work).text == "reached: nothing"


def test_what_reads_a_fetched_page_has_no_secret_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "s3cret")
    program = PAGE.replace("reached()", "repr(dict(os.environ))")
    monkeypatch.setattr(_documents, "BOOTSTRAP", f"import os\n{program}")
    found = asyncio.run(_documents.convert("x", "https://a.b/")).text
    assert "reached: {" in found
    assert "s3cret" not in found


@pytest.mark.parametrize("name", ["a.png"] if ON_LINUX else [])
def test_what_decodes_an_image_can_do_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    Image.new("L", (9, 9)).save(tmp_path / name)
    monkeypatch.setattr(image_pool, "BOOTSTRAP", ATTEMPTS + IMAGE)

    async def look() -> str:
        with pytest.raises(ToolError) as caught:
            await read_image(str(tmp_path / name))
        return str(caught.value)

    assert "reached: nothing" in image_calls.run(look)


def test_a_reader_that_aborts_for_want_of_memory_is_said_to_have_wanted_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """abort sends a signal to its own process: the filter lets it, and it alone."""
    monkeypatch.setattr(_extraction, "BOOTSTRAP", ABORTED)
    found = error_of(_extraction.extract(str(FILES / "pandoc-en.docx")))
    assert found == "pandoc-en.docx: reading it takes more memory than is allowed"


def test_a_document_is_read_where_the_kernel_takes_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    without = "import sys; sys.path += sys.argv[6:]; import _system_calls as s; s.PROCESSORS = {}; "
    monkeypatch.setattr(_extraction, "BOOTSTRAP", f"{without}import document_worker as w; w.main()")
    assert "This handbook" in asyncio.run(_extraction.extract(str(FILES / "pandoc-en.docx"))).pages[0]


def test_right_to_left_pages_of_a_pdf_are_read_by_pypdf_which_imports_nothing_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it would import late cannot be opened: then the pages would silently be in another order."""
    program = """
import sys; sys.path += sys.argv[6:]
import document_worker as worker, _page_text
page_text = _page_text.page_text
def taken(page):
    before = set(sys.modules)
    page_text(page)
    return f"by pypdf, imported: {sorted(set(sys.modules) - before)}"
_page_text.page_text = taken
worker.main()
"""
    monkeypatch.setattr(_extraction, "BOOTSTRAP", program)
    extracted = asyncio.run(_extraction.extract(str(FILES / "libreoffice-ar.pdf")))
    assert set(extracted.pages) == {"by pypdf, imported: []"}


def test_each_list_is_known_for_both_processors() -> None:
    """A call that the generic numbers lack has a successor that both have."""
    lists = (_system_calls.COMPUTING, _system_calls.NATIVE, _system_calls.FILES, _system_calls.DESCRIPTORS)
    everything = {name: numbers for each in lists for name, numbers in each.items()}
    assert {name for name, numbers in everything.items() if not numbers[1]} == {
        *("arch_prctl", "select", "time"),  # pselect6, clock_gettime
        *("epoll_wait", "poll"),  # epoll_pwait, ppoll
        *("access", "lstat", "open", "readlink", "stat"),  # …at
    }
    for column in (0, 1):
        numbers = [each[column] for each in everything.values() if each[column]]
        assert len(numbers) == len(set(numbers))
    assert _system_calls.CONDITIONS.keys() <= everything.keys()
