"""The file with the servers of a gateway: read at the start, and again when it has changed.

A file that cannot be read any more, or holds no servers, is logged once, and the servers stay as they are.
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
    """A file with servers. `folder`: where its commands are started; None: in the working directory. Raises
    InvalidConfig if it cannot be read now."""

    def __init__(self, path: str, folder: str | None = None) -> None:
        self.path = path
        self.folder = folder
        self._stamp = stamp_of(path)
        self.servers: dict[str, Any] = read_servers(path)
        if not self.servers:
            diagnostics.write("warning", f"{path}: {EMPTY}")
        self.gateway: Gateway | None = None
        """What uses these servers, from now on those of the changed file."""
        self._broken: tuple[Stamp, bool] | None = None  # that of a broken file, and whether it was logged

    def poll(self) -> None:
        """Use the servers that the file has now, if it has changed."""
        stamp = stamp_of(self.path)
        if stamp == self._stamp:
            return
        try:
            servers = read_servers(self.path)
            if not servers:
                raise InvalidConfig(f"{self.path}: {EMPTY}")
        except InvalidConfig as error:
            # One that is being written is whole the next time.
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
