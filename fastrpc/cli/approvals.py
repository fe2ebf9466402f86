"""``fastrpc approvals``: lists the calls that wait for a person's approval; approves, edits and rejects them.

A decision is one update of the guard's database. Running servers notice it within half a second; no server
needs to run. The approver is the user of the operating system, and cannot be the caller of a critical call.
Invisible characters in arguments are escaped, because a caller chooses them.
"""

from __future__ import annotations

import json
import sys
from time import sleep, strftime

from fastrpc.callers import current_user
from fastrpc.cli import write_line
from fastrpc.cli._catalogue import print_table
from fastrpc.cli._durations import minute
from fastrpc.cli._feedback import Feedback
from fastrpc.cli._guard_database import add_database, guard_database
from fastrpc.command_line import CommandParser, check_action, takes_colours
from fastrpc.errors import Reworded, UsageError
from fastrpc.guard.approvals.description import described
from fastrpc.guard.times import rfc3339_or_none, seconds_in
from fastrpc.terminal.text import styled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any

    from fastrpc.guard.approvals.store import Approval, ApprovalStore

DESCRIPTION = "List the calls that wait for an approval; approve, edit or reject them."
USAGE = "list | show ID | approve ID | edit ID KEY=VALUE… | reject ID | watch  [OPTION…]"
EXAMPLES = """\
  fastrpc approvals list
  fastrpc approvals show ap_k3x7q2mfa4zt
  fastrpc approvals approve ap_k3x7q2mfa4zt
  fastrpc approvals approve ap_k3x7q2mfa4zt --times 5 --for 1h      the same call, five times
  fastrpc approvals approve ap_k3x7q2mfa4zt --prefix 'git commit' --times 20 --for 1h
  fastrpc approvals edit ap_k3x7q2mfa4zt count=2                    approve it with another argument
  fastrpc approvals reject ap_k3x7q2mfa4zt --comment 'not on Fridays'
  fastrpc approvals watch                                           ask about each new call
"""
OF_ACTION = {
    "list": ("List the calls that wait.", ("all",)),
    "show": ("Show one call as a whole.", ("id",)),
    "approve": (
        "Approve a call; it may run once, or as often as you say.",
        ("id", "times", "valid_for", "comment", "prefix"),
    ),
    "edit": ("Approve a call with other arguments.", ("id", "pairs", "times", "valid_for", "comment")),
    "reject": ("Reject a call.", ("id", "comment")),
    "watch": ("Show each new call that waits for an approval; at a terminal, ask you about it.", ()),
}
MOST_TIMES = 1_000_000
POLL_SECONDS = 0.5
COLOURS = {"low": "32", "medium": "33", "high": "31", "critical": "1;31"}
"""The colours of risks: green, yellow, red, bold red."""
ANSWERS = "[y]es, [n]o, anything else: later  "
ROWS_AROUND = 8
"""Rows on the terminal that a call takes besides its arguments."""
OTHER_WORDS = {
    **dict.fromkeys(("allow", "accept", "yes", "grant", "ok"), "approve"),
    **dict.fromkeys(("deny", "refuse", "decline", "no"), "reject"),
    **dict.fromkeys(("ls", "pending"), "list"),
}
LONGEST_LISTED = 100
"""The maximum length of a call in the list, in characters."""


def main(arguments: list[str]) -> int:
    """Run one action; return 0. Raises UsageError."""
    options = CommandParser("approvals", USAGE, DESCRIPTION, EXAMPLES, OF_ACTION)
    options.add_argument(
        "id", metavar="ID", nargs="?", help="the approval, as 'fastrpc approvals list' shows it"
    )
    options.add_argument("pairs", metavar="KEY=VALUE", nargs="*", help="for edit: an argument to change")
    options.option("--all", "for list: also those that have been decided or have expired")
    options.option("--times N", "how often this call may run (1)")
    options.option("--for TIME", "how long the approval is valid, as 1h (5m)", dest="valid_for")
    options.option("--prefix WORDS", "approve all shell commands that begin with these words")
    options.option("--comment TEXT", "the reason; the caller of a rejected call gets it")
    add_database(options)
    options.option("--json", "as JSON, for programs")
    chosen = options.parse(arguments)
    _check(options, chosen)
    with guard_database(chosen.database, is_quick=chosen.action != "watch") as database:
        from fastrpc.guard.approvals.store import ApprovalError, ApprovalStore

        with Reworded(ApprovalError, UsageError, f"approvals {chosen.action}: "):
            ACTIONS[chosen.action](ApprovalStore(database), chosen)
    return 0


