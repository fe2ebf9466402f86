"""Parses the bytes that a terminal sends into the names of keys. No I/O, no clock."""

from __future__ import annotations

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
