"""The clients of `fastrpc install-client`: where each stores its servers, and the names of the members.

A client is one entry of `CLIENTS`. File formats are in `_client_formats`, file access in `_client_files`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from fastrpc.cli._client_formats import (
    NEW_SESSION,
    ClientProgram,
    JsonClient,
    NewEntry,
    TomlClient,
    YamlClient,
    command_entry,
)

NOTICES = "it notices by itself"


def _home(*parts: str) -> str:
    return os.path.join(os.path.expanduser("~"), *parts)


def _settings(*parts: str) -> str:
    """Return a path in the folder for settings of most programs on Linux, and some on macOS."""
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or _home(".config"), *parts)


def _programs(*parts: str) -> str:
    """Return a path in the folder where desktop programs store their settings."""
    if sys.platform == "darwin":
        return _home("Library", "Application Support", *parts)
    return _settings(*parts)


def _within(variable: str, default: str, name: str) -> str:
    """Return a file's path in the folder that a variable names, else in the default folder."""
    return os.path.join(os.environ.get(variable) or default, name)


def _opencode_file() -> str:
    """Return opencode's file: the one whose name allows comments, if it exists."""
    with_comments = _settings("opencode", "opencode.jsonc")
    default = with_comments if os.path.exists(with_comments) else _settings("opencode", "opencode.json")
    return os.environ.get("OPENCODE_CONFIG") or default


def _typed(entry: NewEntry) -> dict[str, Any]:
    return {"type": "stdio", **command_entry(entry)}


def _typed_url(url: str) -> dict[str, Any]:
    return {"type": "http", "url": url}


def _opencode_entry(entry: NewEntry) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "local", "command": [entry.command, *entry.args], "enabled": True}
    if entry.env:
        found["environment"] = entry.env
    return found


CLIENTS: dict[str, ClientProgram] = {
    "claude-code": JsonClient(
        "Claude Code",
        lambda: _within("CLAUDE_CONFIG_DIR", _home(), ".claude.json"),
        local=_typed,
        remote_entry=_typed_url,
        variable="${{{}}}",
    ),
    "claude-desktop": JsonClient(
        "Claude Desktop",
        lambda: _programs("Claude", "claude_desktop_config.json"),
        "quit it and start it again",
    ),
    "vscode": JsonClient(
        "VS Code",
        lambda: _programs("Code", "User", "mcp.json"),
        NOTICES,
        "servers",
        _typed,
        _typed_url,
        "${{env:{}}}",
    ),
    "cursor": JsonClient(
        "Cursor",
        lambda: _home(".cursor", "mcp.json"),
        NOTICES,
        remote_entry=lambda url: {"url": url},
        variable="${{env:{}}}",
    ),
    "codex": TomlClient(
        "Codex", lambda: _within("CODEX_HOME", _home(".codex"), "config.toml"), section="mcp_servers"
    ),
    "gemini": JsonClient(
        "Gemini CLI",
        lambda: _home(".gemini", "settings.json"),
        remote_entry=lambda url: {"httpUrl": url},
        variable="${{{}}}",
    ),
    "opencode": JsonClient(
        "opencode",
        _opencode_file,
        NEW_SESSION,
        "mcp",
        _opencode_entry,
        lambda url: {"type": "remote", "url": url, "enabled": True},
        "{{env:{}}}",
    ),
    "goose": YamlClient("goose", lambda: _settings("goose", "config.yaml"), section="extensions"),
    "zed": JsonClient(
        "Zed",
        lambda: _settings("zed", "settings.json"),
        NOTICES,
        "context_servers",
        lambda entry: {"source": "custom", **command_entry(entry)},
        lambda url: {"url": url},
    ),
    "windsurf": JsonClient(
        "Windsurf",
        lambda: _home(".codeium", "windsurf", "mcp_config.json"),
        "press Refresh in its list of servers",
        remote_entry=lambda url: {"serverUrl": url},
        variable="${{env:{}}}",
    ),
    "cline": JsonClient(
        "Cline",
        lambda: _programs(
            *("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings"),
            "cline_mcp_settings.json",
        ),
        NOTICES,
        remote_entry=lambda url: {"type": "streamableHttp", "url": url},
    ),
}
