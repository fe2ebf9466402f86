"""What the processes that serve one session must agree on, beyond the handshake, and its changes. No I/O."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastrpc.protocol.lifecycle import SessionState


class CommonState(NamedTuple):
    """What all processes know of a session. `ended`: by its client; `log_level` is None if the client has not
    set one; `subscriptions` maps URIs to the forms in which the client has written them."""

    ended: bool = False
    log_level: str | None = None
    subscriptions: Mapping[str, str] = {}

    def with_change(self, change: SessionChange) -> CommonState:
        """Return the state after a change."""
        kept = {uri: asked for uri, asked in self.subscriptions.items() if uri not in change.unsubscribed}
        return CommonState(self.ended, change.log_level or self.log_level, {**kept, **change.subscribed})


class SessionChange(NamedTuple):
    """What has changed of a session, or what its client has set. `log_level` is None if it has not."""

    log_level: str | None
    subscribed: Mapping[str, str]
    unsubscribed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return self.log_level is None and not self.subscribed and not self.unsubscribed

    @property
    def size(self) -> int:
        """The length of its texts, in characters."""
        subscribed = sum(len(uri) + len(asked) for uri, asked in self.subscribed.items())
        return subscribed + sum(map(len, self.unsubscribed))

    def followed_by(self, later: SessionChange) -> SessionChange:
        """Return both changes as one."""
        subscribed = {uri: asked for uri, asked in self.subscribed.items() if uri not in later.unsubscribed}
        unsubscribed = [uri for uri in self.unsubscribed if uri not in later.subscribed]
        return SessionChange(
            later.log_level or self.log_level,
            {**subscribed, **later.subscribed},
            (*unsubscribed, *later.unsubscribed),
        )


def state_of(session: SessionState) -> CommonState:
    """Return what a process has of a session."""
    return CommonState(False, session.log_level, dict(session.subscriptions))


def change_between(before: CommonState, after: CommonState) -> SessionChange:
    """Return what has changed from one state to another."""
    return SessionChange(
        after.log_level if after.log_level != before.log_level else None,
        {uri: asked for uri, asked in after.subscriptions.items() if uri not in before.subscriptions},
        tuple(uri for uri in before.subscriptions if uri not in after.subscriptions),
    )


def make_change(session: SessionState, change: SessionChange) -> None:
    """Change what a process has of a session, and share nothing. Raises ProtocolError if there is no memory
    for it."""
    on_change, session.on_change = session.on_change, None
    try:
        if change.log_level is not None:
            session.set_log_level(change.log_level)
        for uri in change.unsubscribed:
            session.unsubscribe(uri)
        for uri, asked in change.subscribed.items():
            session.subscribe(uri, asked)
    finally:
        session.on_change = on_change
