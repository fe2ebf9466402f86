"""The types of options say what is taken at run time, and cost nothing there."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import fastrpc
from fastrpc import DefinitionError, Server, UsageError, options, tool
from fastrpc.client.http.address import Remote
from fastrpc.client_requests import ElicitResult, Form
from fastrpc.client_requests.sampling import _OPTIONS as SAMPLING_OPTIONS
from fastrpc.compat import FastMCP
from fastrpc.definitions.handler import DescribedHandler, Handler
from fastrpc.definitions.prompt import Prompt
from fastrpc.definitions.resource import CACHE_SCOPES, Provider, Resource, ResourceTemplate, _Readable
from fastrpc.definitions.tool import EFFECTS, Tool
from fastrpc.protocol.lifecycle import LOG_LEVELS
from fastrpc.proxy.targets import COMMAND_OPTIONS
from fastrpc.transports.http.asgi import APPLICATION, PLACES
from fastrpc.transports.http.settings import HttpSettings

PACKAGE = os.path.dirname(fastrpc.__file__)


def keywords(function: Any) -> set[str]:
    """The parameters of a function that are given by name alone."""
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def keys(table: Any) -> set[str]:
    return set(table.__annotations__)


def test_the_tables_have_the_options_that_there_are() -> None:
    call = keys(options.CallOptions)
    described = call | keywords(DescribedHandler.__init__)
    readable = described | keywords(_Readable.__init__)
    assert call == keywords(Handler.__init__) - {"name"}
    assert keys(options.ToolOptions) == keywords(Tool.__init__)
    assert keys(options.PromptOptions) == described | keywords(Prompt.__init__)
    assert keys(options.TemplateOptions) == readable | keywords(ResourceTemplate.__init__) - {"uri"}
    assert keys(options.ResourceOptions) == readable | keywords(Resource.__init__) - {"uri"}
    assert keys(options.ProviderOptions) == call | keywords(Provider.__init__) - {"scheme"}
    assert keys(options.ServerOptions) == keywords(Server.__init__)
    proxy = keys(options.ServerOptions) | {"name", "start_seconds"}
    assert keys(options.CommandProxyOptions) == proxy | set(COMMAND_OPTIONS)
    assert keys(options.UrlProxyOptions) == proxy | {"protocol_version", *Remote.OPTIONS}
    auth = {"auth", "auth_servers", "audience", "resource", "scopes", "token", "token_file", "token_sources"}
    auth.add("principal_of")
    assert keys(options.AsgiOptions) == auth | {*APPLICATION, *PLACES}
    http = keys(options.AsgiOptions) | keywords(HttpSettings.__init__) - {"drain_seconds", "stats", "trace"}
    assert keys(options.HttpOptions) == http
    assert keys(options.SamplingOptions) == set(SAMPLING_OPTIONS)


def test_the_choices_are_those_that_there_are() -> None:
    assert set(options.Effect.__args__) == set(EFFECTS)
    assert set(options.CacheScope.__args__) == set(CACHE_SCOPES)
    assert list(options.LogLevel.__args__) == list(LOG_LEVELS)


def test_an_unknown_option_is_refused_at_run_time_too() -> None:
    app = Server("shop")
    wrong: Any = {"efect": "read"}

    def page() -> str:
        return ""

    class Pages:
        def list(self) -> list[str]:
            return []

    for add in (
        lambda: app.tool(**wrong)(page),
        lambda: app.add_tool(page, **wrong),
        lambda: tool(**wrong)(page),
        lambda: app.prompt(**wrong)(page),
    ):
        with pytest.raises(DefinitionError, match="there is no option efect="):
            add()
    for refused in (
        lambda: app.resource("docs://a", **wrong)(page),
        lambda: app.resources("db", **wrong)(Pages),
        lambda: app.complete("a", "b", **wrong)(page),
        lambda: Server("shop", **wrong),
        lambda: Server.proxy(["python"], **wrong),
    ):
        with pytest.raises(TypeError, match="efect"):
            refused()
    for refused in (lambda: app.run(**wrong), lambda: app.asgi(auth=None, **wrong)):
        with pytest.raises(UsageError, match="efect"):
            refused()


def test_the_front_of_other_frameworks_drops_no_option() -> None:
    mcp = FastMCP("shop")
    wrong: Any = {"htpp": "127.0.0.1:8000"}
    with pytest.raises(UsageError, match="htpp"):
        mcp.run(**wrong)
    with pytest.raises(UsageError, match="a server needs a token"):
        mcp.run(http="127.0.0.1:0")

    @mcp.tool(timeout_seconds=5)
    def slow() -> str:
        return ""

    @mcp.tool(timeout=4)
    def slower() -> str:
        return ""

    assert [each.timeout_seconds for each in mcp.tools] == [5, 4]


def test_what_is_asked_for_has_a_type_at_run_time() -> None:
    assert ElicitResult[int]("accept", 5).value == 5
    assert ElicitResult[int].__args__ == (int,)
    assert isinstance(Form[str]("Who?", str), Form)


def test_the_types_cost_a_server_nothing() -> None:
    code = (
        "import sys; from fastrpc import Context, Server, tool; import fastrpc.content; "
        "import fastrpc.client_requests.elicitation, fastrpc.client_requests.sampling; "
        "Server('x').tool(name='five', effect='read')(lambda: 5); "
        "print([name for name in ('typing', 'typing_extensions', 'fastrpc.options') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE)},
    )
    assert done.stdout == "[]\n", done.stderr


# ------------------------------------------------------------------------------------ what says Any

PUBLIC = {
    "server.py": {"Server"},
    "context.py": {"Context", "Done"},
    "definitions/tool.py": {"Tool", "tool"},
    "definitions/prompt.py": {"Message", "Prompt"},
    "definitions/completion.py": {"Completion", "Completions"},
    "definitions/resource.py": {"Entry", "Resource", "ResourceTemplate", "Provider"},
    "content.py": {
        *("Audio", "Content", "Contents", "EmbeddedResource", "Image", "ResourceLink", "Text", "ToolResult"),
    },
    "errors.py": {"ProtocolError", "ResourceNotFound", "ToolError"},
    "client_requests/base.py": {"InputRequest"},
    "client_requests/elicitation.py": {"ElicitResult", "Form", "Visit"},
    "client_requests/roots.py": {"Roots"},
    "client_requests/sampling.py": {"Sample", "Sampling"},
    "human_input.py": {"Outcome", "ask_person"},
    "terminal/choices.py": {"Choice"},
    "testing/__init__.py": {"Client"},
    "client/client.py": {"Client"},
    "client/asynchronous.py": {"AsyncClient"},
    "client/sync.py": {"SyncClient", "SyncListening"},
    "client/results.py": {"CompletionResult", "PromptResult", "ReadResult"},
    "client/listening.py": {"Listening"},
    "compat/__init__.py": {"FastMCP"},
    "compat/context.py": {"Context"},
}

UNKNOWN = {
    "Context.disable_components": "compat: the rules of what is offered, as FastMCP has them",
    "Context.enable_components": "compat: the rules of what is offered, as FastMCP has them",
    "Context.sample": "compat: the model's answer is of the type that result_type names",
    "Context.list_resources": "compat: models of the SDK, where the program uses it",
    "Context.list_prompts": "compat: models of the SDK, where the program uses it",
    "Context.get_prompt": "compat: a model of the SDK, where the program uses it",
    "Context.list_roots": "compat: models of the SDK, where the program uses it",
    "Context.get_http_request": "compat: Starlette's Request, where that is installed",
    "Context.state": "what the user's lifespan has yielded",
    "Context.server": "a Server, whose module stands above that of Context",
    "Context.elicit": "a form written as a JSON Schema",
    "Context.ask": "each question has an answer of its own type",
    "Form.__init__": "a form written as a JSON Schema",
    "Provider.__init__": "a class or an object with some methods",
    "Context.__init__": "a server, by whatever name it is known",
    "Context.get_state": "what the user has kept",
}
"""Signatures whose type is not known, and why."""


def signatures(path: str, names: set[str]) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The public functions and methods of a file, by name: their overloads where there are some."""
    with open(os.path.join(PACKAGE, path), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in functions_of(tree.body):
        if node.name in names:
            yield node.name, node
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.name in names:
            for node in functions_of(owner.body):
                if not node.name.startswith("_") or node.name == "__init__":
                    yield f"{owner.name}.{node.name}", node


def functions_of(body: list[ast.stmt]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    found: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found += functions_of(node.body)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(node)
    overloaded = {node.name for node in found if is_overload(node)}
    return [node for node in found if is_overload(node) or node.name not in overloaded]


def is_overload(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def says_any(annotation: ast.expr | None) -> bool:
    """Whether an annotation leaves open what something is. The members of a JSON object are open."""
    if annotation is None:
        return False
    text = ast.unparse(annotation)
    for known in ("dict[str, Any]", "Mapping[str, Any]", "Callable[..., Any]"):
        text = text.replace(known, "")
    return "Any" in text


def test_no_public_signature_says_any_where_the_type_is_known() -> None:
    open_ones = set()
    seen = 0
    for path, names in PUBLIC.items():
        for name, node in signatures(path, names):
            seen += 1
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            arguments += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
            annotations = [argument.annotation for argument in arguments]
            if any(map(says_any, [*annotations, node.returns])):
                open_ones.add(name)
    assert seen > 150
    assert open_ones == set(UNKNOWN)
