"""A policy's file for those who read and change it while servers use it: the dashboard.

`check` reads a text as the server would read the file, and changes nothing: no variable leaves the
environment, nothing is logged. `save` replaces the file atomically, if it is still the one that was opened,
and keeps the former one beside it; servers notice it as they notice any change. Methods block: call them on a
thread.
"""

from __future__ import annotations

import fcntl
import os
from codecs import BOM_UTF8
from contextlib import contextmanager
from typing import NamedTuple

from fastrpc.errors import FastrpcError
from fastrpc.guard.guard import Costs, Schemas, targets_of
from fastrpc.guard.policy import file as policy_file
from fastrpc.guard.policy.decisions import Policy
from fastrpc.guard.policy.references import CheckedReferences
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.serving import checked_policy
from fastrpc.regular_files import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastrpc.guard.policy.config import GuardConfig
    from fastrpc.guard.policy.decisions import CallTarget
    from fastrpc.server import Server

FORMER = ".former"
"""What the name of the former file has after that of the file."""


class PolicyText(NamedTuple):
    """The text in a policy's file, whose lines end with line feeds, and the version of the file."""

    text: str
    version: str


class PolicyChanged(FastrpcError):
    """The file was changed after it had been opened. `now` is what it contains."""

    def __init__(self, now: PolicyText) -> None:
        super().__init__("the file has been changed since it was opened here")
        self.now = now


class PolicyEditor:
    """The policy's file at `path`. `server` has the tools against which the policy is checked; None: they
    are not known here. `in_force` returns the configuration that the server uses; by default it is that of
    the file."""

    def __init__(
        self, path: str, server: Server | None = None, in_force: Callable[[], GuardConfig] | None = None
    ) -> None:
        self.path = os.path.abspath(path)
        self._server = server
        self._in_force = in_force

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def is_shared(self) -> bool:
        """Whether the file has other settings than the policy."""
        return self.name == policy_file.SHARED_FILE

    @property
    def used_version(self) -> str | None:
        """The version that the server of this process uses; None without one."""
        return None if self._in_force is None else self._in_force().version

    def open(self) -> PolicyText:
        """Return what the file contains. Raises GuardConfigError."""
        return self._opened()[0]

    def check(self, text: str) -> tuple[Policy, list[str]]:
        """Return a text as a policy, with warnings about names that no tool has. Raises GuardConfigError."""
        return self._checked(text.encode("utf-8", "surrogatepass"))

    def save(self, text: str, version: str) -> str:
        """Write a text into the file, and return its version. Raises GuardConfigError for a text that is not
        a policy, PolicyChanged unless the file has still this version, and OSError."""
        path = os.path.realpath(self.path)  # what a link leads to is replaced, not the link
        with _locked(os.path.dirname(path)):
            now, former = self._opened()
            if now.version != version:
                raise PolicyChanged(now)
            data = text.encode("utf-8", "surrogatepass")
            if b"\r\n" in former:
                data = data.replace(b"\n", b"\r\n")
            if former.startswith(BOM_UTF8):
                data = BOM_UTF8 + data
            self._checked(data)
            facts = os.stat(path)
            owner, mode = (facts.st_uid, facts.st_gid), facts.st_mode & 0o7777
            for each, content in ((path + FORMER, former), (path, data)):
                replace_file(each, content, mode, owner)
        return policy_file.version_of(data)

    def policy(self) -> Policy:
        """Return the policy in force, as an object that no guard uses. Raises GuardConfigError."""
        if self._in_force is None:
            return self._checked(policy_file.content_of(self.path))[0]
        config = self._in_force()
        return Policy(config, *((Schemas(self._server), Costs(self._server)) if self._server else ({},)))

    def targets(self) -> list[CallTarget] | None:
        """Return the tools, prompts and resources that the policy is about; None if they are not known."""
        return None if self._server is None else list(targets_of(self._server))

    def _opened(self) -> tuple[PolicyText, bytes]:
        data = policy_file.content_of(self.path)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise GuardConfigError(f"{self.path}: not UTF-8") from None
        return PolicyText(text.replace("\r\n", "\n"), policy_file.version_of(data)), data

    def _checked(self, data: bytes) -> tuple[Policy, list[str]]:
        references = CheckedReferences(os.path.dirname(self.path))
        config = policy_file.config_of(self.path, data, references)
        if self._server is not None:
            return checked_policy(config, self._server)
        return Policy(config, {}), []


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Keep other processes and threads from saving a policy in a folder. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
