"""Asks a person on their own terminal: arrow keys and numbers, one person at a time.

The terminal is opened by its own name, ``/dev/tty``; descriptors 0 and 1 are the protocol's. It is used only
while this process is in its foreground: from the background the menu waits until it is brought back. The
loop stays alive; the terminal's mode and screen come back however the asking ends. What is drawn and what
keys do is the affair of `fastrpc.ask.screen`, whether to ask at all that of `fastrpc.ask`. Imported by
the first question that comes this far.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import signal
import termios
import time

from fastrpc.ask.screen import Keys, Menu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any

    from fastrpc.ask.choices import Choice

TERMINAL = "/dev/tty"
LOOK_SECONDS = 0.2  # between two looks at the size, and at who is in the foreground
ESCAPE_SECONDS = 0.1  # what follows an escape later than this is a key of its own
AGAIN_SECONDS = 0.02  # until a terminal that takes no more is tried again
QUEUE_SECONDS = 0.1  # between two looks whether another server still asks
LAST_WORDS_SECONDS = 0.2  # how long a terminal that takes nothing may hold up the end

ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # another screen, no cursor, no wrapping: a width may be misjudged
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
STYLES = {"question": "\x1b[1m", "marked": "\x1b[1;36m", "help": "\x1b[2m"}
UNSTYLED = "\x1b[0m"


class NoTerminal(Exception):
    """There is no terminal to ask on. The message says why."""


async def ask(choices: Sequence[Choice], message: str | None = None) -> tuple[str, list[str]]:
    """Put questions to the person at the terminal; return what they did and what they chose.

    Waits for its turn where others ask. Raises `NoTerminal`. If it is cancelled, the terminal is as before.
    """
    with _Terminal() as terminal:
        async with _Turn():
            terminal.require_foreground()
            try:
                return await _Session(terminal, Menu(choices, message)).run()
            finally:
                terminal.give_back()  # before the turn ends: the next one keeps the mode that it finds


# ---------------------------------------------------------------------------------------- the turn

_lock: asyncio.Lock | None = None
_lock_loop: Any = None


class _Turn:
    """A turn at the terminal: of all that ask in this process, and of all servers of this session."""

    async def __aenter__(self) -> None:
        global _lock, _lock_loop
        loop = asyncio.get_running_loop()
        if _lock is None or _lock_loop is not loop:
            _lock, _lock_loop = asyncio.Lock(), loop
        self._lock = _lock
        self._session = -1
        await self._lock.acquire()
        try:
            await self._among_servers()
        except BaseException:
            self._leave()
            raise

    async def _among_servers(self) -> None:
        """A session has one terminal: its leader's entry in /proc stands for it, where there is one."""
        try:
            self._session = os.open(f"/proc/{os.getsid(0)}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        while True:
            try:
                fcntl.flock(self._session, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(QUEUE_SECONDS)
            except OSError:
                return
            else:
                return

    async def __aexit__(self, *error: object) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._session >= 0:
            os.close(self._session)
        self._lock.release()


# ------------------------------------------------------------------------------------ the terminal


class _Unstopped:
    """While it lasts, the system does not stop us for touching a terminal from the background."""

    def __enter__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTIN, signal.SIGTTOU})

    def __exit__(self, *error: object) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


