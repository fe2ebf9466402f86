"""Asks a person on the server's terminal, with arrow keys and numbers, one menu at a time.

The terminal is used only while this process is in its foreground group: in the background the menu waits. The
event loop is never blocked. The terminal's mode and screen are always restored. Drawing and keys are in
`menu` and `keys`, the decision to ask in `fastrpc.human_input`. Imported by the first question that reaches
the terminal.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import asynccontextmanager, suppress

from fastrpc.terminal.device import NoTerminal, size_of
from fastrpc.terminal.keys import Keys
from fastrpc.terminal.menu import Menu
from fastrpc.terminal.raw_terminal import RawTerminal
from fastrpc.terminal.text import styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from fastrpc.terminal.choices import Choice

MONITOR_SECONDS = 0.2  # seconds between two checks of the size and the foreground group
ESCAPE_SECONDS = 0.1  # seconds after which an escape byte is the Escape key
RETRY_SECONDS = 0.02  # seconds until a write is tried again
LOCK_RETRY_SECONDS = 0.1  # seconds between two attempts to lock the terminal

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # other screen, no cursor, no wrapping: a width may be wrong
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
STYLES = {"question": "1", "marked": "1;36", "help": "2"}


async def ask(choices: Sequence[Choice], message: str | None = None) -> tuple[str, list[str | list[str]]]:
    """Show the menu on the terminal; return the action and the chosen options.

    Waits until no other menu is shown. Raises `NoTerminal`. Cancelling restores the terminal.
    """
    with RawTerminal() as terminal:
        async with _locked_terminal():
            terminal.require_foreground()
            try:
                return await _Dialog(terminal, Menu(choices, message)).run()
            finally:
                # Before the lock is released: the next menu saves the mode that it finds.
                terminal.restore(LEAVE.encode())


_lock: asyncio.Lock | None = None
_lock_loop: Any = None


@asynccontextmanager
async def _locked_terminal() -> AsyncIterator[None]:
    """Lock the terminal against other menus of this process and of other servers in this session. The
    session is represented by its leader's directory in /proc, if there is one."""
    global _lock, _lock_loop
    loop = asyncio.get_running_loop()
    if _lock is None or _lock_loop is not loop:
        _lock, _lock_loop = asyncio.Lock(), loop
    async with _lock:
        try:
            session = os.open(f"/proc/{os.getsid(0)}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            session = -1
        try:
            if session >= 0:
                await _lock_session(session)
            yield
        finally:
            if session >= 0:
                os.close(session)


async def _lock_session(session: int) -> None:
    while True:
        try:
            return fcntl.flock(session, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(LOCK_RETRY_SECONDS)
        except OSError:
            return None


class _Dialog:
    """A menu on a terminal, from the first drawing to the answer."""

    def __init__(self, terminal: RawTerminal, menu: Menu) -> None:
        self.terminal = terminal
        self.menu = menu
        self.keys = Keys()
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.colours = not os.environ.get("NO_COLOR")
        self.watching = False
        self._is_foreground = False
        self._drawn = ""
        self._unsent = b""
        self._escape: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None

    async def run(self) -> tuple[str, list[str | list[str]]]:
        looking = asyncio.ensure_future(self._monitor())
        try:
            await asyncio.wait({self.done, looking}, return_when=asyncio.FIRST_COMPLETED)
            if not self.done.done():
                looking.result()  # raises its exception
            self.done.result()
        finally:
            looking.cancel()
            self._unwatch()
            for timer in (self._escape, self._again):
                if timer is not None:
                    timer.cancel()
        return self.menu.action, self.menu.answers if self.menu.action == "accept" else []

    async def _monitor(self) -> None:
        """Periodically check the foreground group and the size, and write what is left to write."""
        while True:
            is_foreground = self.terminal.is_foreground()
            if is_foreground and not self._is_foreground:
                self._on_foreground()
            elif self._is_foreground and not is_foreground:
                self._unwatch()
            self._is_foreground = is_foreground
            if is_foreground:
                if not self.watching:
                    self._on_readable()
                self._draw()
            await asyncio.sleep(MONITOR_SECONDS)

    def _on_foreground(self) -> None:
        self.terminal.enter_raw_mode()
        self._drawn = ""
        with suppress(OSError):  # kqueue cannot watch /dev/tty: the periodic check has to do
            self.loop.add_reader(self.terminal.descriptor, self._on_readable)
            self.watching = True

    def _unwatch(self) -> None:
        if self.watching:
            self.loop.remove_reader(self.terminal.descriptor)
            self.watching = False

    def _on_readable(self) -> None:
        try:
            data = self.terminal.read()
            if data is None:
                if not self.terminal.is_foreground():  # others' input would wake us for ever
                    self._unwatch()
                    self._is_foreground = False
                return
        except NoTerminal as gone:
            self._unwatch()
            if not self.done.done():
                self.done.set_exception(gone)
            return
        if self._escape is not None:
            self._escape.cancel()
            self._escape = None
        self._press(self.keys.feed(data))
        if self.keys.waits and not self.done.done():
            self._escape = self.loop.call_later(ESCAPE_SECONDS, self._escape_alone)

    def _escape_alone(self) -> None:
        self._escape = None
        self._press(self.keys.end())

    def _press(self, keys: list[str]) -> None:
        for key in keys:
            self.menu.press(key)
            if self.menu.action:
                if not self.done.done():
                    self.done.set_result(None)
                return
        self._draw()

    def _draw(self) -> None:
        """Redraw, as far as the terminal accepts it now."""
        if not self._unsent:
            drawn = self._frame(*size_of(self.terminal.descriptor))
            if drawn == self._drawn:
                return
            self._unsent = f"{'' if self._drawn else ENTER}{drawn}".encode("utf-8", "replace")
            self._drawn = drawn
        try:
            self._unsent = self._unsent[self.terminal.write(self._unsent) :]
        except OSError:
            self._unsent = b""  # the next read reports the error
        if self._unsent and self._again is None:
            self._again = self.loop.call_later(RETRY_SECONDS, self._draw_again)

    def _draw_again(self) -> None:
        self._again = None
        self._draw()

    def _frame(self, columns: int, rows: int) -> str:
        frame = []
        for row, (text, part) in enumerate(self.menu.draw(columns, rows), 1):
            shown = styled(text, STYLES.get(part)) if self.colours else text
            frame.append(f"\x1b[{row};1H{shown}\x1b[K")
        return "".join(frame) + "\x1b[J"
