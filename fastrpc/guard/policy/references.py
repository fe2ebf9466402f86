"""Secrets that a configuration names instead of containing: ``env:NAME``, ``file:PATH``, ``{{vault:name}}``.

A vault is the file ``vault`` beside the configuration, with lines ``name = value``. Only their owner may have
access to files with secrets. Resolved secrets are masked in all output from then on.
"""

from __future__ import annotations

import os
import re
import stat

from fastrpc.redaction import hide
from fastrpc.regular_files import open_regular

_taken: dict[str, str] = {}
"""Secrets that were removed from the environment, so that no child process inherits them. A file that is read
again names them again."""
_VAULT = re.compile(r"\{\{\s*vault:\s*([A-Za-z0-9_.-]+)\s*\}\}\Z")
LONGEST = 64 * 1024


class References:
    """Resolves references. `folder` is that of the configuration, and of its vault."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._vault = os.path.join(folder, "vault")
        self._values: dict[str, str] | None = None

    def resolve(self, text: str) -> str:
        """Return the secret. Raises ValueError; its message does not contain the secret."""
        value = self._found(text)
        hide(value)
        return value

    def _found(self, text: str) -> str:
        found = _VAULT.match(text)
        if found is not None:
            return self._in_vault(found[1])
        if text.startswith("env:"):
            return self._in_environment(text[4:])
        if text.startswith("file:"):
            lines = _read_private(os.path.join(self._folder, os.path.expanduser(text[5:]))).splitlines()
            value = lines[0].strip() if lines else ""
            if not value:
                raise ValueError(f"{text[5:]}: the file is empty")
            return value
        raise ValueError("expected env:NAME, file:PATH or {{vault:name}}, not the secret itself")

    def _in_environment(self, name: str) -> str:
        """Return a variable, and remove it from the environment. Raises ValueError."""
        from fastrpc.transports.http.auth import take

        value = take(name).strip() or _taken.get(name, "")
        if value:
            _taken[name] = value
        return _set(name, value)

    def _in_vault(self, name: str) -> str:
        if self._values is None:
            self._values = {}
            for line in _read_private(self._vault).splitlines():
                key, equals, value = line.partition("=")
                if equals and not key.strip().startswith("#"):
                    self._values[key.strip()] = value.strip().strip("\"'")
        if not self._values.get(name):
            raise ValueError(f"{self._vault}: there is no {name}")
        return self._values[name]


class CheckedReferences(References):
    """References in a text that is only checked, such as one that is being typed: what they name must exist,
    but no secret is returned, nothing is removed from the environment and nothing is masked."""

    def resolve(self, text: str) -> str:
        self._found(text)
        return "(a secret)"

    def _in_environment(self, name: str) -> str:
        return _set(name, os.environ.get(name, "").strip() or _taken.get(name, ""))


def _set(name: str, value: str) -> str:
    if not value:
        raise ValueError(f"the environment variable {name} is not set")
    return value


def _read_private(path: str) -> str:
    """Return the text of a file that no other user can read. Raises ValueError."""
    try:
        with open(open_regular(path), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & 0o077:
                raise ValueError(
                    f"{path}: others may use the file (mode {stat.S_IMODE(mode):04o}): chmod 600"
                )
            return file.read(LONGEST).decode()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8") from None
