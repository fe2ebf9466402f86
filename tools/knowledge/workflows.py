"""The tools workflow.list, .get, .create, .delete, .trigger, .runs, .run and .cancel, and the resources
``SCHEME://workflows/{id}``.

A workflow belongs to the owner who created it, and runs in the name of the caller who triggers it: each step
is a separate call, which the guard checks. `_workflows` runs it.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

from fastrpc import Context, ToolError, tool

from . import _readers, _settings, _store, actions
from ._answers import answer
from ._watching import Watching
from .memory import date_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Annotated, Literal

    from fastrpc import Meta, Server

    from ._store.entries import Reader
    from ._store.workflows import Kept
    from ._workflows.definition import Workflow
    from ._workflows.files import FileTriggers

else:
    from fastrpc import Meta
    from fastrpc.typing_forms import Annotated, Literal

MOST_STEPS_SHOWN = 200
POLL_SECONDS, SOON_SECONDS, POLL_LATER_SECONDS = 0.1, 30.0, 1.0
"""How often a call that waits for a run looks at it, for how long, and how often after that."""
LONGEST_WAIT = 43_200


class ListedWorkflow(TypedDict):
    """A workflow. `changed` is ISO 8601 (UTC)."""

    id: str
    uri: str
    name: str
    version: str
    description: str
    trigger: str
    changed: str


class ListedWorkflows(TypedDict):
    """Workflows, the newest first."""

    count: int
    workflows: list[ListedWorkflow]


class WorkflowDefinition(TypedDict):
    """A workflow as it was loaded."""

    workflow: dict[str, Any]


class CreatedWorkflow(TypedDict):
    """A workflow that was created; `is_new` is false where it replaced one of this id. `secret` is that of
    its webhook, where one was made for it: it is shown this once."""

    id: str
    uri: str
    is_new: bool
    secret: str


class DeletedWorkflow(TypedDict):
    """A workflow that was deleted. Its runs stay."""

    id: str


class ListedRun(TypedDict):
    """A run. Times are ISO 8601 (UTC), empty if the event has not occurred."""

    id: str
    workflow: str
    state: str
    started: str
    ended: str


class ListedRuns(TypedDict):
    """Runs, the newest first."""

    count: int
    runs: list[ListedRun]


class Step(TypedDict):
    """A step of a run. `node` has the turns of loops before it: `each[2].note`."""

    node: str
    state: str
    input: Any
    output: Any
    error: str
    started: str
    ended: str


class Run(ListedRun):
    """A run with its last steps; `error` begins with the node."""

    input: Any
    output: Any
    error: str
    step_count: int
    steps: list[Step]


class CancelledRun(TypedDict):
    """A run, and whether it was cancelled: false if it had ended."""

    id: str
    cancelled: bool


@tool(name="workflow.list", effect="read", run="thread")
def list_workflows(ctx: Context) -> ListedWorkflows:
    """List the workflows."""
    from ._store import workflows

    found = workflows.of_owner(_store.current().database, _readers.reader_of(ctx).owner)
    listed = [_listed(json.loads(text), changed_at) for text, changed_at in found]
    lines = [f"{len(listed)} workflow{'' if len(listed) == 1 else 's'}{':' if listed else '.'}"]
    lines += [f"{each['id']} {each['version']}  {each['name']}" for each in listed]
    return answer("\n".join(lines), ListedWorkflows(count=len(listed), workflows=listed))


@tool(name="workflow.get", effect="read", run="thread")
def get(ctx: Context, id: str) -> WorkflowDefinition:
    """Read a workflow's definition."""
    text = _definition(ctx, id)
    return answer(text, WorkflowDefinition(workflow=json.loads(text)))


