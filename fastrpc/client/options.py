"""The types of options: of `fastrpc.Client`, which explains them, of its targets, and of one request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, TypedDict

    from fastrpc.client.handlers import Elicited, Handler, OnNotification, Roots, Sampled
    from fastrpc.client.oauth import OAuth
    from fastrpc.options import LogLevel

    class TargetOptions(TypedDict, total=False):
        """Options of one kind of target: the first three of a command, the others of a URL."""

        cwd: str | None
        env: Mapping[str, str] | None
        stderr: bool
        auth: Literal["oauth"] | OAuth | None
        headers: Mapping[str, str] | None
        tls_ca: str | None
        token: str | Callable[[], str] | None

    class RequestOptions(TypedDict, total=False):
        """Options of one request of a `fastrpc.client.session.Session`."""

        timeout_seconds: float | None
        """The time limit; 0 for none, None for that of the session."""
        on_progress: OnNotification | None
        """Is called with the params of each progress notification."""
        is_call: bool
        """Whether a complete result is returned as a CallResult."""
        may_be_task: bool
        """Whether a result may be a task (``resultType``: ``task``), which is returned as it is."""

    class ClientOptions(TargetOptions, total=False):
        """All options of a client."""

        version: str | None
        timeout_seconds: float | None
        max_seconds: float
        start_seconds: float
        restart: bool
        on_elicit: Handler[Elicited]
        on_sample: Handler[Sampled] | None
        roots: Handler[Roots] | None
        on_log: OnNotification | None
        on_progress: OnNotification | None
        on_notification: OnNotification | None
        log_level: LogLevel | None
        capabilities: dict[str, Any] | None
        client_info: dict[str, Any] | None
