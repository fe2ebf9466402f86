"""The description layer: which callables can be described, how they are called, and what that costs."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from typing import Any

import msgspec
import pydantic
import pytest

import fastrpc
from fastrpc.context import Context
from fastrpc.errors import DefinitionError
from fastrpc.schema import describe
from fastrpc.schema.annotations import UnresolvedName

ROOT = os.path.dirname(
    os.path.dirname(os.path.abspath(fastrpc.__file__))
)  # of what is tested: it may be installed


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


def test_the_context_parameter_never_shows_whatever_its_place():
    def first(ctx: Context, a: int) -> str:
        return f"{ctx} {a}"

    def last(a: int, ctx: Context | None = None) -> str:
        return f"{ctx} {a}"

    def named(a: int, *, ctx: Context) -> str:
        return f"{ctx} {a}"

    for function, index in ((first, 0), (last, 1), (named, -1)):
        signature = describe(function)
        assert signature.context_parameter == "ctx"
        assert signature.context_index == index
        assert list(signature.input_schema["properties"]) == ["a"]
        assert signature.call(function, signature.bind({"a": 1}), "C") == "C 1"
    assert not describe(named).vectorizable


def test_keyword_only_and_positional_only_parameters_are_called_right():
    def function(a: int, /, b: int = 2, *, c: int, d: int = 4) -> str:
        return f"{a} {b} {c} {d}"

    signature = describe(function)
    assert signature.vectorizable
    assert signature.keywords == ("c", "d")
    assert signature.input_schema["required"] == ["a", "c"]
    assert signature.call(function, signature.bind({"a": 1, "c": 3})) == "1 2 3 4"


def test_sixteen_positional_parameters_are_vectorizable_and_seventeen_are_not():
    def with_parameters(count: int) -> Any:
        scope: dict[str, Any] = {}
        exec(f"def f({', '.join(f'p{n}: int' for n in range(count))}): pass", scope)
        return describe(scope["f"])

    assert with_parameters(16).vectorizable
    assert not with_parameters(17).vectorizable


def test_methods_partials_callables_and_wrapped_functions_are_described_by_what_remains():
    class Shop:
        def sell(self, item: str, count: int = 1) -> str:
            return f"{item} {count}"

        @staticmethod
        def open(hour: int) -> str:
            return f"{hour}"

        def __call__(self, item: str) -> str:
            return item

    def logged(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    shop = Shop()
    for function, names, arguments, result in [
        (shop.sell, ["item", "count"], {"item": "a"}, "a 1"),
        (Shop.open, ["hour"], {"hour": 8}, "8"),
        (shop, ["item"], {"item": "b"}, "b"),
        (functools.partial(shop.sell, "c"), ["count"], {"count": 2}, "c 2"),
        (functools.partial(shop.sell, count=3), ["item"], {"item": "d"}, "d 3"),
        (logged(shop.sell), ["item", "count"], {"item": "e"}, "e 1"),
    ]:
        signature = describe(function)
        assert list(signature.input_schema["properties"]) == names
        assert signature.call(function, signature.bind(arguments)) == result


def test_names_of_an_enclosing_function_resolve_when_the_tool_uses_them():
    class Local(msgspec.Struct):
        n: int

    def function(x: Local) -> str:
        return str(Local is type(x))

    assert describe(function).bind({"x": {"n": 1}}) == [Local(1)]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f(x): ...", "f (<string>, line 1): parameter 'x' has no annotation; write for example x: str"),
        ("def f(*args: int): ...", "takes *args, which a client cannot name"),
        ("def f(**others: int): ...", "takes **arguments, which have no types"),
        ("def f(x: complex): ...", "parameter 'x': no JSON Schema can be made of complex"),
        ("def f(x: 3): ...", "parameter 'x': no JSON Schema can be made of 3"),
        ("def f(x: 'in valid'): ...", "parameter 'x': the annotation 'in valid' cannot be evaluated"),
        ("def f(x: int) -> complex: ...", "the return type: no JSON Schema can be made of complex"),
        ("def f():\n yield 1", "is a generator; return a list"),
        ("def f(a: Context, b: Context): ...", "two parameters of the type Context, 'a' and 'b'; keep one"),
        ("f = len", "len: is not a Python function; wrap it in a def"),
    ],
)
def test_what_cannot_be_a_tool_names_the_function_and_the_cure(source, said, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic", None)
    monkeypatch.delitem(sys.modules, "pydantic")
    scope: dict[str, Any] = {"Context": Context}
    exec(source, scope)
    with pytest.raises(DefinitionError) as caught:
        describe(scope["f"])
    assert said in str(caught.value)
    assert str(caught.value).startswith(("f (<string>, line 1): ", "len: "))


def test_a_name_that_is_not_defined_yet_is_an_error_of_its_own_kind():
    scope: dict[str, Any] = {}
    exec("def f(x: 'Later') -> str: ...\ndef g(x: 'list[Later]') -> 'Later': ...", scope)
    for name in "fg":
        with pytest.raises(
            UnresolvedName, match=r"parameter 'x': the annotation .*Later.* top of the module"
        ):
            describe(scope[name])
    scope["Later"] = Point
    assert describe(scope["f"]).bind({"x": {"x": 1}}) == [Point(1.0)]
    assert describe(scope["g"]).output_schema["properties"].keys() == {"x", "y"}


def test_fields_of_pydantic_as_defaults_work_as_in_servers_written_for_fastmcp():
    def function(
        a: int = pydantic.Field(ge=1, description="A"), b: str = pydantic.Field("z", max_length=2)
    ) -> str:
        return f"{a} {b}"

    signature = describe(function)
    assert signature.input_schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "A", "minimum": 1},
            "b": {"type": "string", "maxLength": 2, "default": "z"},
        },
        "required": ["a"],
    }
    assert signature.bind({"a": 1}) == [1, "z"]


# ------------------------------------------------------------------------------------------- cost


def test_plain_tools_are_described_without_importing_what_start_up_cannot_afford():
    program = f"""
        import sys
        sys.path.insert(0, {ROOT!r})
        before = set(sys.modules)
        from fastrpc.definitions.registry import Registries
        from fastrpc.definitions.tool import tool

        @tool(effect="read")
        def echo(text: str, times: int = 1, loud: bool = False, factor: float = 1.0) -> str:
            "Say it again."
            return text

        @tool
        def gather(names: list[str], table: dict[str, int], limit: int | None = None) -> dict:
            return {{}}

        registry = Registries().tools
        registry.add(echo)
        registry.add(gather)
        for each in registry:
            each.descriptor("2025-11-25")
        assert registry.get("echo").signature.bind({{"text": "a", "times": "2"}}) == ["a", 2, False, 1.0]
        own = ("fastrpc", "_cython", "cython_")  # the compiled core needs no more than itself
        print(sorted(name for name in set(sys.modules) - before if not name.startswith(own)))
    """
    for preamble in ("", "from __future__ import annotations\n"):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", preamble + textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout in ("[]\n", "['__future__']\n")
