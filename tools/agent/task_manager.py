"""The tool TaskManager: tasks with ordered steps, by project, stored on disk and shared by all servers.

An answer is a check list with ids. Each change is one transaction, so it is on disk before the answer is
sent. A change shows the steps near it; `list` and `pending` show what fits, and say how to see the rest.
"""

from __future__ import annotations

from fastrpc import ToolError, ToolResult, tool

from .. import _project
from . import _state, _text
from ._result import result
from ._task_list import TaskList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from ._task_list import Task
else:
    from fastrpc.typing_forms import Annotated, Literal

LONGEST_TEXT = 4096
CANDIDATES = 20
ENTRY_CHARACTERS = 60  # of a task or a step besides its text, in the structured form (the longer one)


# The published schema requires `query`, though half of the actions do not use it. The tool keeps that schema,
# but accepts a call without it.
@tool(
    name="TaskManager",
    effect="write",
    run="thread",
    json_schema_extra={"required": ["action", "query"]},
)
def task_manager(
    action: Annotated[
        Literal["create", "add", "complete", "list", "pending", "switch"],
        "Action: create, add, complete, list, pending, switch",
    ],
    query: Annotated[str | None, "The search query"] = None,
    task_id: Annotated[int | None, "Task ID"] = None,
    step_id: Annotated[int | None, "Step ID"] = None,
    text: Annotated[str | None, "Task name or step text"] = None,
) -> ToolResult:
    """Manage persistent tasks with create/add/complete"""
    project = _project.key()
    if action == "list" or action == "pending":
        with _state.reading() as db:
            tasks = TaskList(db, project)
            return _listed(tasks, action, _words(query), task_id, step_id)
    text = _checked(action, text) if action in ("create", "add") else None
    with _state.changing() as db:
        tasks = TaskList(db, project)
        if text is not None and action == "create":
            return _answer([tasks.near(tasks.create(text), None)], [], about={"step_id": None})
        if text is not None:
            return _added(tasks, task_id, text)
        if action == "complete":
            return _completed(tasks, task_id, step_id)
        return _switched(tasks, task_id, query)


