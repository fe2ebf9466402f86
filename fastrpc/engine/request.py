"""A request, from the message that brought it to its answer."""

from __future__ import annotations

from fastrpc.engine.messages import RECORDED, key_of
from fastrpc.errors import excerpt
from fastrpc.protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, STATELESS, TASKS_EXTENSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

    from fastrpc._core.context import InFlightCall
    from fastrpc._core.message import Message
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.ports import OutboundChannel
    from fastrpc.quotas import Quota


class Request:
    """One request: what the client asked, and whom to answer.

    `asking` is what it remembers of questions to the client; `quota` counts what a stream of changes keeps;
    `cancellation` is what the client has said when it cancelled. `outcome` is what the record of its call
    says, once that is known; `began`, `bound`, `allowed` and `returned` are ticks (`fastrpc._core.recorder`).
    `counted` is True once a request that is not a call counts for its caller's rate, or the error that
    refuses it (`fastrpc.guard.requests`). `result_meta`, which guards set, is what its result says besides.
    """

    content: tuple[bytes | None, ...] = ()
    """What the record of its call carries besides: see `fastrpc.engine.recorded_content`."""

    __slots__ = (
        "allowed",
        "asking",
        "batch",
        "began",
        "bound",
        "call",
        "cancellation",
        "channel",
        "counted",
        "dispatcher",
        "id",
        "key",
        "method",
        "outcome",
        "params",
        "quota",
        "result_meta",
        "returned",
        "version",
    )

    result_meta: dict[str, Any]

    def __init__(
        self,
        dispatcher: DispatcherProtocol,
        id: bytes,
        method: str,
        params: dict[str, Any],
        batch: Batch | None,
    ) -> None:
        self.dispatcher = dispatcher
        self.id = id
        self.key = key_of(id)
        self.method = method
        self.params = params
        self.batch = batch
        self.version = ""
        self.call: InFlightCall | None = None
        self.cancellation: dict[str, Any] | None = None
        self.channel: OutboundChannel | None = None
        self.asking: Any = None
        self.quota: Quota | None = None
        self.outcome = ""
        self.counted: Any = None
        self.began = self.bound = self.allowed = self.returned = 0

    def take_decided(self, decided: object) -> None:
        """Have the record of its call carry what a guard has decided; one without content cannot."""

    def record(self, principal: str, returned: int, size: int) -> tuple[Any, ...]:
        """Return what `Recorder.write` takes of a call that is over: `returned` in ticks, `size` in bytes."""
        return (
            *(RECORDED[self.method], self.target, self.id, principal, self.outcome or "ok"),
            *(self.began, self.bound, self.allowed, returned, size),
            *self.content,
        )

    @classmethod
    def of(cls, dispatcher: DispatcherProtocol, message: Message, batch: Batch | None) -> Self:
        """Return the request that a message brings."""
        return cls(dispatcher, message.id or b"null", message.method or "", message.params or {}, batch)

    @property
    def called(self) -> str:
        """What is called: a tool or a prompt by its own name, or a resource by its URI in its normal form."""
        found = self.params.get("uri" if self.method == "resources/read" else "name")
        if not isinstance(found, str):
            return ""
        if self.method == "tools/call":
            tool = self.dispatcher.runtime.registries.tools.published.get(found)
            return found if tool is None else tool.name
        if self.method != "resources/read":
            return found
        from fastrpc.protocol.uri_template import LONGEST, normal

        return normal(found[: LONGEST + 1])

    @property
    def target(self) -> str:
        """The same, as records and errors name it."""
        return excerpt(self.called)

    @property
    def meta(self) -> dict[str, Any]:
        return self.params.get("_meta") or {}

    @property
    def progress_token(self) -> str | int | None:
        """The progress token of the request, or None (MCP, utilities: progress)."""
        token = self.meta.get("progressToken")
        return token if type(token) in (str, int) else None

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The ClientCapabilities: of the request from 2026-07-28 on, of the handshake before."""
        stateless = self.version == STATELESS
        return self._declared(CAPABILITIES_KEY) if stateless else self.dispatcher.session.client_capabilities

    @property
    def client_info(self) -> dict[str, Any]:
        stateless = self.version == STATELESS
        return self._declared(CLIENT_KEY) if stateless else self.dispatcher.session.client_info

    @property
    def declares_tasks(self) -> bool:
        """Whether the client supports the extension for tasks (`TASKS_EXTENSION`)."""
        extensions = self.client_capabilities.get("extensions")
        return isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)

    def _declared(self, key: str) -> dict[str, Any]:
        return self.meta.get(key) or {}

    # --- for requests to the client ---------------------------------------------------------------------

    @property
    def known_roots(self) -> list[dict[str, Any]] | None:
        """The stored roots of this session, if the client notifies changes of them; else None."""
        return self.dispatcher.session.roots

    def keep_roots(self, roots: list[dict[str, Any]]) -> None:
        """Store the client's roots. Thread-safe."""
        self.dispatcher.outbound.post(lambda: self.dispatcher.session.take_roots(roots))

    def notify_client(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification. Thread-safe."""
        outbound = self.dispatcher.outbound
        outbound.post(lambda: outbound.notify(method, params))
