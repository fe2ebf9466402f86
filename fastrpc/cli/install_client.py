"""``fastrpc install-client``: adds this server to a client's configuration, shows the entry, or removes it.

The program is named by its absolute path, because desktop programs do not have a shell's PATH. The rest of
the file is unchanged, and a backup is made. The clients are in `_clients`. A server over HTTP is entered by
its URL if the client supports that, else as a `fastrpc bridge` command. A token is never written.
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace

from fastrpc.cli import parser
from fastrpc.cli._assemble import name_of
from fastrpc.cli._client_files import read, write
from fastrpc.cli._client_formats import ClientProgram, NewEntry
from fastrpc.cli._clients import CLIENTS
from fastrpc.cli._extras import extras
from fastrpc.command_line import suggestion
from fastrpc.errors import Reworded, UsageError
from fastrpc.json_text import NotJson

EXAMPLES = """\
  fastrpc install-client claude-code              the agent's tools
  fastrpc install-client cursor shop.py           yours, as "shop"
  fastrpc install-client vscode --print           show it, write nothing
  fastrpc install-client codex --remove           take it out again
  fastrpc install-client vscode --file .vscode/mcp.json
  fastrpc install-client cursor --http https://mcp.example.com/mcp --token-env MCP_TOKEN
  fastrpc install-client zed --http http://127.0.0.1:8000/mcp --token-file token
"""


def main(arguments: list[str]) -> int:
    """Change the configuration and print what was done; return 0. Raises UsageError."""
    chosen = _options(arguments)
    client = CLIENTS[chosen.client]
    name = chosen.name or name_of(chosen.targets[:1])
    path = os.path.abspath(chosen.file) if chosen.file else client.path()
    if chosen.print:
        print(f"# {client.title}: {path}")
        print(client.shown(name, _entry(client, chosen)), end="")
        return 0
    before = read(path)
    with Reworded(NotJson, UsageError, f"{path}: ", "; nothing was changed"):
        after = client.changed(before, name, None if chosen.remove else _entry(client, chosen))
    if after == before:
        print(f"{client.title}: {name} {'is not in' if chosen.remove else 'is already in'} {path}")
        return 0
    backup = write(path, after)
    print(f"{client.title}: {name} {'taken out of' if chosen.remove else 'entered in'} {path}")
    if backup is not None:
        print(f"as it was before: {backup}")
    print(f"{client.title} has to read it again: {client.again}.")
    return 0


def _options(arguments: list[str]) -> Namespace:
    """Parse the arguments. Raises UsageError, also for options that exclude each other."""
    options = parser("install-client", "CLIENT [TARGET…] [option…]", EXAMPLES)
    options.add_argument("client", metavar="CLIENT", help=", ".join(CLIENTS))
    options.add_argument(
        "targets", metavar="TARGET", nargs="*", help="what to serve; without any, the agent's tools"
    )
    options.option("--name NAME", "the server's name in the client (fastrpc, or the first target's)")
    options.option("--cwd DIR", "the folder in which the client starts the server")
    options.option("--env NAME=VALUE…", "an environment variable for the server; may be repeated")
    options.option("--http URL", "add a server that already runs at this URL")
    options.option("--token-env NAME", "with --http: the client's environment variable that has the token")
    options.option("--token-file FILE", "with --http: the file whose first line is the token")
    options.option("--file FILE", "the configuration file to change, such as a project's")
    options.option("--print", "show what would be added, and write nothing")
    options.option("--remove", "take the server out again")
    chosen = options.parse(arguments)
    if chosen.client not in CLIENTS:
        hint = suggestion(chosen.client, CLIENTS)
        raise UsageError(f"client: expected one of {', '.join(CLIENTS)}; got {chosen.client!r}{hint}")
    if chosen.http is not None and (chosen.targets or chosen.cwd or chosen.env):
        given = "a target" if chosen.targets else "--cwd" if chosen.cwd else "--env"
        raise UsageError(
            f"--http is for a server that already runs: {given} is only for a server that the client starts"
        )
    if chosen.http is None and (chosen.token_env or chosen.token_file):
        raise UsageError(f"{'--token-env' if chosen.token_env else '--token-file'} needs --http too")
    if chosen.token_env and chosen.token_file:
        raise UsageError("--token-env and --token-file exclude each other")
    return chosen


def _entry(client: ClientProgram, chosen: Namespace) -> NewEntry:
    if chosen.http is not None:
        return _remote_entry(client, chosen)
    command, *first = own_program()
    arguments = [*first, "serve", *map(_anywhere, chosen.targets)]
    if chosen.cwd:
        if not os.path.isdir(chosen.cwd):
            raise UsageError(f"--cwd: {chosen.cwd!r} is not a folder")
        arguments += ["--cwd", os.path.abspath(chosen.cwd)]
    return NewEntry(command, arguments, dict(map(_variable, chosen.env)))


def _remote_entry(client: ClientProgram, chosen: Namespace) -> NewEntry:
    """Return a URL's entry: the URL, or a `fastrpc bridge` command with a token file. Raises UsageError."""
    url = _checked_url(chosen.http)
    if chosen.token_env:
        if not chosen.token_env.isidentifier():
            raise UsageError(f"--token-env: expected the name of a variable, got {chosen.token_env!r}")
        if not client.variable:
            raise UsageError(f"{client.title} reads no token from the environment: give --token-file FILE")
    elif chosen.token_file or not client.remote:
        command, *first = own_program()
        arguments = [*first, "bridge", url]
        if chosen.token_file:
            if not os.path.isfile(chosen.token_file):
                raise UsageError(f"--token-file: {chosen.token_file!r} is not a file")
            arguments += ["--token-file", os.path.abspath(chosen.token_file)]
        return NewEntry(command, arguments)
    return NewEntry(url=url, token_variable=chosen.token_env or "")


def _checked_url(url: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        with_secret = parts.username is not None
    except ValueError:
        sound = with_secret = False
    if with_secret:
        raise UsageError(
            "--http: no name or password in the address; --token-env and --token-file are for secrets"
        )
    if not sound:
        raise UsageError(f"--http: expected a URL such as http://127.0.0.1:8000/mcp, got {url!r}")
    return url


def own_program() -> list[str]:
    """Return the command that starts this program from any folder: the installed script if there is one,
    because ``python -m`` would look for modules in the client's folder first."""
    runner = shutil.which("uvx")
    if runner is not None and f"{os.sep}archive-v" in sys.prefix:
        # uvx may remove its folder: name the same package, with the extras that it has now.
        wanted = ",".join(extra for extra, installed in extras().items() if installed)
        return [runner, "--from", f"fastrpc-mcp[{wanted}]" if wanted else "fastrpc-mcp", "fastrpc"]
    script = os.path.join(os.path.dirname(sys.executable), "fastrpc")
    if os.access(script, os.X_OK):
        return [script]
    return [sys.executable, "-m", "fastrpc"]


def _anywhere(target: str) -> str:
    """Return a target that means the same in any folder."""
    place, colon, attribute = target.partition(":")
    return os.path.abspath(place) + colon + attribute if os.path.exists(place) else target


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"--env: expected NAME=VALUE, got {text.partition('=')[0]!r}")
    return name, value
