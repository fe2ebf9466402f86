"""``fastrpc dashboard``: serves the guard's pages by themselves, and makes links by which people sign in.

The pages work on the guard's database, so they serve what servers over standard input and output ask, too.
They are served without a token: a link is needed to sign in. A link is valid once, for ten minutes, and is
printed at a terminal only, or by ``fastrpc dashboard link``.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import closing

from fastrpc.callers import current_user
from fastrpc.cli import configuration, write_line
from fastrpc.cli._guard_database import add_database, guard_database
from fastrpc.command_line import CommandParser, check_action
from fastrpc.errors import UsageError
from fastrpc.guard.policy import file as policy_file
from fastrpc.regular_files import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from fastrpc.dashboard.view import AuditSource, Sources
    from fastrpc.guard.policy.config import GuardConfig
    from fastrpc.guard.policy.dashboard_config import DashboardConfig
    from fastrpc.storage.database import Database

DESCRIPTION = "Serve the guard's pages by themselves, or make a link to sign in to them."
USAGE = "serve | link  [OPTION…]"
EXAMPLES = """\
  fastrpc dashboard serve
  fastrpc dashboard serve --guard guard.toml
  fastrpc dashboard serve --http 127.0.0.1:9000 --database postgresql://db/guard
  fastrpc dashboard link
  fastrpc dashboard link --guard guard.toml
  fastrpc dashboard link --as ada --role approver --url https://mcp.example.com
