"""An in-memory client for tests of tools, and of fastrpc itself.

        async def test_counts_words():
            async with Client(app) as client:
                result = await client.call("word_count", text="two words")
                assert result.text == "2"

The server is the real one, with parser and encoder; only the pipes are missing. A test is the same for every
protocol version. It is `fastrpc.Client` with shorter names, which keeps what it receives.
"""

from __future__ import annotations

from fastrpc import client as clients
from fastrpc._core.call_result import CallResult
from fastrpc.client.handlers import Handlers
from fastrpc.client.in_memory import InMemory
from fastrpc.client.listening import Listening
from fastrpc.client.results import CompletionResult, PromptResult, ReadResult
from fastrpc.errors import RemoteError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any, ClassVar

    from fastrpc._core.client_request import PendingRequest
    from fastrpc.client.handlers import Elicited, Handler, OnNotification, Roots, Sampled
    from fastrpc.client.in_memory import LineWatcher
    from fastrpc.options import LogLevel
    from fastrpc.server import Server

__all__ = [
    "CallResult",
    "Client",
    "CompletionResult",
    "Listening",
    "PromptResult",
    "ReadResult",
    "RemoteError",
]

CLIENT_INFO = {"name": "fastrpc.testing", "version": "1"}


class Client(clients.Client):
    """A client of `server` in this event loop, using protocol `version`. Use it with ``async with``.

    `on_elicit`, `on_sample`, `roots`, `capabilities` and `log_level` are those of `fastrpc.Client`.

    `notifications` holds everything received; `logs` and `progress` hold the params of those two kinds;
    `questions` holds the server's requests. `info` is the result of `initialize` or `server/discover`.
    """

    watch: ClassVar[Callable[[Client], LineWatcher | None] | None] = None
    """Called with each new client; what it returns sees every line. For test suites."""

    def __init__(
        self,
        server: Server,
        *,
        version: str = LATEST_SESSION_VERSION,
        capabilities: dict[str, Any] | None = None,
        on_elicit: Handler[Elicited] = None,
        on_sample: Handler[Sampled] | None = None,
        roots: Handler[Roots] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        super().__init__(
            server,
            timeout_seconds=0,
            capabilities=capabilities,
            client_info=CLIENT_INFO,
            log_level=log_level,
        )
        self.notifications: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self._handlers = _Recording(self, on_elicit, on_sample, roots)
        self._begun: dict[int, tuple[PendingRequest, asyncio.Future[dict[str, Any]]]] = {}
        self._wanted_version = version  # also one that no server knows
        watcher = None if Client.watch is None else Client.watch(self)
        self._make_transport = lambda: InMemory(server, watcher)

    @property
    def version(self) -> str:
        """The protocol version in use."""
        return str(self._wanted_version) if self._session_or_none is None else super().version

    @property
    def capabilities(self) -> dict[str, Any]:
        """The client capabilities that are declared."""
        return self._session.capabilities

    @property
    def listening(self) -> list[Listening]:
        """The open `Listening` objects."""
        return self._session.listening

    def begin(
        self, method: str, params: dict[str, Any] | None = None
    ) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Send a request; return its id and a future with its result."""
        request, future = self._session.start(method, params)
        self._begun[request.id] = request, future
        return request.id, future

    def cancel(self, id: int) -> None:
        """Cancel a request of `begin`; its future is cancelled too."""
        request, future = self._begun.pop(id)
        self._session.withdraw(request)
        future.cancel()

    tools = clients.Client.list_tools
    resources = clients.Client.list_resources
    templates = clients.Client.list_resource_templates
    read = clients.Client.read_resource
    prompts = clients.Client.list_prompts
    set_level = clients.Client.set_log_level

    async def call(
        self, tool: str, /, on_progress: OnNotification | None = None, **arguments: object
    ) -> CallResult:
        """Call a tool; `on_progress` gets progress notifications. Raises RemoteError for a protocol error."""
        return await self.call_tool(tool, arguments, on_progress=on_progress)

    async def prompt(self, name: str, /, **arguments: object) -> PromptResult:
        """Get a prompt. Arguments are strings in MCP; others are sent as JSON text. Raises RemoteError."""
        return await self.get_prompt(name, arguments)


class _Recording(Handlers):
    """The handlers of a test, and what they received."""

    def __init__(self, client: Client, on_elicit: Any, on_sample: Any, roots: Any) -> None:
        super().__init__(on_elicit, on_sample, roots, on_notification=self._record)
        self._client = client

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != "ping":
            self._client.questions.append({"method": method, "params": params})
        return await super().answer(method, params)

    def _record(self, message: dict[str, Any]) -> None:
        self._client.notifications.append(message)
        if message["method"] == "notifications/message":
            self._client.logs.append(message.get("params", {}))
        elif message["method"] == "notifications/progress":
            self._client.progress.append(message.get("params", {}))
