"""The clients that `fastrpc install-client` knows: where each keeps its servers, and in which form.

A client is one entry of `CLIENTS`. Files are written whole or not at all, with a copy of what was there, and
only when everything else in them has stayed the same.
"""

from __future__ import annotations

import json
import os
import re
import sys

from fastrpc.cli import _json_text
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


UNSAFE = "the file has a form that cannot be changed safely; take --print and change it yourself"


class Client:
    """One client: its name for people, its file (a function, as it depends on the environment), the section
    of servers in it, what makes the client read it again, and what is added to a server's entry."""

    def __init__(
        self,
        title: str,
        path: Callable[[], str],
        section: str,
        again: str,
        more: dict[str, Any] | None = None,
    ) -> None:
        self.title = title
        self.path = path
        self.section = section
        self.again = again
        self.more = more or {}

    def put(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return a file's text with a server in it. Raises UsageError for a text that cannot be read."""
        changed = _json_text.put(text, self.section, name, {**self.more, **entry})
        return _checked(text, changed, self.section, name)

    def take(self, text: str, name: str) -> str:
        """Return a file's text without a server."""
        return _checked(text, _json_text.take(text, self.section, name), self.section, name)

    def shown(self, name: str, entry: dict[str, Any]) -> str:
        """Return what is to be put into a file, for a person to paste."""
        servers = {self.section: {name: {**self.more, **entry}}}
        return json.dumps(servers, ensure_ascii=False, indent=2) + "\n"


class CodexClient(Client):
    """Codex, whose file is TOML: each server is a table, with a table of its environment behind it."""

    def put(self, text: str, name: str, entry: dict[str, Any]) -> str:
        rest = self.take(text, name)
        return (rest.rstrip("\n") + "\n\n" if rest.strip() else "") + self.shown(name, entry)

    def take(self, text: str, name: str) -> str:
        key = rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"
        header = re.compile(rf"[ \t]*\[\s*{self.section}\s*\.\s*{key}\s*(?:\.[^\]]*)?\]")
        kept, ours = [], False
        for line in text.splitlines(keepends=True):
            if line.lstrip().startswith("["):
                ours = header.match(line) is not None
            if not ours:
                kept.append(line)
        changed = "".join(kept)
        if changed != text:
            changed = changed.rstrip("\n") + "\n" if changed.strip() else ""
        _check_toml(text, changed, self.section, name)
        return changed

    def shown(self, name: str, entry: dict[str, Any]) -> str:
        table = f"{self.section}.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else json.dumps(name)}"
        environment = entry.get("env", {})
        lines = [f"[{table}]"]
        # A JSON string or list of strings is one of TOML too, but for characters beyond 16 bits in \u form.
        for key in ("command", "args"):
            lines.append(f"{key} = {json.dumps(entry[key], ensure_ascii=False)}")
        if environment:
            lines.append(f"\n[{table}.env]")
            lines += [
                f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}"
                for key, value in environment.items()
            ]
        return "\n".join(lines) + "\n"


def _home(*parts: str) -> str:
    return os.path.join(os.path.expanduser("~"), *parts)


def _programs(*parts: str) -> str:
    """Return a path in the folder where desktop programs keep their settings."""
    if sys.platform == "darwin":
        return _home("Library", "Application Support", *parts)
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or _home(".config"), *parts)


def _within(variable: str, default: str, name: str) -> str:
    """Return a file's path in the folder that a variable names, else in the default one."""
    return os.path.join(os.environ.get(variable) or default, name)


CLIENTS = {
    "claude-code": Client(
        "Claude Code",
        lambda: _within("CLAUDE_CONFIG_DIR", _home(), ".claude.json"),
        "mcpServers",
        "start a new session",
        {"type": "stdio"},
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        lambda: _programs("Claude", "claude_desktop_config.json"),
        "mcpServers",
        "quit it and start it again",
    ),
    "vscode": Client(
        "VS Code",
        lambda: _programs("Code", "User", "mcp.json"),
        "servers",
        "it notices by itself",
        {"type": "stdio"},
    ),
    "cursor": Client("Cursor", lambda: _home(".cursor", "mcp.json"), "mcpServers", "it notices by itself"),
    "codex": CodexClient(
        "Codex",
        lambda: _within("CODEX_HOME", _home(".codex"), "config.toml"),
        "mcp_servers",
        "start a new session",
    ),
}


# --- what must not change -----------------------------------------------------------------------------------


def _checked(before: str, after: str, section: str, name: str) -> str:
    """Return a changed text if nothing else in it has changed."""
    old = _json_text.parse(before).plain if before.strip("\ufeff \t\r\n") else {}
    new = _json_text.parse(after).plain
    if _without(old, section, name) != _without(new, section, name):
        raise UsageError(UNSAFE)
    return after


def _check_toml(before: str, after: str, section: str, name: str) -> None:
    """Raise UsageError if anything else has changed. CPython 3.10 cannot read TOML: there nobody looks."""
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            old = tomllib.loads(before)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"the file is no TOML: {error}") from None
        try:
            new = tomllib.loads(after)
        except tomllib.TOMLDecodeError:
            raise UsageError(UNSAFE) from None
        if _without(old, section, name) != _without(new, section, name) or name in new.get(section, {}):
            raise UsageError(UNSAFE)


def _without(document: Any, section: str, name: str) -> Any:
    """Return a document without one server, and without a section that is empty then."""
    servers = {key: value for key, value in document.get(section, {}).items() if key != name}
    rest = {key: value for key, value in document.items() if key != section}
    return {**rest, section: servers} if servers else rest


# --- files --------------------------------------------------------------------------------------------------


def read(path: str) -> str:
    """Return a file's text, "" if there is none. Raises UsageError."""
    from fastrpc.regular_files import LARGEST, read_regular

    try:
        return read_regular(path, LARGEST).decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def write(path: str, text: str) -> str | None:
    """Replace a file at once, and return where its copy lies, None if there was no file. Raises UsageError.

    A link stays one: what it leads to is replaced. A new file is for its owner only, as it may hold secrets.
    """
    import tempfile

    path = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        backup = _copy(path)
        descriptor, new = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path) + ".")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if backup is not None:
                os.chmod(new, os.stat(path).st_mode & 0o7777)
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    return backup


def _copy(path: str) -> str | None:
    import shutil
    import time

    if not os.path.exists(path):
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S")
    backup = f"{path}.{stamp}.bak"
    number = 1
    while os.path.lexists(backup):  # a link there would be written through
        number += 1
        backup = f"{path}.{stamp}-{number}.bak"
    shutil.copy2(path, backup)
    return backup
