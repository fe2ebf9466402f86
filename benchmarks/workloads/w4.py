"""W4: tools that carry something: a record of 4 KB, a file of 64 KB, a log of 1 MB, there and back.

`payload` gets a nested object of about 4 KB (thirty texts, a hundred numbers) and returns it; servers that
know structured content return it twice. `echo` gets texts of 64 KB and 1 MB. One call at a time, on one
core; megabytes are counted one way. The texts are ASCII, one line in sixteen with an escape, as files and
logs mostly are. The rows named unicode have letters beyond ASCII in one line of sixteen, an emoji among
them: a Python string then takes four bytes a letter. They are shown beside the others and have no bar.
"""

from __future__ import annotations

from roster import PAYLOAD
from workloads.row import Row, load

KILOBYTES, MEGABYTE = 65_536, 1_000_000


def text_row(name: str, size: int, letters: str, bar: float | None, goal: float | None) -> Row:
    return Row(
        name,
        f"echo of {size:,} bytes, {'ASCII' if letters == 'ascii' else 'Unicode'}",
        load,
        "mb_per_second",
        "MB/s",
        less_is_better=False,
        client=("--workload", "echo", "--size", str(size), "--letters", letters),
        bar=bar,
        goal=goal,
        times_sdks={"best": 1.0},
        async_times_sdks={"best": 1.0},
    )


ROWS = (
    Row(
        "W4",
        "payload of 4 KB, one at a time",
        load,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=("--workload", "payload"),
        times_sdks={"best": 1.0},
        async_times_sdks={"best": 1.0},
        server=PAYLOAD,
    ),
    text_row("W4-64k", KILOBYTES, "ascii", 1.0, 1.5),
    text_row("W4-1m", MEGABYTE, "ascii", 1.0, 1.5),
    text_row("W4-64k-unicode", KILOBYTES, "any", None, None),
    text_row("W4-1m-unicode", MEGABYTE, "any", None, None),
)
