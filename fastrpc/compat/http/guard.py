"""Which hosts and origins a compat server's requests may have: the rules of `fastrpc`, or those of the file.

A file switches the check off, or names hosts and origins, also by patterns such as ``localhost:*``. Checked
before a byte of a body is read.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from fastrpc.transports.http.current_request import current_request
from fastrpc.transports.http.guard import AccessRules, is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastrpc.transports.http.guard import HeaderAuthenticator, Headers


class Places:
    """The rules. `checked`: True, False, or ``auto`` for requests that a loopback address receives.

    `hosts` and `origins` are names or patterns; pages of `origins` may read responses if `answers_cors`.
    """

    def __init__(
        self,
        checked: bool | str,
        *,
        loopback: bool = True,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        answers_cors: bool = False,
    ) -> None:
        self.checked = checked
        self.loopback = loopback
        self.hosts = [_without_port(host) for host in hosts]
        self.origins = [origin.strip().lower().rstrip("/") for origin in origins]
        self.answers_cors = answers_cors


class PlaceGuard(AccessRules):
    """An `AccessRules` with the rules of `places`."""

    def __init__(self, authenticator: HeaderAuthenticator | None, places: Places) -> None:
        super().__init__(
            authenticator,
            loopback=places.loopback,
            hosts=[host for host in places.hosts if "*" not in host],
            origins=[origin for origin in places.origins if "*" not in origin],
        )
        self._places = places
        self._host_patterns = [host for host in places.hosts if "*" in host]
        self._origin_patterns = [origin for origin in places.origins if "*" in origin]

    def check_place(self, headers: Headers) -> str | None:
        checked = self._places.checked
        if checked == "auto":
            scope = current_request() or {}
            server = scope.get("server")
            checked = bool(server and is_loopback(str(server[0])))
        if not checked:
            return None
        if "*" in self._origin_patterns:  # pages of any site may use it
            headers = {name: values for name, values in headers.items() if name != b"sec-fetch-site"}
        origin = super().check_place(headers)
        return origin if self._places.answers_cors else None

    def _is_our_host(self, name: str, port: str | None) -> bool:
        if any(_matches(name, pattern) for pattern in self._host_patterns):
            return True
        if self._host_patterns and not self._hosts:  # there are rules, and none of them matches
            return self._loopback and super()._is_our_host(name, port)
        return super()._is_our_host(name, port)

    def _is_our_origin(self, origin: str) -> bool:
        if any(_matches(origin, pattern) for pattern in self._origin_patterns):
            return True
        return super()._is_our_origin(origin)


def _matches(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _without_port(host: str) -> str:
    """Return a host without ``:*``, which means any port, as a name alone does here."""
    return host.strip().lower().removesuffix(":*")
