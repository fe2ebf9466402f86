"""The servers that the client is tried against: what each is, how it is started, what it must answer.

No one here wrote one of them. `notes` are their known faults and limits: a failing step that one of them
explains is marked by it and fails nothing. Each was looked into: the wire shows that it is not the client's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from interop.conversation import (
    ROOT,
    SAMPLED,
    STATELESS,
    Step,
    asks,
    binary,
    block,
    cancellation,
    completion,
    image,
    list_change,
    logs,
    progress,
    prompt,
    resource,
    structured,
    together,
    tool,
    tool_error,
    updates,
)
from interop.packages import program

SESSION_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
WITH_ELICITATION = ("2025-06-18", "2025-11-25")
FROM_2025_06 = (*WITH_ELICITATION, STATELESS)
FROM_2025_03 = ("2025-03-26", *FROM_2025_06)
PNG = b"\x89PNG"


@dataclass(frozen=True)
class Way:
    """One transport of a server: its command, in which {port} and {folder} are filled in, and its path."""

    transport: str
    command: Callable[[], list[str]]
    path: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    own_port: int = 0
    """Where the server knows no other one."""

    @property
    def is_stdio(self) -> bool:
        return self.transport == "stdio"


@dataclass(frozen=True)
class Note:
    step: str
    text: str
    transports: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    def explains(self, step: str, transport: str, version: str) -> bool:
        return (
            step == self.step
            and transport in (self.transports or (transport,))
            and version in (self.versions or (version,))
        )


@dataclass(frozen=True)
class Server:
    name: str
    package: str
    """With its version, as in the lock file."""
    sdk: str
    folder: str
    ways: tuple[Way, ...]
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    through_proxy: bool = False


# ---------------------------------------------------------------------------------------- TypeScript


def npm(package: str, *arguments: str, file: str = "dist/index.js") -> Callable[[], list[str]]:
    return lambda: ["node", program("npm", "node_modules", *package.split("/"), *file.split("/")), *arguments]


EVERYTHING = "@modelcontextprotocol/server-everything"
TYPESCRIPT_1 = "TypeScript v1, 1.32.2"
TYPESCRIPT_2 = "TypeScript v2, 2.0.0"
HTTP, SSE = "Streamable HTTP", "HTTP+SSE"
THROUGH_THE_PROXY = "through the proxy"

PLAYWRIGHT = npm("@playwright/mcp", "--port", "{port}", "--allowed-hosts", "*", file="cli.js")

TYPESCRIPT = (
    Server(
        name="everything",
        package=f"{EVERYTHING} 2026.8.31",
        sdk=TYPESCRIPT_1,
        folder="npm",
        ways=(
            Way("stdio", npm(EVERYTHING, "stdio")),
            Way(HTTP, npm(EVERYTHING, "streamableHttp"), "/mcp", {"PORT": "{port}"}),
            Way(SSE, npm(EVERYTHING, "sse"), "/sse", {"PORT": "{port}"}),
        ),
        steps=(
            tool("echo", {"message": "hello"}, "Echo: hello"),
            tool("get-sum", {"a": 2, "b": 3}, "5"),
            together("echo", "message", "Echo: {}"),
            structured(
                "get-structured-content",
                {"location": "New York"},
                {"temperature": 33, "conditions": "Cloudy", "humidity": 82},
            ),
            image("get-tiny-image"),
            block("get-resource-links", {"count": 2}, "resource_link", versions=FROM_2025_06),
            block("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "resource"),
            progress("trigger-long-running-operation", {"duration": 0.2, "steps": 4}, 4),
            cancellation("trigger-long-running-operation", {"duration": 10, "steps": 100}),
            asks("sampling", "trigger-sampling-request", {"prompt": "?", "maxTokens": 10}, SAMPLED),
            asks("elicitation", "trigger-elicitation-request", {}, "Ann", versions=WITH_ELICITATION),
            asks("roots", "get-roots-list", {}, ROOT["uri"]),
            resource("demo://resource/static/document/features.md", "# Everything Server - Features"),
            resource("demo://resource/dynamic/text/7", "Resource 7"),
            prompt("args-prompt", {"city": "Basel"}, "What's weather in Basel?"),
            completion(
                "completable-prompt",
                "name",
                "A",
                ["Alice"],
                {"department": "Engineering"},
                versions=FROM_2025_06,
            ),
            updates("demo://resource/dynamic/text/1", "toggle-subscriber-updates"),
        ),
        notes=tuple(
            Note(
                step,
                "This server asks for the roots by itself, 350 ms after the handshake. The proxy puts that "
                "to the call which runs then, and before a client of 2026-07-28 such a call runs again from "
                "its start",
                tuple(f"{transport}, {THROUGH_THE_PROXY}" for transport in ("stdio", HTTP, SSE)),
                (STATELESS,),
            )
            for step in ("progress", "cancellation")
        ),
        through_proxy=True,
    ),
    Server(
        name="filesystem",
        package="@modelcontextprotocol/server-filesystem 2026.8.31",
        sdk=TYPESCRIPT_1,
        folder="npm",
        ways=(Way("stdio", npm("@modelcontextprotocol/server-filesystem", "{folder}")),),
        steps=(
            tool("list_allowed_directories", {}, "Allowed directories"),
            tool("read_text_file", {"path": "{folder}/note.txt"}, "a note"),
            tool_error("read_text_file", {"path": "/etc/hostname"}, "denied"),
        ),
    ),
    Server(
        name="memory",
        package="@modelcontextprotocol/server-memory 2026.8.31",
        sdk=TYPESCRIPT_1,
        folder="npm",
        ways=(
            Way(
                "stdio",
                npm("@modelcontextprotocol/server-memory"),
                environment={"MEMORY_FILE_PATH": "{folder}/memory.json"},
            ),
        ),
        steps=(
            tool(
                "create_entities",
                {"entities": [{"name": "Ann", "entityType": "person", "observations": ["likes blue"]}]},
                "Ann",
            ),
            tool("search_nodes", {"query": "blue"}, "likes blue"),
        ),
    ),
    Server(
        name="sequential-thinking",
        package="@modelcontextprotocol/server-sequential-thinking 2026.8.31",
        sdk=TYPESCRIPT_1,
        folder="npm",
        ways=(Way("stdio", npm("@modelcontextprotocol/server-sequential-thinking")),),
        steps=(
            tool(
                "sequentialthinking",
                {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
                '"thoughtNumber": 1',
            ),
        ),
    ),
    Server(
        name="playwright",
        package="@playwright/mcp 0.0.83",
        sdk="TypeScript v1, bundled",
        folder="npm",
        ways=(
            Way("stdio", npm("@playwright/mcp", file="cli.js")),
            Way(HTTP, PLAYWRIGHT, "/mcp"),
            Way(SSE, PLAYWRIGHT, "/sse"),
        ),
    ),
    Server(
        name="system-monitor",
        package="@modelcontextprotocol/server-system-monitor 2.0.3",
        sdk=TYPESCRIPT_2,
        folder="npm",
        ways=(
            Way("stdio", npm("@modelcontextprotocol/server-system-monitor", "--stdio")),
            Way(HTTP, npm("@modelcontextprotocol/server-system-monitor"), "/mcp", {"PORT": "{port}"}),
        ),
        steps=(tool("get-system-info", {}, "cpu"), resource("ui://system-monitor/mcp-app.html", "<html")),
        through_proxy=True,
    ),
    Server(
        name="context7",
        package="@upstash/context7-mcp 4.1.1",
        sdk=TYPESCRIPT_2,
        folder="npm",
        ways=(
            Way("stdio", npm("@upstash/context7-mcp")),
            Way(HTTP, npm("@upstash/context7-mcp", "--transport", "http", "--port", "{port}"), "/mcp"),
        ),
    ),
)

# -------------------------------------------------------------------------------- the suite's fixture


def fixture_steps(
    *, resource_text: str = "This is the content of the static text resource."
) -> tuple[Step, ...]:
    """What the servers answer that SDKs bring for the conformance suite: it says what they are to be."""
    return (
        tool("test_simple_text", {}, "This is a simple text response for testing."),
        image("test_image_content"),
        block("test_audio_content", {}, "audio", versions=FROM_2025_03),
        block("test_embedded_resource", {}, "resource"),
        tool_error("test_error_handling", {}, "This tool intentionally returns an error for testing"),
        progress("test_tool_with_progress", {}, 3),
        cancellation("test_tool_with_progress", {}),
        logs("test_tool_with_logging", 3),
        asks(
            "sampling",
            "test_sampling",
            {"prompt": "?"},
            f"LLM response: {SAMPLED}",
            versions=SESSION_VERSIONS,
        ),
        asks("elicitation", "test_elicitation", {"message": "?"}, "accept", versions=WITH_ELICITATION),
        resource("test://static-text", resource_text),
        binary("test://static-binary", PNG),
        resource("test://template/7/data", "7"),
        prompt("test_simple_prompt", {}, "This is a simple prompt for testing."),
        prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}, "arg1='a', arg2='b'"),
    )


STATELESS_STEPS = (
    asks("elicitation", "test_input_required_result_elicitation", {}, "Hello, Ann!", versions=(STATELESS,)),
    asks("sampling", "test_input_required_result_sampling", {}, SAMPLED, versions=(STATELESS,)),
    asks("roots", "test_input_required_result_list_roots", {}, "1 root", versions=(STATELESS,)),
    asks("three rounds", "test_input_required_result_multi_round", {}, "Ann", versions=(STATELESS,)),
    tool("test_x_mcp_header", {"region": "eu, süd"}, "region=eu, süd", "parameter in a header"),
    list_change("test_trigger_tool_change", versions=(STATELESS,)),
)
"""What they have for 2026-07-28 besides."""

# -------------------------------------------------------------------------------------------- Python


def python(folder: str, *arguments: str) -> Callable[[], list[str]]:
    return lambda: [program(folder, "venv", "bin", "python"), *arguments]


def example(folder: str, *arguments: str) -> Callable[[], list[str]]:
    """The everything-server of the SDK's source distribution: its command line, or its server by `run`."""
    place = "examples/servers/everything-server"
    code = f"import sys; sys.path.insert(0, sys.argv.pop(1)); {arguments[0]}"
    return lambda: [
        program(folder, "venv", "bin", "python"),
        *("-c", code, program(folder, "examples", *place.split("/")), *arguments[1:]),
    ]