def _checked(action: str, text: str | None) -> str:
    what = "the task's name" if action == "create" else "the step's text"
    if text is None or not text.strip():
        raise ToolError(f"text: expected {what}, got {'nothing' if text is None else 'an empty text'}.")
    if len(text) > LONGEST_TEXT:
        raise ToolError(f"text: expected at most {LONGEST_TEXT:,} characters, got {len(text):,}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"text: expected {what}, got half of a surrogate pair in it.") from None
    return text


# --- the actions ------------------------------------------------------------------------------------------


def _added(tasks: TaskList, task_id: int | None, text: str) -> ToolResult:
    task = tasks.task(task_id)
    step = tasks.add(task["id"], text)
    notes = [f"Task {task['id']} was done and is open again."] if task["done_at"] else []
    return _answer([tasks.near(task["id"], step)], notes, about={"step_id": step})


def _completed(tasks: TaskList, task_id: int | None, step_id: int | None) -> ToolResult:
    notes = []
    if step_id is None:
        task = tasks.task(task_id)
        if task["done_at"]:
            notes.append(f"Task {task['id']} was done already.")
        else:
            tasks.complete_task(task["id"])
        return _answer([tasks.near(task["id"], None)], notes, about={"step_id": None})
    step = tasks.step(step_id)
    if task_id is not None and task_id != step["task"]:
        tasks.task(task_id)
        raise ToolError(f"step_id: step {step_id} belongs to task {step['task']}, not to task {task_id}.")
    if step["done_at"]:
        notes.append(f"Step {step_id} was done already.")
    else:
        tasks.complete_step(step_id)
    return _answer([tasks.near(step["task"], step_id)], notes, about={"step_id": step_id})


def _switched(tasks: TaskList, task_id: int | None, query: str | None) -> ToolResult:
    if task_id is not None:
        id: int = tasks.task(task_id)["id"]
    elif query is not None and query.strip():
        id = _named(tasks, query)
    else:
        raise ToolError(f"switch needs task_id, or query with a task's name. {tasks.known_tasks()}")
    tasks.switch(id)
    return _answer([tasks.near(id, None)], [], about={"step_id": None})


def _named(tasks: TaskList, query: str) -> int:
    """Return the one task that a query means: by its whole name, else by words of it."""
    wanted, words = _folded(query).strip(), _words(query)
    names: list[tuple[int, str, str]] = [
        (task["id"], task["name"], _folded(task["name"])) for task in tasks.all()
    ]
    found = [(id, name) for id, name, folded in names if folded.strip() == wanted]
    if not found:
        found = [(id, name) for id, name, folded in names if _matches(folded, words)]
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise ToolError(f'query: no task\'s name matches "{query[:80]}". {tasks.known_tasks()}')
    lines = [f"Task {id}: {_shown(name[:200], 2)}" for id, name in found[:CANDIDATES]]
    if len(found) > CANDIDATES:
        lines.append(f"[{len(found) - CANDIDATES} more]")
    raise ToolError(
        f'query: "{query[:80]}" matches {len(found)} tasks. Name one with task_id:\n' + "\n".join(lines)
    )


def _listed(
    tasks: TaskList, action: str, words: list[str], task_id: int | None, step_id: int | None
) -> ToolResult:
    """Answer `list` and `pending`; the latter leaves out what is done. `task_id` narrows them to one task,
    and `step_id` to its steps from there on."""
    if step_id is not None:
        owner = tasks.step(step_id)["task"]
        if task_id is not None and task_id != owner:
            raise ToolError(f"step_id: step {step_id} belongs to task {owner}, not to task {task_id}.")
        task_id = owner
    elif task_id is not None:
        tasks.task(task_id)
    found = []
    for task in tasks.all():
        if task_id is None or task["id"] == task_id:
            narrowed = _narrowed(task, action == "pending", words)
            if narrowed is not None:
                found.append(_from_step(narrowed, step_id))
    if found:
        return _answer(found, [], action=action)
    if action == "pending":
        return _answer([], ["No open steps." if not words else "No open steps match the query."])
    return _answer([], ["No tasks." if not words else "No tasks match the query."])


def _narrowed(task: Task, pending: bool, words: list[str]) -> Task | None:
    """Return the requested part of a task, None if it is empty. If the name matches, all steps do."""
    steps = task["steps"]
    kept = [step for step in steps if not step["done"]] if pending else steps
    if pending and not kept and (steps or task["done"]):
        return None  # an open task without steps is to be done itself
    if words and not _matches(_folded(task["name"]), words):
        kept = [step for step in kept if _matches(_folded(step["text"]), words)]
        if not kept:
            return None
    return {**task, "steps": kept}


def _from_step(task: Task, step_id: int | None) -> Task:
    if step_id is None:
        return task
    kept = [step for step in task["steps"] if step["id"] >= step_id]
    return {**task, "steps": kept, "before": len(task["steps"]) - len(kept)}


# --- matching ---------------------------------------------------------------------------------------------


def _folded(text: str) -> str:
    """Return a text for comparison, without differences of case and of Unicode composition."""
    from fastrpc.unicode_forms import normal_form

    return normal_form("NFKC", normal_form("NFKC", text).casefold())


def _words(query: str | None) -> list[str]:
    return [] if query is None or query.strip() == "*" else _folded(query).split()


def _matches(folded: str, words: list[str]) -> bool:
    return all(word in folded for word in words)


# --- answers ----------------------------------------------------------------------------------------------


def _answer(
    tasks: list[Task], notes: list[str], *, action: str = "list", about: dict[str, Any] | None = None
) -> ToolResult:
    """Return the check list of tasks, as much as fits, and the same as data. `about`: what was changed."""
    budget = _Budget()
    shown: list[dict[str, Any]] = []
    lines: list[str] = []
    for task in tasks:
        if not budget.take(task["name"]):
            break
        steps = []
        for step in task["steps"]:
            if not budget.take(step["text"]):
                break
            steps.append(step)
        shown.append({name: task[name] for name in ("id", "name", "current", "done")} | {"steps": steps})
        lines.append(_task_line(task))
        lines.extend(map(_step_line, steps))
        if task["before"]:
            notes.append(f"{_count(task['before'], 'step')} before: list with task_id {task['id']}.")
        behind = len(task["steps"]) - len(steps) + task["after"]
        if behind:
            at = task["steps"][len(steps)]["id"] if len(steps) < len(task["steps"]) else steps[-1]["id"]
            more = f"{_count(behind, 'more step')} of task {task['id']}"
            notes.append(f"{more}: {action} with task_id {task['id']} and step_id {at} goes on.")
    left_out = tasks[len(shown) :]
    if left_out:
        between = f"{left_out[0]['id']} to {left_out[-1]['id']}"
        more = _count(len(left_out), "more task")
        notes.append(f"{more}, {between}: {action} with task_id shows one, query narrows the list.")
    data: dict[str, Any] = {"tasks": shown}
    if about is not None:
        data |= {"task_id": shown[0]["id"], **about}
    if notes:
        data["notes"] = notes
    return result("\n".join([*lines, *notes]), data, structured=data)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class _Budget:
    """The characters and tokens that a result may still use."""

    def __init__(self) -> None:
        self._characters, self._tokens = _text.limits()

    def take(self, text: str) -> bool:
        """Count a text; return whether it still fits."""
        escapes = text.count('"') + text.count("\\")
        if not text.isprintable():
            escapes += 5 * sum(character < " " for character in text)
        self._characters -= len(text) + escapes + ENTRY_CHARACTERS
        self._tokens -= _text.tokens_of(text) + (escapes + ENTRY_CHARACTERS) // 4
        return self._characters >= 0 and self._tokens >= 0


def _task_line(task: Task) -> str:
    marks = [mark for mark in ("current", "done") if task[mark]]
    return f"Task {task['id']}: {_shown(task['name'], 2)}" + (f" ({', '.join(marks)})" if marks else "")


def _step_line(step: dict[str, Any]) -> str:
    return f"  - [{'x' if step['done'] else ' '}] {step['id']}. {_shown(step['text'], 8)}"


def _shown(text: str, indent: int) -> str:
    """Return a text for a list: lines after the first are indented, so that it stays one entry."""
    return text.replace("\n", "\n" + " " * indent)
