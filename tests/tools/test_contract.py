"""The agent's tools against what was published of them.

A real server is held against the table in the package, as `fastrpc selftest` does; the table is held against
the page that published the tools, read here word for word, in both languages. The page is not in the
repository: it lies in ``../shared/seeds`` beside it, or where ``FASTRPC_SEEDS_DIR`` says.
"""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from fastrpc.tools.agent._contract import CONTRACT
from support.protocol import SESSION_VERSIONS, STATELESS
from support.stdio import STATELESS_META, serve

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.join(os.path.dirname(REPOSITORY), "shared")
ENGLISH, ARABIC = "000", "001"
KINDS = {"shell", "filesystem", "web", "search", "workflow", "interaction"}

# Optional parameters that came after the page.
LATER = {"ReadDocs": {"offset"}, "ReadBgOutput": {"wait_ms"}}
EFFECTS = {
    "read": ("ReadImage", "ReadBgOutput", "ListBgTasks", "InvokeSkill"),
    "network": ("ReadDocs", "WebSearch"),
    "write": ("TaskManager", "PlanMode", "SetCallback", "AskUserQuestion"),
    "exec": ("Bash", "BackgroundBash", "KillBgTask"),
}
HINTS = {
    "read": {"readOnlyHint": True},
    "network": {"readOnlyHint": True, "openWorldHint": True},
    "write": {"destructiveHint": False},
    "exec": {"destructiveHint": True, "openWorldHint": True},
}

Page = dict[str, dict[str, Any]]


def seed_text(number: str) -> str:
    """Return the text of a page; skip where it is not."""
    folder = os.environ.get("FASTRPC_SEEDS_DIR") or os.path.join(SHARED, "seeds")
    if not os.environ.get("FASTRPC_SEEDS_DIR") and not os.path.isdir(folder):
        pytest.skip("no registry has the published pages; FASTRPC_SEEDS_DIR names the folder with them")
    found = [
        name for name in sorted(_names(folder)) if name.startswith(f"{number}_") and name.endswith(".txt")
    ]
    if not found:
        pytest.skip(f"the published page {number}_*.txt is not in {folder}; FASTRPC_SEEDS_DIR names another")
    with open(os.path.join(folder, found[0]), encoding="utf-8") as file:
        return file.read()


def _names(folder: str) -> list[str]:
    return os.listdir(folder) if os.path.isdir(folder) else []


def parse(text: str) -> Page:
    """Return the tools of a page in its order: description, properties in their order, required.

    The catalogue gives names, descriptions and the lists of parameters; the schema reference gives types.
    What the two say twice must agree.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    starts = [number for number, line in enumerate(lines) if _headline(line)]
    tools: Page = {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name = lines[start].split()[0]
        entry = _catalogue_entry(lines[start + 1 : end]) if name not in tools else None
        if entry is not None:
            tools[name] = entry
        else:
            _schema_entry(tools[name], lines[start + 1 : end])
    for name, tool in tools.items():
        assert list(tool["properties"]) == tool["names"], f"{name}: the two tables of the page differ"
        assert [key for key, (_, is_required, _) in tool["properties"].items() if is_required] == tool[
            "required"
        ]
    return tools


def _headline(line: str) -> bool:
    words = line.split()
    return len(words) == 2 and words[0].isalpha() and words[1] in KINDS


def _catalogue_entry(lines: list[str]) -> dict[str, Any]:
    description, parameters, required = lines[:3]
    return {
        "description": description,
        "names": _list_of(parameters),
        "required": _list_of(required),
        "properties": {},
    }


def _list_of(line: str) -> list[str]:
    _, colon, names = line.partition(":")
    assert colon, line
    return [name.strip() for name in names.split(",") if name.strip()]


def _schema_entry(tool: dict[str, Any], lines: list[str]) -> None:
    """Take over the lines ``name type required|optional description`` behind the table's heading."""
    for line in lines[1:]:
        match = re.fullmatch(
            r"(\w+) (string|integer|number|boolean|array|object) (required|optional) (.+)", line
        )
        if match is None:
            break  # the section that follows
        name, kind, status, description = match.groups()
        tool["properties"][name] = (kind, status == "required", description)


def parameters_of(page: Page) -> dict[str, Any]:
    return {name: (tool["properties"], tool["required"]) for name, tool in page.items()}


@pytest.fixture(scope="module")
def page() -> Page:
    return parse(seed_text(ENGLISH))


@pytest.fixture(scope="module")
def listed(tmp_path_factory: Any) -> dict[str, list[dict[str, Any]]]:
    """The list of a real server in each version, without a skill of this machine's user in it."""
    folder = tmp_path_factory.mktemp("home")
    environment: dict[str, str | None] = {
        name: None for name in os.environ if name.startswith(("TOOL_", "SKILL_", "FASTRPC_"))
    }
    environment |= {"TOOLS": None, "ADDITIONAL_SKILLS": None, "HOME": str(folder)}
    environment["FASTRPC_STATE_DIR"] = str(folder / "state")
    found = {}
    for version in (*SESSION_VERSIONS, STATELESS):
        with serve(environment=environment, folder=str(folder)) as server:
            if version == STATELESS:
                answer = server.request("tools/list", {"_meta": STATELESS_META})
            else:
                server.initialize(version)
                answer = server.request("tools/list")
            assert "nextCursor" not in answer["result"]
            found[version] = answer["result"]["tools"]
    return found


