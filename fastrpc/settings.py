"""Settings: what there is to set, where each value may come from, and which of them won.

Sources, lowest to highest: the built-in default, ``~/.scorpiox/scorpiox-env.txt``,
``~/.claude/scorpiox-env.txt``, ``./.claude/scorpiox-env.txt``, ``./.scorpiox/scorpiox-env.txt``, the
process environment, options of the command line. A bad line is one warning, never a failed start.

The two files of the working directory come with a cloned repository, which is not the user. They may
switch things off, but not back on what a home file switched off; they may not lower a guard, nor give a
permission; and a key that names code, a program, a folder, an address or a secret is ignored there.

`load` reads at most four small files (a missing one costs one failed open) and imports nothing but
`os`. It prints nothing: the warnings are handed to the caller. What a setting means is up to whoever
reads it; to add one, add a line to `SETTINGS`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping
    from typing import Any

    Default = Any | Callable[[Mapping[str, str], str], Any]

FILE_NAME = "scorpiox-env.txt"
KEY_LIMIT = 64
VALUE_LIMIT = 512
FILE_LIMIT = 256 * 1024

ON = frozenset(("1", "true", "yes", "on"))
OFF = frozenset(("0", "false", "no", "off"))
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

# What a file in the working directory may not set: each names something that is then run, read,
# written, called or trusted.
HELD_BACK = {
    "module": "code",
    "program": "a program",
    "file": "a file",
    "folder": "a folder",
    "folders": "folders",
    "address": "an address",
    "reach": "what may be reached",
    "secret": "a secret",
}

# Families of switches, one for each tool or skill: no table can list them.
SWITCH_PREFIXES = ("TOOL_", "SKILL_")


class Setting:
    """One key: its name, kind, default and what it is for.

    `kind` says how the text is read (`PARSERS`) and who may set it. A default that depends on the
    environment is a function of the environment and the home folder.
    """

    __slots__ = ("default", "description", "kind", "name")

    def __init__(self, name: str, kind: str, default: Default, description: str) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.description = description


class Value:
    """The value of a setting and where it came from: ``default``, ``environment``,
    ``command line``, or the file and line."""

    __slots__ = ("origin", "setting", "value")

    def __init__(self, setting: Setting, value: Any, origin: str) -> None:
        self.setting = setting
        self.value = value
        self.origin = origin

    def shown(self) -> str:
        """Return the value as a person may read it: secrets are masked."""
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
        """Return the value as it would be written in a file or in the environment."""
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


SETTINGS = (
    Setting("TOOLS", "flag", True, "serve tools at all; off: the list is empty"),
    Setting("STREAMING", "flag", True, "send output as progress while a tool runs, if the call asks"),
    Setting("MODEL", "text", "", "accepted and reported; fastrpc calls no model"),
    Setting("ADDITIONAL_SKILLS", "folders", (), "more folders with skills, separated by commas"),
    Setting("PLAN_ENFORCE", "guard", False, "refuse tools that write or execute while plan mode is on"),
    Setting("ASK_TERMINAL", "permission", False, "questions to a person may use the terminal"),
    Setting(
        "FASTRPC_ASK_SECONDS", "seconds", 300.0, "how long a person may think; at most 590, 0: ask nobody"
    ),
    Setting("FASTRPC_TOOLSET", "module", "fastrpc.tools.agent", "the tools served when no target is named"),
    Setting("FASTRPC_STATE_DIR", "folder", state_folder, "where state and long outputs are kept"),
    Setting("FASTRPC_PATIENCE_SECONDS", "seconds", 55.0, "no call lasts longer than this; 0: no limit"),
    Setting("FASTRPC_RESULT_CHARACTERS", "count", 30_000, "a tool's result stays below so many characters"),
    Setting("FASTRPC_RESULT_TOKENS", "count", 20_000, "and about so many tokens"),
    Setting("FASTRPC_OUTPUT_FILE_BYTES", "count", 256 * 1024**2, "the most that one output's file holds"),
    Setting("FASTRPC_STRUCTURED", "flag", False, "send the facts of each result as structuredContent"),
    Setting(
        "FASTRPC_DRAIN_SECONDS",
        "seconds",
        1.0,
        "how long calls may still end after the end of input; over HTTP 5, after a signal",
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
    Setting("FASTRPC_WORKERS", "count", 1, "over HTTP: processes that serve"),
    Setting("FASTRPC_HTTP_BODY_BYTES", "count", 16 * 1024**2, "over HTTP: no request is longer"),
    Setting("FASTRPC_HTTP_SESSIONS", "count", 10_000, "over HTTP: sessions of a process at most"),
    Setting(
        "FASTRPC_HTTP_SESSION_SECONDS", "seconds", 1800.0, "over HTTP: an unused session is kept so long"
    ),
    Setting(
        "FASTRPC_REACH",
        "reach",
        (),
        "what tools may fetch: public, all, or more networks; unset: public over HTTP, else all",
    ),
    Setting("FASTRPC_IMAGE_FILE_BYTES", "count", 256 * 1024**2, "no longer image file is read"),
    Setting("FASTRPC_IMAGE_MEMORY_BYTES", "count", 1024**3, "the memory that decoding an image may take"),
    Setting("FASTRPC_IMAGE_SECONDS", "count", 10, "the processor time that decoding an image may take"),
    Setting("FASTRPC_BROWSER", "program", "", "the browser that renders web pages"),
    Setting("FASTRPC_BROWSER_SANDBOX", "guard", True, "the browser's own sandbox"),
    Setting("FASTRPC_BROWSER_IDLE_SECONDS", "seconds", 120.0, "how long an idle browser is kept"),
    Setting("FASTRPC_SEARCH_ENGINES", "names", (), "search engines, separated by commas; none: all"),
    Setting("FASTRPC_SEARXNG_URL", "address", "", "an instance of SearXNG, one of the search engines"),
    Setting("FASTRPC_SEARCH_USER_AGENT", "text", "", "what search engines are told we are; unset: fastrpc"),
    Setting("FASTRPC_SEARCH_ADDRESS", "address", "", "stands in for all search engines, for tests"),
)


def switch(prefix: str, name: str) -> str:
    """Return the key that switches `name`: ``switch("TOOL_", "my-tool")`` is ``TOOL_MY_TOOL``."""
    return prefix + "".join(c if c.isalnum() else "_" for c in name).upper()


def parse_flag(text: str) -> bool:
    folded = text.lower()
    if folded in ON:
        return True
    if folded in OFF:
        return False
    raise ValueError("expected true or false")


def parse_count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0:
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


def parse_folders(text: str) -> tuple[str, ...]:
    return tuple(parse_folder(part) for part in parse_names(text))


PARSERS: dict[str, Callable[[str], Any]] = {
    "flag": parse_flag,
    "guard": parse_flag,
    "permission": parse_flag,
    "count": parse_count,
    "seconds": parse_seconds,
    "level": parse_level,
    "text": str,
    "names": parse_names,
    "reach": parse_reach,
    "file": parse_folder,
    "folder": parse_folder,
    "folders": parse_folders,
    "program": os.path.expanduser,
    "module": str,
    "address": str,
    "secret": str,
}


class Configuration:
    """Every setting with its value and origin, and the warnings that came up on the way."""

    __slots__ = ("values", "warnings")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.warnings: list[str] = []

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values.values())

    def origin(self, name: str) -> str:
        return self.values[name].origin

    def is_on(self, prefix: str, name: str) -> bool:
        """Say whether the switch of `name` is on; one that nobody set is."""
        value = self.values.get(switch(prefix, name))
        return value is None or bool(value.value)

    def export(self, environ: MutableMapping[str, str]) -> None:
        """Write what files and options decided into `environ`.

        That is how a setting reaches code that reads the environment, worker processes included.
        Secrets stay out: every child would inherit them.
        """
        for name, value in self.values.items():
            there = value.origin == "default" or (value.origin == "environment" and name in environ)
            if not there and value.setting.kind != "secret":
                environ[name] = value.text()


def load(
    environ: Mapping[str, str] | None = None,
    home: str | None = None,
    directory: str = ".",
    options: Mapping[str, str] | None = None,
    settings: tuple[Setting, ...] = SETTINGS,
) -> Configuration:
    """Read every source and return what won.

    `options` holds the texts given on the command line, by the name of their setting. All four
    sources can be given by hand; the defaults are this process's.
    """
    if environ is None:
        environ = os.environ
    if home is None:
        home = os.path.expanduser("~")
    configuration = Configuration()
    known = {setting.name: setting for setting in settings}
    for setting in settings:
        default = setting.default(environ, home) if callable(setting.default) else setting.default
        configuration.values[setting.name] = Value(setting, default, "default")
    seen: set[tuple[int, int]] = set()
    for folder in (".scorpiox", ".claude"):
        path = os.path.join(home, folder, FILE_NAME)
        _take_file(configuration, known, path, f"~/{folder}/{FILE_NAME}", seen, None)
    held_off = {name for name, value in configuration.values.items() if _is_switched_off(value)}
    for folder in (".claude", ".scorpiox"):
        path = os.path.join(directory, folder, FILE_NAME)
        _take_file(configuration, known, path, f"./{folder}/{FILE_NAME}", seen, held_off)
    _take_environment(configuration, known, environ)
    for name, text in (options or {}).items():
        _take(configuration, known[name], text, "command line", None)
    return configuration


def _is_switched_off(value: Value) -> bool:
    return value.value is False and value.origin != "default"


def _take_file(
    configuration: Configuration,
    known: dict[str, Setting],
    path: str,
    shown: str,
    seen: set[tuple[int, int]],
    held_off: set[str] | None,
) -> None:
    """Take the lines of one file. `held_off` is given for a file of the working directory: the keys
    that it may not switch back on."""
    if not os.path.lexists(path):  # as most: nothing more is imported for these
        return
    from fastrpc.regular_files import open_regular

    try:
        descriptor = open_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        configuration.warnings.append(f"{shown}: {error.strerror}")
        return
    try:
        text = _read_file(descriptor, seen)
    except (OSError, ValueError) as error:
        configuration.warnings.append(f"{shown}: {error}")
        return
    finally:
        os.close(descriptor)
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith("#"):
            _take_line(configuration, known, line, f"{shown}:{number}", held_off)


def _read_file(descriptor: int, seen: set[tuple[int, int]]) -> str:
    """Return the file's text; nothing when it was read before (the home folder may be the working
    directory, and is then the user's)."""
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in seen:
        return ""
    seen.add((status.st_dev, status.st_ino))
    if status.st_size > FILE_LIMIT:
        raise ValueError(f"larger than {FILE_LIMIT // 1024} KiB")
    return os.read(descriptor, FILE_LIMIT).decode("utf-8-sig", "replace")


