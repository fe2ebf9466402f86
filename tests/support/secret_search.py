"""Looks for secrets in outputs, however they are spelt: plain, in hex, base64, percent or JSON escapes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote_to_bytes

FIRST_OWN = (0, 2, 3)
"""The first character of base64 that depends on nothing before the secret, by the bytes before it modulo
3."""
LAST_OTHERS = (0, 3, 2)
"""How many characters at the end depend on what follows, padding among them, by the length modulo 3."""


def spellings(secret: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what a secret may look like, and what that is called."""
    yield "plain", secret
    yield "hex", secret.hex().encode()
    yield "upper hex", secret.hex().upper().encode()
    yield "hex with spaces", secret.hex(" ").encode()
    yield "percent", "".join(f"%{byte:02x}" for byte in secret).encode()
    yield "upper percent", "".join(f"%{byte:02X}" for byte in secret).encode()
    yield "quoted", quote(secret, safe="").encode()
    yield "reversed", secret[::-1]
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + secret)
            end = len(text) - LAST_OTHERS[(before + len(secret)) % 3]
            yield f"base64 behind {before}", text[FIRST_OWN[before] : end]


def readings(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield an output as it is, and what it says once its escapes are read."""
    yield "", output
    yield "percent escapes in ", unquote_to_bytes(output)
    text = output.decode("utf-8", "replace")
    for _ in range(2):  # JSON in a string of JSON
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
        text = re.sub(r'\\(["\\/])', r"\1", text)
        yield "JSON escapes in ", text.encode("utf-8", "surrogatepass")


def found_in(outputs: Mapping[str, bytes], secrets: Mapping[str, bytes]) -> list[str]:
    """Return which secrets are in which outputs, and how they are spelt."""
    looked_for = [(name, *each) for name, secret in secrets.items() for each in spellings(secret)]
    found: dict[str, None] = {}
    for place, output in outputs.items():
        seen = set()
        for reading, text in readings(output):
            if text in seen:
                continue  # without escapes it says what it says anyway
            seen.add(text)
            for name, spelling, spelt in looked_for:
                if spelt in text:
                    found[f"{name}: {spelling}, {reading}{place}"] = None
    return list(found)


def escaped(secret: str) -> bytes:
    """Return a text of which JSON escapes every character."""
    return "".join(f"\\u{ord(each):04x}" for each in secret).encode()
