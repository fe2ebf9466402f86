"""Tasks: calls that outlive their request, by the extension io.modelcontextprotocol/tasks and in 2025-11-25.

A task is a row that is written before the client learns its id (`store`), and a call that some process runs
(`run`). The row decides: of two ends the first one counts, whichever process writes it. `record` is what
both wires show of a task. Imported by the first request that creates or names a task.
"""
