"""Addresses of Unix sockets in folders with paths of any length.

        with SocketFolder(folder) as place:
            listener.bind(place.address("worker-1"))

The address of a Unix socket has about a hundred bytes (unix(7)). For a longer path, the address goes through
an open descriptor of the folder (`/proc/self/fd`, on Linux only). It is valid while its `SocketFolder` is
open. The caller handles permissions and stale sockets. Costs nothing if the path fits, otherwise one
descriptor.
"""

from __future__ import annotations

import errno
import os

LONGEST_ADDRESS = 103
"""Bytes of an address: 107 in Linux, 103 in macOS (unix(7), unix(4))."""
DESCRIPTORS = "/proc/self/fd"


class SocketFolder:
    """A folder with Unix sockets. `close` it when its addresses are no longer used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> SocketFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, name: str) -> str:
        """Return the address of the socket with a name in the folder. Raises OSError: ENAMETOOLONG if the
        address would be too long, and what opening the folder raises."""
        path = os.path.join(self._path, name)
        if _fits(path):
            return path
        if self._descriptor < 0 and os.path.isdir(DESCRIPTORS):
            self._descriptor = os.open(self._path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        address = os.path.join(DESCRIPTORS, str(self._descriptor), name)
        if self._descriptor < 0 or not _fits(address):
            raise OSError(errno.ENAMETOOLONG, "is too long for the address of a Unix socket", path)
        return address

    def close(self) -> None:
        """Close the descriptor of the folder."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _fits(address: str) -> bool:
    return len(os.fsencode(address)) <= LONGEST_ADDRESS
