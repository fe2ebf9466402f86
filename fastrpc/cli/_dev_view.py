"""Live calls of `fastrpc dev --http` on a terminal: a table, the selected call, and the log.

textual draws the view; only this module imports textual. The process that shows the view also serves: an
observer passes each call's record to it. To repeat a call, it connects to its server as a client. It reads
what it and its children write to standard error, and shows that as the log.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from itertools import count
from time import localtime, strftime

from rich.text import Text
from textual.app import App
from textual.events import Print
from textual.widgets import DataTable, Footer, RichLog, Static

from fastrpc.cli._dev_wire import FROM_CLIENT, TO_CLIENT, shortened
from fastrpc.client.client import Client
from fastrpc.errors import ClientError, UsageError
from fastrpc.terminal.text import plain
from fastrpc.transports.http.run import run_in_loop
from fastrpc.transports.shutdown import Shutdown, ShutdownSignals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from textual.app import ComposeResult

    from fastrpc._core.recorder import CallRecord
    from fastrpc.server import Server
    from fastrpc.transports.http.settings import HttpSettings

MOST_ROWS = 1000
SHORT = 40  # columns of arguments and answers in the table
READ_SIZE = 1 << 16
COLUMNS = {"time": 8, "kind": 8, "name": 20, "arguments": 28, "outcome": 14, "ms": 8, "answer": SHORT}
"""The columns and their widths. Automatic widths are set after a row is drawn, so a row could stay cut."""


def show(server: Server, target: str, address: str, settings: HttpSettings) -> int:
    """Serve, and show the calls, until the view is closed; return the exit code. Raises UsageError."""
    errors, writing = os.pipe()
    screen = os.fdopen(os.dup(2), "w", encoding="utf-8")
    former = sys.__stderr__
    sys.__stderr__ = screen  # type: ignore[misc] # textual draws there
    os.dup2(writing, 2)
    os.close(writing)
    try:
        view = View(server, target, address, settings, errors)
        view.run()
    finally:
        os.dup2(screen.fileno(), 2)
        sys.__stderr__ = former  # type: ignore[misc]
        screen.close()
        os.close(errors)
    if view.failure is not None:
        raise view.failure
    server.runtime.leave_threads_behind()
    return 0


class View(App[None]):
    """The view. `failure`: why it could not serve."""

    TITLE = "fastrpc dev"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #about { height: 1; background: $primary; color: $text; }
    #calls { height: 1fr; }
    #detail { height: auto; max-height: 8; padding: 0 1; border-top: solid $primary; }
    #log { height: 6; border-top: solid $primary; }
    """
    BINDINGS = [  # noqa: RUF012
        ("a", "again", "Call it again"),
        ("c", "clear", "Clear"),
        ("q", "quit", "Quit"),
    ]

    def __init__(
        self, server: Server, target: str, address: str, settings: HttpSettings, errors: int
    ) -> None:
        super().__init__()
        self.failure: UsageError | None = None
        self._server = server
        self._target = target
        self._address = address
        self._settings = settings
        self._errors = errors
        self._unread = b""
        self._numbers = count(1)
        self._records: dict[str, CallRecord] = {}
        self._serving: asyncio.Task[None] | None = None

    def compose(self) -> ComposeResult:
        yield Static(f"fastrpc dev {plain(self._target)} at {plain(self._address)}", id="about")
        yield DataTable(id="calls", cursor_type="row")
        yield Static("", id="detail", markup=False)
        yield RichLog(id="log", wrap=True, max_lines=MOST_ROWS)
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        for name, width in COLUMNS.items():
            table.add_column(name, width=width)
        table.focus()
        self.begin_capture_print(self)
        loop = asyncio.get_running_loop()
        os.set_blocking(self._errors, False)
        loop.add_reader(self._errors, self._read_errors)
        self._server.observe(RecordWatcher(self))
        self._serving_end = Shutdown(self._settings.drain_seconds)
        self._serving = loop.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            with ShutdownSignals(self._serving_end):
                await run_in_loop(self._server, self._settings, self._serving_end)
        except UsageError as error:
            self.failure = error
        self.exit()

    async def action_quit(self) -> None:
        """Stop serving, which ends the view."""
        self._serving_end.hurry()

    def _read_errors(self) -> None:
        """Show what children have written to standard error, except for messages, which are in the table."""
        try:
            data = os.read(self._errors, READ_SIZE)
        except BlockingIOError:
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace")
            if not text.startswith((FROM_CLIENT, TO_CLIENT)):
                self._say(text)

    def on_print(self, event: Print) -> None:
        """Show what this process has written to standard error, which textual captures."""
        for line in event.text.splitlines():
            self._say(line)

    def add(self, records: list[CallRecord]) -> None:
        """Show calls that have ended."""
        table = self.query_one(DataTable)
        follows = table.cursor_row >= table.row_count - 1
        for record in records:
            key = str(next(self._numbers))
            self._records[key] = record
            table.add_row(*_cells(record), key=key)
        while len(self._records) > MOST_ROWS:
            oldest = next(iter(self._records))
            del self._records[oldest]
            table.remove_row(oldest)
        if follows:
            table.move_cursor(row=table.row_count - 1)

    def _selected(self) -> CallRecord | None:
        table = self.query_one(DataTable)
        if not table.is_valid_row_index(table.cursor_row):
            return None
        key = table.coordinate_to_cell_key((table.cursor_row, 0)).row_key.value  # type: ignore[arg-type]
        return self._records.get(str(key))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        record = self._records.get(str(event.row_key.value))
        if record is not None:
            said = f"{record.name} {_text(record.arguments)}\n{_text(record.answer)}"
            self.query_one("#detail", Static).update(said)

    def action_clear(self) -> None:
        """Forget the calls."""
        self._records.clear()
        self.query_one(DataTable).clear()
        self.query_one("#detail", Static).update("")

    def action_again(self) -> None:
        """Make the selected call again."""
        record = self._selected()
        if record is not None:
            self.run_worker(self._call(record), exit_on_error=False)

    async def _call(self, record: CallRecord) -> None:
        if isinstance(record.arguments, tuple):  # hashes: too many calls at once
            self._say(f"{record.name}: its arguments are not kept")
            return
        try:
            async with Client(self._server) as client:
                if record.kind == "resource":
                    await client.read_resource((record.arguments or b"").decode())
                elif record.kind == "prompt":
                    await client.get_prompt(record.name, json.loads(record.arguments or b"{}"))
                else:
                    await client.call_tool(record.name, json.loads(record.arguments or b"{}"))
        except (ClientError, ValueError) as error:
            self._say(f"{record.name}: {error}")

    def _say(self, text: str) -> None:
        self.query_one(RichLog).write(Text(plain(text)))


