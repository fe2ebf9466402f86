"""Masks secrets in text that is written: log records, traces, error messages.

A secret is recognised by its context: the password in a URL, an ``Authorization`` header, the value after a
name such as ``api_key``. Values of environment variables with such a name are masked everywhere, as are
values that were registered with `hide`. Other text is not changed: masking limits the damage of a mistake,
and does not make text safe to publish. Takes a microsecond for a text without signs of a secret
(`fastrpc._core.redaction`), otherwise a few searches. Imported only where text is written.
"""

from __future__ import annotations

import os
import re

from fastrpc._core.redaction import Secrets, changes_of, may_match
from fastrpc.environment import raw_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MASK = "****"
NAMES = "(?<!progress)token|secret|password|passwd|api[-_]?key|credential|private[-_]?key"
IN_ENVIRONMENT = re.compile(rf"(?:{NAMES}|_key$|_auth$)", re.IGNORECASE)
IN_DATA = re.compile(rf"(?:{NAMES}|authorization|cookie|[-_]key$|[-_]auth$)", re.IGNORECASE)
SHORTEST = 8
"""Shorter values of environment variables are not masked: they occur in other text by chance."""

# Each pattern begins with rare characters and has bounded repetition, so that no text takes long.
KEY = rf"(?:{NAMES}|authorization)[^\"'\\]{{0,40}}"
HEADER = r"\b(?:proxy-authorization|authorization|x-api-key|set-cookie|cookie)\s{0,4}:\s{0,4}"

PATTERNS = [
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        # https://name:password@host, and https://token@host
        (r"(:\\?/\\?/)[^\s/?#@\"'<>\\]{1,500}@", rf"\1{MASK}@"),
        # "password": "…" in JSON, in JSON inside a JSON string, and in the repr of a dict
        (rf'({KEY}"\s{{0,4}}:\s{{0,4}})"(?:[^"\\]|\\.)*"', rf'\1"{MASK}"'),
        # also a list without an end: otherwise each list would be searched for one
        (rf'({KEY}"\s{{0,4}}:\s{{0,4}})\[[^\]]*(?:\]|\Z)', rf'\1["{MASK}"]'),
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

ISSUED_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:AIza|AKIA|ASIA|eyJ|frpc_|gh[opsur]_|github_pat_|glpat-|hf_|npm_|pypi-|[prs]k[-_]|xox[a-z]-)"
    r"(?=[\w.-]{0,200}\d)[\w.-]{12,}",
    re.ASCII,
)
"""Keys by the prefixes that their issuers have published. Each contains a digit, unlike words."""

MOST_HIDDEN = 4000
hidden: dict[str, None] = {}
secrets = Secrets(hidden)


def hide(secret: str) -> None:
    """Mask a value from now on, wherever it occurs."""
    if len(secret) >= SHORTEST:
        hidden[secret] = None
        if len(hidden) > MOST_HIDDEN:  # tokens are rotated: the oldest are no longer valid
            hidden.pop(next(iter(hidden)), None)


def masked(text: str) -> str:
    """Return a text in which recognised secrets are masked."""
    if secrets.none_in(text):
        return text
    if may_match(text):
        for pattern, replacement in PATTERNS:
            text = pattern.sub(replacement, text)
    return masked_values(text)


def masked_output(text: str) -> str:
    """Return another program's output with its secrets masked: as `masked` does, and also keys that are
    recognised by their prefixes. Programs write such keys without a name before them."""
    return ISSUED_KEY.sub(MASK, masked(text))


def masked_data(value: Any, name: str = "") -> Any:
    """Return JSON data with its secrets masked: secrets in texts, as `masked` does, and each value below a
    member with a secret's name. A number is not masked if the name is about tokens: it is a count of them."""
    is_secret = IN_DATA.search(name) is not None
    if isinstance(value, dict):
        return {
            masked(str(key)): masked_data(each, name if is_secret else str(key))
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [masked_data(each, name) for each in value]
    if isinstance(value, str):
        return MASK if is_secret else masked(value)
    is_count = isinstance(value, bool) or value is None or "token" in name.lower()
    return MASK if is_secret and not is_count else value


def masked_values(text: str) -> str:
    """Return a text in which all known secret values are masked."""
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
    """Register the values of environment variables with a secret's name."""
    environ, variables = os.environ, raw_environment()
    changes = 0 if variables is None else changes_of(variables)  # another thread may change them meanwhile
    values = [
        value for name, value in environ.items() if len(value) >= SHORTEST and IN_ENVIRONMENT.search(name)
    ]
    secrets.take(environ, {} if variables is None else variables, changes, values)


def masked_line(line: bytes) -> bytes:
    """Return a protocol message, one line, with its secrets masked."""
    return masked(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
