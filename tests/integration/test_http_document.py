"""What docs/http.md says to type, and to give to systemd and Docker, begins a server that serves.

The commands are the document's; ports, folders and the program's place are this machine's. Neither systemd
nor Docker is started: the unit's and the image's command run as those would run them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.http_client import TOKEN, Serving, environment
from support.reverse_proxies import HOST, Front, printed, replaced
from support.skips import not_installed
from support.waiting import SECONDS

TOOLS = '''
from fastrpc import Server

app = Server("shop")

@app.tool(effect="read")
def price(name: str) -> float:
    """Say what something costs."""
    return {"tea": 2.5}[name]

@app.tool
def place() -> str:
    """Say where the state is kept."""
    import os

    return os.environ.get("FASTRPC_STATE_DIR", "")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    return tmp_path


def served(command: str, folder: Path, **environ: str) -> Serving:
    """Run a command of the document, at a port that the system chooses."""
    assert command.startswith("fastrpc serve ")
    words = shlex.split(re.sub(r"(?<=:)80\d\d\b", "0", command))[1:]
    return Serving(*words, folder=folder, **environ)


def test_the_first_two_commands_make_a_token_and_serve(folder: Path) -> None:
    block = next(block for block in console() if "token_urlsafe" in block)
    make, serve, said = block.splitlines()
    python = f"{shlex.quote(sys.executable)} -c"
    subprocess.run(
        ["sh", "-c", make[2:].replace("python3 -c", python)], cwd=folder, check=True, timeout=SECONDS
    )
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    with served(serve[2:], folder, FASTRPC_TOKEN="") as server:
        assert server.stderr == said.replace("8000", str(server.port)) + "\n"
        server.token = (folder / "token").read_text().strip()
        assert server.call("price", name="tea") == "2.5"


def console() -> list[str]:
    with open(
        os.path.join(os.path.dirname(__file__), "..", "..", "docs", "http.md"), encoding="utf-8"
    ) as file:
        return re.findall(r"^```console\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def test_the_unit_of_systemd_serves(folder: Path) -> None:
    """As systemd would: the variables, the folder, the credential in a file that the service alone reads."""
    unit = printed("ini")
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line)
    credential, _, source = settings["LoadCredential"].partition(":")
    assert source == "/etc/mcp/token"
    (folder / "credentials").mkdir()
    (folder / "credentials" / credential).write_text(TOKEN)
    (folder / "credentials" / credential).chmod(
        0o440
    )  # as systemd leaves it: root's, with a list of who may read
    command = replaced(settings["ExecStart"], {"%d": str(folder / "credentials")})
    command = replaced(command, {settings["WorkingDirectory"] + "/venv/bin/fastrpc": "fastrpc"})
    name, _, value = settings["Environment"].partition("=")
    with served(command, folder, FASTRPC_TOKEN="", **{name: value}) as server:
        assert server.call("price", name="tea") == "2.5"
        assert server.call("place") == value == f"/var/lib/{settings['StateDirectory']}"
        assert server.stop() == 0


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip(not_installed("systemd-analyze"))
    path = tmp_path / "mcp.service"
    path.write_text(replaced(printed("ini"), {"/opt/mcp/venv/bin/fastrpc": sys.executable}))
    done = subprocess.run([program, "verify", str(path)], capture_output=True, text=True, timeout=SECONDS)
    complaints = [line for line in done.stderr.splitlines() if "mcp.service" in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_command_of_the_image_serves_the_hosts_that_it_names(folder: Path) -> None:
    text = printed("dockerfile").replace("\\\n", "")
    words: Any = json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0])
    port = re.findall(r"^EXPOSE (\d+)$", text, re.MULTILINE)[0]
    assert any(word.endswith(f":{port}") for word in words)
    with served(shlex.join(words), folder) as server:
        for host, status in ((HOST, 200), ("localhost", 200), ("evil.example", 421)):
            outside = Named(server.port, host)
            assert outside.stateless_request("tools/list", {}).status == status
        assert Named(server.port, "localhost").ask("GET", "/healthz").status == 200
        assert server.stop() == 0


class Named(Front):
    """A client of a server without TLS that names a host."""

    def __init__(self, port: int, host: str) -> None:
        self.place = ""
        self.port, self.tls, self.token, self.path, self.host = port, None, TOKEN, "/mcp", host

    def headers(self, **more: str) -> dict[str, str]:
        return {**super().headers(**more), "Host": self.host}

    def connection(self) -> Any:
        return Serving.connection(self)


def test_an_image_begins_without_a_token_only_with_a_word(folder: Path) -> None:
    """`docker run` without FASTRPC_TOKEN: no service that is open to all."""
    text = printed("dockerfile").replace("\\\n", "")
    words = json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0])
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment(FASTRPC_TOKEN=""),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 2
    assert "token" in done.stderr
