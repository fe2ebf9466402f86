"""Ports for servers that must be told which one to take: not among those that the system gives to clients.

A port that was given once, by binding to 0, may be a client's a moment later. Each worker of pytest-xdist has
ports of its own, and gives none again soon: what was ended and begins anew finds its port free.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator

OURS = range(20_000, 32_000)  # below what Linux and macOS give out by themselves
WORKERS = 8
_given: set[int] = set()


def free_port() -> int:
    """Return a port of the loopback address that nobody listens at."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    mine = OURS[worker % WORKERS :: WORKERS]
    if len(_given) > len(mine) // 2:  # those of the first tests are free again
        _given.clear()
    while True:
        port = random.choice(mine)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port of the loopback address that takes no connection: it is bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def is_open(port: int) -> bool:
    """Return whether something listens at a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
