"""The five levels of risk, and the level of a tool that only declares its effect."""

from __future__ import annotations

from fastrpc.definitions.tool import RISKS

NONE, LOW, MEDIUM, HIGH, CRITICAL = LEVELS = RISKS
"""none: only reads; low: harmless; medium: writes that can be undone; high: external, costly or hard to
reverse; critical: destructive or privileged."""

BY_EFFECT = {"read": NONE, "write": MEDIUM, "network": MEDIUM, "exec": HIGH}


def rank(level: str) -> int:
    """Return the position of a level, 0 for `NONE`."""
    return LEVELS.index(level)


def is_critical(level: str) -> bool:
    """Whether a call of this level needs a person and a channel that are not its caller's."""
    return rank(level) >= rank(CRITICAL)
