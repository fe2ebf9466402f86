"""The published contract of the agent's tools, in their published order.

Clients written for it must work unchanged: `fastrpc selftest` and the tests check every tool against it.
``description`` is what was published, word for word; a longer description (a catalogue) continues on a new
line. ``extras`` came later and are optional. ``example`` is a call without side effects, for the self-test,
with the expected result: its text contains `says`, and `is_error` is its error flag. Data only: importing it
costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _required(kind: str, description: str) -> dict[str, Any]:
    return {"type": kind, "required": True, "description": description}


def _optional(kind: str, description: str) -> dict[str, Any]:
    return {"type": kind, "required": False, "description": description}


CONTRACT: dict[str, dict[str, Any]] = {
    "Bash": {
        "module": "bash",
        "effect": "exec",
        "description": "Execute a bash command",
        "parameters": {
            "command": _required("string", "The bash command to execute"),
            "timeout": _optional("integer", "Timeout in milliseconds (default: 30000)"),
        },
    },
    "ReadImage": {
        "module": "read_image",
        "effect": "read",
        "description": "Read an image file and display it visually",
        "parameters": {"file_path": _required("string", "The absolute path to the image file")},
        "example": {
            "arguments": {"file_path": "/nowhere/at-all.png"},
            "is_error": True,
            "says": "/nowhere/at-all.png does not exist",
        },
    },
    "ReadDocs": {
        "module": "read_docs",
        "effect": "network",
        "description": "Fetch URL content as markdown via headless browser",
        "parameters": {
            "url": _required("string", "The URL to fetch"),
            "format": _optional("string", "Output format: text, html, or markdown"),
            "wait_ms": _optional("integer", "Wait time for page load in ms"),
        },
        "extras": ("offset",),
        "example": {"arguments": {"url": "file:///etc/passwd"}, "is_error": True, "says": "http"},
    },
    "WebSearch": {
        "module": "web_search",
        "effect": "network",
        "description": "Search the web using 11 engines concurrently",
        "parameters": {"query": _required("string", "The search query")},
        "example": {"arguments": {"query": ""}, "is_error": True, "says": "query: expected"},
    },
    "TaskManager": {
        "module": "task_manager",
        "effect": "write",
        "description": "Manage persistent tasks with create/add/complete",
        "parameters": {
            "action": _required("string", "Action: create, add, complete, list, pending, switch"),
            "query": _required("string", "The search query"),
            "task_id": _optional("integer", "Task ID"),
            "step_id": _optional("integer", "Step ID"),
            "text": _optional("string", "Task name or step text"),
        },
    },
    "PlanMode": {
        "module": "plan_mode",
        "effect": "write",
        "description": "Manage plan mode for complex tasks",
        "parameters": {
            "action": _required("string", "Action: enter, exit, status, json, reset"),
            "goal": _optional("string", "Goal/description"),
            "plan_file": _optional("string", "Path to markdown plan file"),
        },
    },
    "AskUserQuestion": {
        "module": "ask_user_question",
        "effect": "write",
        "description": "Ask interactive multiple-choice questions via TUI",
        "parameters": {"questions_json": _required("string", "JSON string with questions and options")},
    },
    "InvokeSkill": {
        "module": "invoke_skill",
        "effect": "read",
        "description": "Invoke a skill by name for reusable workflows",
        "parameters": {
            "skill_name": _required("string", "The skill name to invoke"),
            "arguments": _optional("string", "Arguments to pass to the skill"),
        },
        "example": {"arguments": {"skill_name": "no-such-4711"}, "is_error": True, "says": "no-such-4711"},
    },
    "BackgroundBash": {
        "module": "background_bash",
        "effect": "exec",
        "description": "Execute bash command in background, returns immediately",
        "parameters": {"command": _required("string", "The bash command to execute")},
    },
    "ReadBgOutput": {
        "module": "read_bg_output",
        "effect": "read",
        "description": "Read new output from a background task",
        "parameters": {"task_id": _required("integer", "The task ID returned by BackgroundBash")},
        "extras": ("wait_ms",),
        "example": {"arguments": {"task_id": 4711}, "is_error": True, "says": "4711"},
    },
    "ListBgTasks": {
        "module": "list_bg_tasks",
        "effect": "read",
        "description": "List all background tasks with status and runtime",
        "parameters": {},
        "example": {"arguments": {}, "is_error": False, "says": "No background tasks."},
    },
    "KillBgTask": {
        "module": "kill_bg_task",
        "effect": "exec",
        "description": "Kill a running background task by ID",
        "parameters": {"task_id": _required("integer", "The task ID to kill")},
    },
    "SetCallback": {
        "module": "set_callback",
        "effect": "write",
        "description": "Manage scheduled callback messages with repeats",
        "parameters": {
            "action": _required("string", "Action: set, list, cancel"),
            "message": _optional("string", "Callback message"),
            "delay_seconds": _optional("integer", "Seconds to wait (1-3600)"),
            "repeat_count": _optional("integer", "Times to fire before cancel"),
            "callback_id": _optional("integer", "Callback slot ID"),
        },
    },
}
