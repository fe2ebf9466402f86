"""The Ed25519 key that signs checkpoints: created at first use, with mode 0600, and its public key beside it.

A person who can read the key can sign a forged chain. If others can read the folder, store the key elsewhere
(`key_file`), and send checkpoints to other places. An auditor gets the public key, a PEM file that openssl
reads too. A signature takes 40 µs. The only module that imports cryptography.
"""

from __future__ import annotations

import os
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from fastrpc.regular_files import create_file, read_regular

PUBLIC = ".pub"
"""The suffix of the public key's file name, after that of the private key."""
LONGEST_KEY = 16 * 1024


class Signer:
    """Signs with the key in a file; creates the file if it does not exist. Raises OSError, and ValueError for
    a file without such a key or that others may read."""

    def __init__(self, path: str) -> None:
        try:
            self._key = _read(path)
        except FileNotFoundError:
            key = Ed25519PrivateKey.generate()
            create_file(path, [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())])
            self._key = _read(path)
        public = self._key.public_key()
        self.key = sha256(public.public_bytes_raw()).hexdigest()[:16]
        """The key's name in checkpoints: the first 16 hex digits of the SHA-256 of the public key."""
        self.public_pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        if not os.path.exists(path + PUBLIC):
            create_file(path + PUBLIC, [self.public_pem])

    def sign(self, data: bytes) -> bytes:
        """Return the signature, 64 bytes."""
        return self._key.sign(data)


def _read(path: str) -> Ed25519PrivateKey:
    data = read_regular(path, LONGEST_KEY)
    if os.stat(path).st_mode & 0o077:
        raise ValueError(f"{path}: others may read it (chmod 600)")
    key = load_pem_private_key(data, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path}: expected an Ed25519 key")
    return key
