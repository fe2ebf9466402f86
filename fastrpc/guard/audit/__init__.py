"""The audit log: the guard's decision about each call and its outcome, verifiable by a third party.

        log = AuditLog(folder, mode="strict")
        log.append({"category": "mcp_server", "actor": "ada", "tool": "order", "outcome": "ok"})
        log.close()

A record is a line of JSON in a *segment*, a file that is only appended to. Each line holds the SHA-256 of the
line before it (`chain`), and every 1,000 lines or 10 s a *checkpoint* holds a Merkle root over the lines
since the last one and an Ed25519 signature. Checkpoints are also sent to other places (`delivery`,
`folder_target`, `syslog_target`, `webhook_target`): an attacker who can rewrite the folder and has its key
still cannot rewrite those. `verify` detects changed, dropped, swapped and cut lines, using only the standard
library.

Each process writes its own chain into its own segments: several processes share a folder without a lock, and
none edits what another has written. In mode ``strict`` a record that cannot be stored is an error for the
caller; in mode ``group`` it is counted, and the log states how many are missing.

`append` costs less than 2 µs; a thread encodes, hashes and writes (`log`, `writer`). The calling code decides
what a record contains, and hashes what it must not contain (`records.salted_hash`). Only a guarded server
imports `AuditLog`, with cryptography, which a reader of a log does not need.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.audit.log import AuditLog as AuditLog
    from fastrpc.guard.audit.log import AuditUnavailable as AuditUnavailable
    from fastrpc.guard.audit.records import salted_hash as salted_hash

_HOMES = {
    "fastrpc.guard.audit.log": ("AuditLog", "AuditUnavailable"),
    "fastrpc.guard.audit.records": ("salted_hash",),
}


if not TYPE_CHECKING:  # so that a type checker reports a misspelled name

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
