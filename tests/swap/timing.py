"""Times one public server, on its own framework or with its imports swapped: one run, its figures as JSON.

    python tests/swap/timing.py NAME                                 on its own framework
    python tests/swap/timing.py NAME --fastrpc "python -m fastrpc"   by that command's ``swap --run``

Printed are `start_ms` (spawn to the answer of ``initialize``), `list_ms` (all lists), `call_us` (the median
of the entry's first call, which is sent thirty times more) and `rss_mb`; or `void` with a reason, one of
which is that `make swap` has not installed the server. W17 of the benchmarks calls it; what is measured is
what `observing.run_server` measures for `make swap`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from swap.installing import CACHE, NotInstalled, programs_of  # noqa: E402
from swap.observing import ENVIRONMENT, run_server  # noqa: E402
from swap.roster import Entry, entries  # noqa: E402


def timed(entry: Entry, fastrpc: list[str]) -> dict[str, Any]:
    """Run a server once; `fastrpc` is the command that swaps its imports, empty for the original."""
    try:
        programs = programs_of(entry, install=False)
    except NotInstalled as reason:
        return {"void": str(reason)}
    folder = os.path.join(tempfile.gettempdir(), "fastrpc-swap", entry.name)
    command, env = entry.filled(folder, programs)
    if fastrpc:
        command = [*fastrpc, "swap", "--run", "--", *command]
    logs = os.path.join(CACHE, "logs")
    os.makedirs(logs, exist_ok=True)
    log = os.path.join(logs, f"{entry.name}.timed")
    seen = run_server(entry.placed(folder), command, {**ENVIRONMENT, **env}, folder, log)
    if seen.get("failure"):
        return {"void": str(seen["failure"])}
    found = {name: seen[name] for name in ("start_ms", "list_ms", "rss_mb")}
    return {**found, "call_us": seen["call_ms"] * 1000}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="of an entry of servers.toml")
    parser.add_argument("--fastrpc", metavar="COMMAND", default="", help="swap the imports with it")
    options = parser.parse_args()
    found = {entry.name: entry for entry in entries()}
    if options.name not in found:
        parser.error(f"no server has the name {options.name!r}")
    print(json.dumps(timed(found[options.name], shlex.split(options.fastrpc))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
