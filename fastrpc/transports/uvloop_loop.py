"""uvloop's event loop, whose programs inherit their three standard descriptors and no copies of them.

uvloop leaves the ends of the pipes that it makes for a program open in it, under further numbers. A program
that becomes a daemon closes the three, and keeps the copies: ``communicate()`` never ends. Here they are
closed when the program begins, as ``close_fds=True``, the default, says. Beside starting a program that costs
nothing that can be measured.
"""

from __future__ import annotations

import os

import uvloop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Loop(uvloop.Loop):
    """An event loop of uvloop."""

    async def subprocess_exec(self, protocol_factory: Any, *command: Any, **options: Any) -> Any:
        return await super().subprocess_exec(protocol_factory, *command, **closing_copies(options))

    async def subprocess_shell(self, protocol_factory: Any, *command: Any, **options: Any) -> Any:
        return await super().subprocess_shell(protocol_factory, *command, **closing_copies(options))


def closing_copies(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a program with a `preexec_fn` that has all descriptors closed when the program
    begins, but for the standard ones and `pass_fds`."""
    if options.get("close_fds", True) is False:
        return options
    kept = frozenset(options.get("pass_fds") or ())
    function = options.get("preexec_fn")

    def prepare() -> None:
        if function is not None:
            function()
        # Not closed at once: libuv makes the standard descriptors of them after this.
        for name in os.listdir("/dev/fd"):
            descriptor = int(name)
            if descriptor > 2 and descriptor not in kept:
                try:
                    os.set_inheritable(descriptor, False)
                except OSError:  # that of the list itself
                    pass

    return {**options, "preexec_fn": prepare}
