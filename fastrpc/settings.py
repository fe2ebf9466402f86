"""Settings: their definitions, their sources, and the resulting values.

Sources, lowest to highest precedence: the built-in default, ``~/.scorpiox/scorpiox-env.txt``,
``~/.claude/scorpiox-env.txt``, ``./.claude/scorpiox-env.txt``, ``./.scorpiox/scorpiox-env.txt``, the process
environment, command-line options. An invalid line is a warning; it never prevents the start.

The settings in this module are the server's own. A toolset declares its own settings: a `Setting` at the top
of a module of tools, or of the module ``_settings`` beside them (docs/toolsets.md). They have the same
sources, checks and presentation, and are read when the toolset is loaded (`Configuration.declare`).

The two files in the working directory may come from a cloned repository, and are not trusted. They may switch
features off, but not switch on again what a file in the home folder switched off; they may not weaken a guard
or grant a permission; and keys that name code, a program, a folder, an address or a secret are ignored there.

`load` reads at most four small files (`fastrpc.settings_files`; a missing file costs one failed look-up), and
imports nothing but `os` if there are none. It prints nothing: the caller receives the warnings. The meaning
of a setting belongs to the code that reads it. To add a setting of the server, add a line to `SETTINGS`.
"""

from __future__ import annotations

import os

from fastrpc.environment import raw_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
    from typing import Any

    Default = Any | Callable[[Mapping[str, str], str], Any]
    Line = tuple[int, str, str, str, bool]
    """A line of a file: its number among the lines of all files, its place, key, text, and whether the file
    is trusted."""

__all__ = ["STATE_DIR", "Setting"]

FILE_NAME = "scorpiox-env.txt"

ON = frozenset(("1", "true", "yes", "on"))
OFF = frozenset(("0", "false", "no", "off"))
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

SHIPPED_TOOLSET = "fastrpc.tools.agent"


class Setting:
    """The definition of one key: its name, kind, default and purpose.

    `kind` says how the text is parsed and who may set it: ``flag``, ``count``, ``bytes``, ``seconds``,
    ``text``, ``names``, ``level``, ``wording``, ``reach``, ``address``, ``file``, ``folder``,
    ``folders``, ``program``, ``module``, ``secret``, or a flag with a rule for untrusted files: ``guard``
    (they may not switch it off), ``permission`` (they may not switch it on). A default that depends on
    the environment is a function of the environment and the home folder. A name that ends with ``_*``
    defines a family of flags, one for each name. `after` is the server's setting after which this one, and
    those declared after it, are listed; by default they are listed last.

    Raises DefinitionError for an invalid name of an environment variable and for an unknown kind.
    """

    __slots__ = ("after", "default", "description", "kind", "name")

    def __init__(self, name: str, kind: str, default: Default, description: str, *, after: str = "") -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.description = description
        self.after = after
        if kind not in PARSERS or not name.removesuffix("*").isidentifier():
            from fastrpc.errors import DefinitionError

            if kind in PARSERS:
                raise DefinitionError(f"setting: expected a name of letters, digits and _, got {name!r:.80}")
            kinds = ", ".join(PARSERS)
            raise DefinitionError(f"setting {name}: kind: expected one of {kinds}, got {kind!r}")

    def read(self, name: str = "") -> Any:
        """Return the current value in this process: from the environment, to which `fastrpc serve` exports
        the values of files and options, else the default. Secrets from files are not exported, but are
        returned too. A text that cannot be parsed counts as not set, and for a guard as on; a warning was
        written at the start.

        `name` is the member of a family: ``PAGES.read("front-page")`` of ``PAGE_*`` reads
        ``PAGE_FRONT_PAGE``. Each call looks up the environment and parses the text.
        """
        key = switch(self.name[:-1], name) if name else self.name
        text = _in_environment(key).strip() or _kept_secrets.get(key, "")
        if text:
            try:
                return PARSERS[self.kind](text)
            except ValueError:
                if self.kind == "guard":
                    return True
        default = self.default
        return default(os.environ, os.path.expanduser("~")) if callable(default) else default


