"""Checkpoints as messages of RFC 5424 to a syslog daemon: over a Unix datagram socket, or over UDP.

A datagram is not acknowledged, so a loss in the daemon is not detected; use UDP only for a daemon on this
machine. The message is the checkpoint's line, of 500 bytes; facility 13 (log audit), severity 5 (notice).
"""

from __future__ import annotations

import os
import socket

from fastrpc.guard.audit.records import rfc3339
from fastrpc.unix_sockets import SocketFolder

Address = str | tuple[str, int]

FACILITY, SEVERITY = 13, 5
SEND_SECONDS = 5.0


class SyslogTarget:
    """A syslog daemon. `address` is the path of its socket, ``/dev/log`` by default, or host and port."""

    def __init__(self, address: Address = "/dev/log", app: str = "fastrpc") -> None:
        self._address = address
        self._app = app
        self.name = (
            f"syslog at {address}" if isinstance(address, str) else f"syslog at {address[0]}:{address[1]}"
        )

    def send(self, line: bytes) -> None:
        """Send a checkpoint. Raises OSError."""
        message = self.message(line)
        if isinstance(self._address, str):
            folder, name = os.path.split(self._address)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon, SocketFolder(folder) as reached:
                daemon.settimeout(SEND_SECONDS)
                daemon.connect(reached.address(name))
                daemon.send(message)
            return
        family, kind, protocol, _, place = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as daemon:
            daemon.settimeout(SEND_SECONDS)
            daemon.connect(place)
            daemon.send(message)

    def message(self, line: bytes) -> bytes:
        """Return the message with a checkpoint: RFC 5424, section 6."""
        from time import time_ns

        time = rfc3339(time_ns() // 1_000_000)
        host = socket.gethostname() or "-"
        head = (
            f"<{8 * FACILITY + SEVERITY}>1 {time} {host[:255]} {self._app[:48]} {os.getpid()} checkpoint - "
        )
        return head.encode("ascii", "replace") + line
