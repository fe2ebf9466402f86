"""The tool PlanMode: while it is on the agent plans, and with `PLAN_ENFORCE=1` it can do nothing else.

The plan belongs to the server that began it and is stored on disk; after that server's death, the next server
of the project takes it over. With `PLAN_ENFORCE`, a gate before the calls of tools refuses those that write
or execute. The gate is installed only while plan mode is on, and costs nothing otherwise. Two tools pass it
although they count as writing, since they change no data of the user: PlanMode ends plan mode, and
AskUserQuestion asks the person whose plan it is. Background work that was started before goes on.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from weakref import WeakKeyDictionary, proxy

from fastrpc import Context, ToolError, ToolResult, tool

from .. import _project
from . import _instances, _settings, _starting, _state
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from fastrpc import Server
else:
    from fastrpc.typing_forms import Annotated, Literal

PROCESS_STATE = "plans"
TEXT_CHARACTERS = 4096
FREE = ("PlanMode", "AskUserQuestion")
REFUSED = {"write": "changes things", "exec": "executes things"}

wall_clock = time.time

_plans: WeakKeyDictionary[Any, Plan] = WeakKeyDictionary()


@tool(name="PlanMode", effect="write", run="thread")
def plan_mode(
    action: Annotated[
        Literal["enter", "exit", "status", "json", "reset"], "Action: enter, exit, status, json, reset"
    ],
    ctx: Context,
    goal: Annotated[str | None, "Goal/description"] = None,
    plan_file: Annotated[str | None, "Path to markdown plan file"] = None,
) -> ToolResult:
    """Manage plan mode for complex tasks"""
    if ctx.server is None:
        raise ToolError("Plan mode needs a server.")
    for name, text in (("goal", goal), ("plan_file", plan_file)):
        if text is not None and len(text) > TEXT_CHARACTERS:
            raise ToolError(f"{name}: expected at most {TEXT_CHARACTERS:,} characters, got {len(text):,}.")
    plan = plan_of(ctx.server)
    with plan.lock:
        plan.take_over()
        if action == "enter":
            plan.enter(goal, plan_file)
            text = "Plan mode activated. Write your plan as markdown."
        elif action == "exit":
            saved = plan.exit(plan_file)
            text = f"Plan saved to {saved}\n" if saved is not None else ""
            text += "Exiting plan mode. Returning to execution."
        elif action == "reset":
            plan.end()
            text = "Plan mode reset. No plan saved."
        elif action == "status":
            text = _status(plan.now)
        else:
            return _as_json(_facts(plan.now))
        return result(text, _facts(plan.now))


# --- answers ----------------------------------------------------------------------------------------------


def _status(plan: dict[str, Any] | None) -> str:
    if plan is None:
        return "Plan mode: INACTIVE"
    lines = ["Plan mode: ACTIVE"]
    if plan["goal"]:
        lines.append(f'Goal: "{plan["goal"]}"')
    lines.append(f"Duration: {_duration(wall_clock() - plan['started_at'])}")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    """Return minutes and seconds, and hours if needed; 0 if the clock was set back."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m {rest}s" if hours else f"{minutes}m {rest}s"


def _facts(plan: dict[str, Any] | None) -> dict[str, Any]:
    if plan is None:
        return {"active": False, "goal": None, "plan_file": None, "started_at": None}
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(plan["started_at"]))
    return {"active": True, "goal": plan["goal"], "plan_file": plan["plan_file"], "started_at": started}


def _as_json(facts: dict[str, Any]) -> ToolResult:
    from json import dumps

    return result(dumps(facts, ensure_ascii=False), facts, structured=facts)


# --- the plan of a server ---------------------------------------------------------------------------------