def _in_environment(key: str) -> str:
    """``os.environ.get(key, "")``, faster for a missing variable: `get` raises and catches an exception."""
    variables = raw_environment()
    return "" if variables is not None and key.encode() not in variables else os.environ.get(key, "")


_kept_secrets: dict[str, str] = {}
"""Secrets from files, for `Setting.read`: child processes would inherit the environment."""


class SettingValue:
    """A setting's value and origin: ``default``, ``environment``, ``command line``, or file and line."""

    __slots__ = ("origin", "setting", "value")

    def __init__(self, setting: Setting, value: Any, origin: str) -> None:
        self.setting = setting
        self.value = value
        self.origin = origin

    def shown(self) -> str:
        """Return the value for display: secrets are masked."""
        value = self.value
        if value is None or value == "" or value == ():
            return "-"
        if self.setting.kind == "secret":
            return "********"
        if self.setting.kind == "address":
            return _without_password(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return self.text()

    def text(self) -> str:
        """Return the value as text for a file or the environment."""
        value = self.value
        if value is None:
            return ""
        if value is True or value is False:
            return "1" if value else "0"
        if isinstance(value, tuple):
            return ",".join(value)
        return f"{value:g}" if isinstance(value, float) else str(value)


def state_folder(environ: Mapping[str, str], home: str) -> str:
    """Return the default state folder (XDG base directories: a relative path is ignored)."""
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "fastrpc")


def switch(prefix: str, name: str) -> str:
    """Return the key of the switch for `name`: ``switch("TOOL_", "my-tool")`` is ``TOOL_MY_TOOL``."""
    return prefix + "".join(c if c.isalnum() else "_" for c in name).upper()


def parse_flag(text: str) -> bool:
    folded = text.lower()
    if folded in ON:
        return True
    if folded in OFF:
        return False
    raise ValueError("expected true or false")


def parse_count(text: str, most_digits: int = 9) -> int:
    if text.isascii() and text.isdigit() and 0 < len(text) <= most_digits and int(text) > 0:
        return int(text)
    raise ValueError("expected a whole number from 1 up")


def parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 1e9 or "_" in text:  # NaN fails here too
        raise ValueError("expected a number of seconds, 0 or more")
    return seconds


def parse_wording(text: str) -> str:
    """Parse which texts tools have: ``published`` or ``full``. Raises ValueError."""
    wording = text.strip().lower()
    if wording not in ("published", "full"):
        raise ValueError("expected published or full")
    return wording


def parse_level(text: str) -> str:
    if text.lower() in LOG_LEVELS:
        return text.lower()
    raise ValueError(f"expected one of {', '.join(LOG_LEVELS)}")


def parse_names(text: str) -> tuple[str, ...]:
    return tuple(part for part in (piece.strip() for piece in text.split(",")) if part)


def parse_reach(text: str) -> tuple[str, ...]:
    parts = parse_names(text.lower())
    if parts != ("all",):
        from ipaddress import ip_network

        for part in parts:
            try:
                if part != "public":
                    ip_network(part)
            except ValueError:
                raise ValueError("expected public, all, or networks such as 10.1.0.0/16") from None
    return parts


def parse_folder(text: str) -> str:
    return os.path.abspath(os.path.expanduser(text)) if text else ""


PARSERS: dict[str, Callable[[str], Any]] = {
    "flag": parse_flag,
    "guard": parse_flag,
    "permission": parse_flag,
    "count": parse_count,
    "bytes": lambda text: parse_count(text, 15),
    "seconds": parse_seconds,
    "level": parse_level,
    "wording": parse_wording,
    "text": str,
    "names": parse_names,
    "patterns": str,
    "reach": parse_reach,
    "file": parse_folder,
    "folder": parse_folder,
    "folders": lambda text: tuple(map(parse_folder, parse_names(text))),
    "program": os.path.expanduser,
    "module": str,
    "address": str,
    "secret": str,
}


ASK_TERMINAL = Setting("ASK_TERMINAL", "permission", False, "questions to a person may use the terminal")
STATE_DIR = Setting("FASTRPC_STATE_DIR", "folder", state_folder, "where state and long outputs are kept")
"""The folder for persistent state; toolsets read it too."""

