"""Takes names away from a module of `fastrpc.compat`, for tests of what is missing."""

from __future__ import annotations

from types import ModuleType

import pytest


def without_names(monkeypatch: pytest.MonkeyPatch, module: ModuleType, **alternatives: str) -> None:
    """Make names of a module missing, each with the alternative that it names."""
    monkeypatch.setattr(module, "__all__", [name for name in module.__all__ if name not in alternatives])
    known = {**module._MODULE_ALTERNATIVES, **alternatives}
    monkeypatch.setattr(module, "_MODULE_ALTERNATIVES", known)
