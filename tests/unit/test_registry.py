"""Marks, registries and targets: how tools are found, named and told apart."""

from __future__ import annotations

import functools
import os
import sys
import textwrap
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.definitions.registry import Registries
from fastrpc.definitions.tool import Tool, tool
from fastrpc.errors import ArgumentError, DefinitionError, UsageError
from fastrpc.loader import collect, load_target

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "names": {"type": "array", "items": {"type": "string"}},
        "mode": {"enum": ["fast", "slow"]},
    },
    "required": ["count"],
    "additionalProperties": False,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory whose modules are forgotten afterwards."""
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name: str, source: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
        return str(path)

    yield write
    for name in set(sys.modules) - known:
        del sys.modules[name]


def tool_of(function: Any) -> Tool:
    found = function.__fastrpc_tool__
    assert isinstance(found, Tool)
    return found


# ------------------------------------------------------------------------------------------ marking


def test_a_marked_function_stays_as_it_is():
    @tool
    def plain(text: str) -> str:
        """Say it."""
        return text + "!"

    @tool(name="other.name-1", effect="read", title="Other", timeout_seconds=2.5, max_running=3)
    async def given(text: str) -> str:
        return text

    assert plain("a") == "a!"
    assert (tool_of(plain).name, tool_of(plain).description, tool_of(plain).is_async) == (
        "plain",
        "Say it.",
        False,
    )
    mark = tool_of(given)
    assert (mark.name, mark.title, mark.effect, mark.run) == ("other.name-1", "Other", "read", "auto")
    assert (mark.timeout_seconds, mark.max_running, mark.is_async, mark.description) == (2.5, 3, True, None)


def test_the_whole_docstring_is_the_description_without_its_indentation():
    @tool
    def documented() -> str:
        """First line.

        * a point
            deeper

        """
        return ""

    assert tool_of(documented).description == "First line.\n\n* a point\n    deeper"


def test_an_async_function_is_known_through_wrappers_and_partials():
    async def work(a: int, b: int) -> str:
        return ""

    @functools.wraps(work)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)

    class Callable:
        async def __call__(self, a: int) -> str:
            return ""

    for function in (work, wrapper, functools.partial(work, 1), Callable()):
        assert Tool(function).is_async


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "cannot be a tool's name"),
        ({"name": ""}, "cannot be a tool's name"),
        ({"name": "a" * 129}, "cannot be a tool's name"),
        ({"name": "wörter"}, "cannot be a tool's name"),
        ({"name": "a\n"}, "cannot be a tool's name"),
        ({"effect": "reads"}, "effect='reads' is not one of read, network, write, exec"),
        ({"run": "fork"}, "run='fork' is not one of auto, inline, thread"),
        ({"timeout_seconds": 0}, "timeout_seconds=0 is not a number above 0"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds=nan is not"),
        ({"timeout_seconds": True}, "timeout_seconds=True is not"),
        ({"max_running": 0}, "max_running=0 is not an integer above 0"),
        ({"max_running": 1.5}, "max_running=1.5 is not an integer above 0"),
        ({"documents": {"urn:a": {}}}, "documents are given without an input_schema"),
        ({"input_schema": {"type": "string"}}, '"type": "object" at its root'),
        ({"input_schema": {"type": "object", "required": "a"}}, "input_schema cannot be used"),
    ],
)
def test_wrong_options_are_refused_while_decorating(options, said):
    def function(x: int) -> str:
        return ""

    with pytest.raises(DefinitionError) as caught:
        tool(**options)(function)
    assert said in str(caught.value)
    assert "test_registry.py, line" in str(caught.value)


def test_a_lambda_needs_a_name_and_an_async_tool_no_thread():
    with pytest.raises(DefinitionError, match=r"<lambda> .*give name="):
        tool(lambda: "")

    async def work() -> str:
        return ""

    with pytest.raises(DefinitionError, match=r"work .*for synchronous functions"):
        tool(run="thread")(work)
    with pytest.raises(DefinitionError, match="not callable"):
        Tool(5)  # type: ignore[arg-type]


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="colour"):
        tool(colour="red")(len)  # type: ignore[call-overload]


def test_a_name_defined_later_is_looked_up_when_the_signature_is_asked_for():
    scope: dict[str, Any] = {"tool": tool}
    exec("@tool\ndef f(x: 'Later') -> str: ...\n@tool\ndef g(x: 'Never') -> str: ...\nLater = int", scope)
    assert tool_of(scope["f"]).signature.bind({"x": "5"}) == [5]
    with pytest.raises(DefinitionError, match=r"g .*parameter 'x'.*Never"):
        _ = tool_of(scope["g"]).signature


# ---------------------------------------------------------------------------------------- descriptors


def test_each_version_gets_the_fields_that_it_knows():
    @tool(effect="read", title="Count", meta={"a/b": 1})
    def count(text: str) -> int:
        """Count it."""
        return len(text)

    mark = tool_of(count)
    base = {
        "name": "count",
        "description": "Count it.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    output = {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }
    stateless = {
        **base,
        "title": "Count",
        "outputSchema": output,
        "annotations": {"readOnlyHint": True},
        "_meta": {"a/b": 1},
    }
    assert mark.descriptor("2024-11-05") == base
    assert mark.descriptor("2025-03-26") == {**base, "annotations": {"readOnlyHint": True, "title": "Count"}}
    for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
        assert mark.descriptor(version) == stateless


@pytest.mark.parametrize(
    ("effect", "annotations"),
    [
        ("read", {"readOnlyHint": True}),
        ("network", {"readOnlyHint": True, "openWorldHint": True}),
        ("write", {"readOnlyHint": False, "destructiveHint": False}),
        ("exec", {"destructiveHint": True, "openWorldHint": True}),
        (None, None),
    ],
)
def test_an_effect_sets_the_annotations(effect, annotations):
    def function() -> str:
        return ""

    assert Tool(function, effect=effect).descriptor("2025-11-25").get("annotations") == annotations
    added = Tool(function, effect=effect, annotations={"idempotentHint": True})
    assert added.descriptor("2025-11-25")["annotations"] == {**(annotations or {}), "idempotentHint": True}


def test_a_tool_that_says_nothing_of_itself_shows_name_and_schema_alone():
    def bare() -> str:
        return ""

    expected = {"name": "bare", "inputSchema": {"type": "object", "properties": {}}}
    assert Tool(bare).descriptor("2026-07-28") == expected


def test_structured_false_leaves_the_output_schema_out():
    def count() -> int:
        return 1

    mark = Tool(count, structured=False)
    assert "outputSchema" not in mark.descriptor("2025-11-25")
    assert not mark.signature.wraps_result


# ------------------------------------------------------------------------------------- raw schemas


def test_a_schema_of_the_callers_own_is_shown_as_it_is_and_judges_the_arguments():
    pytest.importorskip("jsonschema_rs")

    @tool(input_schema=SCHEMA)
    def run(count, names=("a",), mode=None):
        return f"{count} {names} {mode}"

    signature = tool_of(run).signature
    assert signature.input_schema == SCHEMA
    assert signature.bind({"count": 2}) == [2, ("a",), None]
    assert signature.bind({"count": "2", "names": '["b"]'}) == [2, ["b"], None]
    assert signature.bind({"count": 2, "mode": None, "names": None}) == [2, ("a",), None]
    for arguments, said in [
        ({}, "count: required, missing"),
        ({"count": 0}, "count: expected a number >= 1, got 0"),
        ({"count": "soon"}, 'count: expected integer, got "soon"'),
        ({"count": 1, "names": ["a", 5]}, "$.names[1]: expected string, got 5"),
        ({"count": 1, "mode": "x"}, 'mode: expected one of "fast", "slow", got "x"'),
        ({"count": 1, "other": 1}, 'arguments: unknown: "other"'),
    ]:
        with pytest.raises(ArgumentError) as caught:
            signature.bind(arguments)
        assert str(caught.value) == said


def test_a_function_with_keyword_arguments_gets_them_all():
    pytest.importorskip("jsonschema_rs")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}

    @tool(input_schema=schema)
    def forward(a=1, **arguments):
        return a, arguments

    signature = tool_of(forward).signature
    assert signature.call(forward, signature.bind({"b": 2, "c": [3]})) == (1, {"b": 2, "c": [3]})


def test_a_raw_schema_never_takes_the_way_past_its_validator():
    pytest.importorskip("jsonschema_rs")
    schema = {"type": "object", "required": ["a"]}
    nothing = Tool(lambda: "", name="nothing", input_schema=schema, run="inline")
    signature = nothing.signature
    plan = Server("s").runtime.plans.of_tool(nothing)
    assert plan.binds_whole
    assert not plan.straight
    assert signature.binder({}) == "a: required, missing"
    with pytest.raises(ArgumentError, match="a: required, missing"):
        signature.bind({})


def test_without_jsonschema_rs_a_raw_schema_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(DefinitionError, match=r"<lambda> .*install fastrpc-mcp\[schema\]"):
        tool(name="run", input_schema={"type": "object", "maxProperties": 2})(lambda: "")


def test_without_jsonschema_rs_a_schema_of_any_object_needs_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    def anything(**arguments):
        return sorted(arguments)

    defined = Tool(anything, input_schema={"type": "object"})
    assert defined.signature.bind({"b": 1, "a": None}) == [{"b": 1, "a": None}]


# ---------------------------------------------------------------------------------------- registries


def test_a_registry_keeps_order_refuses_a_second_name_and_tells_of_changes():
    @tool
    def first() -> str:
        return ""

    def second() -> str:
        return ""

    changes = []
    registry = Registries().tools
    registry.watchers.append(lambda kind: changes.append((kind, len(registry))))
    registry.add(first)
    registry.add(second, name="zweite", effect="read")
    assert [each.name for each in registry] == ["first", "zweite"]
    assert "first" in registry
    assert registry.get("second") is None
    with pytest.raises(DefinitionError, match=r"first: there is a tool of this name already .*give name="):
        registry.add(second, name="first")
    registry.remove("first")
    with pytest.raises(KeyError):
        registry.remove("first")
    assert changes == [("tool", 1), ("tool", 2), ("tool", 1)]


def test_a_method_marked_in_its_class_is_served_for_an_object():
    class Shop:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool(effect="write", title="Sell")
        def sell(self, item: str) -> str:
            """Sell it."""
            return f"{self.name} sells {item}"

    registry = Registries().tools
    added = registry.add(Shop("corner").sell)
    assert added.descriptor("2025-11-25")["title"] == "Sell"
    assert added.signature.call(added.function, added.signature.bind({"item": "tea"})) == "corner sells tea"
    with pytest.raises(DefinitionError, match=r"'self' is a method's own; add the method of an object"):
        _ = Registries().tools.add(Shop.sell).signature


def test_a_static_method_can_be_marked_on_either_side():
    class Shop:
        @staticmethod
        @tool
        def inside(hour: int) -> str:
            return f"{hour}"

        @tool
        @staticmethod
        def outside(hour: int) -> str:
            return f"{hour}"

    for function in (Shop.inside, Shop.outside):
        mark = Registries().tools.add(function)
        assert mark.signature.call(mark.function, mark.signature.bind({"hour": 8})) == "8"


# --------------------------------------------------------------------------------- modules, targets

TOOLS = """
    from fastrpc.definitions.tool import tool

    @tool
    def zebra() -> str:
        return ""

    @tool
    def ant() -> str:
        return ""
