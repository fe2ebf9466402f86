"""Questions to the client, alike in both eras: forms, web pages, its model, its folders; and `once`."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from typing import Any, Literal

import pytest
from support.in_memory import with_client
from support.protocol import EVERYTHING
from support.server_requests import Booking, one_question, text_of

from fastrpc import Context, Server, ToolError
from fastrpc.client_requests import ElicitResult, Form, Roots, Sample, Sampling, Visit
from fastrpc.content import Audio
from fastrpc.definitions.prompt import Message
from fastrpc.errors import MissingRequiredClientCapability, ProtocolError
from fastrpc.protocol.versions import ELICITATION, RICH_INPUT_REQUESTS, SESSION_VERSIONS, STATELESS, VERSIONS
from fastrpc.testing import Client, RemoteError

# --- one await, both eras -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ELICITATION)
def test_a_form_is_filled_in(version: str) -> None:
    app = one_question(lambda ctx: ctx.elicit("Who?", Booking))

    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.text == "ElicitResult('accept', Booking(name='Ada', guests=3))"
        assert client.questions == [
            {
                "method": "elicitation/create",
                "params": {
                    "message": "Who?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "guests": {"type": "integer", "default": 2},
                        },
                        "required": ["name"],
                    },
                },
            }
        ]

    with_client(app, conversation, version=version, on_elicit={"name": "Ada", "guests": 3})


@pytest.mark.parametrize("version", ELICITATION)
@pytest.mark.parametrize(
    ("given", "shown"), [(False, "decline"), (None, "cancel"), (True, "accept")], ids=["no", "away", "yes"]
)
def test_a_person_may_decline_or_go_away(version: str, given: Any, shown: str) -> None:
    app = one_question(lambda ctx: ctx.elicit("Sure?"))
    assert (
        text_of(app, "ask", version=version, on_elicit=lambda params: given)
        == f"ElicitResult('{shown}', None)"
    )


@pytest.mark.parametrize("version", RICH_INPUT_REQUESTS)
def test_a_web_page_is_visited_and_its_end_told_where_that_has_a_word(version: str) -> None:
    app = Server("t")

    @app.tool
    async def log_in(ctx: Context) -> str:
        answer = await ctx.elicit_url("Log in", "https://example.com/login")
        assert answer.accepted
        answer.complete()
        return answer.action

    async def conversation(client: Client) -> None:
        assert (await client.call("log_in")).text == "accept"
        (question,) = client.questions
        page = {"mode": "url", "message": "Log in", "url": "https://example.com/login"}
        id = question["params"].pop("elicitationId", None)
        assert question["params"] == page
        ends = [m["params"] for m in client.notifications if m["method"].endswith("elicitation/complete")]
        assert ends == ([] if version == STATELESS else [{"elicitationId": id}])

    with_client(app, conversation, version=version, on_elicit=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_clients_model_goes_on_from_a_text(version: str) -> None:
    app = one_question(
        lambda ctx: ctx.sample(
            "Say hi", max_tokens=5, system_prompt="Be short.", temperature=0.5, model_preferences="small"
        )
    )

    async def conversation(client: Client) -> None:
        assert (await client.call("ask")).text == "Sample(\"hi\", 'unknown', 'endTurn')"
        assert client.questions[0]["params"] == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
            "maxTokens": 5,
            "systemPrompt": "Be short.",
            "temperature": 0.5,
            "modelPreferences": {"hints": [{"name": "small"}]},
        }

    with_client(app, conversation, version=version, on_sample="hi")


TOOL = {"name": "weather", "inputSchema": {"type": "object"}}
USE = {"type": "tool_use", "id": "1", "name": "weather", "input": {}}


@pytest.mark.parametrize("version", RICH_INPUT_REQUESTS)
def test_the_clients_model_may_use_tools_over_several_turns(version: str) -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        messages: list[Any] = ["Weather?"]
        sample = await ctx.sample(messages, tools=[TOOL], tool_choice="auto")
        assert sample.tool_uses == [USE]
        result = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "sun"}]}
        messages += [sample, {"role": "user", "content": [result]}]
        return str((await ctx.sample(messages, tools=[TOOL])).text)

    def answer(params: dict[str, Any]) -> Any:
        if len(params["messages"]) == 1:
            assert params["toolChoice"] == {"mode": "auto"}
            return {"role": "assistant", "content": [USE], "model": "m", "stopReason": "toolUse"}
        assert params["messages"][1] == {"role": "assistant", "content": [USE]}
        return "sunny"

    assert text_of(app, "ask", version=version, on_sample=answer) == "sunny"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_of_several_blocks_is_several_messages_where_content_is_no_list(version: str) -> None:
    app = one_question(
        lambda ctx: ctx.sample([Message("user", "a"), {"role": "assistant", "content": ["b", "c"]}])
    )

    async def conversation(client: Client) -> None:
        await client.call("ask")
        messages = client.questions[0]["params"]["messages"]
        assert len(messages) == (2 if version in RICH_INPUT_REQUESTS else 3)

    with_client(app, conversation, version=version, on_sample="hi")


def test_what_cannot_be_sampled_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="no option 'temprature'"):
        Sampling("x", 1, {"temprature": 1})
    with pytest.raises(TypeError, match="role"):
        Sampling({"role": "system", "content": "x"})
    with pytest.raises(TypeError, match='got "resource"'):
        Sampling({"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b", "text": ""}}})
    with pytest.raises(TypeError, match="expected texts"):
        Sampling(5)
    sound = Sampling(Audio(b"x", "audio/wav"))
    assert "no content of type audio" in (sound.obstacle("2024-11-05", EVERYTHING) or "")
    assert sound.obstacle("2025-03-26", EVERYTHING) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_folders_are_returned(version: str) -> None:
    app = one_question(lambda ctx: ctx.roots())
    assert text_of(app, "ask", version=version, roots=["file:///a"]) == "[{'uri': 'file:///a'}]"


@pytest.mark.parametrize("roots", ["file:///a", {"uri": "file:///a"}, b"file:///a", 5])
def test_folders_that_are_no_list_are_refused_by_the_client(roots: Any) -> None:
    app = one_question(lambda ctx: ctx.roots())
    with pytest.raises(ValueError, match="roots: expected a list of URIs, got"):
        text_of(app, "ask", version=STATELESS, roots=roots)


@pytest.mark.parametrize("given", [[1], 1, "yes", 0.0])
def test_an_answer_of_a_client_that_is_none_is_refused_by_its_name(given: Any) -> None:
    app = one_question(lambda ctx: ctx.elicit("?", int))
    with pytest.raises(ValueError, match="on_elicit: expected a dict, True, False, None or one of"):
        text_of(app, "ask", version=STATELESS, on_elicit=lambda request: given)


def test_folders_are_asked_once_until_they_change_where_the_client_says_when() -> None:
    app = one_question(lambda ctx: ctx.roots())

    async def conversation(client: Client) -> tuple[int, str]:
        await client.call("ask")
        await client.call("ask")
        client.set_roots(["file:///b"])
        return len(client.questions), (await client.call("ask")).text

    telling = {"roots": {"listChanged": True}}
    silent: dict[str, Any] = {"roots": {}}
    new = "[{'uri': 'file:///b'}]"
    roots = ["file:///a"]
    assert with_client(app, conversation, roots=roots, capabilities=telling) == (1, new)
    assert with_client(app, conversation, roots=roots, capabilities=silent) == (2, new)
    assert with_client(app, conversation, roots=roots, version=STATELESS) == (2, new)


@pytest.mark.parametrize("version", VERSIONS)
def test_several_questions_go_out_at_once_and_those_that_cannot_be_asked_are_none(version: str) -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        answers = await ctx.ask(name=Form("Name?", str), greeting=Sampling("Greet", 50), folders=Roots())
        assert answers["name"] is None
        return f"{answers['greeting'].text} {len(answers['folders'])}"

    async def conversation(client: Client) -> None:
        assert (await client.call("ask")).text == "hi 1"
        assert [q["method"] for q in client.questions] == ["sampling/createMessage", "roots/list"]

    with_client(app, conversation, version=version, on_sample="hi", roots=["file:///a"])


@pytest.mark.parametrize("version", ELICITATION)
def test_questions_one_after_another_and_in_tasks(version: str) -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        first = await ctx.elicit("1", str)
        second, third = await asyncio.gather(ctx.elicit("2", str), ctx.elicit("3", str))
        if sys.version_info >= (3, 11):
            async with asyncio.TaskGroup() as group:
                fourth = group.create_task(ctx.elicit("4", str))
            return f"{first.data}{second.data}{third.data}{fourth.result().data}"
        return f"{first.data}{second.data}{third.data}4"

    assert (
        text_of(app, "ask", version=version, on_elicit=lambda params: {"value": params["message"]}) == "1234"
    )


# --- who can be asked ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "capabilities", "able"),
    [
        (Form("x"), {"elicitation": {}}, True),
        (Form("x"), {"elicitation": {"form": {}}}, True),
        (Form("x"), {"elicitation": {"url": {}}}, False),
        (Form("x"), {"elicitation": None}, False),
        (Form("x"), {}, False),
        (Visit("x", "https://x"), {"elicitation": {}}, False),
        (Visit("x", "https://x"), {"elicitation": {"url": {}}}, True),
        (Sampling("x"), {"sampling": {}}, True),
        (Sampling("x", 1, {"tools": [TOOL]}), {"sampling": {}}, False),
        (Sampling("x", 1, {"tools": [TOOL]}), {"sampling": {"tools": {}}}, True),
        (Roots(), {"roots": {}}, True),
        (Roots(), {"sampling": {}}, False),
    ],
)
def test_a_client_is_asked_what_it_has_declared(question: Any, capabilities: Any, able: bool) -> None:
    for version in RICH_INPUT_REQUESTS:
        assert (question.obstacle(version, capabilities) is None) == able


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_client_that_cannot_be_asked_fails_the_tool_in_words(version: str) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.is_error
        assert "elicitation (form)" in result.text
        assert not client.questions

    with_client(one_question(lambda ctx: ctx.elicit("x")), conversation, version=version)


@pytest.mark.parametrize(
    ("ask", "versions"),
    [
        (lambda ctx: ctx.elicit("x"), ELICITATION),
        (lambda ctx: ctx.elicit("x", list[Literal["a"]]), RICH_INPUT_REQUESTS),
        (lambda ctx: ctx.elicit_url("x", "https://x"), RICH_INPUT_REQUESTS),
        (lambda ctx: ctx.sample("x", tools=[TOOL]), RICH_INPUT_REQUESTS),
    ],
    ids=["form", "several", "url", "tools"],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_asked_only_what_it_knows(ask: Any, versions: Any, version: str) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.is_error == (version not in versions)
        assert bool(client.questions) == (version in versions)

    options = {"on_elicit": False, "on_sample": "x", "capabilities": EVERYTHING}
    with_client(one_question(ask), conversation, version=version, **options)


def test_the_error_for_a_stateless_client_that_cannot_be_asked_names_what_it_lacks() -> None:
    async def conversation(client: Client, ask: Any, needed: Any) -> None:
        with pytest.raises(RemoteError) as caught:
            await client.call("ask")
        assert caught.value.code == -32021
        assert caught.value.data == {"requiredCapabilities": needed}

    for ask, needed in (
        (lambda ctx: ctx.sample("x"), {"sampling": {}}),
        (lambda ctx: ctx.elicit_url("x", "https://x"), {"elicitation": {"url": {}}}),
        (lambda ctx: ctx.ask(a=Sampling("x"), b=Form("x")), {"sampling": {}, "elicitation": {"form": {}}}),
        (
            lambda ctx: ctx.ask(a=Visit("x", "https://x"), b=Form("x")),
            {"elicitation": {"form": {}, "url": {}}},
        ),
    ):
        with_client(
            one_question(ask),
            lambda client, ask=ask, needed=needed: conversation(client, ask, needed),
            version=STATELESS,
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_an_author_may_go_on_without_an_answer(version: str) -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.sample("x")
        except ToolError:
            return "without"
        return "with"

    assert text_of(app, "ask", version=version) == "without"
    assert issubclass(MissingRequiredClientCapability, ProtocolError)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_question_that_is_none_is_a_mistake(version: str) -> None:
    app = one_question(lambda ctx: ctx.ask(x="what?"))
    assert text_of(app, "ask", version=version) == "TypeError: ask: x: expected a question, got a str"


# --- once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ELICITATION)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_done_once_is_done_once(version: str, is_async: bool) -> None:
    app = Server("t")
    orders: list[int] = []

    def order() -> dict[str, int]:
        orders.append(1)
        return {"id": len(orders)}

    async def order_later() -> dict[str, int]:
        await asyncio.sleep(0)
        return order()

    @app.tool
    async def ask(ctx: Context) -> str:
        if is_async:
            placed = await ctx.once("order", lambda: order_later())
        else:
            placed = ctx.once("order", order)
        await ctx.elicit("1")
        await ctx.elicit("2")
        return f"{placed} {ctx.once('order', order) if not is_async else placed}"

    assert text_of(app, "ask", version=version, on_elicit=True) == "{'id': 1} {'id': 1}"
    assert len(orders) == 1


def test_what_is_kept_must_be_json() -> None:
    app = Server("t")

    @app.tool
    async def ask(ctx: Context) -> str:
        return str(ctx.once("thing", lambda: object()))

    assert text_of(app, "ask", version=STATELESS).startswith(
        "TypeError: once('thing'): the value must be JSON"
    )
    assert text_of(app, "ask").startswith("<object")


def test_a_context_made_by_hand_asks_no_one() -> None:
    async def run() -> None:
        context = Context()
        assert context.once("a", lambda: 5) == 5
        with pytest.raises(ToolError, match="made without a client"):
            await context.elicit("x")

    asyncio.run(run())


def test_the_value_of_a_form_that_was_not_accepted_is_an_error_for_the_model() -> None:
    assert ElicitResult("accept", 5).value == 5
    assert ElicitResult("accept").value is None
    for action, said in (("decline", "the person declined the question"), ("cancel", "the person dismissed")):
        with pytest.raises(ToolError, match=said):
            ElicitResult(action).value  # noqa: B018


def test_the_former_name_of_a_result_still_works() -> None:
    import fastrpc.client_requests

    with pytest.warns(DeprecationWarning, match="Answer is called ElicitResult"):
        assert fastrpc.client_requests.Answer is ElicitResult
    with pytest.raises(AttributeError, match="Answr"):
        fastrpc.client_requests.Answr  # noqa: B018


def test_answers_and_samples_show_what_they_are() -> None:
    assert repr(ElicitResult("decline")) == "ElicitResult('decline', None)"
    ElicitResult("accept").complete()
    blocks = [{"type": "text", "text": "a"}, USE, {"type": "text", "text": "b"}]
    assert Sample(blocks, "m", None).text == "a\nb"


# --- the example --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_example_asks(version: str) -> None:
    module = load_example("asking")
    guest = {"name": "Ada", "people": 3, "place": "garden"}
    asks = version in ELICITATION

    async def conversation(client: Client) -> None:
        booked = await client.call("book")
        assert booked.is_error != asks
        if asks:
            assert booked.text == "Table 1, garden, for Ada and 2 more."
            assert module.tables == ["Ada"]
        assert (await client.call("shorten", text="Long. Longer.")).text == "In short."
        planned = (await client.call("plan")).text
        assert planned == ("paint in file:///house" if asks else "No plan without a goal.")

    with_client(
        module.app,
        conversation,
        version=version,
        on_elicit=lambda params: guest if "whom" in params["message"] else {"value": "paint"},
        on_sample="In short.",
        roots=["file:///house"],
    )

    async def without(client: Client) -> None:
        assert (await client.call("shorten", text="Long. Longer.")).text == "Long."

    with_client(module.app, without, version=version)


def load_example(name: str) -> Any:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    spec = importlib.util.spec_from_file_location(f"example_{name}", f"{folder}/examples/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
