"""The agent's thirteen tools, one file a tool, in their published order; what they share starts with ``_``.

`attach` is called when they have been added to a server: what some of them look after besides their calls
begins there. Importing this imports no tool.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc import Server

__all__ = [  # noqa: RUF022
    "bash",
    "read_image",
    "read_docs",
    "web_search",
    "task_manager",
    "plan_mode",
    "ask_user_question",
    "invoke_skill",
    "background_bash",
    "read_bg_output",
    "list_bg_tasks",
    "kill_bg_task",
    "set_callback",
]

PROCESS_STATE = "programs and plan mode"
"""What they keep in their process: several workers must not serve them (docs/toolsets.md)."""

ATTACHED = {"InvokeSkill": "invoke_skill", "PlanMode": "plan_mode", "SetCallback": "set_callback"}
"""The tools with something to look after: a folder of skills, a plan that goes on, a time that comes."""


def attach(server: Server) -> None:
    """Have the tools that are there look after what is theirs, on this server."""
    from ._settings import has_full_descriptions

    if has_full_descriptions():
        from ._descriptions import describe

        describe(server)
    for tool, module in ATTACHED.items():
        if tool in server.tools:
            name = f"{__name__}.{module}"
            __import__(name)
            sys.modules[name].attach(server)
