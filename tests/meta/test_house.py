"""The house rules that a machine can check: layers, file sizes, promises, exports, tools, documents."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import re
import shlex
import subprocess
import sys

import pytest
from fastrpc.tools.agent import _settings as agent_settings
from fastrpc.tools.agent._contract import CONTRACT
from support.agent_tools import EFFECTS

import fastrpc
from fastrpc.settings import declared_in

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONGEST_FILE = 700


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


def numbered(package: str, number: int) -> dict[str, int]:
    """The modules of a package, without those of packages in it."""
    folder = package.replace(".", "/")
    paths = [path for path in sources(folder) if os.path.dirname(path) == folder]
    return {module_of(path): number for path in paths}


LAYERS = {
    # 0: leaves, on the standard library alone; what compiled code and processes share with everything
    "fastrpc._core": 0,
    "fastrpc._core.clock": 0,
    "fastrpc._core.convert": 0,
    "fastrpc._core.polling": 0,
    "fastrpc._core.slices": 0,
    "fastrpc._core.redaction": 0,
    "fastrpc._core.signal_pipe": 0,
    "fastrpc._core.value_types": 0,
    "fastrpc.protocol": 0,
    "fastrpc.protocol.versions": 0,
    "fastrpc.protocol.refusal_codes": 0,
    "fastrpc.callers": 1,
    "fastrpc.command_line": 1,
    "fastrpc.content": 1,
    "fastrpc.definition_mistakes": 1,
    "fastrpc.diagnostics": 1,
    "fastrpc.environment": 1,
    "fastrpc.errors": 1,
    "fastrpc.forks": 1,
    "fastrpc.garbage": 1,
    "fastrpc.globs": 1,
    "fastrpc.installed": 1,
    "fastrpc.unicode_forms": 1,
    "fastrpc.json_text": 1,
    "fastrpc.lazy_names": 1,
    "fastrpc.options": 1,
    "fastrpc.quotas": 1,
    "fastrpc.redaction": 1,
    "fastrpc.regular_files": 1,
    "fastrpc.time_limit": 1,
    "fastrpc.settings": 1,
    "fastrpc.signed_requests": 1,
    "fastrpc.signed_texts": 1,
    "fastrpc.tool_style": 0,
    "fastrpc.settings_files": 1,
    "fastrpc.tracebacks": 1,
    "fastrpc.unix_sockets": 1,
    "fastrpc.version": 1,
    "fastrpc.egress_proxy": 1,
    "fastrpc._core.context": 2,
    "fastrpc.protocol.lifecycle": 2,
    "fastrpc.protocol.session_changes": 2,
    "fastrpc.protocol.damaged_page": 2,
    "fastrpc.protocol.followed_pages": 2,
    "fastrpc.protocol.pagination": 2,
    "fastrpc.protocol.uri_template": 2,
    **numbered("fastrpc.processes", 2),
    # 10: the compiled core; only `stream` does I/O
    "fastrpc._core.answer": 10,
    "fastrpc._core.call": 10,
    "fastrpc._core.call_template": 10,
    "fastrpc._core.collector": 10,
    "fastrpc._core.contained": 10,
    "fastrpc._core.encoder": 10,
    "fastrpc._core.framer": 10,
    "fastrpc._core.fast_parser": 10,
    "fastrpc._core.document": 10,
    "fastrpc._core.message": 10,
    "fastrpc._core.python_api": 10,
    "fastrpc._core.budget_table": 10,
    "fastrpc._core.rate_limiter": 10,
    "fastrpc._core.recorder": 10,
    "fastrpc._core.simdjson": 10,
    "fastrpc._core.task": 10,
    "fastrpc._core.values": 10,
    "fastrpc.json_encoding": 11,
    "fastrpc._core.plan": 11,
    "fastrpc._core.call_info": 12,
    "fastrpc._core.call_gate": 12,
    "fastrpc._core.audit_lines": 12,
    "fastrpc._core.call_result": 12,
    "fastrpc._core.call_writer": 12,
    "fastrpc._core.client_request": 13,
    "fastrpc._core.client_stream": 14,
    "fastrpc._core.tool_call": 15,
    "fastrpc._core.forwarding": 15,
    "fastrpc._core.connection": 13,
    "fastrpc._core.access_buffer": 14,
    "fastrpc._core.http_body": 14,
    "fastrpc._core.content_blocks": 14,
    "fastrpc._core.pending": 14,
    "fastrpc._core.stream": 14,
    # 20: what authors declare; they know nothing of the wire
    "fastrpc.schema.annotations": 20,
    "fastrpc.schema.converters": 20,
    "fastrpc.schema.described_members": 20,
    "fastrpc.schema.rich_types": 20,
    "fastrpc.schema.value_types": 20,
    "fastrpc.schema.whole_records": 20,
    "fastrpc.typing_forms": 0,
    "fastrpc.client_requests.base": 21,
    "fastrpc.client_requests.elicitation": 21,
    "fastrpc.client_requests.forms": 21,
    "fastrpc.client_requests.roots": 21,
    "fastrpc.client_requests.sampling": 21,
    "fastrpc.context": 22,
    "fastrpc.schema": 23,
    "fastrpc.schema.json_schema": 23,
    "fastrpc.schema.passed_signature": 23,
    "fastrpc.schema.signature": 23,
    **numbered("fastrpc.definitions", 24),
    "fastrpc.loader": 25,
    # 30: the engine: what happens to a request
    **numbered("fastrpc.engine", 30),
    "fastrpc.engine.ports": 2,  # nothing but Protocols, for whoever needs them
    # 40: features, handed to the engine as a table
    "fastrpc.client_requests.request_state": 40,
    "fastrpc.client_requests.pending": 40,
    "fastrpc.client_requests": 40,
    "fastrpc.log_bridge": 40,
    "fastrpc.running_call": 39,
    "fastrpc.subscriptions": 39,
    **numbered("fastrpc.methods", 41),
    # 50: transports carry bytes: they are handed a connection, and meet neither engine nor features
    **numbered("fastrpc.transports", 50),
    **numbered("fastrpc.transports.http", 51),
    **numbered("fastrpc.client", 53),
    "fastrpc.client.transport": 51,
    "fastrpc.client.urls": 50,
    **numbered("fastrpc.client.oauth", 51),
    **numbered("fastrpc.client.http", 52),
    # 60: what plugs into the slots of plans and the engine's ports
    **numbered("fastrpc.telemetry", 60),
    **numbered("fastrpc.storage", 60),
    **numbered("fastrpc.storage.migrations", 60),
    **numbered("fastrpc.storage.migrations.versions", 60),
    **numbered("fastrpc.terminal", 60),
    **numbered("fastrpc.guard.shell", 60),
    **numbered("fastrpc.guard.audit", 61),
    **numbered("fastrpc.guard.callers", 62),
    **numbered("fastrpc.guard.cel", 61),
    # 70: assembly
    "fastrpc.guard.callers.http_source": 70,
    "fastrpc.guard.callers.stdio": 70,
    **numbered("fastrpc.guard.policy", 70),
    **numbered("fastrpc.guard.approvals", 74),
    **numbered("fastrpc.guard.budgets", 71),
    **numbered("fastrpc.guard.leases", 71),
    **numbered("fastrpc.guard", 76),
    "fastrpc.guard.refusals": 73,
    "fastrpc.guard.times": 60,
    "fastrpc.guard.audit.calls": 76,
    **numbered("fastrpc.dashboard", 80),
    "fastrpc.dashboard.view": 81,
    "fastrpc.dashboard.recording": 82,
    **numbered("fastrpc.dashboard.pages", 82),
    "fastrpc.dashboard.app": 83,
    "fastrpc.dashboard.front": 84,
    "fastrpc.human_input": 70,
    "fastrpc.mounting": 70,
    "fastrpc.proxy.hop": 70,
    "fastrpc.proxy.requests": 70,
    "fastrpc.proxy.start_limit": 70,
    "fastrpc.proxy.upstream": 72,
    "fastrpc.proxy": 74,
    "fastrpc.proxy.lists": 73,
    "fastrpc.proxy.subscriptions": 73,
    "fastrpc.proxy.entries": 71,
    "fastrpc.proxy.rounds": 74,
    "fastrpc.proxy.features": 74,
    "fastrpc.proxy.targets": 74,
    **numbered("fastrpc.tasks", 74),
    "fastrpc.tasks.record": 2,  # no I/O: what both wires show of a task
    **numbered("fastrpc.shared_store", 74),
    "fastrpc.shared_store.migrations": 70,
    "fastrpc.shared_store.migrations.s0001_sessions": 70,
    "fastrpc.tasks.migrations": 70,
    "fastrpc.tasks.migrations.t0001_tasks": 70,
    "fastrpc.tasks.migrations.t0002_approvals": 70,
    "fastrpc.tasks.migrations.t0003_guards": 70,
    **numbered("fastrpc.tool_processes", 74),
    "fastrpc.tool_processes.child": 76,
    "fastrpc.assembly": 75,
    "fastrpc.server": 75,
    "fastrpc.former_names": 76,
    **numbered("fastrpc.gateway", 76),
    **numbered("fastrpc.openapi", 78),
    "fastrpc.client": 77,
    "fastrpc.self_calls": 78,
    "fastrpc.client.client": 77,  # whose targets may be several servers, behind a gateway
    "fastrpc": 78,
    # 80: the edges
    **numbered("fastrpc.compat.auth", 79),
    **numbered("fastrpc.compat", 86),
    **numbered("fastrpc.compat.client", 86),
    **numbered("fastrpc.compat.highlevel", 86),
    **numbered("fastrpc.compat.http", 86),
    **numbered("fastrpc.compat.lowlevel", 86),
    **numbered("fastrpc.compat.sdk2", 86),
    "fastrpc.compat.type_names": 75,
    "fastrpc.compat.field_types": 78,
    **numbered("fastrpc.compat.names", 81),
    "fastrpc.compat.names.homes": 86,
    **numbered("fastrpc.compat.calls", 80),
    "fastrpc.compat.json_forms": 78,
    **numbered("fastrpc.compat.functions", 82),
    "fastrpc.compat.functions.hinted_classes": 81,
    **numbered("fastrpc.compat.components", 82),
    "fastrpc.compat.components.versions": 80,
    **numbered("fastrpc.compat.registered", 82),
    "fastrpc.compat.apps": 79,
    "fastrpc.compat.apps.addresses": 79,
    "fastrpc.compat.apps.interfaces": 80,
    "fastrpc.compat.apps.payload": 80,
    "fastrpc.compat.apps.renderer": 80,
    "fastrpc.compat.apps.offering": 86,
    "fastrpc.compat.apps.provider": 86,
    **numbered("fastrpc.compat.transforms", 83),
    **numbered("fastrpc.compat.composition", 84),
    "fastrpc.compat.composition.nested_calls": 82,
    **numbered("fastrpc.compat.providers", 85),
    "fastrpc.compat.providers.upstream": 86,
    "fastrpc.compat.context": 80,
    "fastrpc.compat.dialect": 80,
    "fastrpc.compat.errors": 80,
    "fastrpc.compat.highlevel.options": 80,
    "fastrpc.compat.http.headers": 80,
    "fastrpc.compat.http.request": 80,
    "fastrpc.compat.models": 80,
    "fastrpc.compat.sdk2.input_rounds": 80,
    "fastrpc.compat.sdk2.subscription_events": 80,
    "fastrpc.compat.values": 80,
    **numbered("fastrpc.compat.middleware", 81),
    **numbered("fastrpc.compat.interception", 81),
    **numbered("fastrpc.swap", 87),
    **numbered("fastrpc.swap.originals", 87),
    **numbered("fastrpc.swap.site_folder", 87),
    **numbered("fastrpc.testing", 80),
    **numbered("fastrpc.cli", 88),
    "fastrpc.__main__": 89,
}
"""The number of each module. A module may import those with a lower number, and of its own package (those in
it, too) those with the same number, if there is no cycle (test_import_graph.py). Imports for types count, and
so do lazy ones."""

MAY_IMPORT = {
    0: (0,),
    1: (0, 1),
    2: (0, 2),
    3: (0, 1, 2, 3),
    4: (0, 1, 2, 3, 4),
    5: (0, 1, 5),
    6: (0, 1, 2, 3, 6),
    7: (0, 1, 2, 3, 4, 5, 6, 7),
    8: (0, 1, 2, 3, 4, 5, 6, 7, 8),
}
"""The layers (the tens of the numbers), and from which layers each may import."""


def imports_of(path: str) -> set[str]:
    """The modules of fastrpc that a file imports: anywhere in it, for types too, and by names in strings."""
    text = text_of(path)
    if path.endswith((".pyx", ".pxd")):
        named = re.findall(r"^\s*from (fastrpc[\w.]*) c?import \(?\s*(\w+(?:,\s*\w+)*)", text, re.MULTILINE)
        return {
            module_named(f"{package}.{name}")
            for package, names in named
            for name in re.findall(r"\w+", names)
        }
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {module_named(alias.name) for alias in node.names if alias.name.startswith("fastrpc")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fastrpc":
            found |= {module_named(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in BY_NAME:
            found.add(node.value)
    return found


def module_named(name: str) -> str:
    """The module of fastrpc that a dotted name is, or is a member of; the name of a module of the tools."""
    if name.startswith("fastrpc.tools"):
        return name
    while name not in LAYERS:
        name = name.rpartition(".")[0]
    return name


def forbidden(module: str, imported: str) -> bool:
    if imported == module:
        return False
    mine, theirs = LAYERS[module], LAYERS[imported]
    if theirs // 10 not in MAY_IMPORT[mine // 10]:
        return True
    return theirs > mine or (theirs == mine and package_of(module) != package_of(imported))


def package_of(module: str) -> str:
    """The package below `fastrpc` that a module is in, however deep; `fastrpc` if it is in none."""
    package = module if is_package(module) else module.rpartition(".")[0]
    return ".".join(package.split(".")[:2])


def is_package(module: str) -> bool:
    return os.path.isfile(os.path.join(REPOSITORY, *module.split("."), "__init__.py"))


FRAMEWORK = sources("fastrpc", endings=(".py", ".pyx", ".pxd"))
BY_NAME = LAYERS.keys() - {
    "fastrpc",
    "fastrpc.testing",
}  # the one is a logger, too, and a server's name the other


def test_every_module_has_a_number_and_every_number_a_module() -> None:
    assert {module_of(path) for path in FRAMEWORK} == set(LAYERS)


@pytest.mark.parametrize("part", ["processes.close(", "all_tasks()", "add_signal_handler("])
def test_the_end_of_a_server_is_written_once(part: str) -> None:
    places = [path for path in sources("fastrpc") if part in text_of(path)]
    assert places == ["fastrpc/transports/shutdown.py"]


def unnamed_parts(text: str) -> list[str]:
    """The annotations of a transport that leave open what it reads of a server."""
    names = "dispatcher|runtime|server|connection|connect|app|scope|receive|send"
    return re.findall(rf"(?:\b|_)(?:{names}): (?:Callable\[\.\.\., )?Any\b", text)


def test_transports_name_what_they_read_of_a_server() -> None:
    paths = sources("fastrpc/transports")
    assert paths
    assert not {path: parts for path in paths if (parts := unnamed_parts(text_of(path)))}


def test_that_would_see_a_part_without_a_name() -> None:
    for text in ("def serve(server: Any)", "connect: Callable[..., Any]", "self._dispatcher: Any = x"):
        assert unnamed_parts(text), text
    assert not unnamed_parts("runtime: Runtime")


def test_imports_go_down_the_layers() -> None:
    wrong = []
    for path in FRAMEWORK:
        module = module_of(path)
        wrong += [f"{module}: {name}" for name in sorted(imports_of(path)) if forbidden(module, name)]
    assert not wrong, "these must not be imported:\n" + "\n".join(wrong)


def test_the_layer_check_sees_a_wrong_import() -> None:
    for module, imported in (
        ("fastrpc.transports.stdio", "fastrpc.engine.dispatcher"),  # is handed a connection
        ("fastrpc.transports.memory", "fastrpc.context"),
        ("fastrpc.definitions.tool", "fastrpc._core.connection"),  # knows nothing of the wire
        ("fastrpc.engine.call", "fastrpc.methods.tools"),  # knows ports, not features
        ("fastrpc.telemetry.observers", "fastrpc.methods"),
        ("fastrpc.errors", "fastrpc.server"),
        ("fastrpc.log_bridge", "fastrpc.client_requests.pending"),  # the same number, another package
    ):
        assert forbidden(module, imported), (module, imported)
    for module, imported in (
        ("fastrpc.server", "fastrpc.transports"),
        ("fastrpc.transports.stdio", "fastrpc.engine.ports"),
        ("fastrpc.engine.call", "fastrpc.engine.request"),
        ("fastrpc.schema", "fastrpc.schema.signature"),
    ):
        assert not forbidden(module, imported), (module, imported)


def test_the_layer_check_reads_every_kind_of_import() -> None:
    assert "fastrpc.definitions.tool" in imports_of(
        "fastrpc/definitions/registry.py"
    )  # by name, when first used
    assert "fastrpc.engine.ports" in imports_of("fastrpc/context.py")  # for types
    assert "fastrpc.tracebacks" in imports_of("fastrpc/engine/call.py")  # within a function
    assert "fastrpc._core.message" in imports_of("fastrpc/_core/connection.pxd")


def test_the_architecture_names_every_module_that_is_in_the_package_itself() -> None:
    layers = text_of("docs/architecture.md").partition("## Layers")[2].partition("\n## ")[0]
    for path in FRAMEWORK:
        name = module_of(path).split(".")[1:2]
        if name:
            assert re.search(rf"`{name[0]}[`.]", layers), f"docs/architecture.md has no layer for {name[0]}"


def test_the_files_that_packages_say_rules_are_in_are_there() -> None:
    named = 0
    for path in FRAMEWORK:
        rules = text_of(path).partition('"""')[2].partition('"""')[0].partition("Where a rule is")[2]
        for name in re.findall(r"`([\w/]+\.(?:pyx?|h|c))`", rules):
            named += 1
            folders = (os.path.dirname(path), "fastrpc", "fastrpc/_core")
            assert any(os.path.exists(os.path.join(REPOSITORY, each, name)) for each in folders), (path, name)
    assert named > 80


def test_the_core_without_io_has_none() -> None:
    for name in ("framer", "message", "encoder"):
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


@functools.cache
def pattern_of_the_toolset() -> re.Pattern[str]:
    settings = [setting.name for setting in declared_in(agent_settings)]
    whole = "|".join([*CONTRACT, *(name for name in settings if not name.endswith("*"))])
    families = "|".join(name[:-1] for name in settings if name.endswith("*"))
    return re.compile(rf"\b(?:(?:{whole})\b|(?:{families}))|fastrpc\.tools\.agent\.\w+")


def names_of_the_toolset(text: str) -> list[str]:
    """What a text of the framework says of the shipped toolset: its tools, its settings, and its modules but
    for the package itself, which is what is served when no target is named."""
    return pattern_of_the_toolset().findall(text)


def test_nothing_in_the_framework_names_a_tool_or_a_setting_of_the_toolset() -> None:
    found = {}
    for path in sources("fastrpc", endings=(".py", ".pyx", ".pxd", ".pyi")):
        text = text_of(path)
        named = names_of_the_toolset(text)
        if path != "fastrpc/settings.py":
            named += re.findall("tools.agent", text)
        if named:
            found[path] = named
    assert not found


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
    modules = (
        "callers",
        "cli.http_command",
        "client.http.address",
        "client.http.connection",
        "client.http.wire",
        "client.urls",
        "human_input",
        "egress_proxy",
        "command_line",
        "errors",
        "globs",
        "unicode_forms",
        "processes",
        "processes.server_process",
        "redaction",
        "regular_files",
        "self_calls",
        "signed_requests",
        "settings",
        "storage",
        "storage.database",
        "subscriptions",
        "time_limit",
        "transports.http.endpoints",
        "typing_forms",
        "unix_sockets",
    )
    modules = tuple(f"fastrpc.{name}" for name in modules)
    for path in sources("tools"):
        for node in ast.walk(ast.parse(text_of(path))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                if name.split(".")[0] != "fastrpc" or name.startswith("fastrpc.tools"):
                    continue
                of_public = name.rpartition(".")[0] in modules and name not in LAYERS
                assert name in allowed or name in modules or of_public, f"{path} imports {name}"


def test_no_file_is_too_long() -> None:
    endings = (".py", ".pyx", ".c", ".pyi")
    paths = sources("fastrpc", "tools", "tests", "benchmarks", ".ci", endings=endings)
    lengths = {path: text_of(path).count("\n") for path in paths}
    assert lengths
    assert not {path: lines for path, lines in lengths.items() if lines > LONGEST_FILE}


def test_every_file_opens_with_its_promise() -> None:
    beginning = re.compile(r'(# distutils:.*\n|#!.*\n)?(r|f)?"""\S')
    bare = []
    for path in sources("fastrpc", "tools", "tests", ".ci", endings=(".py", ".pyx")):
        text = text_of(path)
        is_empty_package = os.path.basename(path) == "__init__.py" and not text.strip()
        if not is_empty_package and not beginning.match(text):
            bare.append(path)
    assert not bare, "no docstring at the top"


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
    public = set(re.findall(r"`(fastrpc\.[\w.]+)`", text_of("docs/api.md").partition("| name")[0]))
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
    page = text_of("docs/agent-tools.md")
    tests = "".join(text_of(path) for path in sources("tests"))
    for path in sources("tools/agent"):
        match = re.search(r'@tool\([^)]*name="(\w+)"', text_of(path), re.DOTALL)
        if match:
            assert f"`{match[1]}`" in page, f"docs/agent-tools.md does not list {match[1]}"
            assert match[1] in tests, f"no test calls {match[1]}"


