"""W7: the tool that agents call most: a shell command, from the smallest to one that prints a megabyte.

`true` is what starting a shell and noticing its end cost: p50, one at a time. The other row prints a million
bytes, of which a server hands back the head and the tail: how fast it takes them in. Both processes and the
commands' run on one core. The server's CPU time and memory are its own, without those of the commands.
"""

from __future__ import annotations

from roster import SHELL
from workloads.row import Row, load

PRINTED = 1_000_000
CLIENT = ("--workload", "shell", "--tool", "Bash", "--shell")
COMMAND = f"head -c {PRINTED} /dev/zero | tr '\\0' x"

ROWS = (
    Row(
        "W7",
        "bash: true",
        load,
        "p50",
        "us",
        client=(*CLIENT, "true"),
        bar=1.3,
        goal=1.0,
        server=SHELL,
    ),
    Row(
        "W7-1m",
        f"bash: {COMMAND}",
        load,
        "mb_per_second",
        "MB/s",
        less_is_better=False,
        client=(*CLIENT, COMMAND, "--printed", str(PRINTED)),
        server=SHELL,
    ),
)
