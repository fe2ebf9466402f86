"""Adds a server to a client's configuration text: JSON, TOML or YAML.

Text in, changed text out; no file access. Everything except the one entry stays as it was, including line
endings; a text that cannot be changed in this way is refused. Takes time linear in the length of the text.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastrpc import json_text
from fastrpc.client.config import ServerEntry
from fastrpc.errors import Reworded, UsageError

BLOCK_LINE = re.compile(r"\s|#|---\s|\.\.\.\s|[^\s:{\[-][^:]*:(?:\s|$)")
"""The beginning of a line in a YAML file that is one block mapping."""
NEW_SESSION = "start a new session"
UNSAFE = "the file has a form that cannot be changed safely; take --print and change it yourself"


@dataclass(eq=False, repr=False, slots=True)
class NewEntry(ServerEntry):
    """An entry to write. `token_variable` names the client's environment variable with the token for
    `url`."""

    token_variable: str = ""


@dataclass
class ClientProgram:
    """One client: its display name, its file (a function, as it depends on the environment), how to make the
    client reload the file, and the section with the servers. Subclasses implement the file's format.

    `remote`: whether the client itself can connect to URLs; `variable`: how its file refers to an environment
    variable, "" if it cannot.
    """

    title: str
    path: Callable[[], str]
    again: str = NEW_SESSION
    section: str = "mcpServers"
    remote = True
    variable = ""

    def changed(self, text: str, name: str, entry: NewEntry | None) -> str:
        """Return the file's text with a server, or without it if `entry` is None. Line endings CR LF stay.
        Raises UsageError for a text that cannot be parsed."""
        is_crlf = "\r\n" in text and text.count("\r\n") == text.count("\n")
        plain = text.replace("\r\n", "\n") if is_crlf else text
        found = self._take(plain, name) if entry is None else self._put(plain, name, entry)
        return found.replace("\n", "\r\n") if is_crlf else found

    def shown(self, name: str, entry: NewEntry) -> str:
        """Return the text that a person can paste into the file."""
        raise NotImplementedError

    def servers(self, text: str) -> dict[str, Any]:
        """Return the entries of a file by the server's name, as the client writes them. Raises UsageError or
        NotJson for a text that cannot be parsed."""
        raise NotImplementedError

    def _put(self, text: str, name: str, entry: NewEntry) -> str:
        raise NotImplementedError

    def _take(self, text: str, name: str) -> str:
        raise NotImplementedError


# --- JSON -------------------------------------------------------------------------------------------------


def command_entry(entry: NewEntry) -> dict[str, Any]:
    """Return the entry that most clients expect: `command`, `args` and `env`."""
    found: dict[str, Any] = {"command": entry.command, "args": entry.args}
    if entry.env:
        found["env"] = entry.env
    return found


@dataclass
class JsonClient(ClientProgram):
    """A client with a JSON file, which may contain comments and trailing commas.

    `local` and `remote_entry` return the entry of a server: ``local(entry)``, ``remote_entry(url)``.
    """

    local: Callable[[NewEntry], dict[str, Any]] = command_entry
    remote_entry: Callable[[str], dict[str, Any]] | None = None
    variable: str = ""

    def __post_init__(self) -> None:
        self.remote = self.remote_entry is not None

    def _put(self, text: str, name: str, entry: NewEntry) -> str:
        changed = json_text.put(text, self.section, name, self._entry(entry))
        return _checked_json(text, changed, self.section, name)

    def _take(self, text: str, name: str) -> str:
        return _checked_json(text, json_text.take(text, self.section, name), self.section, name)

    def shown(self, name: str, entry: NewEntry) -> str:
        servers = {self.section: {name: self._entry(entry)}}
        return json.dumps(servers, ensure_ascii=False, indent=2) + "\n"

    def servers(self, text: str) -> dict[str, Any]:
        return _member(json_text.parse(text).plain, self.section) if text.strip() else {}

    def servers_of_projects(self, text: str) -> dict[str, dict[str, Any]]:
        """Return Claude Code's entries for one project only, by the project's folder. Raises NotJson."""
        projects = _member(json_text.parse(text).plain, "projects") if text.strip() else {}
        return {folder: _member(project, self.section) for folder, project in projects.items()}

    def _entry(self, entry: NewEntry) -> dict[str, Any]:
        if not entry.url:
            return self.local(entry)
        assert self.remote_entry is not None
        found = self.remote_entry(entry.url)
        if entry.token_variable:
            found["headers"] = {"Authorization": "Bearer " + self.variable.format(entry.token_variable)}
        return found


def _member(document: Any, name: str) -> dict[str, Any]:
    """Return a member that is an object, an empty one for anything else."""
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _checked_json(before: str, after: str, section: str, name: str) -> str:
    """Return the changed text if nothing else has changed. Raises UsageError."""
    old = json_text.parse(before).plain if before.strip("\ufeff \t\r\n") else {}
    new = json_text.parse(after).plain
    if _without(old, section, name) != _without(new, section, name):
        raise UsageError(UNSAFE)
    return after


def _without(document: Any, section: str, name: str) -> Any:
    """Return a document without one server, and without a section that becomes empty."""
    servers = {key: value for key, value in document.get(section, {}).items() if key != name}
    rest = {key: value for key, value in document.items() if key != section}
    return {**rest, section: servers} if servers else rest


# --- TOML -------------------------------------------------------------------------------------------------


class TomlClient(ClientProgram):
    """Codex: each server is a table, followed by a table with its environment."""

    variable = "{}"

    def _put(self, text: str, name: str, entry: NewEntry) -> str:
        rest = self._take(text, name)
        return (rest.rstrip("\n") + "\n\n" if rest.strip() else "") + self.shown(name, entry)

    def _take(self, text: str, name: str) -> str:
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

    def shown(self, name: str, entry: NewEntry) -> str:
        table = f"{self.section}.{name if re.fullmatch('[A-Za-z0-9_-]+', name) else json.dumps(name)}"
        if entry.url:
            members: dict[str, Any] = {"url": entry.url}
            if entry.token_variable:
                members["bearer_token_env_var"] = entry.token_variable
        else:
            members = {"command": entry.command, "args": entry.args}
        lines = [f"[{table}]"]
        # JSON strings and lists of strings are valid TOML, except for \u escapes of surrogate pairs.
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in members.items()]
        if entry.env:
            lines.append(f"\n[{table}.env]")
            lines += [
                f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}"
                for key, value in entry.env.items()
            ]
        return "\n".join(lines) + "\n"

    def servers(self, text: str) -> dict[str, Any]:
        return _member(_toml_of(text), self.section)


def _toml_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML file. Raises UsageError."""
    if sys.version_info >= (3, 11):
        import tomllib

        with Reworded(tomllib.TOMLDecodeError, UsageError, "the file is not TOML: "):
            return tomllib.loads(text)
    raise UsageError("CPython 3.10 cannot read TOML")