@tool(name="workflow.create", effect="write", risk="high")
async def create(
    ctx: Context,
    workflow: Annotated[
        dict[str, Any],
        "id, name, version, trigger {type}, nodes [{id, type, config}], edges [{from, to, when?}], "
        "description?, variables?",
    ],
) -> CreatedWorkflow:
    """Create a workflow, or replace the one of its id. Types of nodes: action.skill {tool, arguments},
    action.api_call {url, method, headers, query, body}, action.llm_prompt {prompt, system},
    action.send_message {text, to}, action.execute_code {code, input}, approval.gate {title, risk, seconds},
    data.transform {template}, logic.if_else {condition}, logic.loop {items | times, body}, logic.wait
    {seconds | until}, logic.switch {value}, logic.parallel {body}. Triggers: manual, cron {expression,
    timezone}, webhook {secret}, file {path}. Templates: {{ $node.ID.output }}, {{ $vars.x }},
    {{ $trigger.x }}, in loops {{ $item }}."""
    import asyncio

    from fastrpc.self_calls import client_for, gates_of

    from ._workflows import definition, engine, stepping

    try:
        found = definition.read(workflow)
        if found.tools():
            async with client_for(ctx.server, ctx.principal) as client:
                known = [each.name for each in await client.list_tools()]
            definition.check_tools(found, known)
        for id, node in found.nodes.items():
            if node.kind in stepping.REPEATABLE and not stepping.action_tool(
                ctx.server, ctx.principal, node.kind
            ):
                raise definition.BadWorkflow(f"node {id}: there is no tool {node.kind}")
        code = found.first_of("action.execute_code")
        if code and not _settings.EXECUTE_CODE.read():
            raise definition.BadWorkflow(f"node {code}: {actions.NO_CODE}")
        gate = found.first_of(stepping.GATE)
        if gate and gates_of(ctx.server) is None:
            raise definition.BadWorkflow(f"node {gate}: {stepping.NO_GUARD}")
    except definition.BadWorkflow as error:
        raise ToolError(str(error)) from None
    if found.json["trigger"]["type"] == "file":
        found.json["trigger"]["path"] = _watched(ctx, found.json["trigger"])
    starter = _starter(ctx)
    engine.Place.loop = asyncio.get_running_loop()
    is_new, secret = await asyncio.to_thread(_write, found, starter)
    done = "Created" if is_new else "Replaced"
    told = f" The secret of its webhook: {secret}" if secret else ""
    created = CreatedWorkflow(id=found.id, uri=_uri(found.id), is_new=is_new, secret=secret)
    return answer(f"{done} {found.id}.{told}", created)


def _write(found: Workflow, starter: dict[str, Any]) -> tuple[bool, str]:
    """Store a workflow, and activate its trigger; return whether it is new, and the secret if one was
    generated."""
    from ._store import workflows
    from ._workflows import definition, engine, triggers

    database, owner, trigger = _store.current().database, starter["owner"], dict(found.json["trigger"])
    before = workflows.kept(database, owner, found.id)
    secret, is_made = "", False
    try:
        if trigger["type"] == "cron":
            running_engine()  # without the engine, schedules do not work
            triggers.check_cron(trigger)
        elif trigger["type"] == "webhook":
            secret, is_made = triggers.secret_for(trigger, "" if before is None else before.secret)
    except definition.BadWorkflow as error:
        raise ToolError(str(error)) from None
    trigger.pop("secret", None)
    text = json.dumps({**found.json, "trigger": trigger}, ensure_ascii=False)
    kept = workflows.Kept(owner, text, json.dumps(starter), secret)
    is_new = workflows.write(database, found.id, kept, trigger["type"])
    if is_new is None:
        raise ToolError(f"workflow: expected at most {workflows.MOST:,} of an owner.")
    if trigger["type"] in ("cron", "file"):
        engine.note_triggers()
    # After the definition, which contains the schedule: if this fails, `Engine.catch_up` repairs it.
    if trigger["type"] == "cron":
        running_engine().schedule(owner, found.id, trigger)
    else:
        _unschedule(owner, before)
    return is_new, secret if is_made else ""


def _watched(ctx: Context, trigger: dict[str, str]) -> str:
    """Return the path that a file trigger watches. Raises ToolError."""
    from importlib.util import find_spec

    from . import _document_paths

    if find_spec("watchfiles") is None:
        raise ToolError('trigger: file needs watchfiles: pip install "fastrpc-mcp[workflows]"')
    return _document_paths.place(ctx, trigger.get("path", ""), name="trigger.path")


def _unschedule(owner: str, kept: Kept | None) -> None:
    """Stop beginning runs of an existing workflow by its schedule."""
    if kept is not None and (was := json.loads(kept.definition))["trigger"]["type"] == "cron":
        running_engine().unschedule(owner, was["id"])


def _starter(ctx: Context) -> dict[str, Any]:
    """Return the identity for the runs that a caller begins."""
    return {
        "principal": ctx.principal,
        "owner": _readers.reader_of(ctx).owner,
        "caller_owner": ctx.caller.owner,
        "caller_class": ctx.caller.caller_class,
        "over_http": ctx.server.over_http,
    }


@tool(name="workflow.delete", effect="write", risk="high", run="thread")
def delete(ctx: Context, id: str) -> DeletedWorkflow:
    """Delete a workflow. Its runs go on, and stay."""
    from ._store import workflows

    database, owner = _store.current().database, _readers.reader_of(ctx).owner
    before = workflows.kept(database, owner, id)
    if not workflows.forget(database, owner, id):
        raise _unknown(id)
    _unschedule(owner, before)
    return answer(f"Deleted {id}.", DeletedWorkflow(id=id))


