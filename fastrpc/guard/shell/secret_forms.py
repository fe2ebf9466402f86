"""Whether a value below a name that may say secret is one, by its form: a ``token`` may be what pays, too.

Most names say it surely (``password``, ``api_key``, ``access_token``): what they name is masked. ``token``
may also be an asset, a unit or a number of them, and then decides what a call does: there a value is shown
unless it is made as secrets are, and of a long one the ends are shown in any case, so that an approver can
tell one from another. Costs a few searches, and only for such names.
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
"""In names that say secret: that they mean nothing else."""
ISSUED = re.compile(
    r"(?:AIza|AKIA|eyJ|frpc_|gh[opsur]_|github_pat_|glpat-|hf_|npm_|pypi-|[prs]k[-_]|xox[a-z]-)\S", re.ASCII
)
"""How secrets begin of which everybody knows the form."""
PUBLIC = re.compile(r"[A-Z][A-Z0-9._-]{0,11}|0x[0-9a-fA-F]{40}|[\d.,_]+", re.ASCII)
"""The names of assets and units in capitals, the addresses of contracts, and numbers."""
WITHIN_A_WORD = re.compile(r"[A-Za-z]\d{1,80}[A-Za-z]", re.ASCII)
PARTS = re.compile(r"[^A-Za-z0-9]+", re.ASCII)
LONGEST_WORD, LONGEST_NUMBERED = 19, 7
"""Characters of a part without digits, and of one with letters and digits, that may be a name."""
LONG, SHOWN = 24, 4
"""Characters from which on the ends are shown, and how many there."""


def mask_of(name: str, value: str) -> str:
    """Return what is shown of a value below a name that may say secret."""
    if SURE.search(name) or ISSUED.match(value):
        return MASK
    if PUBLIC.fullmatch(value) or not _is_made_up(value):
        return value
    return f"{value[:SHOWN]}{MASK}{value[-SHOWN:]}" if len(value) >= LONG else MASK


def _is_made_up(value: str) -> bool:
    """Whether a value has digits within a word, or a longer part than names have."""
    if WITHIN_A_WORD.search(value):
        return True
    parts = [part for part in PARTS.split(value) if not part.isdigit()]
    return any(len(part) > (LONGEST_WORD if part.isalpha() else LONGEST_NUMBERED) for part in parts)
