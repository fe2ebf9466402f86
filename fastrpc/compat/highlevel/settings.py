"""The settings of a compat server and of the program, as FastMCP and the official SDK have them.

``mcp.settings`` are a server's, `settings` the program's (``fastmcp.settings``). A value is, in this order:
what was assigned, what the server's constructor was given, what was assigned to the program's settings, the
environment (``FASTMCP_PORT``), the file ``.env`` (or FASTMCP_ENV_FILE), the default. Read when a server
starts; costs nothing in a call. Secrets do not belong here.
"""

from __future__ import annotations

import os

from fastrpc.errors import UsageError, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "FASTMCP_"
ENV_FILE_VARIABLE = "FASTMCP_ENV_FILE"

DEFAULTS: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 8000,
    "transport": "stdio",
    "mount_path": "/",
    "sse_path": "/sse",
    "message_path": "/messages/",
    "streamable_http_path": "/mcp",
    "json_response": False,
    "stateless_http": False,
    "max_request_body_size": 16 * 1024 * 1024,
    "session_idle_timeout": 1800.0,
    "http_session_idle_timeout": "auto",
    "max_sessions": 10_000,
    "http_host_origin_protection": None,
    "http_allowed_hosts": None,
    "http_allowed_origins": None,
    "transport_security": None,
    "debug": False,
    "log_level": "INFO",
    "log_enabled": True,
    "client_log_level": None,
    "client_init_timeout": None,
    "client_disconnect_timeout": 5.0,
    "client_raise_first_exceptiongroup_error": True,
    "show_server_banner": True,
    "show_cli_banner": True,
    "check_for_updates": "stable",
    "mask_error_details": False,
    "strict_input_validation": False,
    "mounted_components_raise_on_load_error": False,
    "include_fastmcp_meta": True,
    "include_tags": None,
    "exclude_tags": None,
    "decorator_mode": "function",
    "deprecation_warnings": True,
    "enable_rich_logging": True,
    "enable_rich_tracebacks": False,
    "mcp_camelcase_compat": True,
    "telemetry_mode": None,
    "test_mode": False,
    "home": None,
    "server_auth": None,
    "server_dependencies": [],
    "dependencies": [],
    "ssrf_trust_proxy": False,
    "warn_on_duplicate_tools": True,
    "warn_on_duplicate_resources": True,
    "warn_on_duplicate_prompts": True,
    "lifespan": None,
    "auth": None,
}
"""The settings, and their defaults. Many have no effect here; programs set them all the same."""

_FLAGS = {
    "1": True,
    "true": True,
    "t": True,
    "yes": True,
    "y": True,
    "on": True,
    "0": False,
    "false": False,
    "f": False,
    "no": False,
    "n": False,
    "off": False,
}
_NUMBERS = {
    "port": int,
    "max_request_body_size": int,
    "max_sessions": int,
    "session_idle_timeout": float,
    "http_session_idle_timeout": float,
    "client_init_timeout": float,
    "client_disconnect_timeout": float,
}
_OPTIONAL = ("max_sessions", "session_idle_timeout", "http_session_idle_timeout", "client_init_timeout")
"""Numbers that the environment may also give as ``none``."""
_LISTS = ("http_allowed_hosts", "http_allowed_origins", "server_dependencies", "dependencies")


class FastMCPSettings:
    """Settings by their names, as attributes: to be read, and to be assigned before a server starts.

    `values` are those that were given; others are looked up in `program`, which is None for the program's
    settings. Raises AttributeError for an unknown name.
    """

    __slots__ = ("_env_file", "_program", "_values")

    def __init__(self, program: FastMCPSettings | None = None, **values: Any) -> None:
        object.__setattr__(self, "_program", program)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_env_file", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in DEFAULTS:
            raise AttributeError(f"settings: there is no {name}{suggestion(name, DEFAULTS)}")
        found, value = self._find(name)
        return value if found else DEFAULTS[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in DEFAULTS:
            raise AttributeError(f"settings: there is no {name}{suggestion(name, DEFAULTS)}")
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        self._values.pop(name, None)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *DEFAULTS})

    def __repr__(self) -> str:
        named = ("host", "port", "streamable_http_path", "sse_path", "log_level")
        return f"Settings({', '.join(f'{name}={getattr(self, name)!r}' for name in named)})"

    def is_set(self, name: str) -> bool:
        """Return whether a setting has a value besides its default."""
        return self._find(name)[0]

    def model_dump(self, **options: object) -> dict[str, Any]:
        """Return all settings. Options are accepted, without effect."""
        return {name: getattr(self, name) for name in DEFAULTS}

    def _find(self, name: str) -> tuple[bool, Any]:
        values: dict[str, Any] = self._values
        if name in values:
            return True, values[name]
        if self._program is not None:
            found: tuple[bool, Any] = self._program._find(name)
            return found
        variable = PREFIX + name.upper()
        text = os.environ.get(variable)
        if text is None:
            text = self._file().get(variable)
        return (False, None) if text is None else (True, _read(name, text))

    def _file(self) -> dict[str, str]:
        """Return the variables of the file ``.env``, which is read once."""
        if self._env_file is None:
            object.__setattr__(self, "_env_file", _variables_in(os.environ.get(ENV_FILE_VARIABLE) or ".env"))
        found: dict[str, str] = self._env_file
        return found


settings = FastMCPSettings()
"""The program's settings (``fastmcp.settings``)."""


def _read(name: str, text: str) -> Any:
    """Return the value of a setting that the environment has as text. Raises UsageError."""
    kind = type(DEFAULTS[name])
    bare = text.strip()
    if name in _OPTIONAL and bare.lower() in ("", "none", "null"):
        return None
    if name == "http_host_origin_protection":
        return _FLAGS.get(bare.lower(), bare)
    if kind is bool:
        if bare.lower() not in _FLAGS:
            raise _wrong(name, "true or false", text)
        return _FLAGS[bare.lower()]
    if name in _NUMBERS:
        if bare == DEFAULTS[name]:
            return bare
        try:
            return _NUMBERS[name](bare)
        except ValueError:
            raise _wrong(name, "a number", text) from None
    if name in _LISTS:
        return _list_of(name, bare)
    return bare


def _list_of(name: str, text: str) -> list[str]:
    """Return a list that is written as JSON, or with commas. Raises UsageError."""
    if not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    import json

    try:
        found = json.loads(text)
    except ValueError:
        raise _wrong(name, "a list as JSON", text) from None
    return [str(part) for part in found]


def _wrong(name: str, expected: str, text: str) -> UsageError:
    return UsageError(f"{PREFIX}{name.upper()}: expected {expected}, got {text[:80]!r}")


def _variables_in(path: str) -> dict[str, str]:
    """Return the variables with our prefix that a file of lines ``NAME=value`` has; {} without one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1024 * 1024).splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name = name.strip().upper()
        if equals and name.startswith(PREFIX):
            found[name] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1]
    return value.partition(" #")[0].rstrip()
