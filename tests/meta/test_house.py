"""The house rules that a machine can check: layers, file sizes, promises, exports, tools, documents."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys

import pytest
from fastrpc.tools.agent import _settings as agent_settings
from fastrpc.tools.agent._contract import CONTRACT

import fastrpc
from fastrpc.settings import declared_in

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONGEST_FILE = 700

# Module (or package) -> layer. A module may import from layers below its own, and its own package.
LAYERS = {
    "fastrpc.errors": 0,
    "fastrpc.environment": 0,
    "fastrpc.forks": 0,
    "fastrpc.types": 0,
    "fastrpc.options": 0,
    "fastrpc.settings": 0,
    "fastrpc.settings_files": 0,
    "fastrpc.log": 0,
    "fastrpc.masking": 0,
    "fastrpc.tracebacks": 0,
    "fastrpc.regular_files": 0,
    "fastrpc.version": 0,
    "fastrpc.versions": 0,
    "fastrpc.quotas": 0,
    "fastrpc._core.framer": 1,
    "fastrpc._core.message": 1,
    "fastrpc._core.simdjson": 1,
    "fastrpc._core.likely": 1,
    "fastrpc._core.call": 1,
    "fastrpc._core.values": 1,
    "fastrpc._core.encode": 1,
    "fastrpc._core.context": 0,
    "fastrpc._core.convert": 0,
    "fastrpc._core.redaction": 0,
    "fastrpc._core.signal_pipe": 0,
    "fastrpc._core.plan": 1,
    "fastrpc._core.call_info": 1,
    "fastrpc._core.recorder": 1,
    "fastrpc._core.task": 1,
    "fastrpc._core.pending": 1,
    "fastrpc._core.connection": 1,
    "fastrpc._core.access_buffer": 1,
    "fastrpc._core.stream": 2,
    "fastrpc.schema": 3,
    "fastrpc.registry": 3,
    "fastrpc.resources": 3,
    "fastrpc.prompts": 3,
    "fastrpc.completion": 3,
    "fastrpc.questions": 3,
    "fastrpc.hooks": 5,
    "fastrpc.catalogue": 3,
    "fastrpc.context": 3,
    "fastrpc.processes": 3,
    "fastrpc.checking_proxy": 3,
    "fastrpc.ask": 4,
    "fastrpc.engine.ports": 2,
    "fastrpc.engine": 5,
    "fastrpc.session": 5,
    "fastrpc.results": 5,
    "fastrpc.service": 5,
    "fastrpc.calls": 5,
    "fastrpc.methods": 6,
    "fastrpc.asking": 6,
    "fastrpc.log_bridge": 5,
    "fastrpc.batches": 5,
    "fastrpc.dispatcher": 5,
    "fastrpc.telemetry": 5,
    "fastrpc.transports": 7,
    "fastrpc.proxy": 8,
    "fastrpc.mounting": 8,
    "fastrpc.server": 8,
    "fastrpc.compat": 9,
    "fastrpc.cli": 9,
    "fastrpc.command_line": 3,
    "fastrpc.testing": 9,
    "fastrpc.__main__": 9,
}

# Layers that may not import one that is numerically below them.
NOT = {
    3: {1, 2},  # description and programs know nothing of the wire
    7: {5, 6},  # a transport is handed a connection; it never meets the dispatcher or a feature
}


def sources(*folders: str, endings: tuple[str, ...] = (".py",)) -> list[str]:
    found = []
    for folder in folders:
        for place, folders, names in os.walk(os.path.join(REPOSITORY, folder)):
            folders[:] = [name for name in folders if name not in (".cache", "build", "node_modules")]
            found += [os.path.join(place, name) for name in names if name.endswith(endings)]
    return sorted(os.path.relpath(path, REPOSITORY) for path in found)


def text_of(path: str) -> str:
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        return file.read()


def module_of(path: str) -> str:
    module = os.path.splitext(path)[0].replace(os.sep, ".")
    return module.removesuffix(".__init__")


def layer_of(module: str) -> int | None:
    """The layer of a module: its own line in the table, or its package's."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        name = ".".join(parts[:length])
        if name in LAYERS:
            return LAYERS[name]
    return None