def _take_line(
    configuration: Configuration, known: dict[str, Setting], line: str, origin: str, held_off: set[str] | None
) -> None:
    key, equals, text = line.partition("=")
    key = key.strip()
    text = _without_comment(text)
    if not equals or not key:
        configuration.warnings.append(f"{origin}: expected KEY=VALUE")
    elif len(key) > KEY_LIMIT:
        configuration.warnings.append(f"{origin}: the key is longer than {KEY_LIMIT} characters")
    elif len(text) > VALUE_LIMIT:
        configuration.warnings.append(f"{origin}: the value is longer than {VALUE_LIMIT} characters")
    elif "\0" in text:
        configuration.warnings.append(f"{origin}: the value holds a NUL character")
    else:
        setting = known.get(key) or _family(key)
        if setting is None:
            configuration.warnings.append(f"{origin}: {_unknown(key, known)}")
        else:
            _take(configuration, setting, text, origin, held_off)


def _without_comment(text: str) -> str:
    """Cut a comment off: a ``#`` with white space before it (a URL may hold one without)."""
    end = text.find("#")
    while end > 0 and not text[end - 1].isspace():
        end = text.find("#", end + 1)
    return (text if end < 0 else text[:end]).strip()


def _family(key: str) -> Setting | None:
    """Return a setting for a switch such as ``TOOL_WEB-SEARCH``."""
    for prefix in SWITCH_PREFIXES:
        if key[: len(prefix)].upper() == prefix and len(key) > len(prefix):
            what = prefix[:-1].lower()
            return Setting(switch(prefix, key[len(prefix) :]), "flag", True, f"one {what}, on or off")
    return None


