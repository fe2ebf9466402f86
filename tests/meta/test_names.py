"""Names: no two classes have the same name, and names that were replaced do not come back."""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable

from meta.test_house import module_of, sources, text_of

SHARED = {
    "Audio",
    "Client",
    "Context",
    "ElicitResult",
    "Image",
    "Message",
    "Prompt",
    "PromptResult",
    "Provider",
    "Resource",
    "ResourceTemplate",
    "Sample",
    "Server",
    "Tool",
    "ToolResult",
}
"""Public classes that compat has by the same name, since FastMCP or the official SDK has them."""

REPLACED = (
    "LATEST_LEGACY",
    "LEGACY_VERSIONS",
    "MODERN",
    "MOST_ALONE",
    "NotedCall",
    "catch_up",
    "last_alone",
    "legacy_tails",
    "lent_to",
    "modern",
    "modern_tails",
    "refusal_kept",
    "way_to",
)
"""Identifiers of the framework that have another name now."""

ALIKE = {
    ("fastrpc", "client", "client_requests"): "the client; what a server asks its client",
    ("fastrpc", "settings", "settings_files"): "which settings there are; the files that they are read from",
    ("fastrpc/_core", "call", "call_gate"): "`call.h` is the parsed call that the other modules serve",
    ("fastrpc/_core", "call", "call_info"): "the same",
    ("fastrpc/_core", "call", "call_result"): "the same",
    ("fastrpc/_core", "call", "call_template"): "the same",
    ("fastrpc/_core", "call", "call_writer"): "the same",
    ("fastrpc/engine", "outbound", "outbound_channel"): "what a connection sends; what a running call sends",
    ("fastrpc/transports/http", "access", "access_token"): "the access log; the token as a call sees it",
}
"""Modules of one folder whose names differ by a suffix only, and what each is."""


def classes_in(path: str) -> set[str]:
    """The names of the classes that a module defines, compiled ones included."""
    text = text_of(path)
    if path.endswith(".pyx"):
        return set(re.findall(r"^(?:cdef )?class (\w+)", text, re.MULTILINE))
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}


def shared_names(defined: dict[str, set[str]]) -> dict[str, list[str]]:
    """The names that classes of several modules have, with the modules."""
    places = defaultdict(list)
    for module, names in sorted(defined.items()):
        for name in names:
            places[name].append(module)
    return {name: modules for name, modules in places.items() if len(modules) > 1}


def test_each_class_has_a_name_of_one_class() -> None:
    defined = {module_of(path): classes_in(path) for path in sources("fastrpc", endings=(".py", ".pyx"))}
    assert len(defined) > 300
    found = shared_names(defined)
    assert {name: found[name] for name in sorted(found) if name not in SHARED} == {}
    assert sorted(SHARED - found.keys()) == [], "these are of one class now"


def test_public_classes_of_the_framework_share_names_with_compat_only() -> None:
    defined = {module_of(path): classes_in(path) for path in sources("fastrpc")}
    native = {module: names for module, names in defined.items() if not module.startswith("fastrpc.compat")}
    found = shared_names(native)
    assert found == {"Client": ["fastrpc.client.client", "fastrpc.testing"]}


def names_in_folders(package: str) -> dict[str, list[str]]:
    """The names of the modules and packages in each folder of a package."""
    found = defaultdict(list)
    for path in sources(package.replace(".", "/")):
        above, _, name = module_of(path).rpartition(".")
        if name != package.rpartition(".")[2]:
            found[above].append(name)
    return found


def test_modules_of_a_folder_of_compat_can_be_told_apart() -> None:
    folders = {**names_in_folders("fastrpc.compat"), **names_in_folders("fastrpc.swap")}
    assert len(folders) > 15
    alike = {}
    for folder, names in folders.items():
        words = [name.split("_")[0].removesuffix("s") for name in names]
        alike[folder] = [name for name, word in zip(names, words, strict=True) if words.count(word) > 1]
    assert {folder: names for folder, names in alike.items() if names} == {}


def test_a_folder_of_compat_has_few_modules() -> None:
    folders = names_in_folders("fastrpc.compat")
    modules = {
        folder: [name for name in names if f"{folder}.{name}" not in folders]
        for folder, names in folders.items()
    }
    assert {folder: len(names) for folder, names in modules.items() if len(names) > 12} == {}


def test_the_check_sees_a_name_of_two_classes() -> None:
    assert shared_names({"a": {"One", "Two"}, "b": {"Two"}}) == {"Two": ["a", "b"]}


def identifiers_of(text: str) -> set[str]:
    """The identifiers of a Python or Cython module, without those in comments and texts."""
    bare = re.sub(r'"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*', "", text)
    return set(re.findall(r"[^\W\d]\w*", bare))


def test_names_that_were_replaced_do_not_come_back() -> None:
    paths = sources("fastrpc", endings=(".py", ".pyi", ".pyx", ".pxd"))
    back = {path: names for path in paths if (names := identifiers_of(text_of(path)) & {*REPLACED})}
    assert paths
    assert back == {}


def test_that_check_reads_identifiers_only() -> None:
    assert identifiers_of('x.way_to(y)  # lent_to "modern"\n') == {"x", "way_to", "y"}


def alike(paths: Iterable[str]) -> list[tuple[str, str, str]]:
    """The modules of one folder of which one name is another one with a suffix: a plural, or one more word.

    Private modules may have the name of a public one and a word: they are its parts (`dev`, `_dev_view`).
    """
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        place = os.path.splitext(path)[0].removesuffix("/__init__")
        folders[os.path.dirname(place)].add(os.path.basename(place))
    return [
        (folder, name, other)
        for folder, names in sorted(folders.items())
        for name in sorted(names)
        for other in sorted(names)
        if other.lstrip("_") == f"{name.lstrip('_')}s"
        or (other.startswith(f"{name}_") and not name.startswith("_"))
    ]


def test_no_module_has_the_name_of_another_one_with_a_suffix() -> None:
    paths = sources("fastrpc", endings=(".py", ".pyx", ".pxd"))
    assert alike(path for path in paths if not path.startswith("fastrpc/compat/")) == sorted(ALIKE)


def test_modules_with_similar_names_are_found() -> None:
    paths = ["a/call.py", "a/_calls.py", "a/_call_parts.py", "a/folder.py", "a/folder_target/__init__.py"]
    assert alike(paths) == [("a", "call", "_calls"), ("a", "folder", "folder_target")]
    assert alike(["a/call.py", "b/calls.py", "a/recall.py", "a/callback.py"]) == []
