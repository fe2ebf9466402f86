"""Texts that a client carries for the server, and that any process with the same key accepts again.

A text is readable and signed (HMAC, SHA-256). The signature covers the purpose of the text and the principal
that it was made for: a changed text, another principal's and one for another purpose all look forged. The
keys are those of ``FASTRPC_SECRET``, separated by commas, and of ``FASTRPC_SECRET_FILE``, one a line: the
first signs, all verify, so that a key can be replaced while texts of the former one are about. Without them
the key is random.
"""

from __future__ import annotations

import hashlib
import hmac
import os

from fastrpc.errors import Reworded, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class HasSigningKeys(Protocol):
        """A server's `fastrpc.engine.runtime.Runtime`."""

        signing_keys: TextKeys | None


SECRET_VARIABLE, FILE_VARIABLE = "FASTRPC_SECRET", "FASTRPC_SECRET_FILE"
SHORTEST_KEY = 32
LONGEST_FILE = 64 * 1024
MAKE_ONE = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"


class TextKeys:
    """The keys of one server, a random one without any. `are_shared`: other processes may have them too."""

    __slots__ = ("_keys", "are_shared")

    def __init__(self, keys: tuple[bytes, ...] = (), *, are_shared: bool = False) -> None:
        self.are_shared = are_shared
        self._keys = keys or (os.urandom(SHORTEST_KEY),)

    def signed(self, purpose: str, principal: str, payload: str) -> str:
        """Return a payload with its signature by the first key, after a dot."""
        return f"{payload}.{_signature(self._keys[0], purpose, principal, payload)}"

    def payload_of(self, text: str, purpose: str, principal: str) -> str | None:
        """Return the payload of a text that one of the keys has signed for this purpose and principal, else
        None. Takes the same time wherever a signature differs."""
        payload, _, signature = text.rpartition(".")
        given = signature.encode("utf-8", "backslashreplace")
        for key in self._keys:
            if hmac.compare_digest(given, _signature(key, purpose, principal, payload).encode()):
                return payload
        return None


def keys_of(runtime: HasSigningKeys) -> TextKeys:
    """Return the keys of a server, which outside of `fastrpc serve --http` and `Server.run` come from the
    environment. Raises UsageError for a file that cannot be used."""
    keys = runtime.signing_keys
    if keys is None:
        text = os.environ.get(SECRET_VARIABLE, "")
        keys = runtime.signing_keys = configured(text, os.environ.get(FILE_VARIABLE, ""), shortest=1)
    return keys


def configured(text: str | None, path: str | None = None, shortest: int = SHORTEST_KEY) -> TextKeys:
    """Return the keys of ``FASTRPC_SECRET`` and those of a file after them; a random one without any.

    Raises UsageError for a text without a key, for a key of fewer than `shortest` bytes, and for a file that
    cannot be read or that others may use.
    """
    keys = [(SECRET_VARIABLE, part) for part in _parts((text or "").encode("utf-8", "surrogateescape"), b",")]
    if text and not keys:
        raise UsageError(f"{SECRET_VARIABLE}: there is no key in it; {MAKE_ONE}")
    if path:
        lines = _parts(_read(path), b"\n")
        keys += [(f"{FILE_VARIABLE}: {path}", line) for line in lines if not line.startswith(b"#")]
        if not keys:
            raise UsageError(f"{FILE_VARIABLE}: there is no key in {path}")
    for where, key in keys:
        if len(key) < shortest:
            raise UsageError(f"{where}: expected at least {shortest} bytes, got {len(key)}; {MAKE_ONE}")
    are_long = all(len(key) >= SHORTEST_KEY for _, key in keys)  # anybody may try to guess a shorter one
    return TextKeys(tuple(key for _, key in keys), are_shared=bool(keys) and are_long)


def _parts(data: bytes, separator: bytes) -> list[bytes]:
    return [part for part in map(bytes.strip, data.split(separator)) if part]


def _read(path: str) -> bytes:
    """Return the content of a file of keys. Raises UsageError."""
    from fastrpc.regular_files import open_regular

    failing = Reworded(OSError, UsageError, f"{FILE_VARIABLE}: cannot read {path}: ")
    with failing, open(open_regular(path), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        data = file.read(LONGEST_FILE + 1)
    if mode & 0o007:
        raise UsageError(f"{FILE_VARIABLE}: others may use {path} (mode {mode:04o}): chmod 600")
    if len(data) > LONGEST_FILE:
        raise UsageError(f"{FILE_VARIABLE}: {path} is longer than {LONGEST_FILE} bytes")
    return data


def _signature(key: bytes, purpose: str, principal: str, payload: str) -> str:
    digest = hashlib.sha256(principal.encode("utf-8", "backslashreplace")).hexdigest()
    message = f"{purpose} {digest} {payload}".encode("utf-8", "backslashreplace")
    return hmac.new(key, message, "sha256").hexdigest()