HEAVY = ("typing", "inspect", "asyncio", "json", "re", "msgspec", "orjson", "dataclasses", "enum")


def without_site_packages(code: str) -> subprocess.CompletedProcess[str]:
    """Run code without what an editable install, or a .pth file, imports at the start."""
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(fastrpc.__file__))},
    )


def test_importing_the_package_imports_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); from fastrpc import Server, tool; Server('x'); "
        "print(sorted(set(sys.modules) - before))"
    )
    shown = without_site_packages(code)
    assert shown.returncode == 0, shown.stderr
    for heavy in HEAVY:
        assert f"'{heavy}'" not in shown.stdout, f"import fastrpc imports {heavy}"


def test_listing_the_agents_tools_imports_next_to_nothing() -> None:
    """It is what each desktop client waits for at its start."""
    import fastrpc.tools

    code = (
        "import sys; tools = sys.modules['fastrpc.tools'] = type(sys)('fastrpc.tools'); "
        f"tools.__path__ = {list(fastrpc.tools.__path__)}; "
        "from fastrpc.cli._assemble import load_toolset; tools = load_toolset('fastrpc.tools.agent'); "
        "print(len([tool.descriptor('2025-11-25') for tool in tools]), *sys.modules)"
    )
    shown = without_site_packages(code)
    assert shown.returncode == 0, shown.stderr
    count, *modules = shown.stdout.split()
    assert count == str(len(EFFECTS))
    assert not set(HEAVY) & set(modules)


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
            timeout=110,
        )
        assert done.returncode == 0, f"{path}, block {number + 1}:\n{block}\n{done.stderr}"


def test_the_readme_is_read_in_three_minutes() -> None:
    assert len(text_of("README.md").encode()) <= 7000


def test_the_readmes_call_prints_what_the_readme_says(tmp_path) -> None:
    readme = text_of("README.md")
    (tmp_path / "demo.py").write_text(
        re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[1]
    )
    command, shown = re.search(r"^\$ (fastrpc call .*)\n(.*)$", readme, re.MULTILINE).groups()
    arguments = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.stdout.strip() == shown
    assert done.returncode == 0


@pytest.mark.parametrize("path", ["README.md", *sources("docs", endings=(".md",))])
def test_links_between_the_documents_lead_somewhere(path: str) -> None:
    folder = os.path.dirname(os.path.join(REPOSITORY, path))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(path)):
        if "://" not in target:
            assert os.path.exists(os.path.join(folder, target)), f"{path} links to {target}"
