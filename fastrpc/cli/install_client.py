"""``fastrpc install-client``: enter this server in a client's configuration, show what would be entered, or
take it out again.

The program is named by its whole path, since desktop programs do not have a shell's PATH. Everything else in
the file stays as it is; a copy of it is made. Which clients, which files: `_client_files`.
"""

from __future__ import annotations

import os
import shutil
import sys

from fastrpc.cli import parse, parser
from fastrpc.cli._client_files import CLIENTS, read, write
from fastrpc.cli._extras import extras
from fastrpc.cli._json_text import NotJson
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

EXAMPLES = """\
  fastrpc install-client claude-code              the agent's tools
  fastrpc install-client cursor shop.py           yours, as "shop"
  fastrpc install-client vscode --print           show it, write nothing
  fastrpc install-client codex --remove           take it out again
  fastrpc install-client vscode --file .vscode/mcp.json
"""


def main(arguments: list[str]) -> int:
    """Do so and say what was done; return 0."""
    names = "|".join(CLIENTS)
    options = parser("install-client", f"{names} [TARGET…] [option…]", EXAMPLES)
    options.add_argument("client", metavar="CLIENT", help=names.replace("|", ", "))
    options.add_argument(
        "targets", metavar="TARGET", nargs="*", help="what to serve; the agent's tools if none"
    )
    options.add_argument("--name", help="the server's name there (fastrpc, or the first target's)")
    options.add_argument("--cwd", metavar="DIR", help="the folder that the server works in")
    options.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the server"
    )
    options.add_argument("--file", help="another file of the client's, such as a project's")
    options.add_argument("--print", action="store_true", help="show what would be entered, and write nothing")
    options.add_argument("--remove", action="store_true", help="take the server out again")
    chosen = parse(options, arguments, "install-client")
    if chosen.client not in CLIENTS:
        raise UsageError(f"client: expected one of {', '.join(CLIENTS)}; got {chosen.client!r}")
    client = CLIENTS[chosen.client]
    name = chosen.name or _name_of(chosen.targets)
    path = os.path.abspath(chosen.file) if chosen.file else client.path()
    if chosen.print:
        print(f"# {client.title}: {path}")
        print(client.shown(name, _entry(chosen)), end="")
        return 0
    before = read(path)
    try:
        after = client.take(before, name) if chosen.remove else client.put(before, name, _entry(chosen))
    except NotJson as error:
        raise UsageError(f"{path}: {error}; nothing was changed") from None
    if after == before:
        print(f"{client.title}: {name} {'is not in' if chosen.remove else 'is already in'} {path}")
        return 0
    backup = write(path, after)
    print(f"{client.title}: {name} {'taken out of' if chosen.remove else 'entered in'} {path}")
    if backup is not None:
        print(f"as it was before: {backup}")
    print(f"{client.title} has to read it again: {client.again}.")
    return 0


def _name_of(targets: list[str]) -> str:
    """Return the name of what is served: that of the file or module, without its ending."""
    if not targets:
        return "fastrpc"
    place = targets[0].partition(":")[0]
    return os.path.splitext(os.path.basename(place))[0] or "fastrpc"


def _entry(chosen: Namespace) -> dict[str, Any]:
    """Return how the client is to start the server."""
    command, *first = _program()
    arguments = [*first, "serve", *map(_anywhere, chosen.targets)]
    if chosen.cwd:
        if not os.path.isdir(chosen.cwd):
            raise UsageError(f"--cwd: {chosen.cwd!r} is no folder")
        arguments += ["--cwd", os.path.abspath(chosen.cwd)]
    entry: dict[str, Any] = {"command": command, "args": arguments}
    if chosen.env:
        entry["env"] = dict(map(_variable, chosen.env))
    return entry


def _program() -> list[str]:
    """Return the command that starts this program, from wherever it is called."""
    runner = shutil.which("uvx")
    if runner is not None and f"{os.sep}archive-v" in sys.prefix:
        # uvx's own folder may be gone tomorrow: the same package again, with the extras that it has now.
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
