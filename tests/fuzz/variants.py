"""The server that the fuzzer sends conversations to, and others that must answer alike.

A `Variant` is the same server with its tools written in another way (with a `Context`, as a coroutine, as
one that waits), with hooks, a guard or an observer. None of that may show in what a client gets: the plain
server says what is right. A conversation's seed chooses the variant. Each is made once and kept.
"""

from __future__ import annotations

import asyncio
import functools
import random
from typing import Any, NamedTuple

from fastrpc import CallInfo, CallRecord, Context, Server, ToolError
from fastrpc.errors import InvalidParams

ABSENT = "absent"  # the default of every parameter

SHAPES = ("plain", "context", "used", "coroutine", "waiting", "busy")
"""How a tool is written: with a `Context` that it does not use, or does; as a coroutine, that does not wait,
that does, that does both and has a `Context`."""
HOOKS = ("none", "none", "empty", "curious", "changing")
GUARDS = ("none", "none", "allows", "curious", "late", "refuses")
WAITING = ("waiting", "busy")
KEPT = 4  # contexts and calls that are looked at again when others have run


class Kind(NamedTuple):
    """What a variant is made of."""

    tool: str
    typed: str
    hook: str
    guard: str
    observed: bool


class Variant:
    """A server of that kind.

    `waits`: a call of it may end later than one that comes behind it; `refuses`: its guard refuses calls.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.waits = kind.tool in WAITING or kind.typed in WAITING or kind.guard == "late"
        self.refuses = kind.guard == "refuses"
        self.records: list[CallRecord] | None = [] if kind.observed else None
        self._kept: list[Context | CallInfo] = []
        self.app = Server("fuzzed")
        self.app.tool(self._tool(), run="inline") if is_sync(kind.tool) else self.app.tool(self._tool())
        self.app.tool(self._typed(), run="inline") if is_sync(kind.typed) else self.app.tool(self._typed())
        self.app.add_resource("docs://a", "text", run="inline")
        self.app.prompt(greet, run="inline")
        self._put_hook()
        self._put_guard()
        if self.records is not None:
            self.app.observe(self.records.extend)

    def take_records(self) -> list[CallRecord]:
        """Return the records since the last time."""
        if self.records is None:
            return []
        observers = self.app._observers
        assert observers is not None
        observers.drain()
        taken = self.records[:]
        self.records.clear()
        return taken

    def dropped_records(self) -> int:
        return self.app._observers.recorder.dropped if self.app._observers is not None else 0

    def keep(self, thing: Context | CallInfo) -> None:
        """Hold on to what a call was handed, and look at one of an earlier call."""
        self._kept.append(thing)
        if len(self._kept) > KEPT:
            old = self._kept.pop(0)
            _ = old.arguments if isinstance(old, CallInfo) else (old.request_id, old.protocol_version)

    # --- tools --------------------------------------------------------------------------------------------

    def use(self, ctx: Context) -> None:
        """Do with a Context what tools do: report progress that the client may have asked for, and more."""
        ctx.progress(1, 2)
        self.keep(ctx)

    def _tool(self) -> Any:
        use = self.use
        if self.kind.tool == "context":

            def tool(ctx: Context, a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT) -> Any:
                return a
        elif self.kind.tool == "used":

            def tool(a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT, *, ctx: Context) -> Any:
                use(ctx)
                return a
        elif self.kind.tool == "coroutine":

            async def tool(a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT) -> Any:
                return a
        elif self.kind.tool == "waiting":

            async def tool(a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT) -> Any:
                await asyncio.sleep(0)
                return a
        elif self.kind.tool == "busy":

            async def tool(ctx: Context, a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT) -> Any:
                use(ctx)
                if a != ABSENT:
                    await asyncio.sleep(0)
                return a
        else:

            def tool(a: Any = ABSENT, b: Any = ABSENT, text: Any = ABSENT) -> Any:
                return a

        return tool

    def _typed(self) -> Any:
        use = self.use
        if self.kind.typed == "context":

            def typed(
                s: str = "",
                n: int = 0,
                x: float = 0.0,
                flag: bool = False,
                maybe: str | None = None,
                ctx: Context | None = None,
            ) -> dict[str, Any]:
                return members(s, n, x, flag, maybe)
        elif self.kind.typed == "used":

            def typed(
                ctx: Context,
                s: str = "",
                n: int = 0,
                x: float = 0.0,
                flag: bool = False,
                maybe: str | None = None,
            ) -> dict[str, Any]:
                use(ctx)
                return members(s, n, x, flag, maybe)
        elif self.kind.typed == "coroutine":

            async def typed(
                s: str = "", n: int = 0, x: float = 0.0, flag: bool = False, maybe: str | None = None
            ) -> dict[str, Any]:
                return members(s, n, x, flag, maybe)
        elif self.kind.typed == "waiting":

            async def typed(
                s: str = "", n: int = 0, x: float = 0.0, flag: bool = False, maybe: str | None = None
            ) -> dict[str, Any]:
                await asyncio.sleep(0)
                return members(s, n, x, flag, maybe)
        elif self.kind.typed == "busy":

            async def typed(
                ctx: Context,
                s: str = "",
                n: int = 0,
                x: float = 0.0,
                flag: bool = False,
                maybe: str | None = None,
            ) -> dict[str, Any]:
                use(ctx)
                if flag:
                    await asyncio.sleep(0)
                return members(s, n, x, flag, maybe)
        else:

            def typed(
                s: str = "", n: int = 0, x: float = 0.0, flag: bool = False, maybe: str | None = None
            ) -> dict[str, Any]:
                return members(s, n, x, flag, maybe)

        return typed

    # --- what is around them --------------------------------------------------------------------------------

    def _put_hook(self) -> None:
        def empty(call: CallInfo) -> None:
            pass

        def curious(call: CallInfo) -> None:
            _ = call.arguments
            self.keep(call)

        def changing(call: CallInfo) -> None:
            call.arguments = {**call.arguments, "of no parameter": 1}

        hooks = {"empty": empty, "curious": curious, "changing": changing}
        if self.kind.hook in hooks:
            self.app.before(hooks[self.kind.hook])

    def _put_guard(self) -> None:
        def allows(call: CallInfo) -> None:
            pass

        def curious(call: CallInfo) -> None:
            self.keep(call)

        async def late(call: CallInfo) -> None:
            await asyncio.sleep(0)

        def refuses(call: CallInfo) -> None:
            if len(call.arguments) % 2:
                raise ToolError("no") if call.kind == "tool" else InvalidParams("no")

        guards = {"allows": allows, "curious": curious, "late": late, "refuses": refuses}
        if self.kind.guard in guards:
            self.app.guard(guards[self.kind.guard])


def members(s: str, n: int, x: float, flag: bool, maybe: str | None) -> dict[str, Any]:
    return {"s": s, "n": n, "x": x, "flag": flag, "maybe": maybe}


def greet(name: str) -> str:
    return f"Hello {name}"


def is_sync(shape: str) -> bool:
    return shape in ("plain", "context", "used")


@functools.lru_cache(maxsize=200)
def variant_of(kind: Kind) -> Variant:
    """Return the server of a kind."""
    return Variant(kind)


PLAIN = Kind("plain", "plain", "none", "none", False)


def plain() -> Variant:
    """Return the server whose tools need no loop, and have nothing around them."""
    return variant_of(PLAIN)


def chosen(chance: random.Random) -> Variant:
    """Return another one."""
    return variant_of(
        Kind(
            chance.choice(SHAPES),
            chance.choice(SHAPES),
            chance.choice(HOOKS),
            chance.choice(GUARDS),
            chance.random() < 0.5,
        )
    )
