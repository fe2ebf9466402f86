"""The table ``dashboard`` of the guard's configuration: people sign in at an authorization server.

    [dashboard]
    issuer = "https://login.example.com/realms/main"
    client_id = "fastrpc"
    client_secret = "env:DASHBOARD_SECRET"        # without it, a public client
    url = "https://mcp.example.com"               # where browsers reach this server
    scopes = ["profile"]                          # besides openid

    [[dashboard.roles]]
    claim = "groups"
    contains = "ops"
    role = "approver"

The first rule that fits the claims of a person's ID token says the role; whom no rule fits cannot sign in so.
Checks the table and resolves the secret; connects to nothing.
"""

from __future__ import annotations

from fastrpc.guard.policy import sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.guard.callers.claims import ClaimRule
    from fastrpc.guard.policy.references import References
    from fastrpc.guard.policy.sections import Section

ROLES = ("viewer", "approver", "administrator")


class DashboardConfig:
    """How people sign in. `issuer` is "" if they do so by links only; `url` has no path. `rule_of` reads a
    rule about claims, whose outcome is named by a key. Raises GuardConfigError."""

    def __init__(
        self,
        section: Section,
        references: References,
        rule_of: Callable[[Section, str, Callable[[Any], str]], ClaimRule],
    ) -> None:
        self.issuer: str = section.take("issuer", _address, "")
        self.client_id: str = section.take("client_id", sections.text, "")
        self.client_secret: str = section.take(
            "client_secret", lambda value: references.resolve(sections.text(value)), ""
        )
        self.url: str = section.take("url", _origin, "")
        self.scopes: list[str] = section.take("scopes", sections.texts, [])
        self._roles = [
            rule_of(each, "role", sections.one_of(*ROLES)) for each in section.list_of_sections("roles")
        ]
        section.end()
        given = [self.issuer, self.client_id, self.url, *self._roles]
        if any(given) and not (self.issuer and self.client_id and self.url and self._roles):
            raise section.error([], "expected issuer, client_id, url and roles, or none of them")

    def role_of(self, claims: Mapping[str, Any]) -> str | None:
        """Return the role of a person with these claims, None without one."""
        return next((rule.caller_class for rule in self._roles if rule.fits(self.issuer, claims)), None)


def _address(value: Any) -> str:
    found = sections.text(value)
    if not found.startswith(("https://", "http://")) or "#" in found or "?" in found:
        raise ValueError(f"expected an https address, got {sections.shown(value)}")
    return found


def _origin(value: Any) -> str:
    found = _address(value).rstrip("/")
    if "/" in found.partition("://")[2]:
        raise ValueError(f"expected an address without a path, got {sections.shown(value)}")
    return found
