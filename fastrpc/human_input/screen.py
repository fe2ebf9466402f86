"""The menu on a terminal: how it is drawn, and how keys change it. No I/O, no clock.

`Keys` splits input bytes into key names. `Menu` holds the questions and the chosen options, and draws itself
into lines for a terminal of any size. Every text is sanitised first (`plain`): it might contain escape
sequences that move the cursor, set the clipboard or hide an option.
"""

from __future__ import annotations

from unicodedata import category, combining, east_asian_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastrpc.human_input.choices import Choice

JOINER = "\u200d"
EMOJI_FORM = "\ufe0f"
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of text, with which a text can show something other than it says."""

MARGIN = 2
HELP = "Up/Down or a number, Enter: take"
HELP_SEVERAL = "Up/Down or a number, Space: choose, Enter: go on"
HELP_BACK = ", Left: back"
HELP_END = ", Esc: cancel, Ctrl-C: decline"


# -------------------------------------------------------------------------------------------- text


def plain(text: str) -> str:
    """Return a text that is safe to write to a terminal: control characters become visible."""
    return "".join(map(_plain_character, text)) if not text.isprintable() else text


def _plain_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return " " if character in "\t\n\r\v\f" else chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in TURNS:
        return ""
    if category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return "\ufffd"
    return character


def width_of(character: str) -> int:
    """Return the number of columns that a character may take; where terminals differ, the larger number."""
    if character == EMOJI_FORM:
        return 1  # makes the character before it wide
    if combining(character) or category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def width(text: str) -> int:
    """Return the number of columns that a text takes."""
    return len(text) if text.isascii() else sum(map(width_of, text))


def _pieces(text: str) -> Iterator[str]:
    """Split a text where a line may break: not before a combining mark, not around a joiner."""
    piece = ""
    for character in text:
        joined = piece.endswith(JOINER) or width_of(character) == 0 or character == EMOJI_FORM
        if piece and not joined:
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def wrapped(text: str, columns: int) -> list[str]:
    """Wrap a text to lines of at most `columns` columns, at spaces where possible. At least one line."""
    lines: list[str] = []
    for paragraph in text.replace("\r\n", "\n").split("\n"):
        line, used = "", 0
        for word in plain(paragraph).split(" "):
            needed = width(word)
            if line and used + 1 + needed <= columns:
                line, used = f"{line} {word}", used + 1 + needed
                continue
            if line:
                lines.append(line)
            line, used = word, needed
            if needed > columns:
                *full, line = _broken(word, columns)
                lines += full
                used = width(line)
        lines.append(line)
    return lines


def _broken(word: str, columns: int) -> list[str]:
    """Split a word that is longer than a line."""
    lines, used = [""], 0
    for piece in _pieces(word):
        needed = width(piece)
        if lines[-1] and used + needed > columns:
            lines.append("")
            used = 0
        lines[-1] += piece
        used += needed
    return lines


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into `columns` columns."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for piece in _pieces(text):
        used += width(piece)
        if used > columns:
            break
        kept += piece
    return kept


# -------------------------------------------------------------------------------------------- keys

SEQUENCES = {
    "A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
    "1~": "home", "4~": "end", "5~": "page up", "6~": "page down", "7~": "home", "8~": "end",
}  # fmt: skip
CONTROLS = {
    "\r": "enter", "\n": "enter", "\x03": "decline", "\x04": "cancel", "\x0e": "down", "\x10": "up",
    "\t": "down", "\x7f": "left", "\b": "left",
}  # fmt: skip


class Keys:
    """Parses the bytes that a terminal sends into key names.

    A lone escape byte is either the Escape key or the start of a sequence: `waits` says that this is still
    open, and `end` that no more bytes have arrived.
    """

    def __init__(self) -> None:
        from codecs import getincrementaldecoder

        self._decoder = getincrementaldecoder("utf-8")("ignore")
        self._sequence = ""

    @property
    def waits(self) -> bool:
        return bool(self._sequence)

    def end(self) -> list[str]:
        """No more bytes have arrived: a pending escape byte was the Escape key."""
        sequence, self._sequence = self._sequence, ""
        return ["cancel"] if sequence == "\x1b" else []

    def feed(self, data: bytes) -> list[str]:
        found = []
        for character in self._decoder.decode(data):
            if self._sequence:
                found += self._go_on(character)
            elif character == "\x1b":
                self._sequence = character
            elif character in CONTROLS:
                found.append(CONTROLS[character])
            elif character.isdecimal():
                found.append(character)
            elif character == " ":
                found.append("space")
            elif character in "jk":
                found.append("down" if character == "j" else "up")
        return found

    def _go_on(self, character: str) -> list[str]:
        """Take one character of a sequence: ``ESC [ … final`` or ``ESC O final`` (ECMA-48, 5.4)."""
        if len(self._sequence) == 1:
            if character in "[O":
                self._sequence += character
                return []
            self._sequence = character if character == "\x1b" else ""
            return ["cancel"] if character == "\x1b" else []  # else a key with Alt: ignored
        self._sequence += character
        if not "@" <= character <= "~" and len(self._sequence) < 32:
            return []
        body, self._sequence = self._sequence[2:], ""
        key = SEQUENCES.get(body) or SEQUENCES.get(body[-1] if body[-1].isalpha() else "")
        return [key] if key else []


# -------------------------------------------------------------------------------------------- menu


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

    # --- keys ---

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

    # --- drawing ---

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