TASKS_DATABASE = Setting(
    "FASTRPC_TASKS_DATABASE",
    "secret",
    "",
    "where tasks are: sqlite:///PATH or postgresql://…; unset: tasks.sqlite3 in the state folder",
)
SHARED = Setting(
    "FASTRPC_SHARED",
    "secret",
    "",
    "the database, postgresql://…, by which hosts notify each other of changes",
)
TASK_WORKERS = Setting(
    "FASTRPC_TASK_WORKERS", "flag", False, "leave tasks to the processes of fastrpc worker"
)

SETTINGS = (
    Setting("TOOLS", "flag", True, "serve tools at all; off: the list is empty"),
    Setting("MODEL", "text", "", "accepted and reported; fastrpc calls no model"),
    ASK_TERMINAL,
    Setting(
        "FASTRPC_ASK_SECONDS", "seconds", 300.0, "how long a person may think; at most 590; 0: do not ask"
    ),
    Setting("MCP_ALLOW", "patterns", "", "of a gateway: globs of the tools to show; unset: all"),
    Setting("MCP_DENY", "patterns", "", "of a gateway: globs of tools not to show"),
    Setting("FASTRPC_TOOLSET", "module", SHIPPED_TOOLSET, "the tools served when no target is named"),
    Setting(
        "FASTRPC_DESCRIPTIONS",
        "wording",
        "published",
        "texts of the agent's tools: published, or full, for models",
    ),
    STATE_DIR,
    Setting(
        "FASTRPC_DRAIN_SECONDS",
        "seconds",
        1.0,
        "how long calls may still end after the end of input; over HTTP 5, after a signal",
    ),
    Setting(
        "FASTRPC_NOTICE_SECONDS",
        "seconds",
        0.0,
        "over HTTP: after a signal, /readyz refuses for so long before the server ends",
    ),
    Setting("FASTRPC_MAX_IN_FLIGHT", "count", None, "calls in flight at most; unset: as the server says"),
    Setting("FASTRPC_MAX_BATCH", "count", None, "messages of a batch at most; unset: as the server says"),
    Setting("FASTRPC_THREADS", "count", None, "worker threads at most; unset: as the server says"),
    Setting("FASTRPC_LOG_LEVEL", "level", "warning", "debug, info, warning, error or critical"),
    Setting("FASTRPC_LOG_FILE", "file", "", "append the log to this file; unset: to standard error"),
    Setting("FASTRPC_TOKEN", "secret", "", "over HTTP: what clients have to bring"),
    Setting(
        "FASTRPC_SECRET", "secret", "", "signs what clients carry; the same on all machines that serve them"
    ),
    Setting("FASTRPC_SECRET_FILE", "file", "", "more such keys, one a line"),
    SHARED,
    TASKS_DATABASE,
    TASK_WORKERS,
    Setting("FASTRPC_WORKERS", "count", 1, "over HTTP: processes that serve"),
    Setting("FASTRPC_HTTP_BODY_BYTES", "count", 16 * 1024**2, "over HTTP: no request is longer"),
    Setting("FASTRPC_HTTP_BODIES_BYTES", "count", 256 * 1024**2, "over HTTP: all large requests together"),
    Setting("FASTRPC_HTTP_SESSIONS", "count", 10_000, "over HTTP: sessions of a process at most"),
    Setting(
        "FASTRPC_HTTP_SESSION_SECONDS", "seconds", 1800.0, "over HTTP: an unused session is kept so long"
    ),
    Setting("FASTRPC_HTTP_HEALTH", "flag", True, "over HTTP: serve /healthz and /readyz"),
)

# Switches, one for each tool; their names are known when tools are loaded.
SWITCHES = Setting("TOOL_*", "flag", True, "one tool, on or off")