def _check(options: CommandParser, chosen: Namespace) -> None:
    """Raise UsageError for an unknown action, and for arguments that it does not take or lacks."""
    meant = OTHER_WORDS.get(chosen.action)
    if meant is not None:
        raise UsageError(f"approvals: unknown action {chosen.action!r}; here it is {meant!r}")
    check_action("approvals", chosen.action, OF_ACTION)
    taken = options.check_options(chosen, "this action")
    if "id" in taken and chosen.id is None:
        raise UsageError(f"approvals {chosen.action}: name the approval (see 'fastrpc approvals list')")
    if ("id" not in taken and chosen.id is not None) or ("pairs" not in taken and chosen.pairs):
        raise UsageError(f"approvals {chosen.action}: one argument too many")
    if "pairs" in taken and not chosen.pairs:
        raise UsageError("approvals edit: name the arguments to change, as KEY=VALUE")


# --- actions ----------------------------------------------------------------------------------------------


def _list(store: ApprovalStore, chosen: Namespace) -> None:
    from fastrpc.guard.approvals.store import STATES, WAITING

    found = store.list(STATES if chosen.all else (WAITING,))
    if chosen.json:
        _print_json([described(each, store.clock()) for each in found])
        return
    if not found:
        write_line("fastrpc: no call waits for an approval")
        return
    rows = [_row(each, store.clock()) for each in found]
    print_table(("id", "state", "until", "risk", "caller", "server", "call"), rows)


def _row(approval: Approval, now: float) -> tuple[str, ...]:
    from fastrpc.guard.approvals.display import visible_name

    call = f"{visible_name(approval.name)} {approval.arguments} {approval.extra_params}".rstrip()
    if len(call) > LONGEST_LISTED:
        call = f"{call[:LONGEST_LISTED]}… ({len(call) - LONGEST_LISTED:,} more characters: show)"
    return (
        approval.id,
        approval.state_at(now),
        minute(approval.expires_at),
        approval.risk,
        visible_name(approval.caller),
        visible_name(approval.server),
        call,
    )


def _approve(store: ApprovalStore, chosen: Namespace) -> None:
    from fastrpc.guard.approvals.prefix import PrefixError, prefix_of

    prefix = None
    if chosen.prefix is not None:
        with Reworded(PrefixError, UsageError, "--prefix: "):
            prefix = prefix_of(chosen.prefix, store.get(chosen.id).arguments)
    _decide(store, chosen, True, prefix=prefix)


def _edit(store: ApprovalStore, chosen: Namespace) -> None:
    """Approve a call with other arguments. The schema is checked here, and again before the call runs."""
    from fastrpc.cli._arguments import typed

    approval = store.get(chosen.id)
    edited = typed(chosen.pairs, approval.name, json.loads(approval.schema))
    _decide(store, chosen, True, json.dumps(edited, ensure_ascii=False))


def _decide(
    store: ApprovalStore,
    chosen: Namespace,
    approves: bool,
    edited: str | None = None,
    prefix: str | None = None,
) -> None:
    from fastrpc.guard.approvals.store import COMMAND_LINE, ApprovalDecision

    times = "1" if chosen.times is None else chosen.times
    if not times.isascii() or not times.isdigit() or not 1 <= int(times[:9]) <= MOST_TIMES:
        raise UsageError(f"--times: expected a number from 1 to {MOST_TIMES:,}, got {times!r:.80}")
    seconds = 300 if chosen.valid_for is None else seconds_in(chosen.valid_for)
    if not seconds:
        raise UsageError(f"--for: expected a time such as 10m, 1h or 1d, got {chosen.valid_for!r:.80}")
    decision = ApprovalDecision(
        approves,
        current_user(),
        COMMAND_LINE,
        comment=chosen.comment or "",
        edited_arguments=edited,
        prefix=prefix,
        uses=int(times),
        valid_seconds=float(seconds),
    )
    _say(store.decide(chosen.id, decision), store.clock(), chosen.json)


def _watch(store: ApprovalStore, chosen: Namespace) -> None:
    """Print each waiting call when it arrives; on a terminal, ask about it, and show that this runs."""
    shown = Feedback()
    seen: set[str] = set()
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not chosen.json
    try:
        while True:
            waiting = store.list()
            seen.intersection_update(each.id for each in waiting)
            for approval in waiting:
                if approval.id not in seen:
                    shown.wipe()
                    seen.add(approval.id)
                    _print(approval, store.clock(), chosen.json)
                    if asks:
                        _ask(store, approval)
            if shown.has_terminal:
                left = f"{len(waiting)} left for later, no new call waits"
                state = left if waiting else "no call waits for an approval"
                shown.draw(f"{state} ({strftime('%H:%M:%S')}, Ctrl-C ends this)")
            sleep(POLL_SECONDS)
    except (KeyboardInterrupt, EOFError):
        return
    finally:
        shown.wipe()


