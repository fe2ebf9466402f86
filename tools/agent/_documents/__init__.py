"""Converts a fetched page or PDF to clean Markdown, text or HTML, with its title.

`convert` and `pdf_text` work in a separate process with limits of memory and time, because their input is
untrusted: a crash or an endless loop there becomes a `ToolError` here. That costs a quarter of a second.
`to_markdown`, `to_text` and `to_html` do the same in this process. Importing this module imports nothing
heavy. Other modules fetch.
"""

from __future__ import annotations

from fastrpc import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 1536 * 1024 * 1024
SECONDS = 45
RESULT_LIMIT = 64 * 1024 * 1024

# Nothing is imported from the working directory: a cloned repository may contain a lxml.py.
BOOTSTRAP = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from fastrpc.tools.agent._documents import worker; worker.main()"
)


class Document:
    """A page that was converted: `title` may be empty; `text` is Markdown, plain text or HTML, as
    requested."""

    __slots__ = ("text", "title")

    def __init__(self, title: str, text: str) -> None:
        self.title = title
        self.text = text


def to_markdown(html: str, url: str) -> Document:
    """Return a page's main content as Markdown; relative links are resolved against `url`."""
    from . import markdown

    return Document(*markdown.markdown_of(html, url))


def to_text(html: str, url: str) -> Document:
    """Return a page's main content as plain text: paragraphs, list marks, table cells between tabs."""
    from . import markdown

    return Document(*markdown.text_of(html, url))


def to_html(html: str, url: str) -> Document:
    """Return a page's main content as plain HTML: no scripts, styles, classes or forms; absolute links."""
    from . import markdown

    return Document(*markdown.html_of(html, url))


FORMATS: dict[str, Callable[[str, str], Document]] = {
    "markdown": to_markdown,
    "text": to_text,
    "html": to_html,
}


async def convert(html: str, url: str, format: str = "markdown", seconds: float | None = None) -> Document:
    """Do what `to_markdown`, `to_text` or `to_html` does, in a separate process.

    It may take `seconds`, but no longer than `SECONDS`. Raises ToolError.
    """
    data = f"{url}\n".encode("utf-8", "replace") + html.encode("utf-8", "replace")
    return await _in_worker(format, data, "The page", seconds)


async def pdf_text(data: bytes, seconds: float | None = None) -> Document:
    """Return the text of a PDF, with a mark before each page. Works in a separate process.

    It may take `seconds`, but no longer than `SECONDS`. Raises ToolError with a sentence when the file is not
    a PDF, is broken, needs a password, or holds pictures only.
    """
    return await _in_worker("pdf", data, "The PDF", seconds)


async def _in_worker(kind: str, data: bytes, what: str, seconds: float | None) -> Document:
    import json
    import sys

    from fastrpc import processes

    from ..._process_limits import environment

    limit = max(1, min(SECONDS, round(SECONDS if seconds is None else seconds)))
    worker = await processes.run(
        [sys.executable, "-c", BOOTSTRAP, kind, str(MEMORY), str(limit)],
        stdin=data,
        timeout_ms=limit * 1000,
        output=processes.Output(RESULT_LIMIT),
        env=environment("PYTHON"),  # which contains the module search path
    )
    if worker.timed_out:
        raise ToolError(f"{what} could not be read: that took more than {limit} s.")
    try:
        answer = json.loads(worker.output.head)
    except ValueError:
        ending = worker.signal or f"exit code {worker.exit_code}"
        raise ToolError(f"{what} could not be read: the program that reads it ended with {ending}.") from None
    if "error" in answer:
        raise ToolError(f"{what} {answer['error']}")
    return Document(answer["title"], answer["text"])
