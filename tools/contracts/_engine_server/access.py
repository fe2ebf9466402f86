"""Who may use the engine: tokens, Host and Origin, judged by the head of a request alone.

Any page in a browser can send requests to this machine, also by a name of its own that leads here (DNS
rebinding). So Host must be a loopback name, the name that is listened at, or the address that the connection
has come to; and what a page sends (`Origin`, `Sec-Fetch-Site`) is refused. Tokens are read once, at the
start, and compared by their digests, in constant time. No message and no log has one.
"""

from __future__ import annotations

import ipaddress
import os
import re
from hashlib import sha256
from hmac import compare_digest

from fastrpc.regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    Headers = dict[bytes, list[bytes]]

VARIABLE = "FASTRPC_TOKEN"
SHORTEST, LONGEST = 16, 16 * 1024
LONGEST_FILE = 1024 * 1024
WITHOUT_TOKEN = (
    "nobody may use it without a token: give --token-file FILE, or FASTRPC_TOKEN in the environment; "
    "--no-auth does without, for loopback addresses only"
)
UNAUTHORIZED = "missing or invalid bearer token"

_TOKEN = re.compile(rb"[\x21-\x7e]+\Z")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._~%-]{1,255}?)\.?(?::[0-9]{0,5})?\Z")
_OWN_SITE = (b"same-origin", b"none")


class Refused(Exception):
    """A request that is refused: the HTTP status, what is told, and further headers."""

    def __init__(self, status: int, message: str, headers: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


class Access:
    """The rules of a server that listens at `host`; without `tokens` none is needed."""

    def __init__(self, tokens: list[bytes] | None, host: str) -> None:
        self._digests = None if tokens is None else [sha256(token).digest() for token in tokens]
        self._host = host.lower()

    def check_place(self, headers: Headers, local_address: str) -> None:
        """Check Host and Origin. Raises Refused: 400 for a broken Host (RFC 9112, 3.2), 421 for another's,
        403 for a page. `local_address` is what the connection has come to."""
        hosts = headers.get(b"host", ())
        match = _HOST.match(hosts[0].decode("latin-1").lower()) if len(hosts) == 1 else None
        if match is None:
            raise Refused(400, "Host: expected one, a name and perhaps a port")
        name = match[1].strip("[]")
        if name not in (self._host, local_address) and not is_loopback(name):
            raise Refused(421, "Host: this engine does not answer to that name")
        if b"origin" in headers:
            raise Refused(403, "Origin: pages may not use this engine")
        if any(site not in _OWN_SITE for site in headers.get(b"sec-fetch-site", ())):
            raise Refused(403, "Sec-Fetch-Site: pages may not use this engine")

    def check_token(self, headers: Headers) -> None:
        """Check the token (RFC 6750, 2.1: in Authorization alone). Raises Refused."""
        if self._digests is None:
            return
        given = headers.get(b"authorization", ())
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        digest = sha256(token.strip(b" ")).digest()
        # All are compared, so that the time does not depend on which one matches.
        known = sum([compare_digest(digest, each) for each in self._digests])
        if scheme.lower() != b"bearer" or not known:
            raise Refused(401, UNAUTHORIZED, b"www-authenticate: Bearer\r\n")


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine, for this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tokens(host: str, file: str | None, *, open_to_all: bool) -> list[bytes] | None:
    """Return the tokens of the file and of the environment, from where it is removed: no program inherits it.
    None: none is needed. Raises ValueError."""
    variable = os.environ.pop(VARIABLE, "").strip().encode("utf-8", "surrogateescape")
    if open_to_all:
        if file is not None or variable:
            other = "--token-file is given" if file is not None else f"{VARIABLE} is set"
            raise ValueError(f"--no-auth, but {other}: one of them")
        if not is_loopback(host.lower()):
            raise ValueError(f"--no-auth is for loopback addresses only, not {host:.100}")
        return None
    found = [] if file is None else _tokens_in(file)
    if variable:
        found.append(_checked(variable, VARIABLE))
    if not found:
        raise ValueError(WITHOUT_TOKEN)
    return found


def _tokens_in(path: str) -> list[bytes]:
    """Read a file of tokens, one a line, ``#`` for comments. Raises ValueError."""
    try:
        mode = os.stat(path).st_mode
        data = read_regular(path, LONGEST_FILE)
    except OSError as error:
        raise ValueError(f"--token-file: cannot read {path}: {error.strerror}") from None
    if mode & 0o007:
        raise ValueError(f"--token-file: others may use {path} (mode {mode & 0o777:04o}): chmod 600")
    lines = [line.strip() for line in data.splitlines()]
    found = [
        _checked(line, f"--token-file: line {number} of {path}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith(b"#")
    ]
    if not found:
        raise ValueError(f"--token-file: there is no token in {path}")
    return found


def _checked(token: bytes, where: str) -> bytes:
    """Return a token that can be one. Raises ValueError, without the token."""
    if not _TOKEN.match(token):
        raise ValueError(f"{where}: expected one token of visible ASCII characters")
    if not SHORTEST <= len(token) <= LONGEST:
        raise ValueError(f"{where}: a token has {SHORTEST} to {LONGEST} characters, this one {len(token)}")
    return token
