"""`fastrpc swap FILE`: the imports of files that were written for FastMCP or the official SDK, rewritten."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from support.compat_names import without_names

from fastrpc.__main__ import main
from fastrpc.compat import context, fastmcp, mcp, server
from fastrpc.swap import modules
from fastrpc.swap.rewriting import Rewritten, rewrite

FASTMCP, SDK = "fastrpc.compat.fastmcp", "fastrpc.compat.mcp"


def rewritten(text: str) -> str:
    return rewrite(text.encode()).source.decode()


def missing(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.name) for each in rewrite(text.encode()).missing]


CASES = {
    "from fastmcp import FastMCP": f"from {FASTMCP} import FastMCP",
    "from fastmcp import FastMCP as F, Context": f"from {FASTMCP} import FastMCP as F, Context",
    "from fastmcp.server.context import Context": f"from {FASTMCP} import Context",
    "from fastmcp.utilities.types import Image": f"from {FASTMCP} import Image",
    "from mcp.server.fastmcp import FastMCP": f"from {SDK} import FastMCP",
    "from mcp.server.fastmcp.utilities.types import Image": f"from {SDK} import Image",
    "from mcp.server.mcpserver import MCPServer": f"from {SDK} import MCPServer",
    "from mcp import ClientSession": f"from {SDK} import ClientSession",
    "from mcp.client.stdio import stdio_client": f"from {SDK} import stdio_client",
    "from mcp.shared.exceptions import McpError": f"from {SDK} import McpError",
    # names of annotations
    "from mcp.server.context import CallNext, ServerRequestContext": (
        "from fastrpc.compat.type_names import CallNext, ServerRequestContext"
    ),
    # modules
    "import fastmcp": f"import {FASTMCP} as fastmcp",
    "import fastmcp as fm": f"import {FASTMCP} as fm",
    "import mcp": f"import {SDK} as mcp",
    "import mcp.server.stdio": f"import {SDK} as mcp",
    "import mcp.server.stdio as s": f"import {SDK} as s",
    "import os, fastmcp, sys": f"import os, {FASTMCP} as fastmcp, sys",
    "from mcp.server.fastmcp.prompts import base": "from fastrpc.compat import mcp as base",
    "from mcp.server import stdio": "from fastrpc.compat import mcp as stdio",
    "from fastmcp.server import middleware as m": "from fastrpc.compat import fastmcp as m",
    # names of two modules
    "from mcp import ClientSession, types": f"from {SDK} import ClientSession\nfrom mcp import types",
    "from mcp.server.fastmcp import FastMCP, Icon": f"from {SDK} import FastMCP\nfrom mcp.types import Icon",
    "from mcp import SamplingRole, McpError": f"from mcp import SamplingRole\nfrom {SDK} import McpError",
    # stars: the names that the original brings
    "from mcp.server.fastmcp import *": (
        f"from {SDK} import Audio, Context, FastMCP, Image\nfrom mcp.types import Icon"
    ),
    # within other statements
    "if x: from fastmcp import Context": f"if x: from {FASTMCP} import Context",
    "from mcp.server.fastmcp import Icon, Context; x = 1": (
        f"from mcp.types import Icon; from {SDK} import Context; x = 1"
    ),
    "def f():\n    from mcp import types, McpError": (
        f"def f():\n    from mcp import types\n    from {SDK} import McpError"
    ),
    "try:\n    from fastmcp import FastMCP\nexcept E:\n    from mcp.server.fastmcp import FastMCP": (
        f"try:\n    from {FASTMCP} import FastMCP\nexcept E:\n    from {SDK} import FastMCP"
    ),
    "from \\\n  fastmcp import \\\n  Context": f"from \\\n  {FASTMCP} import \\\n  Context",
    # the SDK's types and the rest of it
    "import mcp.types as types\nimport mcp.server.stdio": f"import mcp.types as types\nimport {SDK} as mcp",
    "import mcp.types\nimport mcp.server": f"import {SDK} as mcp\nimport {SDK} as mcp",
}
UNCHANGED = [
    "import mcp.types as types",
    "import mcp.types",
    "from mcp import types",
    "from mcp import Tool, Resource",
    "from mcp.types import TextContent",
    "import mcp_types as types",
    "from mcp.server.auth.settings import AuthSettings",
    "from .fastmcp import FastMCP",
    "from fastmcp_extras import x",
    "import mcpx",
    "text = 'from fastmcp import FastMCP'",
]


@pytest.mark.parametrize("before", CASES)
def test_imports_are_rewritten(before: str) -> None:
    assert rewritten(before) == CASES[before]
    ast.parse(CASES[before])


@pytest.mark.parametrize("text", [*UNCHANGED, *CASES.values()])
def test_what_is_not_served_stays(text: str) -> None:
    if text not in UNCHANGED:
        text = "\n".join(line for line in text.split("\n") if "import mcp" not in line)
    assert rewritten(text) == text


COMMENTED = """\
from mcp.server.fastmcp import (  # the server
    FastMCP,  # a class
    # a type
    Icon,  # of the protocol
    Context as C,
    # the end
)
"""


def test_a_statement_of_one_module_keeps_its_form_and_its_comments() -> None:
    text = "from fastmcp import (  # all\n    FastMCP,  # one\n    # two\n    Context as C,\n)  # end\n"
    assert rewritten(text) == text.replace("from fastmcp", f"from {FASTMCP}")


def test_a_statement_that_is_split_keeps_its_comments() -> None:
    assert rewritten(COMMENTED) == (
        f"from {SDK} import (  # the server\n    FastMCP,  # a class\n    Context as C,\n)\n"
        "from mcp.types import (\n    # a type\n    Icon,  # of the protocol\n    # the end\n)\n"
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_encoding_and_line_ends_are_kept(line_end: str, encoding: str) -> None:
    cookie = "# -*- coding: latin-1 -*-\n" if encoding == "latin-1" else ""
    text = f'{cookie}x = "é"; from mcp.server.fastmcp import Icon, Image\n\tand_so = 1\n'.replace("\t", "")
    before = text.replace("\n", line_end).encode(encoding)
    after = rewrite(before).source
    assert after == before.replace(
        b"from mcp.server.fastmcp import Icon, Image",
        f"from mcp.types import Icon; from {SDK} import Image".encode(),
    )


def test_what_is_missing_is_named_with_its_line_all_at_once() -> None:
    text = (
        "from fastmcp import FastMCP, Nothing\n"
        "import fastmcp\n"
        "def f():\n"
        "    from mcp.server.lowlevel import (\n"
        "        Gone,\n"
        "    )\n"
        "    return fastmcp.Absent, fastmcp.server.context.Context, fastmcp.server.Lost\n"
    )
    assert missing(text) == [
        (1, "fastmcp.Nothing"),
        (5, "mcp.server.lowlevel.Gone"),
        (7, "fastmcp.Absent"),
        (7, "fastmcp.server.Lost"),
    ]


USES = """\
from fastmcp import FastMCP as F, Context
import fastmcp.server

