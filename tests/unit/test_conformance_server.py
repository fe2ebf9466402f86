"""The conformance suite's fixture server: each tool, resource and prompt does what the suite's tables say.

In memory, in both eras, so that what the suite checks over HTTP is known to hold without it.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support.in_memory import with_client

from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client, RemoteError

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance", "server.py")
ERAS = pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
ALL = {
    "on_elicit": lambda params: {
        name: {"ok": True, "color": "green"}.get(name, "Ada")
        for name in params["requestedSchema"]["properties"]
    },
    "on_sample": "Paris",
    "roots": ["file:///work"],
}


def load() -> Any:
    """Return the fixture server, freshly imported: some tests change it."""
    specification = importlib.util.spec_from_file_location("conformance_server", PATH)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look there for what annotations name
    specification.loader.exec_module(module)
    return module.app


@pytest.fixture
def app() -> Any:
    return load()


def talk(app: Any, version: str, script: Callable[[Client], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    return with_client(app, script, version, **options)


def call(app: Any, version: str, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    return talk(app, version, lambda client: client.call(tool, **(arguments or {})), **options)


def first_round(app: Any, tool: str, method: str = "tools/call", **options: Any) -> dict[str, Any]:
    """Return what a 2026-07-28 client gets before it has answered anything."""

    async def ask(client: Client) -> dict[str, Any]:
        return await client.request(method, {"name": tool})

    result: dict[str, Any] = talk(app, STATELESS, ask, **options)
    assert result["resultType"] == "input_required"
    assert "ttlMs" not in result
    assert "cacheScope" not in result
    return result


# ------------------------------------------------------------------------------------------- lists


@ERAS
def test_every_tool_has_a_name_a_description_and_a_schema(app: Any, version: str) -> None:
    tools = talk(app, version, lambda client: client.tools())
    for tool in tools:
        assert 0 < len(tool["name"]) <= 64
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
    schema = next(tool for tool in tools if tool["name"] == "json_schema_2020_12_tool")["inputSchema"]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    assert {"allOf", "if", "then", "else"} <= set(schema)
    assert schema["additionalProperties"] is False
    header = next(tool for tool in tools if tool["name"] == "test_x_mcp_header")["inputSchema"]
    assert header["properties"]["region"]["x-mcp-header"] == "Region"


@ERAS
def test_every_resource_and_prompt_says_what_it_is(app: Any, version: str) -> None:
    async def lists(client: Client) -> Any:
        return await client.resources(), await client.templates(), await client.prompts()

    resources, templates, prompts = talk(app, version, lists)
    assert {"test://static-text", "test://static-binary", "test://watched-resource"} <= {
        resource["uri"] for resource in resources if resource["name"]
    }
    assert [template["uriTemplate"] for template in templates] == ["test://template/{id}/data"]
    assert all(prompt["description"] for prompt in prompts)
    with_arguments = next(prompt for prompt in prompts if prompt["name"] == "test_prompt_with_arguments")
    assert [(entry["name"], entry["required"]) for entry in with_arguments["arguments"]] == [
        ("arg1", True),
        ("arg2", True),
    ]


@pytest.mark.parametrize(
    "method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
def test_lists_say_for_how_long_they_hold(app: Any, method: str) -> None:
    result = talk(app, STATELESS, lambda client: client.request(method))
    assert result["resultType"] == "complete"
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in ("public", "private")


# ------------------------------------------------------------------------------------------- tools


@ERAS
def test_plain_tools_return_the_texts_of_the_tables(app: Any, version: str) -> None:
    assert call(app, version, "test_simple_text").text == "This is a simple text response for testing."
    failed = call(app, version, "test_error_handling")
    assert failed.is_error
    assert failed.content[0]["text"] == "This tool intentionally returns an error for testing"
    assert call(app, version, "test_x_mcp_header").text == "Region: eu-west-1"
    named = {"name": "Ada", "contactMethod": "email", "email": "ada@example.org"}
    assert not call(app, version, "json_schema_2020_12_tool", named).is_error
    assert call(app, version, "json_schema_2020_12_tool", {"contactMethod": "phone"}).is_error


@ERAS
def test_content_tools_return_each_kind_of_block(app: Any, version: str) -> None:
    (image,) = call(app, version, "test_image_content").content
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
    (audio,) = call(app, version, "test_audio_content").content
    assert (audio["type"], audio["mimeType"]) == ("audio", "audio/wav")
    assert base64.b64decode(audio["data"]).startswith(b"RIFF")
    (embedded,) = call(app, version, "test_embedded_resource").content
    assert embedded == {
        "type": "resource",
        "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        },
    }
    text, image, resource = call(app, version, "test_multiple_content_types").content
    assert text == {"type": "text", "text": "Multiple content types test:"}
    assert image["mimeType"] == "image/png"
    assert resource["resource"]["uri"] == "test://mixed-content-resource"
    assert resource["resource"]["mimeType"] == "application/json"
    assert resource["resource"]["text"] == '{"test":"data","value":123}'


@ERAS
def test_the_logging_tool_logs_three_times_while_it_runs(app: Any, version: str) -> None:
    async def run(client: Client) -> list[dict[str, Any]]:
        began = time.monotonic()
        await client.call("test_tool_with_logging")
        assert time.monotonic() - began >= 0.09
        return client.logs

    logs = talk(app, version, run, log_level="info")
    assert [(log["level"], log["data"]) for log in logs] == [
        ("info", "Tool execution started"),
        ("info", "Tool processing data"),
        ("info", "Tool execution completed"),
    ]


def test_nothing_is_logged_to_a_client_that_did_not_ask(app: Any) -> None:
    async def run(client: Client) -> list[dict[str, Any]]:
        await client.call("test_logging_tool")
        return client.notifications

    assert talk(app, STATELESS, run) == []


def test_setting_the_level_is_answered_by_an_empty_object(app: Any) -> None:
    asked = talk(app, LATEST_SESSION_VERSION, lambda c: c.request("logging/setLevel", {"level": "info"}))
    assert asked == {}


@ERAS
def test_the_progress_tool_reports_0_50_and_100_of_100(app: Any, version: str) -> None:
    reports: list[dict[str, Any]] = []

    async def run(client: Client) -> Any:
        return await client.call("test_tool_with_progress", on_progress=reports.append)

    talk(app, version, run)
    assert [(report["progress"], report["total"]) for report in reports] == [(0, 100), (50, 100), (100, 100)]


@ERAS
def test_the_sampling_tool_asks_the_clients_model(app: Any, version: str) -> None:
    async def run(client: Client) -> Any:
        result = await client.call("test_sampling", prompt="Test prompt")
        return result, client.questions

    result, questions = talk(app, version, run, on_sample="I am a model")
    assert result.text == "LLM response: I am a model"
    assert questions[0]["method"] == "sampling/createMessage"
    assert questions[0]["params"]["maxTokens"] == 100
    assert questions[0]["params"]["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Test prompt"}}
    ]


@ERAS
def test_the_elicitation_tool_asks_for_a_user(app: Any, version: str) -> None:
    async def run(client: Client) -> Any:
        result = await client.call("test_elicitation", message="Who are you?")
        return result, client.questions

    user = {"username": "ada", "email": "ada@example.org"}
    result, questions = talk(app, version, run, on_elicit=user)
    assert result.text.startswith("User response: ")
    assert "ada@example.org" in result.text
    assert questions[0]["params"]["message"] == "Who are you?"
    assert set(questions[0]["params"]["requestedSchema"]["required"]) == {"username", "email"}
    assert call(app, version, "test_elicitation", {"message": "?"}, on_elicit=False).text == (
        "User response: decline"
    )


def form_of(app: Any, tool: str) -> dict[str, Any]:
    """Return the properties of the form that a tool asks with."""

    async def run(client: Client) -> Any:
        result = await client.call(tool)
        assert not result.is_error
        assert result.text.startswith("Elicitation completed: action=accept")
        return client.questions[0]["params"]["requestedSchema"]["properties"]

    found: dict[str, Any] = talk(app, LATEST_SESSION_VERSION, run, on_elicit={})
    return found


def test_a_form_carries_the_defaults_of_its_fields(app: Any) -> None:
    fields = form_of(app, "test_elicitation_sep1034_defaults")
    assert (fields["name"]["type"], fields["name"]["default"]) == ("string", "John Doe")
    assert (fields["age"]["type"], fields["age"]["default"]) == ("integer", 30)
    assert (fields["score"]["type"], fields["score"]["default"]) == ("number", 95.5)
    assert (fields["status"]["type"], fields["status"]["default"]) == ("string", "active")
    assert fields["status"]["enum"] == ["active", "inactive", "pending"]
    assert (fields["verified"]["type"], fields["verified"]["default"]) == ("boolean", True)


def test_a_form_offers_each_kind_of_choice(app: Any) -> None:
    fields = form_of(app, "test_elicitation_sep1330_enums")
    assert len(fields["untitledSingle"]["enum"]) == 3
    assert all({"const", "title"} == set(choice) for choice in fields["titledSingle"]["oneOf"])
    assert len(fields["legacyEnum"]["enum"]) == len(fields["legacyEnum"]["enumNames"])
    assert len(fields["untitledMulti"]["items"]["enum"]) == 3
    assert all({"const", "title"} == set(choice) for choice in fields["titledMulti"]["items"]["anyOf"])


# ----------------------------------------------------------------------------- resources, prompts


@ERAS
def test_resources_have_the_contents_of_the_tables(app: Any, version: str) -> None:
    (text,) = talk(app, version, lambda client: client.read("test://static-text")).contents
    assert text["text"] == "This is the content of the static text resource."
    assert (text["uri"], text["mimeType"]) == ("test://static-text", "text/plain")
    binary = talk(app, version, lambda client: client.read("test://static-binary"))
    assert binary.contents[0]["mimeType"] == "image/png"
    assert binary.data.startswith(b"\x89PNG")
    (data,) = talk(app, version, lambda client: client.read("test://template/123/data")).contents
    assert (data["uri"], data["mimeType"]) == ("test://template/123/data", "application/json")
    assert data["text"] == '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32002), (STATELESS, -32602)])
def test_an_unknown_resource_is_an_error_that_names_it(app: Any, version: str, code: int) -> None:
    with pytest.raises(RemoteError) as failed:
        talk(app, version, lambda client: client.read("test://nothing-here"))
    assert failed.value.code == code
    assert failed.value.data["uri"] == "test://nothing-here"


def test_a_resource_can_be_subscribed_to(app: Any) -> None:
    async def run(client: Client) -> Any:
        params = {"uri": "test://watched-resource"}
        assert await client.request("resources/subscribe", params) == {}
        app.resource_updated("test://watched-resource")
        await asyncio.sleep(0.01)
        assert await client.request("resources/unsubscribe", params) == {}
        return client.notifications

    (updated,) = talk(app, LATEST_SESSION_VERSION, run)
    assert updated["method"] == "notifications/resources/updated"
    assert updated["params"]["uri"] == "test://watched-resource"


@ERAS
def test_prompts_have_the_messages_of_the_tables(app: Any, version: str) -> None:
    def get(name: str, **arguments: Any) -> Any:
        return talk(app, version, lambda client: client.prompt(name, **arguments)).messages

    simple = talk(app, version, lambda c: c.request("prompts/get", {"name": "test_simple_prompt"}))
    assert simple["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "This is a simple prompt for testing."}}
    ]
    (filled,) = get("test_prompt_with_arguments", arg1="hello", arg2="world")
    assert filled["content"]["text"] == "Prompt with arguments: arg1='hello', arg2='world'"
    resource, text = get("test_prompt_with_embedded_resource", resourceUri="test://example-resource")
    assert resource["content"]["type"] == "resource"
    assert resource["content"]["resource"]["uri"] == "test://example-resource"
    assert text["content"]["text"] == "Please process the embedded resource above."
    image, text = get("test_prompt_with_image")
    assert (image["content"]["type"], image["content"]["mimeType"]) == ("image", "image/png")
    assert text["content"]["text"] == "Please analyze the image above."


@ERAS
def test_an_argument_is_completed(app: Any, version: str) -> None:
    async def run(client: Client) -> Any:
        return await client.complete("test_prompt_with_arguments", "arg1", "par")

    assert talk(app, version, run).values == ["paris", "park", "party"]


# ------------------------------------------------------------------------------- without a session


def test_discovery_names_what_there_is(app: Any) -> None:
    info = talk(app, STATELESS, lambda client: client.request("server/discover"))
    assert STATELESS in info["supportedVersions"]
    assert {"tools", "resources", "prompts", "completions", "logging"} <= set(info["capabilities"])
    assert info["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "conformance"


def test_a_client_that_cannot_sample_learns_what_it_lacks(app: Any) -> None:
    with pytest.raises(RemoteError) as failed:
        call(app, STATELESS, "test_missing_capability")
    assert failed.value.code == -32021
    assert failed.value.data == {"requiredCapabilities": {"sampling": {}}}


def test_an_elicitation_in_a_call_is_no_request_of_the_servers(app: Any) -> None:
    async def run(client: Client) -> Any:
        result = await client.request("tools/call", {"name": "test_streaming_elicitation"})
        return result, client.notifications, client.questions

    result, notifications, questions = talk(app, STATELESS, run, on_elicit={})
    assert result["resultType"] == "input_required"
    assert (notifications, questions) == ([], [])


@ERAS
@pytest.mark.parametrize("kind", ["tool", "prompt"])
def test_the_trigger_tools_change_a_list_and_listeners_are_notified_of_it(
    app: Any, version: str, kind: str
) -> None:
    async def run(client: Client) -> Any:
        async with client.listen(tools=kind == "tool", prompts=kind == "prompt") as changes:
            await client.call(f"test_trigger_{kind}_change")
            return await changes.next(5)

    assert talk(app, version, run)["method"] == f"notifications/{kind}s/list_changed"


# ---------------------------------------------------------------------------------- input required


def test_the_elicitation_tool_asks_for_user_name_until_it_is_there(app: Any) -> None:
    asked = first_round(app, "test_input_required_result_elicitation", **ALL)
    question = asked["inputRequests"]["user_name"]
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "What is your name?"
    assert question["params"]["requestedSchema"]["properties"]["name"]["type"] == "string"

    def answer(responses: dict[str, Any]) -> Any:
        params = {"name": "test_input_required_result_elicitation", "inputResponses": responses}
        if "requestState" in asked:
            params["requestState"] = asked["requestState"]
        return talk(app, STATELESS, lambda client: client.request("tools/call", params), **ALL)

    given = {"action": "accept", "content": {"name": "Ada"}}
    done = answer({"user_name": given, "surplus": given})
    assert done["resultType"] == "complete"
    assert done["content"][0]["text"] == "Hello, Ada!"
    assert answer({"wrong_key": given})["resultType"] == "input_required"
    for broken in (7, None):
        try:
            again = answer({"user_name": broken})
        except RemoteError:
            continue
        assert again["resultType"] == "input_required" or again["isError"]


def test_each_tool_asks_under_the_keys_of_the_tables(app: Any) -> None:
    keys = {
        "sampling": {"capital_question": "sampling/createMessage"},
        "list_roots": {"client_roots": "roots/list"},
        "request_state": {"confirm": "elicitation/create"},
        "multiple_inputs": {
            "user_name": "elicitation/create",
            "greeting": "sampling/createMessage",
            "client_roots": "roots/list",
        },
        "multi_round": {"step1": "elicitation/create"},
        "tampered_state": {"confirm": "elicitation/create"},
    }
    for tool, expected in keys.items():
        asked = first_round(app, f"test_input_required_result_{tool}", **ALL)
        found = {key: question["method"] for key, question in asked["inputRequests"].items()}
        assert found == expected, tool
        if tool in ("request_state", "multiple_inputs", "multi_round", "tampered_state"):
            assert asked["requestState"], tool


@ERAS
@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("elicitation", "Hello, Ada!"),
        ("sampling", "The model says: Paris"),
        ("list_roots", "Roots: file:///work"),
        ("request_state", "state-ok: accept"),
        ("multiple_inputs", "Paris Ada, of 1 roots"),
        ("multi_round", "Ada likes green"),
        ("tampered_state", "The state was intact: accept"),
        ("capabilities", "Answered: client_roots, greeting, user_name"),
    ],
)
def test_each_tool_that_asks_ends_once_it_is_answered(app: Any, version: str, tool: str, said: str) -> None:
    assert call(app, version, f"test_input_required_result_{tool}", **ALL).text == said


def test_the_second_question_has_another_state(app: Any) -> None:
    asked = first_round(app, "test_input_required_result_multi_round", **ALL)
    params = {
        "name": "test_input_required_result_multi_round",
        "inputResponses": {"step1": {"action": "accept", "content": {"name": "Ada"}}},
        "requestState": asked["requestState"],
    }
    again = talk(app, STATELESS, lambda client: client.request("tools/call", params), **ALL)
    assert again["resultType"] == "input_required"
    assert set(again["inputRequests"]) == {"step2"}
    assert again["requestState"] != asked["requestState"]


def test_a_state_that_was_tampered_with_is_an_error(app: Any) -> None:
    asked = first_round(app, "test_input_required_result_tampered_state", **ALL)
    params = {
        "name": "test_input_required_result_tampered_state",
        "inputResponses": {"confirm": {"action": "accept", "content": {"ok": True}}},
        "requestState": asked["requestState"] + "-TAMPERED",
    }
    with pytest.raises(RemoteError):
        talk(app, STATELESS, lambda client: client.request("tools/call", params), **ALL)


def test_only_what_the_client_declares_is_asked(app: Any) -> None:
    asked = first_round(app, "test_input_required_result_capabilities", on_sample="hello")
    methods = [question["method"] for question in asked["inputRequests"].values()]
    assert methods == ["sampling/createMessage"]


def test_a_prompt_can_ask_too(app: Any) -> None:
    asked = first_round(app, "test_input_required_result_prompt", "prompts/get", **ALL)
    assert asked["inputRequests"]["user_context"]["method"] == "elicitation/create"
    done = talk(app, STATELESS, lambda client: client.prompt("test_input_required_result_prompt"), **ALL)
    assert done.text == "Use this context: Ada"
    assert json.dumps(done.raw["resultType"]) == '"complete"'
