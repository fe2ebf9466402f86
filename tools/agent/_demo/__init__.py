"""What `fastrpc demo` shows of the agent's tools: shell, picture, page, tasks, question, skill, callback.

It needs no network: this module serves the page. The caller passes the conversation, which prints the
messages and ends the demo when a step fails. Takes about ten seconds.
"""

from __future__ import annotations

import os
import time

from . import page, picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def play(conversation: Any) -> None:
    """Call each tool at least once."""
    run_commands(conversation)
    cancel_a_call(conversation)
    tend_a_background_task(conversation)
    if _is_installed("PIL"):
        picture.look_at_a_picture(conversation)
    else:
        conversation.remark("no picture is shown: Pillow is not installed (fastrpc-mcp[tools])")
    if _is_installed("playwright"):
        page.read_a_page(conversation)
    else:
        conversation.remark("no page is read: playwright is not installed (fastrpc-mcp[tools])")
    keep_tasks_over_a_restart(conversation)
    ask_a_person(conversation)
    invoke_a_skill(conversation)
    be_reminded(conversation)


def run_commands(conversation: Any) -> None:
    conversation.title("Shell commands: one that works, one that fails, one that is watched")
    conversation.call("Bash", {"command": "echo hello, سلام from $(uname -s)"}, says="hello, سلام from")
    conversation.call("Bash", {"command": "ls /no/such/folder"}, fails=True, says="[exit code")
    slow = "for step in 1 2 3; do echo step $step of 3; sleep 0.3; done"
    conversation.call("Bash", {"command": slow}, says="step 3 of 3", progress=True)


def cancel_a_call(conversation: Any) -> None:
    """The process must end within 2 s of the cancellation."""
    conversation.title("A call that is cancelled")
    note = os.path.join(conversation.folder, "sleeper.pid")
    conversation.cancel("Bash", {"command": "echo $$ > sleeper.pid; exec sleep 60"}, 0.5)
    begun = time.perf_counter()
    conversation.check(os.path.exists(note), "the cancelled command had not begun")
    with open(note, encoding="ascii") as file:
        process = int(file.read())
    while _is_alive(process):
        late = time.perf_counter() - begun > 2.0
        conversation.check(not late, f"process {process} outlives its cancelled call")
        time.sleep(0.01)
    milliseconds = (time.perf_counter() - begun) * 1000
    conversation.remark(f"its process {process} is gone ({milliseconds:.0f} ms later)")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def tend_a_background_task(conversation: Any) -> None:
    conversation.title("A task in the background: started, read, listed, ended")
    ticking = "n=0; while sleep 0.1; do n=$((n+1)); echo tick $n; done"
    started = conversation.call("BackgroundBash", {"command": ticking}, says="Started background task")
    task = started.meta.get("fastrpc/facts", {}).get("task_id")
    conversation.check(isinstance(task, int), "BackgroundBash gave no task_id among its facts")
    conversation.call("ReadBgOutput", {"task_id": task, "wait_ms": 2000}, says="tick 1")
    conversation.call("ListBgTasks", {}, says="while sleep")
    conversation.call("KillBgTask", {"task_id": task}, says=f"Killed background task {task}")
    conversation.call("ReadBgOutput", {"task_id": task}, says=f"[task {task}:")


def _is_installed(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def keep_tasks_over_a_restart(conversation: Any) -> None:
    conversation.title("A task list that outlives the server")
    conversation.call("TaskManager", {"action": "create", "query": "", "text": "Build the shop · المتجر"})
    conversation.call("TaskManager", {"action": "add", "query": "", "text": "order shelves"})
    conversation.call("TaskManager", {"action": "add", "query": "", "text": "paint the sign"})
    conversation.call("TaskManager", {"action": "complete", "query": "", "step_id": 1})
    conversation.restart()
    conversation.call("TaskManager", {"action": "list", "query": ""}, says="- [ ] 2. paint the sign")


def ask_a_person(conversation: Any) -> None:
    conversation.title("A question to the person, answered in the client's own form")
    questions = '{"questions": [{"text": "Which database?", "options": ["PostgreSQL", "SQLite"]}]}'
    conversation.call("AskUserQuestion", {"questions_json": questions}, answers=["SQLite"], says="SQLite")


def invoke_a_skill(conversation: Any) -> None:
    conversation.title("A skill from the project's folder")
    folder = os.path.join(conversation.folder, ".claude", "skills", "greet")
    os.makedirs(folder)
    with open(os.path.join(folder, "SKILL.md"), "w", encoding="utf-8") as file:
        file.write(
            "---\nname: greet\ndescription: Greet somebody properly\n---\nSay good morning to $1, twice.\n"
        )
    says = "Say good morning to Amina, twice."
    conversation.call("InvokeSkill", {"skill_name": "greet", "arguments": "Amina"}, says=says)


def be_reminded(conversation: Any) -> None:
    conversation.title("A callback: told to the client's log, and on the next result")
    reminder = {"action": "set", "message": "look at the build", "delay_seconds": 1, "repeat_count": 1}
    conversation.call("SetCallback", reminder, says="Callback scheduled: fires once in 1s.")
    conversation.wait_for_log("look at the build", seconds=10)
    conversation.call("ListBgTasks", {}, says="[callback 0 due")