"""
SERVERS = """
    class Server:
        __fastrpc_server__ = True
    {}
"""


def names_of(tools: Any) -> list[str]:
    return [each.name for each in tools]


def test_a_file_gives_its_marks_in_order(folder):
    path = folder("zoo.py", TOOLS)
    assert names_of(load_target(path)) == ["zebra", "ant"]
    assert names_of(load_target("zoo.py")) == ["zebra", "ant"]
    assert names_of(load_target("zoo")) == ["zebra", "ant"]
    assert names_of(load_target("zoo:ant")) == ["ant"]
    assert names_of(load_target("zoo.py:ant")) == ["ant"]


def test_a_file_called_like_a_loaded_module_is_loaded_all_the_same(folder):
    path = folder("textwrap.py", TOOLS)
    assert names_of(load_target(path)) == ["zebra", "ant"]
    assert sys.modules["textwrap"] is textwrap


def test_a_file_may_import_its_neighbours_and_serves_only_its_own_tools(folder):
    folder("deep/zoo.py", TOOLS)
    path = folder("deep/mine.py", "from zoo import zebra\n" + textwrap.dedent(TOOLS).replace("zebra", "gnu"))
    assert names_of(load_target(path)) == ["gnu", "ant"]
    path = folder("deep/user.py", "from zoo import ant, zebra\nfrom mine import gnu\n")
    with pytest.raises(UsageError, match="holds no Server and no function marked with @tool"):
        load_target(path)


def test_a_package_gives_its_submodules_tools(folder):
    folder(
        "kit/__init__.py", "from fastrpc.definitions.tool import tool\n@tool\ndef base() -> str: return ''\n"
    )
    for name in ("b", "a", "_hidden"):
        folder(
            f"kit/{name}.py",
            f"from fastrpc.definitions.tool import tool\n@tool\ndef from_{name}() -> str: return ''\n",
        )
    folder("kit/data/readme.txt", "no module")
    assert names_of(load_target("kit")) == ["base", "from_a", "from_b"]
    sys.modules["kit"].__all__ = ["b"]
    assert names_of(collect(sys.modules["kit"])) == ["base", "from_b", "from_a"]


# Where CPython says that a decorator was called: 3.10 has the line of the function.
DECORATED = 3 if sys.version_info >= (3, 11) else 4


def test_a_server_is_found_by_the_name_app_or_by_being_the_only_one(folder):
    one = folder("one.py", SERVERS.format("thing = alias = Server()"))
    assert type(load_target(one)).__name__ == "Server"
    app = folder("two.py", SERVERS.format("other, app = Server(), Server()"))
    assert load_target(app) is sys.modules["two"].app
    assert load_target("two:other") is sys.modules["two"].other
    several = folder("several.py", SERVERS.format("left, right = Server(), Server()"))
    with pytest.raises(UsageError, match=r"several servers: left, right; choose one with .*several.py:NAME"):
        load_target(several)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("missing.py", "missing.py: no such file"),
        ("zoo.py/", "zoo.py/: "),
        (".", ".: not a target"),
        ("", ":: not a target"),
        ("nowhere", "nowhere: no such module"),
        ("nowhere.inside", "nowhere.inside: no such module"),
        ("zoo.inside", "zoo.inside: no such module"),
        ("zoo:missing", "zoo: has no attribute 'missing'; there are zebra, ant"),
        ("zoo:tool", "zoo: 'tool' is neither a Server nor marked with @tool; there are zebra, ant"),
        ("broken.py", "broken.py:3: ZeroDivisionError: division by zero"),
        ("broken", "broken.py:3: ZeroDivisionError: division by zero"),
        ("crooked.py", "crooked.py:1: SyntaxError: "),
        ("lacking.py", "lacking.py:1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("lacking", "lacking.py:1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("misspelled.py", "object has no attribute 'tol' (did you mean tool?)"),
        ("unnamed.py", "unnamed.py:2: NameError: name 'lenght' is not defined (did you mean length?)"),
        ("absent.py", " (did you mean Server?)"),
        ("unfit.py", f"unfit.py:{DECORATED}: f (unfit.py, line 3): parameter 'x' has no annotation"),
        ("empty.py", "empty.py: holds no Server and no function marked with @tool"),
        ("leaving.py", "leaving.py:2: SystemExit: no key is set"),
        ("leaving", "leaving.py:2: SystemExit: no key is set"),
        ("dropped.py", "dropped.py:1: GeneratorExit"),
        ("null.py", "Error: source code string cannot contain null bytes"),  # a ValueError before 3.12
    ],
)
def test_a_target_that_cannot_be_served_is_one_line(folder, target, said):
    folder("zoo.py", TOOLS)
    folder("broken.py", "def f():\n    # a comment\n    1 / 0\nf()\n")
    folder("crooked.py", "def f(:\n")
    folder("lacking.py", "import no_such_library\n")
    folder("unfit.py", "from fastrpc.definitions.tool import tool\n\n@tool\ndef f(x): ...\n")
    folder("empty.py", "x = 1\n")
    folder("misspelled.py", "from fastrpc import Server\napp = Server('a')\n@app.tol\ndef f(): ...\n")
    folder("unnamed.py", "length = 1\nlenght\n")
    folder("absent.py", "from fastrpc import Sever\n")
    folder("leaving.py", "import sys\nsys.exit('no key is set')\n")
    folder("dropped.py", "raise GeneratorExit\n")
    folder("null.py", "\0\n")
    with pytest.raises(UsageError) as caught:
        load_target(target)
    message = str(caught.value)
    assert said in message
    assert "\n" not in message
    if target in ("broken.py", "unfit.py", "leaving.py"):
        assert os.path.splitext(target)[0] not in sys.modules


@pytest.mark.parametrize(
    "code", ["import sys\nsys.exit()\n", "raise SystemExit(0)\n", "raise KeyboardInterrupt\n"]
)
def test_a_target_that_ends_the_program_without_a_failure_ends_it(folder, code):
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        load_target(folder("leaving.py", code))
    assert "leaving" not in sys.modules


# ---------------------------------------------------------------------------------- documentation


def documented_programs() -> list[str]:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "docs", "tools.md"), encoding="utf-8") as file:
        return [block.split("```")[0] for block in file.read().split("```python\n")[1:]]


@pytest.mark.parametrize("number", range(len(documented_programs())))
def test_each_example_of_the_documentation_can_be_served(folder, number):
    pytest.importorskip("jsonschema_rs")
    path = folder(f"example_{number}.py", documented_programs()[number])
    loaded = load_target(path)
    tools = loaded if isinstance(loaded, list) else list(loaded.tools)
    assert [each.descriptor("2025-11-25")["inputSchema"]["type"] for each in tools] == ["object"]
    assert tools[0].description


def test_what_is_shown_besides_changes_nothing_of_what_is_accepted() -> None:
    extra = {"properties": {"size": {"maximum": 9}}, "required": ["size"], "$comment": "more"}

    @tool(json_schema_extra=extra)
    def cut(size: int = 1) -> str:
        return str(size)

    signature = tool_of(cut).signature
    assert signature.input_schema == {
        "type": "object",
        "properties": {"size": {"type": "integer", "default": 1, "maximum": 9}},
        "required": ["size"],
        "$comment": "more",
    }
    assert signature.bind({}) == [1]
    assert signature.bind({"size": 10}) == [10]
    assert extra == {"properties": {"size": {"maximum": 9}}, "required": ["size"], "$comment": "more"}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("efect", r"there is no option efect=; did you mean effect=\?"),
        ("timeoutSeconds", r"did you mean timeout_seconds=\?"),
        ("zzz", r"there is no option zzz=; the options are name, description, title, effect"),
    ],
)
def test_an_option_that_does_not_exist_is_named_with_the_one_that_was_meant(option: str, said: str) -> None:
    server = Server("x")

    def work() -> str:
        return ""

    for decorate in (tool, server.tool):
        with pytest.raises(DefinitionError, match=rf"^work \(test_registry\.py, line \d+\): .*{said}"):
            decorate(**{option: "read"})(work)


def test_prompts_and_resources_name_a_misspelled_option_too() -> None:
    server = Server("x")

    def work() -> str:
        return ""

    with pytest.raises(DefinitionError, match=r"no option titel=; did you mean title=\?"):
        server.prompt(titel="x")(work)
    with pytest.raises(DefinitionError, match=r"no option mimetype=; did you mean mime_type=\?"):
        server.resource("a://b", mimetype="x")(work)
    with pytest.raises(DefinitionError, match=r"no option sise=; did you mean size=\?"):
        server.resource("a://b", sise=1)(work)
