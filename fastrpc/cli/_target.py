"""The target of a command: a file or module, a command, a URL, a configuration, or the name of a server in
``.mcp.json``.

`destination` determines which of these a command line names; `converse` connects to it with `PatientClient`,
and converts the errors of a session to one message and an exit code.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from fastrpc.cli import _credentials
from fastrpc.cli._durations import time_limit
from fastrpc.cli._own_server import own_command
from fastrpc.command_line import suggestion
from fastrpc.diagnostics import write_line
from fastrpc.errors import ClientError, ConnectionLost, InvalidConfig, RequestTimeout, Reworded, UsageError
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.config import ServerEntry
    from fastrpc.client.sync import SyncClient
    from fastrpc.command_line import CommandParser

TARGET_HELP = (
    "file.py, module, URL, the name of a server in .mcp.json, or mcp.json, for all its servers; "
    "without any, the agent's tools"
)


START_SECONDS = 30.0
ANSWER_SECONDS = 60.0


@dataclass
class Destination:
    """A server to connect to: `target` and `options` for `fastrpc.Client`, `shown` for messages.

    `is_own`: `fastrpc serve` serves it, in a child process. `entry`: its entry in a configuration.
    """

    target: Any
    shown: str
    options: dict[str, Any] = field(default_factory=dict)
    is_own: bool = False
    entry: ServerEntry | None = None


def add_options(options: CommandParser) -> None:
    """Add the options that every command with a target has."""
    options.option("--command COMMAND", "start the server by this command; or give it after --")
    options.option("--config FILE", "the configuration in which a server is named (the nearest .mcp.json)")
    options.option("--protocol VERSION", "speak this version (the latest that fits)")
    options.option("--guard FILE", "serve a file or module behind this guard (guard.toml)")
    options.option(
        "--timeout N",
        f"seconds for each answer ({START_SECONDS:g} to connect, then {ANSWER_SECONDS:g}; a call 600)",
        type=time_limit,
    )
    _credentials.add_options(options)


def add_time_limit(options: CommandParser, help: str) -> None:
    options.option("--time-limit SECONDS", help, type=time_limit)


def parse(
    options: CommandParser,
    arguments: list[str],
    limited: str = "give up after so long (never)",
) -> tuple[Namespace, Destination]:
    """Parse the arguments of a command whose only positional arguments are targets; return its options and
    the destination. `limited`: a text about what its time limit covers. Raises UsageError."""
    arguments, command = split_command(arguments)
    options.add_argument("targets", metavar="TARGET", nargs="*", help=TARGET_HELP)
    add_options(options)
    add_time_limit(options, limited)
    chosen = options.parse(arguments)
    return chosen, destination(chosen.targets, command, chosen)


def split_command(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments, and the command after ``--``. Raises UsageError if there is none after it."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    if at + 1 == len(arguments):
        raise UsageError("a command is needed after --, such as: -- python server.py")
    return arguments[:at], arguments[at + 1 :]


def destination(targets: list[str], command: list[str], chosen: Namespace) -> Destination:
    """Return the destination of a command line. `command`: the words after ``--``. Raises UsageError."""
    where = _destination(targets, command, chosen)
    if chosen.guard is not None and not where.is_own:
        raise UsageError(f"--guard: requires a file or module, not {where.shown}")
    headers = _credentials.headers_of(chosen.header)
    if not isinstance(where.target, str):
        given = {"--header": headers, "--token-file": chosen.token_file, "--auth": chosen.auth}
        for option, value in given.items():
            if value:
                raise UsageError(f"{option}: requires a URL, got {where.shown}")
        return where
    if headers:
        replaced = {name.lower() for name in headers}
        kept = {
            name: value
            for name, value in where.options.get("headers", {}).items()
            if name.lower() not in replaced
        }
        where.options["headers"] = {**kept, **headers}
    if chosen.token_file is not None:
        where.options["token"] = _credentials.token_in(chosen.token_file)
    if chosen.auth is not None:
        where.options["auth"] = chosen.auth
    return where


def _destination(targets: list[str], command: list[str], chosen: Namespace) -> Destination:
    if chosen.command is not None:
        import shlex

        if command:
            raise UsageError("give the command by --command or after --, not both")
        with Reworded(ValueError, UsageError, "--command: "):
            command = shlex.split(chosen.command)
        if not command:
            raise UsageError("--command: it is empty")
    if command:
        if targets:
            raise UsageError(f"a command is given already; what is {targets[0]!r}?")
        return Destination(command, command[0])
    if len(targets) == 1:
        if is_url(targets[0]):
            return Destination(targets[0], targets[0])
        entry = _named(targets[0], chosen.config)
        if entry is not None:
            with Reworded(InvalidConfig, UsageError, f"{targets[0]}: "):
                entry = entry.expanded()
            return Destination(entry.target, targets[0], dict(entry.options), entry=entry)
    elif chosen.config is not None and not targets:
        raise UsageError("--config: name a server in this file as the target")
    options = [] if chosen.guard is None else ["--guard", chosen.guard]
    is_configuration = len(targets) == 1 and targets[0].endswith(".json")
    # All of this process's variables: fastrpc's secrets among them are for this server.
    return Destination(
        own_command("gateway" if is_configuration else "serve", [*options, *targets]),
        targets[0] if targets else "fastrpc",
        {"env": dict(os.environ)},
        True,
    )


def is_url(text: str) -> bool:
    return text.lower().startswith(("http://", "https://"))


def _named(name: str, config: str | None) -> ServerEntry | None:
    """Return the server with a name, or None for a file or a module. Raises UsageError."""
    from fastrpc.client.config import find_config, read_config

    place = name.partition(":")[0]
    if config is None and (os.path.exists(place) or name.endswith(".py") or "/" in name):
        return None
    path = config or find_config()
    if path is None:
        return None
    try:
        entries = read_config(path)
    except InvalidConfig as error:
        if config is not None:
            raise UsageError(str(error)) from None
        write_line(f"fastrpc: warning: {error}")
        return None
    if name in entries:
        return entries[name]
    hint = suggestion(name, entries)
    if config is not None:
        raise UsageError(
            f"{path} has no server {name!r}{hint or '; it has ' + (', '.join(entries) or 'none')}"
        )
    if hint and not _is_module(place):
        raise UsageError(f"{name}: no file, no module, and no server in {path}{hint}")
    return None


def _is_module(name: str) -> bool:
    from importlib.util import find_spec

    if os.path.exists(f"{name.partition('.')[0]}.py"):
        return True
    try:
        return find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def converse(
    where: Destination,
    chosen: Namespace,
    work: Callable[[SyncClient], int],
    *,
    shows_stderr: bool = False,
    feedback: Feedback | None = None,
    time_limit: float | None = None,
    lists: bool = False,
    **handlers: Any,
) -> int:
    """Connect, and return the exit code of `work`; 1 if the session fails; 2 if `fastrpc serve` refused the
    target, after it has printed why. `shows_stderr`: forward the server's standard error; that of `fastrpc
    serve` is always forwarded. `time_limit`: seconds for the whole session. `lists`: `work` prints the
    server's features, so the failed servers of a gateway are named. Raises UsageError."""
    from fastrpc.cli._patient_client import PatientClient

    options = dict(where.options)
    shows_stderr = shows_stderr or where.is_own
    if not isinstance(where.target, str):
        options["stderr"] = shows_stderr
    limit: float | None = chosen.timeout
    options["client_info"] = {"name": "fastrpc-cli", "version": __version__}
    options["start_seconds"] = limit or START_SECONDS
    with Reworded((TypeError, ValueError, ImportError), UsageError, f"{where.shown}: "):
        target: Any = where.target
        if where.entry is not None and where.entry.is_restricted:
            from fastrpc.gateway.client_targets import restricted

            target, options = restricted(where.shown, where.entry, options)
        client = PatientClient(
            target,
            where.shown,
            version=chosen.protocol,
            feedback=feedback,
            time_limit=time_limit,
            timeout_seconds=limit or ANSWER_SECONDS,
            **handlers,
            **options,
        )
    try:
        with client:
            code = work(client)
            if lists and not where.is_own:
                from fastrpc.cli._gateway_failures import name_failures

                name_failures(client)
            return code
    except ConnectionLost as error:
        if where.is_own and error.exit_code == 2:
            return 2
        write_line(f"fastrpc: {_reason(where, error, shows_stderr)}")
    except RequestTimeout as error:
        write_line(f"fastrpc: {where.shown} does not answer: {error}{_option_of(error, chosen)}")
    except ClientError as error:
        write_line(f"fastrpc: {error}")
    return 1


def _option_of(error: RequestTimeout, chosen: Namespace) -> str:
    """Return a hint with the option that has set the time limit, unless the error names it."""
    from fastrpc.client.session import REPORTING

    text = str(error)
    if "(--time-limit)" in text:
        return ""
    is_call = text.partition(":")[0] in REPORTING
    return f" (--{'time-limit' if is_call and chosen.time_limit else 'timeout'} sets the limit)"


def _reason(where: Destination, error: ConnectionLost, shows_stderr: bool) -> str:
    """Return why a connection was lost, without the lines of standard error that have been forwarded."""
    from fastrpc.client.stdio import LAST_WORDS_BEGIN

    text = str(error)
    if shows_stderr:
        text = text.partition(LAST_WORDS_BEGIN)[0]
    return text.replace(f"the server {where.target[0]} ", f"the server {where.shown} ", 1)
