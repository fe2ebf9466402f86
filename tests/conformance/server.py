"""The server that the protocol's conformance suite calls: each tool, resource and prompt that it looks for.

    fastrpc serve tests/conformance/server.py

Names and texts are the suite's; how they are offered is what anybody would write. Left out are the tools of
the skills extension.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastrpc import Context, Image, ProtocolError, Server, ToolError
from fastrpc.client_requests import Form, Roots, Sampling
from fastrpc.content import Audio, EmbeddedResource
from fastrpc.definitions.prompt import Message

app = Server(
    "conformance",
    version="1.0.0",
    title="Conformance fixture",
    instructions="Every feature once, for the conformance suite.",
)

RED_DOT = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")


# ---------------------------------------------------------------------------- tools: what they return


@app.tool(effect="read")
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool(effect="read")
def test_image_content() -> Image:
    """Return an image."""
    return Image(RED_DOT, "image/png")


@app.tool(effect="read")
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(SILENCE, "audio/wav")


@app.tool(effect="read")
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource, content and all."""
    return EmbeddedResource(
        "test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain"
    )


@app.tool(effect="read")
def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Return a text, an image and a resource."""
    facts = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    return [
        "Multiple content types test:",
        Image(RED_DOT, "image/png"),
        EmbeddedResource("test://mixed-content-resource", text=facts, mime_type="application/json"),
    ]


@app.tool(effect="read")
def test_error_handling() -> str:
    """Fail, in the way that a model can read."""
    raise ToolError("This tool intentionally returns an error for testing")


ADDRESS_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.tool(input_schema=ADDRESS_SCHEMA, effect="read")
def json_schema_2020_12_tool(**arguments: Any) -> str:
    """Take what a schema of the 2020-12 dialect describes."""
    return f"Received: {json.dumps(arguments, sort_keys=True)}"


REGION_SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "default": "eu-west-1", "x-mcp-header": "Region"}},
}


@app.tool(name="test_x_mcp_header", input_schema=REGION_SCHEMA, effect="read")
def x_mcp_header(region: str = "eu-west-1") -> str:
    """Take an argument that HTTP clients repeat in a header."""
    return f"Region: {region}"


# ---------------------------------------------------------------- tools: what they say while they run


@app.tool(effect="read")
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages."""
    ctx.info("Tool execution started")
    await asyncio.sleep(0.05)
    ctx.info("Tool processing data")
    await asyncio.sleep(0.05)
    ctx.info("Tool execution completed")
    return "Tool with logging executed successfully"


@app.tool(effect="read")
def test_logging_tool(ctx: Context) -> str:
    """Log at each level that is common; nothing is sent to a client that did not ask."""
    ctx.debug("A debug message")
    ctx.info("An info message")
    ctx.warning("A warning")
    ctx.error("An error")
    return "Logged at four levels"


@app.tool(effect="read")
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        ctx.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.055)
    return "Tool with progress executed successfully"


@app.tool(effect="read")
async def test_reconnection(ctx: Context) -> str:
    """Send the client away in the middle of the call; it comes back for the result."""
    ctx.close_stream()
    await asyncio.sleep(0.1)
    return "Reconnection test completed successfully"


# -------------------------------------------------------------------- tools: what they ask the client


@app.tool(effect="read")
async def test_sampling(prompt: Annotated[str, "What the model is asked"], ctx: Context) -> str:
    """Have the client's model answer."""
    sample = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {sample.text}"


@dataclass
class User:
    username: Annotated[str, "The user's name"]
    email: Annotated[str, "The user's address"]


@app.tool(effect="read")
async def test_elicitation(message: Annotated[str, "What the person is asked"], ctx: Context) -> str:
    """Ask the person for a name and an address."""
    answer = await ctx.elicit(message, User)
    if not answer.accepted:
        return f"User response: {answer.action}"
    return f"User response: {answer.data.username}, {answer.data.email}"


@app.tool(effect="read")
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask in the middle of a call; from 2026-07-28 on the question is the call's result."""
    answer = await ctx.elicit("Shall the work go on?", bool, key="go_on")
    return f"Answered: {answer.action}"


@dataclass
class Profile:
    name: Annotated[str, "User name"] = "John Doe"
    age: Annotated[int, "User age"] = 30
    score: Annotated[float, "User score"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "User status"] = "active"
    verified: Annotated[bool, "Verification status"] = True


@app.tool(effect="read")
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a form that is filled in already."""
    answer = await ctx.elicit("Please review and update the form fields with defaults", Profile)
    return f"Elicitation completed: action={answer.action}, content={answer.data}"


TITLED = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@app.tool(effect="read")
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with each kind of choice that a form may have."""
    answer = await ctx.elicit("Please select options from the enum fields", CHOICES)
    return f"Elicitation completed: action={answer.action}, content={answer.data}"


@app.tool(effect="read")
async def test_missing_capability(ctx: Context) -> str:
    """Need the client's model; a client without one learns what it lacks."""
    return (await ctx.sample("Say hello", max_tokens=10)).text


# ---------------------------------------------------- tools: what they ask, by the names of the questions

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CONFIRM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
COLOUR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
DELETE = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}
CONTEXT = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}


@app.tool(effect="read")
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {answer.data['name']}!" if answer.accepted else "Hello, whoever you are!"


@app.tool(effect="read")
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model."""
    sample = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return f"The model says: {sample.text}"


@app.tool(effect="read")
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the folders that the client works in."""
    roots = await ctx.roots(key="client_roots")
    return f"Roots: {', '.join(root['uri'] for root in roots)}"


