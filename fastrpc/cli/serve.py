"""``fastrpc serve``: serves tools over standard input and output, or over HTTP (`_serve_http`).

It runs before the first response, so the few options are parsed by hand, and only what the session needs is
imported. This module writes to stderr only; the server handles the protocol.
"""

from __future__ import annotations

import os

from fastrpc.cli import WAITS_FOR_CLIENT, configuration
from fastrpc.cli._assemble import assemble
from fastrpc.diagnostics import write_line
from fastrpc.errors import Reworded, UsageError
from fastrpc.transports import stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from fastrpc.server import Server
    from fastrpc.settings import Configuration

CALLS_HELP = """\
  --drain-seconds N     when the server ends, wait up to N seconds for running calls (1; over HTTP 5)
  --max-in-flight N     refuse further calls while N have not ended
  --log-level LEVEL     debug, info, warning, error or critical (warning)
  --log-file FILE       append the log to FILE instead of writing it to stderr
  --trace FILE          append every message received and sent to FILE, secrets masked
"""
STATS_HELP = """\
  --stats               print each tool's calls, errors, p50 and p99 to stderr: at the end,
                        and on SIGUSR1
"""
HTTP_HELP = """\
over HTTP:
  --http HOST:PORT      serve at this address; port 0: any free port; unix:PATH: a Unix socket
  --token-file FILE     clients must send one of the tokens in FILE, one per line (or the one in
                        FASTRPC_TOKEN)
  --no-auth             clients need no token; allowed at loopback addresses only
  --auth-server URL     clients must send an access token from this authorization server; may
                        be repeated
  --resource URL        with --auth-server: the URL at which clients reach this server
  --audience NAME       with --auth-server: the audience (aud) that access tokens must have;
                        without it that is the URL of --resource
  --scope NAME          with --auth-server: a scope that access tokens must have; may be
                        repeated
  --allow-host HOST     also accept requests for this host (their header Host); may be
                        repeated
  --allow-origin URL    accept requests that web pages of this origin send from a browser (their
                        header Origin); may be repeated
  --notice-seconds N    after a signal, answer /readyz with 503 and serve on for N seconds (0), so
                        that a load balancer sees it
"""
TLS_HELP = """\
  --tls-cert FILE       the certificate, for https
  --tls-key FILE        the private key of the certificate
  --access-log FILE     append a line for each request to FILE; -: write it to stderr
  --access-log-format FORMAT
                        text (the default) or json
"""
"""Parts of the help, also for `fastrpc gateway` and commands of toolsets (`http_command`)."""

GUARD_HELP = """\
  --guard FILE          guard.toml: who may call which tools, how often, and which calls a person must
                        approve
  --dashboard           with --guard and --http: pages at /dashboard, where people approve calls
"""
"""Part of the help, also for `fastrpc gateway`."""

HELP = f"""\
usage: fastrpc serve [OPTION…] [TARGET…]

Serve tools to an MCP client: over standard input and output, or over HTTP.

A target is a file (my_tools.py), a module (package.module) or one thing in it (module:app).
Without a target the agent's tools are served. Several targets are served together.

options:
  --cwd DIR             change to the folder DIR first: files and targets are relative to it
{GUARD_HELP}  --name NAME           the server's name, as clients see it
{CALLS_HELP}{STATS_HELP}  -h, --help            show this

{HTTP_HELP}  --workers N           how many processes serve (1)
{TLS_HELP}
examples:
  fastrpc serve
  fastrpc serve my_tools.py more_tools.py
  fastrpc serve package.server:app --log-level info
  TOOLS=false fastrpc serve
  fastrpc serve my_tools.py --http 127.0.0.1:8000 --token-file token
"""

# Options that set a setting; the others belong to this command.
SETTING_OPTIONS = {
    "--drain-seconds": "FASTRPC_DRAIN_SECONDS",
    "--log-file": "FASTRPC_LOG_FILE",
    "--log-level": "FASTRPC_LOG_LEVEL",
    "--max-in-flight": "FASTRPC_MAX_IN_FLIGHT",
    "--notice-seconds": "FASTRPC_NOTICE_SECONDS",
    "--workers": "FASTRPC_WORKERS",
}
FLAGS = ("--dashboard", "--no-auth", "--stats")
REPEATED = ("--allow-host", "--allow-origin", "--auth-server", "--scope")
HTTP_OPTIONS = (
    *("--http", "--no-auth", "--resource", "--audience", "--tls-cert", "--tls-key", "--token-file"),
    *("--access-log", "--access-log-format", "--dashboard"),
    *REPEATED,
)
OPTIONS = ("--cwd", "--guard", "--name", "--stats", "--trace", *SETTING_OPTIONS, *HTTP_OPTIONS)


def main(arguments: list[str]) -> int:
    """Serve until the session ends; return the exit code. Raises UsageError."""
    if "--help" in arguments or "-h" in arguments:
        from fastrpc.command_line import write_help

        write_help(HELP)
        return 0
    named = [argument.partition("=")[0] for argument in arguments if argument.startswith("--")]
    if not {*named} <= {"--", *OPTIONS}:  # the others may be a toolset's
        from fastrpc.cli._toolset_options import export_toolset_options

        arguments = export_toolset_options(arguments, "serve")
    options, targets = split_arguments(arguments)
    for_http = is_for_http(options)
    anywhere = _change_folder(options.get("--cwd"), targets)
    texts = setting_texts(options)
    settings = configuration(texts, targets)
    given = dict(os.environ) if anywhere else {}
    apply(settings)
    if for_http:
        from fastrpc.cli._serve_http import serve

        serve(options, settings, lambda: assemble(targets, settings, name=options.get("--name")))
        return 0

    def make() -> Server:
        stdio.prepare()  # a target may print while it is imported
        server = assemble(targets, settings, name=options.get("--name"), later=True)
        if anywhere:
            from fastrpc.cli._roots import follow_roots

            follow_roots(server, settings, given, texts)
        return server

    serve_over_stdio(options, settings, make, lambda: _greet(targets))
    return 0