class Configuration:
    """All settings with their values and origins, and the warnings.

    `declared` are the settings besides those of the server. `pending` are lines of files whose keys are not
    declared yet; `held_off` are the switches that the user has switched off.
    """

    def __init__(self, environ: Mapping[str, str], home: str) -> None:
        self.values: dict[str, SettingValue] = {}
        self.declared: list[Setting] = []
        self.pending: list[Line] = []
        self.held_off: set[str] = set()
        self.files_read: set[tuple[int, int]] = set()
        self.lines_read = 0
        self._environ = environ
        self._present = dict.fromkeys(environ)  # looking up a missing key in os.environ costs an exception
        self._home = home
        self._families: dict[str, Setting] = {}
        self._warned: list[tuple[int, int, str]] = []
        self._shown = 0
        self._exported: MutableMapping[str, str] | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def __iter__(self) -> Iterator[SettingValue]:
        return iter(self.values.values())

    @property
    def warnings(self) -> list[str]:
        """All warnings, in the order of the lines."""
        return [text for _, _, text in sorted(self._warned)]

    def new_warnings(self) -> list[str]:
        """Return the warnings added since the last call, in the order of the lines."""
        new = sorted(self._warned[self._shown :])
        self._shown = len(self._warned)
        return [text for _, _, text in new]

    def warn(self, text: str, line: int) -> None:
        """Add a warning about a line, given by its number among the lines of all files."""
        self._warned.append((line, len(self._warned), text))

    def origin(self, name: str) -> str:
        return self.values[name].origin

    def is_on(self, prefix: str, name: str) -> bool:
        """Return whether the switch of `name` is on, which is the default."""
        value = self.values.get(switch(prefix, name))
        return value is None or bool(value.value)

    def export(self, environ: MutableMapping[str, str]) -> None:
        """Export the values of files and options to `environ`, now and when more settings are declared.

        Code that reads the environment, in worker processes too, sees the settings in this way. Secrets are
        not exported, because every child process would inherit them.
        """
        self._exported = environ
        for name, value in self.values.items():
            origin = value.origin
            if origin == "default" or (origin == "environment" and name in environ):
                continue
            if value.setting.kind != "secret":
                environ[name] = value.text()

    # --- declarations ---

    def declare(self, settings: Iterable[Setting]) -> None:
        """Add the settings of a toolset, with their values from all sources.

        A setting that is already declared with the same kind and default is skipped. Raises DefinitionError
        for a name that is declared with another meaning.
        """
        added = self.add(settings)
        self.declared += added
        if self.pending:
            pending, self.pending = self.pending, []
            for line in pending:
                self.take_line(line)
        self.take_environment(added)
        for setting in added:
            if setting.kind == "secret":
                self._keep_secret(self.values[setting.name])
        if self._exported is not None:
            self.export(self._exported)

    def add(self, settings: Iterable[Setting]) -> list[Setting]:
        """Add settings with their defaults, and return the new ones. Raises as `declare`."""
        added = []
        switches = tuple(self._families)
        for setting in settings:
            name = setting.name
            there = self.values.get(name)
            if name.endswith("*"):
                if self._families.setdefault(name[:-1], setting) is setting:
                    added.append(setting)
            elif there is None and not name.startswith(switches):
                default = setting.default
                if callable(default):
                    default = default(self._environ, self._home)
                self.values[name] = SettingValue(setting, default, "default")
                added.append(setting)
            elif there is None or (there.setting.kind, there.setting.default) != (
                setting.kind,
                setting.default,
            ):
                from fastrpc.errors import DefinitionError

                raise DefinitionError(f"the setting {name} is already declared with another meaning")
        return added

    def _keep_secret(self, value: SettingValue) -> None:
        """Mask a toolset's secret in all output, and store it for `Setting.read`."""
        if value.value:
            from fastrpc.redaction import hide

            hide(value.value)
            if value.origin != "environment":
                _kept_secrets[value.setting.name] = value.value

    # --- sources ---

    def take_line(self, line: Line) -> None:
        """Apply a line of a file, or store it until its key is declared."""
        number, origin, key, text, trusted = line
        value = self.values.get(key)
        setting = value.setting if value is not None else family_member(key, self._families)
        if setting is None:
            self.pending.append(line)
        else:
            self.take(setting, text, origin, number, trusted)

    def take_environment(self, settings: Iterable[Setting]) -> None:
        """Apply the environment. Empty variables count as not set; unknown names belong to other programs."""
        environ, last = self._environ, self.lines_read + 1
        present = self._present
        for setting in settings:
            name = setting.name
            if not name.endswith("*"):
                text = environ.get(name) if name in present else None
                if text:
                    self.take(setting, text.strip(), "environment", last)
                continue
            prefix = name[:-1]
            for name in present:
                if name.startswith(prefix) and name != prefix and (text := environ.get(name)):
                    member = _member(setting, name)
                    if member.name == name or member.name not in present:
                        self.take(member, text.strip(), "environment", last)

    def take(self, setting: Setting, text: str, origin: str, line: int, trusted: bool = True) -> None:
        """Set one value, or add a warning with the reason for its refusal."""
        name = setting.name
        try:
            value = PARSERS[setting.kind](text)
        except ValueError as error:
            came = text if len(text) <= 40 else text[:40] + "…"
            self.warn(f"{origin}: {name}: {error}, got {came!r}", line)
            return
        if not trusted:
            from fastrpc.settings_files import refusal

            why = refusal(self, setting, value)
            if why:
                self.warn(f"{origin}: {name} {why}", line)
                return
        elif value is False:
            self.held_off.add(name)
        else:
            self.held_off.discard(name)
        self.values[name] = SettingValue(setting, value, origin)


