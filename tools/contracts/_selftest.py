"""What `fastrpc selftest fastrpc.tools.contracts --engine …` checks besides: the engine's own verbs are ours.

An engine of stdio lists its tools. Over HTTP nothing does: each verb is asked for with parameters that are no
object, which runs none of them, and an engine that does not know the verb says so.
"""

from __future__ import annotations

import asyncio

from . import _engines, _settings
from ._errors import EngineError
from ._verbs import PREFIX, VERBS

BESIDE = frozenset((f"{PREFIX}health", f"{PREFIX}chain_use"))
"""Verbs of engines that are not published as tools."""


def findings() -> list[tuple[bool, str]]:
    """Whether each check holds, and what was found. Nothing without a setting for the engine."""
    return asyncio.run(_of_engine()) if _settings.ENGINE.read() else []


async def _of_engine() -> list[tuple[bool, str]]:
    from ._bridge.engine import BridgedEngine

    ours = {PREFIX + verb for verb in VERBS}
    engine = _engines.current()
    assert isinstance(engine, BridgedEngine)
    try:
        theirs = await engine.verbs()
    except EngineError as error:
        return [(False, f"the engine: {error.code}: {error.message}")]
    finally:
        await engine.close()
    missing, more = sorted(ours - theirs), sorted(theirs - ours - BESIDE)
    found = [(False, f"the engine has no {name}") for name in missing]
    found += [(False, f"the engine has {name}, which is not a tool of this server") for name in more]
    return found or [(True, f"the engine has the {len(ours)} verbs")]
