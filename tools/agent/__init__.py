"""The agent's tools, one file for each, in their published order. Modules that they share start with
``_``.

`attach` is called after they have been added to a server. It starts the background work of some of them.
Importing this imports no tool.
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

ATTACHED = {"InvokeSkill": "invoke_skill", "PlanMode": "plan_mode", "SetCallback": "set_callback"}
"""The tools with background work: watching folders of skills, resuming a plan, firing callbacks."""


def attach(server: Server) -> None:
    """Start the background work of the tools that are on this server."""
    from ._settings import has_full_descriptions

    if has_full_descriptions():
        from ._descriptions import describe

        describe(server)
    for tool, module in ATTACHED.items():
        if tool in server.tools:
            name = f"{__name__}.{module}"
            __import__(name)
            sys.modules[name].attach(server)
