"""The tokens of the guard's database as a source of the HTTP authenticator (`token_source`).

It must be the last source: while the database cannot be read, it refuses with 503 every token that no other
source knows. A verdict is valid for one poll of the directory; then a cached head is checked again.
"""

from __future__ import annotations

from fastrpc.guard.callers.directory import TokenDirectory
from fastrpc.transports.http.auth import tokens_unreadable
from fastrpc.transports.http.guard import Admission


class DirectorySource:
    """A `TokenSource` on a directory that uses `time.monotonic`."""

    def __init__(self, directory: TokenDirectory) -> None:
        self._verify = directory.verify
        self._directory = directory

    def known(self, token: bytes) -> Admission | None:
        found = self._verify(token)
        return None if found is None else Admission(found[0].principal, found[1])

    async def find(self, token: bytes) -> Admission | None:
        if not self._directory.is_available:
            raise tokens_unreadable()
        return None
