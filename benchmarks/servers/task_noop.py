"""Tools that write the time at which they begin (monotonic, ns) to the file that TASK_STARTS names."""

import os
import time

from fastrpc import Server

app = Server("noop")
STARTS = os.open(os.environ["TASK_STARTS"], os.O_WRONLY) if "TASK_STARTS" in os.environ else -1


@app.tool(effect="read", task="required", run="inline")
def noop() -> str:
    """End at once, where the task runs."""
    os.write(STARTS, b"%d\n" % time.monotonic_ns())
    return ""


@app.tool(effect="read", task="required", run="process")
def in_process() -> str:
    """The same in a process of the server."""
    os.write(STARTS, b"%d\n" % time.monotonic_ns())
    return ""


if __name__ == "__main__":
    app.run()
