"""Decides which unknown names the audit log records in clear.

A name that a server has is not secret. Any other name is a text that the caller has chosen. It may be a
misplaced argument, even a secret, without any context by which it could be recognised. So it is written only
if it consists of words, as names do; otherwise the record has a salted hash of it.
"""

from __future__ import annotations

import re
from typing import Any

from fastrpc.guard.audit.records import salted_hash
from fastrpc.redaction import MASK

MOST_WORDS = 16
WORD = re.compile(
    r"[a-z]{0,20}[0-9]{0,4}|[A-Z]{1,20}[0-9]{0,4}|[A-Z]?[a-z]{1,19}(?:[A-Z][a-z]{1,19}){0,4}[0-9]{0,2}"
)
"""A word, or several as in ``addTwoNumbers``, which a number may follow. Alternating letters and digits, or
more of them than words have, may be anything."""
BETWEEN = re.compile(r"[-_./:{} ]+")


def fields_of_unknown(name: str) -> dict[str, Any]:
    """Return the fields of a record for a called name that the server does not have."""
    words = BETWEEN.split(name, MOST_WORDS)
    if len(words) <= MOST_WORDS and all(map(WORD.fullmatch, words)):  # as people name a tool
        return {"tool": name}
    return {"tool": MASK, "name": salted_hash(name.encode("utf-8", "surrogatepass"))}
