"""Decides by its form whether a value with an ambiguous name is a secret: a ``token`` may also be a currency.

Most names are unambiguous (``password``, ``api_key``, ``access_token``): their values are masked. A ``token``
may also be an asset, a unit or a number of them, which determines what a call does. Such a value is shown
unless it has the form of a secret; the ends of a long one are always shown, so that an approver can
distinguish values. Costs a few searches, and only for such names.
"""

from __future__ import annotations

import re

from fastrpc.redaction import MASK

SURE = re.compile(
    r"secret|passw|api[-_]?key|credential|private[-_]?key|authorization|(?<![a-z])id[-_]?token"
    r"|(?:access|api|app|auth|bearer|bot|client|csrf|deploy|git[a-z]{0,10}|jwt|login|npm|oauth2?|personal|pypi"
    r"|refresh|reset|service|session|slack|user|xsrf)[-_]?token|token[-_]?(?:hash|key|value)",
    re.IGNORECASE,
)
"""Parts of a secret's name that make it unambiguous."""
ISSUED = re.compile(
    r"(?:AIza|AKIA|eyJ|frpc_|gh[opsur]_|github_pat_|glpat-|hf_|npm_|pypi-|[prs]k[-_]|xox[a-z]-)\S", re.ASCII
)
"""The beginnings of secrets with a published form."""
PUBLIC = re.compile(r"[A-Z][A-Z0-9._-]{0,11}|0x[0-9a-fA-F]{40}|[\d.,_]+", re.ASCII)
"""The names of assets and units in capitals, the addresses of contracts, and numbers."""
WITHIN_A_WORD = re.compile(r"[A-Za-z]\d{1,80}[A-Za-z]", re.ASCII)
PARTS = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
LONGEST_WORD, LONGEST_NUMBERED = 19, 7
"""The maximum length, in characters, of a name's part without digits, and of one with letters and digits."""
LONG, SHOWN = 24, 4
"""The length from which on both ends are shown, and the number of characters at each end."""


def mask_of(name: str, value: str) -> str:
    """Return the form in which a value with an ambiguous name is shown."""
    if SURE.search(name) or ISSUED.match(value):
        return MASK
    if PUBLIC.fullmatch(value) or not _is_made_up(value):
        return value
    return f"{value[:SHOWN]}{MASK}{value[-SHOWN:]}" if len(value) >= LONG else MASK


def _is_made_up(value: str) -> bool:
    """Whether a value has digits within a word, or a part that is longer than those of names."""
    if WITHIN_A_WORD.search(value):
        return True
    parts = [part for part in PARTS.split(value) if not part.isdigit()]
    return any(len(part) > (LONGEST_WORD if part.isalpha() else LONGEST_NUMBERED) for part in parts)
