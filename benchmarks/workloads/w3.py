"""W3: every session begins with `tools/list`: the tools of an agent, one list at a time and 256 in flight.

fastrpc's is the list of `fastrpc serve`, the command that a client is configured with. All peers list the
same, member for member, compared before the clock starts. The C reference writes it for every call; `c-ready`
copies the bytes, is shown, and has no bar.
"""

from __future__ import annotations

import descriptors
from roster import LIST, Peer
from workloads.row import Options, Result, Row, load

TOOLS = len(descriptors.kept())


def measure(row: Row, peer: Peer, options: Options) -> Result:
    if said := descriptors.difference(peer):
        return {"void": said}
    return load(row, peer, options)


def row(name: str, title: str, window: int) -> Row:
    client = ("--workload", "list", "--window", str(window), "--tools", str(TOOLS))
    return Row(
        name,
        title,
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client,
        bar=1.0,
        server=LIST,
    )


ROWS = (
    row("W3", "tools/list, one at a time", 1),
    row("W3-256", "tools/list, 256 in flight", 256),
)