"""
ADDRESS = "127.0.0.1:8700"
OF_ACTION = {
    "serve": ("Serve the pages until a signal arrives.", ("http", "hosts", "guard", "audit", "audit_key")),
    "link": ("Make a link, and print it this once.", ("person", "role", "url", "guard")),
}


def main(arguments: list[str]) -> int:
    """Run one action; return 0. Raises UsageError."""
    options = CommandParser("dashboard", USAGE, DESCRIPTION, EXAMPLES, OF_ACTION)
    options.option("--http HOST:PORT", f"for serve: the address, of this machine ({ADDRESS})")
    options.option(
        "--allow-host HOST…", "for serve: also accept requests for this host; may be repeated", dest="hosts"
    )
    options.option(
        "--guard FILE",
        "the guard's file: its database is used; serve shows it, too, and lets people change it",
    )
    options.option("--audit FOLDER", "for serve: the folder of the audit log (audit, in FASTRPC_STATE_DIR)")
    options.option(
        "--audit-key FILE", "for serve: its public key, if the folder does not have it", dest="audit_key"
    )
    options.option("--as NAME", "for link: the person who signs in (you)", dest="person")
    options.option("--role ROLE", "for link: viewer, approver or administrator (administrator)")
    options.option("--url URL", f"for link: where the pages are (http://{ADDRESS})")
    add_database(options)
    chosen = options.parse(arguments)
    check_action("dashboard", chosen.action, OF_ACTION)
    options.check_options(chosen, "this action")
    config = None if chosen.guard is None else policy_file.read(chosen.guard)
    of_file = None if config is None else config.database
    with guard_database(chosen.database or of_file, is_quick=chosen.action == "link") as database:
        if chosen.action == "serve":
            _serve(database, chosen, config)
        else:
            _link(database, chosen)
    return 0


def _link(database: Database, chosen: Namespace) -> None:
    from fastrpc.dashboard.access import ADMINISTRATOR, ROLES

    role = chosen.role or ADMINISTRATOR
    if role not in ROLES:
        raise UsageError(f"--role: expected one of {', '.join(ROLES)}, got {role!r:.80}")
    print(
        link(database, chosen.url or f"http://{ADDRESS}", chosen.person or current_user(), role), flush=True
    )


def _serve(database: Database, chosen: Namespace, config: GuardConfig | None) -> None:
    """Serve the pages in this process until a signal arrives. Raises UsageError for another machine's
    address: what passes a network belongs behind TLS, and so behind a reverse proxy."""
    import uvicorn

    from fastrpc.dashboard.app import Dashboard
    from fastrpc.transports.http.guard import AccessRules
    from fastrpc.transports.http.sockets import Address, listen

    address = Address.read(chosen.http or ADDRESS)
    if not address.is_local:
        raise UsageError(f"--http {chosen.http}: expected an address of this machine, such as {ADDRESS}")
    sources = _sources(database, chosen, config)
    dashboard = Dashboard(sources, AccessRules(None, hosts=chosen.hosts or ()))
    sockets = listen(address, 1)[0]
    url = address.url(sockets[0].getsockname()[1], tls=False, path="")
    write_line(f"fastrpc: the dashboard is at {url}/dashboard")
    announce_link(database, url, chosen.guard if config is not None and config.database else "")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, lambda *_: None
        )  # at its end, uvicorn raises the signal that ended it once more
    served = uvicorn.Config(dashboard, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(served)
    server.run(sockets)


def _sources(database: Database, chosen: Namespace, config: GuardConfig | None) -> Sources:
    """Return what the pages show. `config` is that of the guard's file, if it is named. Raises UsageError for
    an audit log that cannot be used."""
    from fastrpc.dashboard.task_database import TaskDatabase
    from fastrpc.dashboard.view import PREFIX, Sources

    sources = Sources(lambda: database, tasks=TaskDatabase(), log=_log(chosen, config))
    if config is None:
        return sources
    from dataclasses import replace

    from fastrpc.dashboard.openid import OpenIdSignIn
    from fastrpc.guard.editing import PolicyEditor
    from fastrpc.guard.serving import audit_log_for

    return replace(
        sources,
        audit=audit_log_for(config),
        policy=PolicyEditor(chosen.guard),
        sign_in=OpenIdSignIn(_SignInTable(chosen.guard, config).read, PREFIX),
    )


class _SignInTable:
    """The table of the guard's file that says who may sign in. A change takes effect at the next sign-in; if
    the file is invalid then, the former table stays in use."""

    def __init__(self, path: str, config: GuardConfig) -> None:
        self._path = path
        self._config = config
        self._stamp: tuple[int, ...] | None = None

    def read(self) -> DashboardConfig:
        stamp = stamp_of(self._path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._config = policy_file.read(self._path)
            except UsageError as error:
                write_line(f"fastrpc: {error}; the former sign-in stays in use")
        return self._config.dashboard


def _log(chosen: Namespace, config: GuardConfig | None) -> AuditSource | None:
    """Return the audit log that the pages read, None for none: its folder and key are those of the options,
    else of the guard's file, else the default ones."""
    from fastrpc.dashboard.view import AuditSource

    default = os.path.abspath(os.path.join(configuration()["FASTRPC_STATE_DIR"], "audit"))
    found = AuditSource(default) if config is None else AuditSource.of(config.audit)
    folder = found.folder if found is not None else None
    key = found.public_key if found is not None else None
    if chosen.audit is not None:
        folder = os.path.abspath(chosen.audit)
    return None if folder is None else AuditSource(folder, chosen.audit_key or key)


def announce_link(database: Database, url: str, guard: str = "") -> None:
    """Print a link for the user of this process, who sits at its terminal. Without a terminal its output may
    be kept in a log: only say how a link is made. `guard` is the guard's file, if that names the database."""
    if sys.stderr is not None and sys.stderr.isatty():
        from fastrpc.dashboard.access import ADMINISTRATOR

        write_line(
            f"fastrpc: sign in once, within ten minutes: {link(database, url, current_user(), ADMINISTRATOR)}"
        )
    else:
        words = ["fastrpc", "dashboard", "link", "--url", url, *(["--guard", guard] if guard else [])]
        write_line(f"fastrpc: to sign in, make a link: {shlex.join(words)}")


def announce_link_at(database_url: str, guard: str, url: str) -> None:
    """Call `announce_link` for a server: `url` is that of its MCP endpoint, `database_url` the guard's."""
    from fastrpc.storage import open_database

    with closing(open_database(database_url)) as database:
        announce_link(database, os.path.dirname(url), guard)


def link(database: Database, url: str, person: str, role: str) -> str:
    """Make a link. The code is its fragment, which browsers send to no server."""
    from fastrpc.dashboard.access import SignInStore

    return f"{url.rstrip('/')}/dashboard/enter#{SignInStore(database).make_link(person, role)}"
