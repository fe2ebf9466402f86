"""Ports for servers that must be told which one to take: not among those that the system gives to clients.

A port that was given once, by binding to 0, may be a client's a moment later. Each worker of pytest-xdist has
ports of its own: between the look at one and the server that takes it there is a second on a busy machine.
"""

from __future__ import annotations

import os
import random
import socket

WORKERS = 16
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS
OURS = range(20_000 + WORKER, 32_000, WORKERS)  # below what Linux and macOS give out by themselves


def free_port() -> int:
    """Return a port of the loopback address that nobody listens at."""
    while True:
        port = random.choice(OURS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def is_open(port: int) -> bool:
    """Return whether something listens at a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
