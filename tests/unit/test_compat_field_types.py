"""Classes that are pydantic models in the originals are types of fields here, too."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from fastrpc import compat
from fastrpc.compat import fastmcp, mcp

MODELS = [
    *(getattr(mcp, name) for name in (
        "AccessToken", "AssistantMessage", "AuthSettings", "BinaryResource", "CancelledElicitation",
        "ClientRegistrationOptions", "DeclinedElicitation", "DirectoryResource", "FileResource",
        "FunctionResource", "InitializationOptions", "Message", "Prompt", "PromptArgument",
        "ReadResourceContents", "Resource", "ResourceTemplate", "RevocationOptions", "StdioServerParameters",
        "ResourceCsp", "ResourcePermissions", "TextResource", "Tool", "TransportSecuritySettings",
        "UserMessage",
    )),
    *(getattr(fastmcp, name) for name in (
        "AcceptedElicitation", "AppConfig", "ArgTransform", "AuthContext", "ElicitResult", "FunctionTool",
        "MiddlewareContext", "PromptResult", "RSAKeyPair", "ResourceContent", "ResourceResult", "ToolResult",
        "ToolTransformConfig", "TransformedTool",
    )),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_a_model_of_the_originals_is_the_type_of_a_field(model: Any) -> None:
    adapter = TypeAdapter(model)
    instance = object.__new__(model)
    assert adapter.validate_python(instance) is instance
    with pytest.raises(ValidationError):
        adapter.validate_python(5)


class Config(BaseModel):
    server: compat.StdioServerParameters
    others: list[compat.StdioServerParameters] | None = None


def test_a_field_is_made_of_an_object_with_the_members_of_the_constructor() -> None:
    found = Config(server={"command": "python", "args": ("a",), "env": {"A": "b"}, "unknown": 1})  # type: ignore[arg-type]
    assert type(found.server) is compat.StdioServerParameters
    assert found.server.command == "python"
    assert found.server.args == ["a"]
    assert found.server.env == {"A": "b"}
    read = Config.model_validate_json('{"server": {"command": "a"}, "others": [{"command": "b"}]}')
    assert read.others is not None
    assert read.others[0].command == "b"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"args": []}, ("server", "command")),
        ({"command": 5}, ("server", "command")),
        ({"command": "a", "env": {"A": 5}}, ("server", "env", "A")),
    ],
)
def test_a_wrong_member_of_a_field_is_named(value: Any, place: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        Config(server=value)
    assert caught.value.errors()[0]["loc"] == place


def test_a_model_with_such_a_field_is_dumped_and_has_a_schema() -> None:
    found = Config(server=compat.StdioServerParameters("python", ["a"]))
    dumped = found.model_dump()
    assert dumped["server"]["command"] == "python"
    assert dumped["server"]["args"] == ["a"]
    assert Config.model_validate_json(found.model_dump_json()).server.args == ["a"]
    server = Config.model_json_schema()["$defs"]["StdioServerParameters"]
    assert server["required"] == ["command"]
    assert server["properties"]["args"]["anyOf"][0] == {"type": "array", "items": {"type": "string"}}


def test_such_a_class_has_the_methods_of_a_model() -> None:
    found = compat.StdioServerParameters.model_validate({"command": "a"})
    assert found.model_copy(update={"command": "b"}).command == "b"
    assert found.command == "a"
    assert found.model_dump(exclude_none=True, exclude={"args"}) == {
        "command": "a",
        "encoding": "utf-8",
        "encoding_error_handler": "strict",
    }
    assert compat.StdioServerParameters.model_validate_json(found.model_dump_json()).args == []
    assert compat.StdioServerParameters.model_json_schema()["title"] == "StdioServerParameters"


class Member(BaseModel):
    name: str


def test_the_outcome_of_an_elicitation_is_known_by_its_action() -> None:
    outcome = TypeAdapter(
        compat.AcceptedElicitation[Member] | compat.DeclinedElicitation | compat.CancelledElicitation
    )
    assert type(outcome.validate_python({"action": "decline"})) is compat.DeclinedElicitation
    accepted = outcome.validate_python({"action": "accept", "data": {"name": "a"}})
    assert type(accepted) is compat.AcceptedElicitation
    assert accepted.model_dump()["action"] == "accept"


def test_a_subclass_has_the_further_annotated_members_of_an_access_token() -> None:
    class Token(fastmcp.AccessToken):
        tenant: str

    found = TypeAdapter(Token).validate_python(
        {"token": "t", "client_id": "c", "scopes": ["a"], "tenant": "one"}
    )
    assert found.tenant == "one"
    with pytest.raises(ValidationError, match="tenant"):
        TypeAdapter(Token).validate_python({"token": "t", "client_id": "c", "scopes": []})


def test_settings_for_hosts_are_a_model() -> None:
    kind = mcp.TransportSecuritySettings
    found = kind.model_validate({"allowed_hosts": ["a:*"], "enable_dns_rebinding_protection": False})
    assert found.model_dump() == {
        "enable_dns_rebinding_protection": False,
        "allowed_hosts": ["a:*"],
        "allowed_origins": [],
    }
    changed = found.model_copy(update={"allowed_origins": ["https://a"]})
    assert (changed.allowed_origins, found.allowed_origins) == (["https://a"], [])
    with pytest.raises(ValidationError):
        kind.model_validate({"allowed_hosts": "localhost"})
    with pytest.raises(ValueError, match="allowed_hosts: expected a list"):
        kind(allowed_hosts="localhost")
