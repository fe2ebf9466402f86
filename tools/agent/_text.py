"""Makes a program's output readable for a model and keeps it within the size of a result.

Escape sequences are removed, and of a line that is overwritten only the last state stays. A result holds
fewer than 30,000 characters and about 20,000 tokens. A character outside of ASCII counts as one token, four
ASCII characters as one. Plain text costs three searches.
"""

from __future__ import annotations

from . import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

RESERVE = 1_000  # characters for the lines about how it ended
LINE_SEARCH = 2_000  # how far a cut may move to fall between two lines

QUOTED = 200  # characters of a received value, in an error

_escapes: re.Pattern[str] | None = None


def quoted(value: object) -> str:
    """Return a received path, number or name for an error message: the beginning of a long one."""
    text = str(value)
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def clean(text: str) -> str:
    """Return text in the final state of a terminal, without colours and overwritten states."""
    if "\x1b" in text:
        text = _without_escapes(text)
    if "\r" in text:
        text = "\n".join(
            line.rstrip("\r").rpartition("\r")[2] if "\r" in line else line for line in text.split("\n")
        )
    if "\b" in text:
        text = "\n".join(_typed_over(line) if "\b" in line else line for line in text.split("\n"))
    return text


def _without_escapes(text: str) -> str:
    global _escapes
    if _escapes is None:
        import re

        _escapes = re.compile(
            "\x1b(?:"
            r"\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor
            "|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)"  # operating system commands: titles, links
            "|[PX^_][^\x1b]*\x1b\\\\"  # strings for the terminal
            r"|[ -/]*[0-OQ-WYZ\\`-~]"
            ")?"
        )
    return _escapes.sub("", text)


def unfinished_escape(text: str) -> int:
    """Return the length of an incomplete escape sequence at the end of a text."""
    start = text.rfind("\x1b", -200) if text else -1
    if start < 0:
        return 0
    import re

    rest = text[start + 1 :]
    waits = re.fullmatch(r"\[[0-?]*[ -/]*|\][^\x07]*|[PX^_].*|[ -/]*", rest, re.DOTALL)
    return len(text) - start if waits else 0


def _typed_over(line: str) -> str:
    shown: list[str] = []
    for character in line:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


def limits() -> tuple[int, int]:
    """Return how many characters and tokens the text of a result may have, without its last lines."""
    characters = _settings.RESULT_CHARACTERS.read()
    tokens = _settings.RESULT_TOKENS.read()
    return max(characters - RESERVE, 300), max(tokens - RESERVE // 4, 100)


def tokens_of(text: str) -> int:
    """Return about how many tokens a model needs for a text."""
    if text.isascii():
        return len(text) // 4
    plain = len(text.encode("ascii", "ignore"))
    return plain // 4 + len(text) - plain


def fits(text: str) -> bool:
    """Whether a text may be shown whole."""
    characters, tokens = limits()
    return len(text) < characters and tokens_of(text) < tokens


def prefix_length(text: str, characters: int, tokens: int) -> int:
    """Return how much of a text's beginning fits."""
    if tokens_of(text[:characters]) <= tokens:
        return min(characters, len(text))
    low, high = 0, min(characters, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        if tokens_of(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return low


def head_of(text: str, part: float = 1.0) -> str:
    """Return the beginning of a text, as much as fits in that part of a result; whole lines if possible."""
    characters, tokens = limits()
    length = prefix_length(text, int(characters * part), int(tokens * part))
    if length < len(text):
        end = text.rfind("\n", max(0, length - LINE_SEARCH), length)
        length = end + 1 if end >= 0 else length
    return text[:length]


def tail_of(text: str, part: float = 1.0) -> str:
    """Return the end of a text, likewise."""
    characters, tokens = limits()
    end = text[-int(characters * part) :]
    length = prefix_length(end[::-1], len(end), int(tokens * part))
    if length == len(text):
        return text
    start = len(text) - length
    line = text.find("\n", start - 1, start + LINE_SEARCH)
    return text[line + 1 :] if 0 <= line < len(text) - 1 else text[start:]
