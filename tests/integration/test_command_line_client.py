"""`fastrpc list`, `tools` and `call`: every kind of target, and a terminal; real servers, real sessions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from support.command_line import SECONDS, assert_mistake, run
from support.terminal import on_terminal

SHOP = '''
import asyncio
import dataclasses
import enum
from typing import Literal

from fastrpc import Context, Server

app = Server("shop", instructions="Sells things.")
orders = {"7": "open"}


@dataclasses.dataclass
class Address:
    street: str
    city: str
    floor: int = 0
    size: Literal["small", "large"] = "small"
    gift: bool = False


@app.resource("orders://all", mime_type="text/plain")
def all_orders() -> str:
    """All orders."""
    return ", ".join(orders)


@app.resource("pictures://dot", mime_type="image/png")
def dot() -> bytes:
    return b"\\x89PNG"


@app.resource("orders://{id}")
def order(id: str) -> str:
    """The state of an order."""
    return orders[id]


@app.prompt
def complain(id: str, tone: Literal["kind", "firm"] = "kind") -> str:
    """A letter about an order that is late."""
    return f"Write a {tone} letter about order {id}."


@app.tool(effect="write")
async def ship(id: str, context: Context) -> str:
    """Ship an order."""
    answer = await context.elicit("Where to?", Address)
    if not answer.accepted:
        return f"not shipped: {answer.action}"
    return repr(answer.data)


@app.tool
async def confirm(context: Context) -> str:
    return (await context.elicit("Really?")).action


@app.tool
async def pack(context: Context) -> str:
    """Report progress, and log."""
    context.progress(1, 4, "in paper \\x1b[2Jx")
    await asyncio.sleep(0.3)
    context.log("in a box\\x1b]0;title\\x07")
    context.progress(3, 4, "nearly")
    await asyncio.sleep(0.3)
    return "packed"


@app.tool
def price() -> dict[str, int]:
    return {"cents": 5}


@app.tool
def die() -> str:
    import os, sys
    sys.stderr.write("something is wrong\\n")
    sys.stderr.flush()
    os._exit(9)
'''

MOUNTING = """
from fastrpc import Server
from shop import app as shop

app = Server("mall")
app.mount(shop, prefix="shop")

@app.tool
def open_doors() -> str:
    return "open"
