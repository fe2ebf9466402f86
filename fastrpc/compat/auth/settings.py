"""`AuthSettings` of the official SDK: where tokens come from, and what they need."""

from __future__ import annotations

from typing import Any

from fastrpc.compat.field_types import ModelType


class AuthSettings(ModelType):
    """The authorization server (`issuer_url`), this server's URL (`resource_server_url`), and the scopes that
    each token needs. With `validate_token_resource` tokens must name that URL (RFC 8707).

    Raises ValueError. The options for an authorization server of one's own have no effect.
    """

    def __init__(
        self,
        *,
        issuer_url: Any,
        resource_server_url: Any,
        required_scopes: list[str] | None = None,
        validate_token_resource: bool | None = None,
        service_documentation_url: Any = None,
        client_registration_options: Any = None,
        revocation_options: Any = None,
        identity_assertion_enabled: bool = False,
    ) -> None:
        if validate_token_resource and resource_server_url is None:
            raise ValueError("AuthSettings: validate_token_resource needs resource_server_url")
        self.issuer_url = issuer_url
        self.resource_server_url = resource_server_url
        self.required_scopes = required_scopes
        self.validate_token_resource = validate_token_resource
        self.service_documentation_url = service_documentation_url
        self.client_registration_options = client_registration_options
        self.revocation_options = revocation_options
        self.identity_assertion_enabled = identity_assertion_enabled


class _Options(ModelType):
    """Options of an authorization server, which are kept without effect."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


class ClientRegistrationOptions(_Options):
    """How clients register with an authorization server."""


class RevocationOptions(_Options):
    """Whether tokens can be revoked at an authorization server."""
