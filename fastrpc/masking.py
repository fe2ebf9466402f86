"""Takes secrets out of texts that are written down: log records, traces, the messages of errors.

A secret is known by where it stands (the password of an address, an ``Authorization`` header, the value
behind a name such as ``api_key``), because it is the value of an environment variable with such a name, or
because whoever took it from there, or from a file, has said so (`hide`).
What looks like none stays as it is: this bounds the damage of a mistake, it does not make texts public.
Costs a microsecond for a text that has no marks of a secret (`fastrpc._core.redaction`), some searches of it
otherwise; imported only where something is written.
"""

from __future__ import annotations

import os
import re

from fastrpc._core.redaction import Secrets, may_match
from fastrpc.environment import raw_environment

MASK = "****"
NAMES = "(?<!progress)token|secret|password|passwd|api[-_]?key|credential|private[-_]?key"
IN_ENVIRONMENT = re.compile(rf"(?:{NAMES}|_key$|_auth$)", re.IGNORECASE)
SHORTEST = 8
"""Values of the environment that are shorter are found in every text by chance."""

# Each begins with something rare, and what is repeated before something else is bounded: no text takes long.
KEY = rf"(?:{NAMES}|authorization)[^\"'\\]{{0,40}}"
HEADER = r"\b(?:proxy-authorization|authorization|x-api-key|set-cookie|cookie)\s{0,4}:\s{0,4}"

PATTERNS = [
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # https://name:password@host, and https://token@host
        (r"(:\\?/\\?/)[^\s/?#@\"'<>\\]{1,500}@", rf"\1{MASK}@"),
        # "password": "…" in JSON, in JSON within JSON, and as Python shows a dict
        (rf'({KEY}"\s{{0,4}}:\s{{0,4}})"(?:[^"\\]|\\.)*"', rf'\1"{MASK}"'),
        (rf'({KEY}"\s{{0,4}}:\s{{0,4}})\[[^\]]*\]', rf'\1["{MASK}"]'),
        (rf'({KEY}\\"\s{{0,4}}:\s{{0,4}}\\")[^"\\]*', rf"\1{MASK}"),
        (rf"({KEY}'\s{{0,4}}:\s{{0,4}})'[^']*'", rf"\1'{MASK}'"),
        # Authorization: …, Bearer …
        (rf"({HEADER})[^\s\"'\\][^\"'\\\r\n]*", rf"\1{MASK}"),
        (r"\b(bearer|basic)(\s{1,4})(?=[a-z~+/]{0,500}[\d_.=-])[\w.~+/=-]{6,}", rf"\1\2{MASK}"),
        # token=…, --token …
        (rf"((?:{NAMES})[\w-]{{0,40}}\s?=\s?)(?:'[^']*'|\\?\"[^\"\\]*|[^\s\"'&,;)\\]+)", rf"\1{MASK}"),
        (rf"(--[\w-]{{0,40}}(?:{NAMES})[\w-]{{0,40}}\s{{1,4}})[^\s\"'\\]+", rf"\1{MASK}"),
    )
]


MOST_HIDDEN = 4000
hidden: dict[str, None] = {}
secrets = Secrets(hidden)


def hide(secret: str) -> None:
    """Mask a value from now on, wherever it stands."""
    if len(secret) >= SHORTEST:
        hidden[secret] = None
        if len(hidden) > MOST_HIDDEN:  # tokens come and go: the oldest are no good any more
            hidden.pop(next(iter(hidden)), None)


def masked(text: str) -> str:
    """Return a text without the secrets that it can be known to hold."""
    if secrets.none_in(text):
        return text
    if may_match(text):
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
    if not secrets.are_current():
        _read_environment()
    for value in secrets.values:
        if value in text:
            text = text.replace(value, MASK)
    for value in tuple(hidden):  # another thread may add to them
        if value in text:
            text = text.replace(value, MASK)
    return text


def _read_environment() -> None:
    """Note the values of variables with a secret's name."""
    variables = raw_environment()
    if variables is None:
        variables = {}  # another one each time: never current
    before = dict(variables)  # what another thread sets meanwhile is seen the next time
    values = [
        value for name, value in os.environ.items() if len(value) >= SHORTEST and IN_ENVIRONMENT.search(name)
    ]
    secrets.take(variables, before, values)


def masked_line(line: bytes) -> bytes:
    """Return a line of the wire without its secrets."""
    return masked(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
