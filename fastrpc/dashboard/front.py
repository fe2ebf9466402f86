"""The dashboard in the process of a guarded server: it answers the requests below its path, and ends its
streams when the server ends. All other requests pass to the server's application."""

from __future__ import annotations

from fastrpc.dashboard.app import Dashboard
from fastrpc.dashboard.openid import OpenIdSignIn
from fastrpc.dashboard.serving import ServingProcess
from fastrpc.dashboard.task_database import TaskDatabase
from fastrpc.dashboard.view import PREFIX, AuditSource, Sources
from fastrpc.guard.editing import PolicyEditor
from fastrpc.transports.http.request import root_and_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.guard.serving import GuardedServing
    from fastrpc.server import Server
    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.interfaces import Front, Mapped, Receive, Send


class DashboardFront:
    """An ASGI application that serves a dashboard, and passes every other request to `front`. The rules of
    `app` about the Host hold for both."""

    def __init__(self, front: Front, app: HttpApp, sources: Sources) -> None:
        self._front = front
        if sources.serving is not None and app.workers is not None:
            sources.serving.others, app.workers.answer = app.workers, sources.serving.answer
        self._dashboard = Dashboard(sources, app.guard)

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_below(root_and_path(scope)[1]):
            await self._dashboard(scope, receive, send)
        else:
            await self._front(scope, receive, send)

    async def stop(self, grace_seconds: float | None) -> None:
        """End the streams of open pages, and then the server's application."""
        await self._dashboard.changes.stop()
        await self._front.stop(grace_seconds)


def is_below(path: str) -> bool:
    """Whether a path is one of the dashboard's."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def sources_of(server: Server, guarded: GuardedServing, workers: int) -> Sources:
    """Return what the pages of a guarded server show; `workers` is how many processes serve it."""
    of_toolsets: dict[str, Any] = {}
    for each in server._with_mounts():
        of_toolsets |= each.page_sources
    return Sources(
        guarded.database.open,
        server.name,
        serving=ServingProcess(server, workers),
        tasks=TaskDatabase(),
        audit=None if guarded.audit is None else guarded.audit.log,
        log=AuditSource.of(guarded.config.audit),
        policy=PolicyEditor(guarded.path, server, lambda: guarded.guard.policy.config),
        sign_in=OpenIdSignIn(lambda: guarded.guard.policy.config.dashboard, PREFIX),
        **of_toolsets,
    )


def with_dashboard(sources: Sources) -> Callable[[Front, HttpApp], Front]:
    """Return the function that puts a dashboard before the application of a loop (`Server.http_fronts`)."""
    return lambda front, app: DashboardFront(front, app, sources)
