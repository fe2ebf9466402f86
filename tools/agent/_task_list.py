"""The tasks of one project in the state: what is written and read of them, within a block of `_state`.

Ids count up from 1; those of steps count over all tasks of the project. No row is replaced or deleted: a
change adds a row or sets one mark. The tool decides the form of the answers.
"""

from __future__ import annotations

import time

from fastrpc import ToolError

from . import _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection, Row
    from typing import Any

    Task = dict[str, Any]
    """``id``, ``name``, ``current``, ``done``, ``steps`` (``id``, ``text``, ``done``), and the numbers of
    steps ``before`` and ``after`` these."""

NEAR_BEFORE = 10  # how many steps around the changed one are read
NEAR_AFTER = 30
_LARGEST = 2**63 - 1


class TaskList:
    """The tasks of the project at that path. Methods that take ids raise ToolError for unknown ones."""

    def __init__(self, db: Connection, path: str) -> None:
        self._db = db
        self._path = path
        row = db.execute("SELECT id, current_task FROM projects WHERE path = ?", (path,)).fetchone()
        self._project: int = row["id"] if row else 0
        self.current: int | None = row["current_task"] if row else None

    # --- changes --------------------------------------------------------------------------------------

    def create(self, name: str) -> int:
        """Make a task, which becomes the current one."""
        if not self._project:
            made = self._db.execute("INSERT INTO projects (path) VALUES (?)", (self._path,))
            self._project = made.lastrowid or 0
        id = self._next("tasks")
        self._db.execute(
            "INSERT INTO tasks (project, id, name, created_at) VALUES (?, ?, ?, ?)",
            (self._project, id, name, time.time()),
        )
        self.switch(id)
        return id

    def switch(self, id: int) -> None:
        self._db.execute("UPDATE projects SET current_task = ? WHERE id = ?", (id, self._project))
        self.current = id

    def add(self, task: int, text: str) -> int:
        """Add a step to a task; a task that was done is open again."""
        id = self._next("steps")
        self._db.execute(
            "INSERT INTO steps (project, id, task, text, created_at) VALUES (?, ?, ?, ?, ?)",
            (self._project, id, task, text, time.time()),
        )
        self._db.execute(
            "UPDATE tasks SET done_at = NULL WHERE project = ? AND id = ?", (self._project, task)
        )
        return id

    def complete_step(self, id: int) -> None:
        self._db.execute(
            "UPDATE steps SET done_at = ? WHERE project = ? AND id = ?", (time.time(), self._project, id)
        )

    def complete_task(self, id: int) -> None:
        """Mark a task as done, with its open steps."""
        values = (time.time(), self._project, id)
        self._db.execute(
            "UPDATE steps SET done_at = ? WHERE project = ? AND task = ? AND done_at IS NULL", values
        )
        self._db.execute("UPDATE tasks SET done_at = ? WHERE project = ? AND id = ?", values)

    def _next(self, table: str) -> int:
        query = f"SELECT coalesce(max(id), 0) + 1 FROM {table} WHERE project = ?"
        id: int = self._db.execute(query, (self._project,)).fetchone()[0]
        return id

    # --- looking up -----------------------------------------------------------------------------------

    def task(self, id: int | None) -> Row:
        """Return a task's row; without an id, that of the current task."""
        if id is None and self.current is None:
            raise ToolError(f"task_id: there is no current task, so name one. {self.known_tasks()}")
        id = self.current if id is None else id
        row = self._row("SELECT * FROM tasks WHERE project = ? AND id = ?", id)
        if row is None:
            raise ToolError(f"task_id: there is no task {_text.quoted(id)}. {self.known_tasks()}")
        return row

    def step(self, id: int) -> Row:
        row = self._row("SELECT * FROM steps WHERE project = ? AND id = ?", id)
        if row is None:
            raise ToolError(f"step_id: there is no step {_text.quoted(id)}. {self._known('Steps', 'steps')}")
        return row

    def _row(self, query: str, id: int | None) -> Row | None:
        if id is None or not 0 < id <= _LARGEST:
            return None
        row: Row | None = self._db.execute(query, (self._project, id)).fetchone()
        return row

    def known_tasks(self) -> str:
        return self._known("Tasks", "tasks")

    def _known(self, title: str, table: str) -> str:
        rows = self._db.execute(f"SELECT id FROM {table} WHERE project = ? ORDER BY id", (self._project,))
        return f"{title}: {ranges(id for (id,) in rows) or 'none'}."

    # --- reading --------------------------------------------------------------------------------------

    def all(self) -> list[Task]:
        """Return all tasks with all their steps."""
        tasks = {
            row["id"]: self._made(row)
            for row in self._db.execute("SELECT * FROM tasks WHERE project = ? ORDER BY id", (self._project,))
        }
        for row in self._db.execute("SELECT * FROM steps WHERE project = ? ORDER BY id", (self._project,)):
            tasks[row["task"]]["steps"].append(_step(row))
        return list(tasks.values())

    def near(self, id: int, step: int | None) -> Task:
        """Return a task with the steps around a given one; by default around its first open one."""
        task = self._made(self.task(id))
        where = "FROM steps WHERE project = ? AND task = ?"
        place = (self._project, id)
        if step is None:
            first = f"SELECT coalesce(min(id), 0) {where} AND done_at IS NULL"
            step = self._db.execute(first, place).fetchone()[0]
        query = f"SELECT * {where} AND id < ? ORDER BY id DESC LIMIT {NEAR_BEFORE}"
        before = self._db.execute(query, (*place, step)).fetchall()
        query = f"SELECT * {where} AND id >= ? ORDER BY id LIMIT {NEAR_AFTER}"
        after = self._db.execute(query, (*place, step)).fetchall()
        shown = [*reversed(before), *after]
        if shown:
            count = f"SELECT count(*) {where} AND id"
            task["before"] = self._db.execute(f"{count} < ?", (*place, shown[0]["id"])).fetchone()[0]
            task["after"] = self._db.execute(f"{count} > ?", (*place, shown[-1]["id"])).fetchone()[0]
        task["steps"] = list(map(_step, shown))
        return task

    def _made(self, row: Row) -> Task:
        done = row["done_at"] is not None
        return {
            "id": row["id"],
            "name": row["name"],
            "current": row["id"] == self.current,
            "done": done,
            "steps": [],
            "before": 0,
            "after": 0,
        }


def _step(row: Row) -> dict[str, Any]:
    return {"id": row["id"], "text": row["text"], "done": row["done_at"] is not None}


def ranges(ids: Iterable[int], most: int = 40) -> str:
    """Return rising numbers as ``1-40, 42``."""
    found: list[list[int]] = []
    for id in ids:
        if found and id == found[-1][1] + 1:
            found[-1][1] = id
        else:
            found.append([id, id])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in found[:most]]
    return ", ".join(shown) + (" …" if len(found) > most else "")
