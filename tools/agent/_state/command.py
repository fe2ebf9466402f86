"""The command ``fastrpc state``: shows what the tools store in the state folder, and clears it.

`--clean` removes what is no longer used: output files that no server writes, and the plan modes, callbacks
and lock files of servers that have ended. Tasks are removed only on request. It never touches data of running
servers, or a database that cannot be read.
"""

from __future__ import annotations

import os
import time

from fastrpc import ToolError, UsageError
from fastrpc.settings import STATE_DIR

from ... import _project
from .. import _instances, _output_files, _state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable
    from sqlite3 import Connection, Row

EXAMPLES = """\
  fastrpc state                     what there is
  fastrpc state --clean             remove what is no longer needed
  fastrpc state --clean --tasks     and this project's tasks
"""
LONGEST_TEXT = 60


def main(arguments: list[str]) -> int:
    """Show or clear; return 0, or 1 if the database cannot be used."""
    options = _options(arguments)
    return _clean(options) if options.clean else _show()


def _options(arguments: list[str]) -> Namespace:
    from fastrpc.command_line import CommandParser

    parser = CommandParser(
        "state",
        "[--show | --clean [--tasks | --all]]",
        "Show or clear what the agent's tools keep on disk.",
        EXAMPLES,
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--show", action="store_true", help="list what is there (so without an option, too)")
    does.add_argument(
        "--clean", action="store_true", help="remove unused output files and what ended servers have left"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tasks", action="store_true", help="with --clean: this project's tasks, too")
    what.add_argument("--all", action="store_true", help="with --clean: the tasks of all projects, too")
    options = parser.parse(arguments)
    if (options.tasks or options.all) and not options.clean:
        raise UsageError("--tasks and --all say what --clean removes; add --clean")
    return options


# --- show -------------------------------------------------------------------------------------------------


def _show() -> int:
    print(f"State folder: {STATE_DIR.read()}")
    code = 0
    if not os.path.lexists(_state.path()):
        print("Database: none yet")
    else:
        try:
            with _state.reading() as db:
                lines = _lines_of(db)
            print("\n".join(lines))
        except ToolError as error:
            print(f"Database: {error}")
            code = 1
    _show_output_files()
    others = _instances.others()
    alive = sum(map(_instances.alive, others))
    print(f"Servers with state: {alive} running, {len(others) - alive} ended")
    return code


def _lines_of(db: Connection) -> list[str]:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    mode = db.execute("PRAGMA journal_mode").fetchone()[0]
    size = os.stat(_state.path()).st_size
    shared = "" if mode == "wal" else "; no shared log on this file system, so changes are slower"
    lines = [f"Database: {_state.FILE}, {size:,} bytes, version {version}{shared}"]
    lines += _project_lines(db)
    lines += _titled("Plan modes", map(_plan_line, db.execute("SELECT * FROM plan_mode ORDER BY started_at")))
    callbacks = db.execute("SELECT * FROM callbacks ORDER BY instance, slot, due_at")
    return lines + _titled("Callbacks", map(_callback_line, callbacks))


def _titled(title: str, lines: Iterable[str]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return [f"{title}:", *found] if found else [f"{title}: none"]


def _project_lines(db: Connection) -> list[str]:
    rows = db.execute(
        "SELECT path, (SELECT count(*) FROM tasks WHERE project = projects.id) AS tasks,"
        " (SELECT count(*) FROM steps WHERE project = projects.id) AS steps,"
        " (SELECT count(*) FROM steps WHERE project = projects.id AND done_at IS NULL) AS open"
        " FROM projects ORDER BY path"
    )
    return _titled("Projects", map(_project_line, rows))


def _project_line(row: Row) -> str:
    gone = "" if os.path.isdir(row["path"]) else " (the folder is gone)"
    tasks, steps = _count(row["tasks"], "task"), _count(row["steps"], "step")
    return f"{_short(row['path'], 200)}{gone}: {tasks}, {steps}, {row['open']:,} open"


def _plan_line(row: Row) -> str:
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["started_at"]))
    goal = f' "{_short(row["goal"])}"' if row["goal"] else ""
    return f"{_short(row['project'], 200)}:{goal} since {since}, {_owner(row)}"


def _callback_line(row: Row) -> str:
    left = "for ever" if row["fires_left"] < 0 else f"{row['fires_left']} left"
    every = f"every {row['delay_seconds']} s, {left}"
    return f'[{row["slot"]}] "{_short(row["message"])}" {every}, {_owner(row)}, {_short(row["project"], 200)}'


def _owner(row: Row) -> str:
    state = "running" if _instances.alive(row["instance"]) else "ended"
    return f"server {row['instance']} ({state})"


def _short(text: str, most: int = LONGEST_TEXT) -> str:
    """Return a text on one line that is safe on a terminal."""
    plain = "".join(
        " " if character < " " or "\x7f" <= character < "\xa0" else character for character in text
    )
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _output_sizes() -> list[int]:
    try:
        with os.scandir(_output_files.folder()) as entries:
            return [entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _show_output_files() -> None:
    sizes = _output_sizes()
    print(f"Output files: {len(sizes):,}, {sum(sizes):,} bytes")


# --- clean ------------------------------------------------------------------------------------------------


def _clean(options: Namespace) -> int:
    before = _output_sizes()
    _output_files.tidy(_output_files.folder(), keep_seconds=-1)
    after = _output_sizes()
    removed = _count(len(before) - len(after), "output file")
    in_use = f"; {len(after):,} in use" if after else ""
    print(f"Removed {removed}, {sum(before) - sum(after):,} bytes{in_use}.")
    if not os.path.lexists(_state.path()):
        print(f"Removed {_count(_bury(_instances.dead()), 'ended server')}. There is no database.")
        return 0
    try:
        with _state.changing() as db:
            plans, callbacks = _clean_ended(db)
            tasks = _clean_tasks(db, options)
            # Only now: the rows of a server without a lock file also belong to a dead server.
            dead = [id for id in _instances.dead() if not _instances.left(db, id)]
    except ToolError as error:
        print(error)
        return 1
    servers = _count(_bury(dead), "ended server")
    print(f"Removed {_count(plans, 'plan mode')} and {_count(callbacks, 'callback')} of {servers}.")
    if tasks is not None:
        print(f"Removed {_count(tasks, 'task')} {'of all projects' if options.all else 'of this project'}.")
    return 0


def _clean_ended(db: Connection) -> list[int]:
    """Remove the rows of ended servers; return their number for each table."""
    removed = []
    for table in _state.OWNED:
        owners = [owner for (owner,) in db.execute(f"SELECT DISTINCT instance FROM {table}")]
        ended = [(owner,) for owner in owners if not _instances.alive(owner)]
        removed.append(db.executemany(f"DELETE FROM {table} WHERE instance = ?", ended).rowcount)
    return [max(0, count) for count in removed]


def _clean_tasks(db: Connection, options: Namespace) -> int | None:
    """Remove the requested tasks with their steps; return their number."""
    if not (options.tasks or options.all):
        return None
    where, values = ("", ()) if options.all else (" WHERE path = ?", (_project.key(),))
    count: int = db.execute(
        f"SELECT count(*) FROM tasks WHERE project IN (SELECT id FROM projects{where})", values
    ).fetchone()[0]
    db.execute(f"DELETE FROM projects{where}", values)
    return count


def _bury(ids: list[str]) -> int:
    for id in ids:
        _instances.bury(id)
    return len(ids)