@app.tool(effect="read")
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Keep something between the question and the answer."""
    kept = ctx.once("kept", lambda: "state-ok")
    answer = await ctx.elicit("Please confirm", CONFIRM, key="confirm")
    return f"{kept}: {answer.action}"


@app.tool(effect="read")
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three things at once."""
    answers = await ctx.ask(
        user_name=Form("What is your name?", NAME),
        greeting=Sampling("Generate a greeting", 50),
        client_roots=Roots(),
    )
    name = answers["user_name"].data["name"] if answers["user_name"].accepted else "nobody"
    return f"{answers['greeting'].text} {name}, of {len(answers['client_roots'])} roots"


@app.tool(effect="read")
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one thing after the other."""
    name = await ctx.elicit("Step 1: what is your name?", NAME, key="step1")
    colour = await ctx.elicit("Step 2: what is your favourite color?", COLOUR, key="step2")
    if not name.accepted or not colour.accepted:
        return "Some other time"
    return f"{name.data['name']} likes {colour.data['color']}"


@app.tool(effect="read")
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask, with a state that no one can change."""
    answer = await ctx.elicit("Please confirm", CONFIRM, key="confirm")
    return f"The state was intact: {answer.action}"


@app.tool(effect="read")
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what the client says that it can be asked."""
    questions: dict[str, Form | Sampling | Roots] = {}
    if "sampling" in ctx.client_capabilities:
        questions["greeting"] = Sampling("Generate a greeting", 50)
    if "elicitation" in ctx.client_capabilities:
        questions["user_name"] = Form("What is your name?", NAME)
    if "roots" in ctx.client_capabilities:
        questions["client_roots"] = Roots()
    answers = await ctx.ask(**questions) if questions else {}
    return f"Answered: {', '.join(sorted(answers)) or 'nothing'}"


# --------------------------------------------------------------------- tools: changes of the server


@app.tool(effect="write")
def test_trigger_tool_change() -> str:
    """Add a tool and take it away again; clients that listen hear of it."""

    def passing_tool() -> str:
        """Be there for a moment."""
        return "here"

    app.add_tool(passing_tool)
    app.remove_tool("passing_tool")
    return "The list of tools has changed"


@app.tool(effect="write")
def test_trigger_prompt_change() -> str:
    """Add a prompt and take it away again; clients that listen hear of it."""

    def passing_prompt() -> str:
        """Be there for a moment."""
        return "here"

    app.prompt(passing_prompt)
    app.remove_prompt("passing_prompt")
    return "The list of prompts has changed"


# ------------------------------------------------------------------------------------------ resources


@app.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image that never changes."""
    return RED_DOT


@app.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> str:
    """What there is about an id."""
    facts = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
    return json.dumps(facts, separators=(",", ":"))


@app.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text whose changes can be subscribed to."""
    return "This is the content of the watched resource."


# -------------------------------------------------------------------------------------------- prompts


@app.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, "The first argument"], arg2: Annotated[str, "The second argument"]
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


# ---------------------------------------------------------------------------- tools: tasks


@app.tool(effect="read")
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@app.tool(effect="read", task="allowed", after_seconds=0)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Compute for some seconds."""
    await asyncio.sleep(seconds)
    return f"Computed {label} in {seconds:g} s."


@app.tool(effect="read", task="required")
def failing_job() -> str:
    """Fail, in the way that a model can read."""
    raise ToolError("This job always fails.")


@app.tool(effect="read", task="allowed", after_seconds=0)
async def protocol_error_job() -> str:
    """Fail with an error of the protocol."""
    await asyncio.sleep(0.01)
    raise ProtocolError("This job ends with a JSON-RPC error.")


@app.tool(effect="write", task="allowed", after_seconds=0)
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Look for a file, then ask whether to delete it."""
    await asyncio.sleep(0.01)
    answer = await ctx.elicit(f"Delete {filename}?", DELETE, key="confirm")
    return f"Deleted {filename}." if answer.accepted and answer.data.get("confirm") else f"Left {filename}."


@app.tool(effect="read", task="allowed", after_seconds=0)
async def multi_input(ctx: Context) -> str:
    """Ask two questions at once."""
    await asyncio.sleep(0.01)
    answers = await ctx.ask(first=Form("What is the first name?", NAME), last=Form("And the last one?", NAME))
    return " and ".join(f"{key}: {answer.data}" for key, answer in answers.items())


@app.tool(effect="read", task="allowed", after_seconds=0)
async def test_tool_with_task(ctx: Context) -> str:
    """Ask for a name, then work."""
    answer = await ctx.elicit("What is your name?", NAME, key="user_name")
    await asyncio.sleep(0.01)
    return f"Hello, {answer.data['name'] if answer.accepted else 'nobody'}!"


@app.complete("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str) -> list[str]:
    """Suggest words for the first argument."""
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


@app.prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, "The address of the resource"],
) -> list[Message]:
    """A prompt that holds a resource."""
    embedded = EmbeddedResource(
        resourceUri, text="Embedded resource content for testing.", mime_type="text/plain"
    )
    return [
        Message("user", embedded),
        Message("user", "Please process the embedded resource above."),
    ]


@app.prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt that holds an image."""
    return [
        Message("user", Image(RED_DOT, "image/png")),
        Message("user", "Please analyze the image above."),
    ]


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks before it is made."""
    answer = await ctx.elicit("What is the context?", CONTEXT, key="user_context")
    return f"Use this context: {answer.data['context'] if answer.accepted else 'none'}"


if __name__ == "__main__":
    app.run()
