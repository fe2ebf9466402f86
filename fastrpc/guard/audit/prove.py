"""Proves that a record is in a log to a person who does not have the log: ``fastrpc audit prove ID``.

A proof has the hash of the record's line, its index under the checkpoint that signs it, and the audit path to
the checkpoint's root (RFC 6962, section 2.1.1): 1 KB at most. `verify.check_proof` checks it.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os

from fastrpc.guard.audit.verify import HEAD, Tree, segments_in


def inclusion_path(leaves: list[bytes], index: int) -> list[bytes]:
    """Return the audit path from a leaf to the root, beginning at the leaf (RFC 6962, section 2.1.1)."""
    if len(leaves) == 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return [*inclusion_path(leaves[:half], index), Tree(leaves[half:]).root()]
    return [*inclusion_path(leaves[half:], index - half), Tree(leaves[:half]).root()]


def prove(folder: str, identifier: str) -> str:
    """Return a proof that a record is under a signed checkpoint: JSON with the hash of its line, its index
    under the checkpoint, the joined nodes of the audit path, and the checkpoint's line unchanged. Raises
    LookupError if there is no such record, or no checkpoint after it yet."""
    needle = b'"id":' + json.dumps(identifier).encode()
    for segment in itertools.chain.from_iterable(segments_in(folder).values()):
        leaves: list[bytes] = []
        found = -1
        with open(os.path.join(folder, segment.name), "rb") as file:
            for line in file:
                head = HEAD.match(line)
                at = head.end() if head else 0
                if line.startswith(b'"kind":"checkpoint"', at):
                    if found >= 0:
                        path = base64.b64encode(b"".join(inclusion_path(leaves, found))).decode()
                        proof = {"id": identifier, "sha256": leaves[found].hex(), "index": found}
                        text = json.dumps({**proof, "path": path}, separators=(",", ":"))
                        return f'{text[:-1]},"checkpoint":{line.decode().strip()}}}'
                    leaves = []
                    continue
                if line.startswith(needle, at):
                    found = len(leaves)
                leaves.append(hashlib.sha256(line.rstrip(b"\n")).digest())
        if found >= 0:
            raise LookupError(f"{identifier} is in {segment.name}, but there is no checkpoint after it yet")
    raise LookupError(f"no record {identifier!r:.80}")
