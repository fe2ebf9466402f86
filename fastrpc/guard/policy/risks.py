"""The five levels of risk, and that of a tool of which nothing is said but its effect."""

from __future__ import annotations

from fastrpc.definitions.tool import RISKS

NONE, LOW, MEDIUM, HIGH, CRITICAL = LEVELS = RISKS
"""None only reads; low is harmless; medium writes, which can be undone; high is external, costly or hard to
reverse; critical is destructive or privileged."""

BY_EFFECT = {"read": NONE, "write": MEDIUM, "network": MEDIUM, "exec": HIGH}


def rank(level: str) -> int:
    """Return a level's place, 0 for none."""
    return LEVELS.index(level)


def of_effect(effect: str | None, unknown: str = HIGH) -> str:
    """Return the risk of a tool with this effect; `unknown` for one that does not say."""
    return BY_EFFECT.get(effect or "", unknown)
