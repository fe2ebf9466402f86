"""Bearer tokens: authenticates requests (RFC 6750), and makes the challenge of a refusal (RFC 9728).

Tokens come from the caller of `Server.asgi`, a file, the environment, or an authorization server
(`issuers`). Digests are compared in constant time. A token that was sent appears in no log and no error;
configured tokens are masked in all output. A file is checked once a second; a minute after it has become
unusable its tokens are refused.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from hmac import compare_digest
from time import monotonic

from fastrpc import diagnostics
from fastrpc.errors import FAILURES, Reworded, UsageError
from fastrpc.redaction import hide
from fastrpc.regular_files import open_regular
from fastrpc.transports.http.guard import Admission, Refused
from fastrpc.transports.http.token_source import InsufficientScope, InvalidToken, TokenSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping
    from typing import Any


VARIABLE = "FASTRPC_TOKEN"
CALLER_OPTIONS = ("token", "token_file", "token_sources", "auth_servers")
"""The options of `Server.asgi` each of which names authenticated principals."""
SHORTEST = 16
LONGEST = 16 * 1024
LONGEST_FILE = 1024 * 1024
MOST_HIDDEN = 1000
"""The tokens of a file with more than this are not masked in output: that would take too long."""
LOOK_SECONDS = 1.0
FILE_GRACE_SECONDS = 60.0
"""Seconds for which the tokens of a file stay valid after it has become unreadable."""
TOKEN = re.compile(rb"[A-Za-z0-9._~+/!#$%&'*^`|:@-]+=*\Z")
"""The characters of a token: those of RFC 6750, and a few that the tokens of other servers have."""

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Authenticator:
    """Authenticates requests by their bearer tokens, which `sources` check one after the other.

    `resource` is this server's URL, `issuers` are the authorization servers and `scopes` those that tokens
    need, for the challenge and the metadata; `metadata` has further members of that (RFC 9728, 2).
    """

    def __init__(
        self,
        sources: Iterable[TokenSource],
        *,
        resource: str | None = None,
        issuers: Iterable[str] = (),
        scopes: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self._sources = list(sources)
        self._resource = resource
        self._issuers = list(issuers)
        self._scopes = list(scopes)
        self._metadata = dict(metadata or {})

    def known(self, headers: dict[bytes, list[bytes]]) -> Admission | None:
        """Return the principal if it is known without I/O. Raises Refused for a request without a token."""
        token = self._token(headers)
        found = (source.known(token) for source in self._sources)
        return next((admission for admission in found if admission is not None), None)

    async def check(self, headers: dict[bytes, list[bytes]]) -> Admission:
        """Return the principal. Raises Refused: 401, 403 for a missing scope, 503 if a source is down."""
        admission = self.known(headers)
        if admission is not None:
            return admission
        token = self._token(headers)
        try:
            for source in self._sources:
                admission = await source.find(token)
                if admission is not None:
                    return admission
        except InvalidToken as error:
            raise self.unauthorized(str(error)) from None
        except InsufficientScope:
            words = f"Forbidden: the token needs the scopes {' '.join(self._scopes)}"
            raise self._refusal(403, words, ', error="insufficient_scope"') from None
        raise self.unauthorized("the token is not known")

    def _token(self, headers: dict[bytes, list[bytes]]) -> bytes:
        """Return the token of a request (RFC 6750, 2.1: in Authorization only). Raises Refused."""
        given = headers.get(b"authorization")
        if given is None:
            raise self.unauthorized()
        if len(given) > 1:
            raise self.unauthorized("the header Authorization occurs more than once")
        scheme, _, token = given[0][: LONGEST + 100].partition(b" ")
        token = token.strip(b" ")
        if scheme.lower() != b"bearer":
            raise self.unauthorized()
        if len(token) > LONGEST or not TOKEN.match(token):
            raise self.unauthorized("not a bearer token")
        return token

    def unauthorized(self, reason: str | None = None) -> Refused:
        """Return the refusal of a request without a valid token; without `reason` it had none."""
        error = "" if reason is None else f', error="invalid_token", error_description="{reason}"'
        return self._refusal(401, f"Unauthorized: {reason or f'this server {self.needs}'}", error)

    def _refusal(self, status: int, message: str, error: str) -> Refused:
        """Return a refusal with a challenge, to which `error` is added."""
        challenge = 'Bearer realm="mcp"'
        if self._resource is not None:
            challenge += f', resource_metadata="{metadata_url(self._resource)}"'
        if self._scopes:
            challenge += f', scope="{" ".join(self._scopes)}"'
        value = (challenge + error).encode("ascii", "replace")
        return Refused(status, message, headers=[(b"www-authenticate", value)])

    @property
    def needs(self) -> str:
        """What a caller must send, as the predicate of "this server …"."""
        kind = "a token that its operator gives out"
        if self._issuers:
            kind = f"an access token of {' or '.join(self._issuers)}"
        return f"needs {kind}, as a bearer token in the Authorization header"

    @property
    def metadata_path(self) -> str | None:
        """The path of the metadata for this resource; None if there is none."""
        if self.metadata is None or self._resource is None:
            return None
        return "/" + metadata_url(self._resource).partition("://")[2].partition("/")[2]

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The protected resource's metadata (RFC 9728, 2); None without an authorization server."""
        if self._resource is None or not self._issuers:
            return None
        metadata: dict[str, Any] = {
            "resource": self._resource,
            "authorization_servers": self._issuers,
            "bearer_methods_supported": ["header"],
        }
        if self._scopes:
            metadata["scopes_supported"] = [scope for scope in self._scopes if scope != "offline_access"]
        return {**metadata, **self._metadata}