def load(
    environ: Mapping[str, str] | None = None,
    home: str | None = None,
    directory: str = ".",
    options: Mapping[str, str] | None = None,
    settings: tuple[Setting, ...] = SETTINGS,
) -> Configuration:
    """Read all sources and return the resulting configuration.

    `options` are texts from the command line, by the name of their setting. All sources can be passed
    explicitly; by default they are those of this process. Lines of files whose keys are not in `settings`
    wait for `Configuration.declare`; `settle` warns of the rest.
    """
    if environ is None:
        environ = os.environ
    if home is None:
        home = os.path.expanduser("~")
    configuration = Configuration(environ, home)
    added = configuration.add((*settings, SWITCHES))
    for place, shown, folder in (
        (home, "~", ".scorpiox"),
        (home, "~", ".claude"),
        (directory, ".", ".claude"),
        (directory, ".", ".scorpiox"),
    ):
        path = os.path.join(place, folder, FILE_NAME)
        if os.path.lexists(path):
            from fastrpc.settings_files import take_file

            take_file(configuration, path, f"{shown}/{folder}/{FILE_NAME}", shown == "~")
    configuration.take_environment(added)
    for name, text in (options or {}).items():
        last = configuration.lines_read + 1
        configuration.take(configuration.values[name].setting, text, "command line", last)
    return configuration


def declared_in(module: Any) -> list[Setting]:
    """Return the settings at the top of a module, in order, including imported ones."""
    return [value for value in vars(module).values() if isinstance(value, Setting)]


def family_member(key: str, families: Mapping[str, Setting]) -> Setting | None:
    """Return the setting of a switch such as ``TOOL_WEB-SEARCH``, by the prefix of its family."""
    for prefix, family in families.items():
        if key[: len(prefix)].upper() == prefix and len(key) > len(prefix):
            return _member(family, key)
    return None


def settle(configuration: Configuration, others: Iterable[Setting] = ()) -> None:
    """Warn of each remaining line, unless `others` define its key. Called when all settings are declared."""
    by_name = {setting.name: setting for setting in others}
    families = {name[:-1]: by_name.pop(name) for name in list(by_name) if name.endswith("*")}
    known = [*configuration.values, *by_name]
    pending, configuration.pending = configuration.pending, []
    for number, origin, key, _text, _trusted in pending:
        if key not in by_name and family_member(key, families) is None:
            from fastrpc.errors import suggestion

            shown = key if key.isprintable() else ascii(key)
            configuration.warn(f"{origin}: unknown key {shown}{suggestion(key, known, 1)}", number)


def _member(family: Setting, key: str) -> Setting:
    prefix = family.name[:-1]
    setting = Setting.__new__(Setting)  # unchecked: the name is from outside
    setting.name = switch(prefix, key[len(prefix) :])
    setting.kind, setting.default, setting.description = family.kind, family.default, family.description
    setting.after = family.name
    return setting


def _without_password(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    if not separator or "@" not in host:
        return address
    return f"{scheme}://****@{host.rpartition('@')[2]}{slash}{path}"