def published(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the page: a tool that has come since has nothing to be held against."""
    return [tool for tool in tools if tool["name"] in CONTRACT]


every_version = pytest.mark.parametrize("version", [*SESSION_VERSIONS, STATELESS])


def test_the_page_is_read_whole(page: Page) -> None:
    assert len(page) == 13
    assert sum(len(tool["properties"]) for tool in page.values()) == 26
    assert page["ListBgTasks"] == {
        "description": "List all background tasks with status and runtime",
        "names": [],
        "required": [],
        "properties": {},
    }
    assert page["Bash"]["properties"]["timeout"] == (
        "integer",
        False,
        "Timeout in milliseconds (default: 30000)",
    )


def test_the_arabic_page_publishes_the_same_tools_and_parameters(page: Page) -> None:
    """Every tool: the Arabic page publishes the same tools and parameters."""
    arabic = parse(seed_text(ARABIC))
    assert list(arabic) == list(page)
    assert parameters_of(arabic) == parameters_of(page)
    assert {name: tool["description"] for name, tool in arabic.items()} == {
        name: tool["description"] for name, tool in page.items()
    }


@every_version
def test_names_and_order_are_the_published_ones(listed: Any, version: str) -> None:
    """Every tool: names and order are those of the published page."""
    assert [tool["name"] for tool in published(listed[version])] == list(CONTRACT)


@every_version
def test_descriptions_are_the_published_ones(listed: Any, version: str) -> None:
    """Every tool: its description is the published one."""
    for tool in published(listed[version]):
        words = CONTRACT[tool["name"]]["description"]
        if tool["name"] == "InvokeSkill":
            assert tool["description"].startswith(f"{words}\n")
            catalogue = tool["description"].removeprefix(words).strip().split("\n")
            assert catalogue
            assert all(line.startswith("- ") for line in catalogue)
        else:
            assert tool["description"] == words


@every_version
def test_properties_types_and_required_are_the_published_ones(listed: Any, version: str) -> None:
    """Every tool: the list shows exactly the published properties, with type and description, and the
    published `required`.
    """
    for tool in published(listed[version]):
        name, schema = tool["name"], tool["inputSchema"]
        parameters = CONTRACT[name]["parameters"]
        required = sorted(key for key, parameter in parameters.items() if parameter["required"])
        assert schema["type"] == "object"
        assert sorted(schema.get("required", [])) == required, name
        shown = schema["properties"]
        assert [key for key in shown if key in parameters] == list(parameters), f"{name}: their order"
        assert set(shown) - set(parameters) == LATER.get(name, set()), f"{name}: more than was published"
        for key, parameter in parameters.items():
            assert shown[key]["type"] == parameter["type"], f"{name}.{key}"
            assert shown[key]["description"] == parameter["description"], f"{name}.{key}"
        for key in LATER.get(name, ()):
            assert key not in schema.get("required", [])


def test_a_tool_without_parameters_has_the_plain_schema(listed: Any) -> None:
    """Every tool: one without parameters has the schema `{"type":"object","properties":{}}`."""
    (tool,) = (tool for tool in listed[STATELESS] if tool["name"] == "ListBgTasks")
    assert tool["inputSchema"] == {"type": "object", "properties": {}}


def test_limits_are_in_the_schema_where_the_description_states_them(listed: Any) -> None:
    """``enum``, ``minimum`` and ``maximum``, and no documented value is left out.

    Every tool: `enum`, `minimum` and `maximum` are in the schema where the description states them, and
    nowhere else.
    """
    shown = {tool["name"]: tool["inputSchema"]["properties"] for tool in published(listed[STATELESS])}
    for name, parameter in (("TaskManager", "action"), ("PlanMode", "action"), ("SetCallback", "action")):
        schema = shown[name][parameter]
        documented = schema["description"].partition(": ")[2].split(", ")
        assert schema["enum"] == documented, name
    assert shown["ReadDocs"]["format"]["enum"] == ["text", "html", "markdown"]
    delay = shown["SetCallback"]["delay_seconds"]
    assert (delay["minimum"], delay["maximum"]) == (1, 3600)
    stated = {("ReadDocs", "format"), ("SetCallback", "delay_seconds")}
    stated |= {(name, "action") for name in ("TaskManager", "PlanMode", "SetCallback")}
    for name, properties in shown.items():
        for key, schema in properties.items():
            if (name, key) not in stated:
                assert not {"enum", "const", "pattern", "maxLength"} & set(schema), (
                    f"{name}.{key} is stricter"
                )


def test_effects_show_as_annotations(listed: Any) -> None:
    annotations = {tool["name"]: tool["annotations"] for tool in listed[STATELESS]}
    for effect, names in EFFECTS.items():
        for name in names:
            shown = annotations[name]
            assert {key: shown.get(key) for key in HINTS[effect]} == HINTS[effect], name
            assert shown.get("readOnlyHint", False) is (effect in ("read", "network")), name
            assert CONTRACT[name]["effect"] == effect


def test_the_table_in_the_package_says_what_the_page_says(page: Page) -> None:
    """Every tool: the table that `fastrpc selftest` compares with says what the published page says."""
    assert list(CONTRACT) == list(page)
    for name, published in page.items():
        kept = CONTRACT[name]
        assert kept["description"] == published["description"]
        assert list(kept["parameters"]) == list(published["properties"])
        for key, (kind, required, description) in published["properties"].items():
            assert kept["parameters"][key] == {"type": kind, "required": required, "description": description}
        assert set(kept.get("extras", ())) == LATER.get(name, set())


def test_a_page_that_contradicts_itself_is_noticed() -> None:
    text = seed_text(ENGLISH)
    with pytest.raises(AssertionError, match="tables of the page differ"):
        parse(text.replace("file_path string required", "path string required"))
    changed = parse(
        text.replace("task_id integer required The task ID to kill", "task_id string required To kill")
    )
    assert changed["KillBgTask"]["properties"] == {"task_id": ("string", True, "To kill")}