class Tokens(TokenSource):
    """Tokens from the configuration. Each is a separate principal, named by its digest."""

    def __init__(self, tokens: Iterable[str | bytes] = ()) -> None:
        self._digests = [
            sha256(token.encode() if isinstance(token, str) else token).digest() for token in tokens
        ]
        self._until: float | None = None

    def known(self, token: bytes) -> Admission | None:
        digest = sha256(token).digest()
        # All are compared, so that the time does not depend on which one matches.
        if sum([compare_digest(digest, known) for known in self._digests]):
            return Admission(digest.hex(), self._until)
        return None


class TokenFile(Tokens):
    """The tokens of a file, one a line, ``#`` for comments; read again when it has changed.

    Raises UsageError for a file that others can read, or with a line that is not a token. If a file becomes
    wrong later, or is missing, its tokens stay valid for `FILE_GRACE_SECONDS` since it was last valid,
    the time to rewrite it; then requests are refused (503) until it is valid again. Both are logged as
    errors. With an empty file every token is refused.
    """

    def __init__(self, path: str, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._path = path
        self._clock = clock
        self._seen: object = None
        self._trouble = ""
        """What is wrong with the file now."""
        self._is_shut = False
        self._right_at = clock()
        self._until = self._right_at + LOOK_SECONDS
        self._read()
        if not self._digests:
            raise UsageError(f"--token-file: there is no token in {path}")

    def known(self, token: bytes) -> Admission | None:
        if self._until is None or self._clock() >= self._until:
            self._look()
        return None if self._is_shut else super().known(token)

    async def find(self, token: bytes) -> Admission | None:
        if self._is_shut:
            raise tokens_unreadable()
        return None

    def _look(self) -> None:
        """Read the file again if it has changed; log what is wrong with it."""
        now = self._clock()
        self._until = now + LOOK_SECONDS
        try:
            self._read()
        except UsageError as error:
            self._note_trouble(str(error), self._right_at + FILE_GRACE_SECONDS - now)
        else:
            if self._trouble:
                diagnostics.write("warning", f"--token-file: {self._path} is valid again")
            self._trouble, self._is_shut, self._right_at = "", False, now

    def _note_trouble(self, trouble: str, seconds_left: float) -> None:
        is_shut = seconds_left <= 0
        if (trouble, is_shut) != (self._trouble, self._is_shut):
            what = f"its tokens stay valid for {seconds_left:.0f} s, then they are refused"
            if is_shut:
                what = "its tokens are refused until it is valid again"
            diagnostics.write("error", f"{trouble}; {what}")
        self._trouble, self._is_shut = trouble, is_shut

    def _read(self) -> None:
        """Load the tokens if the file has changed. Raises UsageError, and then keeps the previous ones."""
        failing = Reworded(OSError, UsageError, f"--token-file: cannot read {self._path}: ")
        with failing, open(open_regular(self._path), "rb") as file:
            status = os.fstat(file.fileno())
            seen = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
            if seen == self._seen:
                return
            if status.st_mode & 0o007:
                mode = f"{status.st_mode & 0o777:04o}"
                raise UsageError(f"--token-file: others may use {self._path} (mode {mode}): chmod 600")
            data = file.read(LONGEST_FILE + 1)
        if len(data) > LONGEST_FILE:
            raise UsageError(f"--token-file: {self._path} is longer than {LONGEST_FILE} bytes")
        tokens = []
        for number, line in enumerate(data.splitlines(), 1):
            token = line.strip()
            if token and not token.startswith(b"#"):
                _check(token, f"--token-file: line {number} of {self._path}")
                tokens.append(token)
        self._seen = seen
        self._digests = [sha256(token).digest() for token in tokens]
        if len(tokens) <= MOST_HIDDEN:
            for token in tokens:
                hide(token.decode("ascii"))


def tokens_unreadable() -> Refused:
    """Return the refusal of a request whose token cannot be checked now."""
    return Refused(
        503, "The tokens cannot be read; see the server's log", -32603, headers=[(b"retry-after", b"10")]
    )


class TokenFunction(TokenSource):
    """Tokens that a function checks: it returns the principal, or None, and is called for each request."""

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    async def find(self, token: bytes) -> Admission | None:
        from inspect import isawaitable

        try:
            principal = self._ask(token.decode("ascii"))
            if isawaitable(principal):
                principal = await principal
        except FAILURES as error:  # the message may contain the token, as that of KeyError does
            diagnostics.write("error", f"token=: the function has raised {type(error).__name__}")
            raise Refused(500, "Internal error; see the server's log", -32603) from None
        if principal is None:
            return None
        if not isinstance(principal, str) or not principal:
            raise TypeError(f"token=: expected a text or None as principal; got {type(principal).__name__}")
        return Admission(principal, 0.0)


def token_from_environment(environment: MutableMapping[str, str] | None = None) -> str | None:
    """Take FASTRPC_TOKEN out of the environment, so that no child inherits it. Raises UsageError."""
    token = (take(VARIABLE) if environment is None else environment.pop(VARIABLE, "")).strip()
    if not token:
        return None
    _check(token.encode("utf-8", "surrogateescape"), VARIABLE)
    hide(token)
    return token


def take(name: str) -> str:
    """Remove a secret from the environment and return it, "" if it is not set; it is masked from now on.

    The memory of the process's initial environment is overwritten: `ps` and /proc show that to other programs
    of this user, among them those of the tools.
    """
    value = os.environ.get(name, "")
    if value:
        import ctypes

        getenv = ctypes.CDLL(None).getenv
        getenv.restype, getenv.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        place = getenv(name.encode())
        if place:
            ctypes.memset(place, 0, len(ctypes.string_at(place)))
        hide(value.strip())
    os.environ.pop(name, None)
    return value


def authenticator_from(options: dict[str, Any]) -> Authenticator | None:
    """Remove the options for tokens from the options of `Server.asgi`, and make the authenticator.

    `token`: a string, several, or a function that receives a token and returns its principal or None; or an
    authenticator, which excludes the other options.
    `token_sources`: further ones, such as the guard's. `token_file`: see TokenFile. `auth_servers`: issuers
    of access tokens for `resource`, this server's own URL; `audience`, if they name it otherwise; `scopes`
    that a token must have; `principal_of`, which names their principals (`issuers`). ``auth=None``: no token
    is needed, and None is returned. Raises UsageError if neither tokens nor ``auth=None`` are given.
    """
    token, file = options.pop("token", None), options.pop("token_file", None)
    issuers = options.pop("auth_servers", None) or ()
    resource, audience = options.pop("resource", None), options.pop("audience", None)
    scopes = tuple(options.pop("scopes", None) or ())
    principal_of = options.pop("principal_of", None)
    is_open = options.pop("auth", "needed") is None
    if isinstance(token, Authenticator):
        if is_open or file is not None or issuers or resource or audience or scopes:
            raise UsageError("token: an authenticator excludes the other options for tokens")
        return token
    sources: list[TokenSource] = list(options.pop("token_sources", None) or ())
    if callable(token):
        sources.append(TokenFunction(token))
    elif token is not None:
        tokens = [token] if isinstance(token, str) else list(token)
        if not tokens:
            raise UsageError("token: expected at least one")
        for given in tokens:
            if not isinstance(given, str) or not TOKEN.match(given.encode("utf-8", "surrogateescape")):
                raise UsageError("token: expected a text of visible ASCII characters, or several")
            hide(given)
        sources.append(Tokens(tokens))
    if issuers:
        from fastrpc.transports.http.issuers import Issuers

        if resource is None:
            raise UsageError("--auth-server: the address of this server (resource) is needed too")
        sources.append(Issuers(issuers, audience or resource, scopes=scopes, principal_of=principal_of))
    if file is not None:  # last: while it cannot be read it refuses the tokens that no other source knows
        sources.append(TokenFile(os.fspath(file)))
    if not sources:
        if is_open:
            return None
        raise UsageError("asgi: give token=…, or auth=None for a server that anybody may use")
    if is_open:
        raise UsageError("asgi: auth=None and a token exclude each other")
    return Authenticator(sources, resource=resource if issuers else None, issuers=issuers, scopes=scopes)


def metadata_url(resource: str) -> str:
    """Return the URL of a resource's metadata (RFC 9728, 3.1)."""
    scheme, _, rest = resource.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}{WELL_KNOWN}{slash if path else ''}{path}"


def _check(token: bytes, where: str) -> None:
    """Raise UsageError for an invalid token, or one that is too short. The message does not contain it."""
    if not TOKEN.match(token):
        raise UsageError(f"{where}: expected one token of visible ASCII characters")
    if len(token) < SHORTEST:
        raise UsageError(f"{where}: the token has {len(token)} characters; at least {SHORTEST} are needed")
    if len(token) > LONGEST:
        raise UsageError(f"{where}: the token has {len(token)} characters; at most {LONGEST} may be")