def sdk_ways(folder: str, sse: str) -> tuple[Way, ...]:
    module = "from mcp_everything_server.server import main, mcp"
    return (
        Way("stdio", example(folder, f"{module}; mcp.run('stdio')")),
        Way(HTTP, example(folder, f"{module}; main()", "--port", "{port}"), "/mcp"),
        Way(SSE, example(folder, f"{module}; {sse}", "{port}"), "/sse"),
    )


def fastmcp_ways(file: str) -> tuple[Way, ...]:

    def way(transport: str, *options: str) -> Callable[[], list[str]]:
        path = ("examples", "examples", file)
        return lambda: [
            program("python-fastmcp", "venv", "bin", "fastmcp"),
            *("run", "--no-banner", program("python-fastmcp", *path)),
            *("--transport", transport, *options),
        ]

    return (
        Way("stdio", way("stdio")),
        Way(HTTP, way("http", "--port", "{port}"), "/mcp"),
        Way(SSE, way("sse", "--port", "{port}"), "/sse"),
    )


PYTHON = (
    Server(
        name="everything-server",
        package="mcp 1.30.0, examples",
        sdk="Python 1.30.0",
        folder="python-1",
        ways=sdk_ways("python-1", "mcp.settings.port = int(sys.argv[1]); mcp.run('sse')"),
        steps=fixture_steps(),
        notes=(
            Note("unknown method", "Python 1.30.0 answers an unknown method with -32602 instead of -32601"),
        ),
    ),
    Server(
        name="everything-server",
        package="mcp 2.3.0, examples",
        sdk="Python 2.3.0",
        folder="python-2",
        ways=sdk_ways("python-2", "mcp.run('sse', port=int(sys.argv[1]))"),
        steps=(*fixture_steps(), *STATELESS_STEPS),
        notes=(
            Note(
                "changed list",
                "The tool adds another tool and removes it: the list that the proxy then fetches is the same "
                "as before, so it sends no notification",
                (f"{HTTP}, {THROUGH_THE_PROXY}",),
            ),
        ),
        through_proxy=True,
    ),
    Server(
        name="echo",
        package="fastmcp 4.1.2, examples",
        sdk="FastMCP 4.1.2",
        folder="python-fastmcp",
        ways=fastmcp_ways("echo.py"),
        steps=(
            tool("echo_tool", {"text": "hello äöü"}, "hello äöü"),
            together("echo_tool", "text", "{}"),
            structured("echo_tool", {"text": "a"}, {"result": "a"}),
            resource("echo://static", "Echo!"),
            resource("echo://over", "Echo: over"),
            prompt("echo", {"text": "hello"}, "hello"),
        ),
    ),
    Server(
        name="elicitation",
        package="fastmcp 4.1.2, examples",
        sdk="FastMCP 4.1.2",
        folder="python-fastmcp",
        ways=fastmcp_ways("elicitation.py"),
        steps=(asks("elicitation", "greet", {}, "Hello, Ann!", versions=FROM_2025_06),),
        notes=(
            Note(
                "elicitation",
                "FastMCP 4.1.2: `Context.elicit` raises an error in 2026-07-28",
                versions=(STATELESS,),
            ),
        ),
    ),
    Server(
        name="time",
        package="mcp-server-time 2026.10.19",
        sdk="Python 2.3.0",
        folder="python-servers",
        ways=(Way("stdio", python("python-servers", "-m", "mcp_server_time", "--local-timezone", "UTC")),),
        steps=(
            tool(
                "convert_time",
                {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                "+9.0h",
            ),
            tool_error("get_current_time", {"timezone": "Nowhere/None"}, "Nowhere"),
        ),
    ),
    Server(
        name="git",
        package="mcp-server-git 2026.10.19",
        sdk="Python 2.3.0",
        folder="python-servers",
        ways=(Way("stdio", python("python-servers", "-m", "mcp_server_git")),),
        steps=(tool("git_status", {"repo_path": "{folder}"}, "note.txt"),),
    ),
    Server(
        name="fetch",
        package="mcp-server-fetch 2026.10.24",
        sdk="Python 2.3.0",
        folder="python-servers",
        ways=(Way("stdio", python("python-servers", "-m", "mcp_server_fetch")),),
    ),
)

# ------------------------------------------------------------------------------------------ Go, Rust


def go(name: str, *arguments: str) -> Callable[[], list[str]]:
    return lambda: [program("go", name), *arguments]


OVERTAKEN = "mcp-go 1.2.1 may send the last notification of a call after its answer, or not at all"

GO = (
    Server(
        name="everything",
        package="github.com/modelcontextprotocol/go-sdk v1.8.0, examples",
        sdk="Go 1.8.0",
        folder="go",
        ways=(
            Way("stdio", go("go-sdk-examples-server-everything")),
            Way(HTTP, go("go-sdk-examples-server-everything", "-http", "127.0.0.1:{port}"), "/"),
        ),
        steps=(
            tool("greet", {"name": "Ann"}, "Hi Ann"),
            together("greet", "name", "Hi {}"),
            structured("greet (structured)", {"name": "Ann"}, {"message": "Hi Ann"}),
            block(
                "greet (content with ResourceLink)", {"name": "Ann"}, "resource_link", versions=FROM_2025_06
            ),
            tool("ping", {}, "", "ping by the server", versions=SESSION_VERSIONS),
            logs("log", 1),
            asks("sampling", "sample", {}, SAMPLED, versions=SESSION_VERSIONS),
            asks("elicitation", "elicit (form)", {}, "seven", versions=WITH_ELICITATION),
            asks("roots", "roots", {}, ROOT["uri"], versions=SESSION_VERSIONS),
            resource("embedded:info", "This is the hello example server."),
            prompt("greet", {"name": "Ann"}, "Say hi to Ann"),
            completion("greet", "name", "An", ["Anx"]),
        ),
        notes=(
            Note(
                "completion",
                "The prompt `greet` declares no arguments, so the proxy refuses to complete one",
                (f"stdio, {THROUGH_THE_PROXY}", f"{HTTP}, {THROUGH_THE_PROXY}"),
            ),
        ),
        through_proxy=True,
    ),
    Server(
        name="everything-server",
        package="github.com/modelcontextprotocol/go-sdk v1.8.0, conformance",
        sdk="Go 1.8.0",
        folder="go",
        ways=(
            Way("stdio", go("go-sdk-conformance-everything-server")),
            Way(HTTP, go("go-sdk-conformance-everything-server", "-http", "127.0.0.1:{port}"), "/"),
            Way(
                f"{HTTP}, sessions",
                go("go-sdk-conformance-everything-server", "-stateless=false", "-http", "127.0.0.1:{port}"),
                "/",
            ),
        ),
        steps=(*fixture_steps(), *STATELESS_STEPS, updates("test://watched-resource")),
        notes=tuple(
            Note(
                step,
                "Go 1.8.0: without sessions the server can send requests and notifications only in "
                "2026-07-28",
                (HTTP,),
                SESSION_VERSIONS,
            )
            for step in ("sampling", "elicitation", "subscription")
        ),
    ),
    Server(
        name="sse",
        package="github.com/modelcontextprotocol/go-sdk v1.8.0, examples",
        sdk="Go 1.8.0",
        folder="go",
        ways=(
            Way(SSE, go("go-sdk-examples-server-sse", "-host", "127.0.0.1", "-port", "{port}"), "/greeter1"),
        ),
        steps=(tool("greet1", {"name": "Ann"}, "Hi Ann"), together("greet1", "name", "Hi {}")),
    ),
    Server(
        name="everything",
        package="github.com/mark3labs/mcp-go v1.2.1, examples",
        sdk="mcp-go 1.2.1",
        folder="go",
        ways=(Way("stdio", go("mcp-go-examples-everything")),),
        steps=(
            tool("echo", {"message": "hello"}, "Echo: hello"),
            tool("add", {"a": 2, "b": 3}, "5.0"),
            together("echo", "message", "Echo: {}"),
            image("getTinyImage"),
            block("get_resource_link", {}, "resource_link", versions=FROM_2025_06),
            progress("longRunningOperation", {"duration": 0.2, "steps": 4}, 4),
            cancellation("longRunningOperation", {"duration": 2, "steps": 20}),
            resource("test://static/resource", "This is a sample resource"),
            resource("test://dynamic/resource/7", "This is a sample resource"),
            prompt("simple_prompt", {}, "This is a simple prompt without arguments."),
            completion("complex_prompt", "style", "t", ["technical"]),
        ),
        notes=(Note("progress", OVERTAKEN),),
        through_proxy=True,
    ),
    Server(
        name="conformance",
        package="github.com/mark3labs/mcp-go v1.2.1, examples",
        sdk="mcp-go 1.2.1",
        folder="go",
        ways=(
            Way(HTTP, go("mcp-go-examples-conformance"), "/mcp", {"CONFORMANCE_ADDR": "127.0.0.1:{port}"}),
        ),
        steps=fixture_steps(),
        notes=(Note("progress", OVERTAKEN), Note("log messages", OVERTAKEN)),
    ),
)

RUST = (
    Server(
        name="calculator",
        package="rmcp 3.11.0, tests",
        sdk="Rust 3.11.0",
        folder="rust",
        ways=(
            Way("stdio", lambda: [program("rust", "release", "interop-rmcp")]),
            Way(HTTP, lambda: [program("rust", "release", "interop-rmcp"), "127.0.0.1:{port}"], "/mcp"),
        ),
        steps=(tool("sum", {"a": 2, "b": 3}, "5"), tool("sub", {"a": 2, "b": 3}, "-1")),
        through_proxy=True,
    ),
    Server(
        name="rust-mcp-server",
        package="rust-mcp-server 0.4.1",
        sdk="Rust 3.1.0",
        folder="crates",
        ways=(
            Way(
                "stdio",
                lambda: [program("crates", "bin", "rust-mcp-server"), "--workspace", "{folder}"],
            ),
        ),
        steps=(tool("rustc-explain", {"error_code": "E0425"}, "unresolved name"),),
    ),
    Server(
        name="rust-mcp-filesystem",
        package="rust-mcp-filesystem 0.4.5",
        sdk="rust-mcp-sdk",
        folder="crates",
        ways=(Way("stdio", lambda: [program("crates", "bin", "rust-mcp-filesystem"), "{folder}"]),),
        steps=(tool("read_text_file", {"path": "{folder}/note.txt"}, "a note"),),
    ),
)

SERVERS = (*TYPESCRIPT, *PYTHON, *GO, *RUST)
