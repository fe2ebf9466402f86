"""The audit log: what the guard decided and what became of each call, as a record that a stranger can verify.

        log = AuditLog(folder, mode="strict")
        log.append({"category": "mcp_server", "actor": "ada", "tool": "order", "outcome": "ok"})
        log.close()

A record is a line of JSON in a *segment*, a file that is only appended to. Each line holds the SHA-256 of the
line before it (`chain`), and every 1,000 lines or 10 s a *checkpoint* holds a Merkle root over the lines
since the last one and an Ed25519 signature. Checkpoints go to other places too (`delivery`, `folder_target`,
`syslog_target`, `webhook_target`): whoever rewrites the folder, with its key, still cannot rewrite those.
`verify` finds what was changed, dropped, swapped or cut, with the standard library alone.

Each process writes a chain of its own into segments of its own: several share a folder without a lock, and
none edits what another has written. In mode ``strict`` a record that cannot be kept is an error for the
caller; in mode ``group`` it is counted, and the log says how many are missing.

`append` costs less than 2 µs; a thread encodes, hashes and writes (`log`, `writer`). What a record holds
is the caller's, and so is hashing what it must not hold (`records.salted_hash`). `AuditLog` is imported by a
guarded server only, with cryptography, which whoever reads a log does not need.
"""

from __future__ import annotations

from fastrpc.lazy_names import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.audit.log import AuditLog as AuditLog
    from fastrpc.guard.audit.log import AuditUnavailable as AuditUnavailable
    from fastrpc.guard.audit.records import salted_hash as salted_hash

_HOMES = {
    "AuditLog": "fastrpc.guard.audit.log",
    "AuditUnavailable": "fastrpc.guard.audit.log",
    "salted_hash": "fastrpc.guard.audit.records",
}


if not TYPE_CHECKING:  # a checker is to find a name that is misspelled

    def __getattr__(name: str) -> object:
        return load(globals(), _HOMES, name)
