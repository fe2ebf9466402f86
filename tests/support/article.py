"""What happens to something inside an article, and a limit for what may not take long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from fastrpc.tools.agent import _documents

BASE = "https://a.example/folder/page.html"
PROSE = "The tide comes in twice a day, and whoever lives by the sea keeps a table of it. "


def page(inner: str) -> str:
    return f"<body><main><h1>Tides</h1><p>{PROSE * 4}</p>{inner}<p>{PROSE}</p></main></body>"


def within(inner: str) -> str:
    """What happens to something inside an article."""
    text = _documents.to_markdown(page(inner), BASE).text
    return text.partition(PROSE * 3)[2].partition("\n\n")[2].rpartition("\n\n")[0]


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End a test after so many seconds of processor time, however busy the machine is."""

    def ended(*_: object) -> None:
        raise AssertionError(f"{seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
