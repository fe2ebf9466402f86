"""The content of a document: `extract` and `extract_data` turn a file into text by page, `passages` cuts that
into pieces.

A document is untrusted, so a separate process reads it (`document_worker`). The process is bounded in memory
and time, has no secrets in its environment, and is ended with all its descendants however the call or the
server ends. That costs a quarter of a second. Nothing is written to disk. Importing this module imports
nothing heavy. Other modules store texts and describe them to callers.
"""

from __future__ import annotations

import asyncio
import os
import sys

from fastrpc import ToolError, processes, regular_files

from ..._process_limits import environment
from .extracted import Extracted
from .passages import Passage, passages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Extracted", "ExtractionError", "Passage", "extract", "extract_data", "passages", "read_file"]

FILE_BYTES = 50 * 1024 * 1024
MEMORY = 1024 * 1024 * 1024
SECONDS = 60
ANSWER_BYTES = 100_000_000  # twice 20 MB of text, as text and as Markdown, and the escapes of JSON
LONGEST_NAME = 200

# The program may import from the folders of its libraries besides the standard library.
BOOTSTRAP = "import sys; sys.path += sys.argv[6:]; import document_worker; document_worker.main()"


class ExtractionError(ToolError):
    """A document is not read; the message is a sentence for the caller, such as "report.pdf: it is
    encrypted"."""


async def extract(path: str, *, name: str = "", media_type: str = "") -> Extracted:
    """Return the text of a document: `extract_data` of a file's content. A symbolic link is not followed.
    Messages call it `name`, by default the path's last part. Raises ExtractionError."""
    shown = name or os.path.basename(path) or path
    return await extract_data(await asyncio.to_thread(read_file, path, shown), shown, media_type=media_type)


def read_file(path: str, name: str, dir_fd: int | None = None) -> bytes:
    """Return the content of a document's file; messages call it `name`. Raises ExtractionError."""
    shown = name[:LONGEST_NAME]
    try:
        return regular_files.read_regular(path, FILE_BYTES, follow=False, dir_fd=dir_fd)
    except OSError as error:
        raise ExtractionError(f"{shown}: {_why_not(error)}") from None
    except ValueError:
        raise ExtractionError(f"{shown!r}: its path contains a character not allowed in names") from None


async def extract_data(data: bytes, name: str, *, media_type: str = "") -> Extracted:
    """Return the text of a document: PDF, DOCX, XLSX, PPTX, ODT, ODS, EPUB, EML, HTML, CSV, Markdown, text,
    and pictures where tesseract is installed.

    `name` and `media_type` decide among kinds of text; otherwise the content decides. Raises ExtractionError.
    """
    shown = name[:LONGEST_NAME]
    if not data:
        raise ExtractionError(f"{shown}: it is empty")
    answer = await _in_worker(data, shown, media_type)
    if "wants_pictures" in answer:
        answer = await _in_worker(data, shown, media_type, "pictures")
    if "error" in answer:
        raise ExtractionError(f"{shown}: {answer['error']}")
    return Extracted(answer.pop("pages"), **answer)


def _why_not(error: OSError) -> str:
    if isinstance(error, regular_files.NotRegular):
        return f"it is {error.kind}; expected a file"
    return f"it cannot be read ({error.strerror})"


async def _in_worker(data: bytes, name: str, media_type: str, reads: str = "text") -> dict[str, Any]:
    """Have the program read a document. Raises ExtractionError if it ends without an answer."""
    process = await processes.run(
        [
            *(sys.executable, "-I", "-S", "-c", BOOTSTRAP, str(MEMORY), str(SECONDS), reads),
            *(os.fsencode(name).hex(), media_type.encode("utf-8", "replace")[:LONGEST_NAME].hex()),
            *_folders(),
        ],
        cwd="/",
        stdin=data,
        timeout_ms=SECONDS * 1000,
        output=processes.Output(ANSWER_BYTES),
        env=_environment(),
    )
    if process.timed_out or process.signal == "SIGXCPU":
        raise ExtractionError(f"{name}: reading it takes more than {SECONDS} s")
    import orjson

    try:
        answer: dict[str, Any] = orjson.loads(process.output.head)
    except ValueError:
        if process.signal == "SIGABRT":  # which ends native code that is out of memory
            raise ExtractionError(f"{name}: reading it takes more memory than is allowed") from None
        if process.signal in ("SIGSEGV", "SIGBUS"):  # which ends native code that is out of stack
            raise ExtractionError(f"{name}: it is damaged, or nested too deeply to be read") from None
        ending = process.signal or f"exit code {process.exit_code}"
        raise ExtractionError(f"{name}: the program that reads it ended with {ending}") from None
    return answer


def _folders() -> list[str]:
    """Return the folders of the program, of the modules that it shares with other tools, and of its
    libraries."""
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    found = [here, os.path.dirname(os.path.dirname(here))]
    for library in ("xberg", "pypdf"):
        spec = importlib.util.find_spec(library)
        if spec is not None and spec.origin is not None:
            found.append(os.path.dirname(os.path.dirname(spec.origin)))
    return list(dict.fromkeys(found))


def _environment() -> dict[str, str]:
    """Return where shared libraries and tesseract's data are, nothing else of this process's environment."""
    # A cache folder cannot be made below a device. Threads of the libraries would double memory and time.
    return {
        **environment("TESSDATA_PREFIX"),
        "HOME": os.devnull,
        "MALLOC_ARENA_MAX": "2",
        "OMP_THREAD_LIMIT": "1",
    }
