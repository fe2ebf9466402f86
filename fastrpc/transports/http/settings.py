"""The settings of a server over HTTP: address, authentication, workers, shutdown.

All errors are found here, before a socket is opened or a tool is imported: each `UsageError` says what to do.
Options of the application (`fastrpc.transports.http.app`) are passed on.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from fastrpc.errors import Reworded, UsageError
from fastrpc.regular_files import check_regular, open_regular
from fastrpc.signed_texts import FILE_VARIABLE, configured
from fastrpc.transports.http.auth import CALLER_OPTIONS, take, token_from_environment
from fastrpc.transports.http.sockets import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Any

DRAIN_SECONDS = 5.0
"""Seconds that calls may take after the signal; container systems send SIGKILL after ten."""

MOST_WORKERS = 256
LONGEST_NOTICE = 3600.0

ACCESS_LOG_FORMATS = ("text", "json")

SECRETS = ("FASTRPC_TOKEN", "FASTRPC_SECRET")
"""Variables that no child process inherits."""

WITHOUT_TOKEN = (
    "http: a server needs a token. Make one: (umask 077; python3 -c "
    "'import secrets; print(secrets.token_urlsafe(32))' > token), and give --token-file token (token_file=), "
    "or FASTRPC_TOKEN in the environment; --no-auth (auth=None) does without, for loopback addresses only"
)
MISSING = 'http: {} is not installed; pip install "fastrpc-mcp[http]"'


class HttpSettings:
    """How to serve over HTTP. `application` are the options of `Server.asgi`. Raises UsageError.

    `notice_seconds` is how long the server serves on after the signal, while `/readyz` answers 503. `secret`
    has the keys that sign request states and seal sessions (`fastrpc.signed_texts`), `secret_file` more of
    them; by default a random one is made. `trace` is a file to which all messages are written. With `stats`
    each process prints its statistics (`Server.print_statistics`). `access_log` is a file to which a line for
    each request is appended, ``-`` for standard error; `access_log_format` is ``text`` or ``json``.
    """

    path = "/mcp"
    """The path of the URL that is announced."""
    allows_anonymous = False
    """Whether a server without authentication may be reached from other machines."""

    def __init__(
        self,
        address: str,
        *,
        workers: int = 1,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        drain_seconds: float | None = None,
        notice_seconds: float = 0.0,
        secret: str | None = None,
        secret_file: str | None = None,
        trace: str | None = None,
        stats: bool = False,
        access_log: str | None = None,
        access_log_format: str = "text",
        **application: Any,
    ) -> None:
        self.address = Address.read(address)
        self.workers = workers
        self.uvicorn: dict[str, Any] = {}
        """Further options of uvicorn."""
        self.tls = None if tls_cert is None else (os.fspath(tls_cert), os.fspath(tls_key or ""))
        self.drain_seconds = DRAIN_SECONDS if drain_seconds is None else drain_seconds
        self.notice_seconds = notice_seconds
        self.signing_keys = configured(secret, None if secret_file is None else os.fspath(secret_file))
        self.trace = None if trace is None else os.path.abspath(trace)
        self.stats = stats
        self.access_log = None if access_log is None else os.fspath(access_log)
        self.access_log_format = access_log_format
        self.on_listening: Callable[[str], object] | None = None
        """Called with the URL once it has been announced."""
        self.application = {name: value for name, value in application.items() if value is not None}
        if application.get("auth", "needed") is None:
            self.application["auth"] = None
        if not 1 <= workers <= MOST_WORKERS:
            raise UsageError(f"http: workers: expected 1 to {MOST_WORKERS}, got {workers}")
        if not 0 <= notice_seconds <= LONGEST_NOTICE:
            raise UsageError(
                f"http: notice_seconds: expected 0 to {LONGEST_NOTICE:g}, got {notice_seconds:g}"
            )
        if (tls_key is None) != (tls_cert is None):
            raise UsageError("http: TLS needs a certificate and its key: give both (tls_cert, tls_key)")
        self._check_who()
        if "auth_servers" in self.application and "resource" not in self.application and self.address.is_any:
            raise UsageError(
                "http: the address by which an authorization server's tokens name this server is needed: "
                f"resource, --resource; it cannot be derived from {address}"
            )
        for name in ("uvicorn", "httptools"):
            if find_spec(name) is None:
                raise UsageError(MISSING.format(name))
        self.context()
        if self.trace is not None:
            from fastrpc.transports.trace import Trace

            Trace(self.trace).close()
        self._check_access_log()
        self.application.setdefault("loopback", self.address.is_local)

    @classmethod
    def from_environment(cls, address: str, **options: Any) -> HttpSettings:
        """Take token and signing key from the environment, unless they are options. Raises UsageError."""
        given = {
            "token": token_from_environment(),
            "secret": take(SECRETS[1]),
            "secret_file": os.environ.get(FILE_VARIABLE, ""),
        }
        for name, value in given.items():
            if value and options.get(name) is None:
                options[name] = value
        return cls(address, **options)

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None without TLS. Raises UsageError for files that cannot be used."""
        if self.tls is None:
            return None
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION  # OpenSSL before 3.0 lets clients cause that load
        context.set_alpn_protocols(["http/1.1"])
        certificate, key = self.tls
        for option, path in (("tls_cert", certificate), ("tls_key", key)):
            with Reworded(OSError, UsageError, f"http: {option}: {path}: "):
                check_regular(path)
        try:
            # For a key with a password OpenSSL would prompt at the terminal, if there is one.
            context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error) or "cannot be used"  # OpenSSL's is short
            words = str(reason).replace("_", " ").lower()
            raise UsageError(f"http: tls_cert and tls_key: {words}") from None
        return context

    def _check_who(self) -> None:
        """Check the authentication options. Raises UsageError."""
        given = self.application
        is_open = "auth" in given and given["auth"] is None
        named = [name for name in CALLER_OPTIONS if name in given]
        if is_open and named:
            raise UsageError(
                f"http: without authentication (auth=None, --no-auth), but with {named[0]}: one of them"
            )
        if is_open and not self.address.is_local and not self.allows_anonymous:
            raise UsageError(
                "http: without authentication (auth=None, --no-auth) a server is for loopback addresses "
                f"only, not {self.address.host}: whoever reaches it could call every tool"
            )
        if not is_open and not named:
            raise UsageError(WITHOUT_TOKEN)

    def _check_access_log(self) -> None:
        """Raise UsageError if the access log cannot be opened; a new file is only for its owner."""
        if self.access_log_format not in ACCESS_LOG_FORMATS:
            raise UsageError(
                f"http: access_log_format: expected {' or '.join(ACCESS_LOG_FORMATS)}, "
                f"got {self.access_log_format!r}"
            )
        if self.access_log in (None, "-"):
            return
        self.access_log = os.path.abspath(self.access_log)
        with Reworded(OSError, UsageError, f"http: access_log: {self.access_log}: "):
            os.close(open_regular(self.access_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))


def _no_password() -> bytes:
    raise ValueError("the key has a password; a server needs a key without one")
