"""Modules of an installed original that run beside fastrpc, of packages that replace the originals here;
tests/integration/test_compat_fastmcp_parts.py does it with FastMCP itself."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.names.originals import original, part_of
from fastrpc.compat.names.packages import is_served

FILES = {
    "fastmcp/__init__.py": "settings = 'of the original'\n",
    "fastmcp/server/__init__.py": "",
    "fastmcp/client/__init__.py": "",
    "fastmcp/tools.py": "class Tool: pass\n\ndef helper(): return 'helped by the original'\n",
    "fastmcp/server/auth.py": """
        from __future__ import annotations
        import json
        import fastmcp
        from fastmcp.tools import Tool
        from . import other
        def names(): return fastmcp.settings, Tool.__module__, other.__name__, json.dumps(1)
    """,
    "fastmcp/server/other.py": "from mcp.server.auth.routes import limit\nfrom mcp.types import Type\n",
    "fastmcp/apps/__init__.py": "",
    "fastmcp/apps/approval.py": """
        import fastmcp.tools
        from fastmcp.tools import Tool, helper
        class Approval(Tool): pass
    """,
    "mcp/__init__.py": "from mcp.server import Server\n",
    "mcp/types.py": "class Type: pass\n",
    "mcp/client/__init__.py": "",
    "mcp/server/__init__.py": """
        from mcp.server.auth.routes import build
        from mcp.server.limits import Server
    """,
    "mcp/server/limits.py": "limit = 'of the original'\nclass Server: pass\n",
    "mcp/server/auth/__init__.py": "",
    "mcp/server/auth/routes.py": "from mcp.server.limits import limit\nbuild = 1\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    return tmp_path


def shown(folder: Path, code: str, *, swapped: bool) -> str:
    """Run code where the stand-ins are installed; `swapped`: with the import hook."""
    before = "import sys\nfrom fastrpc.swap.import_hook import ServedModules\n"
    hook = before + "sys.meta_path.insert(0, ServedModules())\n" if swapped else ""
    start = f"{hook}from fastrpc.compat.names.originals import original, part_of\n"
    done = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("swapped", [True, False])
def test_a_module_of_an_original_imports_others_of_its_package(folder: Path, swapped: bool) -> None:
    code = """
        print(*original("fastmcp.server.auth").names())
        print(original("fastmcp.server.other").limit)
        import mcp.types
        print(original("fastmcp.server.other").Type is mcp.types.Type)
    """
    assert shown(folder, code, swapped=swapped).splitlines() == [
        "of the original fastrpc_originals.fastmcp.tools fastrpc_originals.fastmcp.server.other 1",
        "of the original",
        "True",
    ]


def test_a_module_on_fastrpc_has_its_classes_and_what_it_lacks_from_the_original(folder: Path) -> None:
    code = """
        from fastrpc.compat.fastmcp import Approval
        from fastrpc.compat.components.tools import Tool
        print(issubclass(Approval, Tool), original("fastmcp.apps.approval").helper())
    """
    assert shown(folder, code, swapped=True) == "True helped by the original"


def test_a_package_that_imports_all_of_its_modules_is_run_for_a_name_that_it_defines(folder: Path) -> None:
    code = """
        routes = original("fastmcp.server.other")
        print("fastrpc_originals.mcp.server" in sys.modules, "Server" in vars(original("mcp.server")))
        server = original("mcp.server")
        print(server.Server.__module__, original("mcp").Server is server.Server)
        print(hasattr(server, "nothing"), hasattr(original("mcp"), "__path__"))
    """
    assert shown(folder, "import sys\n" + textwrap.dedent(code), swapped=True).splitlines() == [
        "True False",
        "fastrpc_originals.mcp.server.limits True",
        "False True",
    ]


def test_what_is_not_installed_says_so_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.compat.names.originals.installed_spec", lambda package: None)
    with pytest.raises(NotOffered, match="is a part of fastmcp itself: pip install fastmcp"):
        original("fastmcp.apps.approval")
    missing: Any = part_of("fastmcp.apps.approval", "Approval")
    assert repr(missing) == "<unavailable Approval>"
    with pytest.raises(NotOffered, match="pip install fastmcp"):
        missing()


def test_what_cannot_be_imported_says_why(folder: Path) -> None:
    (folder / "fastmcp" / "server" / "auth.py").write_text("import nothing_of_this_name\n")
    code = """
        try:
            part_of("fastmcp.server.auth", "Provider")()
        except Exception as error:
            print(type(error).__name__, error)
    """
    assert shown(folder, code, swapped=True) == (
        "NotOffered fastmcp.server.auth is a part of fastmcp itself, and is not imported: "
        "No module named 'nothing_of_this_name'"
    )


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("fastmcp", True),
        ("fastmcp.server.auth", True),
        ("mcp", True),
        ("mcp.server.lowlevel", True),
        ("mcp.shared.memory", True),
        ("mcp.shared.auth", False),
        ("mcp.types", False),
        ("mcp.server.auth.routes", False),
        ("mcp.server.authors", True),
        ("mcp.server.__main__", False),
        ("json", False),
    ],
)
def test_what_is_served_is_known_by_its_module(module: str, expected: bool) -> None:
    assert is_served(module) is expected
