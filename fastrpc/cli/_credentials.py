"""Headers and tokens for servers at URLs, as command lines give them.

A value may be secret, and other users of the machine can read command lines. So a token is read from a file,
and a header with a secret value from an environment variable. No error shows a value.
"""

from __future__ import annotations

import os

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.command_line import CommandParser

TOKEN_FILE_LIMIT = 64 * 1024


def add_options(options: CommandParser) -> None:
    """Add ``--header``, ``--token-file`` and ``--auth``."""
    options.option(
        "--header HEADER…",
        "a header for a server at a URL: 'Name: value', or Name=VARIABLE for the value of an "
        "environment variable; may be repeated",
    )
    options.option("--token-file FILE", "send the token in the first line of FILE to a server at a URL")
    options.option("--auth KIND", "oauth: log in with OAuth, in a browser", choices=["oauth"])


def headers_of(given: list[str]) -> dict[str, str]:
    """Return the headers of ``Name: value`` and ``NAME=VARIABLE``. Raises UsageError."""
    headers: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        if colon and "=" not in name:
            name, value = name.strip(), value.strip()
            if not name or not value:
                raise UsageError(f"--header {name}: expected a name and a value: 'Name: value'")
        else:
            name, equals, variable = text.partition("=")
            if not name or not equals or not variable:
                raise UsageError("--header: expected 'Name: value' or NAME=VARIABLE")
            if variable not in os.environ:
                raise UsageError(f"--header {name}: there is no environment variable {variable!r:.80}")
            value = os.environ[variable]
        if any(name.lower() == known.lower() for known in headers):
            raise UsageError(f"--header {name}: it is given twice")
        headers[name] = value
    return headers


def token_in(path: str) -> str:
    """Return the first line of a file. Raises UsageError."""
    from fastrpc.regular_files import open_regular

    try:
        with open(open_regular(path), encoding="ascii") as file:
            token = file.read(TOKEN_FILE_LIMIT).partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "expected ASCII"
        raise UsageError(f"--token-file {path}: {reason}") from None
    if not token:
        raise UsageError(f"--token-file {path}: its first line is empty")
    return token