class _Terminal:
    """The terminal of this process's session, on a non-blocking description of its own.

    Raises `NoTerminal` if there is none, or if it is another program's now.
    """

    def __init__(self) -> None:
        if os.environ.get("TERM", "") in ("", "dumb"):
            raise NoTerminal("the terminal cannot place a cursor: TERM is dumb or not set")
        try:
            flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            self.descriptor = os.open(TERMINAL, flags)
        except OSError:
            raise NoTerminal("the server has no terminal") from None
        self._mode: list[Any] | None = None

    def __enter__(self) -> _Terminal:
        try:
            self.require_foreground()
        except NoTerminal:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def in_front(self) -> bool:
        """Whether this process belongs to those that may use the terminal now. Raises `NoTerminal`."""
        try:
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()
        except OSError:
            raise NoTerminal("the terminal is gone") from None

    def require_foreground(self) -> None:
        if not self.in_front():
            raise NoTerminal("the server is not in the foreground of its terminal")

    def size(self) -> tuple[int, int]:
        """Return columns and rows; a terminal that does not know is an old one."""
        try:
            columns, rows = os.get_terminal_size(self.descriptor)
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    def take_over(self) -> None:
        """Have keys come one by one, unseen, Ctrl-C as one of them. What was typed before is no answer.
        Raises `NoTerminal`."""
        try:
            with _Unstopped():
                mode = termios.tcgetattr(self.descriptor)
                if self._mode is None:
                    self._mode = [*mode[:6], list(mode[6])]
                mode[0] &= ~(termios.IXON | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.ISTRIP)
                mode[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
                mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
                termios.tcsetattr(self.descriptor, termios.TCSANOW, mode)
                termios.tcflush(self.descriptor, termios.TCIFLUSH)
        except termios.error:
            raise NoTerminal("the terminal is gone") from None

    def give_back(self) -> None:
        """Put mode and screen as they were. A terminal that is another program's by now has its own."""
        if self._mode is None:
            return
        mode, self._mode = self._mode, None
        try:
            if self.in_front():
                self._insist(LEAVE.encode())
                with _Unstopped():
                    termios.tcsetattr(self.descriptor, termios.TCSANOW, mode)
        except (NoTerminal, termios.error):
            pass  # nothing is left to give back

    def write(self, data: bytes) -> int:
        """Write what the terminal takes now; return how much."""
        try:
            with _Unstopped():
                return os.write(self.descriptor, data)
        except BlockingIOError:
            return 0

    def _insist(self, data: bytes) -> None:
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while data and time.monotonic() < deadline:
            try:
                data = data[self.write(data) :]
            except OSError:
                return
            if data:
                select.select([], [self.descriptor], [], LAST_WORDS_SECONDS)

    def read(self) -> bytes | None:
        """Return what was typed, None if nothing was. Raises `NoTerminal` when the terminal is gone."""
        try:
            with _Unstopped():
                data = os.read(self.descriptor, 1024)
        except BlockingIOError:
            return None
        except OSError:
            if not self.in_front():
                return None
            data = b""
        if not data:
            raise NoTerminal("the terminal is gone")
        return data


# ------------------------------------------------------------------------------------- the session


class _Session:
    """A menu on a terminal, from the first drawing to the answer."""

    def __init__(self, terminal: _Terminal, menu: Menu) -> None:
        self.terminal = terminal
        self.menu = menu
        self.keys = Keys()
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.colours = not os.environ.get("NO_COLOR")
        self.watching = False
        self._in_front = False
        self._drawn = ""
        self._unsent = b""
        self._escape: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None

    async def run(self) -> tuple[str, list[str]]:
        looking = asyncio.ensure_future(self._look_on())
        try:
            await asyncio.wait({self.done, looking}, return_when=asyncio.FIRST_COMPLETED)
            if not self.done.done():
                looking.result()  # which raises
            self.done.result()
        finally:
            looking.cancel()
            self._unwatch()
            for timer in (self._escape, self._again):
                if timer is not None:
                    timer.cancel()
        return self.menu.action, self.menu.answers if self.menu.action == "accept" else []

    async def _look_on(self) -> None:
        """Look from time to time whether the terminal is ours, how large it is, and if it takes more."""
        while True:
            in_front = self.terminal.in_front()
            if in_front and not self._in_front:
                self._come_to_front()
            elif self._in_front and not in_front:
                self._unwatch()
            self._in_front = in_front
            if in_front:
                if not self.watching:
                    self._on_readable()
                self._draw()
            await asyncio.sleep(LOOK_SECONDS)

    def _come_to_front(self) -> None:
        self.terminal.take_over()
        self._drawn = ""
        try:
            self.loop.add_reader(self.terminal.descriptor, self._on_readable)
            self.watching = True
        except OSError:  # kqueue watches no /dev/tty: looking from time to time has to do
            pass

    def _unwatch(self) -> None:
        if self.watching:
            self.loop.remove_reader(self.terminal.descriptor)
            self.watching = False

    # --- keys ---

    def _on_readable(self) -> None:
        try:
            data = self.terminal.read()
            if data is None:
                if not self.terminal.in_front():  # what others are to read would wake us for ever
                    self._unwatch()
                    self._in_front = False
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

    # --- drawing ---

    def _draw(self) -> None:
        """Bring the screen up to date, as far as the terminal takes it now."""
        if not self._unsent:
            drawn = self._frame(*self.terminal.size())
            if drawn == self._drawn:
                return
            self._unsent = f"{'' if self._drawn else ENTER}{drawn}".encode("utf-8", "replace")
            self._drawn = drawn
        try:
            self._unsent = self._unsent[self.terminal.write(self._unsent) :]
        except OSError:
            self._unsent = b""  # reading tells what is wrong
        if self._unsent and self._again is None:
            self._again = self.loop.call_later(AGAIN_SECONDS, self._draw_again)

    def _draw_again(self) -> None:
        self._again = None
        self._draw()

    def _frame(self, columns: int, rows: int) -> str:
        frame = []
        for row, (text, part) in enumerate(self.menu.draw(columns, rows), 1):
            style = STYLES.get(part, "") if self.colours else ""
            end = UNSTYLED if style else ""
            frame.append(f"\x1b[{row};1H{style}{text}{end}\x1b[K")
        return "".join(frame) + "\x1b[J"