def _check_toml(before: str, after: str, section: str, name: str) -> None:
    """Raise UsageError if anything else has changed. Checks nothing in CPython 3.10: it has no parser."""
    if sys.version_info >= (3, 11):
        old = _toml_of(before)
        try:
            new = _toml_of(after)
        except UsageError:
            raise UsageError(UNSAFE) from None
        if _without(old, section, name) != _without(new, section, name) or name in new.get(section, {}):
            raise UsageError(UNSAFE)


# --- YAML -------------------------------------------------------------------------------------------------


class YamlClient(ClientProgram):
    """Goose: each server is a block in the mapping `extensions`. Only whole lines are added and removed, in a
    section that is a block; other forms are refused, because this is not a complete YAML parser."""

    def _put(self, text: str, name: str, entry: NewEntry) -> str:
        lines = self._take(text, name).splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        begin, end = self._block(lines)
        if begin is None:
            return "".join([*lines, f"{self.section}:\n", *_yaml_entry(name, entry, "  ")])
        lines[begin - 1] = re.sub(r":[ \t]*(\{\}|~|null)", ":", lines[begin - 1], count=1)
        while end > begin and _is_gap(lines[end - 1]):
            end -= 1
        return "".join(
            [*lines[:end], *_yaml_entry(name, entry, _child_indent(lines[begin:end])), *lines[end:]]
        )

    def _take(self, text: str, name: str) -> str:
        lines = text.splitlines(keepends=True)
        begin, end = self._block(lines)
        if begin is None:
            return text
        indent = _child_indent(lines[begin:end])
        key = rf"(?:{re.escape(name)}|{re.escape(json.dumps(name, ensure_ascii=False))}|'{re.escape(name)}')"
        header = re.compile(rf"{indent}{key}[ \t]*:(?:[ \t\n]|$)")
        first = next((at for at in range(begin, end) if header.match(lines[at])), None)
        if first is None:
            return text
        after = first + 1
        while after < end and (lines[after].startswith(f"{indent} ") or not lines[after].strip()):
            after += 1
        while _is_gap(lines[after - 1]):
            after -= 1
        return "".join([*lines[:first], *lines[after:]])

    def _block(self, lines: list[str]) -> tuple[int | None, int]:
        """Return the first and last line of the section; None if the file has no such section."""
        found = [at for at, line in enumerate(lines) if line.startswith(f"{self.section}:")]
        if not found:
            if not all(BLOCK_LINE.match(line) for line in lines):
                raise UsageError(UNSAFE)
            return None, len(lines)
        inline = lines[found[0]].partition(":")[2].partition("#")[0].strip()
        if len(found) > 1 or inline not in ("", "{}", "~", "null") or any("\t" in line for line in lines):
            raise UsageError(UNSAFE)
        begin = end = found[0] + 1
        while end < len(lines) and (lines[end].startswith(" ") or _is_gap(lines[end])):
            end += 1
        return begin, end

    def shown(self, name: str, entry: NewEntry) -> str:
        return "".join([f"{self.section}:\n", *_yaml_entry(name, entry, "  ")])

    def servers(self, text: str) -> dict[str, Any]:
        lines = text.splitlines()
        begin, end = self._block(lines)
        if begin is None:
            return {}
        found = _yaml_members([line for line in lines[begin:end] if not _is_gap(line)])
        # The client's own extensions have neither a command nor an address.
        return {
            name: raw
            for name, raw in found.items()
            if isinstance(raw, dict) and ("cmd" in raw or "uri" in raw)
        }


