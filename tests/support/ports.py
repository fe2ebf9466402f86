"""Ports for servers that must be told which one to take: not among those that the system gives to clients.

A port that was given once, by binding to 0, may be a client's a moment later. And each process of
pytest-xdist has separate ports, which it gives one after the other: no one else takes one before the server
that it is for has started, or while that is started again.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from itertools import cycle

OURS = range(20_000, 28_000)
"""Below what Linux and macOS give out by themselves; the benchmarks' client takes those behind them."""


def _of_this_process() -> list[int]:
    """The ports of this process, in a separate order: other runs of the tests may be on the machine."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    found = list(OURS[number :: int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))])
    random.Random(os.urandom(8)).shuffle(found)
    return found


_next = cycle(_of_this_process())


def free_port() -> int:
    """Return a port of the loopback address that no one listens at."""
    while True:
        port = next(_next)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port of the loopback address that takes no connection: it is bound, and no one listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def is_open(port: int) -> bool:
    """Return whether something listens at a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