def is_for_http(options: dict[str, str]) -> bool:
    """Whether options require HTTP; if so, check them. Raises UsageError."""
    given = [name for name in ("--workers", "--notice-seconds", *HTTP_OPTIONS) if name in options]
    if given:
        from fastrpc.cli._serve_http import check

        check(options, given)
    return bool(given)


def apply(settings: Configuration) -> None:
    """Export the settings to this process's environment, and begin to log as they say; the path of the log
    file is absolute there. Raises UsageError."""
    settings.export(os.environ)
    path = settings["FASTRPC_LOG_FILE"]
    if path:
        check_appendable("--log-file", path)
        os.environ["FASTRPC_LOG_FILE"] = path


def split_arguments(
    arguments: list[str],
    command: str = "serve",
    more: Mapping[str, str] | None = None,
    *,
    flags: Iterable[str] = (),
    without: Collection[str] = (),
) -> tuple[dict[str, str], list[str]]:
    """Return the options, by name, and the targets. ``--name=x`` and ``--name x`` are equivalent; after
    ``--`` everything is a target. `more`: the options that `command` has besides those of `serve`, each with
    the separator of several values, or "" if it has one value. `flags`: those of them without a value.
    `without`: options of `serve` that `command` does not have. Raises UsageError."""
    joints = {**dict.fromkeys(REPEATED, ","), **(more or {})}
    names = (*(name for name in OPTIONS if name not in without), *(more or ()))
    flags = (*FLAGS, *flags)
    options: dict[str, str] = {}
    targets: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            targets.extend(rest)
        elif not argument.startswith("-"):
            targets.append(argument)
        else:
            name, equals, text = argument.partition("=")
            if name not in names:
                from fastrpc.command_line import unknown_option

                raise unknown_option(argument, (*names, "--help"), command)
            if name in flags and not equals:
                options[name] = "1"
                continue
            value = text if equals and name not in flags else next(rest, None)
            if not value or name in flags:
                wrong = "takes no value" if name in flags else "needs a value"
                raise UsageError(f"{name} {wrong} (see 'fastrpc {command} --help')")
            if joints.get(name) and name in options:
                value = f"{options[name]}{joints[name]}{value}"
            options[name] = value
    return options, targets


def setting_texts(options: dict[str, str]) -> dict[str, str]:
    """Return the options that are settings, by the setting's name, each validated. Raises UsageError."""
    from fastrpc.settings import PARSERS, SETTINGS

    texts = {SETTING_OPTIONS[name]: text for name, text in options.items() if name in SETTING_OPTIONS}
    if texts:
        option_of = {setting: option for option, setting in SETTING_OPTIONS.items()}
        for setting in SETTINGS:
            if setting.name in texts:
                text = texts[setting.name]
                with Reworded(ValueError, UsageError, f"{option_of[setting.name]}: ", f", got {text!r}"):
                    PARSERS[setting.kind](text)
    return texts


def _change_folder(folder: str | None, targets: list[str]) -> bool:
    """Change to the working directory. Desktop clients start servers in ``/``, which is not a project; the
    agent's tools then use the home folder until the client sends its roots. Return whether the client may be
    asked. Raises UsageError."""
    anywhere = folder is None and not targets and os.path.realpath(".") == "/"
    if anywhere:
        try:
            os.chdir(os.path.expanduser("~"))
        except OSError:
            pass
    enter(folder)
    return anywhere


def enter(folder: str | None) -> None:
    """Change to the working directory that ``--cwd`` names, if it is given. Raises UsageError."""
    if folder is not None:
        with Reworded(OSError, UsageError, f"--cwd {folder}: "):
            os.chdir(folder)


def serve_over_stdio(
    options: dict[str, str], settings: Configuration, make: Callable[[], Server], greet: Callable[[], None]
) -> None:
    """Serve the server that `make` returns, behind the guard of ``--guard``, until the session ends. `greet`
    writes to a person at a terminal. Raises UsageError."""
    trace = options.get("--trace")
    if trace is not None:
        check_appendable("--trace", trace)
    at_terminal = os.isatty(0)
    server = make()
    if "--guard" in options:
        from fastrpc.guard.serving import GuardedServing

        GuardedServing(options["--guard"], "stdio").guarded(server)
    if at_terminal:
        greet()
    server.run(drain_seconds=settings["FASTRPC_DRAIN_SECONDS"], trace=trace, stats="--stats" in options)


def check_appendable(option: str, path: str) -> None:
    """Check that a file can be appended to; a new one is readable by its owner only. Raises UsageError."""
    from fastrpc.regular_files import open_regular

    with Reworded(OSError, UsageError, f"{option} {path}: "):
        os.close(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


def _greet(targets: list[str]) -> None:
    """Write to a person at a terminal what this program is, since they may expect a prompt."""
    import shlex
    from shutil import which

    from fastrpc.cli.install_client import own_program

    program = "fastrpc" if which("fastrpc") else shlex.join(own_program())
    named = "".join(f" {shlex.quote(target)}" for target in targets)
    given = "".join(f" --target {shlex.quote(target)}" for target in targets)
    write_line(
        f"{WAITS_FOR_CLIENT}\n"
        "A client starts it by itself, once it is in the client's configuration:\n"
        f"  {program} install-client claude-code{named}\n"
        f"('{program} install-client --help' names the other clients; --print shows the entry.)\n"
        "To try the tools by hand:\n"
        f"  {program} tools{named}\n"
        f"  {program} call TOOL key=value{given}"
    )
