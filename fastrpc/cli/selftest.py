"""``fastrpc selftest``: checks that the installation is complete and that the tools keep their contract.

Imports every module, compares each tool of the toolset with the published contract, then starts a real server
and uses it with `fastrpc.Client`: handshake, list, ping, one call of each tool without side effects that has
an example, and a clean end. The output of another server is parsed with the standard library, so that fastrpc
does not only check itself. Switches have no effect here, and the user's state is not used. Exit code 1 on any
difference. Modules of extras that are not installed are counted and listed as skipped.
"""

from __future__ import annotations

import os

from fastrpc.cli import configuration, parser
from fastrpc.cli._assemble import load_toolset, toolset_settings
from fastrpc.cli._contract import differences, find_module, load_companion, load_contract
from fastrpc.cli._extras import extras
from fastrpc.cli._own_server import own_command, sheltered_variables
from fastrpc.cli._toolset_options import export_toolset_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.client.sync import SyncClient
    from fastrpc.definitions.tool import Tool

PROTOCOL = "2025-11-25"
WIRE_SECONDS = 30.0
EXAMPLES = """\
  fastrpc selftest
  fastrpc selftest && echo all is well
  fastrpc selftest fastrpc.tools.contracts
"""


class FindingsPrinter:
    """Prints each finding, and records whether one of them was bad."""

    def __init__(self) -> None:
        self.failures = 0

    def good(self, what: str, text: str) -> None:
        print(f"ok    {what:<9} {text}", flush=True)

    def bad(self, what: str, text: str) -> None:
        self.failures += 1
        print(f"FAIL  {what:<9} {text}", flush=True)

    def check(self, condition: bool, what: str, text: str, otherwise: str) -> None:
        if condition:
            self.good(what, text)
        else:
            self.bad(what, otherwise)


def main(arguments: list[str]) -> int:
    """Run all checks; return 0 if all succeed, else 1."""
    options = parser("selftest", "[TOOLSET]", EXAMPLES)
    options.add_argument(
        "toolset", nargs="?", metavar="TOOLSET", help="check this toolset instead of the configured one"
    )
    if named := options.parse(export_toolset_options(arguments, "selftest")).toolset:
        os.environ["FASTRPC_TOOLSET"] = named  # for the started servers too
    toolset = configuration()["FASTRPC_TOOLSET"]
    report = FindingsPrinter()
    check_imports(report, toolset)
    tools = load_toolset(toolset)
    contract = load_contract(toolset)
    check_contract(report, toolset, contract, tools)
    companion = load_companion(toolset, "_selftest")  # its own checks: whether each holds, and a text
    for holds, text in [] if companion is None else companion.findings():
        report.check(holds, "toolset", text, text)
    check_session(report, toolset, contract, tools)
    if report.failures:
        print(f"{report.failures} of the checks failed.")
        return 1
    print("All checks hold.")
    return 0


def check_imports(report: FindingsPrinter, toolset: str) -> None:
    """Import every module of fastrpc and of the toolset; none may fail, and none may write to stdout."""
    from contextlib import redirect_stdout
    from importlib import import_module
    from io import StringIO

    failed: list[str] = []
    names = list(dict.fromkeys([*module_names("fastrpc"), *module_names(toolset)]))
    missing = [extra for extra, installed in extras().items() if not installed]
    left_out = 0
    written = StringIO()
    with redirect_stdout(written):
        for name in names:
            try:
                import_module(name)
            except Exception as error:
                if missing and is_of_an_extra(name, error):
                    left_out += 1
                else:
                    failed.append(f"{name}: {type(error).__name__}: {error}")
    for text in failed:
        report.bad("import", text)
    if written.getvalue():
        report.bad("import", f"importing wrote {written.getvalue()[:80]!r} to stdout")
    elif not failed:
        report.good("import", f"{len(names) - left_out} modules")
    if left_out:
        print(f"skip  import    {left_out} modules: they need fastrpc-mcp[{','.join(missing)}]")


def is_of_an_extra(name: str, error: Exception) -> bool:
    """Return whether a module of fastrpc failed because a package of an extra is missing."""
    return (
        name.startswith("fastrpc.")
        and isinstance(error, ModuleNotFoundError)
        and (error.name or "fastrpc").partition(".")[0] != "fastrpc"
    )


def module_names(package: str) -> list[str]:
    """Return a package's modules, beginning with its own name, importing only packages."""
    from importlib.util import find_spec
    from pkgutil import iter_modules

    spec = find_module(package)
    if spec is None:
        try:
            return [package] if find_spec(package) is not None else []
        except (ImportError, ValueError):  # not a package before a dot, or not a name
            return []
    names = [package]
    for entry in iter_modules(spec.submodule_search_locations, f"{package}."):
        names += module_names(entry.name) if entry.ispkg else [entry.name]
    return names