def imports_of(path: str) -> set[str]:
    """The modules of fastrpc that a file imports at any depth, outside of typing-only blocks."""
    text = text_of(path)
    if path.endswith((".pyx", ".pxd")):
        found = set(re.findall(r"^\s*(?:from|cimport|import)\s+(fastrpc[\w.]*)", text, re.MULTILINE))
        found |= {
            f"{package}.{name}"
            for package, name in re.findall(r"from (fastrpc[\w.]*) c?import (\w+)", text)
            if package == "fastrpc._core"
        }
        return found - {"fastrpc._core"}
    found = set()
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        waiting += ast.iter_child_nodes(node)
    return {name for name in found if name.split(".")[0] == "fastrpc"}


def forbidden(module: str, imported: str) -> bool:
    mine, theirs = layer_of(module), layer_of(imported)
    if mine is None or theirs is None or imported == module:
        return False
    return theirs > mine or theirs in NOT.get(mine, ())


FRAMEWORK = sources("fastrpc", endings=(".py", ".pyx", ".pxd"))


@pytest.mark.parametrize("path", FRAMEWORK)
def test_imports_go_down_the_layers(path: str) -> None:
    module = module_of(path)
    if module in ("fastrpc", "fastrpc._core"):
        return
    assert layer_of(module) is not None, f"{module} stands in no layer"
    wrong = sorted(name for name in imports_of(path) if forbidden(module, name))
    assert not wrong, f"{module} must not import {wrong}"


def test_the_layer_check_sees_a_wrong_import() -> None:
    assert forbidden("fastrpc.transports.stdio", "fastrpc.dispatcher")
    assert forbidden("fastrpc.errors", "fastrpc.server")
    assert not forbidden("fastrpc.server", "fastrpc.transports")


def is_module(name: str) -> bool:
    """Whether there is such a module, or package, in this repository."""
    place = os.path.join(REPOSITORY, *name.split("."))
    return any(os.path.exists(place + ending) for ending in (".py", ".pyx", ".pxd", "/__init__.py"))


def test_the_table_of_layers_names_what_is_there() -> None:
    assert not [name for name in LAYERS if not is_module(name)]


def test_the_architecture_names_every_module_that_stands_in_the_package_itself() -> None:
    layers = text_of("docs/architecture.md").partition("## Layers")[2].partition("\n## ")[0]
    for path in FRAMEWORK:
        name = module_of(path).split(".")[1:2]
        if name:
            assert re.search(rf"`{name[0]}[`.]", layers), f"docs/architecture.md has no layer for {name[0]}"


def test_the_core_without_io_has_none() -> None:
    for name in ("framer", "message", "encode"):
        text = text_of(f"fastrpc/_core/{name}.pyx")
        for word in (
            "posix.",
            "unistd",
            "clock_gettime",
            "import time",
            "import os",
            "import logging",
            "import socket",
        ):
            assert word not in text, f"{name}.pyx uses {word}"


def names_of_the_toolset(text: str) -> list[str]:
    """What a text of the framework says of the shipped toolset: its tools, its settings, and its modules but
    for the package itself, which is what is served when no target is named."""
    settings = [setting.name for setting in declared_in(agent_settings)]
    whole = "|".join([*CONTRACT, *(name for name in settings if not name.endswith("*"))])
    families = "|".join(name[:-1] for name in settings if name.endswith("*"))
    return re.findall(rf"\b(?:{whole})\b|\b(?:{families})|fastrpc\.tools\.agent\.\w+", text)


@pytest.mark.parametrize("path", sources("fastrpc", endings=(".py", ".pyx", ".pxd", ".pyi")))
def test_nothing_in_the_framework_names_a_tool_or_a_setting_of_the_toolset(path: str) -> None:
    assert not names_of_the_toolset(text_of(path))
    if path != "fastrpc/settings.py":
        assert "tools.agent" not in text_of(path)


def test_that_would_see_a_name() -> None:
    for text in (
        "call Bash",
        "'PLAN_ENFORCE'",
        '["FASTRPC_REACH"]',
        "SKILL_",
        "fastrpc.tools.agent._x",
    ):
        assert names_of_the_toolset(text), text
    for text in ("bash", "STREAMING_LIMIT", "fastrpc.tools.agent", "FASTRPC_LOG_LEVEL", "Bashful"):
        assert not names_of_the_toolset(text), text


def test_tools_use_public_names_only() -> None:
    allowed = {"fastrpc"} | {f"fastrpc.{name}" for name in fastrpc.__all__}
    modules = ("ask", "checking_proxy", "command_line", "processes", "regular_files", "settings")
    modules = tuple(f"fastrpc.{name}" for name in modules)
    for path in sources("tools"):
        for name in imports_of(path):
            module = name.rpartition(".")[0]
            if name in modules or (module in modules and not is_module(name)):
                continue
            assert name in allowed or name.split(".")[1] == "tools", f"{path} imports {name}"


