"""The chain of one process: lines that each hold the hash of the previous one, and signed checkpoints.

`verify` states the rules of lines, roots and signatures, and checks them with separate code.

Pure: no clock, no file. Adding a line takes two hashes and, for the tree, one more on average: half a
microsecond in compiled code (`fastrpc._core.audit_lines`).
"""

from __future__ import annotations

from base64 import b64encode

from fastrpc._core.audit_lines import ChainLines
from fastrpc.guard.audit.signing import Signer


class AuditChain(ChainLines):
    """Makes the lines of a chain. `identifier` is the chain's."""

    def __init__(self, identifier: str, signer: Signer) -> None:
        self.identifier = identifier
        self.checkpoints = 0
        self._signer = signer

    @property
    def pending(self) -> int:
        """The lines since the last checkpoint."""
        return self.tree.count

    def checkpoint(self, segment: int, time: str, closes: str = "") -> bytes:
        """Return a checkpoint as the next line. `closes`: it ends the ``segment`` or the ``chain``."""
        self.checkpoints += 1
        fields = (
            f',"kind":"checkpoint","time":"{time}","chain":"{self.identifier}","segment":{segment},'
            f'"number":{self.checkpoints},"count":{self.pending},'
            f'"root":"{self.tree.root().hex()}","key":"{self._signer.key}"'
        )
        if closes:
            fields += f',"closes":"{closes}"'
        line = signed(self.head() + fields.encode(), self._signer)
        self.seal(line)
        return line + b"\n"


def signed(line: bytes, signer: Signer) -> bytes:
    """Return a line with its signature. `line` ends before its closing brace."""
    return b'%b,"signature":"%b"}' % (line, b64encode(signer.sign(line)))
