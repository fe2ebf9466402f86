"""The process in which documents of strangers are read: input on descriptor 0, one JSON line on 1.

The memory limit counts address space, the time limit processor time; both are the kernel's and come before
any library is imported. Whatever libraries print is thrown away.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(kind: str, memory: int, seconds: int) -> None:
    """Read one document and answer with its title and text, or with an error."""
    import json

    from ..._process_limits import limit

    limit(memory, seconds)
    answering = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with open(0, "rb", closefd=False) as file:
        data = file.read()
    answer = _answer(kind, data)
    with open(answering, "wb") as out:
        out.write(json.dumps(answer).encode("ascii"))
    os._exit(0)  # freeing a large tree piece by piece would take longer than reading it


def _answer(kind: str, data: bytes) -> dict[str, Any]:
    try:
        if kind == "pdf":
            from . import pdf

            title, text = pdf.read(data)
            return {"title": title, "text": text}
        from .. import _documents

        url, _, html = data.decode("utf-8", "replace").partition("\n")
        document = _documents.FORMATS[kind](html, url)
        return {"title": document.title, "text": document.text}
    except MemoryError:
        return {"error": "could not be read: it needs more memory than is allowed."}
    except ValueError as error:
        return {"error": str(error)}
