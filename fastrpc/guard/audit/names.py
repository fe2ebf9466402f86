"""Which names the audit log has in clear that callers have made up.

A name that a server has is known anyway. Any other one is a text of the caller's, and what should have been
an argument may stand there, a secret among them, with nothing beside it by which it could be recognised. So
it is written only if it consists of words, as names do; else the record has a salted hash of it.
"""

from __future__ import annotations

import re

from fastrpc.guard.audit.records import salted_hash
from fastrpc.redaction import MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_WORDS = 16
WORD = re.compile(
    r"[a-z]{0,20}[0-9]{0,4}|[A-Z]{1,20}[0-9]{0,4}|[A-Z]?[a-z]{1,19}(?:[A-Z][a-z]{1,19}){0,4}[0-9]{0,2}"
)
"""A word, also several as in ``addTwoNumbers``, with a number behind it; but letters and digits by turns, or
more of them than words have, may be anything."""
BETWEEN = re.compile(r"[-_./:{} ]+")


def is_of_words(name: str) -> bool:
    """Whether a name looks like one that somebody has given a thing."""
    words = BETWEEN.split(name, MOST_WORDS)
    return len(words) <= MOST_WORDS and all(map(WORD.fullmatch, words))


def fields_of_unknown(name: str) -> dict[str, Any]:
    """Return the fields of a record that say which name was called that a server does not have."""
    if is_of_words(name):
        return {"tool": name}
    return {"tool": MASK, "name": salted_hash(name.encode("utf-8", "surrogatepass"))}
