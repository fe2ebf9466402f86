"""Each file in examples/ is loaded and driven once: what it says in its docstring is what it does.

A new example needs its check here; one without fails.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(REPOSITORY, "examples")
SCRIPTS = ("contracts_session",)  # serves nothing itself: tests/tools/test_contracts_session.py
EXAMPLES = sorted(
    name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and name[:-3] not in SCRIPTS
)

OPTIONS: dict[str, dict[str, Any]] = {
    "asking": {
        "on_elicit": lambda params: {"value": "bread"} if "done" in params["message"] else {"name": "Ada"},
        "on_sample": "In short: yes.",
        "roots": ["file:///work"],
    }
}
"""What the client of an example is given besides: answers to what it asks."""

Check = Callable[[Client], Coroutine[Any, Any, None]]


async def agent_loop(client: Client) -> None:
    assert (await client.call("follow", page=1)).structured == {"result": 10}  # the loops: below


async def asking(client: Client) -> None:
    assert (await client.call("book")).text == "Table 1, inside, for Ada and 1 more."
    assert (await client.call("book")).text.startswith("Table 2, ")  # held once, though asked twice
    assert (await client.call("shorten", text="A long story.")).text == "In short: yes."
    assert (await client.call("plan")).text == "bread in file:///work"


async def changes(client: Client) -> None:
    async with client.listen(tools=True, uris=["sensor://readings"]) as heard:
        assert (await client.call("learn", name="colour", answer="blue")).text == "colour is there now"
        assert (await heard.next())["method"] == "notifications/tools/list_changed"
        assert (await client.call("colour")).text == "blue"
        await client.call("measure", times=1, pause=0.01)
        assert (await heard.next())["params"]["uri"] == "sensor://readings"
        assert (await client.read("sensor://readings")).text
        await client.call("forget", name="colour")
        assert "colour" not in [tool["name"] for tool in await client.tools()]


async def compat(client: Client) -> None:
    assert (await client.call("lend", title="Emma", reader="Ada")).text == "Emma goes to Ada"
    second = await client.call("lend", title="Emma", reader="Bob")
    assert second.is_error
    assert "Ada has it" in second.text
    assert (await client.read("shelf://Emma")).text == "Ada"
    assert "tired" in (await client.prompt("recommend", mood="tired")).text


async def content(client: Client) -> None:
    assert [block["type"] for block in (await client.call("pixel")).content] == ["text", "image"]
    assert (await client.call("beep")).content[0]["mimeType"] == "audio/wav"
    assert [block["type"] for block in (await client.call("report")).content] == ["resource", "resource_link"]
    assert (await client.call("weather")).structured == {"celsius": 21.5, "sky": "clear"}
    assert (await client.call("lookup")).meta["example.org/source"] == "cache"


async def hooks(client: Client) -> None:
    assert int((await client.call("file_size", path="README.md")).text) > 0
    outside = await client.call("file_size", path="../../secret")
    assert outside.is_error
    assert "outside of the folder" in outside.text
    missing = await client.call("file_size", path="nothing-here")
    assert missing.text == "there is no file nothing-here"
    assert (await client.call("calls")).structured["file_size"] == 3


async def lifespan(client: Client) -> None:
    assert (await client.call("note", text="one")).text == "1"
    assert (await client.call("note", text="two")).text == "2"
    assert (await client.call("notes")).structured == {"result": ["one", "two"]}


async def mount(client: Client) -> None:
    assert (await client.call("clock_minutes", hours=2, minutes=5)).text == "125"
    assert (await client.call("words_count", text="'two words'")).text == "2"
    assert (await client.call("words_longest", text="a longer one")).text == "longer"
    assert (await client.read("words://stop")).text == "a\nthe\nof"


async def progress(client: Client) -> None:
    reports: list[dict[str, Any]] = []
    assert (await client.call("bake", on_progress=reports.append, loaves=3)).text == "3 loaves"
    assert reports[-1]["message"] == "all baked"
    assert (await client.call("grind", sacks=2)).text == "2 sacks"
    await client.set_level("debug")
    await client.call("sell", loaves=12)
    assert [(log["level"], log["data"]) for log in client.logs[-2:]] == [
        ("warning", "12 loaves in one go"),
        ("info", "sold 12"),
    ]


async def prompts(client: Client) -> None:
    assert (await client.prompt("explain", topic="tides")).text == "Explain tides in three sentences."
    review = await client.prompt("review", language="c", file="main.c", strict=True)
    assert [message["role"] for message in review.messages] == ["user", "assistant"]
    assert review.messages[0]["content"]["text"].endswith("Be strict.")
    assert (await client.complete("review", "file", "ma", {"language": "c"})).values == ["main.c", "main.h"]
    assert (await client.complete("review", "language", "p")).values == ["python"]


async def proxy(client: Client) -> None:
    assert (await client.call("front")).text == "the server in front"
    assert (await client.call("clock_minutes", hours=1)).text == "60"
    refused = await client.call("words_count", text="x" * 20_000)
    assert refused.is_error
    assert "10,000" in refused.text


async def resources(client: Client) -> None:
    assert (await client.read("notes://welcome")).contents[0]["mimeType"] == "text/markdown"
    assert (await client.read("notes://greetings/fr?loud=true")).text == "BONJOUR"
    assert "Resources: what a client may read" in (await client.read("source://resources.py")).text
    assert len([entry for entry in await client.resources() if entry["uri"].startswith("squares://")]) == 500
    assert '"square":49' in (await client.read("squares://7")).text.replace(" ", "")
    assert (await client.call("first_line", uri="notes://welcome")).text == "# Welcome"


async def unix_socket(client: Client) -> None:
    assert (await client.call("word_count", text="one two three")).text == "3"


CHECKS: dict[str, Check] = {
    "agent_loop": agent_loop,
    "asking": asking,
    "changes": changes,
    "compat": compat,
    "content": content,
    "hooks": hooks,
    "lifespan": lifespan,
    "mount": mount,
    "progress": progress,
    "prompts": prompts,
    "proxy": proxy,
    "resources": resources,
    "unix_socket": unix_socket,  # its transport: tests/integration/test_own_transport.py
}


def load(name: str) -> Any:
    """Return an example's server, freshly imported."""
    specification = importlib.util.spec_from_file_location(
        f"example_{name}", os.path.join(FOLDER, f"{name}.py")
    )
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module.mcp if name == "compat" else module.app


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_it_says(name: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKS_ROOT", REPOSITORY)
    monkeypatch.setenv("PYTHONPATH", REPOSITORY)  # for the server behind the proxy
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(logging.getLogger("shop"), "handlers", [])  # one bridge for each load is one
    app = load(name)
    check = CHECKS.get(name)
    assert check is not None, f"examples/{name}.py has no check in tests/unit/test_examples.py"

    async def run() -> None:
        async with Client(app, version=version, **OPTIONS.get(name, {})) as client:
            await check(client)

    try:
        asyncio.run(asyncio.wait_for(run(), 30))
    finally:
        for handler in logging.getLogger("shop").handlers[:]:
            handler.close()  # while a bridge is there, no call of this process is made by its connection


AGENT_LOOP = os.path.join(FOLDER, "agent_loop.py")
WITHOUT_MCP = """
import runpy, sys
sys.modules["mcp"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("is_installed", [True, False])
def test_an_agents_loop_says_what_each_client_costs(
    is_installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", REPOSITORY)
    program = [AGENT_LOOP] if is_installed else ["-c", WITHOUT_MCP, AGENT_LOOP]
    done = subprocess.run([sys.executable, *program, "20"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    *measured, last = done.stdout.splitlines()
    if is_installed:
        measured.append(last)
    else:
        assert last.startswith("The official client is not installed")
    assert [line.partition(":")[0] for line in measured] == [
        "fastrpc, no event loop",
        "fastrpc, in an event loop",
        *["the official client"][:is_installed],
    ]
    assert all(re.search(r": +20 calls in \d+\.\d\d s, [\d,]+ µs each$", line) for line in measured)


def test_each_check_has_its_example() -> None:
    assert set(CHECKS) <= set(EXAMPLES)
