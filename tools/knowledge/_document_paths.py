"""Reads files by paths that callers name: only below the folders of `--documents`, and through no symbolic
link.

Callers over HTTP may name paths only if `--documents-callers` has their class. A path is walked folder by
folder, so no folder can be replaced by a link meanwhile. The folders themselves belong to the server, and may
be links.
"""

from __future__ import annotations

import os

from fastrpc import Context, ToolError, globs, regular_files

from . import _extraction, _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 4096


def read(ctx: Context, path: str) -> tuple[str, bytes]:
    """Return a file's name and content. Raises ToolError."""
    return _read_below(_folders(ctx, path, "path", "; give name, and content or base64"), path)


def place(ctx: Context, path: str, name: str) -> str:
    """Return the path of an existing file or folder; messages call it `name`. Raises ToolError."""
    folders = _folders(ctx, path, name, "")
    for folder in folders:
        found = os.path.join(os.path.realpath(folder), *_parts_below(folder, path))
        is_same = path.rstrip("/") in (folder.rstrip("/"), os.path.realpath(folder), ".")
        is_below = is_same or bool(_parts_below(folder, path))
        if is_below and os.path.realpath(found) == found and os.path.exists(found):
            return found
    raise ToolError(
        f"{name}: expected a file or folder below {' or '.join(folders)}, without links, got {path:.200}."
    )


def _folders(ctx: Context, path: str, name: str, instead: str) -> Sequence[str]:
    """Return the folders below which a caller may name a path. Raises ToolError."""
    folders: Sequence[str] = _settings.DOCUMENTS.read()
    if not folders:
        raise ToolError(f"{name}: the server was started without --documents DIR{instead}.")
    if not _may_name_paths(ctx):
        raise ToolError(f"{name}: this caller may not name files of the server{instead}.")
    if not path or len(path) > LONGEST or "\0" in path:
        raise ToolError(f"{name}: expected the path of a file, got {path!r:.80}.")
    return folders


def _may_name_paths(ctx: Context) -> bool:
    """Whether the caller is the user who runs the server, or of a class that may name paths."""
    if ctx.caller.principal.startswith("os:"):
        return True
    allowed = [each.strip() for each in str(_settings.DOCUMENTS_CALLERS.read()).split(",")]
    return any(globs.matches(ctx.caller.caller_class, each) for each in allowed if each)


def _read_below(folders: Sequence[str], path: str) -> tuple[str, bytes]:
    """Return the name and the content of a file of the first folder that has it."""
    problem = None
    for folder in folders:
        parts = _parts_below(folder, path)
        if not parts:
            continue
        try:
            return parts[-1].encode(errors="replace").decode(), _walk(folder, parts, path)
        except FileNotFoundError:
            problem = f"path: there is no {path:.200}."
        except OSError as error:
            problem = f"path: {path:.200}: {error.strerror}; links are not followed."
    raise ToolError(problem or f"path: expected a file below {' or '.join(folders)}, got {path:.200}.")


def _parts_below(folder: str, path: str) -> list[str]:
    """Return the names that lead from a folder to a path, none for a path outside of it."""
    below = path
    if os.path.isabs(path):
        places = (folder, os.path.realpath(folder))
        place = next((each for each in places if path.startswith(each.rstrip("/") + "/")), None)
        if place is None:
            return []
        below = path[len(place) :]
    parts = [part for part in below.split("/") if part not in ("", ".")]
    return [] if ".." in parts else parts


def _walk(folder: str, parts: list[str], path: str) -> bytes:
    """Return the content of a file. Raises OSError for the folders on the way, ToolError for the file
    itself."""
    descriptor = regular_files.open_folder_beneath(folder, parts[:-1])
    try:
        os.stat(parts[-1], dir_fd=descriptor, follow_symlinks=False)
        return _extraction.read_file(parts[-1], os.path.basename(path), dir_fd=descriptor)
    finally:
        os.close(descriptor)
