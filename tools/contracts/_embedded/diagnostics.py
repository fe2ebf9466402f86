"""What compilers say, in one form: severity, code, type and message; path, line and column where they name a place.

solc names a place by an offset in bytes, which costs one look at each file that has a message. Vyper writes it
into its text, and names, besides, the file that was being compiled, which need not be the one with the error.
Lines and columns begin with 1; columns count characters. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from .._errors import SOLC_FAILED, VYPER_FAILED, EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Diagnostic = dict[str, Any]

MOST_SHOWN = 5  # diagnostics in an error's text; all of them are in its details

_LINE_END = re.compile(rb"\n")
_VYPER_PLACE = re.compile(
    r"^ *(?:contract \"(?P<path>[^\"\n]+):[0-9]+\", )?(?:function \"[^\"\n]*\", )?"
    r"line (?P<line>[0-9]+):(?P<column>[0-9]*) ?$",
    re.MULTILINE,
)
_VYPER_HINT = re.compile(r"^ *\(hint: .*\)", re.MULTILINE | re.DOTALL)
_VYPER_SEVERAL = "Compilation failed with the following errors:"
_VYPER_NEXT = re.compile(r"\n\n+(?=[A-Z]\w+: )")


class SolcReader:
    """Reads the messages of one output of solc. `sources` are the texts by path."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources
        self._files: dict[str, tuple[bytes, list[int]]] = {}

    def diagnostic_of(self, error: dict[str, Any]) -> Diagnostic:
        found = {
            "severity": error["severity"],
            "code": error.get("errorCode"),
            "type": error.get("type"),
            "message": error["message"],
        }
        place = error.get("sourceLocation")
        if place and place.get("start", -1) >= 0 and place["file"] in self._sources:
            found |= self._place(place["file"], place["start"])
        return found

    def _place(self, path: str, start: int) -> dict[str, Any]:
        content, lines = self._file(path)
        line = bisect_right(lines, start)
        before = content[lines[line - 1] : start].decode(errors="replace")
        return {"path": path, "line": line, "column": len(before) + 1}

    def _file(self, path: str) -> tuple[bytes, list[int]]:
        """The file's bytes, and where its lines begin."""
        if path not in self._files:
            content = self._sources[path].encode()
            self._files[path] = content, [0, *(found.end() for found in _LINE_END.finditer(content))]
        return self._files[path]


def of_vyper(error: dict[str, Any], sources: dict[str, str]) -> list[Diagnostic]:
    """The diagnostics in one message of Vyper: one for each error that it lists."""
    text = str(error.get("formattedMessage") or error.get("message"))
    if not text.startswith(_VYPER_SEVERAL):
        return [_of_vyper(error, str(error.get("type")), text, sources)]
    found = []
    for each in _VYPER_NEXT.split(text.removeprefix(_VYPER_SEVERAL).lstrip("\n")):
        kind, _, rest = each.partition(": ")
        found.append(_of_vyper(error, kind, rest, sources))
    return found[::-1]  # it lists the last one first


def _of_vyper(error: dict[str, Any], kind: str, text: str, sources: dict[str, str]) -> Diagnostic:
    place = _VYPER_PLACE.search(text)
    message = text[: place.start()].strip() if place else text.strip()
    if place and (hint := _VYPER_HINT.search(text, place.end())):
        message += " " + hint[0].strip()
    found = {"severity": error["severity"], "code": None, "type": kind, "message": message}
    location = error.get("sourceLocation") or {}
    path = (place and place["path"]) or location.get("file")
    if path not in sources:
        return found
    found["path"] = path
    if place:
        found |= {"line": int(place["line"]), "column": int(place["column"] or 0) + 1}
    return found


def failure_of(errors: list[Diagnostic], diagnostics: list[Diagnostic]) -> EngineError:
    """The failure of a compilation with these errors."""
    shown = [_shown(each) for each in errors[:MOST_SHOWN]]
    if len(errors) > MOST_SHOWN:
        shown.append(f"and {len(errors) - MOST_SHOWN} more")
    is_vyper = all(is_vyper_path(each.get("path", "")) for each in errors)
    return EngineError(
        VYPER_FAILED if is_vyper else SOLC_FAILED, "; ".join(shown), details={"diagnostics": diagnostics}
    )


def _shown(error: Diagnostic) -> str:
    place = ":".join(str(error[name]) for name in ("path", "line", "column") if name in error)
    return f"{place}: {error['message']}" if place else str(error["message"])


def is_vyper_path(path: str) -> bool:
    """Whether a file is Vyper's: a contract or module, ``.vy``, or an interface, ``.vyi``."""
    return path.endswith((".vy", ".vyi"))