@tool(name="workflow.trigger", effect="write", task="allowed", after_seconds=5, resumable=True)
async def trigger(
    ctx: Context,
    id: str,
    input: Annotated[dict[str, Any] | None, "What templates know as $trigger"] = None,
    wait_seconds: Annotated[float, Meta(ge=0, le=LONGEST_WAIT), "Wait for the end, at most so long"] = 0,
) -> Run:
    """Run a workflow, in your name. Each step is a call of its own. workflow.run says how it goes on."""
    import asyncio
    import time
    from threading import Lock

    from ._workflows import engine, sampling, stepping

    if ctx.client_info == stepping.CLIENT_INFO:
        raise ToolError("a step of a workflow triggers no other")
    owner, starter, task = _readers.reader_of(ctx).owner, _starter(ctx), ctx.task
    engine.Place.loop = asyncio.get_running_loop()

    changing = Lock()  # a task that is cancelled while its run begins cancels the run after that

    def start() -> None:
        with changing:
            if task is not None and (task.is_cancelled or running_engine().run(owner, run, 1) is not None):
                return  # another process has begun it
            running_engine().start(run, _workflow(_definition(ctx, id)), starter, input or {})

    def end() -> None:
        with changing:
            running_engine().cancel(owner, run)

    # A client with a model may have to call again; a task that another process takes over has the same run.
    run = ctx.once("run", lambda: engine.new_id(id, "" if task is None else task.id))
    if task is not None and task.is_cancelled:
        await asyncio.to_thread(end)
        raise ToolError(f"{run} was cancelled.")
    asker = sampling.open_for(run, ctx) if wait_seconds else None
    began, spent = time.monotonic(), 0.0
    try:
        await ctx.once("start", lambda: asyncio.to_thread(start))
        while True:
            if asker is not None:
                await asker.pass_on(ctx)
            shown = await asyncio.to_thread(_run_of, owner, run)
            if shown["state"] not in ("queued", "running", "waiting") or spent >= wait_seconds:
                break
            ctx.progress(shown["step_count"], message=shown["steps"][-1]["node"] if shown["steps"] else None)
            await asyncio.sleep(POLL_SECONDS if spent < SOON_SECONDS else POLL_LATER_SECONDS)
            spent = time.monotonic() - began
    except (Exception, asyncio.CancelledError):  # not what makes the client answer and call again
        sampling.close(run)
        if task is not None and task.is_cancelled:
            engine.Place.loop.run_in_executor(None, end).add_done_callback(_forgive)
        raise
    sampling.close(run)
    return answer(_run_text(shown), shown)


@tool(name="workflow.runs", effect="read", run="thread")
def list_runs(
    ctx: Context,
    id: Annotated[str, "Only of this workflow"] = "",
    state: Literal["", "queued", "running", "completed", "failed", "cancelled"] = "",
    limit: Annotated[int, Meta(ge=1, le=100)] = 20,
) -> ListedRuns:
    """List runs of workflows, the newest first."""
    found = running_engine().runs(_readers.reader_of(ctx).owner, id, state, limit)
    runs = [_listed_run(each) for each in found]
    lines = [f"{len(runs)} run{'' if len(runs) == 1 else 's'}{':' if runs else '.'}"]
    lines += [f"{each['id']}  {each['state']}  {each['started']}" for each in runs]
    return answer("\n".join(lines), ListedRuns(count=len(runs), runs=runs))


@tool(name="workflow.run", effect="read", run="thread")
def read_run(ctx: Context, run_id: str) -> Run:
    """Show a run of a workflow: its state, and each step's input, output, time and error."""
    shown = _run_of(_readers.reader_of(ctx).owner, run_id)
    return answer(_run_text(shown), shown)


@tool(name="workflow.cancel", effect="write", run="thread")
def cancel(ctx: Context, run_id: str) -> CancelledRun:
    """Cancel a run of a workflow."""
    done = running_engine().cancel(_readers.reader_of(ctx).owner, run_id)
    if done is None:
        raise _unknown_run(run_id)
    text = f"Cancelled {run_id}." if done else f"{run_id} has ended."
    return answer(text, CancelledRun(id=run_id, cancelled=done))


