"""The descriptions of the published tools for models with ``FASTRPC_DESCRIPTIONS=full``: when to use which,
and how.

Without that setting the tools keep their published texts. Names, types and required parameters are the same
in both; only descriptions differ. `INSTRUCTIONS` is the server's text on how the tools work together.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

INSTRUCTIONS = """\
Tools for work on one machine, in one project folder.
1. Commands: Bash for what ends within its timeout. BackgroundBash for servers, watchers and long \
builds; then ReadBgOutput with wait_ms instead of sleeping in Bash. KillBgTask when a task is no \
longer needed. ListBgTasks if you have lost a task's id.
2. Web: WebSearch finds pages, ReadDocs reads one. Read the page before you rely on a snippet. A \
long page is continued with offset.
3. Images: ReadImage shows a file; Bash cannot.
4. Work of several steps: PlanMode enter, write the plan as a Markdown file, PlanMode exit, then a \
task in TaskManager with a step for each part. Complete each step when it is done; call TaskManager \
pending when you resume after a break.
5. Questions: AskUserQuestion only for a decision that is the user's and that no file answers. Ask \
related questions in one call.
6. Skills: if a line of InvokeSkill's list fits the task, invoke that skill before you begin and \
follow it.
7. Later: SetCallback reminds you of something to check again; its messages are added to the result \
of a later call.
8. A result that is cut names the file, offset or id that continues it. Use that instead of \
repeating the call.
9. An error names the parameter and what it accepts: correct the call and repeat it once.
"""

DESCRIPTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "Bash": (
        (
            "Run a command with bash -c in the project folder and return its output, standard error "
            "included, and its exit code. Standard input is empty, so commands must not ask. Each "
            "call is a new shell: cd and variables do not last; write cd DIR && COMMAND. Use "
            "BackgroundBash for what does not end by itself."
        ),
        {
            "command": "The command line, as typed in bash; several lines are allowed",
            "timeout": "Milliseconds until the command is ended, 600000 at most (default: 30000)",
        },
    ),
    "ReadImage": (
        (
            "Show an image file (PNG, JPEG, GIF, WebP, BMP, TIFF, ICO, SVG) so that you can see it. "
            "Large images are scaled down; the result gives the scale."
        ),
        {
            "file_path": "Absolute path of the image file; a symbolic link is refused",
        },
    ),
    "ReadDocs": (
        (
            "Load a web page or a PDF in a browser and return its main content, as Markdown by "
            "default. Use it for a URL you know, or one that WebSearch found. A long page ends with "
            "the offset that continues it."
        ),
        {
            "url": "http or https address of the page",
            "format": "markdown (default), text without markup, or html",
            "wait_ms": "Milliseconds to wait for scripts of the page; leave it out unless content is missing",
            "offset": "Character at which to continue a page, as the last result says",
        },
    ),
    "WebSearch": (
        (
            "Search the web with eleven engines at once. Returns up to ten pages with title, address "
            "and a snippet. Read a page with ReadDocs before you rely on it."
        ),
        {
            "query": "Search words, as for a search engine; at most 500 characters",
        },
    ),
    "TaskManager": (
        (
            "Keep a list of tasks with steps for this project; it outlives the conversation. create "
            "makes a task, which becomes the current one; add adds a step to it; complete marks a "
            "step or a whole task as done; list shows all, pending what is open; switch makes another "
            "task the current one. Each answer shows the ids."
        ),
        {
            "action": "create, add, complete, list, pending or switch",
            "query": (
                "For list and pending: only tasks and steps with all these words. For switch: the "
                'name of a task, instead of task_id. For other actions it is ignored: give ""'
            ),
            "task_id": "A task's id, for all actions but create; without it the current task",
            "step_id": (
                "For complete: the step that is done; without it the whole task. For list and "
                "pending: begin at this step"
            ),
            "text": "For create the task's name, for add the step's text",
        },
    ),
    "PlanMode": (
        (
            "Plan before you change anything. enter begins planning; then write the plan as a "
            "Markdown file. exit ends it once the plan is written and returns to execution; reset "
            "drops it. status and json say whether planning is on. Use it for work of several steps "
            "or with several ways to do it."
        ),
        {
            "action": "enter, exit, status, json or reset",
            "goal": "For enter: what the plan is to achieve, in a sentence",
            "plan_file": "Path of the Markdown file with the plan. exit checks that it exists",
        },
    ),
    "AskUserQuestion": (
        (
            "Ask the user to decide, and wait for the answer. Use it only for what neither files nor "
            "tools can tell. If no one can be asked the result says so: then ask in your next "
            "message. Do not assume an answer."
        ),
        {
            "questions_json": (
                'JSON text: {"questions":[{"text":"Which '
                'database?","options":[{"label":"SQLite","description":"one '
                'file"},"PostgreSQL"],"multiSelect":false,"freeText":false}]}. multiSelect: several '
                "options may be chosen. freeText: a text of the user's own is allowed; options may "
                "then be left out"
            ),
        },
    ),
    "InvokeSkill": (
        (
            "Return the instructions of a skill: a tested way to do one kind of work. If a skill "
            "below fits the task, invoke it first and follow what it says."
        ),
        {
            "skill_name": "Name of the skill, as the list below has it",
            "arguments": "Words that the skill's text takes; quotes keep words together",
        },
    ),
    "BackgroundBash": (
        (
            "Start a command that runs on while you work: a server, a watcher, a long build. Returns "
            "a task id at once. At most eight run at a time; they end with this server."
        ),
        {
            "command": "The command line, as typed in bash",
        },
    ),
    "ReadBgOutput": (
        (
            "Return what a background task has written since it was last read, and whether it runs or "
            "how it ended."
        ),
        {
            "task_id": "The task id that BackgroundBash returned",
            "wait_ms": "Milliseconds to wait for new output or the end; better than asking again and again",
        },
    ),
    "ListBgTasks": (
        "List the background tasks: id, state, run time and command.",
        {},
    ),
    "KillBgTask": (
        "End a background task and all processes that it has started.",
        {
            "task_id": "The task id that BackgroundBash returned",
        },
    ),
    "SetCallback": (
        (
            "Be reminded later, once or repeatedly: set, list or cancel. A message that is due is "
            "added to the result of your next call of any tool. Use it to check on something that "
            "takes minutes."
        ),
        {
            "action": "set, list or cancel",
            "message": "For set: what to remind you of",
            "delay_seconds": "For set: seconds until the message is due and between repetitions, 1 to 3600",
            "repeat_count": "For set: how often it is due: 0 or 1 once, -1 without end (default: 20)",
            "callback_id": "Slot 0 to 7: for set a free one, for cancel the one to cancel (else all)",
        },
    ),
}


def describe(server: Server) -> None:
    """Give these texts to those of the tools that the server has."""
    for name, (description, parameters) in DESCRIPTIONS.items():
        tool = server.tools.get(name)
        if tool is not None:
            tool.description = description
            tool.signature.input_schema = _with_texts(tool.signature.input_schema, parameters)


def _with_texts(schema: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    properties = {
        name: {**member, "description": texts[name]} if name in texts else member
        for name, member in schema["properties"].items()
    }
    return {**schema, "properties": properties}
