"""Where the tokens of a login are kept between two runs: in the system's keyring, or in files.

A record is the JSON text of one login, under a key that names the server. `KeyringStore` uses the package
keyring, where it is installed and has a backend of the system; `FileStore` writes one file of mode 0600 for
each key. Calls may block: `fastrpc.client.oauth.credentials` makes them in a thread. Two processes that
write one key at once overwrite each other's record; none of them reads half of one.
"""

from __future__ import annotations

import os
from contextlib import suppress

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class TokenStore(Protocol):
        """What keeps records. Methods may block, and raise OSError when a record cannot be kept."""

        def load(self, key: str) -> str | None:
            """Return the record under a key, or None."""

        def save(self, key: str, record: str) -> None:
            """Keep a record in place of the one that is there."""

        def delete(self, key: str) -> None:
            """Forget a record, if there is one."""


SERVICE = "fastrpc"
"""The name of the entries in the keyring."""
LARGEST = 1024 * 1024
"""Bytes of a record."""
SYSTEM_PRIORITY = 1
"""Backends of lower priority are none, or keep passwords in plain files (keyring: backend priorities)."""


class FileStore:
    """Keeps each record in a file of mode 0600, in a folder of mode 0700: `folder`, by default ``oauth`` in
    the state folder (``FASTRPC_STATE_DIR``)."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> str:
        if self._folder is None:
            from fastrpc.settings import STATE_DIR

            self._folder = os.path.join(STATE_DIR.read(), "oauth")
        return self._folder

    def _path(self, key: str) -> str:
        from hashlib import sha256

        return os.path.join(self.folder, sha256(key.encode()).hexdigest()[:32] + ".json")

    def load(self, key: str) -> str | None:
        """Return the record under a key. A file that others may read is not used, and a warning says so."""
        from fastrpc.regular_files import look, read_regular

        path = self._path(key)
        try:
            found = look(path, follow=False)
            if found.st_mode & 0o077 or found.st_uid != os.geteuid():
                diagnostics.write("warning", f"{path}: not used: expected a file of this user and mode 0600")
                return None
            return read_regular(path, LARGEST, follow=False).decode(errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            diagnostics.write("warning", f"{path}: not used: {error.strerror}")
            return None

    def save(self, key: str, record: str) -> None:
        """Replace a file as a whole. Raises OSError."""
        from fastrpc.regular_files import replace_file

        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.chmod(self.folder, 0o700)  # also where it was there, or the umask was odd
        replace_file(self._path(key), record.encode())

    def delete(self, key: str) -> None:
        """Remove a file, if there is one. Raises OSError."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(key))


class KeyringStore:
    """Keeps each record as an entry of the system's keyring. Raises ImportError without the package."""

    def __init__(self) -> None:
        from importlib import import_module

        self._keyring: Any = import_module("keyring")

    @property
    def is_usable(self) -> bool:
        """Whether there is a backend of the system."""
        backend = self._keyring.get_keyring()
        return bool(getattr(backend, "priority", 0) >= SYSTEM_PRIORITY)

    def load(self, key: str) -> str | None:
        """Return the record under a key, or None."""
        found: str | None = self._translated("get_password", key)
        return found

    def save(self, key: str, record: str) -> None:
        """Keep a record in place of the one that is there. Raises keyring's errors."""
        self._translated("set_password", key, record)

    def delete(self, key: str) -> None:
        """Forget a record, if there is one."""
        if self.load(key) is not None:
            self._translated("delete_password", key)

    def _translated(self, function: str, *arguments: str) -> Any:
        """Call the keyring. Raises OSError for whatever a backend raises."""
        try:
            return getattr(self._keyring, function)(SERVICE, *arguments)
        except Exception as error:  # backends raise what their libraries raise
            raise OSError(f"the keyring failed: {type(error).__name__}") from None


class MemoryStore:
    """Keeps records as long as the object lives."""

    def __init__(self) -> None:
        self._records: dict[str, str] = {}

    def load(self, key: str) -> str | None:
        return self._records.get(key)

    def save(self, key: str, record: str) -> None:
        self._records[key] = record

    def delete(self, key: str) -> None:
        self._records.pop(key, None)


def default_store() -> TokenStore:
    """Return the keyring, where there is one that answers, else the files."""
    try:
        keyring = KeyringStore()
        if keyring.is_usable:
            keyring.load("probe")
            return keyring
    except ImportError:
        pass
    except Exception as error:  # a backend may fail in any way, such as without a desktop session
        diagnostics.write("info", f"the keyring cannot be used: {type(error).__name__}")
    return FileStore()