server = F("x", an_option=1, name=None)
other: F = fastmcp.FastMCP("x", another_option=None)


class Holder:
    def __init__(self):
        self.app = F("x")
        self.app.a_method()


@server.tool(a_tool_option=True)
async def tool(ctx: Context | None, x: int):
    ctx.a_member, x.a_member, server.fine


other.a_method, unknown.a_method
"""


def test_options_and_members_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"an_option": "leave it out", "another_option": "never"}
    monkeypatch.setattr(server, "_SERVER_OPTIONS", options)
    monkeypatch.setattr(server, "_TOOL_OPTIONS", {"a_tool_option": "no"})
    monkeypatch.setattr(server, "_ALTERNATIVES", {"a_method": "call b"})
    monkeypatch.setattr(context, "_ALTERNATIVES", {"a_member": "read b"})
    assert missing(USES) == [
        (4, "FastMCP(an_option=)"),
        (11, "self.app.a_method"),
        (14, "tool(a_tool_option=)"),
        (16, "Context.a_member"),
        (19, "other.a_method"),
    ]


def test_what_a_file_on_fastrpc_uses_is_its_own_affair() -> None:
    assert missing("from fastrpc import Server\nmcp = Server('x', auth=1)\n") == []


def test_members_of_the_settings_are_not_missing() -> None:
    assert missing("import fastmcp\n\nfastmcp.settings.host = '::1'\nprint(fastmcp.settings.port)\n") == []


def test_a_name_for_type_checkers_alone_may_be_missing() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fastmcp import Nothing\n"
    assert rewritten(text) == text
    assert not missing(text)


def test_an_import_that_may_fail_is_optional() -> None:
    text = "try:\n    from fastmcp import Nothing\nexcept ImportError:\n    Nothing = None\n"
    assert [each.is_optional for each in rewrite(text.encode()).missing] == [True]


def test_a_type_by_the_package_is_written_out() -> None:
    (found,) = rewrite(b"import mcp\nimport mcp.server\nx = mcp.Tool\ny = mcp.types.Tool\n").missing
    assert (found.line, found.name) == (3, "mcp.Tool")
    assert "mcp.types.Tool" in found.text


def test_the_alternative_is_taken_from_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    without_names(monkeypatch, fastmcp, Image="write base64")
    (found,) = rewrite(b"from fastmcp.utilities.types import Image\n").missing
    assert found.text == "write base64"


def test_every_home_offers_its_names() -> None:
    for home in (fastmcp, mcp):
        for name in home.__all__:
            assert getattr(home, name) is not None


def test_modules_of_the_original_are_the_one_module_that_serves_them() -> None:
    assert mcp.server.stdio.stdio_client is mcp.stdio_client  # type: ignore[attr-defined]
    assert fastmcp.server.context.Context is fastmcp.Context  # type: ignore[attr-defined]
    assert mcp.types.__name__ == "mcp.types"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        assert mcp.nothing  # type: ignore[attr-defined]


def test_modules_are_known_by_their_whole_name() -> None:
    assert modules.is_known("mcp.server.fastmcp.prompts.base")
    assert modules.is_known("fastmcp.server.middleware")
    assert modules.is_known("fastmcp")
    assert not modules.is_known("fastmcp.base")


# --- the command --------------------------------------------------------------------------------------------

SERVER = "from fastmcp import FastMCP\n\nmcp = FastMCP('x')\n"


def swap(*arguments: object) -> int:
    return main(["swap", *map(str, arguments)])


def test_the_command_writes_the_file_and_shows_the_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    file.chmod(0o755)
    assert swap(file) == 0
    assert file.read_text() == SERVER.replace("fastmcp", FASTMCP, 1)
    assert file.stat().st_mode & 0o777 == 0o755
    shown = capsys.readouterr()
    assert "-from fastmcp import FastMCP" in shown.out
    assert f"+from {FASTMCP} import FastMCP" in shown.out
    assert "\x1b" not in shown.out
    assert shown.err == "fastrpc: 1 file rewritten\n"
    assert swap(file) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("option", "code"), [("--diff", 0), ("--check", 1)])
def test_the_file_may_stay_as_it_is(tmp_path: Path, option: str, code: int) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    assert swap(option, file) == code
    assert file.read_text() == SERVER


def test_check_finds_nothing_to_do_in_a_rewritten_file(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER.replace("fastmcp", FASTMCP, 1))
    assert swap("--check", file) == 0


def test_a_file_that_would_not_run_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.py"
    text = "import os\nfrom fastmcp import FastMCP, Nothing\n"
    file.write_text(text)
    assert swap(file) == 1
    assert file.read_text() == text
    assert f"{file}:2: fastrpc has no fastmcp.Nothing" in capsys.readouterr().err
    assert swap("--force", file) == 1
    assert file.read_text() == text.replace("fastmcp", FASTMCP)


def test_a_folder_is_all_its_files_but_environments_and_hidden_ones(tmp_path: Path) -> None:
    names = ["a.py", "in/b.py", "env/lib/c.py", ".hidden/d.py", "in/e.txt", "in/__pycache__/f.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SERVER)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert swap(tmp_path) == 0
    assert [name for name in names if (tmp_path / name).read_text() != SERVER] == ["a.py", "in/b.py"]


def test_a_file_that_cannot_be_parsed_is_named_and_the_others_are_rewritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("import mcp\ndef (:\n")
    (tmp_path / "b.py").write_text(SERVER)
    assert swap(tmp_path) == 1
    assert f"{tmp_path / 'a.py'}:2:" in capsys.readouterr().err
    assert (tmp_path / "b.py").read_text() != SERVER


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text(SERVER)
    os.symlink("real.py", tmp_path / "link.py")
    assert swap(tmp_path / "link.py") == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() != SERVER


@pytest.mark.parametrize(
    "arguments", [[], ["nowhere.py"], ["--run"], ["x.py", "--", "python"], ["--run", "x.py", "--", "python"]]
)
def test_a_wrong_command_line_is_code_2(arguments: list[str]) -> None:
    assert swap(*arguments) == 2


def test_the_result_is_an_object_with_its_parts() -> None:
    assert isinstance(rewrite(b""), Rewritten)
    assert rewrite(b"").source == b""
