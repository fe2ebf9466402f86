"""The process that reads untrusted documents: input on descriptor 0, one JSON line on 1.

The memory limit counts address space, the time limit processor time; the kernel enforces both, from before
any library is imported. All libraries are imported before the document is read. From then on, on Linux, the
process can open no file or socket and start no process. The output of libraries is discarded.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def main() -> None:
    """Read one document and answer with its title and text, or with an error. Arguments: the kind, bytes of
    memory, seconds."""
    import json

    from ..._process_limits import limit
    from ..._system_calls import NATIVE, confine_if_possible

    kind, memory, seconds = sys.argv[1:]
    limit(int(memory), int(seconds))
    answering = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    read = _reader(kind)
    confine_if_possible(NATIVE)
    answer = _answer(read, data)
    with open(answering, "wb") as out:
        out.write(json.dumps(answer).encode("ascii"))
    os._exit(0)  # freeing a large tree piece by piece would take longer than reading it


def _reader(kind: str) -> Callable[[bytes], tuple[str, str]]:
    """Return the function that reads a document. It imports all that it needs now."""
    if kind == "pdf":
        from ..._page_text import load
        from . import pdf

        load()
        return pdf.read
    from .. import _documents
    from . import markdown  # noqa: F401 which makes each form

    def read_page(data: bytes) -> tuple[str, str]:
        url, _, html = data.decode("utf-8", "replace").partition("\n")
        document = _documents.FORMATS[kind](html, url)
        return document.title, document.text

    return read_page


def _answer(read: Callable[[bytes], tuple[str, str]], data: bytes) -> dict[str, Any]:
    try:
        title, text = read(data)
        return {"title": title, "text": text}
    except MemoryError:
        return {"error": "could not be read: it needs more memory than is allowed."}
    except ValueError as error:
        return {"error": str(error)}