def _unknown(key: str, known: dict[str, Setting]) -> str:
    from fastrpc.errors import resembling

    near = resembling(key, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown key {key if key.isprintable() else ascii(key)}{hint}"


def _take_environment(
    configuration: Configuration, known: dict[str, Setting], environ: Mapping[str, str]
) -> None:
    """Take what the environment sets; an empty variable counts as none, a name that is not ours is
    another program's."""
    for name in known:
        text = environ.get(name)
        if text:
            _take(configuration, known[name], text.strip(), "environment", None)
    for name in environ:
        if name.startswith(SWITCH_PREFIXES) and environ[name] and name not in known:
            setting = _family(name)
            if setting is not None and (setting.name == name or setting.name not in environ):
                _take(configuration, setting, environ[name].strip(), "environment", None)


def _take(
    configuration: Configuration, setting: Setting, text: str, origin: str, held_off: set[str] | None
) -> None:
    """Set one value, or add the warning that says why not."""
    name = setting.name
    try:
        value = PARSERS[setting.kind](text)
    except ValueError as error:
        came = text if len(text) <= 40 else text[:40] + "…"
        configuration.warnings.append(f"{origin}: {name}: {error}, got {came!r}")
        return
    if held_off is not None:
        refusal = _refusal(configuration, setting, value, held_off)
        if refusal:
            configuration.warnings.append(f"{origin}: {name} {refusal}")
            return
    configuration.values[name] = Value(setting, value, origin)


def _refusal(configuration: Configuration, setting: Setting, value: Any, held_off: set[str]) -> str:
    """Say why a file of the working directory may not set this, or return nothing."""
    if setting.kind in HELD_BACK:
        return f"is ignored here: a file in the working directory may not name {HELD_BACK[setting.kind]}"
    if value is True and setting.name in held_off:
        return f"stays off: {configuration.origin(setting.name)} switched it off"
    if setting.kind == "permission" and value is True and not configuration[setting.name]:
        return "stays off: a file in the working directory may not give a permission"
    if setting.kind == "guard" and value is False and configuration[setting.name]:
        return "stays on: a file in the working directory may not lower a guard"
    return ""


def _without_password(address: str) -> str:
    """Mask what stands between the scheme and the host of a URL."""
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    if not separator or "@" not in host:
        return address
    return f"{scheme}://****@{host.rpartition('@')[2]}{slash}{path}"
