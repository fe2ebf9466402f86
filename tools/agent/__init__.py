"""The agent's tools, one file a tool, in their published order; what they share starts with ``_``."""

__all__ = [  # noqa: RUF022
    "bash",
    "background_bash",
    "read_bg_output",
    "list_bg_tasks",
    "kill_bg_task",
]