@pytest.mark.parametrize(
    "path",
    [*sources("fastrpc", "tools", "tests", "benchmarks", ".ci", endings=(".py", ".pyx", ".c", ".pyi"))],
)
def test_no_file_is_too_long(path: str) -> None:
    assert text_of(path).count("\n") <= LONGEST_FILE


@pytest.mark.parametrize("path", sources("fastrpc", "tools", "tests", ".ci", endings=(".py", ".pyx")))
def test_every_file_opens_with_its_promise(path: str) -> None:
    text = text_of(path)
    if os.path.basename(path) == "__init__.py" and not text.strip():
        return
    assert re.match(r'(# distutils:.*\n|#!.*\n)?(r|f)?"""\S', text), f"{path} has no docstring at its top"


def test_every_public_name_is_exported_and_documented() -> None:
    manual = text_of("docs/api.md")
    for name in fastrpc.__all__:
        value = getattr(fastrpc, name)
        assert f"`{name}" in manual, f"docs/api.md does not tell of {name}"
        if name != "__version__":
            assert value.__doc__, f"{name} has no docstring"
        if isinstance(value, type):
            described = Exception if issubclass(value, BaseException) else object
            for member, what in inspect.getmembers(value):
                if not member.startswith("_") and not hasattr(described, member):
                    known = not (callable(what) or isinstance(what, property)) or what.__doc__
                    assert known, f"{name}.{member} has no docstring"


def test_what_documents_import_is_public() -> None:
    public = set(re.findall(r"`(fastrpc\.\w+)`", text_of("docs/api.md").partition("| name")[0]))
    taught = {
        (path, module)
        for path in ["README.md", *sources("docs", "examples", endings=(".md", ".py"))]
        for module in re.findall(r"from (fastrpc\.[\w.]+) import", text_of(path))
    }
    assert taught
    assert not [entry for entry in sorted(taught) if entry[1] not in public]


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        fastrpc.nothing_like_it  # noqa: B018


def test_the_version_is_the_same_everywhere() -> None:
    assert f'version = "{fastrpc.__version__}"' in text_of("pyproject.toml")
    assert fastrpc.__version__ in text_of("CHANGELOG.md")


def test_every_shipped_tool_is_documented_and_tested() -> None:
    readme = text_of("README.md")
    tests = "".join(text_of(path) for path in sources("tests"))
    for path in sources("tools/agent"):
        match = re.search(r'@tool\([^)]*name="(\w+)"', text_of(path), re.DOTALL)
        if match:
            assert f"`{match[1]}`" in readme, f"README.md does not list {match[1]}"
            assert match[1] in tests, f"no test calls {match[1]}"


def test_importing_the_package_imports_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); from fastrpc import Server, tool; Server('x'); "
        "print(sorted(set(sys.modules) - before))"
    )
    shown = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(fastrpc.__file__))},
    )
    assert shown.returncode == 0, shown.stderr
    for heavy in ("typing", "inspect", "asyncio", "json", "re", "msgspec", "orjson", "dataclasses", "enum"):
        assert f"'{heavy}'" not in shown.stdout, f"import fastrpc imports {heavy}"


@pytest.mark.parametrize("path", ["README.md", *sources("docs", endings=(".md",))])
def test_python_examples_in_the_documents_run(path: str, tmp_path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", text_of(path), re.DOTALL | re.MULTILINE)
    for number, block in enumerate(blocks):
        script = tmp_path / f"example_{number}.py"
        script.write_text(block, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(script)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, f"{path}, block {number + 1}:\n{block}\n{done.stderr}"


def test_the_readmes_call_prints_what_the_readme_says(tmp_path) -> None:
    readme = text_of("README.md")
    (tmp_path / "demo.py").write_text(
        re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[1]
    )
    command, shown = re.search(r"^\$ (fastrpc call .*)\n(.*)$", readme, re.MULTILINE).groups()
    arguments = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == shown
    assert done.returncode == 0


@pytest.mark.parametrize("path", ["README.md", *sources("docs", endings=(".md",))])
def test_links_between_the_documents_lead_somewhere(path: str) -> None:
    folder = os.path.dirname(os.path.join(REPOSITORY, path))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(path)):
        if "://" not in target:
            assert os.path.exists(os.path.join(folder, target)), f"{path} links to {target}"