def attach(server: Server) -> None:
    """Serve the definitions as resources and their webhooks, and continue unfinished runs of ended
    servers."""
    import asyncio

    from ._workflows import engine, hook

    engine.Place.server = server
    endpoint: Any = hook.HookEndpoint()
    server.http_endpoints[hook.PATH] = endpoint
    prefix = f"{_settings.SCHEME.read()}://workflows/"
    server.resources(prefix, mime_type="application/json", run="thread")(Workflows(prefix, server))

    file_triggers: list[FileTriggers] = []

    def look_at_files() -> None:
        from ._workflows.files import FileTriggers

        if not file_triggers:
            file_triggers.append(FileTriggers(server.over_http))
        file_triggers[0].look()

    def look() -> None:
        try:
            engine.Place.loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if engine.has_triggers():
            engine.Place.loop.run_in_executor(None, look_at_files).add_done_callback(_forgive)
        if engine.is_needed():
            resuming = engine.Place.loop.run_in_executor(None, engine.resume_left_behind)
            resuming.add_done_callback(_forgive)

    server.watch(look, every_seconds=5.0)


def _forgive(done: asyncio.Future[Any]) -> None:
    """Ignore an error: the next check repeats the work."""
    done.exception()


class Workflows:
    """The provider of all definitions."""

    def __init__(self, prefix: str, server: Server) -> None:
        self._prefix = prefix
        self._watching = Watching(server, prefix, _stamp)

    def list(self, cursor: str | None, ctx: Context) -> Any:
        """Return all of them."""
        from ._store import workflows

        found = workflows.of_owner(_store.current().database, _readers.reader_of(ctx).owner)
        return [
            {"uri": each["uri"], "name": each["name"], "description": each["description"]}
            for each in (_listed(json.loads(text), changed_at) for text, changed_at in found)
        ]

    def read(self, uri: str, ctx: Context) -> Any:
        """Return a definition, None if it does not exist."""
        from ._store import workflows

        id = uri.removeprefix(self._prefix)
        return workflows.read(_store.current().database, _readers.reader_of(ctx).owner, id)

    def watch(self, uri: str) -> None:
        """Begin to watch: a client has subscribed to a definition."""
        self._watching.begin()


def _stamp(reader: Reader, id: str) -> object:
    from ._store import workflows

    return workflows.stamp(_store.current().database, reader.owner, id)


def running_engine() -> Any:
    """Return this process's engine of workflows. Raises ToolError."""
    from ._workflows import engine

    try:
        return engine.current()
    except engine.WorkflowsUnavailable as error:
        raise ToolError(str(error)) from None


def _definition(ctx: Context, id: str) -> str:
    from ._store import workflows

    found = workflows.read(_store.current().database, _readers.reader_of(ctx).owner, id)
    if found is None:
        raise _unknown(id)
    return found


def _workflow(text: str) -> Workflow:
    from ._workflows import definition

    try:
        return definition.read(json.loads(text))
    except definition.BadWorkflow as error:
        raise ToolError(str(error)) from None


def _run_of(owner: str, id: str) -> Run:
    found = running_engine().run(owner, id, MOST_STEPS_SHOWN)
    if found is None:
        raise _unknown_run(id)
    steps = [
        Step(
            node=each["node"], state=each["state"], input=each["input"], output=each["output"],
            error=each["error"], started=_date(each["started_at"]), ended=_date(each["ended_at"]),
        )
        for each in found["steps"]
    ]  # fmt: skip
    return Run(
        **_listed_run(found), input=found["input"], output=found["output"], error=found["error"],
        step_count=found["step_count"], steps=steps,
    )  # fmt: skip


def _run_text(run: Run) -> str:
    lines = [f"{run['id']}: {run['state']}{f', {error}' if (error := run['error']) else ''}"]
    if run["output"] is not None:
        lines.append(f"output: {json.dumps(run['output'], ensure_ascii=False)[:4000]}")
    lines += [f"{each['node']}  {each['state']}  {each['error']}".rstrip() for each in run["steps"]]
    return "\n".join(lines)


def _listed(found: dict[str, Any], changed_at: float) -> ListedWorkflow:
    return ListedWorkflow(
        id=found["id"], uri=_uri(found["id"]), name=found["name"], version=str(found["version"]),
        description=found.get("description", ""), trigger=found["trigger"]["type"],
        changed=date_of(changed_at),
    )  # fmt: skip


def _listed_run(found: dict[str, Any]) -> ListedRun:
    return ListedRun(
        id=found["id"], workflow=found["workflow"], state=found["state"], started=_date(found["started_at"]),
        ended=_date(found["ended_at"]),
    )  # fmt: skip


def _uri(id: str) -> str:
    return f"{_settings.SCHEME.read()}://workflows/{id}"


def _date(seconds: float) -> str:
    return date_of(seconds) if seconds else ""


def _unknown(id: str) -> ToolError:
    return ToolError(f"id: there is no workflow {id:.80}.")


def _unknown_run(id: str) -> ToolError:
    return ToolError(f"run_id: there is no run {id:.100}.")
