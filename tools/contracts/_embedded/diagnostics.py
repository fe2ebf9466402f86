"""The messages of compilers in one form: severity, code, type, message; path, line and column where they give
a position.

solc gives a position as an offset in bytes, which costs one read of each file that has a message. Vyper
writes it into its text. The file that Vyper names separately is the one that was compiled, which may have
imported the one with the error. Lines and columns begin with 1. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from .._errors import EngineError

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
_VYPER_HINT = re.compile(r"^ *\(hint: ", re.MULTILINE)
_VYPER_SEVERAL = "Compilation failed with the following errors:"
_VYPER_NEXT = re.compile(r"(?<!\n)\n\n+(?=[A-Z]\w+: )")
_VYPER_NOISE = re.compile(r" \(<unknown>, line [0-9]+\)$")
_VYPER_COLLISION = re.compile(r"(?:Contract|Interface) namespace collision: (.+)")


class SolcReader:
    """Reads the messages in one output of solc. `sources` are the texts by path."""

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
        """The file's bytes, and the offsets at which its lines begin."""
        if path not in self._files:
            content = self._sources[path].encode(errors="surrogatepass")
            self._files[path] = content, [0, *(found.end() for found in _LINE_END.finditer(content))]
        return self._files[path]


def of_vyper(error: dict[str, Any], sources: dict[str, str]) -> list[Diagnostic]:
    """The diagnostics in one message of Vyper: one for each error that it lists."""
    text = str(error.get("formattedMessage") or error.get("message"))
    if not text.startswith(_VYPER_SEVERAL):
        return [_of_vyper(error, error.get("type"), text, sources)]
    found = []
    for each in _VYPER_NEXT.split(text.removeprefix(_VYPER_SEVERAL).lstrip("\n")):
        kind, _, rest = each.partition(": ")
        found.append(_of_vyper(error, kind, rest, sources))
    return found[::-1]  # it lists the last one first


def _of_vyper(error: dict[str, Any], kind: str | None, text: str, sources: dict[str, str]) -> Diagnostic:
    place = _VYPER_PLACE.search(text)
    message = _VYPER_NOISE.sub("", (text[: place.start()] if place else text).strip())
    if place and (hint := _VYPER_HINT.search(text, place.end())):
        message += f" {text[hint.start() : text.rfind(')') + 1].strip()}".rstrip()
    found = {"severity": error["severity"], "code": None, "type": kind, "message": message}
    path = (place and place["path"]) or (error.get("sourceLocation") or {}).get("file")
    if collision := _VYPER_COLLISION.fullmatch(message):
        path = collision[1]
        found["message"] += "; Vyper wants the names of files to differ, without folders and endings"
    if path not in sources:
        return found
    found["path"] = path
    if place:
        found |= {"line": int(place["line"]), "column": int(place["column"] or 0) + 1}
    return found


def errors_in(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    return [each for each in diagnostics if each["severity"] == "error"]


def failure_of(code: str, errors: list[Diagnostic], diagnostics: list[Diagnostic]) -> EngineError:
    """The failure of a compilation with these errors among these diagnostics."""
    shown = [_shown(each) for each in errors[:MOST_SHOWN]]
    if len(errors) > MOST_SHOWN:
        shown.append(f"and {len(errors) - MOST_SHOWN} more")
    return EngineError(code, "; ".join(shown), details={"diagnostics": diagnostics})


def _shown(error: Diagnostic) -> str:
    place = ":".join(str(error[name]) for name in ("path", "line", "column") if name in error)
    return f"{place}: {error['message']}" if place else str(error["message"])
