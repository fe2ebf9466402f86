"""The file with the servers of a gateway: read at the start, and again when it has changed.

If a changed file cannot be read or contains no servers, that is logged once, and the servers do not change.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.client.config import read_servers
from fastrpc.errors import InvalidConfig
from fastrpc.regular_files import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.gateway import Gateway

    Stamp = tuple[int, int, int, int] | None

CHECK_SECONDS = 0.5
EMPTY = "it contains no servers"


class WatchedFile:
    """A file with servers. `folder`: the working directory of its commands, None for that of this process.
    Raises InvalidConfig if the file cannot be read now."""

    def __init__(self, path: str, folder: str | None = None) -> None:
        self.path = path
        self.folder = folder
        self._stamp = stamp_of(path)
        self.servers: dict[str, Any] = read_servers(path)
        if not self.servers:
            diagnostics.write("warning", f"{path}: {EMPTY}")
        self.gateway: Gateway | None = None
        """The gateway to update when the file has changed."""
        self._broken: tuple[Stamp, bool] | None = None  # of a broken file, and whether that was logged

    def poll(self) -> None:
        """If the file has changed, read it and update the gateway."""
        stamp = stamp_of(self.path)
        if stamp == self._stamp:
            return
        try:
            servers = read_servers(self.path)
            if not servers:
                raise InvalidConfig(f"{self.path}: {EMPTY}")
        except InvalidConfig as error:
            # Log it only at the second poll: the file may be in the middle of being written.
            if self._broken is None or self._broken[0] != stamp:
                self._broken = stamp, False
            elif not self._broken[1]:
                self._broken = stamp, True
                diagnostics.write("error", f"{error}; the servers are not changed")
            return
        self._broken, self._stamp, self.servers = None, stamp, servers
        if self.gateway is not None:
            for change in self.gateway.replace(servers):
                diagnostics.write("info", f"{self.path}: {change}")