class Plan:
    """The plan of one server. Each method but `gate` waits for the disk and is called with `lock` held."""

    def __init__(self, server: Server) -> None:
        self.lock = allocate_lock()
        self.now: dict[str, Any] | None = None
        """Goal, plan file and start while plan mode is on."""
        self._server: Server = proxy(server)  # which may refer to this object, by its gate
        self.taken_over = not _instances.exist()
        """Whether it is known if a dead server has left a plan; checked once, at the start."""
        self._gated = False

    def enter(self, goal: str | None, plan_file: str | None) -> None:
        """Begin plan mode; if it is on, change the plan's goal or file."""
        now = self.now or {"goal": None, "plan_file": None, "started_at": wall_clock()}
        changed = {**now, "goal": goal or now["goal"], "plan_file": plan_file or now["plan_file"]}
        row = {**changed, "instance": _instances.own(), "project": _project.key()}
        with _state.changing() as database:
            database.execute("DELETE FROM plan_mode WHERE instance = :instance", row)
            database.execute(
                "INSERT INTO plan_mode (instance, project, goal, plan_file, started_at)"
                " VALUES (:instance, :project, :goal, :plan_file, :started_at)",
                row,
            )
        self._is(changed)

    def exit(self, plan_file: str | None) -> str | None:
        """End plan mode, and return the plan's file, if one was named. Raises ToolError if it is off."""
        if self.now is None:
            raise ToolError("Plan mode is not active: there is nothing to exit.")
        saved: str | None = plan_file or self.now["plan_file"]
        if saved is not None and not _is_file(saved):
            raise ToolError(
                f"plan_file: there is no file {saved}. Plan mode stays on: write the plan there first, "
                "or name the file that contains it."
            )
        self.end()
        return saved

    def end(self) -> None:
        if self.now is not None:
            with _state.changing() as database:
                database.execute("DELETE FROM plan_mode WHERE instance = ?", (_instances.own(),))
        self._is(None)

    def take_over(self) -> None:
        """Take over the plan of a dead server of this project, once. Of several the latest counts and the
        others end, since a later server could not know what they were."""
        if self.taken_over:
            return
        self._is(_inherited())
        self.taken_over = True

    def _is(self, now: dict[str, Any] | None) -> None:
        """Set the plan, and install the gate or remove it."""
        self.now = now
        wanted = now is not None and _settings.PLAN_ENFORCE.read()
        if wanted and not self._gated:
            self._server.before(self.gate)
        elif self._gated and not wanted:
            self._server.remove_hook(self.gate)
        self._gated = wanted

    def expect(self) -> None:
        """Install the gate until it is known whether a plan was left."""
        self._gated = True
        self._server.before(self.gate)

    async def gate(self, call: Any) -> None:
        """Refuse tools that write or execute. Raises ToolError."""
        found = self._server.tools.get(call.tool)
        refused = REFUSED.get(found.effect) if found is not None and found.effect else None
        if refused is None or call.tool in FREE:
            return
        if not self.taken_over:
            await self.take_over_soon()
        if self.now is None:
            return
        raise ToolError(
            f"{call.tool} is refused: it {refused}, and plan mode is on (PLAN_ENFORCE). "
            "Finish the plan, then leave with PlanMode, action exit or reset."
        )

    async def take_over_soon(self) -> None:
        """Do so on a thread, since it waits for the disk."""
        import asyncio

        def take_over() -> None:
            with self.lock:
                self.take_over()

        await asyncio.get_running_loop().run_in_executor(None, take_over)


def _inherited() -> dict[str, Any] | None:
    with _state.changing() as database:
        heritage = _starting.Heritage(database, "plan_mode", _project.key())
        found = heritage.rows("started_at")
        if found:
            ended = [(row["instance"],) for row in found[:-1]]
            database.executemany("DELETE FROM plan_mode WHERE instance = ?", ended)
            latest = (_instances.own(), found[-1]["instance"])
            database.execute("UPDATE plan_mode SET instance = ? WHERE instance = ?", latest)
        forgotten = heritage.without_rows()
    _starting.bury(forgotten)
    return {name: found[-1][name] for name in ("goal", "plan_file", "started_at")} if found else None


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(os.path.expanduser(path))
    except ValueError:  # a NUL character
        return False


def plan_of(server: Server) -> Plan:
    """Return the plan of a server."""
    return _starting.kept_of(server, _plans, Plan)


# --- the server -------------------------------------------------------------------------------------------


def attach(server: Server) -> None:
    """Take over the plan of a dead server: no call passes the gate before it is known whether one exists."""
    plan = plan_of(server)
    if plan.taken_over:
        return
    if _settings.PLAN_ENFORCE.read():
        plan.expect()

    def begin() -> None:
        from asyncio import ensure_future

        complain = _starting.complain("the plan of an earlier server is")
        ensure_future(plan.take_over_soon()).add_done_callback(complain)

    _starting.when_the_loop_runs(server, begin)
