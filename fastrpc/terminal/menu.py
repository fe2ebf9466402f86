"""The menu on a terminal: how it is drawn, and how keys change it. No I/O, no clock.

`Menu` holds the questions and the chosen options, and draws itself into lines for a terminal of any size.
"""

from __future__ import annotations

from fastrpc.terminal.text import cut, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrpc.terminal.choices import Choice

MARGIN = 2
HELP = "Up/Down or a number, Enter: take"
HELP_SEVERAL = "Up/Down or a number, Space: choose, Enter: go on"
HELP_BACK = ", Left: back"
HELP_END = ", Esc: cancel, Ctrl-C: decline"


class Menu:
    """The questions, one page each, and the chosen options.

    `action` is empty until the person has finished, then ``accept``, ``decline`` or ``cancel``.
    """

    def __init__(self, choices: Sequence[Choice], message: str | None = None) -> None:
        self.choices = choices
        self.message = message
        self.action = ""
        self.page = 0
        self.marked = [0 for _ in choices]
        self.chosen: list[set[int]] = [set() for _ in choices]
        """Of each question of which several may be chosen, the options that are."""
        self._number = 0  # the number typed so far
        self._offset = 0  # the first visible line
        self._seen = True  # whether the marked option must be visible
        self._rows = 1  # visible lines when last drawn
        self._ranges: list[range] = []  # the lines of each option
        self._new_page()

    @property
    def answers(self) -> list[str | list[str]]:
        """The chosen option of each question, or options."""
        return [
            [choice.options[number] for number in sorted(chosen)]
            if choice.several
            else choice.options[marked]
            for choice, marked, chosen in zip(self.choices, self.marked, self.chosen, strict=True)
        ]

    def press(self, key: str) -> None:
        """Handle a key."""
        if key in ("decline", "cancel"):
            self.action = key
            return
        if key.isdecimal():
            self._type(int(key))
            return
        self._number = 0
        if key == "enter":
            self._take()
        elif key == "space":
            if self.choices[self.page].several:
                self.chosen[self.page] ^= {self.marked[self.page]}
                self._seen = True
        elif key == "left":
            self._turn(-1)
        elif key in ("page up", "page down"):
            self._offset += (self._rows - 1) * (-1 if key == "page up" else 1)
            self._seen = False
        else:
            last = len(self.choices[self.page].options) - 1
            now = self.marked[self.page]
            steps = {"up": (now - 1) % (last + 1), "down": (now + 1) % (last + 1), "home": 0, "end": last}
            if key in steps:
                self._mark(steps[key])

    def _type(self, digit: int) -> None:
        """Append a digit to the number being typed if such an option exists, else start a new number."""
        count = len(self.choices[self.page].options)
        longer = self._number * 10 + digit
        self._number = longer if longer <= count else digit
        if 1 <= self._number <= count:
            self._mark(self._number - 1)
        else:
            self._number = 0

    def _mark(self, number: int) -> None:
        self.marked[self.page] = number
        self._seen = True

    def _take(self) -> None:
        """Choose the marked option; if it is not visible, only scroll to it."""
        lines = self._ranges[self.marked[self.page]] if self._ranges else range(0)
        if lines and not self._offset <= lines[0] < self._offset + self._rows:
            self._seen = True
        elif self.page + 1 < len(self.choices):
            self._turn(1)
        else:
            self.action = "accept"

    def _turn(self, step: int) -> None:
        self.page = max(0, self.page + step)
        self._new_page()

    def _new_page(self) -> None:
        self._number = 0
        self._offset = 0
        self._seen = False  # show the beginning of the question first
        self._ranges = []

    def draw(self, columns: int, rows: int) -> list[tuple[str, str]]:
        """Return the screen's lines from the top, each with its role: ``question``, ``marked``, ``option`` or
        ``help``. At most `rows` lines, each at most `columns` columns wide."""
        body = self._body(max(columns - 1, 4))
        self._rows = shown = max(rows - 2, 1)
        lines = self._ranges[self.marked[self.page]]
        if self._seen:
            self._offset = min(self._offset, lines[0])
            self._offset = max(self._offset, min(lines[-1] - shown + 1, lines[0]))
        self._offset = max(0, min(self._offset, len(body) - shown))
        page = body[self._offset : self._offset + shown]
        page += [("", "option")] * (shown - len(page))
        below = len(body) - self._offset - shown
        footer = [("", "help"), (cut(self._help(below > 0), columns - 1), "help")]
        return [*page, *footer][: max(rows, 1)] if rows > 2 else page

    def _help(self, more_below: bool) -> str:
        place = f"Question {self.page + 1} of {len(self.choices)}. " if len(self.choices) > 1 else ""
        more = " and ".join(
            name for name, there in (("above", self._offset > 0), ("below", more_below)) if there
        )
        more = f"(more {more}) " if more else ""
        keys = HELP_SEVERAL if self.choices[self.page].several else HELP
        return f"{more}{place}{keys}{HELP_BACK if self.page else ''}{HELP_END}"

    def _body(self, columns: int) -> list[tuple[str, str]]:
        choice = self.choices[self.page]
        body = []
        if self.message and self.message != choice.text:
            body += [(line, "option") for line in wrapped(self.message, columns)] + [("", "option")]
        body += [(line, "question") for line in wrapped(choice.text, columns)] + [("", "option")]
        digits = len(str(len(choice.options)))
        self._ranges = []
        for number in range(len(choice.options)):
            marked = number == self.marked[self.page]
            box = f"[{'x' if number in self.chosen[self.page] else ' '}] " if choice.several else ""
            head = f"{'>' if marked else ' '} {number + 1:>{digits}}. {box}"
            indent = len(head) if columns > 3 * len(head) else MARGIN
            first, *others = wrapped(choice.shown(number).replace("\n", " "), max(columns - len(head), 2))
            lines = [cut(head + first, columns), *(" " * indent + line for line in others)]
            self._ranges.append(range(len(body), len(body) + len(lines)))
            body += [(cut(line, columns), "marked" if marked else "option") for line in lines]
        return body