"""


@pytest.fixture
def shop(place: Any) -> str:
    (place / "shop.py").write_text(SHOP)
    return "shop.py"


SERVE = [sys.executable, "-m", "fastrpc", "serve"]


# --- targets ------------------------------------------------------------------------------------------


def test_list_shows_tools_with_parameters_resources_templates_and_prompts(place: Any, shop: str) -> None:
    done = run(place, "list", shop)
    assert (done.returncode, done.stderr) == (0, "")
    assert "tools:\n  ship (write): Ship an order.\n      id  string  required\n" in done.stdout
    assert "resources:\n  orders://all (text/plain): All orders.\n" in done.stdout
    assert "resource templates:\n  orders://{id}: The state of an order.\n" in done.stdout
    assert (
        "prompts:\n  complain: A letter about an order that is late.\n      id    required\n" in done.stdout
    )
    whole = json.loads(run(place, "list", "--json", shop).stdout)
    assert list(whole) == ["tools", "resources", "resourceTemplates", "prompts"]
    assert whole["tools"][0]["inputSchema"]["required"] == ["id"]
    assert [entry["uriTemplate"] for entry in whole["resourceTemplates"]] == ["orders://{id}"]


@pytest.mark.parametrize("command", ["list", "tools"])
def test_mounted_tools_are_listed_and_called(place: Any, shop: str, command: str) -> None:
    (place / "mall.py").write_text(MOUNTING)
    shown = run(place, command, "mall.py").stdout
    assert "shop_ship" in shown
    assert "open_doors" in shown
    assert run(place, "call", "mall.py", "shop_price").stdout == '{"cents":5}\n'


@pytest.mark.parametrize(
    "words",
    [
        ["shop.py", "price"],
        ["price", "--target", "shop.py"],
        ["shop", "price"],
        ["price", "--", *SERVE, "shop.py"],
        ["price", "--command", f"{sys.executable} -m fastrpc serve shop.py"],
        ["mine", "price"],
        ["mine", "price", "--protocol", "2025-06-18"],
        ["other", "price", "--config", "servers.json"],
    ],
)
def test_a_target_is_a_file_a_module_a_command_or_a_name_in_a_file_with_servers(
    place: Any, shop: str, words: list[str]
) -> None:
    entry = {
        "command": "${PYTHON}",
        "args": ["-m", "fastrpc", "serve", "${FILE:-shop.py}"],
        "cwd": str(place),
    }
    (place.parent / ".mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    (place / "servers.json").write_text(json.dumps({"servers": {"other": entry}}))
    done = run(place, "call", *words, PYTHON=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"cents":5}\n', "")


def test_what_cannot_be_a_target_is_one_line_and_exit_code_2(place: Any, shop: str) -> None:
    entry = {"command": "x", "args": ["${NO_SUCH_VARIABLE}"]}
    (place / ".mcp.json").write_text(json.dumps({"mcpServers": {"github": entry, "linear": entry}}))
    (place / "empty.json").write_text(json.dumps({"mcpServers": {}}))
    for words, said in (
        (
            ["list", "githbu"],
            "no server in",
        ),
        (["list", "githbu"], "did you mean 'github'?"),
        (
            ["list", "github"],
            "github: args: ${NO_SUCH_VARIABLE}: the environment variable NO_SUCH_VARIABLE is not set",
        ),
        (["list", "gitlab", "--config", ".mcp.json"], "has no server 'gitlab'; did you mean 'github'?"),
        (["list", "zzz", "--config", ".mcp.json"], "has no server 'zzz'; it has github, linear"),
        (["list", "zzz", "--config", "empty.json"], "has no server 'zzz'; it has none"),
        (["list", "--config", "missing.json", "x"], "missing.json: No such file"),
        (["list", "--config", ".mcp.json"], "--config: name a server in this file as the target"),
        (["list", "--"], "a command is needed after --"),
        (["list", "shop.py", "--", "x"], "a command is given already; what is 'shop.py'?"),
        (["list", "--command", "'"], "--command: No closing quotation"),
        (["list", "--protocol", "1999-01-01", shop], "version: expected one of"),
        (["call", "shop.py"], "a tool's name is needed after shop.py"),
        (["call", shop, "shpi"], "no tool 'shpi'; did you mean 'ship'?"),
        (["call", shop, "--prompt", "complian"], "no prompt 'complian'; did you mean 'complain'?"),
        (["call", shop, "--prompt", "complain", "tune=firm"], "no argument 'tune'; did you mean 'tone'?"),
        (["call", shop, "--resource", "orders://all", "x=1"], "a resource takes no arguments"),
        (["call", shop, "--resource", "x://", "--prompt", "x"], "either --resource or --prompt"),
    ):
        assert_mistake(run(place, *words), said)


def test_a_command_that_cannot_start_or_dies_is_named_with_its_last_words(place: Any, shop: str) -> None:
    dying = [sys.executable, "-c", "import sys; sys.exit('no licence')"]
    done = run(place, "list", "--", *dying)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is lost: it ended with exit code 1" in done.stderr
    assert done.stderr.count("no licence") == 1
    done = run(place, "call", "x", "--", *dying)
    assert done.returncode == 1
    assert done.stderr.count("no licence") == 1  # passed on as it came, and not once more
    done = run(place, "list", "--", "/no/such/program")
    assert done.returncode == 1
    assert "/no/such/program" in done.stderr
    done = run(place, "call", shop, "die")
    assert done.returncode == 1
    lost = "fastrpc: the connection to the server shop.py is lost: it ended with exit code 9\n"
    assert done.stderr.endswith(f"something is wrong\n{lost}")


# --- what is called -----------------------------------------------------------------------------------


def test_call_reads_resources_and_gets_prompts(place: Any, shop: str) -> None:
    assert run(place, "call", shop, "--resource", "orders://7").stdout == "open\n"
    assert run(place, "call", "--resource", "orders://all", "--target", shop).stdout == "7\n"
    done = subprocess.run(
        [sys.executable, "-m", "fastrpc", "call", shop, "--resource", "pictures://dot"],
        cwd=place,
        capture_output=True,
        timeout=SECONDS,
    )
    assert done.stdout == b"\x89PNG"
    missing = run(place, "call", shop, "--resource", "orders://al")
    assert missing.returncode == 1
    prompt = run(place, "call", shop, "--prompt", "complain", "id=7", "tone=firm")
    assert prompt.stdout == "user: Write a firm letter about order 7.\n"
    whole = run(place, "call", shop, "--prompt", "complain", "--arguments", '{"id": "8"}', "--json")
    assert json.loads(whole.stdout)["messages"][0]["role"] == "user"


def test_a_uri_in_place_of_the_tool_is_read(place: Any, shop: str) -> None:
    assert run(place, "call", shop, "orders://7").stdout == "open\n"
    assert run(place, "call", "orders://all", "--target", shop).stdout == "7\n"
    server = f"{sys.executable} -m fastrpc serve {shop}"
    assert run(place, "call", "orders://7", "--command", server).stdout == "open\n"
    unknown = run(place, "call", shop, "orders://7/x?a=b")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "orders://7/x?a=b" in unknown.stderr
    for more in (["x=1"], ["--arguments", "{}"], ['{"x": 1}']):
        assert_mistake(run(place, "call", shop, "orders://7", *more), "a resource takes no arguments")


def test_the_arguments_may_be_one_json_object(place: Any, shop: str, words: str) -> None:
    assert run(place, "call", words, "word_count", '{"text": "a b", "times": 2}').stdout == "4\n"
    assert run(place, "call", "word_count", '{"text": "a=b"}', "--target", words).stdout == "1\n"
    prompt = run(place, "call", shop, '{"id": "8"}', "--prompt", "complain")
    assert prompt.stdout == "user: Write a kind letter about order 8.\n"
    by_hand = 'call word_count {"text": "a b"}\ncall word_count \'{"text": "a"}\' times=2\n'
    done = run(place, "repl", words, text=by_hand)
    assert done.stdout == "2\n"
    assert "give either arguments or key=value, not both ('times=2')" in done.stderr
    for wrong, said in (
        (['{"text": "a"}', "times=2"], "give either arguments or key=value, not both ('times=2')"),
        (["[1]"], "arguments: expected an object, got list"),
        (["{text: 1}"], "arguments: Expecting property name"),
        (['{"text": NaN}'], "arguments: "),
    ):
        assert_mistake(run(place, "call", words, "word_count", *wrong), said)


def test_json_prints_the_whole_result(place: Any, shop: str) -> None:
    done = run(place, "call", shop, "price", "--json")
    assert json.loads(done.stdout)["structuredContent"] == {"cents": 5}
    assert "contents" in json.loads(run(place, "call", shop, "--resource", "orders://7", "--json").stdout)


def test_the_former_option_for_arguments_works_and_says_its_new_name(place: Any, words: str) -> None:
    done = run(place, "call", "word_count", "--json", '{"text": "a b"}', "--target", words)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert "--json JSON is called --arguments JSON now" in done.stderr


def test_logs_go_to_stderr_and_progress_only_to_a_terminal(place: Any, shop: str) -> None:
    done = run(place, "call", shop, "pack")
    assert (done.returncode, done.stdout) == (0, "packed\n")
    assert "info: in a box" in done.stderr
    assert "nearly" not in done.stderr
    assert "\x1b" not in done.stderr
    quiet = run(place, "call", shop, "pack", "--log-level", "error")
    assert "in a box" not in quiet.stderr


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_without_a_terminal_a_question_is_declined_and_that_is_said(
    place: Any, shop: str, version: str
) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "fastrpc", "call", shop, "ship", "id=7", "--protocol", version],
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        start_new_session=True,
    )
    assert process.stdout == "not shipped: decline\n"
    assert (
        "the server asks 'Where to?': there is no terminal to ask on; the question is declined"
        in process.stderr
    )


# --- on a terminal ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_a_form_is_asked_field_by_field_on_the_terminal(place: Any, shop: str, version: str) -> None:
    with on_terminal(place, "call", shop, "ship", "id=7", "--protocol", version) as there:
        assert "The server asks: Where to?" in there.until("street (text): ")
        there.type("Main Road 5\n")
        there.until("city (text): ")
        there.type("سلا\n")
        there.until("floor (whole number) [0]: ")
        there.type("many\n")
        there.until("expected a whole number")
        there.until("floor (whole number) [0]: ")
        there.type("3\n")
        there.until("1. small\r\n  2. large\r\nsize (1 to 2) [small]: ")
        there.type("2\n")
        there.until("gift (yes or no) [no]: ")
        there.type("\n")
        code, out = there.end()
    assert code == 0
    assert out == "Address(street='Main Road 5', city='سلا', floor=3, size='large', gift=False)\n"


@pytest.mark.parametrize(
    ("typed", "action"), [("!decline\n", "decline"), ("!cancel\n", "cancel"), ("\x04", "cancel")]
)
def test_a_form_can_be_declined_and_cancelled(place: Any, shop: str, typed: str, action: str) -> None:
    with on_terminal(place, "call", shop, "ship", "id=7") as there:
        there.until("street (text): ")
        there.type("Main Road\n")
        there.until("city (text): ")
        there.type(typed)
        assert there.end() == (0, f"not shipped: {action}\n")


@pytest.mark.parametrize(("typed", "action"), [("yes\n", "accept"), ("what\nno\n", "decline")])
def test_a_form_without_fields_is_a_yes_or_a_no(place: Any, shop: str, typed: str, action: str) -> None:
    with on_terminal(place, "call", shop, "confirm") as there:
        there.until("Accept? yes or no: ")
        there.type(typed)
        assert there.end() == (0, f"{action}\n")


def test_ctrl_c_at_a_question_ends_the_call(place: Any, shop: str) -> None:
    with on_terminal(place, "call", shop, "ship", "id=7") as there:
        there.until("street (text): ")
        there.type("\x03")
        assert there.end() == (130, "")


def test_progress_is_a_bar_that_logs_and_the_result_replace(place: Any, shop: str) -> None:
    with on_terminal(place, "call", shop, "pack") as there:
        first = there.until("in paper ")
        assert "[########......................]  25%" in first
        logged = there.until("in a box")
        assert "\x1b[2J" not in logged  # what the server writes cannot move the cursor
        assert "\r\x1b[Kinfo" in logged
        assert "[######################........]  75% nearly\r" in there.until("nearly\r")
        there.until("\r\x1b[K")
        assert there.end() == (0, "packed\n")


def test_an_interrupted_call_is_cancelled_at_the_server(place: Any) -> None:
    (place / "slow.py").write_text(
        "import asyncio\nfrom fastrpc import tool\n@tool\nasync def wait() -> None:\n"
        "    open('began', 'w').close()\n    try:\n        await asyncio.sleep(60)\n"
        "    except asyncio.CancelledError:\n        open('cancelled', 'w').close()\n        raise\n"
    )
    with on_terminal(place, "call", "slow.py", "wait") as there:
        deadline = time.monotonic() + SECONDS
        while not (place / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        there.process.send_signal(signal.SIGINT)
        assert there.end() == (130, "")
    assert (place / "cancelled").exists()


def test_the_server_that_asks_in_the_docs_can_be_called(place: Any) -> None:
    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "asking.md")
    with open(page, encoding="utf-8") as file:
        (code,) = [
            block
            for block in re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
            if "def ship" in block
        ]
    (place / "shop.py").write_text(code)
    with on_terminal(place, "call", "shop.py", "ship", "id=7") as there:
        there.until("street (text): ")
        there.type("Main Road 5\n")
        there.until("city (text): ")
        there.type("Oslo\n")
        there.until("[###############...............]  50% packed")
        assert there.end() == (0, "on its way to Oslo\n")


def test_a_configuration_is_a_target_with_all_its_servers(place: Any, shop: str) -> None:
    good = {"command": sys.executable, "args": ["-m", "fastrpc", "serve", "shop.py"], "cwd": str(place)}
    bad = {"command": sys.executable, "args": ["-c", "raise SystemExit('no database')"]}
    (place / "mcp.json").write_text(json.dumps({"mcpServers": {"good": good, "bad": bad}}))
    called = run(place, "call", "mcp.json", "good_price")
    assert (called.returncode, called.stdout) == (0, '{"cents":5}\n')
    assert "no database" in called.stderr
    assert "(bad) cannot be used: it ended with exit code 1" in called.stderr
    served = run(place, "serve", "mcp.json")
    assert served.returncode == 2
    assert served.stderr.endswith("'fastrpc gateway mcp.json' serves the servers of a configuration\n")
