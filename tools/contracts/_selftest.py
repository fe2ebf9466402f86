"""What `fastrpc selftest fastrpc.tools.contracts --engine …` checks in addition: that the engine's verbs are
those of the toolset.

A stdio engine lists its tools. Over HTTP no method lists them. Each verb is requested with parameters that
are not an object, which runs none of them; for an unknown verb the engine returns an error that says so.
"""

from __future__ import annotations

import asyncio

from . import _engines, _settings
from ._errors import EngineError
from ._verbs import PREFIX, VERBS

BESIDE = frozenset((f"{PREFIX}health", f"{PREFIX}chain_use"))
"""Verbs of engines that are not published as tools."""


def findings() -> list[tuple[bool, str]]:
    """Return whether each check succeeds, and what was found. Nothing without a setting for the engine."""
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
