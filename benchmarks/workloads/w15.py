"""W15: what the guard costs: `echo` behind a policy, beside the same server without one.

The policy has an allowlist, a rate, and the audit log in its mode `group`, as `fastrpc serve --guard` has
them; over HTTP a token of the policy's own, to a server with the same token in a file. `W15` is one call at a
time, `W15-256` has 256 in flight; client and server share a core, as in W1 and W2, and the audit's threads
with them. `W15-http` is one connection, `W15-http-256` 256 of them, with a core for each side. `W15-rule` has
a rule that reads the arguments besides, `W15-rules` 100, of which three are about the tool. Every call has to
have its record; `W15-rule-256` alone keeps no audit log: beside it a rule costs too little to be seen.

One at a time the figure is what a call takes longer at the median: a run of either server, one behind the
other, in turns which first. The line of the plain server, whose runs are both without a guard, is the noise.
`W15-one` has the same as a ratio, which has no bar of its own: with `W15-256` and `W15-rules` it is what
`make bench-guard` keeps from getting worse (`python benchmarks/run.py --rows W15-one,W15-256 --record` takes
the figures anew).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from functools import cache
from glob import glob
from itertools import count

from roster import (
    GUARDED,
    GUARDED_HTTP,
    GUARDED_RULE,
    GUARDED_RULE_ONLY,
    GUARDED_RULES,
    PLAIN,
    STATE,
    TOKEN,
    Peer,
    peer_of,
)
from workloads.row import Column, Options, Result, Row, load
from workloads.w2 import CLIENT

ONE = ("--workload", "echo", "--window", "1")
HTTP = ("--workload", "http", "--token", TOKEN, "--connections")
COLUMNS = (Column("p50 with", "p50"), Column("without", "plain_p50"), Column("p99 with", "p99"))
_turn = count()


def measure(row: Row, peer: Peer, options: Options) -> Result:
    """Put the load on with an empty audit log; the run is void if a call has no record."""
    folder = os.path.join(STATE, "audit")
    shutil.rmtree(folder, ignore_errors=True)
    result = load(row, peer, options)
    if missing := records_missing(folder):
        return {"void": f"the audit log misses {missing} calls"}
    return result


def records_missing(folder: str) -> int:
    """Return of how many calls the log says that they have no record."""
    missing = 0
    for path in glob(os.path.join(folder, "*.jsonl")):
        with open(path, "rb") as file:
            missing += sum(json.loads(line)["lost"] for line in file if b',"kind":"gap",' in line)
    return missing


def measure_extra(row: Row, peer: Peer, options: Options) -> Result:
    """Put the load on both servers; the figure is by how much the median is higher behind the guard."""
    plain = plain_peer(options.python)
    if next(_turn) % 2:
        without = measure(row, plain, options)
        guarded = measure(row, peer, options)
    else:
        guarded = measure(row, peer, options)
        without = measure(row, plain, options)
    if void := guarded.get("void") or without.get("void"):
        return {"void": void}
    return {**guarded, "plain_p50": without["p50"], "extra": guarded["p50"] - without["p50"]}


@cache
def plain_peer(python: str) -> Peer:
    return peer_of(PLAIN, python)


ONE_AT_A_TIME = Row(
    "W15",
    "echo with a guard, one at a time: additional time",
    measure_extra,
    "extra",
    "us",
    client=ONE,
    limit=2.0,
    base="",
    server=GUARDED,
    columns=COLUMNS,
)
IN_FLIGHT = Row(
    "W15-256",
    "echo with a guard, 256 in flight, compared with no guard",
    measure,
    "calls_per_second",
    "calls/s",
    less_is_better=False,
    client=CLIENT,
    bar=0.5,
    base=PLAIN,
    server=GUARDED,
)
ROWS = (
    ONE_AT_A_TIME,
    Row(
        "W15-one",
        "echo with a guard, one at a time, compared with no guard",
        measure,
        "p50",
        "us",
        client=ONE,
        base=PLAIN,
        server=GUARDED,
    ),
    IN_FLIGHT,
    replace(
        ONE_AT_A_TIME,
        name="W15-http",
        title="echo over HTTP with a guard, one connection: additional time",
        client=(*HTTP, "1"),
        server=GUARDED_HTTP,
    ),
    replace(
        IN_FLIGHT,
        name="W15-http-256",
        title="echo over HTTP with a guard, 256 connections, compared with no guard",
        client=(*HTTP, "256"),
        server=GUARDED_HTTP,
        cores=2,
    ),
    replace(
        ONE_AT_A_TIME,
        name="W15-rule",
        title="echo with a rule that reads its arguments, one at a time: additional time",
        limit=10.0,
        server=GUARDED_RULE,
    ),
    replace(
        IN_FLIGHT,
        name="W15-rule-256",
        title="echo with a rule that reads its arguments, no audit, 256 in flight, compared with no guard",
        bar=0.25,
        server=GUARDED_RULE_ONLY,
    ),
    replace(
        ONE_AT_A_TIME,
        name="W15-rules",
        title="echo with 100 rules, three of which apply to it, one at a time: additional time",
        limit=10.0,
        server=GUARDED_RULES,
    ),
)
