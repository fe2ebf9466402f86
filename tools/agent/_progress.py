"""Sends the output of a running command as progress: a report every 0.2 s at most, of 4,000 characters at
most, so that it does not flood a slow client. The number counts the bytes. A report has what is new; in a
call that may become a task it has the end of all output, since a task shows its last report only."""

from __future__ import annotations

import asyncio

from . import _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Context

PAUSE_SECONDS = 0.2
BYTES = 16_000
CHARACTERS = 4_000
CHARACTERS_OF_TASK = 1_000


class Progress:
    """Takes in output and reports it. Call `stop` when the call is over."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._new = bytearray()
        self._total = 0
        self._skipped = False
        self._shows_end = context.task is not None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def take(self, data: bytes) -> None:
        self._total += len(data)
        self._new += data
        if len(self._new) > BYTES:
            del self._new[:-BYTES]
            self._skipped = True
        if self._timer is None and not self._stopped:
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._report)

    def _report(self) -> None:
        self._timer = None
        text = _text.clean(self._new.decode("utf-8", "replace"))
        most = CHARACTERS_OF_TASK - 1 if self._shows_end else CHARACTERS
        if self._skipped or len(text) > most:
            text = "…" + text[-most:]
        if not self._shows_end:
            self._new.clear()
            self._skipped = False
        self._context.progress(self._total, message=text)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