def _ask(store: ApprovalStore, approval: Approval) -> None:
    """Ask about a call. Input that was typed before the call was shown is discarded: it is not an answer."""
    from fastrpc.guard.approvals.store import COMMAND_LINE, ApprovalDecision, ApprovalError
    from fastrpc.terminal.device import drop_input

    drop_input(sys.stdin.fileno())
    try:
        answer = input(_question(approval)).strip().lower()
    except (KeyboardInterrupt, EOFError):
        print(flush=True)
        raise
    if answer in ("y", "yes", "n", "no"):
        try:
            decided = store.decide(
                approval.id, ApprovalDecision(answer.startswith("y"), current_user(), COMMAND_LINE)
            )
        except ApprovalError as error:
            write_line(f"fastrpc: {error}")
        else:
            _say(decided, store.clock(), False)
    print(flush=True)


def _question(approval: Approval) -> str:
    """Return the question about a call that has been shown. It repeats the tool's name if the arguments do
    not fit on the terminal, since their beginning has scrolled away."""
    from shutil import get_terminal_size

    from fastrpc.guard.approvals.binding import indented
    from fastrpc.guard.approvals.display import visible_name

    size = get_terminal_size()
    shown = indented(approval.arguments).split("\n")
    rows = sum(1 + len(line) // max(1, size.columns) for line in shown)
    if rows + ROWS_AROUND <= size.lines:
        return f"approve? {ANSWERS}"
    name = visible_name(approval.name)
    return (
        f"{name}: its arguments have {len(shown):,} lines; scroll up to read all of them\napprove? {ANSWERS}"
    )


ACTIONS: dict[str, Callable[[ApprovalStore, Namespace], None]] = {
    "list": _list,
    "show": lambda store, chosen: _print(store.get(chosen.id), store.clock(), chosen.json),
    "approve": _approve,
    "edit": _edit,
    "reject": lambda store, chosen: _decide(store, chosen, False),
    "watch": _watch,
}


# --- what is shown ----------------------------------------------------------------------------------------


def _print(approval: Approval, now: float, as_json: bool) -> None:
    from fastrpc.guard.approvals.binding import indented
    from fastrpc.guard.approvals.display import visible_name

    found = described(approval, now)
    if as_json:
        _print_json(found)
        return
    left = f", {max(0, round(approval.expires_at - now))} s left" if found["state"] == "waiting" else ""
    print(f"{approval.id}  {found['state']}{left}")
    name, server, caller = map(visible_name, (approval.name, approval.server, approval.caller))
    colour = COLOURS.get(approval.risk) if takes_colours(sys.stdout) else None
    print(f"  {approval.kind} {name} of {server}, risk: {styled(approval.risk, colour)}")
    print(f"  caller: {caller}, class {visible_name(approval.caller_class)}")
    if approval.rule or approval.reason:
        print(f"  rule: {approval.rule or '-'}{f', {approval.reason}' if approval.reason else ''}")
    arguments = found["arguments"]
    print("  arguments:", *indented(approval.arguments).split("\n"), sep="\n    ")
    if approval.extra_params:
        print("  besides:", *indented(approval.extra_params).split("\n"), sep="\n    ")
    for name, value in (found["edited"] or {}).items():
        before = arguments.get(name) if isinstance(arguments, dict) else "…"
        print(f"  changed: {name}: {json.dumps(before)} -> {json.dumps(value)}")
    if approval.decided_by:
        comment = f": {visible_name(approval.comment)}" if approval.comment else ""
        print(f"  by {visible_name(approval.decided_by)}, {approval.channel}, {found['decided_at']}{comment}")
    sys.stdout.flush()


def _print_json(value: Any) -> None:
    """Print JSON for programs, in ASCII, since a caller has chosen its characters."""
    print(json.dumps(value, indent=2))


def _say(approval: Approval, now: float, as_json: bool) -> None:
    if as_json:
        _print_json(described(approval, now))
        return
    state = approval.state_at(now)
    how = ""
    if state == "approved":
        times = "once" if approval.uses_left == 1 else f"{approval.uses_left} times"
        how = f": it may run {times} until {rfc3339_or_none(approval.valid_until)}"
    write_line(f"fastrpc: {approval.id} is {state}{how}")