def _yaml_entry(name: str, entry: NewEntry, indent: str) -> list[str]:
    """Return the lines of a server. Values are JSON, which is valid YAML."""
    members: dict[str, Any] = {"name": name, "enabled": True, "timeout": 300}
    if entry.url:
        members.update(type="streamable_http", uri=entry.url)
    else:
        members.update(type="stdio", cmd=entry.command, args=entry.args, envs=entry.env)
    lines = [f"{indent}{json.dumps(name, ensure_ascii=False)}:\n"]
    lines += [f"{indent}  {key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in members.items()]
    return lines


def _yaml_members(lines: list[str]) -> dict[str, Any]:
    """Return a block mapping of mappings, lists and scalars as Goose writes it; other YAML is not supported.

    `lines` contain neither comments nor blank lines. Scalars are read as JSON if possible, else as text.
    """
    found: dict[str, Any] = {}
    indent = _child_indent(lines)
    at = 0
    while at < len(lines):
        key, _, rest = lines[at].strip().partition(":")
        at += 1
        inner = []
        while at < len(lines) and (lines[at].startswith((f"{indent} ", f"{indent}- "))):
            inner.append(lines[at])
            at += 1
        name = str(_yaml_scalar(key))
        if rest.strip():
            found[name] = _yaml_scalar(rest.strip())
        elif inner and inner[0].strip().startswith("- "):
            found[name] = [_yaml_scalar(line.strip()[2:].strip()) for line in inner]
        else:
            found[name] = _yaml_members(inner) if inner else None
    return found


def _yaml_scalar(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    try:
        return json.loads(text)
    except ValueError:
        return text


def _child_indent(lines: list[str]) -> str:
    """Return the indentation of a block's first member."""
    first = next((line for line in lines if not _is_gap(line)), "  -")
    return first[: len(first) - len(first.lstrip(" "))]


def _is_gap(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
