"""Reads the front matter of a Markdown file: the lines between two ``---`` at its top.

This module uses no YAML library, for two reasons. Many published skills contain ``description: Use when: …``
with a bare colon. YAML refuses it, and the skill would silently be missing. And importing a library would
delay ``tools/list``. Valid YAML is read as YAML reads it, apart from white space: a plain, quoted, folded or
literal text of a top-level key. Lists and mappings are returned as text; no caller uses them. Costs one pass
over the lines and imports nothing.
"""

from __future__ import annotations

FENCE = "---"
ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
}
ESCAPES |= {"N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029", "\n": ""}
NUMBERED = {"x": 2, "u": 4, "U": 8}


class NeverClosed(ValueError):
    """Front matter begins and does not end."""


def split(text: str) -> tuple[dict[str, str], str]:
    """Return the texts of the top-level keys, and the text after the front matter.

    A text without front matter has no keys and is all body. Raises NeverClosed.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() in (FENCE, "..."):
            return _keys(lines[1:number]), "\n".join(lines[number + 1 :])
    raise NeverClosed(f"its front matter begins with {FENCE} and never ends with {FENCE}")


def _keys(lines: list[str]) -> dict[str, str]:
    """Return the text of each key; for a repeated key, the last."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if line[:1] in ("", " ", "\t"):
            if key:
                found[key].append(line)
        elif line[0] not in "#-":  # a comment, or a list that is not indented: ignored
            name, colon, rest = line.partition(":")
            if colon and rest[:1] in ("", " ", "\t"):
                key = name.strip().strip("\"'")
                found[key] = [rest]
            elif key:  # not YAML, but common: a text that continues without indentation
                found[key].append(line)
    return {key: _value(parts[0].strip(), parts[1:]) for key, parts in found.items()}


def _value(first: str, following: list[str]) -> str:
    if _is_block(first):
        return "\n".join(line.strip() for line in following).strip()
    if first[:1] in ("'", '"'):
        quoted = _quoted(first, following)
        if quoted is not None:
            return quoted
    lines = (_without_comment(line.strip()) for line in (first, *following))
    return " ".join(line for line in lines if line)


def _is_block(first: str) -> bool:
    """Whether ``>`` or ``|`` says that the following lines are the text."""
    head = _without_comment(first)
    return head[:1] in (">", "|") and not head[1:].strip("+-123456789")


def _without_comment(line: str) -> str:
    if line.startswith("#"):
        return ""
    end = line.find(" #")
    return line if end < 0 else line[:end].rstrip()


def _quoted(first: str, following: list[str]) -> str | None:
    """Return the text between quotes, which may span lines; None if anything else follows."""
    mark = first[0]
    text = "\n".join((first[1:], *(line.strip() for line in following)))
    pieces: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == mark:
            if mark == '"' or text[at + 1 : at + 2] != mark:
                rest = text[at + 1 :].strip()
                return None if rest and not rest.startswith("#") else "".join(pieces)
            at += 1
        elif character == "\\" and mark == '"':
            at, character = _escape(text, at + 1)
        pieces.append(character)
        at += 1
    return None


def _escape(text: str, at: int) -> tuple[int, str]:
    """Return where an escape ends and its character; an invalid escape is returned unchanged."""
    letter = text[at : at + 1]
    digits = text[at + 1 : at + 1 + NUMBERED.get(letter, 0)]
    if digits and len(digits) == NUMBERED[letter]:
        try:
            return at + len(digits), chr(int(digits, 16))
        except (ValueError, OverflowError):
            pass
    return at, ESCAPES.get(letter, letter)