class RecordWatcher:
    """Passes the records of calls, with arguments and results, to a view."""

    wants_content = True

    def __init__(self, view: View) -> None:
        self._view = view

    def __call__(self, records: list[CallRecord]) -> None:
        with suppress(RuntimeError):  # the view has ended
            self._view.call_from_thread(self._view.add, records)


def _cells(record: CallRecord) -> list[Text]:
    style = "" if record.outcome in ("ok", "input_required") else "bold red"
    texts = (
        strftime("%H:%M:%S", localtime(record.started_at)),
        record.kind,
        record.name,
        _text(record.arguments)[:SHORT],
        record.outcome,
        f"{record.total_us / 1000:.1f}",
        _text(record.answer)[:SHORT],
    )
    return [Text(plain(text), style=style) for text in texts]


def _text(content: Any) -> str:
    """Return arguments or a result, shortened, on one line, with secrets masked."""
    if not isinstance(content, (bytes, str)):
        return "(too much at once)"
    try:
        value = json.loads(content or b"{}")
    except ValueError:
        value = content if isinstance(content, str) else content.decode("utf-8", "replace")  # a URI
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        value = [block.get("text", block) if isinstance(block, dict) else block for block in value["content"]]
        value = value[0] if len(value) == 1 else value
    return plain(shortened(value))
