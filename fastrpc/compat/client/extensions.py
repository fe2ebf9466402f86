"""Extensions of a client of the official SDK 2.x: ``Client(server, extensions=[advertise("a.com/b")])``.

An extension declares its name and settings, may resolve tool results of a type that it defines, and may
handle notifications that it defines. A client without extensions pays nothing.
"""

from __future__ import annotations

from fastrpc.compat.client.callbacks import awaited
from fastrpc.content import checked_extensions
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from typing import Any

CORE_RESULTS = ("complete", "input_required")


class Parametrized:
    """A class that type checkers give parameters."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> type:
            return cls


class ClaimContext:
    """What a claim gets besides the result: the session, and the call."""

    def __init__(self, *, session: Any, tool_name: str, read_timeout_seconds: float | None) -> None:
        self.session = session
        self.tool_name = tool_name
        self.read_timeout_seconds = read_timeout_seconds


class ResultClaim(Parametrized):
    """A type of results of calls that an extension finishes: `resolve` gets the `model` of it and a
    `ClaimContext`, and returns the CallToolResult. Raises ValueError."""

    def __init__(
        self,
        *,
        result_type: str,
        model: Any,
        resolve: Callable[[Any, ClaimContext], Awaitable[Any]],
        method: str = "tools/call",
        protocol_versions: frozenset[str] | None = None,
    ) -> None:
        if method != "tools/call":
            raise ValueError(f"method: expected 'tools/call', got {method!r:.80}")
        if result_type in CORE_RESULTS:
            raise ValueError(f"result_type: {result_type!r} is a type of the protocol itself")
        self.result_type = result_type
        self.model = model
        self.resolve = resolve
        self.method = method
        self.protocol_versions = protocol_versions


class NotificationBinding(Parametrized):
    """A method of notifications that an extension takes: `handler` gets the params, a `params_type`."""

    def __init__(self, *, method: str, params_type: Any, handler: Callable[[Any], Awaitable[None]]) -> None:
        self.method = method
        self.params_type = params_type
        self.handler = handler


class ClientExtension:
    """An extension, by its `identifier`; subclasses override what they need."""

    identifier: str

    def settings(self) -> dict[str, Any]:
        """Return what is declared to the server."""
        return {}

    def claims(self) -> Sequence[ResultClaim]:
        """Return the types of results that it finishes."""
        return ()

    def notifications(self) -> Sequence[NotificationBinding]:
        """Return the notifications that it takes."""
        return ()


class _Advertised(ClientExtension):
    def __init__(self, identifier: str, settings: dict[str, Any]) -> None:
        self.identifier = identifier
        self._settings = settings

    def settings(self) -> dict[str, Any]:
        return self._settings


def advertise(identifier: str, settings: dict[str, Any] | None = None) -> ClientExtension:
    """Return an extension that is declared and does nothing else. Raises ValueError for a name without a
    prefix."""
    checked_extensions({identifier: settings or {}})
    return _Advertised(identifier, settings or {})


class Extensions:
    """The extensions of one client. Raises ValueError for a name that is none or is there twice."""

    def __init__(self, extensions: Iterable[ClientExtension]) -> None:
        self.declared: dict[str, Any] = {}
        self._claims: dict[str, ResultClaim] = {}
        self._notifications: dict[str, list[NotificationBinding]] = {}
        for extension in extensions:
            if extension.identifier in self.declared:
                raise ValueError(f"extensions: {extension.identifier} is there twice")
            self.declared[extension.identifier] = extension.settings()
            for claim in extension.claims():
                self._claims[claim.result_type] = claim
            for binding in extension.notifications():
                self._notifications.setdefault(binding.method, []).append(binding)
        checked_extensions(self.declared)

    async def finished(self, raw: dict[str, Any], session: Any, tool_name: str, seconds: float | None) -> Any:
        """Return the result of a call that an extension claims, finished by it; None for any other."""
        claim = self._claims.get(raw.get("resultType", ""))
        if claim is None or session.protocol_version not in (claim.protocol_versions or (STATELESS,)):
            return None
        context = ClaimContext(session=session, tool_name=tool_name, read_timeout_seconds=seconds)
        return await claim.resolve(claim.model.model_validate(raw), context)

    def claimed(self, raw: dict[str, Any]) -> Any:
        """Return a result that an extension claims as its model; None for any other."""
        claim = self._claims.get(raw.get("resultType", ""))
        return None if claim is None else claim.model.model_validate(raw)

    @property
    def takes_notifications(self) -> bool:
        return bool(self._notifications)

    def taking(self, others: Callable[[dict[str, Any]], Any] | None) -> Callable[[dict[str, Any]], Any]:
        """Return the ``on_notification`` handler: it calls the extensions' handlers of a method, and `others`
        for every notification."""

        async def on_notification(message: dict[str, Any]) -> None:
            for binding in self._notifications.get(message["method"], ()):
                await binding.handler(binding.params_type.model_validate(message.get("params") or {}))
            if others is not None:
                await awaited(others(message))

        return on_notification
