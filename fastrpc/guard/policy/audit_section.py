"""The table ``audit`` of the guard's configuration: recording of calls, retention, targets of checkpoints.

    [audit]
    mode = "strict"
    key_file = "/etc/fastrpc/audit.pem"
    keep_days = 400

    [[audit.targets]]
    webhook = "https://audit.example.com/checkpoints"
    secret = "env:AUDIT_SECRET"

Checks the table and resolves secrets; opens nothing, connects to nothing. `fastrpc.guard.audit` applies it;
that is imported if there are targets.
"""

from __future__ import annotations

import os

from fastrpc.guard.policy import sections
from fastrpc.settings import STATE_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.guard.audit.delivery import Target
    from fastrpc.guard.policy.references import References
    from fastrpc.guard.policy.sections import GuardConfigError, Section

KINDS = ("folder", "syslog", "webhook")


class AuditConfig:
    """How calls are recorded. `mode` is ``group``, ``strict``, or None: not at all. `folder` is "" for the
    default in the state folder, `key_file` None for the default in `folder`. `keep_days` and `keep_bytes` are
    None for no limit. Raises GuardConfigError."""

    def __init__(self, root: Section, references: References) -> None:
        self._root = root
        section = root.table("audit")
        mode = section.take("mode", sections.one_of("group", "strict", "off"), "group")
        self.mode: str | None = None if mode == "off" else mode
        self.folder: str = section.take("folder", _path, "")
        self.key_file: str | None = section.take("key_file", _path)
        self.keep_days: float | None = section.take("keep_days", sections.days)
        self.keep_bytes: int | None = section.take("keep_bytes", _size)
        self.targets = [_target(each, references) for each in section.list_of_sections("targets")]
        section.end()

    @property
    def path(self) -> str:
        """The folder, absolute."""
        return os.path.abspath(self.folder or os.path.join(STATE_DIR.read(), "audit"))

    def error(self, message: str) -> GuardConfigError:
        return self._root.error(["audit"], message)


def _target(section: Section, references: References) -> Target:
    found = [section.take(kind, _MAKERS[kind]) for kind in KINDS]
    secret: str | None = section.take("secret", lambda value: references.resolve(sections.text(value)))
    section.end()
    folder, syslog, webhook = found
    if sum(each is not None for each in found) != 1:
        raise section.error([], f"give one of {', '.join(KINDS)}")
    if (secret is not None) != (webhook is not None):
        raise section.error([], "a webhook needs a secret; other targets have none")
    if webhook is None:
        target: Target = folder or syslog
        return target
    from fastrpc.guard.audit.webhook_target import WebhookTarget

    try:
        return WebhookTarget(webhook, secret or "")
    except ValueError as error:
        raise section.error(["webhook"], str(error)) from None


# --- kinds of values --------------------------------------------------------------------------------------


def _path(value: Any) -> str:
    return os.path.abspath(os.path.expanduser(sections.text(value)))


def _folder(value: Any) -> Target:
    from fastrpc.guard.audit.folder_target import FolderTarget

    return FolderTarget(_path(value))


def _syslog(value: Any) -> Target:
    """Read the path of a socket, or ``HOST:PORT``."""
    from fastrpc.guard.audit.syslog_target import SyslogTarget

    found = sections.text(value)
    if os.path.isabs(found):
        return SyslogTarget(found)
    host, _, port = found.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"expected the path of a socket, or HOST:PORT, got {sections.shown(value)}")
    return SyslogTarget((host.strip("[]"), int(port)))


_MAKERS: dict[str, Any] = {"folder": _folder, "syslog": _syslog, "webhook": sections.text}


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a number of bytes above 0, got {sections.shown(value)}")
    return value
