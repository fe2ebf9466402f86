"""The sources of a project: reads those of a folder, accepts those in the call, and refuses sources that are
too large, lead out of the project or configure the engine.

Costs reading every file once. The compiler and the sandbox check everything in a source except its imports
and its settings for forge. Blocks: call it on a worker thread.
"""

from __future__ import annotations

import os
import posixpath
import re

from .._errors import INVALID_REQUEST, EngineError, invalid
from .._requests import MOST_BYTES, MOST_FILES
from .._values import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG, REMAPPINGS, LIBRARIES = "foundry.toml", "remappings.txt", "lib"
FOLDERS = ("src", "contracts", "test", "script")
SUFFIXES = (".sol", ".vy", ".vyi")
LONGEST_PATH = 400

# The settings that a source may contain for its own tests. Any other could override those of this module:
# forge reads fs_permissions from there, too.
_SETTING = re.compile(
    r":[ \t]*(?:\w+\.)?(?:(?:fuzz|invariant)\.[a-z_]+|isolate|allow_internal_expect_revert)[ \t]*=[ \t]*"
    r"(?:[0-9]{1,10}|true|false)[ \t\r]*(?:\*/[^\n]*)?"
)
# Compilers differ in whether these characters end a line, and so in what is a comment.
_ODD_LINE_END = re.compile("[\v\f\x85\u2028\u2029]|\r(?!\n)")
_VYPER_IMPORT = re.compile(r"\bfrom((?:[ \t\f.]|\\\r?\n)+)")
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|\bimport\b|;", re.DOTALL
)


def gathered(
    sources: dict[str, str] | None, project_root: str | None, project_config: bool
) -> dict[str, str]:
    """The files by path: those of the call, and those of the project folder. Raises EngineError."""
    files = {} if project_root is None else _of_project(project_root, project_config)
    for path, text in (sources or {}).items():
        where = f'sources["{path[:100]}"]'
        _check_path(where, path, project_config)
        if not isinstance(text, str):
            raise invalid(where, "the file's text", quoted(text))
        files[path] = text
    check_size("sources" if project_root is None else "project_root", files)
    for path, text in files.items():
        where = f'sources["{path}"]'
        if any(posixpath.join(*path.split("/")[:end]) in files for end in range(1, path.count("/") + 1)):
            raise invalid(where, "a folder that is not a file as well", quoted(path))
        if path.endswith(".sol"):
            _check_source(where, path, text)
        elif path.endswith(SUFFIXES):
            _check_vyper(where, path, text)
    return files


# --- what is accepted ---------------------------------------------------------------------------


def _check_path(where: str, path: str, project_config: bool) -> None:
    steps = path.split("/")
    if steps[-1] == ".env":
        raise invalid(where, "a source; variables are not taken: the compiler would see them", quoted(path))
    if path in (CONFIG, REMAPPINGS) or steps[0] == LIBRARIES:
        if not project_config:
            raise EngineError(
                INVALID_REQUEST,
                f"{where}: expected a source, got a project's own configuration, which --project-config "
                "allows (FASTRPC_CONTRACTS_PROJECT_CONFIG)",
            )
        if path in (CONFIG, REMAPPINGS):
            return
    if (
        not path.endswith(SUFFIXES)
        or len(path.encode(errors="replace")) > LONGEST_PATH
        or any(step.startswith(".") or not step.strip() or len(step) > 200 for step in steps)
        or not path.isprintable()
        or "\\" in path
        or ":" in path
    ):
        raise invalid(
            where, "a relative path to a .sol file, such as test/Counter.t.sol, without ..", quoted(path)
        )


def check_size(where: str, files: dict[str, str]) -> None:
    """Raise EngineError for no files, too many, or too large ones."""
    if not files:
        raise invalid(where, f"at least one source (in a project: below {', '.join(FOLDERS)})", "none")
    if len(files) > MOST_FILES:
        raise invalid(where, f"at most {MOST_FILES} files", str(len(files)))
    try:
        total = sum(len(text.encode()) for text in files.values())
    except UnicodeEncodeError:
        raise invalid(where, "text that is Unicode", "a lone surrogate") from None
    if total > MOST_BYTES:
        raise invalid(where, f"at most {MOST_BYTES} bytes together", str(total))


def _check_source(where: str, path: str, text: str) -> None:
    if found := _ODD_LINE_END.search(text):
        raise invalid(where, "lines that end with a line feed", quoted(found[0]))
    for found in re.finditer("forge-config", text, re.IGNORECASE):
        end = text.find("\n", found.end())
        line = text[found.end() : end if end >= 0 else len(text)]
        if not _SETTING.fullmatch(line):
            expected = "settings only of fuzz and invariant after forge-config:, with a number, true or false"
            raise invalid(where, expected, quoted(line.strip(": \t\r")))
    for imported in _imports(text):
        if not _stays_inside(path, imported):
            raise invalid(where, "imports from within the sources", quoted(imported))


def _check_vyper(where: str, path: str, text: str) -> None:
    """Refuse an import from a folder above all sources: one dot is the file's own folder."""
    for found in _VYPER_IMPORT.finditer(text):
        if found[1].count(".") - 1 > path.count("/"):
            raise invalid(where, "imports from within the sources", quoted(found[0]))


def _imports(text: str) -> Iterator[str]:
    """The imports of the source, as written."""
    importing = False
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in ("import", ";"):
            importing = token == "import"
        elif importing and token[0] in "\"'":
            yield token[1:-1]


def _stays_inside(path: str, imported: str) -> bool:
    if "\\" in imported or ":" in imported or imported.startswith("/"):
        return False
    if imported.startswith("."):
        imported = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported))
    return ".." not in imported.split("/")


# ---------------------------------------------------------------------------------- a project folder


def _of_project(root: str, project_config: bool) -> dict[str, str]:
    """The sources of a project folder, and its configuration if requested. ``.env`` is never read: its values
    are secret, and would reach the compiler."""
    if not os.path.isabs(root) or not os.path.isdir(root):
        raise invalid("project_root", "the absolute path of a folder", quoted(root))
    if not project_config:
        return read_below(root, FOLDERS)
    return read_below(root, (*FOLDERS, LIBRARIES), (CONFIG, REMAPPINGS))


def read_below(root: str, folders: tuple[str, ...], more: tuple[str, ...] = ()) -> dict[str, str]:
    """The sources below some folders of a project, and `more` files, by path. Links and hidden names are left
    out. Raises EngineError for too many or too large ones."""
    files: dict[str, str] = {}
    total = 0
    for path in (*more, *_paths(root, folders)):
        text = _text(os.path.join(root, path))
        if text is None:
            continue
        total += len(text)
        if len(files) == MOST_FILES or total > MOST_BYTES:
            raise invalid("project_root", f"at most {MOST_FILES} sources and {MOST_BYTES} bytes", "more")
        files[path] = text
    return files


def _paths(root: str, folders: tuple[str, ...]) -> Iterator[str]:
    for folder in folders:
        top = os.path.join(root, folder)
        if os.path.islink(top):
            continue
        for place, inner, names in os.walk(top):
            inner[:] = [name for name in inner if not name.startswith(".")]
            for name in sorted(names):
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    yield os.path.relpath(os.path.join(place, name), root)


def _text(path: str) -> str | None:
    """The text of a regular file, None for anything else."""
    from fastrpc.regular_files import open_regular

    try:
        descriptor = open_regular(path, follow=False)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(MOST_BYTES + 1).decode(errors="replace")
