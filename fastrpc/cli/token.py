"""``fastrpc token``: makes, lists, rotates and revokes the tokens of callers, in the guard's database.

The text of a new token is the only line on standard output (``--json``: with its record), and is shown only
once. Running servers on the same database notice a change within half a second; no server needs to run.
"""

from __future__ import annotations

import sys
from datetime import datetime, timezone

from fastrpc.cli import write_line
from fastrpc.cli._catalogue import print_json, print_table
from fastrpc.cli._durations import minute
from fastrpc.cli._guard_database import add_database, guard_database
from fastrpc.command_line import CommandParser, check_action
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard.times import rfc3339_or_none, seconds_in, seconds_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from fastrpc.guard.callers.tokens import CallerTokens, TokenRecord

DESCRIPTION = "Make, list, rotate and revoke the tokens of callers."
USAGE = "create --owner NAME | list | rotate ID | revoke ID  [OPTION…]"
EXAMPLES = """\
  fastrpc token create --owner ada --class operator --expires 30d
  fastrpc token create --owner ci --scope 'files:read' --scope 'files:write'
  fastrpc token list
  fastrpc token rotate k3x7q2mfa4zt --overlap 1h
  fastrpc token revoke k3x7q2mfa4zt
"""
DEFAULT_CLASS = "default"
OF_ACTION = {
    "create": ("Make a token, and print it this once.", ("owner", "caller_class", "scopes", "expires")),
    "list": ("List the tokens, without their texts.", ()),
    "rotate": ("Make a new token in place of one, and print it this once.", ("token_id", "overlap")),
    "revoke": ("Revoke a token: it is refused from now on.", ("token_id",)),
}


def main(arguments: list[str]) -> int:
    """Run one action; return 0. Raises UsageError."""
    options = _parser()
    chosen = options.parse(arguments)
    _check(options, chosen)
    _expires_in(chosen.expires)
    with guard_database(chosen.database) as database:
        from fastrpc.guard.callers.tokens import CallerTokens, TokenError

        with Reworded(TokenError, UsageError, "token: "):
            ACTIONS[chosen.action](CallerTokens(database), chosen)
    return 0


def _parser() -> CommandParser:
    options = CommandParser("token", USAGE, DESCRIPTION, EXAMPLES, OF_ACTION)
    options.add_argument(
        "token_id", metavar="ID", nargs="?", help="the 12 characters that follow frpc_ in the token"
    )
    options.option("--owner NAME", "for create: the owner of the token")
    options.option(
        "--class NAME",
        f"for create: the class that the caller has in guard.toml ({DEFAULT_CLASS})",
        dest="caller_class",
    )
    options.option("--scope SCOPE…", "for create: a scope of the token; may be repeated", dest="scopes")
    options.option(
        "--expires WHEN",
        "for create: how long it is valid, as 12h or 30d, or its last day, as 2027-12-31 (for ever)",
    )
    options.option("--overlap WHEN", "for rotate: how long the old token stays valid, as 1h (not at all)")
    add_database(options)
    options.option("--json", "as JSON, for programs")
    return options


def _check(options: CommandParser, chosen: Namespace) -> None:
    """Raise UsageError for an unknown action, and for arguments that it does not take or lacks."""
    check_action("token", chosen.action, ACTIONS)
    taken = options.check_options(chosen, "it (see 'fastrpc token --help')")
    if "token_id" in taken and chosen.token_id is None:
        raise UsageError(f"token {chosen.action}: name the token by its id (see 'fastrpc token list')")
    if "token_id" not in taken and chosen.token_id is not None:
        raise UsageError(f"token {chosen.action}: one argument too many")
    if chosen.action == "create" and chosen.owner is None:
        raise UsageError("token create: --owner NAME is needed")


def _create(store: CallerTokens, chosen: Namespace) -> None:
    record, text = store.create(
        chosen.owner,
        chosen.caller_class or DEFAULT_CLASS,
        chosen.scopes,
        _expires_in(chosen.expires),
    )
    _show_new(store, record, text, chosen.json)


def _rotate(store: CallerTokens, chosen: Namespace) -> None:
    record, text = store.rotate(chosen.token_id, _seconds(chosen.overlap, "--overlap"))
    _show_new(store, record, text, chosen.json)


def _revoke(store: CallerTokens, chosen: Namespace) -> None:
    record = store.revoke(chosen.token_id)
    if chosen.json:
        print_json(_described(record))
    else:
        write_line(f"fastrpc: token {record.id} of {record.owner} is revoked")


def _list(store: CallerTokens, chosen: Namespace) -> None:
    records = store.list()
    if chosen.json:
        print_json([_described(record) for record in records])
        return
    now = datetime.now(timezone.utc).timestamp()
    rows = [
        (
            record.id,
            record.owner,
            record.caller_class,
            record.status(now),
            minute(record.created_at),
            minute(record.expires_at),
            minute(record.last_used_at),
            " ".join(record.scopes) or "-",
        )
        for record in records
    ]
    print_table(("id", "owner", "class", "status", "created", "expires", "last used", "scopes"), rows)


ACTIONS: dict[str, Callable[[CallerTokens, Namespace], None]] = {
    "create": _create,
    "list": _list,
    "rotate": _rotate,
    "revoke": _revoke,
}


def _show_new(store: CallerTokens, record: TokenRecord, text: str, as_json: bool) -> None:
    """Show a token for the only time. A token that cannot be shown is revoked: no one can have it."""
    try:
        if as_json:
            print_json({**_described(record), "token": text})
        else:
            print(text)
        sys.stdout.flush()
    except OSError:
        store.revoke(record.id)
        write_line(f"fastrpc: token {record.id} of {record.owner} is revoked: it cannot be shown")
        raise
    until = "" if record.expires_at is None else f", valid until {rfc3339_or_none(record.expires_at)}"
    write_line(f"fastrpc: token {record.id} of {record.owner}{until}; copy it now: it cannot be shown again")


def _described(record: TokenRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "owner": record.owner,
        "principal": record.principal,
        "class": record.caller_class,
        "scopes": list(record.scopes),
        "status": record.status(datetime.now(timezone.utc).timestamp()),
        "created_at": rfc3339_or_none(record.created_at),
        "expires_at": rfc3339_or_none(record.expires_at),
        "revoked_at": rfc3339_or_none(record.revoked_at),
        "last_used_at": rfc3339_or_none(record.last_used_at),
        "rotated_from": record.rotated_from,
    }


def _seconds(text: str | None, option: str) -> float:
    """Return the seconds of a text such as ``90m``, 0 for None. Raises UsageError."""
    seconds = seconds_in(text or "0s")
    if seconds is None:
        raise UsageError(f"{option}: expected a time such as 90m, 12h or 30d, got {text!r:.80}")
    return float(seconds)


def _expires_in(text: str | None) -> float | None:
    """Return the seconds until a token expires, or None. A date is the last day (UTC). Raises UsageError."""
    if text is None:
        return None
    with Reworded(ValueError, UsageError, "--expires: "):
        return seconds_until(text, datetime.now(timezone.utc).timestamp())