def check_contract(
    report: FindingsPrinter, toolset: str, contract: dict[str, dict[str, Any]], tools: list[Tool]
) -> None:
    """Compare each tool with its contract, and the order of the tools with the published order."""
    from fastrpc.protocol.versions import VERSIONS

    if not contract:
        report.good("contract", f"{toolset} has published none")
        return
    if not tools:
        report.bad("contract", f"{toolset} holds no tools")
    present = {tool.name: tool for tool in tools}
    modules = set(module_names(toolset))
    absent = []
    for name, published in contract.items():
        tool = present.get(name)
        if tool is not None:
            found = differences(published, tool.descriptor(VERSIONS[-1]), tool.effect)
            report.check(not found, "contract", name, f"{name}: {'; '.join(found)}")
        elif f"{toolset}.{published['module']}" in modules:
            report.bad("contract", f"{name}: its module is there, the tool is not")
        else:
            absent.append(name)
    for name in present:
        if name not in contract:
            report.good("contract", f"{name} came later, and breaks nothing that was published")
    order = [name for name in contract if name in present]
    listed = [name for name in present if name in contract]
    report.check(listed == order, "order", "as published", f"is {listed}, published as {order}")
    print(f"{len(order)} of {len(contract)} published tools present")
    if absent:
        print(f"not in this release: {', '.join(absent)}")


def check_session(
    report: FindingsPrinter, toolset: str, contract: dict[str, dict[str, Any]], tools: list[Tool]
) -> None:
    """Check everything again through a server process, as a client sees it."""
    from tempfile import TemporaryDirectory

    from fastrpc.client.client import Client
    from fastrpc.errors import ClientError

    with TemporaryDirectory(prefix="fastrpc-selftest-") as folder:
        sheltered = sheltered_variables([tool.name for tool in tools], folder, toolset_settings(toolset))
        variables = {**os.environ, **sheltered}
        client = Client.sync(own_command("serve", []), version=PROTOCOL, env=variables)
        try:
            with client:
                listed = check_list(report, client, tools)
                for tool in tools:
                    if tool.effect == "read":
                        check_call(report, client, tool, contract.get(tool.name, {}))
        except ClientError as error:
            report.bad("session", str(error))
            return
        code = client.exit_code
        report.check(code == 0, "end", "exit code 0", f"exit code {code}")
        check_wire(report, variables, listed)


def check_wire(report: FindingsPrinter, variables: dict[str, str], listed: list[dict[str, Any]]) -> None:
    """Parse a server's lines with the standard library: it shares no mistake with our encoder."""
    import json
    import subprocess

    hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        done = subprocess.run(
            own_command("serve", []),
            input=text.encode(),
            stdout=subprocess.PIPE,
            env=variables,
            timeout=WIRE_SECONDS,
            check=False,
        )
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())}
        same = answers[2]["tools"] == listed and answers[1]["protocolVersion"] == PROTOCOL
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        report.bad("wire", f"{type(error).__name__}: {error}")
        return
    report.check(
        same, "wire", "the standard library reads the same", "the standard library reads another list"
    )


def check_list(report: FindingsPrinter, client: SyncClient, tools: list[Tool]) -> list[dict[str, Any]]:
    """Check the handshake and the list of tools; return the list. Raises ClientError."""
    agreed = client.version
    report.check(agreed == PROTOCOL, "session", f"version {agreed}", f"version {agreed}, not {PROTOCOL}")
    listed = [dict(tool) for tool in client.list_tools()]
    described = [tool.descriptor(PROTOCOL) for tool in tools]
    same = [tool["name"] for tool in listed] == [tool["name"] for tool in described] and all(
        map(_is_as_described, listed, described)
    )
    report.check(same, "session", f"{len(listed)} tools listed as described", "the list differs")
    client.ping()
    report.good("session", "ping")
    return listed


def _is_as_described(listed: dict[str, Any], described: dict[str, Any]) -> bool:
    """Whether a tool is listed as its module defines it; more lines, of names, may follow the description."""
    goes_on = listed["description"].startswith(described["description"] + "\n")
    return listed == described or (
        goes_on and {**listed, "description": described["description"]} == described
    )


def check_call(report: FindingsPrinter, client: SyncClient, tool: Tool, published: dict[str, Any]) -> None:
    """Call a tool without side effects with the contract's example, or without arguments if it needs none."""
    example = published.get("example")
    if example is None:
        if tool.descriptor(PROTOCOL).get("inputSchema", {}).get("required"):
            report.good("call", f"{tool.name}: not called, the contract has no example")
            return
        example = {"arguments": {}, "is_error": False, "says": ""}
    result = client.call_tool(tool.name, example["arguments"])
    holds = result.is_error is example["is_error"] and example["says"] in result.text
    shown = result.text.partition("\n")[0][:80]
    report.check(holds, "call", f"{tool.name}: {shown}", f"{tool.name}: {result.raw}")
