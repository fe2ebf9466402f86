"""What `fastrpc demo` shows of the agent's tools: the shell, a cancelled call, a background task.

Only tools that need nothing from outside. The conversation is handed in; it prints what is said and
ends the demo when a step goes wrong. Takes about three seconds.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def play(conversation: Any) -> None:
    """Call each tool at least once."""
    run_commands(conversation)
    cancel_a_call(conversation)
    tend_a_background_task(conversation)


def run_commands(conversation: Any) -> None:
    conversation.title("Shell commands: one that works, one that fails, one that is watched")
    conversation.call("Bash", {"command": "echo hello, سلام from $(uname -s)"}, says="hello, سلام from")
    conversation.call("Bash", {"command": "ls /no/such/folder"}, fails=True, says="[exit code")
    slow = "for step in 1 2 3; do echo step $step of 3; sleep 0.3; done"
    conversation.call("Bash", {"command": slow}, says="step 3 of 3", progress=True)


def cancel_a_call(conversation: Any) -> None:
    """The process must be gone within 2 s of the cancellation."""
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
    task = started.facts.get("task_id")
    conversation.check(isinstance(task, int), "BackgroundBash gave no task_id among its facts")
    conversation.call("ReadBgOutput", {"task_id": task, "wait_ms": 2000}, says="tick 1")
    conversation.call("ListBgTasks", {}, says="while sleep")
    conversation.call("KillBgTask", {"task_id": task}, says=f"Killed background task {task}")
    conversation.call("ReadBgOutput", {"task_id": task}, says=f"[task {task}:")
